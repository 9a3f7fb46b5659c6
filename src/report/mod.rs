//! Wire types: everything that the tool puts out, and nothing that computes it.
//!
//! Counts, bytes and milliseconds are integers; percentages and latencies are rounded to two
//! decimals; a fact that cannot be had is an absent key and named in `unknown`.

pub mod approval;
pub mod audit;
pub mod baseline;
pub mod compact;
pub mod failure;
pub mod metrics;
pub mod outcome;
pub mod plan;
pub mod state;
pub mod table;
pub mod text;
pub mod verify;
pub mod writers;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fact that could not be had, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unknown {
    /// Name of the absent fact.
    pub fact: String,
    /// Why it is absent.
    pub reason: String,
}

impl Unknown {
    /// Names an absent fact.
    pub fn new(fact: &str, reason: impl Into<String>) -> Self {
        Self {
            fact: fact.to_owned(),
            reason: reason.into(),
        }
    }
}

/// A list that was cut so that the outputs stay small; the report file has all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Truncation {
    /// JSON pointer to the list in the outputs.
    pub list: String,
    /// Items that were kept, the first ones.
    pub kept: u64,
    /// Items that there were.
    pub total: u64,
}

/// Rounds to two decimals, for percentages and milliseconds.
#[must_use]
pub fn round2(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// `part` of `whole` in percent, rounded to two decimals; 0 for an empty whole.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "two decimals of a percentage need far fewer than 52 bits"
)]
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        round2(part as f64 * 100.0 / whole as f64)
    }
}
