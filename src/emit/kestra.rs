//! The one place that writes Kestra lines.
//!
//! Kestra reads a line as a marker only if the whole line matches `^::(\{.*\})::$`, and drops a
//! whole line that it cannot parse. So each marker stands alone on its line, in ASCII, and
//! outputs, metrics and logs never share one. An `assets` line or a metric without a value
//! leaves a task running for ever: neither can be written here.

use serde::Serialize;

use super::{ascii, cut};
use crate::report::metrics::Metric;

/// The levels that Kestra knows. Any other drops the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// Details for a developer.
    Trace,
    /// Details for an operator who looks into something.
    Debug,
    /// What a run does.
    Info,
    /// What an operator should know.
    Warn,
    /// What went wrong.
    Error,
}

/// The outputs line, and whether it is as short as it should be.
#[must_use]
pub fn outputs(json: &str) -> (String, bool) {
    let frame = r#"::{"outputs":}::"#.len();
    let fitted = cut::fit(json, cut::MAX_LINE - frame);
    (
        format!("::{{\"outputs\":{}}}::\n", fitted.json),
        fitted.fits,
    )
}

/// The metrics line; empty for no metrics. A value that is not finite has no JSON and is left
/// out: a metric without a value would leave the task running for ever.
#[must_use]
pub fn metrics(metrics: &[Metric]) -> String {
    let finite: Vec<&Metric> = metrics.iter().filter(|m| m.value.is_finite()).collect();
    if finite.is_empty() {
        return String::new();
    }
    marker("metrics", &finite)
}

/// A log line. Its caller shortens the message.
#[must_use]
pub fn log(level: Level, message: &str) -> String {
    #[derive(Serialize)]
    struct Entry<'a> {
        level: Level,
        message: &'a str,
    }
    marker("logs", &[Entry { level, message }])
}

/// The last line: for people, and never a marker, because some runners drop a last line.
#[must_use]
pub fn last(summary: &str) -> String {
    format!("lancedb-guard: {}\n", super::text::one_line(summary))
}

fn marker<T: Serialize>(name: &str, content: &T) -> String {
    // Our own types have string keys only, so there is nothing that could fail.
    let json = serde_json::to_string(content).unwrap_or_else(|_| "[]".to_owned());
    format!("::{{\"{name}\":{}}}::\n", ascii::rewrite(&json))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::report::metrics::MetricType;

    /// What Kestra takes out of a line, by its own regular expression `^::(\{.*\})::$`, where a
    /// dot matches no line terminator of Unicode.
    fn taken_by_kestra(line: &str) -> Option<Value> {
        let line = line.strip_suffix('\n')?;
        if line.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
            return None;
        }
        let json = line.strip_prefix("::")?.strip_suffix("::")?;
        if !json.starts_with('{') || !json.ends_with('}') {
            return None;
        }
        serde_json::from_str(json).ok()
    }

    fn without_nulls(value: Value) -> Value {
        match value {
            Value::Array(items) => items
                .into_iter()
                .filter(|item| !item.is_null())
                .map(without_nulls)
                .collect(),
            Value::Object(members) => members
                .into_iter()
                .filter(|(_, member)| !member.is_null())
                .map(|(name, member)| (name, without_nulls(member)))
                .collect(),
            scalar => scalar,
        }
    }

    fn any_text() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[\\PC\\x00-\\x1f\u{85}\u{2028}\u{2029}\u{7f}\"\\\\{}:]{0,12}",
            Just("}::\n::{\"outputs\":{\"injected\":true}}::".to_owned()),
            Just("😀\u{fffd}\u{feff}\u{202e}{{ secret('X') }}".to_owned()),
        ]
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any_text().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((any_text(), inner), 0..6)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_goes_in_kestra_takes_the_same_value_out(
            members in prop::collection::vec((any_text(), any_json()), 0..6),
            pretty in any::<bool>(),
        ) {
            let value: Value = members.into_iter().collect();
            let json = if pretty { format!("{value:#}") } else { value.to_string() };
            let (line, fits) = outputs(&json);
            prop_assert!(fits && line.is_ascii());
            let expected = without_nulls(value);
            prop_assert_eq!(taken_by_kestra(&line), Some(serde_json::json!({"outputs": expected})));
        }

        #[test]
        fn a_log_keeps_its_message(message in any_text()) {
            let line = log(Level::Warn, &message);
            prop_assert!(line.is_ascii());
            let expected = serde_json::json!({"logs": [{"level": "WARN", "message": message}]});
            prop_assert_eq!(taken_by_kestra(&line), Some(expected));
        }

        #[test]
        fn the_last_line_is_one_line_and_no_marker(summary in any_text()) {
            let line = last(&summary);
            prop_assert_eq!(line.lines().count(), 1);
            prop_assert!(taken_by_kestra(&line).is_none());
            prop_assert!(!line.trim_end_matches('\n').chars().any(char::is_control));
        }
    }

    #[test]
    fn a_metric_that_is_not_finite_is_left_out() {
        let metric = |value| Metric {
            name: "m".to_owned(),
            metric_type: MetricType::Gauge,
            value,
            tags: [].into(),
        };
        assert_eq!(metrics(&[metric(f64::NAN), metric(f64::INFINITY)]), "");
        assert_eq!(
            metrics(&[metric(f64::NAN), metric(2.5)]),
            "::{\"metrics\":[{\"name\":\"m\",\"type\":\"gauge\",\"value\":2.5,\"tags\":{}}]}::\n"
        );
    }

    #[test]
    fn every_level_is_one_that_kestra_knows() {
        for (level, name) in [
            (Level::Trace, "TRACE"),
            (Level::Debug, "DEBUG"),
            (Level::Info, "INFO"),
            (Level::Warn, "WARN"),
            (Level::Error, "ERROR"),
        ] {
            assert!(log(level, "x").contains(&format!("\"level\":\"{name}\"")));
        }
    }
}
