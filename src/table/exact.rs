//! Exact distances of stored vectors, by reading the column.
//!
//! All vectors are searched for in one pass, which a search of the engine without its index
//! would need for each.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use futures::{StreamExt, TryStreamExt};
use lance::dataset::ProjectionRequest;

use super::coverage::Metric;
use super::vectors::{StoredVector, all_in};
use super::{ROW_ADDR, Table, fault};
use crate::error::{ErrorKind, GuardError, Result};

const DOING: &str = "reading vectors";

/// A row by its distance from a vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// Its distance.
    pub distance: f64,
    /// The fragment that holds it.
    pub fragment: u64,
}

/// Rows that are read at once.
const BATCH_ROWS: usize = 1024;
/// Batches that are read and compared at the same time.
const PARALLEL_BATCHES: usize = 2;
/// Bytes that may queue up between reading and comparing.
const BUFFER_BYTES: u64 = 64 * 1024 * 1024;

impl Table {
    /// The `limit` nearest rows to each of the vectors, nearest first.
    ///
    /// # Errors
    /// Where the column cannot be read.
    pub async fn nearest(
        &self,
        path: &str,
        vectors: &[StoredVector],
        metric: Metric,
        limit: usize,
    ) -> Result<Vec<Vec<Near>>> {
        let fault = |e: lance::Error| fault::of_lance(&e, DOING);
        let wanted: Arc<Vec<StoredVector>> = Arc::new(vectors.to_vec());
        let path: Arc<str> = path.into();
        let mut scan = self.dataset.scan();
        scan.project(&[path.as_ref()]).map_err(fault)?;
        scan.with_row_id()
            .with_row_address()
            .batch_size(BATCH_ROWS)
            .io_buffer_size(BUFFER_BYTES)
            .batch_readahead(PARALLEL_BATCHES)
            .fragment_readahead(PARALLEL_BATCHES);
        let mut parts = scan
            .try_into_stream()
            .await
            .map_err(fault)?
            .map_err(fault)
            .map(|batch| {
                let (wanted, path) = (wanted.clone(), path.clone());
                async move {
                    let batch = batch?;
                    let compare = move || {
                        let stored = with_fragments(&batch, &path)?;
                        Ok(wanted
                            .iter()
                            .map(|vector| nearest(near(vector, &stored, metric), limit))
                            .collect::<Vec<_>>())
                    };
                    tokio::task::spawn_blocking(compare)
                        .await
                        .map_err(|e| GuardError::new(ErrorKind::Internal, e.to_string()))?
                }
            })
            .buffered(PARALLEL_BATCHES);
        let mut found: Vec<Vec<Near>> = vec![Vec::new(); vectors.len()];
        while let Some(part) = parts.try_next().await? {
            for (all, mut more) in found.iter_mut().zip(part) {
                more.append(all);
                *all = nearest(more, limit);
            }
        }
        Ok(found)
    }

    /// How near the rows of these ids are to a vector, in no order.
    ///
    /// # Errors
    /// Where the rows cannot be read.
    pub async fn distances_of(
        &self,
        path: &str,
        vector: &StoredVector,
        metric: Metric,
        row_ids: &[u64],
    ) -> Result<Vec<Near>> {
        if row_ids.is_empty() {
            return Ok(Vec::new());
        }
        let columns = [path, lance::dataset::ROW_ID, ROW_ADDR];
        let projection = ProjectionRequest::from_columns(columns, self.dataset.schema());
        let batch = self
            .dataset
            .take_rows(row_ids, projection)
            .await
            .map_err(|e| fault::of_lance(&e, DOING))?;
        Ok(near(vector, &with_fragments(&batch, path)?, metric))
    }
}

/// The smallest ones, in order.
fn nearest(mut found: Vec<Near>, limit: usize) -> Vec<Near> {
    found.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    found.truncate(limit);
    found
}

/// The vectors of a batch, each with the fragment that holds it.
fn with_fragments(batch: &RecordBatch, path: &str) -> Result<Vec<(u64, StoredVector)>> {
    let unexpected = || GuardError::new(ErrorKind::Internal, "a scan gave no row addresses");
    let column = |name| {
        let column = batch.column_by_name(name);
        column
            .and_then(|column| column.as_primitive_opt::<UInt64Type>())
            .ok_or_else(unexpected)
    };
    let ids = column(lance::dataset::ROW_ID)?.values();
    let addresses = column(ROW_ADDR)?.values();
    let fragments: HashMap<u64, u64> = ids
        .iter()
        .zip(addresses)
        .map(|(id, address)| (*id, address >> 32))
        .collect();
    all_in(batch, path)?
        .into_iter()
        .map(|vector| {
            let fragment = fragments.get(&vector.row_id).ok_or_else(unexpected)?;
            Ok((*fragment, vector))
        })
        .collect()
}

/// How near vectors are to one. Those whose distance is no number are left out: a search finds
/// no row by them.
fn near(vector: &StoredVector, others: &[(u64, StoredVector)], metric: Metric) -> Vec<Near> {
    others
        .iter()
        .map(|(fragment, other)| Near {
            distance: distance(&vector.values, &other.values, metric),
            fragment: *fragment,
        })
        .filter(|near| near.distance.is_finite())
        .collect()
}

fn distance(a: &[f32], b: &[f32], metric: Metric) -> f64 {
    let pairs = || a.iter().zip(b).map(|(a, b)| (f64::from(*a), f64::from(*b)));
    let dot = || pairs().map(|(a, b)| a * b).sum::<f64>();
    match metric {
        Metric::L2 | Metric::Unknown => pairs().map(|(a, b)| (a - b) * (a - b)).sum(),
        Metric::Dot => 1.0 - dot(),
        Metric::Cosine => {
            let squares = |v: &[f32]| v.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
            1.0 - dot() / (squares(a) * squares(b)).sqrt()
        }
        Metric::Hamming => a
            .iter()
            .zip(b)
            .map(|(a, b)| f64::from((byte(*a) ^ byte(*b)).count_ones()))
            .sum(),
    }
}

/// A byte that was made a float to be searched with.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "columns that are compared by bits hold bytes"
)]
fn byte(value: f32) -> u8 {
    value as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_metric() {
        let (a, b) = ([3.0, 0.0], [0.0, 4.0]);
        assert_eq!(distance(&a, &b, Metric::L2), 25.0);
        assert_eq!(distance(&a, &b, Metric::Dot), 1.0);
        assert_eq!(distance(&a, &a, Metric::Dot), -8.0);
        assert_eq!(distance(&a, &a, Metric::Cosine), 0.0);
        assert_eq!(distance(&a, &b, Metric::Cosine), 1.0);
        assert_eq!(distance(&[3.0], &[4.0], Metric::Hamming), 3.0);
    }

    #[test]
    fn rows_at_no_distance_are_left_out() {
        let vector = |values: [f32; 2]| StoredVector {
            row_id: 0,
            values: values.to_vec(),
        };
        let others = [[0.0, 0.0], [f32::NAN, 1.0], [2.0, 0.0]].map(|values| (7, vector(values)));
        let found = near(&vector([1.0, 0.0]), &others, Metric::Cosine);
        let expected = Near {
            distance: 0.0,
            fragment: 7,
        };
        assert_eq!(found, [expected]);
    }
}
