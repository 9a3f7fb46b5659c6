//! The plan of a compact step on the version that is read.
//!
//! ```text
//! fragments, indices ──► lance's plan ────────────┐
//!                  └───► grouping, as if the      ├─► what gives fewer fragments ─► Plan
//!                        segments were merged ────┘
//! ```

use std::collections::BTreeSet;

use lance::dataset::optimize::{
    CompactionOptions, CompactionPlan, IndexRemapMode, plan_compaction,
};
use lance_table::format::Fragment;
use sha2::{Digest, Sha256};

use super::fragments::FragmentSketch;
use super::grouping::{GroupingOptions, fragments_after, groups};
use super::indices::IndexSketch;
use super::target::Target;
use super::versions::Retention;
use super::{Table, fault};
use crate::error::Result;
use crate::report::plan::{NoTaskReason, Plan, PlannedCompaction, PlannedIndexMerge, PlannedPrune};
use crate::report::table::RefFacts;
use crate::spec::tuning::{CompactionTuning, IndexTuning, MergeSegments};

/// What decides the shape of the table after a compact step.
#[derive(Debug, Clone, PartialEq)]
pub struct RewriteOptions {
    /// Rows that a fragment should have.
    pub target_rows: u64,
    /// Data bytes that so many rows may take; without it rows alone decide.
    pub target_bytes: Option<u64>,
    /// How compaction works.
    pub compaction: CompactionTuning,
    /// What is done to indices.
    pub indices: IndexTuning,
}

impl RewriteOptions {
    /// The options as lance takes them. Plan and execution use the very same.
    fn for_lance(&self, target: Target) -> CompactionOptions {
        let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        CompactionOptions {
            target_rows_per_fragment: size(target.rows),
            materialize_deletions: true,
            materialize_deletions_threshold: self.deletion_threshold(),
            batch_size: self.compaction.batch_rows.map(size),
            io_buffer_size: self.compaction.io_buffer_bytes,
            // The memory of the direct mode grows with the rows of the table.
            index_remap_mode: IndexRemapMode::Compact,
            ..CompactionOptions::default()
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "lance compares a share of 0 to 1 in f32"
    )]
    fn deletion_threshold(&self) -> f32 {
        (self.compaction.deletion_threshold_percent / 100.0) as f32
    }

    /// The options as [`groups`] takes them.
    #[must_use]
    pub fn grouping(&self, target: Target) -> GroupingOptions {
        GroupingOptions {
            target_rows: target.rows,
            deletion_threshold: self.deletion_threshold(),
        }
    }
}

/// Everything that a plan is made of.
#[derive(Debug, Clone, Copy)]
pub struct PlanInput<'a> {
    /// Fragments of the version.
    pub fragments: &'a [FragmentSketch],
    /// Its indices.
    pub indices: &'a [IndexSketch],
    /// The history, cut by the retention.
    pub retention: &'a Retention,
    /// What holds versions back.
    pub refs: &'a RefFacts,
    /// What decides the shape afterwards.
    pub options: &'a RewriteOptions,
}

impl PlanInput<'_> {
    fn target(&self) -> Target {
        self.options.target(self.fragments)
    }
}

impl Table {
    /// lance's own plan on the version that is read.
    pub(super) async fn compaction_plan(
        &self,
        options: &RewriteOptions,
        target: Target,
    ) -> Result<CompactionPlan> {
        plan_compaction(&self.dataset, &options.for_lance(target))
            .await
            .map_err(|e| fault::of_lance(&e, "planning the compaction"))
    }

    /// The groups of fragments, by id, that lance itself would rewrite now, one for each task.
    ///
    /// # Errors
    /// Where a manifest cannot be read.
    pub async fn groups_of_lance(&self, options: &RewriteOptions) -> Result<Vec<Vec<u64>>> {
        let target = self.target(options).await?;
        let plan = self.compaction_plan(options, target).await?;
        Ok(plan
            .compaction_tasks()
            .map(|task| task.task.fragments.iter().map(|f| f.id).collect())
            .collect())
    }

    /// The plan of a compact step, without the prune estimate.
    ///
    /// # Errors
    /// Where a manifest cannot be read.
    pub async fn plan(&self, input: PlanInput<'_>) -> Result<Plan> {
        let target = input.target();
        let lance_plan = self.compaction_plan(input.options, target).await?;
        let now: Vec<Vec<usize>> = lance_plan
            .compaction_tasks()
            .map(|task| positions(&task.task.fragments, input.fragments).collect())
            .collect();
        let now = Outcome::of(now, &input);
        let merging = input.options.indices.merge_segments == MergeSegments::WhenBlocking;
        let merged = Outcome::of(
            groups(
                input.fragments,
                &coverage(input.fragments, input.indices, merging),
                input.options.grouping(target),
            ),
            &input,
        );
        // A merge that lets nothing more be compacted would rewrite an index for nothing.
        let merge_helps = merging && merged.fragments_expected < now.fragments_expected;
        let index_merges: Vec<PlannedIndexMerge> = if merge_helps {
            input
                .indices
                .iter()
                .filter(|i| i.mergeable && (i.fact.segments > 1 || i.is_behind()))
                .map(|i| PlannedIndexMerge {
                    name: i.fact.name.clone(),
                    segments: i.fact.segments,
                    rows_unindexed: i.rows_unindexed(),
                })
                .collect()
        } else {
            Vec::new()
        };
        let index_catch_ups: Vec<String> = input
            .indices
            .iter()
            .filter(|i| input.options.indices.catch_up && i.is_behind())
            .map(|i| i.fact.name.clone())
            .filter(|name| index_merges.iter().all(|merge| &merge.name != name))
            .collect();
        let reason = no_task_reason(&input, &now, merge_helps);
        let outcome = if merge_helps { merged } else { now };
        let changes = outcome.tasks > 0 || !index_merges.is_empty() || !index_catch_ups.is_empty();
        Ok(Plan {
            plan_id: plan_id(self, &input, &outcome),
            read_version: self.version(),
            prune: planned_prune(&input, &outcome, changes),
            free_bytes_needed: free_bytes_needed(&input, &outcome, &index_merges, &index_catch_ups),
            compaction: PlannedCompaction {
                tasks: outcome.tasks,
                no_task_reason: reason.filter(|_| outcome.tasks == 0),
                after_index_merge: merge_helps,
                target_rows: target.rows,
                fragments_to_rewrite: outcome.fragments_rewritten,
                fragments_expected: outcome.fragments_expected,
                rows_to_rewrite: outcome.rows,
                tombstones_to_clear: outcome.tombstones,
                bytes_to_rewrite: outcome.bytes,
            },
            index_merges,
            index_catch_ups,
        })
    }
}

/// What rewriting some groups of fragments comes to.
struct Outcome {
    groups: Vec<Vec<usize>>,
    tasks: u64,
    fragments_rewritten: u64,
    fragments_expected: u64,
    rows: u64,
    tombstones: u64,
    bytes: Option<u64>,
}

impl Outcome {
    fn of(groups: Vec<Vec<usize>>, input: &PlanInput<'_>) -> Self {
        let target = input.target().rows;
        let rewritten = || groups.iter().flatten().map(|i| &input.fragments[*i]);
        let count = rewritten().count() as u64;
        let added: u64 = groups
            .iter()
            .map(|group| {
                let live = group.iter().map(|i| input.fragments[*i].live_rows()).sum();
                fragments_after(live, target)
            })
            .sum();
        Self {
            tasks: groups.len() as u64,
            fragments_rewritten: count,
            fragments_expected: input.fragments.len() as u64 - count + added,
            rows: rewritten().map(FragmentSketch::live_rows).sum(),
            tombstones: rewritten().map(|f| f.deleted_rows).sum(),
            bytes: rewritten().map(|f| f.bytes).sum(),
            groups,
        }
    }
}

/// lance's fragments as we know them.
pub(super) fn known<'a>(
    task: &'a [Fragment],
    fragments: &'a [FragmentSketch],
) -> impl Iterator<Item = &'a FragmentSketch> {
    positions(task, fragments).map(|position| &fragments[position])
}

/// The positions of lance's fragments among ours.
fn positions<'a>(
    task: &'a [Fragment],
    fragments: &'a [FragmentSketch],
) -> impl Iterator<Item = usize> {
    task.iter()
        .filter_map(|f| fragments.binary_search_by_key(&f.id, |known| known.id).ok())
}

/// For each fragment the index segments that cover it. Where segments are merged, an index
/// that can be merged covers every fragment alike, and so tells none apart.
fn coverage(
    fragments: &[FragmentSketch],
    indices: &[IndexSketch],
    merging: bool,
) -> Vec<Vec<usize>> {
    let segments: Vec<&BTreeSet<u64>> = indices
        .iter()
        .filter(|index| !(merging && index.mergeable))
        .flat_map(|index| &index.segments)
        .collect();
    fragments
        .iter()
        .map(|fragment| {
            segments
                .iter()
                .enumerate()
                .filter(|(_, covered)| covered.contains(&fragment.id))
                .map(|(position, _)| position)
                .collect()
        })
        .collect()
}

/// Why lance plans nothing, as far as its rules tell.
fn no_task_reason(input: &PlanInput<'_>, now: &Outcome, merge_helps: bool) -> Option<NoTaskReason> {
    if now.tasks > 0 {
        return None;
    }
    if input.fragments.is_empty() {
        return Some(NoTaskReason::EmptyTable);
    }
    let uncovered = vec![Vec::new(); input.fragments.len()];
    let apart = !groups(
        input.fragments,
        &uncovered,
        input.options.grouping(input.target()),
    )
    .is_empty();
    if apart {
        let merging = input.options.indices.merge_segments == MergeSegments::WhenBlocking;
        return Some(if !merging {
            NoTaskReason::MergeSwitchedOff
        } else if !merge_helps {
            NoTaskReason::IndexNotMergeable
        } else if input.indices.iter().any(|i| i.fact.segments > 1) {
            NoTaskReason::IndexSegments
        } else {
            NoTaskReason::MixedIndexCoverage
        });
    }
    if input.fragments.iter().any(|f| f.deleted_rows > 0) {
        return Some(NoTaskReason::BelowDeletionThreshold);
    }
    Some(NoTaskReason::AtTargetSize)
}

fn planned_prune(input: &PlanInput<'_>, outcome: &Outcome, changes: bool) -> PlannedPrune {
    let stale = input.retention.stale().len() as u64;
    let prunable = input.retention.prunable(input.refs).len() as u64;
    let kept = input.retention.existing.len() as u64 - stale;
    PlannedPrune {
        versions: prunable,
        versions_pinned: stale - prunable,
        // The version that is current now is superseded only if the step changes something.
        versions_later: if changes {
            kept
        } else {
            kept.saturating_sub(1)
        },
        estimate: None,
        bytes_freed_later: outcome.bytes,
    }
}

/// What is written beside what is there: the rewritten rows, every index once for the rows that
/// move, and the indices that are merged or catch up once more. None where a size is not
/// recorded.
fn free_bytes_needed(
    input: &PlanInput<'_>,
    outcome: &Outcome,
    merges: &[PlannedIndexMerge],
    catch_ups: &[String],
) -> Option<u64> {
    let mut needed = outcome.bytes?;
    for index in input.indices {
        let fact = &index.fact;
        let built_anew =
            catch_ups.contains(&fact.name) || merges.iter().any(|merge| merge.name == fact.name);
        let times = u64::from(outcome.tasks > 0) + u64::from(built_anew);
        if times > 0 {
            needed += fact.bytes? * times;
        }
    }
    Some(needed)
}

/// The same version of the same table with the same groups and prune has the same id.
fn plan_id(table: &Table, input: &PlanInput<'_>, outcome: &Outcome) -> String {
    let mut hash = Sha256::new();
    let text = format!(
        "{}\n{}\n{}\n{:?}\n{}",
        table.id().key,
        table.version(),
        input.target().rows,
        outcome.groups,
        input.retention.oldest_kept,
    );
    hash.update(text.as_bytes());
    let digest = hash.finalize();
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
