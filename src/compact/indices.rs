//! The two index phases: segments that block compaction before it, rows that no segment covers
//! after it.

use std::time::{Duration, Instant};

use super::progress::Progress;
use super::retry::Retries;
use super::{Run, elapsed_ms, lost_race};
use crate::error::{ErrorKind, Result};
use crate::report::approval::Approval;
use crate::report::compact::{BudgetKind, IndexLeftBehind, IndexPhase, IndexWork, PhaseStatus};
use crate::stop::Stop;
use crate::table::Table;
use crate::table::fragments::FragmentSketch;
use crate::table::indices::{IndexSketch, MIN_ROWS_TO_TRAIN};

/// How long an index merge may go on after a stop was asked.
const GRACE: Duration = Duration::from_secs(4);

/// Waits until a stop was asked, and then for so long.
async fn stopped_for(stop: &Stop, time: Duration) {
    stop.asked().await;
    tokio::time::sleep(time).await;
}

/// Merges the segments that the plan names.
pub async fn merge(run: &Run<'_>, table: &mut Table, progress: &mut Progress) -> IndexPhase {
    let names: Vec<String> = planned_merge(run).planned.indices;
    let phase = IndexPhase {
        planned: planned_merge(run).planned,
        ..empty(PhaseStatus::NothingToDo)
    };
    if names.is_empty() {
        return phase;
    }
    if run.out_of_time() {
        let remaining = progress.leave(BudgetKind::TimeBudgetSeconds);
        remaining.indices.extend(names);
        return IndexPhase {
            status: PhaseStatus::BudgetReached,
            ..phase
        };
    }
    let wanted = |index: &IndexSketch| {
        names.contains(&index.fact.name)
            && index.mergeable
            && (index.segments.len() > 1 || index.is_behind())
    };
    work(run, table, progress, phase, wanted).await
}

/// Brings every index up to date.
pub async fn catch_up(run: &Run<'_>, table: &mut Table, progress: &mut Progress) -> IndexPhase {
    let phase = IndexPhase {
        planned: planned_catch_up(run).planned,
        ..empty(PhaseStatus::NothingToDo)
    };
    if progress.error.is_some() {
        return IndexPhase {
            status: PhaseStatus::Skipped,
            ..phase
        };
    }
    let wanted = run.spec.indices.catch_up;
    let in_time = !run.out_of_time();
    let mut phase = if wanted && in_time {
        work(run, table, progress, phase, IndexSketch::is_behind).await
    } else if wanted {
        phase
    } else {
        IndexPhase {
            status: PhaseStatus::SwitchedOff,
            ..phase
        }
    };
    if progress.error.is_none() {
        match sketches(table).await {
            Ok(indices) => {
                let failed: Vec<String> =
                    phase.left_behind.iter().map(|i| i.name.clone()).collect();
                let behind = indices
                    .iter()
                    .filter(|index| !failed.contains(&index.fact.name))
                    .filter_map(|index| left_behind(index, wanted, in_time));
                phase.left_behind.extend(behind);
                let late = indices
                    .iter()
                    .filter(|i| wanted && !in_time && i.is_behind());
                for index in late {
                    phase.status = PhaseStatus::BudgetReached;
                    let remaining = progress.leave(BudgetKind::TimeBudgetSeconds);
                    if !remaining.indices.contains(&index.fact.name) {
                        remaining.indices.push(index.fact.name.clone());
                    }
                }
            }
            Err(fault) => {
                phase.status = PhaseStatus::Failed;
                progress.error = Some(fault);
            }
        }
    }
    phase
}

/// Merges the indices that are wanted, and again on the newest version after a lost race.
async fn work(
    run: &Run<'_>,
    table: &mut Table,
    progress: &mut Progress,
    mut phase: IndexPhase,
    wanted: impl Fn(&IndexSketch) -> bool,
) -> IndexPhase {
    let start = Instant::now();
    let mut retries = Retries::default();
    loop {
        let began = Instant::now();
        match attempt(run, table, progress, &wanted).await {
            Ok(actual) => {
                if !actual.indices.is_empty() {
                    phase.status = PhaseStatus::Done;
                }
                phase.actual = actual;
                break;
            }
            Err(mut fault) => {
                lost_race::note(table, &mut fault, progress).await;
                let (limit, attempt) = (run.spec.conflict_retries, began.elapsed());
                if retries.again(&mut fault, limit, attempt, run.stop).await {
                    continue;
                }
                // An index that lance cannot rebuild is no reason to leave all else undone: the
                // others are merged one by one, and compaction works around it.
                if fault.kind == ErrorKind::Internal {
                    one_by_one(run, table, progress, &wanted, &mut phase).await;
                    break;
                }
                phase.status = Progress::status_of(&fault);
                progress.error = Some(fault);
                break;
            }
        }
    }
    phase.duration_ms = elapsed_ms(start);
    phase
}

/// Merges each wanted index for itself, and names those that lance cannot rebuild.
async fn one_by_one(
    run: &Run<'_>,
    table: &mut Table,
    progress: &mut Progress,
    wanted: impl Fn(&IndexSketch) -> bool,
    phase: &mut IndexPhase,
) {
    let indices = match sketches(table).await {
        Ok(indices) => indices,
        Err(fault) => {
            phase.status = Progress::status_of(&fault);
            progress.error = Some(fault);
            return;
        }
    };
    let wanted_indices = indices.iter().filter(|index| wanted(index));
    let names: Vec<String> = wanted_indices.map(|i| i.fact.name.clone()).collect();
    for name in names {
        let this = |index: &IndexSketch| index.fact.name == name && wanted(index);
        match attempt(run, table, progress, this).await {
            Ok(actual) => {
                if !actual.indices.is_empty() {
                    phase.status = PhaseStatus::Done;
                }
                phase.actual.rows_covered += actual.rows_covered;
                phase.actual.segments_merged += actual.segments_merged;
                phase.actual.indices.extend(actual.indices);
            }
            Err(fault) if fault.kind == ErrorKind::Internal => {
                phase.left_behind.push(IndexLeftBehind {
                    name,
                    reason: fault.message,
                });
            }
            // A store that fails is no fault of the index, and must not look like a success.
            Err(fault) => {
                phase.status = Progress::status_of(&fault);
                progress.error = Some(fault);
                return;
            }
        }
    }
}

async fn attempt(
    run: &Run<'_>,
    table: &mut Table,
    progress: &mut Progress,
    wanted: impl Fn(&IndexSketch) -> bool,
) -> Result<IndexWork> {
    run.stop.check()?;
    table.refresh().await?;
    let before: Vec<IndexSketch> = sketches(table).await?.into_iter().filter(wanted).collect();
    let version = table.version();
    // An index that became old only now was not in the plan that was checked at first.
    run.ceiling.check(&Approval {
        indices: before.iter().map(|i| i.fact.name.clone()).collect(),
        ..run.planned.clone()
    })?;
    let merging = table.merge_indices(&before, run.identity.properties());
    tokio::select! {
        result = merging => result?,
        // lance builds and commits in one call. A short one gets its time; a long one is most
        // likely still building, and what it wrote is referred to by nothing.
        () = stopped_for(run.stop, GRACE) => return Err(run.stop.error()),
    }
    if table.version() == version {
        return Ok(IndexWork::default());
    }
    progress.changed = true;
    let fragments = table.fragment_sketches().await?;
    let after = table.index_sketches(&fragments).await?;
    let mut work = IndexWork::default();
    for old in before {
        let Some(new) = after.iter().find(|i| i.fact.name == old.fact.name) else {
            continue;
        };
        let merged = old.fact.segments.saturating_sub(new.fact.segments);
        let covered = rows_newly_covered(&old, new, &fragments);
        // A commit that covers nothing more did nothing for the index.
        if merged + covered > 0 {
            work.segments_merged += merged;
            work.rows_covered += covered;
            work.indices.push(old.fact.name);
        }
    }
    Ok(work)
}

/// Rows that no segment covered before and one covers after, whatever others wrote meanwhile.
fn rows_newly_covered(old: &IndexSketch, new: &IndexSketch, fragments: &[FragmentSketch]) -> u64 {
    let covers = |index: &IndexSketch, id| index.segments.iter().any(|s| s.contains(&id));
    fragments
        .iter()
        .filter(|fragment| covers(new, fragment.id) && !covers(old, fragment.id))
        .map(FragmentSketch::live_rows)
        .sum()
}

async fn sketches(table: &Table) -> Result<Vec<IndexSketch>> {
    table
        .index_sketches(&table.fragment_sketches().await?)
        .await
}

/// Why an index does not cover every row after the phase; none if it does.
fn left_behind(index: &IndexSketch, wanted: bool, in_time: bool) -> Option<IndexLeftBehind> {
    let rows = index.rows_unindexed();
    if rows == 0 {
        return None;
    }
    let reason = if !wanted {
        format!("{rows} rows are not covered, and the spec asks for no catch-up")
    } else if !index.mergeable {
        format!("{rows} rows are not covered, and this build cannot rewrite an index of this kind")
    } else if !in_time && index.is_behind() {
        format!("{rows} rows are not covered, and the time budget was used up")
    } else if index.lacks_rows_to_train() {
        format!("not enough rows to train: it needs {MIN_ROWS_TO_TRAIN}, the table has {rows}")
    } else if index.futile {
        format!(
            "{rows} rows are not covered: built on all of them, it covers none, as where their vectors are null"
        )
    } else {
        format!("{rows} rows are not covered; lance left the index as it was")
    };
    Some(IndexLeftBehind {
        name: index.fact.name.clone(),
        reason,
    })
}

/// The merge as it is planned.
pub fn planned_merge(run: &Run<'_>) -> IndexPhase {
    let merges = &run.found.plan.index_merges;
    planned(IndexWork {
        indices: merges.iter().map(|m| m.name.clone()).collect(),
        rows_covered: merges.iter().map(|m| m.rows_unindexed).sum(),
        segments_merged: merges.iter().map(|m| m.segments.saturating_sub(1)).sum(),
    })
}

/// The catch-up as it is planned.
pub fn planned_catch_up(run: &Run<'_>) -> IndexPhase {
    let names = &run.found.plan.index_catch_ups;
    let behind = || {
        run.found
            .indices
            .iter()
            .filter(|i| names.contains(&i.fact.name))
    };
    planned(IndexWork {
        indices: names.clone(),
        rows_covered: behind().map(IndexSketch::rows_unindexed).sum(),
        segments_merged: behind().map(|i| i.fact.segments.saturating_sub(1)).sum(),
    })
}

fn planned(work: IndexWork) -> IndexPhase {
    let status = if work.indices.is_empty() {
        PhaseStatus::NothingToDo
    } else {
        PhaseStatus::Planned
    };
    IndexPhase {
        planned: work,
        ..empty(status)
    }
}

fn empty(status: PhaseStatus) -> IndexPhase {
    IndexPhase {
        status,
        planned: IndexWork::default(),
        actual: IndexWork::default(),
        left_behind: Vec::new(),
        duration_ms: 0,
    }
}
