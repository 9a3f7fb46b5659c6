//! Everything that is printed, made as text first and written in one go.
//!
//! - [`kestra`]: marker lines, by way of [`ascii`] and [`cut`].
//! - [`text`]: a report for people.
//! - [`json`]: the full report, and [`report_file`]: the file that holds it.
//! - [`metrics`]: what of the outputs becomes a metric.

pub mod ascii;
pub mod cut;
pub mod json;
pub mod kestra;
pub mod metrics;
pub mod report_file;
pub mod text;

use crate::redact::Secrets;
use crate::report::metrics::Metric;
use crate::report::outcome::Outcome;
use crate::report::text::{SENTENCE_LENGTH, shorten};

/// How a run prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Kestra's marker lines.
    #[default]
    Kestra,
    /// A report for people.
    Text,
    /// The full report as JSON.
    Json,
}

/// What a run prints whose spec holds no secrets.
#[must_use]
pub fn render(format: Format, outcome: &Outcome, metrics: &[Metric]) -> String {
    render_without(&Secrets::default(), format, outcome, metrics)
}

/// What a run prints, without the secrets of its spec.
#[must_use]
pub fn render_without(
    secrets: &Secrets,
    format: Format,
    outcome: &Outcome,
    metrics: &[Metric],
) -> String {
    match format {
        Format::Kestra => kestra_lines(secrets, outcome, metrics),
        Format::Text => secrets.mask(&text::report(outcome)),
        Format::Json => json::report(outcome, secrets),
    }
}

/// Secrets are masked before a text is escaped or shortened: half a secret is found by nobody.
fn kestra_lines(secrets: &Secrets, outcome: &Outcome, metrics: &[Metric]) -> String {
    let mut out = String::new();
    for warning in outcome.warnings() {
        let warning = shorten(&secrets.mask(warning), SENTENCE_LENGTH);
        out += &kestra::log(kestra::Level::Warn, &warning);
    }
    if let Some(error) = outcome.error() {
        let sentence = secrets.mask(&text::error_sentence(error));
        out += &kestra::log(kestra::Level::Error, &sentence);
    }
    out += &secrets.mask_json(&kestra::metrics(metrics));
    // A Serialize of ours has nothing that could fail; if it does, the flow still gets a reason.
    let json = serde_json::to_string(outcome).unwrap_or_else(|_| "{}".to_owned());
    let (line, fits) = kestra::outputs(&secrets.mask_json(&json));
    if !fits {
        out += &kestra::log(
            kestra::Level::Warn,
            &format!(
                "The outputs take {} KiB, most of it the state; Kestra is slow with long lines and fails above 1 MiB. Keep one KV key for each table.",
                line.len() / 1024
            ),
        );
    }
    out += &line;
    out + &kestra::last(&secrets.mask(&text::headline(outcome)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::{DateTime, Utc};
    use serde_json::Value;

    use super::*;
    use crate::report::state::StateSnapshot;
    use crate::report::table::TableId;
    use crate::report::verify::{AuditRecord, CheckId, CheckRow, VerifyOutputs};
    use crate::schemas::SchemaName;
    use crate::spec::Step;

    fn verified(checks: usize) -> Outcome {
        let table = TableId {
            key: "/data/db/docs".to_owned(),
            db_uri: "/data/db".to_owned(),
            table_name: "docs".to_owned(),
        };
        let state = serde_json::value::RawValue::from_string("{ \"n\": 1.0 }".to_owned());
        let check = |n| CheckRow::judged(CheckId::Files, "ü", "x", true).on(format!("file {n}"));
        Outcome::Verify(Box::new(VerifyOutputs {
            step: Step::Verify,
            level: crate::spec::verify::Level::Standard,
            verification_passed: true,
            summary: "All is well.\n::{}::".to_owned(),
            post_fragment_count: 1,
            post_tombstone_count: 0,
            canary_latency_ms: Some(1.25),
            canary_latency_before_ms: None,
            contents_read: None,
            checks: (0..checks).map(check).collect(),
            concurrent_commits: Vec::new(),
            audit_record: AuditRecord {
                table: table.clone(),
                verified_at: DateTime::<Utc>::UNIX_EPOCH,
                execution_id: "manual".to_owned(),
                level: crate::spec::verify::Level::Standard,
                verification_passed: true,
                version: 3,
                pre_fragments: None,
                post_fragments: 1,
                pre_tombstones: None,
                post_tombstones: 0,
                failed_checks: Vec::new(),
            },
            table,
            new_state_snapshot: StateSnapshot {
                entries: vec![("k".to_owned(), state.unwrap())],
            },
            state_reset: false,
            warnings: vec!["careful".to_owned()],
            truncated: Vec::new(),
        }))
    }

    #[test]
    fn warnings_and_the_last_line_have_a_limit() {
        let mut outcome = verified(0);
        if let Outcome::Verify(outputs) = &mut outcome {
            outputs.warnings = vec!["w".repeat(5000)];
            outputs.summary = "s".repeat(5000);
        }
        let lines = render(Format::Kestra, &outcome, &[]);
        let lines: Vec<&str> = lines.lines().collect();
        assert!(lines[0].len() < 1100 && lines[0].contains("ww\\u2026"));
        assert!(lines[2].chars().count() < 1100 && lines[2].ends_with("ss…"));
    }

    #[test]
    fn no_format_prints_a_secret_of_the_spec() {
        let marker = "marker/with\"quote";
        let spec = serde_json::json!({"storage_options": {"secret_key": marker}});
        let secrets = Secrets::of_spec(spec.to_string().as_bytes());
        let mut outcome = verified(0);
        if let Outcome::Verify(outputs) = &mut outcome {
            outputs.warnings = vec![format!("engine said {marker}")];
            outputs.summary = format!("{}{marker}", "s".repeat(990));
            outputs.table.key = format!("s3://{marker}/t");
        }
        let metrics = metrics::of(&outcome, Duration::ZERO);
        for format in [Format::Kestra, Format::Text, Format::Json] {
            let text = render_without(&secrets, format, &outcome, &metrics);
            assert!(!text.contains("marker"), "{text}");
        }
    }

    fn outputs_in(lines: &str) -> (usize, Value) {
        let line = lines
            .lines()
            .find(|line| line.starts_with("::{\"outputs\":"))
            .unwrap();
        let json = &line["::{\"outputs\":".len()..line.len() - "}::".len()];
        (line.len(), serde_json::from_str(json).unwrap())
    }

    #[test]
    fn prints_logs_metrics_outputs_and_a_last_line_in_this_order() {
        let outcome = verified(0);
        let metrics = metrics::of(&outcome, Duration::from_millis(1500));
        let lines = render(Format::Kestra, &outcome, &metrics);
        let tags = r#""tags":{"step":"verify","table":"/data/db/docs"}"#;
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(
            lines[0],
            r#"::{"logs":[{"level":"WARN","message":"careful"}]}::"#
        );
        assert_eq!(
            lines[1],
            format!(
                r#"::{{"metrics":[{{"name":"duration","type":"timer","value":1.5,{tags}}},{{"name":"passed","type":"gauge","value":1.0,{tags}}},{{"name":"canary_latency","type":"timer","value":0.00125,{tags}}}]}}::"#
            )
        );
        assert!(lines[2].contains(r#""new_state_snapshot":{"k":{"n":1.0}}"#));
        assert_eq!(lines[3], "lancedb-guard: All is well. ::{}::");
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn outputs_that_were_cut_satisfy_their_schema_and_name_the_list() {
        let outcome = verified(5000);
        let (length, outputs) = outputs_in(&render(Format::Kestra, &outcome, &[]));
        assert!(length <= cut::MAX_LINE);
        let kept = outputs["checks"].as_array().unwrap().len();
        assert_eq!(
            outputs["truncated"],
            serde_json::json!([{"list": "/checks", "kept": kept, "total": 5000}])
        );
        let schema = SchemaName::VerifyOutputs.schema();
        assert!(jsonschema::draft202012::is_valid(&schema, &outputs));
        let report: Value = serde_json::from_str(&render(Format::Json, &outcome, &[])).unwrap();
        assert_eq!(report["checks"].as_array().unwrap().len(), 5000);
        assert!(jsonschema::draft202012::is_valid(&schema, &report));
    }
}
