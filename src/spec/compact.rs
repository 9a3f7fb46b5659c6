//! The spec of the compact step.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Step;
use super::tuning::{CompactionTuning, IndexTuning, PruneTuning};
use crate::report::approval::Approval;

/// Compact: index merge, compaction, index catch-up, checks, prune.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompactSpec {
    /// Version of the spec format.
    #[schemars(range(min = 1, max = 1))]
    pub spec_version: u32,
    /// The step, `compact`.
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
    /// The execution that asks; stored with every version that the step commits.
    #[serde(default = "super::manual")]
    #[schemars(length(min = 1, max = 512))]
    pub execution_id: String,
    /// The time from which the retention counts back (RFC 3339); the real clock if absent.
    #[serde(default)]
    pub evaluated_at: Option<DateTime<Utc>>,
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
    /// For how many hours a superseded version stays readable. The floor is one hour.
    #[serde(default = "super::AuditSpec::default_retention_hours")]
    #[schemars(range(max = 876_000))]
    pub stale_version_retention_hours: f64,
    /// Plan everything and change nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// The `approval` that the audit put out, as it is. Absent: nobody has to approve.
    #[serde(default)]
    pub approval: Option<Approval>,
    /// Data bytes that are rewritten at most; the rest is left for the next run. A fragment
    /// whose size is not recorded does not fit. Absent: no limit.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_bytes_to_rewrite: Option<u64>,
    /// Versions that are deleted at most, the oldest first. Absent: no limit.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_versions_to_prune: Option<u64>,
    /// Seconds after which nothing more is started. What has begun is finished, so give the
    /// task a longer timeout. Absent: no limit.
    #[serde(default)]
    #[schemars(range(min = 1, max = 2_592_000))]
    pub time_budget_seconds: Option<u64>,
    /// Minutes for which no other writer may have committed, or the step refuses
    /// (`writers_active`) and changes nothing. It looks once, before it begins; commits of this
    /// tool do not count. 0: it does not look.
    #[serde(default)]
    #[schemars(range(min = 0, max = 10_080))]
    pub quiet_minutes: u64,
    /// How often a lost race against another writer is planned again.
    #[serde(default = "CompactSpec::default_conflict_retries")]
    #[schemars(range(min = 0, max = 100))]
    pub conflict_retries: u32,
    /// How compaction works.
    #[serde(default)]
    pub compaction: CompactionTuning,
    /// What is done to indices.
    #[serde(default)]
    pub indices: IndexTuning,
    /// How old versions are deleted.
    #[serde(default)]
    pub prune: PruneTuning,
}

impl CompactSpec {
    const fn default_conflict_retries() -> u32 {
        5
    }
}
