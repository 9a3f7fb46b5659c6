//! A lost race: who won it.

use super::progress::Progress;
use crate::error::{ErrorKind, GuardError};
use crate::report::compact::LostRace;
use crate::table::Table;
use crate::table::fault::LOST_TO;
use crate::table::history::conflicts_with_rewrites;

/// Versions that are looked at for the one that won, where lance does not name it.
const LOOKED_AT: u64 = 100;

/// Notes who won, if the fault is a lost race. `table` still reads the version that was worked
/// on.
pub async fn note(table: &Table, fault: &mut GuardError, progress: &mut Progress) {
    if fault.kind != ErrorKind::CommitConflict {
        return;
    }
    let named = fault.context.get(LOST_TO).and_then(|v| v.parse().ok());
    let race = winner(table, named).await.unwrap_or(LostRace {
        version: named.unwrap_or(table.version() + 1),
        operation: "Unknown".to_owned(),
    });
    progress.conflicts.push(race);
    let told: Vec<String> = progress
        .conflicts
        .iter()
        .map(|race| format!("{} (version {})", race.operation, race.version))
        .collect();
    fault.context.remove(LOST_TO);
    fault.context.insert("lost_to".to_owned(), told.join(", "));
}

/// The commit that won; none where it cannot be read any more.
async fn winner(table: &Table, named: Option<u64>) -> Option<LostRace> {
    let (first, last) = match named {
        Some(version) => (version, version),
        None => (table.version() + 1, table.version() + LOOKED_AT),
    };
    let commits = table.history(first, last).await.ok()?;
    let mut commits = commits.into_values();
    let harmful = |operation: &str| named.is_some() || conflicts_with_rewrites(operation);
    let commit = commits.find(|commit| harmful(&commit.operation))?;
    Some(LostRace {
        version: commit.version,
        operation: commit.operation,
    })
}
