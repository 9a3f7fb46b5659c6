//! `fragments`: the fragments after compaction are what the plan promised.
//!
//! Compact plans again when it loses a race, so some of the foreign commits may already be part
//! of its promise. The check holds if the promise and the changes of the foreign commits after
//! some point in time, the first or the last included, make the fragments that are found.
//!
//! Without a baseline it can only say that there are not more fragments than the audit found.

use super::compared::Compared;
use crate::report::baseline::{Baseline, VersionCounts};
use crate::report::text::count;
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
            return CheckRow::judged(CheckId::Fragments, "fragments as planned", reason, false);
        }
        _ => {
            let reason = compared.why_not().unwrap_or_default();
            return CheckRow::skipped(CheckId::Fragments, "fragments as planned", reason);
        }
    };
    let promised = i128::from(baseline.fragments_expected);
    let found_count = i128::from(span.after.counts.fragments);
    let others = span.foreign_sum(|change| change.fragments);
    let mut expected = format!(
        "{} as planned",
        count(baseline.fragments_expected, "fragment")
    );
    if others != 0 {
        expected = format!("{expected}, and {others:+} by other writers");
    }
    let found = format!(
        "{} in {}",
        count(span.after.counts.fragments, "fragment"),
        span.after_name()
    );
    let lies = super::lies(span, baseline, "fragments", |counts| counts.fragments);
    if !lies.is_empty() {
        let found = format!("{found}; {}", lies.join("; "));
        return CheckRow::judged(CheckId::Fragments, expected, found, false);
    }
    let mut sum = promised;
    let mut as_planned = sum == found_count;
    for change in span.changes().rev() {
        sum += change.fragments;
        as_planned |= sum == found_count;
    }
    span.judged(CheckId::Fragments, expected, found, as_planned)
}

fn without_baseline(pre: Option<u64>, now: VersionCounts) -> CheckRow {
    match pre {
        None => CheckRow::skipped(
            CheckId::Fragments,
            "fragments as planned",
            "the spec has neither a baseline nor pre_fragments to compare with",
        ),
        Some(pre) => CheckRow::judged(
            CheckId::Fragments,
            format!(
                "at most {pre} fragments, as many as before (without a baseline the plan is not known)"
            ),
            format!("{} fragments in version {}", now.fragments, now.version),
            now.fragments <= pre,
        ),
    }
}
