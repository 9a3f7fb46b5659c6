//! Versions and the retention rule.
//!
//! A version is stale when it was superseded before the cutoff: no reader that opened the table
//! inside the retention window can have got it. lance's own rule goes by the time at which the
//! version itself was committed, and so removes one that was current a moment ago.
//!
//! ```text
//! commit times:    v1      v2            v3        v4
//! --------------------------------|--------------------> time
//!                                 cutoff
//! v1 was superseded by v2 before the cutoff: stale.
//! v2 was superseded by v3 before the cutoff: stale.
//! v3 was current at the cutoff: the oldest version that is kept.
//! ```

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::{Table, fault};
use crate::error::{ErrorKind, Result};
use crate::report::table::{RefFacts, VersionFacts};

/// The history of a table, cut in two by the retention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Versions superseded before this time are stale.
    pub cutoff: DateTime<Utc>,
    /// The versions that exist, oldest first; never empty.
    pub existing: Vec<u64>,
    /// The oldest version that was current at any time since the cutoff.
    pub oldest_kept: u64,
    /// When the oldest version was committed.
    pub oldest_at: DateTime<Utc>,
    /// The version that was read.
    pub current: u64,
    /// When it was committed.
    pub current_at: DateTime<Utc>,
}

impl Retention {
    /// Versions that were superseded before the cutoff, oldest first.
    #[must_use]
    pub fn stale(&self) -> &[u64] {
        let end = self.existing.partition_point(|v| *v < self.oldest_kept);
        &self.existing[..end]
    }

    /// Stale versions that nothing holds back, oldest first: what a prune may delete.
    #[must_use]
    pub fn prunable(&self, refs: &RefFacts) -> Vec<u64> {
        let held: BTreeSet<u64> = refs
            .tags
            .iter()
            .chain(&refs.branches)
            .map(|r| r.version)
            .collect();
        self.stale()
            .iter()
            .copied()
            .filter(|version| !held.contains(version))
            .collect()
    }

    /// The facts for a report.
    #[must_use]
    pub fn facts(&self, refs: &RefFacts) -> VersionFacts {
        VersionFacts {
            count: self.existing.len() as u64,
            oldest: self.existing.first().copied().unwrap_or(self.current),
            oldest_at: self.oldest_at,
            current: self.current,
            current_at: self.current_at,
            cutoff: self.cutoff,
            oldest_kept: self.oldest_kept,
            stale: self.stale().len() as u64,
            prunable: self.prunable(refs).len() as u64,
        }
    }
}

impl Table {
    /// Finds the oldest version that the retention keeps, by a binary search over the commit
    /// times: one listing and O(log n) manifests.
    ///
    /// # Errors
    /// Where the store does not answer or a manifest cannot be read.
    pub async fn retention(&self, cutoff: DateTime<Utc>) -> Result<Retention> {
        let current = self.version();
        let mut existing: Vec<u64> = self
            .dataset
            .version_refs()
            .await
            .map_err(|e| fault::of_lance(&e, "listing the versions"))?
            .into_iter()
            .map(|v| v.version)
            // Versions that came since this one was opened are none of this step's business.
            .filter(|version| *version < current)
            .collect();
        existing.push(current);
        let mut times = BTreeMap::from([(current, self.dataset.manifest().timestamp())]);

        let since = self.first_since(&mut existing, &mut times, cutoff).await?;
        // The version before it was current at the cutoff, and so is kept.
        let oldest_kept = existing[since.saturating_sub(1)];
        let oldest_at = loop {
            let oldest = existing[0];
            match self.committed_at(oldest, &mut times).await? {
                Some(time) => break time,
                None => existing.remove(0),
            };
        };
        Ok(Retention {
            cutoff,
            oldest_kept,
            oldest_at,
            current,
            current_at: times[&current],
            existing,
        })
    }

    /// How many of the versions were committed at a time or since: O(log n) manifests.
    ///
    /// # Errors
    /// As [`Table::retention`].
    pub async fn committed_since(&self, existing: &[u64], time: DateTime<Utc>) -> Result<u64> {
        let mut existing = existing.to_vec();
        let mut times = BTreeMap::new();
        let first = self.first_since(&mut existing, &mut times, time).await?;
        Ok((existing.len() - first) as u64)
    }

    /// The position of the first version committed at a time or since, by a binary search.
    async fn first_since(
        &self,
        existing: &mut Vec<u64>,
        times: &mut BTreeMap<u64, DateTime<Utc>>,
        time: DateTime<Utc>,
    ) -> Result<usize> {
        // `low..high` is where it can be.
        let (mut low, mut high) = (0, existing.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.committed_at(existing[middle], times).await? {
                Some(committed) if committed < time => low = middle + 1,
                Some(_) => high = middle,
                // Pruned by somebody else since the listing, and with it all older ones but
                // tagged ones; those are only fewer to prune.
                None => {
                    existing.remove(middle);
                    high -= 1;
                }
            }
        }
        Ok(low)
    }

    /// As [`Table::retention`], by reading every manifest up to the first that was committed
    /// since the cutoff. A writer whose clock was wrong may have left commit times that do not
    /// rise, which a binary search would not notice: what is deleted goes by this one.
    ///
    /// # Errors
    /// As [`Table::retention`].
    pub async fn exact_retention(&self, cutoff: DateTime<Utc>) -> Result<Retention> {
        let mut found = self.retention(cutoff).await?;
        let mut times = BTreeMap::new();
        let mut last = None;
        for version in found.existing.clone() {
            if version >= found.oldest_kept {
                break;
            }
            match self.committed_at(version, &mut times).await? {
                Some(time) if time >= cutoff => {
                    found.oldest_kept = last.unwrap_or(version);
                    break;
                }
                Some(_) => last = Some(version),
                None => found.existing.retain(|other| *other != version),
            }
        }
        Ok(found)
    }

    /// When a version was committed; none if it does not exist any more.
    async fn committed_at(
        &self,
        version: u64,
        known: &mut BTreeMap<u64, DateTime<Utc>>,
    ) -> Result<Option<DateTime<Utc>>> {
        if let Some(time) = known.get(&version) {
            return Ok(Some(*time));
        }
        match self.at(version).await {
            Ok(table) => {
                let time = table.dataset.manifest().timestamp();
                known.insert(version, time);
                Ok(Some(time))
            }
            Err(error) if error.kind == ErrorKind::VersionNotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::table::RefFact;

    fn retention(existing: &[u64], oldest_kept: u64) -> Retention {
        let at = DateTime::UNIX_EPOCH;
        Retention {
            cutoff: at,
            existing: existing.to_vec(),
            oldest_kept,
            oldest_at: at,
            current: existing[existing.len() - 1],
            current_at: at,
        }
    }

    #[test]
    fn a_tagged_version_is_stale_but_not_prunable() {
        let refs = RefFacts {
            tags: vec![RefFact {
                name: "keep".to_owned(),
                version: 2,
                holds_back: true,
            }],
            branches: Vec::new(),
        };
        let found = retention(&[1, 2, 3, 7], 3);
        assert_eq!(found.stale(), [1, 2]);
        assert_eq!(found.prunable(&refs), [1]);
    }

    #[test]
    fn a_single_version_is_never_stale() {
        assert!(retention(&[5], 5).stale().is_empty());
    }
}
