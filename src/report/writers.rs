//! What other writers committed lately.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What other writers committed lately, from the newest versions. What this tool committed is
/// left out, and so are reservations of fragment ids, which change nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriterActivity {
    /// The newest versions that were looked at for what made them.
    pub versions_examined: u64,
    /// Versions that were committed in the last hour, by whomever.
    pub versions_last_hour: u64,
    /// Commits of other writers in the last hour among the versions looked at: at least so many,
    /// and no more where `versions_last_hour` is not above `versions_examined`.
    pub commits_last_hour: u64,
    /// Seconds since the newest commit of another writer; absent where none is among the versions
    /// looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_commit_age_seconds: Option<u64>,
    /// Commits of the last hour by operation, as lance names it, among the versions looked at.
    pub operations: BTreeMap<String, u64>,
    /// Those among them that a compaction loses a race to where both touch the same fragments.
    pub conflicting: u64,
    /// Seconds from one of those to the next, on average; absent for fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict_interval_seconds: Option<u64>,
}
