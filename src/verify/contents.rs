//! `contents`: the rows that compaction rewrote hold what they held before, and, at the level
//! `full`, every row can be read.
//!
//! ```text
//! before ──own──> x ──foreign──> y ──own──> after
//!   └── compared ─┘              └─ compared ┘
//! ```
//! Only the compaction's own commits are held to account: each unbroken run of them is compared
//! with the version right before it, and what other writers did between is left out. Fragments
//! that a run left alone are the same files, and need no comparison.
//!
//! - `standard`: a seeded sample. Compaction keeps the order of rows, so the row at a place among
//!   those that were rewritten is the row at the same place after. Where one is not, all of them
//!   are compared, in any order, before anything is said against the table.
//! - `full`: the sums of the hashes of all rewritten rows, by column and by row. Every other row
//!   of the current version is read as well, so that none is left that cannot be.

use std::collections::BTreeSet;

use futures::future::join;

use super::compared::{Compared, Span, versions};
use super::failed_by;
use crate::error::{ErrorKind, Result};
use crate::report::text::{bytes, count};
use crate::report::verify::{CheckId, CheckRow, ContentsRead};
use crate::spec::tuning::ContentsTuning;
use crate::spec::verify::Level;
use crate::table::Table;
use crate::table::contents::Part;

/// What the check found.
pub struct Contents {
    /// One row for the table, and one for each column that is left out.
    pub rows: Vec<CheckRow>,
    /// What was read; none where nothing was.
    pub read: Option<ContentsRead>,
}

/// Compares the contents of the versions, and at the level `full` reads all of the version that
/// `table` reads.
pub(super) async fn check(
    compared: &Compared,
    table: &Table,
    level: Level,
    tuning: &ContentsTuning,
) -> Result<Contents> {
    let expected = match (level, compared) {
        (Level::Full, Compared::Versions(_)) => {
            "every row that was rewritten is the same as before, every other one can be read"
        }
        (Level::Full, _) => "every row can be read",
        _ => "sampled rows that were rewritten are the same as before",
    };
    let mut work = Work {
        table,
        level,
        tuning,
        read: ContentsRead::default(),
        hashed: BTreeSet::new(),
    };
    let row = match work.row(compared, expected).await {
        Ok(row) => row,
        Err(error) => failed_by(CheckId::Contents, expected, error)?,
    };
    let mut rows = vec![row];
    if work.read.rows > 0 {
        let left_out = table.columns(level != Level::Full).left_out;
        rows.extend(left_out.into_iter().map(|column| {
            CheckRow::skipped(CheckId::Contents, expected, column.reason).on(column.column)
        }));
    }
    Ok(Contents {
        rows,
        read: (work.read.rows > 0).then_some(work.read),
    })
}

struct Work<'a> {
    table: &'a Table,
    level: Level,
    tuning: &'a ContentsTuning,
    read: ContentsRead,
    /// Fragments of which every row was hashed.
    hashed: BTreeSet<u64>,
}

/// How one run of commits of the compaction ended.
enum Verdict {
    /// The rows are the same; what was compared.
    Same(String),
    /// They are not; how.
    Different(String),
    /// They cannot be compared; why.
    Unknown(String),
}

impl Work<'_> {
    async fn row(&mut self, compared: &Compared, expected: &str) -> Result<CheckRow> {
        let mut same = Vec::new();
        let mut different = Vec::new();
        let mut unknown = Vec::new();
        if let Compared::Versions(span) = compared {
            for (from, to) in span.own_runs() {
                match self.run(from, to).await? {
                    Verdict::Same(found) => same.push(found),
                    Verdict::Different(found) => different.push(found),
                    Verdict::Unknown(found) => unknown.push(found),
                }
            }
            if same.is_empty() && different.is_empty() && unknown.is_empty() {
                same.push("compaction committed nothing".to_owned());
            }
        } else {
            unknown.extend(compared.why_not().map(str::to_owned));
        }
        if self.level == Level::Full {
            same.push(self.read_the_rest().await?);
        }
        let failed = !different.is_empty();
        // Without versions to compare, `full` still says whether every row can be read.
        let skipped = !unknown.is_empty()
            && (self.level != Level::Full || matches!(compared, Compared::Versions(_)));
        let mut found = different;
        found.extend(unknown);
        found.extend(same);
        if let Compared::Versions(span) = compared {
            found.extend(left_out(span));
        }
        let found = found.join("; ");
        Ok(if skipped && !failed {
            CheckRow::skipped(CheckId::Contents, expected, found)
        } else {
            CheckRow::judged(CheckId::Contents, expected, found, !failed)
        })
    }

    async fn run(&mut self, from: u64, to: u64) -> Result<Verdict> {
        let (Some(before), Some(after)) = (self.at(from).await?, self.at(to).await?) else {
            return Ok(Verdict::Unknown(format!(
                "versions {from} and {to} cannot be compared, because one of them was pruned"
            )));
        };
        let columns = before.columns(false).hashed;
        if columns != after.columns(false).hashed {
            let found = format!("version {to} has other columns than version {from}");
            return Ok(Verdict::Different(found));
        }
        let (old, new) = before.rewritten(&after).await?;
        if old.rows() != new.rows() {
            return Ok(Verdict::Different(format!(
                "{} of version {from} became {} in version {to}",
                count(old.rows(), "row"),
                count(new.rows(), "row")
            )));
        }
        if old.rows() == 0 {
            let found = format!("no row was rewritten from version {from} to {to}");
            return Ok(Verdict::Same(found));
        }
        let sides = Sides {
            before: &before,
            old,
            after: &after,
            new,
        };
        if self.level == Level::Full {
            self.all(&sides).await
        } else {
            self.sample(&sides).await
        }
    }

    async fn sample(&mut self, sides: &Sides<'_>) -> Result<Verdict> {
        let (picks, seed) = (self.tuning.sample_rows as usize, self.tuning.seed);
        let (old, new) = join(
            sides.before.picked(&sides.old, picks, seed),
            sides.after.picked(&sides.new, picks, seed),
        )
        .await;
        let (old, new) = match sides.readable(old) {
            Ok(old) => (old, new?),
            Err(verdict) => return verdict,
        };
        self.read.rows += (old.rows.len() + new.rows.len()) as u64;
        self.read.bytes += old.bytes + new.bytes;
        let moved = old.rows.iter().zip(&new.rows).filter(|(a, b)| a != b);
        let moved = moved.count() as u64;
        if moved == 0 && old.rows.len() == new.rows.len() {
            return Ok(Verdict::Same(format!(
                "{} of {} are the same in {}",
                old.rows.len(),
                count(sides.old.rows(), "rewritten row"),
                sides.names()
            )));
        }
        let names = sides.before.columns(true).hashed;
        let differ = names
            .iter()
            .zip(old.columns.iter().zip(&new.columns))
            .filter_map(|(name, (old, new))| (old != new).then_some(name.as_str()));
        let differ: Vec<&str> = differ.collect();
        let sampled = format!(
            "{moved} of {} differ, in {}",
            count(old.rows.len() as u64, "sampled row"),
            differ.join(", ")
        );
        // The rows may only have changed places, which is no loss.
        Ok(match self.all(sides).await? {
            Verdict::Same(found) => Verdict::Same(format!("{found}, though not in the same order")),
            Verdict::Different(found) => Verdict::Different(format!("{sampled}; {found}")),
            unknown @ Verdict::Unknown(_) => unknown,
        })
    }

    async fn all(&mut self, sides: &Sides<'_>) -> Result<Verdict> {
        let (old, new) = join(
            sides.before.sums(&sides.old, self.tuning),
            sides.after.sums(&sides.new, self.tuning),
        )
        .await;
        let (old, new) = match sides.readable(old) {
            Ok(old) => (old, new?),
            Err(verdict) => return verdict,
        };
        for sums in [&old, &new] {
            self.read.rows += sums.rows;
            self.read.bytes += sums.bytes;
        }
        self.hashed.extend(sides.new.ids());
        let rows = count(old.rows, "rewritten row");
        if (old.rows, old.all, &old.columns) == (new.rows, new.all, &new.columns) {
            let found = format!("all {rows} are the same in {}", sides.names());
            return Ok(Verdict::Same(found));
        }
        let names = sides.before.columns(false).hashed;
        let differ: Vec<&str> = names
            .iter()
            .zip(old.columns.iter().zip(&new.columns))
            .filter_map(|(name, (old, new))| (old != new).then_some(name.as_str()))
            .collect();
        Ok(Verdict::Different(if old.rows != new.rows {
            format!("{rows} became {} in {}", new.rows, sides.names())
        } else if differ.is_empty() {
            format!(
                "values of {rows} changed places between rows in {}",
                sides.names()
            )
        } else {
            format!(
                "{rows} do not hold the same in {}: column {}",
                sides.names(),
                differ.join(", ")
            )
        }))
    }

    /// Reads what the current version holds beside the rows that were hashed already.
    async fn read_the_rest(&mut self) -> Result<String> {
        let rest = self
            .table
            .part(|fragment| !self.hashed.contains(&fragment.id))
            .await?;
        let sums = self.table.sums(&rest, self.tuning).await?;
        self.read.rows += sums.rows;
        self.read.bytes += sums.bytes;
        Ok(format!(
            "{} of {} read and hashed",
            count(self.read.rows, "row"),
            bytes(self.read.bytes)
        ))
    }

    /// A version; none if it was pruned.
    async fn at(&self, version: u64) -> Result<Option<Table>> {
        match self.table.at(version).await {
            Ok(table) => Ok(Some(table)),
            Err(error) if error.kind == ErrorKind::VersionNotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Two versions, and what they do not have in common.
struct Sides<'a> {
    before: &'a Table,
    old: Part,
    after: &'a Table,
    new: Part,
}

impl Sides<'_> {
    /// What was read of the version before, or the verdict where it cannot be read: a prune may
    /// have begun to delete its files, which does no harm to the version after.
    fn readable<T>(&self, read: Result<T>) -> std::result::Result<T, Result<Verdict>> {
        read.map_err(|error| match error.kind {
            ErrorKind::StorageDenied | ErrorKind::StorageUnreachable => Err(error),
            _ => Ok(Verdict::Unknown(format!(
                "version {} cannot be read any more: {}",
                self.before.version(),
                error.message
            ))),
        })
    }

    fn names(&self) -> String {
        versions(&[self.before.version(), self.after.version()])
    }
}

/// Tells of the commits that are left out.
fn left_out(span: &Span) -> Option<String> {
    let foreign: Vec<u64> = span.foreign.iter().map(|commit| commit.version).collect();
    (!foreign.is_empty()).then(|| {
        format!(
            "what other writers did in {} is left out",
            versions(&foreign)
        )
    })
}
