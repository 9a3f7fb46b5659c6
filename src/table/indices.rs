//! Indices: what they cover, what they do not, and bringing them up to date.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use lance::index::DatasetIndexExt;
use lance_index::is_system_index;
use lance_index::optimize::OptimizeOptions;
use lance_table::format::IndexMetadata;

use super::coverage::is_vector;
use super::fragments::FragmentSketch;
use super::{Table, fault};
use crate::error::Result;
use crate::report::percent;
use crate::report::table::IndexFact;

/// Rows that an index with product quantisation needs before lance trains it: one for each of
/// the 256 centroids of its codebooks. Other vector indices are trained on fewer.
pub const MIN_ROWS_TO_TRAIN: u64 = 256;

/// Whether an index of this type waits for [`MIN_ROWS_TO_TRAIN`].
#[must_use]
pub fn needs_many_rows(index_type: &str) -> bool {
    index_type.to_ascii_uppercase().ends_with("PQ")
}

/// How lance names a type of index that this build has no reader for.
const UNKNOWN: &str = "Unknown";

/// What an index is.
#[derive(Debug, Clone)]
struct IndexKind {
    name: String,
    readable: bool,
    is_vector: bool,
}

impl Default for IndexKind {
    fn default() -> Self {
        Self {
            name: UNKNOWN.to_owned(),
            readable: false,
            is_vector: false,
        }
    }
}

/// One index with the fragments that each of its segments covers.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexSketch {
    /// The facts for a report.
    pub fact: IndexFact,
    /// Fragments that each segment covers, as far as they still exist.
    pub segments: Vec<BTreeSet<u64>>,
    /// Whether this build can merge the segments of the index.
    pub mergeable: bool,
    /// Whether the index is on vectors.
    pub is_vector: bool,
}

impl IndexSketch {
    /// Whether lance would leave the index as it is for want of rows to train it.
    #[must_use]
    pub fn lacks_rows_to_train(&self) -> bool {
        needs_many_rows(&self.fact.index_type)
            && self.fact.rows_indexed == Some(0)
            && self.rows_unindexed() < MIN_ROWS_TO_TRAIN
    }

    /// Live rows that the index is known not to cover.
    #[must_use]
    pub fn rows_unindexed(&self) -> u64 {
        self.fact.rows_unindexed.unwrap_or(0)
    }

    /// Whether bringing the index up to date does anything.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.mergeable && self.rows_unindexed() > 0 && !self.lacks_rows_to_train()
    }
}

impl Table {
    /// The indices of the version that is read, by name, without lance's own bookkeeping.
    ///
    /// # Errors
    /// Where the manifest cannot be read.
    pub async fn index_sketches(&self, fragments: &[FragmentSketch]) -> Result<Vec<IndexSketch>> {
        let live: HashMap<u64, u64> = fragments.iter().map(|f| (f.id, f.live_rows())).collect();
        let total: u64 = live.values().sum();
        let mut by_name: BTreeMap<String, Vec<IndexMetadata>> = BTreeMap::new();
        for segment in self.recorded_indices().await? {
            if !is_system_index(&segment) {
                by_name
                    .entry(segment.name.clone())
                    .or_default()
                    .push(segment);
            }
        }
        let types = self.index_kinds().await?;
        Ok(by_name
            .into_iter()
            .map(|(name, segments)| {
                let covered: Vec<BTreeSet<u64>> = segments
                    .iter()
                    .map(|segment| {
                        segment
                            .fragment_bitmap
                            .iter()
                            .flatten()
                            .map(u64::from)
                            .filter(|id| live.contains_key(id))
                            .collect()
                    })
                    .collect();
                let all: BTreeSet<u64> = covered.iter().flatten().copied().collect();
                let rows_indexed: u64 = all.iter().filter_map(|id| live.get(id)).sum();
                let rows_unindexed = total.saturating_sub(rows_indexed);
                let known = segments.iter().all(|s| s.fragment_bitmap.is_some());
                let kind = types.get(&name).cloned().unwrap_or_default();
                IndexSketch {
                    mergeable: kind.readable
                        && known
                        && segments.iter().all(|s| s.covering_fields.is_empty()),
                    is_vector: kind.is_vector,
                    fact: IndexFact {
                        columns: self.column_names(&segments[0]),
                        index_type: kind.name,
                        segments: segments.len() as u64,
                        rows_indexed: known.then_some(rows_indexed),
                        rows_unindexed: known.then_some(rows_unindexed),
                        unindexed_pct: known.then(|| percent(rows_unindexed, total)),
                        bytes: segments
                            .iter()
                            .map(|s| {
                                s.files
                                    .as_ref()
                                    .map(|files| files.iter().map(|f| f.size_bytes).sum::<u64>())
                            })
                            .sum(),
                        name,
                    },
                    segments: covered,
                }
            })
            .collect())
    }

    /// What each index is, as far as this build can read it.
    async fn index_kinds(&self) -> Result<HashMap<String, IndexKind>> {
        Ok(self
            .dataset
            .describe_indices(None)
            .await
            .map_err(|e| fault::of_lance(&e, "reading the list of indices"))?
            .into_iter()
            .map(|index| {
                let kind = IndexKind {
                    name: index.index_type().to_owned(),
                    readable: index.index_type() != UNKNOWN,
                    is_vector: is_vector(index.as_ref()),
                };
                (index.name().to_owned(), kind)
            })
            .collect())
    }

    fn column_names(&self, segment: &IndexMetadata) -> Vec<String> {
        segment
            .keyed_fields()
            .iter()
            .map(|id| {
                self.dataset
                    .schema()
                    .field_path(*id)
                    .unwrap_or_else(|_| format!("field {id}"))
            })
            .collect()
    }

    /// Merges all segments of the named indices, together with the rows that they do not cover
    /// yet, into one segment each. Commits one version if that changes anything.
    ///
    /// One segment, not a new one beside the old: fragments under different segments are never
    /// compacted together.
    ///
    /// # Errors
    /// `commit_conflict` where another writer won; what building an index can meet.
    pub async fn merge_indices(
        &mut self,
        indices: &[IndexSketch],
        properties: &HashMap<String, String>,
    ) -> Result<()> {
        if indices.is_empty() {
            return Ok(());
        }
        let segments = indices.iter().map(|i| i.segments.len()).max().unwrap_or(1);
        let mut options = OptimizeOptions::merge(segments.max(1))
            .index_names(indices.iter().map(|i| i.fact.name.clone()).collect());
        options.transaction_properties = Some(Arc::new(properties.clone()));
        self.dataset
            .optimize_indices(&options)
            .await
            .map_err(|e| fault::of_lance(&e, "merging index segments"))
    }
}
