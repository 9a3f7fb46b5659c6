//! Tags and branches: what holds versions back.

use super::{Table, fault};
use crate::error::Result;
use crate::report::table::{RefFact, RefFacts};

impl Table {
    /// The tags of the main history, and the branches that start from it, by name.
    ///
    /// `oldest_kept` tells which of them hold back a version that would otherwise be pruned.
    ///
    /// # Errors
    /// Where the store does not answer or a reference cannot be read.
    pub async fn refs(&self, oldest_kept: u64) -> Result<RefFacts> {
        let doing = "reading tags and branches";
        let fact = |name: String, version: u64| RefFact {
            name,
            version,
            holds_back: version < oldest_kept,
        };
        let mut tags: Vec<RefFact> = self
            .dataset
            .tags()
            .list()
            .await
            .map_err(|e| fault::of_lance(&e, doing))?
            .into_iter()
            // A tag of another branch counts versions of that branch.
            .filter(|(_, tag)| tag.branch == self.dataset.manifest().branch)
            .map(|(name, tag)| fact(name, tag.version))
            .collect();
        tags.sort_by(|a, b| a.name.cmp(&b.name));

        let all = self
            .dataset
            .list_branches()
            .await
            .map_err(|e| fault::of_lance(&e, doing))?;
        let mut branches = Vec::new();
        if !all.is_empty() {
            let own = self
                .dataset
                .branch_identifier()
                .await
                .map_err(|e| fault::of_lance(&e, doing))?;
            branches = own
                .collect_referenced_versions(&all)
                .into_iter()
                .map(|(name, version)| fact(name, version))
                .collect();
            branches.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(RefFacts { tags, branches })
    }
}
