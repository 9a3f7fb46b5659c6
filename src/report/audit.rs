//! Outputs of the audit step.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approval::Approval;
use super::plan::Plan;
use super::state::StateSnapshot;
use super::table::{
    FormatFacts, FragmentFacts, IndexFact, RefFacts, StorageFacts, TableId, VersionFacts,
};
use super::writers::WriterActivity;
use super::{Truncation, Unknown};
use crate::spec::Step;

/// How the table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OverallStatus {
    /// Nothing that a compact step could mend has reached its threshold.
    Healthy,
    /// Bloat was seen, but not yet in enough audits in a row.
    Degraded,
    /// A compact step is due.
    CompactionRequired,
    /// A compact step is due at once.
    Critical,
}

/// Why a compact step is due, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EscalationReason {
    /// It is not due.
    None,
    /// Bloat that waits for the next audits to confirm it.
    AwaitingPersistence,
    /// Fragments reached the critical threshold.
    CriticalFragments,
    /// Deleted rows reached their threshold.
    Tombstones,
    /// Bloat was seen in enough audits in a row.
    PersistentBloat,
}

/// What can be too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PressureKind {
    /// Number of fragments.
    Fragments,
    /// Deleted rows in percent.
    Tombstones,
    /// Prunable versions.
    StaleVersions,
    /// Rows that an index does not cover, in percent, for the worst index.
    UnindexedRows,
}

/// A value against its threshold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pressure {
    /// What is measured.
    pub kind: PressureKind,
    /// The value found.
    pub value: f64,
    /// The threshold of the spec.
    pub threshold: f64,
    /// Whether the value reached the threshold.
    pub reached: bool,
    /// Whether a compact step would bring the value down.
    pub curable: bool,
}

/// How fast fragments come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrowthTrend {
    /// Fragments do not increase.
    Steady,
    /// Fragments increase as they did before.
    Routine,
    /// Fragments increase at least four times as fast as before.
    Explosive,
}

/// Growth since earlier audits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Growth {
    /// Fragments that came since the last audit; negative after a compaction.
    pub fragments_since_last: i64,
    /// Fragments a day since the last audit.
    pub fragments_per_day: f64,
    /// How that compares with the audits before.
    pub trend: GrowthTrend,
    /// When the critical threshold is reached at this rate; absent where it never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_at: Option<DateTime<Utc>>,
}

/// The facts and reasons behind the decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditManifest {
    /// When the audit was evaluated.
    pub evaluated_at: DateTime<Utc>,
    /// The execution that asked.
    pub execution_id: String,
    /// Fragments and rows.
    pub fragments: FragmentFacts,
    /// Versions.
    pub versions: VersionFacts,
    /// Tags and branches.
    pub refs: RefFacts,
    /// Indices, by name.
    pub indices: Vec<IndexFact>,
    /// Names of indices that the last audit saw and that are gone.
    pub indices_lost: Vec<String>,
    /// Bytes.
    pub storage: StorageFacts,
    /// What other writers committed lately; absent where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writers: Option<WriterActivity>,
    /// Set-up of the table.
    pub format: FormatFacts,
    /// Values against thresholds.
    pub pressures: Vec<Pressure>,
    /// Audits in a row that saw bloat, this one included.
    pub consecutive_bloated_runs: u64,
    /// Growth since earlier audits; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
}

/// What the audit step puts out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditOutputs {
    /// The step.
    pub step: Step,
    /// The table.
    pub table: TableId,
    /// Whether a compact step is due.
    pub needs_compaction: bool,
    /// How the table is.
    pub overall_status: OverallStatus,
    /// Why a compact step is due, or not.
    pub escalation_reason: EscalationReason,
    /// Fragments.
    pub fragment_count: u64,
    /// Live rows.
    pub active_rows: u64,
    /// Deleted physical rows.
    pub tombstone_count: u64,
    /// Deleted physical rows in percent of physical rows.
    pub tombstone_pct: f64,
    /// Versions that exist.
    pub version_count: u64,
    /// All of it in a few sentences.
    pub summary: String,
    /// The facts and reasons behind the decision.
    pub audit_manifest: AuditManifest,
    /// What a compact step would do.
    pub plan: Plan,
    /// The sizes of the plan, to be passed to the compact step as it is once somebody approved
    /// them.
    pub approval: Approval,
    /// The state to keep and to pass to the next step.
    pub new_state_snapshot: StateSnapshot,
    /// Whether the state given could not be used, so that the trend starts anew.
    pub state_reset: bool,
    /// What an operator should know beside the decision.
    pub warnings: Vec<String>,
    /// Facts that could not be had.
    pub unknown: Vec<Unknown>,
    /// Lists that were cut so that the outputs stay small; absent where all is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub truncated: Vec<Truncation>,
}
