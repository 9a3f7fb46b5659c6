//! The compaction phase.

use std::time::Instant;

use futures::{StreamExt, TryStreamExt, stream};

use super::progress::Progress;
use super::retry::Retries;
use super::{Run, elapsed_ms};
use crate::error::Result;
use crate::report::approval::Approval;
use crate::report::compact::{CompactionStats, CompactionWork, PhaseStatus};
use crate::table::Table;
use crate::table::rewrite::Rewrite;

/// Rewrites what lance plans, and again on the newest version after a lost race.
pub async fn compact(run: &Run<'_>, table: &mut Table, progress: &mut Progress) -> CompactionStats {
    let mut stats = planned(run);
    stats.status = PhaseStatus::NothingToDo;
    if progress.error.is_some() {
        stats.status = PhaseStatus::Skipped;
        return stats;
    }
    let start = Instant::now();
    let mut retries = Retries::default();
    loop {
        match attempt(run, table, progress).await {
            Ok((promised, actual, fragments_after)) => {
                if actual.tasks > 0 {
                    stats.status = PhaseStatus::Done;
                    stats.no_task_reason = None;
                }
                let planned_after = (fragments_after + promised.fragments_added)
                    .saturating_sub(actual.fragments_added);
                stats.planned = work(promised, planned_after);
                stats.actual = work(actual, fragments_after);
                break;
            }
            Err(mut fault) => {
                if retries.again(&mut fault, run.spec.conflict_retries).await {
                    continue;
                }
                stats.status = PhaseStatus::Failed;
                progress.error = Some(fault);
                break;
            }
        }
    }
    stats.conflicts = u64::from(retries.conflicts);
    stats.duration_ms = elapsed_ms(start);
    stats
}

/// Plans, rewrites and commits. Gives back what was promised, what was done, and the fragments
/// of the table afterwards.
async fn attempt(
    run: &Run<'_>,
    table: &mut Table,
    progress: &mut Progress,
) -> Result<(Rewrite, Rewrite, u64)> {
    table.refresh().await?;
    let plan = table.plan_rewrite(&run.options).await?;
    let total = progress.committed.and(plan.total());
    run.ceiling.check(&Approval {
        bytes_to_rewrite: total.bytes,
        fragments_removed: total.fragments_removed,
        fragments_added: total.fragments_added,
        ..run.planned.clone()
    })?;
    let reader = &*table;
    let done = stream::iter(&plan.tasks)
        .map(|task| reader.execute(task))
        .buffered(run.options.compaction.concurrency.max(1) as usize)
        .try_collect()
        .await?;
    let actual = table
        .commit_rewrite(&plan, done, run.identity.properties())
        .await?;
    progress.changed |= actual.tasks > 0;
    progress.committed = total;
    Ok((plan.total(), actual, table.counts().await?.fragments))
}

fn work(rewrite: Rewrite, fragments_after: u64) -> CompactionWork {
    CompactionWork {
        tasks: rewrite.tasks,
        fragments_removed: rewrite.fragments_removed,
        fragments_added: rewrite.fragments_added,
        tombstones_cleared: rewrite.tombstones_cleared,
        fragments_after,
    }
}

/// The compaction as it is planned.
pub fn planned(run: &Run<'_>) -> CompactionStats {
    let plan = &run.found.plan.compaction;
    CompactionStats {
        status: if plan.tasks == 0 {
            PhaseStatus::NothingToDo
        } else {
            PhaseStatus::Planned
        },
        planned: CompactionWork {
            tasks: plan.tasks,
            fragments_removed: plan.fragments_to_rewrite,
            fragments_added: (plan.fragments_expected + plan.fragments_to_rewrite)
                .saturating_sub(run.before.fragments),
            tombstones_cleared: plan.tombstones_to_clear,
            fragments_after: plan.fragments_expected,
        },
        actual: CompactionWork {
            fragments_after: run.before.fragments,
            ..CompactionWork::default()
        },
        no_task_reason: plan.no_task_reason,
        conflicts: 0,
        duration_ms: 0,
    }
}
