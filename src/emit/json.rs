//! The full report as pretty JSON, uncut.

use crate::report::outcome::Outcome;

/// The report.
#[must_use]
pub fn report(outcome: &Outcome) -> String {
    let text = serde_json::to_string_pretty(outcome)
        .unwrap_or_else(|error| format!("{{\"error\":\"the report cannot be written: {error}\"}}"));
    text + "\n"
}
