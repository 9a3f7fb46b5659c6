//! `files`: every file that the current version refers to is there, with its recorded size.
//!
//! Data files and the files laid over them, deletion files, and files of indices. One listing
//! answers; no file is opened, so a file that is there in full length but holds garbage is for
//! the canary to find.

use super::failed_by;
use crate::error::Result;
use crate::report::verify::{CheckId, CheckRow};
use crate::table::Table;

/// Findings that are shown.
const SHOWN: usize = 5;

/// The row of this check on the version that `table` reads.
pub(super) async fn check(table: &Table) -> Result<CheckRow> {
    let expected = "every referenced file there, with its recorded size";
    let listed = table.list_files().await?;
    let check = match table.check_files(&listed).await {
        Ok(check) => check,
        Err(error) => return failed_by(CheckId::Files, expected, error),
    };
    let mut found = if check.findings.is_empty() {
        format!(
            "{} files of {} bytes, all as recorded",
            check.referenced, check.referenced_bytes
        )
    } else {
        let shown: Vec<String> = check
            .findings
            .iter()
            .take(SHOWN)
            .map(ToString::to_string)
            .collect();
        format!(
            "{} of {} files are not as recorded: {}",
            check.findings.len(),
            check.referenced,
            shown.join(", ")
        )
    };
    if check.findings.len() > SHOWN {
        found.push_str(&format!(" and {} more", check.findings.len() - SHOWN));
    }
    Ok(CheckRow::judged(
        CheckId::Files,
        expected,
        found,
        check.findings.is_empty(),
    ))
}
