//! `tombstones`: the deleted rows that the plan promised to clear are cleared.
//!
//! `tombstones(after) <= tombstones(before) - promised + what foreign commits changed`. More may
//! be cleared than was promised, never less.
//!
//! Without a baseline it can only say that there are not more deleted rows than the audit found.

use super::compared::Compared;
use crate::report::baseline::{Baseline, VersionCounts};
use crate::report::verify::{CheckId, CheckRow};

/// The row of this check. `pre` is what the audit found, `now` what the current version has.
pub(super) fn check(
    compared: &Compared,
    baseline: Option<&Baseline>,
    pre: Option<u64>,
    now: VersionCounts,
) -> CheckRow {
    let (span, baseline) = match (compared, baseline) {
        (Compared::Versions(span), Some(baseline)) => (span, baseline),
        (Compared::NoBaseline, _) => return without_baseline(pre, now),
        (Compared::OtherTable(reason), _) => {
            return CheckRow::judged(
                CheckId::Tombstones,
                "deleted rows cleared as planned",
                reason,
                false,
            );
        }
        _ => {
            let reason = compared.why_not().unwrap_or_default();
            return CheckRow::skipped(
                CheckId::Tombstones,
                "deleted rows cleared as planned",
                reason,
            );
        }
    };
    let before = span.before.counts;
    let others = span.foreign_sum(|change| change.tombstones);
    let promised = baseline.tombstones_to_clear;
    let allowed = i128::from(before.tombstones) - i128::from(promised) + others;
    let mut expected = format!(
        "at most {} deleted rows: {} in version {}, less {promised} as planned",
        allowed.max(0),
        before.tombstones,
        before.version
    );
    if others != 0 {
        expected = format!("{expected}, and {others:+} by other writers");
    }
    let count = span.after.counts.tombstones;
    let found = format!("{count} deleted rows in {}", span.after_name());
    let lies = super::lies(span, baseline, "deleted rows", |counts| counts.tombstones);
    if !lies.is_empty() {
        let found = format!("{found}; {}", lies.join("; "));
        return CheckRow::judged(CheckId::Tombstones, expected, found, false);
    }
    let cleared = i128::from(count) <= allowed.max(0);
    span.judged(CheckId::Tombstones, expected, found, cleared)
}

fn without_baseline(pre: Option<u64>, now: VersionCounts) -> CheckRow {
    match pre {
        None => CheckRow::skipped(
            CheckId::Tombstones,
            "deleted rows cleared as planned",
            "the spec has neither a baseline nor pre_tombstones to compare with",
        ),
        Some(pre) => CheckRow::judged(
            CheckId::Tombstones,
            format!(
                "at most {pre} deleted rows, as many as before (without a baseline the plan is not known)"
            ),
            format!("{} deleted rows in version {}", now.tombstones, now.version),
            now.tombstones <= pre,
        ),
    }
}
