//! The commits between two versions: which operation made each, and what it changed.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use futures::{StreamExt, TryStreamExt, stream};

use super::counts::VersionView;
use super::{Table, fault};
use crate::error::{ErrorKind, Result};

/// Manifests that are read at the same time.
const PARALLEL_VERSIONS: usize = 8;

/// Property of a commit that names the run of this tool which made it; no two runs share a value.
pub const RUN_PROPERTY: &str = "lancedb_guard.run";

/// lance reserves fragment ids in a commit of its own, which carries no properties and changes
/// nothing.
pub const RESERVATION: &str = "ReserveFragments";

/// Operations that never make a rewrite of fragments lose a race, as lance names them. Source:
/// `check_rewrite_txn` in lance's `io/commit/conflict_resolver.rs`.
const HARMLESS: [&str; 7] = [
    "Append",
    RESERVATION,
    "Project",
    "Clone",
    "UpdateConfig",
    "UpdateMemWalState",
    "UpdateBases",
];

/// Whether a commit of this operation makes a rewrite lose a race where both touch the same
/// fragments.
#[must_use]
pub fn conflicts_with_rewrites(operation: &str) -> bool {
    !HARMLESS.contains(&operation)
}

/// What made a version, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentCommit {
    /// The version.
    pub version: u64,
    /// The operation, as lance names it; `Unknown` where none is recorded.
    pub operation: String,
    /// When it was committed, by the clock of its writer.
    pub at: DateTime<Utc>,
    /// Whether a run of this tool committed it.
    pub by_guard: bool,
}

impl RecentCommit {
    /// Whether another writer committed it. Whose a reservation of fragment ids is cannot be
    /// told; the commit that it was for follows it.
    #[must_use]
    pub fn is_by_others(&self) -> bool {
        !self.by_guard && self.operation != RESERVATION
    }
}

/// One version of the history and the commit that made it.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The version that it made.
    pub version: u64,
    /// Its operation, as lance names it; `Unknown` where none is recorded.
    pub operation: String,
    /// The properties that the writer gave its commit.
    pub properties: BTreeMap<String, String>,
    /// The version itself.
    pub view: VersionView,
}

impl Table {
    /// The versions from `first` to `last`, both included, that still exist.
    ///
    /// Costs one listing, and one manifest for each of them.
    ///
    /// # Errors
    /// Where the store does not answer or a manifest cannot be read.
    pub async fn history(&self, first: u64, last: u64) -> Result<BTreeMap<u64, Commit>> {
        stream::iter(self.versions_between(first, last).await?)
            .map(|version| self.commit(version))
            .buffered(PARALLEL_VERSIONS)
            .try_filter_map(|commit| async move { Ok(commit.map(|c| (c.version, c))) })
            .try_collect()
            .await
    }

    /// What made some versions, and when, in their order; without those that do not exist any
    /// more. Costs one manifest for each.
    ///
    /// # Errors
    /// Where the store does not answer or a manifest cannot be read.
    pub async fn recent_commits(&self, versions: &[u64]) -> Result<Vec<RecentCommit>> {
        stream::iter(versions.iter().copied())
            .map(|version| async move {
                let Some(table) = if_there(self.at(version).await)? else {
                    return Ok(None);
                };
                let (operation, properties) = table.operation().await?;
                Ok(Some(RecentCommit {
                    version,
                    operation,
                    at: table.dataset.manifest().timestamp(),
                    by_guard: properties.contains_key(RUN_PROPERTY),
                }))
            })
            .buffered(PARALLEL_VERSIONS)
            .try_filter_map(|commit| async move { Ok(commit) })
            .try_collect()
            .await
    }

    /// The names of the indices in each version from `first` to `last` that still exists, and
    /// the operation that made the version.
    ///
    /// # Errors
    /// As [`Table::history`].
    pub async fn index_history(
        &self,
        first: u64,
        last: u64,
    ) -> Result<BTreeMap<u64, (String, BTreeSet<String>)>> {
        stream::iter(self.versions_between(first, last).await?)
            .map(|version| async move {
                let Some(table) = if_there(self.at(version).await)? else {
                    return Ok(None);
                };
                let (operation, _) = table.operation().await?;
                Ok(Some((version, (operation, table.index_names().await?))))
            })
            .buffered(PARALLEL_VERSIONS)
            .try_filter_map(|entry| async move { Ok(entry) })
            .try_collect()
            .await
    }

    /// How many versions exist. One listing, no manifest.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn count_versions(&self) -> Result<u64> {
        self.dataset
            .count_versions()
            .await
            .map_err(|e| fault::of_lance(&e, "listing the versions"))
    }

    /// The versions from `first` to `last`, both included, that exist now, oldest first. One
    /// listing, no manifest.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn versions_between(&self, first: u64, last: u64) -> Result<Vec<u64>> {
        Ok(self
            .dataset
            .version_refs()
            .await
            .map_err(|e| fault::of_lance(&e, "listing the versions"))?
            .into_iter()
            .map(|found| found.version)
            .filter(|version| (first..=last).contains(version))
            .collect())
    }

    /// A version and its commit; none if it was pruned since it was listed.
    async fn commit(&self, version: u64) -> Result<Option<Commit>> {
        let Some(table) = if_there(self.at(version).await)? else {
            return Ok(None);
        };
        let (operation, properties) = table.operation().await?;
        Ok(Some(Commit {
            version,
            operation,
            properties,
            view: table.view().await?,
        }))
    }

    /// The operation that made the version that is read, and the properties of its commit.
    async fn operation(&self) -> Result<(String, BTreeMap<String, String>)> {
        let transaction = self
            .dataset
            .read_transaction()
            .await
            .map_err(|e| fault::of_lance(&e, "reading a transaction"))?;
        Ok(transaction.map_or_else(
            || ("Unknown".to_owned(), BTreeMap::new()),
            |transaction| {
                let properties = transaction.transaction_properties.iter();
                (
                    transaction.operation.name().to_owned(),
                    properties
                        .flat_map(|map| map.iter())
                        .map(|(key, value)| (key.clone(), value.clone()))
                        .collect(),
                )
            },
        ))
    }
}

/// A version that was pruned is none; every other error stays one.
fn if_there(table: Result<Table>) -> Result<Option<Table>> {
    match table {
        Ok(table) => Ok(Some(table)),
        Err(error) if error.kind == ErrorKind::VersionNotFound => Ok(None),
        Err(error) => Err(error),
    }
}
