//! The plan: what a compact step would do, as the audit proposes it and compact follows it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a plan has no compaction task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoTaskReason {
    /// The table has no fragments.
    EmptyTable,
    /// Every fragment is at its target, or has no neighbour to be merged with.
    AtTargetSize,
    /// There are deleted rows, but in no fragment more than the deletion threshold.
    BelowDeletionThreshold,
    /// Neighbours are covered by different segments of an index; merging the segments helps.
    IndexSegments,
    /// Indexed and unindexed fragments alternate; bringing the indices up to date helps.
    MixedIndexCoverage,
    /// Index coverage keeps fragments apart, and the spec switches the merge off.
    MergeSwitchedOff,
    /// Index coverage keeps fragments apart, and the index is of a kind that cannot be merged.
    IndexNotMergeable,
    /// There is a task, but a budget of the spec does not even let the first one start.
    BudgetBelowFirstTask,
}

/// What is done to one index before compaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedIndexMerge {
    /// Name of the index.
    pub name: String,
    /// Segments that become one.
    pub segments: u64,
    /// Rows that become covered.
    pub rows_unindexed: u64,
}

/// The compaction part of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedCompaction {
    /// Tasks, each of which rewrites neighbouring fragments.
    pub tasks: u64,
    /// Why there is no task; absent where there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_task_reason: Option<NoTaskReason>,
    /// Whether the tasks need the index merges first.
    pub after_index_merge: bool,
    /// Rows that a fragment should have: `target_rows_per_fragment`, or fewer where so many
    /// would take more than `target_bytes_per_fragment`.
    pub target_rows: u64,
    /// Fragments that are rewritten.
    pub fragments_to_rewrite: u64,
    /// Fragments of the table afterwards.
    pub fragments_expected: u64,
    /// Live rows that are rewritten.
    pub rows_to_rewrite: u64,
    /// Deleted rows that go.
    pub tombstones_to_clear: u64,
    /// Data bytes that are read and written again; absent where a size is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_to_rewrite: Option<u64>,
}

/// What a prune would do or did, as lance counts it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PruneCounts {
    /// Versions.
    pub versions: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Data files.
    pub data_files: u64,
    /// Deletion files.
    pub deletion_files: u64,
    /// Index files.
    pub index_files: u64,
    /// Transaction files.
    pub transaction_files: u64,
}

/// The prune part of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedPrune {
    /// Versions that can go now.
    pub versions: u64,
    /// Versions that are stale but held back by tags or branches.
    pub versions_pinned: u64,
    /// Versions that go later, when the retention has passed.
    pub versions_later: u64,
    /// What lance says a prune would delete now; absent where it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<PruneCounts>,
    /// Bytes that the rewritten fragments free once the retention has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_freed_later: Option<u64>,
}

/// What a compact step would do to the version that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Identifies the plan: the same table version and options give the same id.
    pub plan_id: String,
    /// The version that was planned on.
    pub read_version: u64,
    /// Index merges, by name.
    pub index_merges: Vec<PlannedIndexMerge>,
    /// The compaction.
    pub compaction: PlannedCompaction,
    /// Indices that need to catch up afterwards, by name.
    pub index_catch_ups: Vec<String>,
    /// The prune.
    pub prune: PlannedPrune,
    /// Free bytes that the rewrite needs until the next prune; absent where a size is not
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes_needed: Option<u64>,
}

impl Plan {
    /// Whether following the plan commits a version. A prune commits none.
    #[must_use]
    pub fn commits(&self) -> bool {
        !self.index_merges.is_empty()
            || self.compaction.tasks > 0
            || !self.index_catch_ups.is_empty()
    }
}
