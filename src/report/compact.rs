//! Outputs of the compact step.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approval::ApprovalStatus;
use super::baseline::Baseline;
use super::plan::{NoTaskReason, Plan, PruneCounts};
use super::table::{RefFacts, TableId};
use super::{Truncation, Unknown};
use crate::error::GuardError;
use crate::spec::Step;

/// How the whole step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RemediationStatus {
    /// There was nothing to do, and nothing was changed.
    NothingToDo,
    /// A dry run: everything was planned, nothing was changed.
    DryRun,
    /// Everything planned was done.
    Success,
    /// Some of it was done; the phases say what was not.
    Partial,
    /// A phase failed before anything was committed.
    Failed,
}

/// How one phase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PhaseStatus {
    /// It did what was planned.
    Done,
    /// There was nothing for it to do.
    NothingToDo,
    /// A dry run: it was planned only.
    Planned,
    /// The spec switched it off.
    SwitchedOff,
    /// It had something to do, and was left out because a budget was used up.
    BudgetReached,
    /// It was left out because an earlier phase failed.
    Skipped,
    /// A signal cut it short.
    Stopped,
    /// It failed.
    Failed,
}

/// What limits a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    /// Data bytes that are rewritten.
    MaxBytesToRewrite,
    /// Versions that are deleted.
    MaxVersionsToPrune,
    /// Seconds after which nothing is started.
    TimeBudgetSeconds,
    /// What was approved. Everything in it was done; the row target rose with that, and so
    /// there is more to merge, which a new approval may cover.
    Approval,
}

/// What a run left for the next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remaining {
    /// Compaction tasks.
    pub tasks: u64,
    /// Fragments that they would replace.
    pub fragments: u64,
    /// Data bytes that they would rewrite; absent where a size is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Names of the indices that would be merged or brought up to date.
    pub indices: Vec<String>,
    /// Versions that would be deleted.
    pub versions: u64,
    /// The budgets that were used up.
    pub reasons: Vec<BudgetKind>,
}

/// A race that the run lost against another writer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LostRace {
    /// The version that the other writer committed.
    pub version: u64,
    /// Its operation, as lance names it; `Unknown` where it cannot be told any more.
    pub operation: String,
}

/// What an index phase planned or did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IndexWork {
    /// Names of the indices.
    pub indices: Vec<String>,
    /// Rows that no index segment covered before and one covers after.
    pub rows_covered: u64,
    /// Segments fewer than before.
    pub segments_merged: u64,
}

/// An index phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IndexPhase {
    /// How it ended.
    pub status: PhaseStatus,
    /// What was planned.
    pub planned: IndexWork,
    /// What was done.
    pub actual: IndexWork,
    /// Indices that could not be brought up to date, and why.
    pub left_behind: Vec<IndexLeftBehind>,
    /// How long it took.
    pub duration_ms: u64,
}

/// An index that stays behind, and why that is no failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IndexLeftBehind {
    /// Name of the index.
    pub name: String,
    /// Why it stays behind.
    pub reason: String,
}

/// What compaction planned or did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompactionWork {
    /// Tasks.
    pub tasks: u64,
    /// Fragments that are replaced.
    pub fragments_removed: u64,
    /// Fragments that replace them.
    pub fragments_added: u64,
    /// Deleted rows that go.
    pub tombstones_cleared: u64,
    /// Fragments of the table afterwards.
    pub fragments_after: u64,
}

/// The compaction phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompactionStats {
    /// How it ended.
    pub status: PhaseStatus,
    /// What was planned on the version that it worked on.
    pub planned: CompactionWork,
    /// What was done.
    pub actual: CompactionWork,
    /// Why there was no task; absent where there were some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_task_reason: Option<NoTaskReason>,
    /// Batches that were committed, each as versions of their own.
    pub batches: u64,
    /// Races lost against other writers, each planned again.
    pub conflicts: u64,
    /// How long it took.
    pub duration_ms: u64,
}

/// The checks between compaction and prune.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChecksPhase {
    /// How they ended.
    pub status: PhaseStatus,
    /// Checks to be made.
    pub planned: u64,
    /// Checks that hold, or could not be applied to this table.
    pub actual: u64,
    /// What was found wrong; empty if all is right.
    pub findings: Vec<String>,
    /// How long they took.
    pub duration_ms: u64,
}

/// The prune phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CleanupStats {
    /// How it ended.
    pub status: PhaseStatus,
    /// What lance said it would delete.
    pub planned: PruneCounts,
    /// What it deleted.
    pub actual: PruneCounts,
    /// Files that could not be deleted; the next prune finds them again.
    pub failed_deletes: u64,
    /// Versions superseded before this time were stale.
    pub cutoff: DateTime<Utc>,
    /// The oldest version that the retention keeps.
    pub oldest_kept: u64,
    /// Versions left afterwards.
    pub versions_left: u64,
    /// Tags and branches that were kept.
    pub kept_refs: RefFacts,
    /// Tags and branches that somebody created on a version while it was being deleted: such a
    /// tag refers to nothing, and such a branch may lack files. Absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_refs: Option<RefFacts>,
    /// Why nothing was pruned, or less than one could expect; absent where all is as planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
}

/// What the compact step puts out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompactOutputs {
    /// The step.
    pub step: Step,
    /// The table.
    pub table: TableId,
    /// When the retention was counted from.
    pub evaluated_at: DateTime<Utc>,
    /// The execution that asked.
    pub execution_id: String,
    /// Whether nothing was to be changed.
    pub dry_run: bool,
    /// Whether the step was bound to what somebody approved.
    pub approval_status: ApprovalStatus,
    /// How the step ended.
    pub remediation_status: RemediationStatus,
    /// Whether any version was committed or any file deleted.
    pub table_changed: bool,
    /// All of it in a few sentences.
    pub summary: String,
    /// The plan on the version that was found.
    pub plan: Plan,
    /// Index segments merged before compaction.
    pub index_merge: IndexPhase,
    /// The compaction.
    pub compaction_stats: CompactionStats,
    /// Indices brought up to date after compaction.
    pub index_catch_up: IndexPhase,
    /// The checks before the prune.
    pub checks: ChecksPhase,
    /// The prune.
    pub cleanup_stats: CleanupStats,
    /// Every race that was lost against another writer, in whichever phase.
    pub conflicts: Vec<LostRace>,
    /// What was left for the next run; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<Remaining>,
    /// The table before and after, for verify.
    pub baseline: Baseline,
    /// What an operator should know.
    pub warnings: Vec<String>,
    /// Facts that could not be had.
    pub unknown: Vec<Unknown>,
    /// The failure of the phase that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<GuardError>,
    /// Lists that were cut so that the outputs stay small; absent where all is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub truncated: Vec<Truncation>,
}
