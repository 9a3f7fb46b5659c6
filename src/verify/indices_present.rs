//! `indices_present`: every index that existed before exists now.
//!
//! An index that another writer's commit dropped does not stand against it; the commit is named.

use std::collections::BTreeSet;

use super::compared::Compared;
use crate::error::Result;
use crate::report::baseline::Baseline;
use crate::report::verify::{CheckId, CheckRow};
use crate::table::Table;

/// The row of this check on the version that `table` reads.
pub(super) async fn check(
    compared: &Compared,
    baseline: Option<&Baseline>,
    table: &Table,
) -> Result<CheckRow> {
    let expected = "every index that existed before compaction";
    let Some(baseline) = baseline else {
        let reason = compared.why_not().unwrap_or_default();
        return Ok(CheckRow::skipped(CheckId::IndicesPresent, expected, reason));
    };
    if baseline.index_names.is_empty() {
        let found = "there was no index before";
        return Ok(CheckRow::judged(
            CheckId::IndicesPresent,
            expected,
            found,
            true,
        ));
    }
    let expected = format!("the indices {}", baseline.index_names.join(", "));
    let present = table.index_names().await?;
    let missing: BTreeSet<&String> = baseline
        .index_names
        .iter()
        .filter(|name| !present.contains(*name))
        .collect();
    if missing.is_empty() {
        let found = format!("all {} of them", baseline.index_names.len());
        return Ok(CheckRow::judged(
            CheckId::IndicesPresent,
            expected,
            found,
            true,
        ));
    }
    let history = table
        .index_history(baseline.before.version, table.version())
        .await?;
    let mut passed = true;
    let mut found = Vec::new();
    for name in missing {
        // The version that has it no more, and whether the one right before still had it.
        let dropped = history.iter().find(|(version, (_, names))| {
            !names.contains(name)
                && version
                    .checked_sub(1)
                    .and_then(|previous| history.get(&previous))
                    .is_some_and(|(_, names)| names.contains(name))
        });
        match dropped {
            Some((version, (operation, _))) if !baseline.committed_versions.contains(version) => {
                found.push(format!(
                    "{name} was dropped by another writer in version {version} ({operation})"
                ));
            }
            Some((version, (operation, _))) => {
                passed = false;
                found.push(format!(
                    "{name} was lost in version {version} ({operation}) of the compaction itself"
                ));
            }
            None => {
                passed = false;
                found.push(format!(
                    "{name} is missing, and the versions that are left do not say since when"
                ));
            }
        }
    }
    Ok(CheckRow::judged(
        CheckId::IndicesPresent,
        expected,
        found.join("; "),
        passed,
    ))
}
