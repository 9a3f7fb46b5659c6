//! `schema`: the schema after compaction is the schema before.
//!
//! Fields by path, type, nullability, field id and metadata, and the metadata of the schema.
//! A change that other writers' commits account for does not stand against it.

use super::compared::{Compared, Span, versions};
use crate::report::verify::{CheckId, CheckRow};

const EXPECTED: &str = "the schema as before compaction";

/// Lines of a difference that are shown.
const SHOWN: usize = 4;

/// The row of this check.
pub(super) fn check(compared: &Compared) -> CheckRow {
    let span = match compared {
        Compared::Versions(span) => span,
        Compared::OtherTable(reason) => {
            return CheckRow::judged(CheckId::Schema, EXPECTED, reason, false);
        }
        _ => {
            let reason = compared.why_not().unwrap_or_default();
            return CheckRow::skipped(CheckId::Schema, EXPECTED, reason);
        }
    };
    let fields = span.after.schema.len();
    if span.before.schema == span.after.schema {
        let found = format!("the same {fields} fields and metadata entries");
        return CheckRow::judged(CheckId::Schema, EXPECTED, found, true);
    }
    let found = difference(span);
    let by_others: Vec<u64> = span
        .foreign
        .iter()
        .filter(|commit| commit.change.as_ref().is_some_and(|change| change.schema))
        .map(|commit| commit.version)
        .collect();
    let unexplained = span.unexplained();
    if !by_others.is_empty() && span.own_schema_changes.is_empty() {
        let found = format!(
            "{found}; changed by another writer in {}",
            versions(&by_others)
        );
        CheckRow::judged(CheckId::Schema, EXPECTED, found, true)
    } else if unexplained.is_empty() || !span.own_schema_changes.is_empty() {
        CheckRow::judged(CheckId::Schema, EXPECTED, found, false)
    } else {
        CheckRow::skipped(
            CheckId::Schema,
            EXPECTED,
            format!(
                "{found}; who changed it cannot be told, because {} of another writer or the one before was pruned",
                versions(&unexplained)
            ),
        )
    }
}

fn difference(span: &Span) -> String {
    let lost = span
        .before
        .schema
        .iter()
        .filter(|line| !span.after.schema.contains(line))
        .map(|line| format!("without {line:?}"));
    let new = span
        .after
        .schema
        .iter()
        .filter(|line| !span.before.schema.contains(line))
        .map(|line| format!("with {line:?}"));
    let lines: Vec<String> = lost.chain(new).collect();
    match lines.len() {
        0 => "the fields in another order".to_owned(),
        count if count > SHOWN => format!(
            "{} and {} more differences",
            lines[..SHOWN].join(", "),
            count - SHOWN
        ),
        _ => lines.join(", "),
    }
}
