//! Which fragments each index covers, and what each vector index is.

use std::collections::BTreeMap;

use lance::index::DatasetIndexExt;
use lance_index::{IndexDescription, is_system_index};

use super::{Table, fault};
use crate::error::Result;

/// How distances are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Squared Euclidean.
    L2,
    /// One minus the cosine of the angle.
    Cosine,
    /// One minus the dot product: a vector is not its own nearest neighbour.
    Dot,
    /// Differing bits.
    Hamming,
    /// Not recorded, or not known to this build.
    Unknown,
}

/// A vector index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorIndex {
    /// How distances are measured.
    pub metric: Metric,
    /// Whether it is a graph, which may leave out a row although it is in order.
    pub graph: bool,
}

/// An index and the fragments that it does not cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexCoverage {
    /// Name of the index.
    pub name: String,
    /// Type of the index, as lance names it.
    pub index_type: String,
    /// The column that it is built on.
    pub column: String,
    /// What it is, if it is a vector index.
    pub vector: Option<VectorIndex>,
    /// The segments that this build can read.
    pub segments: usize,
    /// Live rows in the fragments that it covers; none where the coverage is not recorded, or
    /// where this build cannot read the index.
    pub rows_indexed: Option<u64>,
    /// Fragments with live rows that it does not cover, and their live rows.
    pub uncovered: BTreeMap<u64, u64>,
}

impl IndexCoverage {
    /// Live rows that the index does not cover.
    #[must_use]
    pub fn rows_unindexed(&self) -> u64 {
        self.uncovered.values().sum()
    }
}

impl Table {
    /// Every index of the version that is read, by name, without lance's own bookkeeping.
    ///
    /// # Errors
    /// Where the manifest or the rows of a fragment cannot be read.
    pub async fn index_coverage(&self) -> Result<Vec<IndexCoverage>> {
        let doing = "reading the indices";
        let readable = self
            .dataset
            .load_indices()
            .await
            .map_err(|e| fault::of_lance(&e, doing))?;
        let described = self.dataset.describe_indices(None).await;
        let rows: BTreeMap<u64, u64> = self
            .fragment_sketches()
            .await?
            .iter()
            .map(|fragment| (fragment.id, fragment.live_rows()))
            .collect();
        let mut found = Vec::new();
        for name in self.index_names().await? {
            let segments: Vec<_> = readable
                .iter()
                .filter(|segment| segment.name == name && !is_system_index(segment))
                .collect();
            let description = described
                .as_ref()
                .ok()
                .and_then(|all| all.iter().find(|index| index.name() == name));
            let known =
                !segments.is_empty() && segments.iter().all(|s| s.fragment_bitmap.is_some());
            let covers = |fragment: u64| {
                u32::try_from(fragment).is_ok_and(|id| {
                    segments
                        .iter()
                        .filter_map(|segment| segment.fragment_bitmap.as_ref())
                        .any(|bitmap| bitmap.contains(id))
                })
            };
            let mut rows_indexed = 0;
            let mut uncovered = BTreeMap::new();
            for (&fragment, &live) in rows.iter().filter(|(_, live)| **live > 0) {
                if covers(fragment) {
                    rows_indexed += live;
                } else if known {
                    uncovered.insert(fragment, live);
                }
            }
            let column = segments
                .first()
                .and_then(|segment| segment.fields.first())
                .and_then(|field| self.dataset.schema().field_path_minimal(*field).ok())
                .unwrap_or_default();
            let vector = match description {
                Some(index) if segments.is_empty() || !is_vector(index.as_ref()) => None,
                Some(index) => Some(self.vector_index(index.as_ref()).await),
                None => None,
            };
            found.push(IndexCoverage {
                name,
                index_type: description
                    .map_or("Unknown", |index| index.index_type())
                    .to_owned(),
                column,
                vector,
                segments: segments.len(),
                rows_indexed: known.then_some(rows_indexed),
                uncovered,
            });
        }
        Ok(found)
    }

    async fn vector_index(&self, index: &dyn IndexDescription) -> VectorIndex {
        let details = index.details().unwrap_or_default();
        let mut metric = metric_in(&details);
        if metric == Metric::Unknown {
            // An index of an old release says it in its files only.
            let statistics = self.dataset.index_statistics(index.name()).await;
            metric = metric_in(&statistics.unwrap_or_default());
        }
        VectorIndex {
            metric,
            graph: index.index_type().to_ascii_uppercase().contains("HNSW"),
        }
    }
}

/// Whether an index is on vectors, by its details, or by its name where it has none.
pub(super) fn is_vector(index: &dyn IndexDescription) -> bool {
    index.type_url().ends_with("VectorIndexDetails")
        || index.index_type() == "Vector"
        || index.index_type().starts_with("IVF_")
}

/// The first `metric_type` anywhere in a JSON text.
fn metric_in(json: &str) -> Metric {
    let Ok(value) = serde_json::from_str::<serde_json::Value>(json) else {
        return Metric::Unknown;
    };
    let name = [&value, &value["indices"][0]]
        .into_iter()
        .find_map(|place| place["metric_type"].as_str())
        .unwrap_or_default()
        .to_ascii_lowercase();
    match name.as_str() {
        "l2" => Metric::L2,
        "cosine" => Metric::Cosine,
        "dot" => Metric::Dot,
        "hamming" => Metric::Hamming,
        _ => Metric::Unknown,
    }
}
