//! The spec of the verify step.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;
use super::tuning::{CanaryTuning, ContentsTuning};
use crate::report::baseline::Baseline;
use crate::report::state::StateInput;

/// How deep verify looks.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Manifests and listings: schema, rows, fragments, tombstones, files, indices.
    Quick,
    /// That, and a sample of the contents, and searches.
    #[default]
    Standard,
    /// That, and every row: each one that compaction rewrote is compared, each other one read.
    Full,
}

/// Verify: was the compaction right, and is the table healthy now? Changes nothing.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifySpec {
    /// Version of the spec format.
    #[schemars(range(min = 1, max = 1))]
    pub spec_version: u32,
    /// The step, `verify`.
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
    /// The execution that asks.
    #[serde(default = "super::manual")]
    #[schemars(length(min = 1, max = 512))]
    pub execution_id: String,
    /// The time at which to judge (RFC 3339); the real clock if absent.
    #[serde(default)]
    pub evaluated_at: Option<DateTime<Utc>>,
    /// Fragments that the audit found before compaction.
    #[serde(default)]
    pub pre_fragments: Option<u64>,
    /// Deleted rows that the audit found before compaction.
    #[serde(default)]
    pub pre_tombstones: Option<u64>,
    /// What compact put out as `baseline`; without it the table is checked as it is now.
    #[serde(default)]
    pub baseline: Option<Baseline>,
    /// How deep to look: `quick`, `standard` or `full`.
    #[serde(default)]
    pub level: Level,
    /// How contents are compared, at the levels `standard` and `full`.
    #[serde(default)]
    pub contents: ContentsTuning,
    /// How the searches work that prove the table still answers.
    #[serde(default)]
    pub canary: CanaryTuning,
    /// The state that the audit put out, as it is: an object, a JSON string, null or absent.
    #[serde(default)]
    pub previous_state: StateInput,
}
