//! Outputs of the verify step.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Truncation;
use super::state::StateSnapshot;
use super::table::TableId;
use crate::spec::Step;
use crate::spec::verify::Level;

/// The checks, by name.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CheckId {
    /// The schema after compaction is the schema before.
    Schema,
    /// The live rows after compaction are the live rows before, but for other writers' commits.
    Rows,
    /// The fragments after compaction are what the plan promised.
    Fragments,
    /// The deleted rows that the plan promised to clear are cleared.
    Tombstones,
    /// Every file that the current version refers to is there, with its recorded size.
    Files,
    /// Every index that existed before exists now.
    IndicesPresent,
    /// Every index covers every fragment.
    IndicesCovering,
    /// The rows that compaction rewrote hold what they held before, and every row can be read.
    Contents,
    /// Keys looked up through a scalar index are the rows that a scan finds, each once.
    ScalarIndices,
    /// Stored vectors, or rows of a table without vectors, are found again.
    Canary,
    /// The recall of a vector index is not lower than before by more than is allowed.
    Recall,
}

impl CheckId {
    /// The name as outputs spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Rows => "rows",
            Self::Fragments => "fragments",
            Self::Tombstones => "tombstones",
            Self::Files => "files",
            Self::IndicesPresent => "indices_present",
            Self::IndicesCovering => "indices_covering",
            Self::Contents => "contents",
            Self::ScalarIndices => "scalar_indices",
            Self::Canary => "canary",
            Self::Recall => "recall",
        }
    }
}

/// How one check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// It holds.
    Passed,
    /// It does not hold.
    Failed,
    /// It could not be applied; the reason stands in `found`.
    Skipped,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckRow {
    /// Which check.
    pub check: CheckId,
    /// What it was applied to, such as a column or an index; absent for the whole table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
    /// How it ended.
    pub status: CheckStatus,
    /// Whether it does not stand against the verification: true unless it failed.
    pub passed: bool,
}

impl CheckRow {
    /// A check that holds if `passed`.
    pub fn judged(
        check: CheckId,
        expected: impl Into<String>,
        found: impl Into<String>,
        passed: bool,
    ) -> Self {
        Self {
            check,
            subject: None,
            expected: expected.into(),
            found: found.into(),
            status: if passed {
                CheckStatus::Passed
            } else {
                CheckStatus::Failed
            },
            passed,
        }
    }

    /// A check that could not be applied.
    pub fn skipped(check: CheckId, expected: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            check,
            subject: None,
            expected: expected.into(),
            found: reason.into(),
            status: CheckStatus::Skipped,
            passed: true,
        }
    }

    /// Says what the check was applied to.
    #[must_use]
    pub fn on(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }
}

/// A commit of another writer between the two versions that verify compares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConcurrentCommit {
    /// The version that it made.
    pub version: u64,
    /// Its operation, as lance names it.
    pub operation: String,
}

/// How much the check of the contents read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContentsRead {
    /// Rows that were hashed, those of both versions counted.
    pub rows: u64,
    /// Bytes that were hashed, as values and not as stored.
    pub bytes: u64,
}

/// What a flow keeps of a verification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditRecord {
    /// The table.
    pub table: TableId,
    /// When it was verified.
    pub verified_at: DateTime<Utc>,
    /// The execution that asked.
    pub execution_id: String,
    /// How deep it looked.
    pub level: Level,
    /// Whether every check holds.
    pub verification_passed: bool,
    /// The version that was verified.
    pub version: u64,
    /// Fragments before, as far as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_fragments: Option<u64>,
    /// Fragments now.
    pub post_fragments: u64,
    /// Deleted rows before, as far as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_tombstones: Option<u64>,
    /// Deleted rows now.
    pub post_tombstones: u64,
    /// Names of the checks that do not hold.
    pub failed_checks: Vec<CheckId>,
}

/// What the verify step puts out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyOutputs {
    /// The step.
    pub step: Step,
    /// The table.
    pub table: TableId,
    /// How deep it looked.
    pub level: Level,
    /// Whether every check holds.
    pub verification_passed: bool,
    /// All of it in a few sentences.
    pub summary: String,
    /// Fragments now.
    pub post_fragment_count: u64,
    /// Deleted rows now.
    pub post_tombstone_count: u64,
    /// Median time of a canary search in milliseconds; absent where none ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary_latency_ms: Option<f64>,
    /// Median time of the same kind of search in the version before compaction, in
    /// milliseconds; absent where none ran. Never judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary_latency_before_ms: Option<f64>,
    /// What the check of the contents read; absent where it read nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents_read: Option<ContentsRead>,
    /// Every check.
    pub checks: Vec<CheckRow>,
    /// Commits of other writers between the two versions that were compared.
    pub concurrent_commits: Vec<ConcurrentCommit>,
    /// What a flow keeps.
    pub audit_record: AuditRecord,
    /// The state to keep: the counter is reset after a success.
    pub new_state_snapshot: StateSnapshot,
    /// Whether the state given could not be used.
    pub state_reset: bool,
    /// What an operator should know.
    pub warnings: Vec<String>,
    /// Lists that were cut so that the outputs stay small; absent where all is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub truncated: Vec<Truncation>,
}
