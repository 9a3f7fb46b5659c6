//! Searches with stored vectors, through lancedb as an application does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, UInt64Type};
use arrow_array::{ArrayRef, Float32Array, RecordBatch};
use futures::TryStreamExt;
use lance::dataset::ROW_ID;
use lance::datatypes::{format_field_path_minimal, parse_field_path};
use lancedb::DistanceType;
use lancedb::query::{ExecutableQuery, QueryBase, Select};

use super::coverage::Metric;
use super::vectors::StoredVector;
use super::{Table, fault};
use crate::error::{ErrorKind, GuardError, Result};

/// Candidates that a wide search compares exactly, at most.
const WIDE_CANDIDATES: u64 = 20_000;

/// How hard a search tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// As an application that sets nothing but the limit.
    Usual,
    /// As [`Effort::Usual`], with so many times the neighbours compared exactly.
    Refined(u32),
    /// Every partition, and as many candidates compared exactly as the table's rows allow.
    Wide {
        /// Rows of the table.
        rows: u64,
    },
    /// Without the index, by the metric that it has.
    Flat(Metric),
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Row and distance, nearest first.
    pub neighbours: Vec<(u64, f32)>,
    /// How long it took.
    pub took: Duration,
}

/// A lancedb handle that reads exactly one version.
#[derive(Debug)]
pub struct Searcher {
    lancedb: lancedb::Table,
}

impl Table {
    /// A lancedb handle that reads the version of this one, whatever is committed meanwhile.
    ///
    /// # Errors
    /// Where that version cannot be read.
    pub async fn searcher(&self) -> Result<Searcher> {
        let doing = "opening the version to search in";
        // A handle shares its version with its clones, so it needs one of its own.
        let lancedb = self
            .lancedb
            .checkout_current()
            .await
            .map_err(|e| fault::of_lancedb(&e, doing))?;
        lancedb
            .checkout(self.version())
            .await
            .map_err(|e| fault::of_lancedb(&e, doing))?;
        Ok(Searcher { lancedb })
    }
}

impl Searcher {
    /// Searches a column for the nearest neighbours of a vector.
    ///
    /// # Errors
    /// Where the search fails.
    pub async fn search(
        &self,
        path: &str,
        vector: &StoredVector,
        limit: usize,
        effort: Effort,
    ) -> Result<Found> {
        let doing = "searching for a stored vector";
        let fault = |e: lancedb::Error| fault::of_lancedb(&e, doing);
        // The top of a nested column, quoted so that a dot in its name is no separator.
        let top = top_of(path);
        let key: ArrayRef = Arc::new(Float32Array::from(vector.values.clone()));
        let mut query = self
            .lancedb
            .query()
            .limit(limit)
            .select(Select::columns(&[top.as_str(), "_distance"]))
            .with_row_id()
            .nearest_to(key)
            .map_err(fault)?
            .column(path);
        match effort {
            Effort::Usual => {}
            Effort::Refined(factor) => query = query.refine_factor(factor),
            Effort::Flat(metric) => {
                query = query.bypass_vector_index();
                // Without its index a search falls back to L2.
                query = match metric {
                    Metric::L2 | Metric::Unknown => query,
                    Metric::Cosine => query.distance_type(DistanceType::Cosine),
                    Metric::Dot => query.distance_type(DistanceType::Dot),
                    Metric::Hamming => query.distance_type(DistanceType::Hamming),
                };
            }
            Effort::Wide { rows } => {
                let candidates = rows.clamp(1, WIDE_CANDIDATES);
                let factor = candidates.div_ceil(limit.max(1) as u64);
                query = query
                    .minimum_nprobes(usize::try_from(candidates).unwrap_or(usize::MAX))
                    .map_err(fault)?
                    .ef(usize::try_from(candidates).unwrap_or(usize::MAX).max(limit))
                    .refine_factor(u32::try_from(factor).unwrap_or(u32::MAX));
            }
        }
        let started = Instant::now();
        let batches: Vec<RecordBatch> = query
            .execute()
            .await
            .map_err(fault)?
            .try_collect()
            .await
            .map_err(fault)?;
        let took = started.elapsed();
        let mut neighbours = Vec::new();
        for batch in &batches {
            let (Some(ids), Some(distances)) = (
                batch
                    .column_by_name(ROW_ID)
                    .and_then(|c| c.as_primitive_opt::<UInt64Type>()),
                batch
                    .column_by_name("_distance")
                    .and_then(|c| c.as_primitive_opt::<Float32Type>()),
            ) else {
                return Err(GuardError::new(
                    ErrorKind::Internal,
                    "a vector search gave no row ids or no distances",
                ));
            };
            neighbours.extend(
                ids.values()
                    .iter()
                    .copied()
                    .zip(distances.values().iter().copied()),
            );
        }
        Ok(Found { neighbours, took })
    }

    /// Reads up to `limit` rows with all their columns; says how many came.
    ///
    /// # Errors
    /// Where the rows cannot be read.
    pub async fn scan(&self, limit: usize) -> Result<(u64, Duration)> {
        let fault = |e: lancedb::Error| fault::of_lancedb(&e, "reading rows");
        let started = Instant::now();
        let batches: Vec<RecordBatch> = self
            .lancedb
            .query()
            .limit(limit)
            .execute()
            .await
            .map_err(fault)?
            .try_collect()
            .await
            .map_err(fault)?;
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        Ok((rows, started.elapsed()))
    }
}

/// The top-level column of a path, as a path of its own.
fn top_of(path: &str) -> String {
    parse_field_path(path)
        .ok()
        .and_then(|parts| parts.first().map(|top| format_field_path_minimal(&[top])))
        .unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_of_a_path_keeps_its_quotes() {
        assert_eq!(top_of("vector"), "vector");
        assert_eq!(top_of("a.b"), "a");
        assert_eq!(top_of("`a.b`.c"), "`a.b`");
    }
}
