//! Deletes old versions, by lance's own cleanup and nothing else.

use lance::dataset::cleanup::{
    CleanupOperation, CleanupPolicy, CleanupPolicyBuilder, RemovalStats,
};

use super::versions::Retention;
use super::{Table, fault};
use crate::error::Result;
use crate::report::plan::PruneCounts;
use crate::spec::tuning::PruneTuning;

/// What a prune deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// What went.
    pub counts: PruneCounts,
    /// Files that could not be deleted; the next prune finds them again.
    pub failed_deletes: u64,
}

impl Table {
    /// What a prune of these versions would delete now, as lance says. Reads every manifest.
    ///
    /// # Errors
    /// Where the store does not answer or a manifest cannot be read.
    pub async fn explain_prune(
        &self,
        retention: &Retention,
        versions: &[u64],
    ) -> Result<PruneCounts> {
        let Some(policy) = policy(retention, versions)? else {
            return Ok(PruneCounts::default());
        };
        let explanation = self
            .dataset
            .cleanup(policy)
            .explain()
            .await
            .map_err(|e| fault::of_lance(&e, "asking what a prune would delete"))?;
        Ok(counts(&explanation.stats))
    }

    /// Deletes the given versions, some or all of those that the retention lets go
    /// ([`Retention::prunable`]), and the files that only they refer to.
    ///
    /// Tags and branches keep their versions. Files that no version refers to stay while they
    /// are younger than seven days: a writer may be about to commit them. Older ones go with the
    /// prune, by lance's own rule, which no policy switches off.
    ///
    /// # Errors
    /// Where the store does not answer or a manifest cannot be read; some files may be gone
    /// then, and running again goes on.
    pub async fn prune(
        &self,
        retention: &Retention,
        versions: &[u64],
        tuning: &PruneTuning,
    ) -> Result<Pruned> {
        let Some(policy) = policy(retention, versions)? else {
            return Ok(Pruned::default());
        };
        let doing = "pruning old versions";
        // Destructive: deletes the manifests that `policy` names, and then the files that no
        // remaining manifest refers to. The reason it may: every one of those versions was
        // superseded before the cutoff, and no tag and no branch refers to it.
        let stats = limited(self.dataset.cleanup(policy), tuning)
            .map_err(|e| fault::of_lance(&e, doing))?
            .execute()
            .await
            .map_err(|e| fault::of_lance(&e, doing))?;
        Ok(Pruned {
            counts: counts(&stats),
            failed_deletes: stats.failed_deletes,
        })
    }
}

/// The policy, by three conditions that lance joins by AND: the exact versions, older than the
/// oldest one kept, and committed before the cutoff. Any one would do; a fault in one of them
/// then deletes too little, not too much. None if there is nothing to prune.
fn policy(retention: &Retention, versions: &[u64]) -> Result<Option<CleanupPolicy>> {
    if versions.is_empty() {
        return Ok(None);
    }
    let mut policy = CleanupPolicyBuilder::default()
        .before_timestamp(retention.cutoff)
        .versions(versions.to_vec())
        .map_err(|e| fault::of_lance(&e, "choosing the versions to prune"))?
        .delete_unverified(false)
        .error_if_tagged_old_versions(false)
        .clean_referenced_branches(false)
        .build();
    policy.before_version = Some(retention.oldest_kept);
    Ok(Some(policy))
}

fn limited<'a>(
    mut operation: CleanupOperation<'a>,
    tuning: &PruneTuning,
) -> lance::Result<CleanupOperation<'a>> {
    if let Some(rate) = tuning.deletes_per_second {
        operation = operation.with_delete_rate_limit(rate)?;
    }
    if let Some(concurrency) = tuning.concurrent_deletes {
        operation = operation.with_delete_concurrency(concurrency as usize)?;
    }
    Ok(operation)
}

fn counts(stats: &RemovalStats) -> PruneCounts {
    PruneCounts {
        versions: stats.old_versions,
        bytes: stats.bytes_removed,
        data_files: stats.data_files_removed,
        deletion_files: stats.deletion_files_removed,
        index_files: stats.index_files_removed,
        transaction_files: stats.transaction_files_removed,
    }
}
