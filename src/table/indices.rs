//! Indices: what they cover, what they do not, and bringing them up to date.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use lance::index::DatasetIndexExt;
use lance_index::is_system_index;
use lance_index::optimize::OptimizeOptions;
use lance_table::format::IndexMetadata;
use roaring::RoaringBitmap;
use uuid::Uuid;

use super::coverage::is_vector;
use super::fragments::FragmentSketch;
use super::{Table, fault};
use crate::error::{ErrorKind, Result};
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
    /// Whether the index covers nothing although it was built on all the rows that there are,
    /// as where every vector is null: building it again would change nothing but its name.
    pub futile: bool,
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
        self.mergeable && self.rows_unindexed() > 0 && !self.lacks_rows_to_train() && !self.futile
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
        let covered_now = self.coverage_of_segments().await?;
        let mut sketches: Vec<IndexSketch> = by_name
            .iter()
            .map(|(name, segments)| {
                let covered: Vec<BTreeSet<u64>> = segments
                    .iter()
                    .map(|segment| {
                        covered_now
                            .get(&segment.uuid)
                            .or(segment.fragment_bitmap.as_ref())
                            .into_iter()
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
                let kind = types.get(name).cloned().unwrap_or_default();
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
                        name: name.clone(),
                    },
                    segments: covered,
                    futile: false,
                }
            })
            .collect();
        for sketch in &mut sketches {
            if sketch.is_vector && sketch.fact.rows_indexed == Some(0) && sketch.is_behind() {
                let segments = by_name
                    .get(&sketch.fact.name)
                    .map_or(&[][..], Vec::as_slice);
                sketch.futile = self.was_built_on_all(segments, &live).await?;
            }
        }
        Ok(sketches)
    }

    /// Whether the newest of the segments was built when every fragment of today was there.
    async fn was_built_on_all(
        &self,
        segments: &[IndexMetadata],
        live: &HashMap<u64, u64>,
    ) -> Result<bool> {
        let Some(version) = segments.iter().map(|s| s.dataset_version).max() else {
            return Ok(false);
        };
        // The build itself is the only commit since then.
        if version + 1 == self.version() {
            return Ok(true);
        }
        match self.at(version).await {
            Ok(then) => {
                let known: BTreeSet<u64> = then.dataset.iter_fragments().map(|f| f.id).collect();
                Ok(live.keys().all(|id| known.contains(id)))
            }
            // Pruned meanwhile: it is tried once more.
            Err(error) if error.kind == ErrorKind::VersionNotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What each segment covers in the fragments of today: after a compaction that left the
    /// indices for later, the manifest's own record still names the fragments of then.
    async fn coverage_of_segments(&self) -> Result<HashMap<Uuid, RoaringBitmap>> {
        Ok(self
            .dataset
            .load_indices()
            .await
            .map_err(|e| fault::of_lance(&e, "reading the list of indices"))?
            .iter()
            .filter_map(|segment| Some((segment.uuid, segment.fragment_bitmap.clone()?)))
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

    /// Merges all segments of the indices, together with the rows that they do not cover yet,
    /// into one segment each. Commits one version if that changes anything.
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
