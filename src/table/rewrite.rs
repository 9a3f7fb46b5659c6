//! Rewrites fragments as lance plans it.

use std::collections::HashMap;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use lance::dataset::index::DatasetIndexRemapperOptions;
use lance::dataset::optimize::{CompactionTask, commit_compaction};

use super::fragments::FragmentSketch;
use super::grouping::fragments_after;
use super::planning::{RewriteOptions, known};
use super::{Table, fault};
use crate::error::Result;

/// What one compaction comes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// Tasks.
    pub tasks: u64,
    /// Fragments that are replaced.
    pub fragments_removed: u64,
    /// Fragments that replace them.
    pub fragments_added: u64,
    /// Deleted rows that go.
    pub tombstones_cleared: u64,
}

/// What a compaction planned, and what it did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// What was planned on the version that was read.
    pub planned: Rewrite,
    /// What was done.
    pub actual: Rewrite,
}

impl Table {
    /// Plans on the version that is read, rewrites, and commits; moves on to the version that
    /// this made. Without a task nothing is written.
    ///
    /// # Errors
    /// `commit_conflict` where another writer won; then nothing was committed but the files
    /// written stay behind, unreferenced, and the table can be refreshed and tried again.
    pub async fn rewrite(
        &mut self,
        options: &RewriteOptions,
        properties: &HashMap<String, String>,
    ) -> Result<Rewritten> {
        let plan = self.compaction_plan(options).await?;
        let fragments = self.fragment_sketches().await?;
        let tasks: Vec<CompactionTask> = plan.compaction_tasks().collect();
        if tasks.is_empty() {
            return Ok(Rewritten::default());
        }
        let mut done = Rewritten {
            planned: planned(&tasks, &fragments, options.target_rows),
            actual: Rewrite {
                tasks: tasks.len() as u64,
                ..Rewrite::default()
            },
        };
        let dataset = &self.dataset;
        let results: Vec<_> = stream::iter(&tasks)
            .map(|task| task.execute(dataset))
            .buffered(options.compaction.concurrency.max(1) as usize)
            .try_collect()
            .await
            .map_err(|e| fault::of_lance(&e, "rewriting fragments"))?;
        done.actual.tombstones_cleared = results
            .iter()
            .flat_map(|result| known(&result.original_fragments, &fragments))
            .map(|fragment| fragment.deleted_rows)
            .sum();
        let mut commit_options = plan.options().clone();
        commit_options.transaction_properties = Some(Arc::new(properties.clone()));
        let metrics = commit_compaction(
            &mut self.dataset,
            results,
            Arc::new(DatasetIndexRemapperOptions::default()),
            &commit_options,
        )
        .await
        .map_err(|e| fault::of_lance(&e, "committing the compaction"))?;
        done.actual.fragments_removed = metrics.fragments_removed as u64;
        done.actual.fragments_added = metrics.fragments_added as u64;
        Ok(done)
    }
}

/// What some tasks come to, by lance's rule for the fragments that a task leaves.
fn planned(tasks: &[CompactionTask], fragments: &[FragmentSketch], target_rows: u64) -> Rewrite {
    let mut work = Rewrite {
        tasks: tasks.len() as u64,
        ..Rewrite::default()
    };
    for task in tasks {
        let mut live = 0;
        for fragment in known(&task.task.fragments, fragments) {
            live += fragment.live_rows();
            work.fragments_removed += 1;
            work.tombstones_cleared += fragment.deleted_rows;
        }
        work.fragments_added += fragments_after(live, target_rows);
    }
    work
}
