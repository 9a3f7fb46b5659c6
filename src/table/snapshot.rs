//! Everything that a decision rests on, gathered from one version.

use chrono::{DateTime, Utc};

use super::Table;
use super::files::FileFinding;
use super::fragments::{FragmentSketch, fragment_facts};
use super::indices::IndexSketch;
use super::planning::{PlanInput, RewriteOptions};
use super::versions::Retention;
use crate::error::Result;
use crate::report::Unknown;
use crate::report::approval::Approval;
use crate::report::plan::Plan;
use crate::report::table::{
    FormatFacts, FragmentFacts, RefFacts, StorageFacts, TableId, VersionFacts,
};

/// The facts about one version, and the plan on it. No data file is read for it.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The table.
    pub id: TableId,
    /// Fragments and rows.
    pub fragments: FragmentFacts,
    /// Each fragment.
    pub fragment_sketches: Vec<FragmentSketch>,
    /// Versions.
    pub versions: VersionFacts,
    /// The history, cut by the retention.
    pub retention: Retention,
    /// Tags and branches.
    pub refs: RefFacts,
    /// Indices, by name.
    pub indices: Vec<IndexSketch>,
    /// Set-up of the table.
    pub format: FormatFacts,
    /// What a compact step would do, without the prune estimate.
    pub plan: Plan,
    /// Facts that could not be had.
    pub unknown: Vec<Unknown>,
}

impl Snapshot {
    /// The sizes of the plan, as somebody may approve them.
    #[must_use]
    pub fn approval(&self, allowance_percent: u64) -> Approval {
        let (plan, compaction) = (&self.plan, &self.plan.compaction);
        let merges = |name: &String| plan.index_merges.iter().any(|merge| &merge.name == name);
        Approval {
            plan_id: plan.plan_id.clone(),
            read_version: plan.read_version,
            bytes_to_rewrite: compaction.bytes_to_rewrite,
            fragments_removed: compaction.fragments_to_rewrite,
            fragments_added: (compaction.fragments_expected + compaction.fragments_to_rewrite)
                .saturating_sub(self.fragments.count),
            versions_to_prune: plan.prune.versions,
            bytes_to_prune: plan.prune.estimate.as_ref().map(|counts| counts.bytes),
            // A rewrite moves rows, and so touches every index whether it is behind or not.
            indices: self
                .indices
                .iter()
                .map(|index| index.fact.name.clone())
                .filter(|name| {
                    compaction.tasks > 0 || merges(name) || plan.index_catch_ups.contains(name)
                })
                .collect(),
            allowance_percent,
        }
    }
}

impl Table {
    /// Gathers the facts, with everything superseded before `cutoff` as stale.
    ///
    /// Costs one listing of the versions, O(log n) manifests, and the tags and branches.
    ///
    /// # Errors
    /// Where the store does not answer or a manifest cannot be read.
    pub async fn snapshot(
        &self,
        cutoff: DateTime<Utc>,
        options: &RewriteOptions,
    ) -> Result<Snapshot> {
        let fragment_sketches = self.fragment_sketches().await?;
        let target = options.target(&fragment_sketches);
        let (fragments, mut unknown) = fragment_facts(&fragment_sketches, target);
        if let Some(fact) = options.unmeasured(&fragment_sketches) {
            unknown.push(fact);
        }
        if self.has_blob_files() {
            unknown.push(Unknown::new(
                "blob_files",
                "payloads of blob columns lie in files of their own, which are neither checked nor counted in live_bytes, bytes_to_rewrite and free_bytes_needed",
            ));
        }
        let indices = self.index_sketches(&fragment_sketches).await?;
        let retention = self.retention(cutoff).await?;
        let refs = self.refs(retention.oldest_kept).await?;
        let plan = self
            .plan(PlanInput {
                fragments: &fragment_sketches,
                indices: &indices,
                retention: &retention,
                refs: &refs,
                options,
            })
            .await?;
        Ok(Snapshot {
            id: self.id().clone(),
            fragments,
            fragment_sketches,
            versions: retention.facts(&refs),
            retention,
            refs,
            indices,
            format: self.format_facts(),
            plan,
            unknown,
        })
    }

    /// The bytes of the table's folder, and what is wrong with the files that the version that
    /// is read refers to. Costs one listing of the folder.
    ///
    /// # Errors
    /// Where the store does not answer or the manifest cannot be read.
    pub async fn storage_facts(&self) -> Result<(StorageFacts, Vec<FileFinding>)> {
        let listing = self.list_files().await?;
        let check = self.check_files(&listing).await?;
        let facts = StorageFacts {
            files: listing.sizes.len() as u64,
            bytes_on_disk: listing.total_bytes(),
            live_bytes: check.referenced_bytes,
            bytes_by_folder: listing.bytes_by_folder(),
            damaged_files: check.findings.len() as u64,
        };
        Ok((facts, check.findings))
    }
}
