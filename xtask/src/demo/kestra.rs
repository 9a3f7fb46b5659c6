//! Reads what a step printed as Kestra does, and is stricter where Kestra is silent.
//!
//! Kestra takes a line that is `::{…}::` from end to end and shows every other line as text; it
//! drops a marker line that it cannot read without saying so. Here that is an error.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

/// What Kestra keeps of a step.
#[derive(Debug, Default, PartialEq)]
pub struct Captured {
    /// The outputs; several lines merge at the top level and the last wins.
    pub outputs: Map<String, Value>,
    /// The metrics.
    pub metrics: Vec<Value>,
    /// The log entries.
    pub logs: Vec<Value>,
    /// The lines that are shown as they are.
    pub text: Vec<String>,
}

/// Reads the lines of a step.
pub fn read(stdout: &str) -> Result<Captured> {
    let mut captured = Captured::default();
    let mut ends_with_text = false;
    for line in stdout.lines() {
        ends_with_text = !line.contains("::{");
        if ends_with_text {
            captured.text.push(line.to_owned());
        } else {
            read_marker(line, &mut captured)
                .with_context(|| format!("Kestra would drop the line {}", shortened(line)))?;
        }
    }
    ensure!(
        !captured.outputs.is_empty(),
        "no outputs line among the {} lines",
        stdout.lines().count()
    );
    ensure!(
        ends_with_text,
        "the last line is a marker line, which some task runners lose"
    );
    Ok(captured)
}

fn read_marker(line: &str, captured: &mut Captured) -> Result<()> {
    ensure!(line.is_ascii(), "it is not plain ASCII");
    let json = line
        .strip_prefix("::")
        .and_then(|rest| rest.strip_suffix("::"))
        .context("something stands before or after the marker")?;
    let marker: Map<String, Value> = serde_json::from_str(json)?;
    for (key, value) in marker {
        match (key.as_str(), value) {
            ("outputs", Value::Object(outputs)) => captured.outputs.extend(outputs),
            ("metrics", Value::Array(metrics)) => {
                // A metric without a value leaves the task running for ever.
                ensure!(
                    metrics.iter().all(|metric| metric["value"].is_number()),
                    "a metric has no value"
                );
                captured.metrics.extend(metrics);
            }
            ("logs", Value::Array(logs)) => captured.logs.extend(logs),
            (key, _) => bail!("{key:?} is none of outputs, metrics and logs, or not of its type"),
        }
    }
    Ok(())
}

fn shortened(line: &str) -> String {
    let start: String = line.chars().take(80).collect();
    if start.len() < line.len() {
        start + "…"
    } else {
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn outputs_lines_merge_and_the_last_wins() {
        let captured = read(concat!(
            "::{\"logs\":[{\"level\":\"INFO\",\"message\":\"hello\"}]}::\n",
            "::{\"outputs\":{\"a\":1,\"b\":{\"x\":1}}}::\n",
            "::{\"metrics\":[{\"name\":\"n\",\"type\":\"counter\",\"value\":1}]}::\n",
            "::{\"outputs\":{\"b\":{\"y\":2}}}::\n",
            "All is well.\n"
        ))
        .unwrap();
        assert_eq!(
            Value::Object(captured.outputs),
            json!({"a": 1, "b": {"y": 2}})
        );
        assert_eq!(captured.metrics.len(), 1);
        assert_eq!(
            captured.logs,
            [json!({"level": "INFO", "message": "hello"})]
        );
        assert_eq!(captured.text, ["All is well."]);
    }

    #[test]
    fn what_kestra_would_drop_in_silence_is_an_error() {
        let good = "::{\"outputs\":{\"a\":1}}::";
        assert!(read(&format!("{good}\ndone\n")).is_ok());
        for (stdout, reason) in [
            ("done\n".to_owned(), "no outputs line"),
            (format!("{good}\n"), "the last line is a marker line"),
            (format!("x {good}\ndone\n"), "before or after the marker"),
            (format!("{good} x\ndone\n"), "before or after the marker"),
            (
                "::{\"outputs\":{\"a\":}}::\ndone\n".to_owned(),
                "expected value",
            ),
            (
                "::{\"outputs\":{\"a\":\"é\"}}::\ndone\n".to_owned(),
                "not plain ASCII",
            ),
            (
                "::{\"outputs\":[1]}::\ndone\n".to_owned(),
                "not of its type",
            ),
            ("::{\"assets\":[]}::\ndone\n".to_owned(), "none of outputs"),
            (
                format!("{good}\n::{{\"metrics\":[{{}}]}}::\ndone\n"),
                "no value",
            ),
        ] {
            let error = format!("{:#}", read(&stdout).unwrap_err());
            assert!(error.contains(reason), "{stdout:?}: {error}");
        }
    }
}
