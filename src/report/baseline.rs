//! What compact tells verify.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counts of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VersionCounts {
    /// The version.
    pub version: u64,
    /// Fragments.
    pub fragments: u64,
    /// Live rows.
    pub rows: u64,
    /// Deleted physical rows.
    pub tombstones: u64,
}

/// The table before and after a compact step, for verify to compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// The version that the step began with.
    pub before: VersionCounts,
    /// The version that the step ended with; the same as `before` if it changed nothing.
    pub after: VersionCounts,
    /// Fragments that the plan promised.
    pub fragments_expected: u64,
    /// Deleted rows that the plan promised to clear.
    pub tombstones_to_clear: u64,
    /// Fragments that were rewritten.
    pub fragments_removed: u64,
    /// Fragments that were written.
    pub fragments_added: u64,
    /// The versions that the step itself committed, oldest first.
    pub committed_versions: Vec<u64>,
    /// Names of the indices that existed before, and so must exist after.
    pub index_names: Vec<String>,
    /// Names of the indices that the step left uncovered on purpose or could not bring up to
    /// date, and said so.
    #[serde(default)]
    pub indices_left_behind: Vec<String>,
}
