//! The audit step: what a table is like, whether a compact step is due, and what it would do.
//!
//! ```text
//! table ──► snapshot ─┐
//! spec, state, clock ─┴─► decision (pure) ──► estimate, where somebody will read it ──► outputs
//! ```

pub mod decision;
pub mod growth;
pub mod pressures;
pub mod summary;
pub mod writers;

use std::time::Duration;

use chrono::TimeDelta;

use crate::clock::Clock;
use crate::error::{ErrorKind, GuardError, Result};
use crate::report::Unknown;
use crate::report::audit::{AuditManifest, AuditOutputs};
use crate::report::plan::NoTaskReason;
use crate::report::text::bytes;
use crate::report::writers::WriterActivity;
use crate::spec::audit::PruneEstimate;
use crate::spec::{AuditSpec, Step};
use crate::state;
use crate::table::Table;
use crate::table::indices::MIN_ROWS_TO_TRAIN;
use crate::table::planning::RewriteOptions;
use crate::table::snapshot::Snapshot;
use decision::{Decision, Thresholds};

/// Audits a table. Changes nothing, and reads no data file.
///
/// # Errors
/// Where the store does not answer or a manifest cannot be read. A damaged table is a finding.
pub async fn run(spec: &AuditSpec, table: &Table, clock: &Clock) -> Result<AuditOutputs> {
    let options = RewriteOptions {
        target_rows: spec.target_rows_per_fragment,
        target_bytes: spec.target_bytes_per_fragment,
        compaction: spec.compaction.clone(),
        indices: spec.indices.clone(),
    };
    let cutoff = clock.evaluated_at - hours(spec.stale_version_retention_hours)?;
    let mut snapshot = table.snapshot(cutoff, &options).await?;
    let (storage, damage) = table.storage_facts().await?;
    let read = state::read(&spec.previous_state, &snapshot.id.key);
    let decision = decision::decide(
        &snapshot,
        &Thresholds::from(spec),
        read.entry.as_ref(),
        &spec.execution_id,
        clock.evaluated_at,
    );
    estimate_prune(spec, table, &decision, &mut snapshot).await;
    let writers = writer_activity(table, clock, &mut snapshot).await;

    let mut warnings: Vec<String> = read.warning.iter().cloned().collect();
    if let Some(first) = damage.first() {
        warnings.push(format!(
            "the table is damaged: {first}{}; nothing is compacted or pruned until that is mended",
            and_more(damage.len())
        ));
    }
    warnings.extend(standing_warnings(&snapshot));
    warnings.extend(space_warning(&snapshot, table));
    let bytes_to_rewrite = snapshot.plan.compaction.bytes_to_rewrite;
    warnings.extend(writers.as_ref().and_then(|activity| {
        writers::warning(activity, bytes_to_rewrite, spec.compaction.batch_bytes)
    }));
    if !decision.indices_lost.is_empty() {
        warnings.push(format!(
            "indices that the last audit saw are gone: {}",
            decision.indices_lost.join(", ")
        ));
    }
    let state_reset = read.reset;
    let approval = snapshot.approval(spec.allowance_percent);
    let facts = &snapshot.fragments;
    Ok(AuditOutputs {
        step: Step::Audit,
        needs_compaction: decision.needs_compaction,
        overall_status: decision.status,
        escalation_reason: decision.reason,
        fragment_count: facts.count,
        active_rows: facts.active_rows,
        tombstone_count: facts.tombstones,
        tombstone_pct: facts.tombstone_pct,
        version_count: snapshot.versions.count,
        summary: summary::of(&snapshot, &decision, &storage),
        new_state_snapshot: state::merge(read, &snapshot.id.key, &decision.entry),
        state_reset,
        warnings,
        audit_manifest: AuditManifest {
            evaluated_at: clock.evaluated_at,
            execution_id: spec.execution_id.clone(),
            fragments: snapshot.fragments.clone(),
            versions: snapshot.versions.clone(),
            refs: snapshot.refs.clone(),
            indices: snapshot.indices.iter().map(|i| i.fact.clone()).collect(),
            indices_lost: decision.indices_lost,
            storage,
            writers,
            format: snapshot.format.clone(),
            pressures: decision.pressures,
            consecutive_bloated_runs: decision.entry.consecutive_bloated_runs,
            growth: decision.growth,
        },
        table: snapshot.id,
        plan: snapshot.plan,
        approval,
        unknown: snapshot.unknown,
        truncated: Vec::new(),
    })
}

/// A number of hours as a duration.
///
/// # Errors
/// `spec_invalid` for a number of hours that no calendar holds.
pub fn hours(hours: f64) -> Result<TimeDelta> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the cast saturates, and the calendar is asked afterwards"
    )]
    let milliseconds = (hours * 3_600_000.0).round() as i64;
    TimeDelta::try_milliseconds(milliseconds).ok_or_else(|| {
        GuardError::new(
            ErrorKind::SpecInvalid,
            format!("{hours} hours are no retention"),
        )
    })
}

/// Asks lance what a prune would free, where the spec wants it and somebody will read it.
async fn estimate_prune(
    spec: &AuditSpec,
    table: &Table,
    decision: &Decision,
    snapshot: &mut Snapshot,
) {
    let reason = match spec.prune_estimate {
        PruneEstimate::Never => "the spec asks for no prune estimate".to_owned(),
        PruneEstimate::Auto if !decision.needs_compaction => {
            "not asked, since no compact step is due".to_owned()
        }
        PruneEstimate::Auto | PruneEstimate::Always => {
            let limit = Duration::from_secs(spec.prune_estimate_seconds);
            let versions = snapshot.retention.prunable(&snapshot.refs);
            let asking = table.explain_prune(&snapshot.retention, &versions);
            match tokio::time::timeout(limit, asking).await {
                Ok(Ok(counts)) => {
                    snapshot.plan.prune.estimate = Some(counts);
                    return;
                }
                // One old manifest that cannot be read keeps nobody from the other facts.
                Ok(Err(error)) => error.message,
                Err(_) => format!("it took longer than {} s", limit.as_secs()),
            }
        }
    };
    snapshot
        .unknown
        .push(Unknown::new("plan.prune.estimate", reason));
}

/// A compact step that would be refused for want of space.
fn space_warning(snapshot: &Snapshot, table: &Table) -> Option<String> {
    let needed = snapshot.plan.free_bytes_needed?;
    let free = table.free_bytes()?;
    (snapshot.plan.commits() && needed > free).then(|| {
        format!(
            "a compact step may write {}, and the volume of the table has {} free: it refuses unless there is room",
            bytes(needed),
            bytes(free)
        )
    })
}

/// What other writers committed lately. That it cannot be read keeps nobody from the other facts.
async fn writer_activity(
    table: &Table,
    clock: &Clock,
    snapshot: &mut Snapshot,
) -> Option<WriterActivity> {
    let existing = &snapshot.retention.existing;
    match writers::activity(table, existing, clock.evaluated_at).await {
        Ok(activity) => Some(activity),
        Err(error) => {
            snapshot
                .unknown
                .push(Unknown::new("writers", error.message));
            None
        }
    }
}

/// What an operator should know of the table's set-up.
fn standing_warnings(snapshot: &Snapshot) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(interval) = snapshot.format.auto_cleanup() {
        warnings.push(format!(
            "the table prunes itself every {interval} commits (lance.auto_cleanup), by commit time and not by the retention of this tool; a compact step refuses it unless prune.accept_auto_cleanup is set"
        ));
    }
    if snapshot.format.shallow_clone {
        warnings.push(
            "the table is a shallow clone: it needs files of another table, which a prune there may delete unless a tag protects them".to_owned(),
        );
    }
    for index in &snapshot.indices {
        if index.lacks_rows_to_train() && index.rows_unindexed() > 0 {
            warnings.push(format!(
                "index {} has not enough rows to train: it needs {MIN_ROWS_TO_TRAIN}, the table has {}; searches scan instead",
                index.fact.name,
                index.rows_unindexed()
            ));
        } else if !index.mergeable {
            warnings.push(format!(
                "index {} is of a kind that this build cannot rewrite; what it covers stays apart",
                index.fact.name
            ));
        }
    }
    if snapshot.plan.compaction.no_task_reason == Some(NoTaskReason::IndexNotMergeable) {
        warnings.push("fragments stay apart because of an index that cannot be merged".to_owned());
    }
    warnings
}

fn and_more(count: usize) -> String {
    if count > 1 {
        format!(" and {} more", count - 1)
    } else {
        String::new()
    }
}
