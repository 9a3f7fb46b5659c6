//! The full report as pretty JSON, uncut.

use crate::redact::Secrets;
use crate::report::outcome::Outcome;

/// The report, without the secrets of its spec.
#[must_use]
pub fn report(outcome: &Outcome, secrets: &Secrets) -> String {
    let text = serde_json::to_string_pretty(outcome)
        .unwrap_or_else(|error| format!("{{\"error\":\"the report cannot be written: {error}\"}}"));
    secrets.mask_json(&text) + "\n"
}
