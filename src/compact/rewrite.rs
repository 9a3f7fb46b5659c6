//! The compaction phase: batch by batch.
//!
//! ```text
//! ┌─► plan on the newest version ─► tasks, until the batch is full ─► commit ─┐
//! └────────────────────── while the batch did not hold all of it ◄───────────┘
//! ```
//!
//! A lost race or a stop loses no more than one batch. A table whose tasks fit into one is
//! committed at once. What other writers append after the plan of the last batch is left for
//! the next run, so that the phase ends however fast they are.
//!
//! Where a target in bytes bounds the rows of a fragment, a rewrite may make rows smaller (small
//! files have much beside their rows) and the row target rise. Then it is planned again, so that
//! the next run finds nothing to do.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::progress::Progress;
use super::retry::Retries;
use super::{Run, elapsed_ms, lost_race};
use crate::error::{ErrorKind, Result};
use crate::report::approval::Approval;
use crate::report::compact::{BudgetKind, CompactionStats, CompactionWork, PhaseStatus};
use crate::report::plan::NoTaskReason;
use crate::table::Table;
use crate::table::rewrite::{Rewrite, RewriteDone, RewritePlan};

/// How long tasks are started for one batch.
const BATCH_TIME: Duration = Duration::from_secs(60);

/// Plans that follow on a whole one because the row target rose. Each of them leaves fewer
/// fragments; the limit is for writers who keep the target going up and down meanwhile.
const MAX_FOLLOWING: u32 = 8;

/// Why a batch starts no more tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Every task of the plan was started.
    Whole,
    /// The batch is full; the rest is planned again.
    Full,
    /// A budget of the spec is used up.
    Budget(BudgetKind),
    /// A stop was asked.
    Stopped,
}

/// What one batch did.
struct Batch {
    /// What its tasks promised.
    promised: Rewrite,
    actual: Rewrite,
    /// The tasks of the plan that it did not start.
    left: Rewrite,
    /// The row target of the plan.
    target_rows: u64,
    end: End,
}

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
    let mut done = Rewrite::NOTHING;
    let mut following = 0;
    loop {
        let began = Instant::now();
        match batch(run, table, progress).await {
            Ok(batch) => {
                retries = Retries::default();
                progress.committed = progress.committed.and(batch.promised);
                done = done.and(batch.actual);
                stats.batches += u64::from(batch.actual.tasks > 0);
                if let End::Budget(reason) = batch.end {
                    leave(progress, &mut stats, batch.left, reason);
                }
                if batch.end == End::Stopped {
                    progress.error = Some(run.stop.error());
                }
                // Going on after a batch that changed nothing would never end.
                if !batch.actual.helps() {
                    break;
                }
                let risen = batch.end == End::Whole
                    && following < MAX_FOLLOWING
                    && has_risen(run, table, batch.target_rows, progress).await;
                following += u32::from(risen);
                if batch.end != End::Full && !risen {
                    break;
                }
            }
            // What was approved is done; nobody approved that the target would rise.
            Err(fault) if following > 0 && fault.kind == ErrorKind::PlanExceedsApproval => {
                match table.plan_rewrite(&run.options).await {
                    Ok(plan) => leave(progress, &mut stats, plan.total(), BudgetKind::Approval),
                    Err(fault) => progress.error = Some(fault),
                }
                break;
            }
            Err(mut fault) => {
                lost_race::note(table, &mut fault, progress).await;
                let (limit, attempt) = (run.spec.conflict_retries, began.elapsed());
                stats.conflicts += u64::from(fault.kind == ErrorKind::CommitConflict);
                if retries.again(&mut fault, limit, attempt, run.stop).await {
                    continue;
                }
                progress.error = Some(fault);
                break;
            }
        }
    }
    finish(table, progress, done, &mut stats).await;
    stats.duration_ms = elapsed_ms(start);
    stats
}

/// Whether the row target is higher than the one that a plan was made with.
async fn has_risen(
    run: &Run<'_>,
    table: &Table,
    target_rows: u64,
    progress: &mut Progress,
) -> bool {
    match table.target(&run.options).await {
        Ok(target) => target.rows > target_rows,
        Err(fault) => {
            progress.error.get_or_insert(fault);
            false
        }
    }
}

/// Plans on the newest version, carries tasks out until the batch is full, and commits them.
async fn batch(run: &Run<'_>, table: &mut Table, progress: &mut Progress) -> Result<Batch> {
    run.stop.check()?;
    table.refresh().await?;
    let plan = table.plan_rewrite(&run.options).await?;
    let total = progress.committed.and(plan.total());
    // Each plan is looked at as a whole, with what was committed before: otherwise batches
    // could add up to more than was approved.
    run.ceiling.check(&Approval {
        bytes_to_rewrite: total.bytes,
        fragments_removed: total.fragments_removed,
        fragments_added: total.fragments_added,
        ..run.planned.clone()
    })?;
    let (done, end) = carry_out(run, table, &plan, progress.committed).await?;
    let promised = plan.sum(|task| done.contains_key(&task));
    let left = plan.sum(|task| !done.contains_key(&task));
    let actual = table
        .commit_rewrite(
            &plan,
            done.into_values().collect(),
            run.identity.properties(),
        )
        .await?;
    progress.changed |= actual.tasks > 0;
    Ok(Batch {
        promised,
        actual,
        left,
        target_rows: plan.target_rows,
        end,
    })
}

/// Carries out the first tasks of a plan, a few at the same time, until something ends the
/// batch. What has begun is finished, unless a stop is asked: then it is dropped, and its files
/// are left, which no version refers to.
async fn carry_out(
    run: &Run<'_>,
    table: &Table,
    plan: &RewritePlan,
    committed: Rewrite,
) -> Result<(BTreeMap<usize, RewriteDone>, End)> {
    let began = Instant::now();
    let concurrency = run.options.compaction.concurrency.max(1) as usize;
    let mut running = FuturesUnordered::new();
    let mut done = BTreeMap::new();
    let mut started = Rewrite::NOTHING;
    let mut end = None;
    let mut tasks = plan.tasks.iter().enumerate().peekable();
    loop {
        while end.is_none() && running.len() < concurrency {
            let Some((number, task)) = tasks.peek().copied() else {
                break;
            };
            end = before_task(run, committed, started, task.expected, began);
            if end.is_none() {
                tasks.next();
                started = started.and(task.expected);
                running.push(async move { (number, table.execute(task).await) });
            }
        }
        let finished = tokio::select! {
            biased;
            () = run.stop.asked() => {
                end = Some(End::Stopped);
                None
            }
            finished = running.next() => finished,
        };
        let Some((number, result)) = finished else {
            break;
        };
        done.insert(number, result?);
    }
    // Adapting indices makes a commit long, and a stop has little time.
    if end == Some(End::Stopped) && !run.found.indices.is_empty() {
        done.clear();
    }
    Ok((done, end.unwrap_or(End::Whole)))
}

/// Whether something keeps the next task from being started.
fn before_task(
    run: &Run<'_>,
    committed: Rewrite,
    started: Rewrite,
    next: Rewrite,
    batch_began: Instant,
) -> Option<End> {
    if run.out_of_time() {
        return Some(End::Budget(BudgetKind::TimeBudgetSeconds));
    }
    let batching = Batching {
        max_bytes: run.spec.max_bytes_to_rewrite,
        batch_bytes: run.options.compaction.batch_bytes,
    };
    let batch = started.and(next);
    if batching.above_budget(committed, batch) {
        return Some(End::Budget(BudgetKind::MaxBytesToRewrite));
    }
    let full = batching.is_full(batch) || batch_began.elapsed() >= BATCH_TIME;
    (full && started.tasks > 0).then_some(End::Full)
}

/// How many bytes a batch and a run hold. A task whose size is not known fills a batch of its
/// own and fits into no budget.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batching {
    /// Bytes of all batches.
    pub(super) max_bytes: Option<u64>,
    /// Bytes of one.
    pub(super) batch_bytes: u64,
}

impl Batching {
    /// Whether a batch would go beyond the budget of the run.
    pub(super) fn above_budget(self, committed: Rewrite, batch: Rewrite) -> bool {
        self.max_bytes
            .is_some_and(|limit| committed.and(batch).bytes.is_none_or(|bytes| bytes > limit))
    }

    /// Whether a batch would be too large, if it is not the first task alone.
    pub(super) fn is_full(self, batch: Rewrite) -> bool {
        batch.bytes.is_none_or(|bytes| bytes > self.batch_bytes)
    }
}

/// Notes what a budget left.
fn leave(progress: &mut Progress, stats: &mut CompactionStats, left: Rewrite, reason: BudgetKind) {
    if progress.committed.tasks == 0 {
        stats.status = PhaseStatus::BudgetReached;
        if reason == BudgetKind::MaxBytesToRewrite {
            stats.no_task_reason = Some(NoTaskReason::BudgetBelowFirstTask);
        }
    }
    let remaining = progress.leave(reason);
    remaining.tasks = left.tasks;
    remaining.fragments = left.fragments_removed;
    remaining.bytes = left.bytes;
}

/// What the phase comes to. Without anything committed, the plan stands as it was.
async fn finish(
    table: &Table,
    progress: &mut Progress,
    done: Rewrite,
    stats: &mut CompactionStats,
) {
    match table.counts().await {
        Ok(counts) => {
            let after = counts.fragments;
            let promised = progress.committed;
            let expected = (after + promised.fragments_added).saturating_sub(done.fragments_added);
            if stats.batches > 0 || progress.error.is_none() {
                stats.planned = work(promised, expected);
            }
            stats.actual = work(done, after);
        }
        Err(fault) => {
            stats.actual = work(done, stats.actual.fragments_after);
            progress.error.get_or_insert(fault);
        }
    }
    if stats.batches > 0 {
        stats.status = PhaseStatus::Done;
        stats.no_task_reason = None;
    }
    if let Some(error) = &progress.error {
        stats.status = Progress::status_of(error);
    }
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
        batches: 0,
        conflicts: 0,
        duration_ms: 0,
    }
}
