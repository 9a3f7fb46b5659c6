//! `scalar_indices`: keys looked up through a scalar index are the rows that a scan finds, each
//! once.
//!
//! One row an index. The keys are those of a few rows, chosen by the seed, and of a few rows that
//! are deleted but still stored, in the version before compaction where it is there: a stale
//! entry of the index would bring them back. The engine's plan must name the index, or nothing
//! was looked up in it.
//!
//! At the level `standard` the scan reads the column in about a million rows, in fragments that
//! the seed chooses, and the lookup is held to the same fragments; at `full` in all rows.
//!
//! Where it does not hold, the version before compaction is asked as well, so that an operator
//! knows whether the fault is older.

use super::compared::Compared;
use super::failed_by;
use crate::error::{ErrorKind, Result};
use crate::report::text::count;
use crate::report::verify::{CheckId, CheckRow};
use crate::spec::tuning::CanaryTuning;
use crate::spec::verify::Level;
use crate::table::Table;
use crate::table::contents::Part;
use crate::table::coverage::IndexCoverage;
use crate::table::lookup::{FoundRows, Keys};

/// Rows of which the column is read at the level `standard`, up to the end of a fragment.
const ROWS_AT_STANDARD: u64 = 1_000_000;

const EXPECTED: &str = "the rows that a scan finds, each once";

/// A row for each index that is not one of vectors.
pub(super) async fn check(
    compared: &Compared,
    table: &Table,
    level: Level,
    tuning: &CanaryTuning,
    indices: &[IndexCoverage],
) -> Result<Vec<CheckRow>> {
    let before = match compared {
        Compared::Versions(span) => match table.at(span.before.counts.version).await {
            Ok(before) => Some(before),
            Err(error) if error.kind == ErrorKind::VersionNotFound => None,
            Err(error) => return Err(error),
        },
        _ => None,
    };
    let work = Work {
        table,
        before,
        level,
        tuning,
    };
    let mut rows = Vec::new();
    for index in indices.iter().filter(|index| index.vector.is_none()) {
        let row = match work.index(index).await {
            Ok(row) => row,
            Err(error) => failed_by(CheckId::ScalarIndices, EXPECTED, error)?,
        };
        rows.push(row.on(&index.name));
    }
    Ok(rows)
}

struct Work<'a> {
    table: &'a Table,
    /// The version before compaction, where it can be compared with.
    before: Option<Table>,
    level: Level,
    tuning: &'a CanaryTuning,
}

/// The rows that a scan finds, and those that an index finds.
struct BothWays {
    scan: FoundRows,
    index: FoundRows,
}

impl Work<'_> {
    async fn index(&self, index: &IndexCoverage) -> Result<CheckRow> {
        let skipped = |reason: String| CheckRow::skipped(CheckId::ScalarIndices, EXPECTED, reason);
        let kind = &index.index_type;
        let Some(none) = Keys::none_for(self.table, index) else {
            return Ok(skipped(format!(
                "an index of type {kind} cannot be compared with a scan key by key"
            )));
        };
        let part = self.part_of(self.table).await?;
        let (wanted, seed) = (self.tuning.keys as usize, self.tuning.seed);
        let mut keys = self.table.live_keys(&none, &part, wanted, seed).await?;
        let live = keys.len();
        keys.extend(self.deleted_keys(&none, wanted).await?);
        if keys.is_empty() {
            return Ok(skipped(
                "none of the rows that were looked at has a key".to_owned(),
            ));
        }
        let Some(found) = both_ways(self.table, &keys, &part, &index.name).await? else {
            return Ok(skipped(format!(
                "the engine does not ask this index, of type {kind}, for single keys"
            )));
        };
        let mut text = count(keys.len() as u64, "key");
        if keys.len() > live {
            text.push_str(&format!(", {} of deleted rows only", keys.len() - live));
        }
        let passed = found.scan == found.index;
        text.push_str(&if passed {
            format!(": the same {} both ways", count(found.scan.count, "row"))
        } else if found.scan.count == found.index.count {
            format!(
                ": the index finds other rows than a scan, {} each way",
                found.scan.count
            )
        } else {
            format!(
                ": the index finds {}, a scan {}",
                count(found.index.count, "row"),
                found.scan.count
            )
        });
        if !passed {
            text.push_str(&self.blame(&keys, &index.name).await);
        }
        Ok(CheckRow::judged(
            CheckId::ScalarIndices,
            EXPECTED,
            text,
            passed,
        ))
    }

    /// Keys of deleted rows. A version before compaction whose files are being pruned has none.
    async fn deleted_keys(&self, none: &Keys, wanted: usize) -> Result<Keys> {
        if let Some(before) = &self.before
            && let Ok(keys) = before.deleted_keys(none, wanted).await
        {
            return Ok(keys);
        }
        self.table.deleted_keys(none, wanted).await
    }

    async fn part_of(&self, table: &Table) -> Result<Part> {
        let rows = match self.level {
            Level::Full => u64::MAX,
            Level::Quick | Level::Standard => ROWS_AT_STANDARD,
        };
        table.some_fragments(rows, self.tuning.seed).await
    }

    /// Whether the fault was there before compaction, as far as that can be told.
    async fn blame(&self, keys: &Keys, name: &str) -> String {
        let Some(before) = &self.before else {
            return String::new();
        };
        let version = before.version();
        let asked = async {
            let part = self.part_of(before).await?;
            both_ways(before, keys, &part, name).await
        };
        match asked.await {
            Ok(Some(found)) if found.scan == found.index => {
                format!("; version {version} from before compaction has no such fault")
            }
            Ok(Some(_)) => format!("; version {version} from before compaction has the same fault"),
            // Its index may be gone: nothing can be said.
            Ok(None) | Err(_) => String::new(),
        }
    }
}

async fn both_ways(
    table: &Table,
    keys: &Keys,
    part: &Part,
    name: &str,
) -> Result<Option<BothWays>> {
    let Some(index) = table.look_up(keys, part, Some(name)).await? else {
        return Ok(None);
    };
    let scan = table.look_up(keys, part, None).await?.unwrap_or_default();
    Ok(Some(BothWays { scan, index }))
}
