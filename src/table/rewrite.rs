//! Rewrites fragments as lance plans it.

use std::collections::HashMap;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use lance::dataset::index::DatasetIndexRemapperOptions;
use lance::dataset::optimize::{CompactionTask, commit_compaction};

use super::planning::RewriteOptions;
use super::{Table, fault};
use crate::error::Result;

/// What one compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Tasks.
    pub tasks: u64,
    /// Fragments that were replaced.
    pub fragments_removed: u64,
    /// Fragments that replace them.
    pub fragments_added: u64,
    /// Deleted rows that went.
    pub tombstones_cleared: u64,
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
        let tasks: Vec<CompactionTask> = plan.compaction_tasks().collect();
        if tasks.is_empty() {
            return Ok(Rewritten::default());
        }
        let mut done = Rewritten {
            tasks: tasks.len() as u64,
            ..Rewritten::default()
        };
        let dataset = &self.dataset;
        let results: Vec<_> = stream::iter(&tasks)
            .map(|task| task.execute(dataset))
            .buffered(options.compaction.concurrency.max(1) as usize)
            .try_collect()
            .await
            .map_err(|e| fault::of_lance(&e, "rewriting fragments"))?;
        for result in &results {
            done.tombstones_cleared += result
                .original_fragments
                .iter()
                .filter_map(|f| f.deletion_file.as_ref()?.num_deleted_rows)
                .sum::<usize>() as u64;
        }
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
        done.fragments_removed = metrics.fragments_removed as u64;
        done.fragments_added = metrics.fragments_added as u64;
        Ok(done)
    }
}
