//! The audit in a few sentences, for somebody who never saw the table.

use super::decision::Decision;
use crate::report::audit::{EscalationReason, OverallStatus, PressureKind};
use crate::report::plan::{NoTaskReason, Plan};
use crate::report::table::StorageFacts;
use crate::report::text::{bytes, count, count_of};
use crate::table::snapshot::Snapshot;

/// What the table is like, what was decided and why, and what would be done.
#[must_use]
pub fn of(snapshot: &Snapshot, decision: &Decision, storage: &StorageFacts) -> String {
    let facts = &snapshot.fragments;
    format!(
        "{}: {}, {}, {} deleted ({} %), {}, {}. {} {}",
        snapshot.id.table_name,
        count(facts.count, "fragment"),
        count(facts.active_rows, "row"),
        facts.tombstones,
        facts.tombstone_pct,
        count(snapshot.versions.count, "version"),
        bytes(storage.bytes_on_disk),
        verdict(decision),
        plan(&snapshot.plan),
    )
}

fn verdict(decision: &Decision) -> String {
    let over: Vec<&str> = decision
        .pressures
        .iter()
        .filter(|p| p.reached && p.curable)
        .map(|p| match p.kind {
            PressureKind::Fragments => "fragments",
            PressureKind::Tombstones => "deleted rows",
            PressureKind::StaleVersions => "stale versions",
            PressureKind::UnindexedRows => "unindexed rows",
        })
        .collect();
    let over = over.join(", ");
    let runs = decision.entry.consecutive_bloated_runs;
    let status = match decision.status {
        OverallStatus::Healthy => "HEALTHY",
        OverallStatus::Degraded => "DEGRADED",
        OverallStatus::CompactionRequired => "COMPACTION_REQUIRED",
        OverallStatus::Critical => "CRITICAL",
    };
    let why = match decision.reason {
        EscalationReason::None if decision.pressures.iter().any(|p| p.reached) => {
            "what reached its threshold, a compact step could not mend".to_owned()
        }
        EscalationReason::None => "nothing reached its threshold".to_owned(),
        EscalationReason::AwaitingPersistence => {
            format!(
                "too many {over}, seen in {} in a row so far",
                count(runs, "audit")
            )
        }
        EscalationReason::CriticalFragments => {
            format!("the critical number of fragments is reached (too many {over})")
        }
        EscalationReason::Tombstones => {
            format!("deleted rows reached their threshold (too many {over})")
        }
        EscalationReason::PersistentBloat => {
            format!("too many {over}, seen in {} in a row", count(runs, "audit"))
        }
    };
    format!("{status}: {why}.")
}

/// What a compact step would do.
#[must_use]
pub fn plan(plan: &Plan) -> String {
    let mut parts = Vec::new();
    let merges = plan.index_merges.len() as u64;
    if merges > 0 {
        parts.push(format!(
            "merge the segments of {}",
            count_of(merges, "index", "indices")
        ));
    }
    let compaction = &plan.compaction;
    if compaction.tasks > 0 {
        let size = compaction
            .bytes_to_rewrite
            .map_or_else(String::new, |b| format!(" ({})", bytes(b)));
        parts.push(format!(
            "rewrite {}{size}, leaving {}",
            count(compaction.fragments_to_rewrite, "fragment"),
            compaction.fragments_expected
        ));
    }
    let catch_ups = plan.index_catch_ups.len() as u64;
    if catch_ups > 0 {
        parts.push(format!(
            "bring {} up to date",
            count_of(catch_ups, "index", "indices")
        ));
    }
    if plan.prune.versions > 0 {
        let size = plan
            .prune
            .estimate
            .as_ref()
            .map_or_else(String::new, |e| format!(" ({})", bytes(e.bytes)));
        parts.push(format!(
            "prune {}{size}",
            count(plan.prune.versions, "version")
        ));
    }
    if !parts.is_empty() {
        return format!("A compact step would {}.", parts.join(", "));
    }
    let why = match compaction.no_task_reason {
        Some(NoTaskReason::BelowDeletionThreshold) => {
            ": no fragment has more deleted rows than the deletion threshold"
        }
        Some(NoTaskReason::MergeSwitchedOff) => {
            ": index segments keep fragments apart, and the spec switches their merge off"
        }
        Some(NoTaskReason::IndexNotMergeable) => {
            ": an index that cannot be merged keeps fragments apart"
        }
        _ => "",
    };
    format!("A compact step would change nothing{why}.")
}
