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
