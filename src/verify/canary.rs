//! `canary`: stored vectors, or rows of a table without vectors, are found again.
//!
//! Every vector column that has an index is searched, through lancedb, for vectors that the table
//! itself holds; without any index, every vector column. One row a column. It holds if
//! - every search gives neighbours, as many as asked for or as the table can give, and
//! - every vector finds its own row, or one at distance 0 from it (a duplicate). With the dot
//!   product a vector need not be its own nearest neighbour, so that is not asked.
//!
//! An index is approximate: it may miss a row and be in order. So what the usual search misses
//! is searched again with every partition and exact distances, and only then is it a fault; what
//! a graph index (HNSW) misses even then is a fault only if no vector finds itself.

use super::failed_by;
use crate::error::Result;
use crate::report::round2;
use crate::report::verify::{CheckId, CheckRow};
use crate::spec::tuning::CanaryTuning;
use crate::table::Table;
use crate::table::coverage::{IndexCoverage, Metric, VectorIndex};
use crate::table::search::{Effort, Found, Searcher};
use crate::table::vectors::{StoredVector, VectorColumn};

/// What the canary found.
pub struct Canary {
    /// One row a column.
    pub rows: Vec<CheckRow>,
    /// Median time of a search or scan in milliseconds; none where none ran.
    pub latency_ms: Option<f64>,
}

/// What a canary works with.
struct Run<'a> {
    table: &'a Table,
    searcher: Searcher,
    tuning: &'a CanaryTuning,
    rows: u64,
    times: Vec<f64>,
}

/// Searches the version that `table` reads, which has `rows` live rows.
pub(super) async fn check(
    table: &Table,
    tuning: &CanaryTuning,
    rows: u64,
    indices: &[IndexCoverage],
) -> Result<Canary> {
    let mut columns: Vec<(VectorColumn, Option<VectorIndex>)> = Vec::new();
    for index in indices.iter().filter(|index| index.vector.is_some()) {
        // lancedb searches with the first index of a column only.
        if columns
            .iter()
            .all(|(column, _)| column.path != index.column)
        {
            columns.push((table.vector_column(&index.column), index.vector));
        }
    }
    if columns.is_empty() {
        columns.extend(table.vector_columns().into_iter().map(|c| (c, None)));
    }
    let mut run = Run {
        table,
        searcher: table.searcher().await?,
        tuning,
        rows,
        times: Vec::new(),
    };
    let checked = if columns.is_empty() {
        vec![run.scan().await?]
    } else {
        let mut checked = Vec::new();
        for (column, index) in columns {
            checked.push(run.column(&column, index).await?.on(column.path));
        }
        checked
    };
    Ok(Canary {
        rows: checked,
        latency_ms: median(run.times).map(round2),
    })
}

/// How the searches for the vectors of one column ended.
#[derive(Default)]
struct Tally {
    /// Searches that gave nothing at all.
    empty: u64,
    /// Searches that gave fewer rows than the table can give.
    short: u64,
    /// Vectors that did not find themselves.
    lost: Vec<u64>,
    /// Searches that were tried again with every partition and exact distances.
    widened: u64,
    /// Fewest neighbours that were all there are, where there were fewer than asked for.
    scarce: Option<usize>,
}

impl Run<'_> {
    async fn column(
        &mut self,
        column: &VectorColumn,
        index: Option<VectorIndex>,
    ) -> Result<CheckRow> {
        let expected = "stored vectors are found again";
        if let Some(reason) = &column.unsupported {
            let reason = format!("the column cannot be searched here: {reason}");
            return Ok(CheckRow::skipped(CheckId::Canary, expected, reason));
        }
        if self.rows == 0 {
            let reason = "the table has no rows";
            return Ok(CheckRow::skipped(CheckId::Canary, expected, reason));
        }
        let stored = self
            .table
            .stored_vectors(
                &column.path,
                self.tuning.queries as usize,
                self.tuning.seed,
                self.rows,
            )
            .await;
        let vectors = match stored {
            Ok(vectors) => vectors,
            Err(error) => return failed_by(CheckId::Canary, expected, error),
        };
        if vectors.is_empty() {
            let reason = "none of the rows that were looked at has a usable vector: all are null, zero or not finite";
            return Ok(CheckRow::skipped(CheckId::Canary, expected, reason));
        }
        let metric = index.map_or(Metric::L2, |index| index.metric);
        let finds_itself = !matches!(metric, Metric::Dot | Metric::Unknown);
        let wanted = self.rows.min(u64::from(self.tuning.neighbours));
        let expected = format!(
            "each of {} stored vectors finds {}{wanted} neighbours",
            vectors.len(),
            if finds_itself { "itself and " } else { "" }
        );
        // The first search loads the index, which is not what the others take.
        let limit = self.tuning.neighbours as usize;
        let warmed_up = self
            .searcher
            .search(&column.path, &vectors[0], limit, Effort::Usual)
            .await;
        if let Err(error) = warmed_up {
            return failed_by(CheckId::Canary, expected, error);
        }
        let mut tally = Tally::default();
        for vector in &vectors {
            let searched = self
                .vector(&column.path, vector, metric, index.is_some(), &mut tally)
                .await;
            if let Err(error) = searched {
                return failed_by(CheckId::Canary, expected, error);
            }
        }
        let graph = index.is_some_and(|index| index.graph);
        let all_lost = tally.lost.len() == vectors.len();
        let passed = tally.empty == 0
            && (tally.short == 0 || graph)
            && (tally.lost.is_empty() || (graph && !all_lost));
        let found = describe(&tally, vectors.len(), finds_itself);
        Ok(CheckRow::judged(CheckId::Canary, expected, found, passed))
    }

    async fn vector(
        &mut self,
        path: &str,
        vector: &StoredVector,
        metric: Metric,
        indexed: bool,
        tally: &mut Tally,
    ) -> Result<()> {
        let limit = self.tuning.neighbours as usize;
        let wanted = self.rows.min(u64::from(self.tuning.neighbours));
        let is_short = |found: &Found| (found.neighbours.len() as u64) < wanted;
        let is_lost = |found: &Found| {
            !matches!(metric, Metric::Dot | Metric::Unknown) && !finds(found, vector, metric)
        };
        let mut found = self
            .searcher
            .search(path, vector, limit, Effort::Usual)
            .await?;
        self.times.push(found.took.as_secs_f64() * 1000.0);
        if indexed && (is_short(&found) || is_lost(&found)) {
            let effort = Effort::Wide { rows: self.rows };
            found = self.searcher.search(path, vector, limit, effort).await?;
            tally.widened += 1;
        }
        if indexed && is_short(&found) {
            // Rows without a vector are no neighbours: ask how many there are to be found.
            let flat = self
                .searcher
                .search(path, vector, limit, Effort::Flat(metric))
                .await?;
            let (found, there) = (found.neighbours.len(), flat.neighbours.len());
            if found < there {
                tally.short += 1;
            } else {
                tally.scarce = Some(tally.scarce.map_or(found, |least| least.min(found)));
            }
        }
        tally.empty += u64::from(found.neighbours.is_empty());
        if is_lost(&found) {
            tally.lost.push(vector.row_id);
        }
        Ok(())
    }

    async fn scan(&mut self) -> Result<CheckRow> {
        let wanted = self.rows.min(u64::from(self.tuning.neighbours));
        let expected = format!("a scan reads {wanted} rows (the table has no vectors)");
        if self.rows == 0 {
            let reason = "the table has no rows";
            return Ok(CheckRow::skipped(CheckId::Canary, expected, reason));
        }
        match self.searcher.scan(self.tuning.neighbours as usize).await {
            Ok((count, took)) => {
                self.times.push(took.as_secs_f64() * 1000.0);
                Ok(CheckRow::judged(
                    CheckId::Canary,
                    expected,
                    format!("{count} rows"),
                    count == wanted,
                ))
            }
            Err(error) => failed_by(CheckId::Canary, expected, error),
        }
    }
}

/// Whether a search found the vector's own row, or one at distance 0 from it.
fn finds(found: &Found, vector: &StoredVector, metric: Metric) -> bool {
    let squares: f32 = vector.values.iter().map(|value| value * value).sum();
    // Rounding in single precision, and in half precision for columns that hold it.
    let zero = match metric {
        Metric::L2 => squares * 1e-6,
        Metric::Cosine => 1e-5,
        Metric::Dot | Metric::Hamming | Metric::Unknown => 0.0,
    };
    found
        .neighbours
        .iter()
        .any(|(row, distance)| *row == vector.row_id || distance.abs() <= zero)
}

fn describe(tally: &Tally, vectors: usize, finds_itself: bool) -> String {
    let mut parts = Vec::new();
    if tally.empty > 0 {
        parts.push(format!(
            "{} of {vectors} searches gave nothing",
            tally.empty
        ));
    }
    if tally.short > 0 {
        parts.push(format!(
            "{} of {vectors} searches gave fewer rows than a search without the index",
            tally.short
        ));
    }
    if finds_itself {
        parts.push(format!(
            "{} of {vectors} found themselves",
            vectors - tally.lost.len()
        ));
    } else if parts.is_empty() {
        parts.push(format!("all {vectors} searches gave neighbours"));
    }
    if let Some(row) = tally.lost.first() {
        parts.push(format!("row id {row} is the first that did not"));
    }
    if let Some(count) = tally.scarce {
        parts.push(format!("{count} neighbours are all that there are"));
    }
    if tally.widened > 0 {
        parts.push(format!(
            "{} of {vectors} were searched again in every partition",
            tally.widened
        ));
    }
    parts.join("; ")
}

pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    values
        .get(middle.checked_sub(1)?)
        .map(|lower| f64::midpoint(*lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn a_duplicate_at_distance_zero_counts_as_itself() {
        let vector = StoredVector {
            row_id: 7,
            values: vec![3.0, 4.0],
        };
        let found = |neighbours: &[(u64, f32)]| Found {
            neighbours: neighbours.to_vec(),
            took: std::time::Duration::ZERO,
        };
        assert!(finds(&found(&[(1, 2.0), (7, 2.5)]), &vector, Metric::L2));
        assert!(finds(&found(&[(1, 0.0)]), &vector, Metric::L2));
        assert!(!finds(&found(&[(1, 0.1)]), &vector, Metric::L2));
        assert!(!finds(&found(&[]), &vector, Metric::Cosine));
    }
}
