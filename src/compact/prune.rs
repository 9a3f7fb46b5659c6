//! The prune phase.

use std::time::Instant;

use super::progress::Progress;
use super::{Run, elapsed_ms};
use crate::error::Result;
use crate::report::approval::Approval;
use crate::report::compact::{BudgetKind, CleanupStats, PhaseStatus};
use crate::report::plan::PruneCounts;
use crate::report::table::RefFacts;
use crate::report::text::count;
use crate::table::Table;
use crate::table::versions::Retention;

/// Deletes what the retention lets go, as found on the newest version.
pub async fn prune(run: &Run<'_>, table: &Table, progress: &mut Progress) -> CleanupStats {
    let mut stats = empty(run, PhaseStatus::NothingToDo);
    if progress.error.is_some() {
        stats.status = PhaseStatus::Skipped;
        stats.note =
            Some("nothing was pruned, since an earlier phase failed or was stopped".to_owned());
        return stats;
    }
    if !run.spec.prune.enabled {
        stats.status = PhaseStatus::SwitchedOff;
        return stats;
    }
    let start = Instant::now();
    if let Err(fault) = attempt(run, table, progress, &mut stats).await {
        stats.status = Progress::status_of(&fault);
        progress.error = Some(fault);
    }
    stats.duration_ms = elapsed_ms(start);
    stats
}

async fn attempt(
    run: &Run<'_>,
    table: &Table,
    progress: &mut Progress,
    stats: &mut CleanupStats,
) -> Result<()> {
    // Tags and branches that came since the step began count as well.
    let (retention, refs) = look(run, table).await?;
    describe(
        stats,
        &retention,
        &refs,
        run.spec.stale_version_retention_hours,
    );
    let mut versions = retention.prunable(&refs);
    if versions.is_empty() {
        return Ok(());
    }
    if run.out_of_time() {
        stats.status = PhaseStatus::BudgetReached;
        let remaining = progress.leave(BudgetKind::TimeBudgetSeconds);
        remaining.versions = versions.len() as u64;
        return Ok(());
    }
    let limit = run.spec.max_versions_to_prune.unwrap_or(u64::MAX);
    let left = (versions.len() as u64).saturating_sub(limit);
    if left > 0 {
        // The oldest go first: what stays is what a reader or a restore is likelier to want.
        versions.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        progress.leave(BudgetKind::MaxVersionsToPrune).versions = left;
    }
    let explaining = table.explain_prune(&retention, &versions);
    stats.planned = run.stop.or(explaining).await?;
    // The last look before anything is deleted: a tag that is gone since the plan, or a writer
    // that prunes as well, may have changed what goes.
    run.ceiling.check(&Approval {
        versions_to_prune: stats.planned.versions,
        bytes_to_prune: Some(stats.planned.bytes),
        ..run.planned.clone()
    })?;
    // From here on nothing stops it: half a prune leaves files that nobody refers to.
    run.stop.check()?;
    let pruned = table.prune(&retention, &versions, &run.spec.prune).await?;
    stats.status = PhaseStatus::Done;
    stats.versions_left = (retention.existing.len() as u64).saturating_sub(pruned.counts.versions);
    stats.actual = pruned.counts;
    stats.failed_deletes = pruned.failed_deletes;
    stats.late_refs = late_refs(table, &versions, &retention).await?;
    if pruned.failed_deletes > 0 {
        stats.note = Some(format!(
            "{} could not be deleted; the next prune finds them again",
            count(pruned.failed_deletes, "file")
        ));
    }
    Ok(())
}

/// The prune as lance foretold it, for a dry run.
pub fn planned(run: &Run<'_>) -> CleanupStats {
    let mut stats = empty(run, PhaseStatus::NothingToDo);
    if !run.spec.prune.enabled {
        stats.status = PhaseStatus::SwitchedOff;
        return stats;
    }
    let found = &run.found;
    describe(
        &mut stats,
        &found.retention,
        &found.refs,
        run.spec.stale_version_retention_hours,
    );
    if !found.retention.prunable(&found.refs).is_empty() {
        stats.status = PhaseStatus::Planned;
        stats.planned = found.plan.prune.estimate.clone().unwrap_or_default();
    }
    stats
}

async fn look(run: &Run<'_>, table: &Table) -> Result<(Retention, RefFacts)> {
    let retention = table.exact_retention(run.found.retention.cutoff).await?;
    let refs = table.refs(retention.oldest_kept).await?;
    Ok((retention, refs))
}

/// Tags and branches on versions that were deleted all the same. Lance reads them when its cleanup
/// begins, and cannot see one that comes later.
async fn late_refs(
    table: &Table,
    pruned: &[u64],
    retention: &Retention,
) -> Result<Option<RefFacts>> {
    let mut refs = table.refs(retention.oldest_kept).await?;
    refs.tags.retain(|tag| pruned.contains(&tag.version));
    refs.branches
        .retain(|branch| pruned.contains(&branch.version));
    if refs == RefFacts::default() {
        return Ok(None);
    }
    let left = table.versions_between(0, retention.current).await?;
    refs.tags.retain(|tag| !left.contains(&tag.version));
    refs.branches
        .retain(|branch| !left.contains(&branch.version));
    Ok((refs != RefFacts::default()).then_some(refs))
}

/// What an operator should know of them.
pub fn late_warnings(late: &RefFacts) -> Vec<String> {
    let tags = late.tags.iter().map(|tag| {
        format!(
            "tag {} was created on version {} while that was being deleted, and refers to nothing any more: delete the tag",
            tag.name, tag.version
        )
    });
    let branches = late.branches.iter().map(|branch| {
        format!(
            "branch {} was started from version {} while that was being deleted, and may lack files: check that it can be read",
            branch.name, branch.version
        )
    });
    tags.chain(branches).collect()
}

/// What the retention and the references leave to prune, and why no more.
fn describe(stats: &mut CleanupStats, retention: &Retention, refs: &RefFacts, hours: f64) {
    stats.oldest_kept = retention.oldest_kept;
    stats.versions_left = retention.existing.len() as u64;
    stats.kept_refs = refs.clone();
    let stale = retention.stale().len() as u64;
    let prunable = retention.prunable(refs).len() as u64;
    stats.note = if stale == 0 {
        Some(format!(
            "no version is stale: all were current at some time in the last {hours} h"
        ))
    } else if prunable < stale {
        Some(format!(
            "tags or branches hold back {}",
            count(stale - prunable, "stale version")
        ))
    } else {
        None
    };
}

fn empty(run: &Run<'_>, status: PhaseStatus) -> CleanupStats {
    CleanupStats {
        status,
        planned: PruneCounts::default(),
        actual: PruneCounts::default(),
        failed_deletes: 0,
        cutoff: run.found.retention.cutoff,
        oldest_kept: run.found.retention.oldest_kept,
        versions_left: run.found.versions.count,
        kept_refs: run.found.refs.clone(),
        late_refs: None,
        note: None,
        duration_ms: 0,
    }
}
