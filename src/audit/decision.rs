//! The decision: pure, with no I/O and no clock of its own.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::{growth, pressures};
use crate::report::audit::{EscalationReason, Growth, OverallStatus, Pressure, PressureKind};
use crate::report::state::{HISTORY_LENGTH, HistoryPoint, TableState};
use crate::spec::AuditSpec;
use crate::table::snapshot::Snapshot;

/// What is too much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Fragments at which a table is bloated.
    pub fragments: u64,
    /// Fragments at which it is critical at once.
    pub critical_fragments: u64,
    /// Deleted rows in percent at which it is bloated at once.
    pub tombstone_percent: f64,
    /// Prunable versions at which it is bloated.
    pub stale_versions: u64,
    /// Uncovered rows in percent at which it is bloated.
    pub unindexed_percent: f64,
    /// Audits in a row that must see bloat.
    pub consecutive_runs: u64,
}

impl From<&AuditSpec> for Thresholds {
    fn from(spec: &AuditSpec) -> Self {
        Self {
            fragments: spec.fragment_count_threshold,
            critical_fragments: spec.critical_fragment_threshold,
            tombstone_percent: spec.tombstone_percent_threshold,
            stale_versions: spec.stale_version_threshold,
            unindexed_percent: spec.unindexed_percent_threshold,
            consecutive_runs: spec.min_consecutive_runs,
        }
    }
}

/// What was decided, and what is remembered of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// How the table is.
    pub status: OverallStatus,
    /// Why a compact step is due, or not.
    pub reason: EscalationReason,
    /// Whether a compact step is due.
    pub needs_compaction: bool,
    /// Values against thresholds.
    pub pressures: Vec<Pressure>,
    /// Growth since earlier audits.
    pub growth: Option<Growth>,
    /// Indices that the last audit saw and that are gone.
    pub indices_lost: Vec<String>,
    /// The entry to remember.
    pub entry: TableState,
}

/// Decides. `previous` is what the last audit remembered.
#[must_use]
pub fn decide(
    snapshot: &Snapshot,
    thresholds: &Thresholds,
    previous: Option<&TableState>,
    execution_id: &str,
    now: DateTime<Utc>,
) -> Decision {
    let pressures = pressures::of(snapshot, thresholds);
    let tombstones = pressures
        .iter()
        .any(|p| p.kind == PressureKind::Tombstones && p.reached && p.curable);
    let bloated = pressures.iter().any(|p| p.reached && p.curable);
    let critical = snapshot.fragments.count >= thresholds.critical_fragments
        && pressures::relieves(snapshot, thresholds.critical_fragments);
    let runs = consecutive_runs(bloated, previous, execution_id);
    let (status, reason) = if critical {
        (OverallStatus::Critical, EscalationReason::CriticalFragments)
    } else if tombstones {
        (
            OverallStatus::CompactionRequired,
            EscalationReason::Tombstones,
        )
    } else if bloated && runs >= thresholds.consecutive_runs {
        (
            OverallStatus::CompactionRequired,
            EscalationReason::PersistentBloat,
        )
    } else if bloated {
        (
            OverallStatus::Degraded,
            EscalationReason::AwaitingPersistence,
        )
    } else {
        (OverallStatus::Healthy, EscalationReason::None)
    };
    let index_names: BTreeSet<String> = snapshot
        .indices
        .iter()
        .map(|i| i.fact.name.clone())
        .collect();
    let history = history(previous, execution_id);
    Decision {
        status,
        reason,
        needs_compaction: matches!(
            status,
            OverallStatus::Critical | OverallStatus::CompactionRequired
        ),
        growth: growth::of(
            &history,
            snapshot.fragments.count,
            thresholds.critical_fragments,
            now,
        ),
        indices_lost: previous
            .map(|p| p.index_names.difference(&index_names).cloned().collect())
            .unwrap_or_default(),
        entry: TableState {
            fragment_count: snapshot.fragments.count,
            active_rows: snapshot.fragments.active_rows,
            tombstone_count: snapshot.fragments.tombstones,
            tombstone_pct: snapshot.fragments.tombstone_pct,
            version_count: snapshot.versions.count,
            current_version: snapshot.versions.current,
            consecutive_bloated_runs: runs,
            last_evaluated_at: now,
            last_execution_id: execution_id.to_owned(),
            history: extended(history, snapshot, now),
            index_names,
            last_compacted_at: previous.and_then(|p| p.last_compacted_at),
        },
        pressures,
    }
}

/// Whether this execution was evaluated before. `manual` names no execution.
fn is_rerun(previous: Option<&TableState>, execution_id: &str) -> bool {
    execution_id != "manual" && previous.is_some_and(|p| p.last_execution_id == execution_id)
}

/// Audits in a row that saw bloat. The same execution counts once.
fn consecutive_runs(bloated: bool, previous: Option<&TableState>, execution_id: &str) -> u64 {
    let before = previous.map_or(0, |p| p.consecutive_bloated_runs);
    match (bloated, is_rerun(previous, execution_id)) {
        (false, _) => 0,
        (true, true) => before.max(1),
        (true, false) => before.saturating_add(1),
    }
}

/// What earlier executions saw, oldest first: an execution that is evaluated again compares
/// with what it compared with before.
fn history(previous: Option<&TableState>, execution_id: &str) -> Vec<HistoryPoint> {
    let mut history = previous.map(|p| p.history.clone()).unwrap_or_default();
    if is_rerun(previous, execution_id) {
        history.pop();
    }
    history
}

fn extended(
    mut history: Vec<HistoryPoint>,
    snapshot: &Snapshot,
    now: DateTime<Utc>,
) -> Vec<HistoryPoint> {
    history.push(HistoryPoint {
        at: now,
        fragments: snapshot.fragments.count,
        tombstones: snapshot.fragments.tombstones,
        versions: snapshot.versions.count,
    });
    let surplus = history.len().saturating_sub(HISTORY_LENGTH);
    history.drain(..surplus);
    history
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
