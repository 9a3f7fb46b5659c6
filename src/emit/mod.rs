//! Everything that is printed, made as text first and written in one go.
//!
//! - [`kestra`]: marker lines, by way of [`ascii`] and [`cut`].
//! - [`text`]: a report for people.
//! - [`json`]: the full report.
//! - [`metrics`]: what of the outputs becomes a metric.

pub mod ascii;
pub mod cut;
pub mod json;
pub mod kestra;
pub mod metrics;
pub mod text;

use crate::report::metrics::Metric;
use crate::report::outcome::Outcome;

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

/// What a run prints.
#[must_use]
pub fn render(format: Format, outcome: &Outcome, metrics: &[Metric]) -> String {
    match format {
        Format::Kestra => kestra_lines(outcome, metrics),
        Format::Text => text::report(outcome),
        Format::Json => json::report(outcome),
    }
}

fn kestra_lines(outcome: &Outcome, metrics: &[Metric]) -> String {
    let mut out = String::new();
    for warning in outcome.warnings() {
        out += &kestra::log(kestra::Level::Warn, warning);
    }
    if let Some(error) = outcome.error() {
        out += &kestra::log(kestra::Level::Error, &text::error_sentence(error));
    }
    out += &kestra::metrics(metrics);
    // A Serialize of ours has nothing that could fail; if it does, the flow still gets a reason.
    let json = serde_json::to_string(outcome).unwrap_or_else(|_| "{}".to_owned());
    let (line, fits) = kestra::outputs(&json);
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
    out + &kestra::last(&text::headline(outcome))
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
            verification_passed: true,
            summary: "All is well.\n::{}::".to_owned(),
            post_fragment_count: 1,
            post_tombstone_count: 0,
            canary_latency_ms: Some(1.25),
            checks: (0..checks).map(check).collect(),
            concurrent_commits: Vec::new(),
            audit_record: AuditRecord {
                table: table.clone(),
                verified_at: DateTime::<Utc>::UNIX_EPOCH,
                execution_id: "manual".to_owned(),
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
