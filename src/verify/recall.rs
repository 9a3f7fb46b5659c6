//! `recall`: a vector index finds the nearest neighbours as well as before.
//!
//! One row a column with a vector index. Stored vectors are searched for in the version before
//! compaction and in the one after it; recall@k is the part of the k nearest rows that come back.
//! What the nearest are is read from the column itself, by the metric of the index. A row as near
//! as the k-th counts as one of them.
//!
//! It is measured twice, and one of the two may be lower than before by no more than
//! `canary.max_recall_drop`; the other is told:
//! - of usual searches, as an application does them, where the index covers all rows in one
//!   segment in both versions;
//! - else of the index: among the rows that it covers, with candidates compared exactly. The
//!   recall of usual searches drops without any fault when an index catches up or its segments
//!   are merged, since rows without an index are compared exactly, and each segment gives as many
//!   candidates as one alone.
//!
//! How long the searches take is reported and never judged.

use std::collections::BTreeSet;

use super::canary::median;
use super::compared::{Compared, Span, versions};
use super::failed_by;
use crate::error::{ErrorKind, Result};
use crate::report::round2;
use crate::report::verify::{CheckId, CheckRow};
use crate::spec::tuning::CanaryTuning;
use crate::table::Table;
use crate::table::coverage::{IndexCoverage, Metric, VectorIndex};
use crate::table::exact::Near;
use crate::table::search::{Effort, Found};
use crate::table::vectors::StoredVector;

/// Times the neighbours that are compared exactly where the index alone is measured.
const REFINED: u32 = 5;

/// Neighbours that an index must cover for its recall to be more than chance.
const FEWEST_NEIGHBOURS: usize = 20;

/// What the check found.
pub struct Recall {
    /// One row a column.
    pub rows: Vec<CheckRow>,
    /// Median time of a search in the version before, in milliseconds; none where none ran.
    pub latency_before_ms: Option<f64>,
}

/// Measures the recall of every index in `indices` that is one of vectors.
pub(super) async fn check(
    compared: &Compared,
    table: &Table,
    tuning: &CanaryTuning,
    indices: &[IndexCoverage],
) -> Result<Recall> {
    let mut work = Work {
        compared,
        table,
        tuning,
        times: Vec::new(),
    };
    let mut rows = Vec::new();
    let mut seen = BTreeSet::new();
    for index in indices {
        // lancedb searches with the first index of a column only.
        if let Some(vector) = index.vector
            && tuning.recall_queries > 0
            && seen.insert(&index.column)
        {
            let row = match work.column(&index.column, vector).await {
                Ok(row) => row,
                Err(error) => failed_by(CheckId::Recall, work.expected(), error)?,
            };
            rows.push(row.on(&index.column));
        }
    }
    Ok(Recall {
        rows,
        latency_before_ms: median(work.times).map(round2),
    })
}

struct Work<'a> {
    compared: &'a Compared,
    table: &'a Table,
    tuning: &'a CanaryTuning,
    /// Times of the searches in the version before, in milliseconds.
    times: Vec<f64>,
}

/// What is searched for, and by what.
struct Questions {
    path: String,
    metric: Metric,
    vectors: Vec<StoredVector>,
}

/// A version, its index on the column, and the rows that searches should find in it.
struct Side {
    table: Table,
    uncovered: BTreeSet<u64>,
    segments: usize,
    nearest: Vec<Vec<Near>>,
}

/// Neighbours that were found, of those that are there.
#[derive(Default)]
struct Share {
    found: usize,
    there: usize,
}

/// What was measured in one version.
#[derive(Default)]
struct Measured {
    /// Of the index, among the rows that it covers.
    index: Share,
    /// Of searches as an application does them, among all rows.
    usual: Share,
    /// Times of the latter in milliseconds.
    times: Vec<f64>,
}

impl Work<'_> {
    fn expected(&self) -> String {
        self.expected_of("searches")
    }

    fn expected_of(&self, what: &str) -> String {
        format!(
            "recall@{} of {what} lower than before by no more than {}",
            self.tuning.neighbours, self.tuning.max_recall_drop
        )
    }

    fn skipped(&self, reason: String) -> CheckRow {
        CheckRow::skipped(CheckId::Recall, self.expected(), reason)
    }

    async fn column(&mut self, path: &str, index: VectorIndex) -> Result<CheckRow> {
        if let Some(reason) = self.table.vector_column(path).unsupported {
            let reason = format!("the column cannot be searched here: {reason}");
            return Ok(self.skipped(reason));
        }
        if index.metric == Metric::Unknown {
            return Ok(self.skipped("the metric of the index is not known".to_owned()));
        }
        // Later commits are none of the compaction's business.
        let after = match self.compared {
            Compared::Versions(span) => self.table.at(span.after.counts.version).await?,
            _ => self.table.clone(),
        };
        let rows = after.counts().await?.rows;
        let (count, seed) = (self.tuning.recall_queries as usize, self.tuning.seed);
        let questions = Questions {
            path: path.to_owned(),
            metric: index.metric,
            vectors: after.stored_vectors(path, count, seed, rows).await?,
        };
        if questions.vectors.is_empty() {
            let reason = "none of the rows that were looked at has a usable vector";
            return Ok(self.skipped(reason.to_owned()));
        }
        let Some(after) = self.side(after, &questions).await? else {
            let reason = "the version after compaction has no index on the column";
            return Ok(self.skipped(reason.to_owned()));
        };
        let now = self.measure(&after, &questions).await?;
        let asked = questions.vectors.len();
        let found = format!("{now} for {asked} stored vectors");
        let before = match self.before(&questions).await? {
            Ok(before) => before,
            Err(reason) => return Ok(self.skipped(format!("{found}; {reason}"))),
        };
        let then = match self.measure(&before, &questions).await {
            Ok(then) => then,
            Err(error) => {
                let reason = unreadable(&before.table, error)?;
                return Ok(self.skipped(format!("{found}; {reason}")));
            }
        };
        let found = format!("{found}; {then} in version {}", before.table.version());
        self.times.extend(&then.times);
        let (what, now, then) = if after.is_whole() && before.is_whole() {
            ("usual searches", now.usual, then.usual)
        } else if then.index.there.min(now.index.there) < FEWEST_NEIGHBOURS {
            let reason = "the index covers too few of the neighbours to be judged by";
            return Ok(self.skipped(format!("{found}; {reason}")));
        } else {
            ("the index", now.index, then.index)
        };
        Ok(CheckRow::judged(
            CheckId::Recall,
            self.expected_of(what),
            found,
            then.part() - now.part() <= self.tuning.max_recall_drop,
        ))
    }

    /// The version before compaction, or why the recall of its index cannot be compared.
    async fn before(&self, questions: &Questions) -> Result<std::result::Result<Side, String>> {
        let Compared::Versions(span) = self.compared else {
            return Ok(Err(self.compared.why_not().unwrap_or_default().to_owned()));
        };
        if span.before.counts.version == span.after.counts.version {
            return Ok(Err("compaction committed nothing".to_owned()));
        }
        if let Some(others) = made_by_others(span) {
            return Ok(Err(others));
        }
        let version = span.before.counts.version;
        let before = match self.table.at(version).await {
            Ok(before) => before,
            Err(error) if error.kind == ErrorKind::VersionNotFound => {
                return Ok(Err(format!("version {version} was pruned")));
            }
            Err(error) => return Err(error),
        };
        match self.side(before.clone(), questions).await {
            Ok(Some(side)) => Ok(Ok(side)),
            Ok(None) => Ok(Err(format!("version {version} has no index on the column"))),
            Err(error) => unreadable(&before, error).map(Err),
        }
    }

    /// What searches in a version should find; none where it has no index on the column.
    async fn side(&self, table: Table, questions: &Questions) -> Result<Option<Side>> {
        let indices = table.index_coverage().await?;
        let index = indices
            .iter()
            .find(|index| index.vector.is_some() && index.column == questions.path);
        let Some(index) = index else {
            return Ok(None);
        };
        let nearest = table
            .nearest(
                &questions.path,
                &questions.vectors,
                questions.metric,
                self.tuning.neighbours as usize,
            )
            .await?;
        Ok(Some(Side {
            uncovered: index.uncovered.keys().copied().collect(),
            segments: index.segments,
            nearest,
            table,
        }))
    }

    async fn measure(&self, side: &Side, questions: &Questions) -> Result<Measured> {
        let searcher = side.table.searcher().await?;
        let limit = self.tuning.neighbours as usize;
        let path = &questions.path;
        let mut measured = Measured::default();
        for (at, (vector, nearest)) in questions.vectors.iter().zip(&side.nearest).enumerate() {
            let index = searcher
                .search(path, vector, limit, Effort::Refined(REFINED))
                .await?;
            if at == 0 {
                // The first search loads what the others find in memory.
                searcher.search(path, vector, limit, Effort::Usual).await?;
            }
            let usual = searcher.search(path, vector, limit, Effort::Usual).await?;
            measured.times.push(usual.took.as_secs_f64() * 1000.0);
            let covered = |near: &Near| !side.uncovered.contains(&near.fragment);
            let found = near(side, questions, vector, &index).await?;
            measured.index.add(&found, nearest, covered);
            let found = near(side, questions, vector, &usual).await?;
            measured.usual.add(&found, nearest, |_| true);
        }
        Ok(measured)
    }
}

/// How near the rows are that a search found, each counted once.
async fn near(
    side: &Side,
    questions: &Questions,
    vector: &StoredVector,
    found: &Found,
) -> Result<Vec<Near>> {
    let rows: BTreeSet<u64> = found.neighbours.iter().map(|(row, _)| *row).collect();
    let rows: Vec<u64> = rows.into_iter().collect();
    side.table
        .distances_of(&questions.path, vector, questions.metric, &rows)
        .await
}

/// Why the index may be another writer's; none if it is not.
fn made_by_others(span: &Span) -> Option<String> {
    let others: Vec<u64> = span
        .foreign
        .iter()
        .filter(|commit| matches!(commit.operation.as_str(), "CreateIndex" | "Unknown"))
        .map(|commit| commit.version)
        .collect();
    (!others.is_empty()).then(|| {
        format!(
            "other writers may have changed the index in {}",
            versions(&others)
        )
    })
}

/// Why a version from before cannot be searched: a prune may have begun to delete its files. A
/// store that does not answer stays an error.
fn unreadable(before: &Table, error: crate::error::GuardError) -> Result<String> {
    match error.kind {
        ErrorKind::StorageDenied | ErrorKind::StorageUnreachable => Err(error),
        _ => Ok(format!(
            "version {} cannot be searched any more: {}",
            before.version(),
            error.message
        )),
    }
}

impl Side {
    /// Whether searches go through one segment of the index, and nothing else.
    fn is_whole(&self) -> bool {
        self.uncovered.is_empty() && self.segments == 1
    }
}

impl Share {
    /// Counts the rows that were found among those that should be, both where `counts` says so.
    fn add(&mut self, found: &[Near], nearest: &[Near], counts: impl Fn(&Near) -> bool) {
        let Some(last) = nearest.last() else {
            return;
        };
        // The engine computes in single precision, and may see two rows as equally near.
        let farthest = last.distance + last.distance.abs() * 1e-6;
        let there = nearest.iter().filter(|near| counts(near)).count();
        let found = found
            .iter()
            .filter(|near| near.distance <= farthest && counts(near))
            .count();
        self.there += there;
        self.found += found.min(there);
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "at most a million neighbours, far below 2^52"
    )]
    fn part(&self) -> f64 {
        if self.there == 0 {
            return 1.0;
        }
        self.found as f64 / self.there as f64
    }
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "recall {} of the index, {} of usual searches",
            round2(self.index.part()),
            round2(self.usual.part())
        )
    }
}
