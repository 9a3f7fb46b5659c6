//! `rows`: the live rows after compaction are the live rows before, but for other writers'
//! commits.
//!
//! `rows(after) - sum of what foreign commits changed == rows(before)`. It also fails where the
//! baseline's row counts are not those of the manifests, and where the baseline calls a commit
//! its own that no compaction makes: a delete under that name would hide a loss.

use super::compared::{Compared, Span};
use crate::report::baseline::{Baseline, VersionCounts};
use crate::report::verify::{CheckId, CheckRow};

/// The row of this check.
pub(super) fn check(compared: &Compared, baseline: Option<&Baseline>) -> CheckRow {
    let (span, baseline) = match (compared, baseline) {
        (Compared::Versions(span), Some(baseline)) => (span, baseline),
        (Compared::OtherTable(reason), _) => {
            return CheckRow::judged(
                CheckId::Rows,
                "the rows as before compaction",
                reason,
                false,
            );
        }
        (
            Compared::BeforeGone {
                after: Some(after), ..
            },
            Some(baseline),
        ) if baseline.all_own() => return by_the_baseline(baseline, after.counts),
        _ => {
            let reason = compared.why_not().unwrap_or_default();
            return CheckRow::skipped(CheckId::Rows, "the rows as before compaction", reason);
        }
    };
    let before = span.before.counts;
    let after = span.after.counts;
    let others = span.foreign_sum(|change| change.rows);
    let mut expected = format!("{} rows as in version {}", before.rows, before.version);
    if others != 0 {
        expected = format!(
            "{} rows: {} as in version {}, and {others:+} by other writers",
            i128::from(before.rows) + others,
            before.rows,
            before.version
        );
    }
    let found = format!("{} rows in {}", after.rows, span.after_name());
    let mut faults = lies(span, baseline);
    faults.extend(span.not_own.iter().map(|commit| {
        format!(
            "version {} is called a commit of the compaction, but it is a {}",
            commit.version, commit.operation
        )
    }));
    if !faults.is_empty() {
        let found = format!("{found}; {}", faults.join("; "));
        return CheckRow::judged(CheckId::Rows, expected, found, false);
    }
    let same = i128::from(after.rows) - others == i128::from(before.rows);
    span.judged(CheckId::Rows, expected, found, same)
}

/// Without the version before, what the baseline says of it still holds the rows to account,
/// where nobody else committed in between.
fn by_the_baseline(baseline: &Baseline, after: VersionCounts) -> CheckRow {
    let before = baseline.before;
    CheckRow::judged(
        CheckId::Rows,
        format!(
            "{} rows, as the baseline says of version {}, which was pruned",
            before.rows, before.version
        ),
        format!("{} rows in version {}", after.rows, after.version),
        after.rows == before.rows,
    )
}

/// Row counts of the baseline that are not those of the manifests.
fn lies(span: &Span, baseline: &Baseline) -> Vec<String> {
    super::lies(span, baseline, "rows", |counts| counts.rows)
}
