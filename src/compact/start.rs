//! How a run begins: what its phases share, and what is refused before anything is changed.

use std::time::{Duration, Instant};

use super::ceiling::Ceiling;
use super::identity::Identity;
use super::space;
use crate::audit::{hours, writers};
use crate::clock::Clock;
use crate::error::{ErrorKind, GuardError, Result};
use crate::report::approval::Approval;
use crate::report::baseline::VersionCounts;
use crate::spec::CompactSpec;
use crate::stop::Stop;
use crate::table::Table;
use crate::table::planning::RewriteOptions;
use crate::table::snapshot::Snapshot;

/// What the phases share.
pub(super) struct Run<'a> {
    pub(super) spec: &'a CompactSpec,
    pub(super) options: RewriteOptions,
    pub(super) identity: Identity,
    /// The table as the step found it.
    pub(super) found: Snapshot,
    /// The sizes of the plan on it.
    pub(super) planned: Approval,
    /// What they, and those of every later plan, may not exceed.
    pub(super) ceiling: Ceiling<'a>,
    pub(super) before: VersionCounts,
    /// When nothing more is started.
    pub(super) deadline: Option<Instant>,
    /// What asks the run to stop.
    pub(super) stop: &'a Stop,
}

impl<'a> Run<'a> {
    /// Looks at the table, and refuses what must not be compacted or was not approved.
    ///
    /// # Errors
    /// A damaged table, one that a commit would harm, and a plan above what was approved.
    pub(super) async fn start(
        spec: &'a CompactSpec,
        table: &Table,
        clock: &Clock,
        stop: &'a Stop,
    ) -> Result<Self> {
        let deadline = spec
            .time_budget_seconds
            .and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
        let options = RewriteOptions::from(spec);
        let cutoff = clock.evaluated_at - hours(spec.stale_version_retention_hours)?;
        let (_, damage) = table.storage_facts().await?;
        if let Some(first) = damage.first() {
            return Err(GuardError::new(
                ErrorKind::TableDamaged,
                format!("the table is damaged: {first}"),
            )
            .hint("Nothing was changed. Restore the file, or an older version of the table, and run again.")
            .with("damaged_files", damage.len()));
        }
        let mut found = table.snapshot(cutoff, &options).await?;
        let existing = &found.retention.existing;
        writers::must_be_quiet(table, existing, spec.quiet_minutes, clock.evaluated_at).await?;
        if found.plan.commits() {
            may_commit(spec, &found)?;
        }
        let ceiling = Ceiling(spec.approval.as_ref());
        // Lance's foretelling reads every manifest, so it is asked only where it counts.
        if spec.prune.enabled && (spec.dry_run || ceiling.limits_pruned_bytes()) {
            found.retention = table.exact_retention(cutoff).await?;
            found.refs = table.refs(found.retention.oldest_kept).await?;
            let versions = found.retention.prunable(&found.refs);
            let estimate = table.explain_prune(&found.retention, &versions).await?;
            found.plan.prune.estimate = Some(estimate);
        }
        let planned = planned_sizes(spec, &found);
        ceiling.check(&planned)?;
        space::check(spec, &options, table, &found).await?;
        Ok(Self {
            found,
            planned,
            ceiling,
            before: table.counts().await?,
            identity: Identity::new(&spec.execution_id),
            options,
            spec,
            deadline,
            stop,
        })
    }

    /// Whether the time budget is used up.
    pub(super) fn out_of_time(&self) -> bool {
        self.deadline.is_some_and(|end| Instant::now() >= end)
    }
}

impl From<&CompactSpec> for RewriteOptions {
    fn from(spec: &CompactSpec) -> Self {
        Self {
            target_rows: spec.target_rows_per_fragment,
            target_bytes: spec.target_bytes_per_fragment,
            compaction: spec.compaction.clone(),
            indices: spec.indices.clone(),
        }
    }
}

/// The sizes of the plan that the step found, as the audit puts them out for approval.
fn planned_sizes(spec: &CompactSpec, found: &Snapshot) -> Approval {
    let allowance = spec.approval.as_ref().map_or(0, |a| a.allowance_percent);
    let mut planned = found.approval(allowance);
    if !spec.prune.enabled {
        planned.versions_to_prune = 0;
        planned.bytes_to_prune = Some(0);
    }
    planned
}

/// Refuses tables that a commit of this step would harm.
fn may_commit(spec: &CompactSpec, found: &Snapshot) -> Result<()> {
    if found.format.shallow_clone && !found.indices.is_empty() {
        // lance writes the index files of the rewritten fragments into the clone, and looks for
        // them in the source.
        return Err(GuardError::new(
            ErrorKind::ShallowClone,
            "the table is a shallow clone with an index, which a compaction would break",
        )
        .hint("Nothing was changed. Make a deep clone and compact that, or drop the indices of the clone first."));
    }
    if found.format.auto_cleanup().is_some() && !spec.prune.accept_auto_cleanup {
        return Err(GuardError::new(
            ErrorKind::AutoCleanupSet,
            "the table prunes itself (lance.auto_cleanup), and would on the commits of this step, inside the retention as well",
        )
        .hint("Nothing was changed. Unset lance.auto_cleanup.interval and leave pruning to this tool, or accept it with prune.accept_auto_cleanup."));
    }
    Ok(())
}
