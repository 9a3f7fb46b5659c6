//! Rewrites fragments as lance plans it, in three parts: plan, carry out a task, commit.
//!
//! ```text
//! plan_rewrite ─► RewritePlan ─┬─► execute ─► RewriteDone ─┬─► commit_rewrite
//!                              └─► execute ─► RewriteDone ─┘
//! ```
//!
//! Any tasks of a plan can be committed, and the rest left. What is left can not be committed
//! afterwards: it is planned again on the version that the commit made.

use std::collections::HashMap;
use std::sync::Arc;

use lance::dataset::index::DatasetIndexRemapperOptions;
use lance::dataset::optimize::{
    CompactionOptions, CompactionTask, RewriteResult, commit_compaction,
};

use super::grouping::fragments_after;
use super::planning::{RewriteOptions, known};
use super::{Table, fault};
use crate::error::Result;

/// What some rewriting comes to.
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
    /// Data bytes that are read and written again; none where a size is not recorded.
    pub bytes: Option<u64>,
}

impl Rewrite {
    /// No rewriting at all.
    pub const NOTHING: Self = Self {
        tasks: 0,
        fragments_removed: 0,
        fragments_added: 0,
        tombstones_cleared: 0,
        bytes: Some(0),
    };

    /// Whether it makes the table any better.
    #[must_use]
    pub const fn helps(&self) -> bool {
        self.fragments_added < self.fragments_removed || self.tombstones_cleared > 0
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            tasks: self.tasks + other.tasks,
            fragments_removed: self.fragments_removed + other.fragments_removed,
            fragments_added: self.fragments_added + other.fragments_added,
            tombstones_cleared: self.tombstones_cleared + other.tombstones_cleared,
            bytes: self
                .bytes
                .zip(other.bytes)
                .map(|(a, b)| a.saturating_add(b)),
        }
    }
}

/// The tasks that lance plans on one version, in its order.
#[derive(Debug, Clone)]
pub struct RewritePlan {
    /// The tasks.
    pub tasks: Vec<RewriteTask>,
    /// Rows that each fragment should have.
    pub target_rows: u64,
    /// As lance froze them when it planned; the commit takes the very same.
    options: CompactionOptions,
}

impl RewritePlan {
    /// All tasks together.
    #[must_use]
    pub fn total(&self) -> Rewrite {
        self.sum(|_| true)
    }

    /// Some tasks together, chosen by their number.
    #[must_use]
    pub fn sum(&self, chosen: impl Fn(usize) -> bool) -> Rewrite {
        let tasks = self.tasks.iter().enumerate();
        tasks
            .filter(|(number, _)| chosen(*number))
            .fold(Rewrite::NOTHING, |sum, (_, task)| sum.and(task.expected))
    }
}

/// One task: some neighbouring fragments that are rewritten together.
#[derive(Debug, Clone)]
pub struct RewriteTask {
    task: CompactionTask,
    /// What the task comes to, by lance's rule for the fragments that it leaves.
    pub expected: Rewrite,
}

/// A task that was carried out and waits for its commit.
#[derive(Debug, Clone)]
pub struct RewriteDone {
    result: RewriteResult,
    tombstones: u64,
}

impl Table {
    /// Plans on the version that is read.
    ///
    /// # Errors
    /// Where a manifest cannot be read.
    pub async fn plan_rewrite(&self, options: &RewriteOptions) -> Result<RewritePlan> {
        let fragments = self.fragment_sketches().await?;
        let target = options.target(&fragments);
        let plan = self.compaction_plan(options, target).await?;
        let tasks = plan
            .compaction_tasks()
            .map(|task| {
                let mut expected = Rewrite {
                    tasks: 1,
                    ..Rewrite::NOTHING
                };
                let mut live = 0;
                for fragment in known(&task.task.fragments, &fragments) {
                    live += fragment.live_rows();
                    expected = expected.and(Rewrite {
                        fragments_removed: 1,
                        tombstones_cleared: fragment.deleted_rows,
                        bytes: fragment.bytes,
                        ..Rewrite::NOTHING
                    });
                }
                expected.fragments_added = fragments_after(live, target.rows);
                RewriteTask { task, expected }
            })
            .collect();
        Ok(RewritePlan {
            tasks,
            target_rows: target.rows,
            options: plan.options().clone(),
        })
    }

    /// Writes the new files of a task. Until the commit no version refers to them.
    ///
    /// # Errors
    /// What reading and writing data files can meet.
    pub async fn execute(&self, task: &RewriteTask) -> Result<RewriteDone> {
        let result = task
            .task
            .execute(&self.dataset)
            .await
            .map_err(|e| fault::of_lance(&e, "rewriting fragments"))?;
        Ok(RewriteDone {
            result,
            tombstones: task.expected.tombstones_cleared,
        })
    }

    /// Commits what was carried out of a plan on the version that is read, and moves on to the
    /// version that this makes. Nothing carried out commits nothing.
    ///
    /// # Errors
    /// `commit_conflict` where another writer won; then nothing was committed but the files
    /// written stay behind, unreferenced, and the table can be refreshed and planned again.
    pub async fn commit_rewrite(
        &mut self,
        plan: &RewritePlan,
        done: Vec<RewriteDone>,
        properties: &HashMap<String, String>,
    ) -> Result<Rewrite> {
        if done.is_empty() {
            return Ok(Rewrite::NOTHING);
        }
        let mut actual = Rewrite {
            tasks: done.len() as u64,
            tombstones_cleared: done.iter().map(|task| task.tombstones).sum(),
            ..Rewrite::NOTHING
        };
        let mut options = plan.options.clone();
        options.transaction_properties = Some(Arc::new(properties.clone()));
        let metrics = commit_compaction(
            &mut self.dataset,
            done.into_iter().map(|task| task.result).collect(),
            Arc::new(DatasetIndexRemapperOptions::default()),
            &options,
        )
        .await
        .map_err(|e| fault::of_lance(&e, "committing the compaction"))?;
        actual.fragments_removed = metrics.fragments_removed as u64;
        actual.fragments_added = metrics.fragments_added as u64;
        Ok(actual)
    }
}
