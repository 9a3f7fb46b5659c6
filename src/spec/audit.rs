//! The spec of the audit step.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Step;
use super::tuning::{CompactionTuning, IndexTuning};
use crate::report::state::StateInput;

/// When to ask for the exact effect of a prune, which costs a read of every manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PruneEstimate {
    /// Only where remediation is needed, so that an operator will read the plan.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Audit: facts, decision and plan for one table; changes nothing.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditSpec {
    /// Version of the spec format.
    #[schemars(range(min = 1, max = 1))]
    pub spec_version: u32,
    /// The step, `audit`.
    pub step: Step,
    /// Where the database is: a local path, or `file://`, `s3://`, `gs://`, `az://`.
    #[schemars(length(min = 1, max = 4096))]
    pub db_uri: String,
    /// Name of the table in the database.
    #[schemars(length(min = 1, max = 255))]
    pub table_name: String,
    /// Options of the object store, as LanceDB names them.
    #[serde(default)]
    pub storage_options: BTreeMap<String, String>,
    /// The execution that asks. The same execution counts once in the trend.
    #[serde(default = "super::manual")]
    #[schemars(length(min = 1, max = 512))]
    pub execution_id: String,
    /// The time at which to judge (RFC 3339); the real clock if absent.
    #[serde(default)]
    pub evaluated_at: Option<DateTime<Utc>>,
    /// Fragments at which a table is bloated.
    #[serde(default = "AuditSpec::default_fragments")]
    #[schemars(range(min = 2, max = 1_000_000_000))]
    pub fragment_count_threshold: u64,
    /// Fragments at which a table is critical at once.
    #[serde(default = "AuditSpec::default_critical_fragments")]
    #[schemars(range(min = 2, max = 1_000_000_000))]
    pub critical_fragment_threshold: u64,
    /// Deleted rows, in percent of physical rows, at which a table is bloated at once.
    #[serde(default = "AuditSpec::default_tombstone_percent")]
    #[schemars(range(min = 1, max = 90))]
    pub tombstone_percent_threshold: f64,
    /// For how many hours a superseded version stays readable. The floor is one hour.
    #[serde(default = "AuditSpec::default_retention_hours")]
    #[schemars(range(max = 876_000))]
    pub stale_version_retention_hours: f64,
    /// Prunable versions at which a table is bloated.
    #[serde(default = "AuditSpec::default_stale_versions")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub stale_version_threshold: u64,
    /// Rows that an index does not cover, in percent, at which a table is bloated.
    #[serde(default = "AuditSpec::default_unindexed_percent")]
    #[schemars(range(min = 1, max = 100))]
    pub unindexed_percent_threshold: f64,
    /// Rows that a fragment should have.
    #[serde(default = "super::tuning::default_target_rows")]
    #[schemars(range(min = 1000, max = 1_000_000_000))]
    pub target_rows_per_fragment: u64,
    /// Data bytes that a fragment should have at most, for wide rows: the row target is the
    /// smaller of `target_rows_per_fragment` and the largest power of two of rows that fit, by
    /// the bytes of a row that the manifest records. Give audit and compact the same. Absent:
    /// rows alone decide.
    #[serde(default)]
    #[schemars(range(min = 1_048_576, max = 1_125_899_906_842_624_u64))]
    pub target_bytes_per_fragment: Option<u64>,
    /// Audits in a row that must see bloat before it counts.
    #[serde(default = "AuditSpec::default_consecutive_runs")]
    #[schemars(range(min = 1, max = 1000))]
    pub min_consecutive_runs: u64,
    /// When to ask for the exact effect of a prune.
    #[serde(default)]
    pub prune_estimate: PruneEstimate,
    /// Seconds after which the prune estimate is given up and named in `unknown`.
    #[serde(default = "AuditSpec::default_estimate_seconds")]
    #[schemars(range(min = 1, max = 3600))]
    pub prune_estimate_seconds: u64,
    /// By how much, in percent, compact may exceed the plan that this audit puts out for
    /// approval.
    #[serde(default = "crate::report::approval::default_allowance_percent")]
    #[schemars(range(min = 0, max = 1000))]
    pub allowance_percent: u64,
    /// How compaction would work; the same object that the compact step takes.
    #[serde(default)]
    pub compaction: CompactionTuning,
    /// What would be done to indices; the same object that the compact step takes.
    #[serde(default)]
    pub indices: IndexTuning,
    /// The state that the last audit put out, as it is: an object, a JSON string, null or absent.
    #[serde(default)]
    pub previous_state: StateInput,
}

impl AuditSpec {
    const fn default_fragments() -> u64 {
        20
    }
    const fn default_critical_fragments() -> u64 {
        100
    }
    const fn default_tombstone_percent() -> f64 {
        15.0
    }
    /// At how many fragments a table is bloated and critical where the spec does not say.
    pub(super) const fn default_fragment_thresholds() -> (u64, u64) {
        (
            Self::default_fragments(),
            Self::default_critical_fragments(),
        )
    }
    pub(super) const fn default_retention_hours() -> f64 {
        24.0
    }
    const fn default_stale_versions() -> u64 {
        100
    }
    const fn default_unindexed_percent() -> f64 {
        20.0
    }
    const fn default_consecutive_runs() -> u64 {
        2
    }
    const fn default_estimate_seconds() -> u64 {
        30
    }
}
