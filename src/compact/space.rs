//! Is there room for what a run writes? Asked before anything is written.
//!
//! A rewrite stands beside what it replaces until the retention has passed, and so do the
//! indices that it touches.

use super::rewrite::Batching;
use crate::error::{ErrorKind, GuardError, Result};
use crate::report::text::bytes;
use crate::spec::CompactSpec;
use crate::table::Table;
use crate::table::planning::RewriteOptions;
use crate::table::rewrite::Rewrite;
use crate::table::snapshot::Snapshot;

/// Refuses a plan that the volume has no room for. Where the free space is not known, as on an
/// object store, or a size is not recorded, nothing is judged.
///
/// # Errors
/// `insufficient_space`, with both numbers.
pub(super) async fn check(
    spec: &CompactSpec,
    options: &RewriteOptions,
    table: &Table,
    found: &Snapshot,
) -> Result<()> {
    // A prune writes nothing, and on a full volume is just what is wanted.
    if !found.plan.commits() {
        return Ok(());
    }
    let Some(free) = table.free_bytes() else {
        return Ok(());
    };
    let Some(needed) = needed(spec, options, table, found).await? else {
        return Ok(());
    };
    if needed <= free {
        return Ok(());
    }
    Err(GuardError::in_own_words(
        ErrorKind::InsufficientSpace,
        format!(
            "the run may write {}, and the volume of the table has {} free",
            bytes(needed),
            bytes(free)
        ),
    )
    .hint("Nothing was changed. Make room, or bound the run with max_bytes_to_rewrite. To only prune, which frees space: set it to 1, and indices to {\"merge_segments\":\"never\",\"catch_up\":false}.")
    .with("needed_bytes", needed)
    .with("free_bytes", free))
}

/// Bytes that the run writes at most, by its budget; none where a size is not recorded.
async fn needed(
    spec: &CompactSpec,
    options: &RewriteOptions,
    table: &Table,
    found: &Snapshot,
) -> Result<Option<u64>> {
    let plan = &found.plan;
    let (rewritten, batches) = if plan.compaction.tasks == 0 {
        (Some(0), 0)
    } else if plan.compaction.after_index_merge {
        // Lance plans the tasks when the segments are merged, and so not yet.
        let limit = spec.max_bytes_to_rewrite.unwrap_or(u64::MAX);
        let rewritten = plan.compaction.bytes_to_rewrite.map(|b| b.min(limit));
        (rewritten, most_batches(rewritten, options, found))
    } else {
        let tasks = table.plan_rewrite(options).await?;
        let expected = tasks.tasks.iter().map(|task| task.expected);
        let (sum, batches) = sum_within_budget(expected, spec, options);
        (sum.bytes, batches)
    };
    let Some(mut needed) = rewritten else {
        return Ok(None);
    };
    for index in &found.indices {
        let name = &index.fact.name;
        let built_anew = plan.index_catch_ups.contains(name)
            || plan.index_merges.iter().any(|merge| &merge.name == name);
        // Each commit of moved rows writes an index anew.
        let times = batches + u64::from(built_anew);
        if times > 0 {
            let Some(size) = index.fact.bytes else {
                return Ok(None);
            };
            needed = needed.saturating_add(size.saturating_mul(times));
        }
    }
    Ok(Some(needed))
}

/// What the tasks come to that a run starts, and in how many batches, by the rule of the run
/// itself. How long a batch takes, which may end it as well, is not known.
fn sum_within_budget(
    tasks: impl Iterator<Item = Rewrite>,
    spec: &CompactSpec,
    options: &RewriteOptions,
) -> (Rewrite, u64) {
    let batching = Batching {
        max_bytes: spec.max_bytes_to_rewrite,
        batch_bytes: options.compaction.batch_bytes,
    };
    let (mut committed, mut batch, mut batches) = (Rewrite::NOTHING, Rewrite::NOTHING, 0);
    for task in tasks {
        if batching.above_budget(committed, batch.and(task)) {
            break;
        }
        if batch.tasks > 0 && batching.is_full(batch.and(task)) {
            committed = committed.and(std::mem::take(&mut batch));
            batch = Rewrite::NOTHING;
        }
        batches += u64::from(batch.tasks == 0);
        batch = batch.and(task);
    }
    (committed.and(batch), batches)
}

/// Two batches that follow each other hold more than one batch's bytes together.
fn most_batches(rewritten: Option<u64>, options: &RewriteOptions, found: &Snapshot) -> u64 {
    let limit = options.compaction.batch_bytes.max(1);
    match rewritten {
        Some(bytes) if bytes <= limit => 1,
        Some(bytes) => (bytes / limit).saturating_mul(2).saturating_add(1),
        None => u64::MAX,
    }
    .min(found.plan.compaction.tasks)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sum(sizes: &[u64], max: Option<u64>, batch: u64) -> (u64, u64, u64) {
        let spec: CompactSpec = serde_json::from_value(json!({
            "spec_version": 1, "step": "compact", "db_uri": "/db", "table_name": "t",
            "max_bytes_to_rewrite": max, "compaction": {"batch_bytes": batch},
        }))
        .unwrap();
        let options = RewriteOptions::from(&spec);
        let tasks = sizes.iter().map(|bytes| Rewrite {
            tasks: 1,
            bytes: Some(*bytes),
            ..Rewrite::NOTHING
        });
        let (sum, batches) = sum_within_budget(tasks, &spec, &options);
        (sum.tasks, sum.bytes.unwrap(), batches)
    }

    #[test]
    fn a_budget_needs_room_only_for_the_tasks_that_fit() {
        assert_eq!(sum(&[40, 40, 40], None, 1000), (3, 120, 1));
        assert_eq!(sum(&[40, 40, 40], Some(100), 1000), (2, 80, 1));
        assert_eq!(sum(&[40, 40, 40], Some(39), 1000), (0, 0, 0));
        assert_eq!(sum(&[], None, 1000), (0, 0, 0));
    }

    #[test]
    fn each_batch_is_counted_for_the_indices_that_it_writes() {
        assert_eq!(sum(&[40, 40, 40], None, 80), (3, 120, 2));
        assert_eq!(sum(&[40, 40, 40], None, 1), (3, 120, 3));
        assert_eq!(sum(&[40, 40, 40], Some(80), 40), (2, 80, 2));
    }
}
