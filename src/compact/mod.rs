//! The compact step.
//!
//! ```text
//! plan ──► index merge ──► compaction ──► index catch-up ──► checks ──► prune
//!             where segments     lance's own      every index          any finding stops here
//!             block compaction   plan and tasks   covers all rows
//! ```
//!
//! A phase that fails stops the ones after it. What was committed stays: every version that a
//! phase commits is whole, and running again goes on from there.

mod ceiling;
mod checks;
mod identity;
mod indices;
mod lost_race;
mod progress;
mod prune;
mod retry;
mod rewrite;
mod space;
mod start;
mod summary;

use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::error::{ErrorKind, GuardError, Result};
use crate::report::baseline::{Baseline, VersionCounts};
use crate::report::compact::{
    CleanupStats, CompactOutputs, CompactionStats, IndexPhase, PhaseStatus, RemediationStatus,
};
use crate::report::plan::PruneCounts;
use crate::report::text::word;
use crate::spec::{CompactSpec, Step};
use crate::stop::Stop;
use crate::table::Table;
use crate::table::snapshot::Snapshot;
use progress::Progress;
use start::Run;

/// Compacts a table: index merge, compaction, index catch-up, checks, prune.
///
/// A failure after something was committed comes as outputs with `error`, so that they say what
/// was done.
///
/// # Errors
/// What stops the step before it changed anything.
pub async fn run(
    spec: &CompactSpec,
    mut table: Table,
    clock: &Clock,
    stop: &Stop,
) -> Result<CompactOutputs> {
    let run = stop.or(Run::start(spec, &table, clock, stop)).await?;
    if spec.dry_run {
        return Ok(dry_run(&run, &table, clock));
    }
    let mut progress = Progress::new();
    let index_merge = indices::merge(&run, &mut table, &mut progress).await;
    let compaction_stats = rewrite::compact(&run, &mut table, &mut progress).await;
    let index_catch_up = indices::catch_up(&run, &mut table, &mut progress).await;

    // Everything from here on looks at the newest version, other writers' commits included; a
    // phase that failed may have committed all the same, and left an old version behind.
    let after = match newest(&mut table).await {
        Ok(counts) => counts,
        Err(fault) => {
            progress.error.get_or_insert(fault);
            run.before
        }
    };
    let left_behind: Vec<String> = index_catch_up
        .left_behind
        .iter()
        .map(|index| index.name.clone())
        .collect();
    let baseline = baseline(
        &run,
        &table,
        after,
        &compaction_stats,
        left_behind,
        &mut progress,
    )
    .await;
    let checks = checks::before_prune(&baseline, &mut table, &mut progress, stop).await;
    let cleanup_stats = prune::prune(&run, &table, &mut progress).await;

    // A prune that failed may have deleted files before it did.
    let table_changed = progress.changed
        || !baseline.committed_versions.is_empty()
        || cleanup_stats.actual != PruneCounts::default()
        || cleanup_stats.status == PhaseStatus::Failed;
    let statuses = [
        index_merge.status,
        compaction_stats.status,
        index_catch_up.status,
        checks.status,
        cleanup_stats.status,
    ];
    let remediation_status = if progress.error.is_some() {
        if table_changed {
            RemediationStatus::Partial
        } else {
            RemediationStatus::Failed
        }
    } else if cleanup_stats.failed_deletes > 0 || progress.remaining.is_some() {
        RemediationStatus::Partial
    } else if table_changed {
        RemediationStatus::Success
    } else {
        RemediationStatus::NothingToDo
    };
    let mut error = progress.error.take();
    if let Some(fault) = error.take() {
        let stopped = fault.kind == ErrorKind::Stopped;
        if !table_changed && !stopped {
            return Err(fault);
        }
        error = Some(if stopped {
            fault
        } else {
            partly_done(fault, &statuses)
        });
    }
    let warnings = warnings(&run, &index_merge, &index_catch_up, &cleanup_stats);
    let mut outputs = CompactOutputs {
        step: Step::Compact,
        table: table.id().clone(),
        evaluated_at: clock.evaluated_at,
        execution_id: spec.execution_id.clone(),
        dry_run: false,
        approval_status: run.ceiling.status(),
        remediation_status,
        table_changed,
        summary: String::new(),
        plan: run.found.plan,
        index_merge,
        compaction_stats,
        index_catch_up,
        checks,
        cleanup_stats,
        conflicts: progress.conflicts,
        remaining: progress.remaining,
        baseline,
        warnings,
        unknown: run.found.unknown,
        truncated: Vec::new(),
        error,
    };
    outputs.summary = summary::of(&outputs);
    Ok(outputs)
}

/// Plans everything, asks lance what a prune would delete, and changes nothing.
fn dry_run(run: &Run<'_>, table: &Table, clock: &Clock) -> CompactOutputs {
    let found = &run.found;
    let mut plan = found.plan.clone();
    plan.prune.estimate.get_or_insert_default();
    let cleanup_stats = prune::planned(run);
    let mut outputs = CompactOutputs {
        step: Step::Compact,
        table: table.id().clone(),
        evaluated_at: clock.evaluated_at,
        execution_id: run.spec.execution_id.clone(),
        dry_run: true,
        approval_status: run.ceiling.status(),
        remediation_status: RemediationStatus::DryRun,
        table_changed: false,
        summary: String::new(),
        index_merge: indices::planned_merge(run),
        compaction_stats: rewrite::planned(run),
        index_catch_up: indices::planned_catch_up(run),
        checks: checks::not_run(),
        cleanup_stats,
        conflicts: Vec::new(),
        remaining: None,
        baseline: Baseline {
            before: run.before,
            after: run.before,
            fragments_expected: run.before.fragments,
            tombstones_to_clear: 0,
            fragments_removed: 0,
            fragments_added: 0,
            committed_versions: Vec::new(),
            index_names: index_names(found),
            indices_left_behind: Vec::new(),
        },
        plan,
        warnings: Vec::new(),
        unknown: found.unknown.clone(),
        truncated: Vec::new(),
        error: None,
    };
    outputs.summary = summary::of(&outputs);
    outputs
}

async fn newest(table: &mut Table) -> Result<VersionCounts> {
    table.refresh().await?;
    table.counts().await
}

/// What an operator should know although the step did not fail on it.
fn warnings(
    run: &Run<'_>,
    merge: &IndexPhase,
    catch_up: &IndexPhase,
    cleanup: &CleanupStats,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if run.found.format.auto_cleanup().is_some() {
        warnings.push(
            "the table prunes itself (lance.auto_cleanup): versions inside the retention may be gone".to_owned(),
        );
    }
    for index in merge.left_behind.iter().chain(&catch_up.left_behind) {
        warnings.push(format!("index {}: {}", index.name, index.reason));
    }
    if let Some(late) = &cleanup.late_refs {
        warnings.extend(prune::late_warnings(late));
    }
    if cleanup.failed_deletes > 0 {
        warnings.extend(cleanup.note.clone());
    }
    warnings.dedup();
    warnings
}

fn index_names(found: &Snapshot) -> Vec<String> {
    found.indices.iter().map(|i| i.fact.name.clone()).collect()
}

/// What verify compares. What the compaction really planned counts, which after a lost race or
/// an index merge is not what the audit saw.
async fn baseline(
    run: &Run<'_>,
    table: &Table,
    after: VersionCounts,
    compaction: &CompactionStats,
    left_behind: Vec<String>,
    progress: &mut Progress,
) -> Baseline {
    let committed_versions = match run
        .identity
        .committed_versions(table, run.before.version, after.version)
        .await
    {
        Ok(versions) => versions,
        Err(fault) => {
            progress.error.get_or_insert(fault);
            Vec::new()
        }
    };
    let (planned, actual) = (&compaction.planned, &compaction.actual);
    // What was not committed promises nothing.
    let ran = compaction.batches > 0;
    let promised = |count: u64| if ran { count } else { 0 };
    Baseline {
        before: run.before,
        after,
        fragments_expected: (run.before.fragments + promised(planned.fragments_added))
            .saturating_sub(promised(planned.fragments_removed)),
        tombstones_to_clear: promised(planned.tombstones_cleared),
        fragments_removed: actual.fragments_removed,
        fragments_added: actual.fragments_added,
        committed_versions,
        index_names: index_names(&run.found),
        indices_left_behind: left_behind,
    }
}

/// The error of a step that failed after it had changed the table.
fn partly_done(cause: GuardError, statuses: &[PhaseStatus; 5]) -> GuardError {
    let names = [
        "index_merge",
        "compaction",
        "index_catch_up",
        "checks",
        "prune",
    ];
    let failed = names
        .iter()
        .zip(statuses)
        .find(|(_, status)| **status == PhaseStatus::Failed)
        .map_or("baseline", |(name, _)| name);
    let done: Vec<&str> = names
        .iter()
        .zip(statuses)
        .filter(|(_, status)| **status == PhaseStatus::Done)
        .map(|(name, _)| *name)
        .collect();
    // A race that was lost for good is told apart: running again is right then.
    let kind = if cause.kind == ErrorKind::CommitConflict {
        ErrorKind::CommitConflict
    } else {
        ErrorKind::PartlyDone
    };
    let mut error = GuardError::new(
        kind,
        format!(
            "{failed} failed after {} had been done: {}",
            if done.is_empty() {
                "a part".to_owned()
            } else {
                done.join(" and ")
            },
            cause.message
        ),
    )
    .hint(cause.hint.clone().unwrap_or_else(|| {
        "What was committed stays and is whole; running again goes on from there.".to_owned()
    }))
    .with("cause", word(&cause.kind))
    .with("failed_phase", failed);
    error.retryable = cause.retryable;
    error.context.extend(cause.context);
    error
}

/// Milliseconds since a phase began.
pub(crate) fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(
        since
            .elapsed()
            .min(Duration::from_secs(u64::from(u32::MAX)))
            .as_millis(),
    )
    .unwrap_or(u64::MAX)
}
