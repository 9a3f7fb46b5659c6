//! `indices_covering`: every index covers every fragment that has live rows.
//!
//! One row an index. Uncovered rows do not stand against it where nothing else can be expected,
//! and the reason is said:
//! - the fragment came by another writer's commit, while compaction ran or after it;
//! - the compact step said that it leaves the index behind;
//! - a vector index that covers nothing, in a table with fewer rows than training needs.
//!
//! Without a baseline nobody knows whose fragment it is, so every uncovered row counts.

use std::collections::BTreeSet;

use super::compared::Compared;
use crate::report::baseline::{Baseline, VersionCounts};
use crate::report::verify::{CheckId, CheckRow};
use crate::table::counts::VersionView;
use crate::table::coverage::IndexCoverage;
use crate::table::indices::{MIN_ROWS_TO_TRAIN, needs_many_rows};

/// A row for each index, or one skipped row for a table without any.
pub(super) fn check(
    compared: &Compared,
    baseline: Option<&Baseline>,
    now: &VersionView,
    indices: &[IndexCoverage],
) -> Vec<CheckRow> {
    if indices.is_empty() {
        return vec![CheckRow::skipped(
            CheckId::IndicesCovering,
            "every index covers every fragment with rows",
            "the table has no index",
        )];
    }
    let of_others = fragments_of_others(compared, now);
    let told = |index: &IndexCoverage| {
        baseline.is_some_and(|b| b.indices_left_behind.contains(&index.name))
    };
    indices
        .iter()
        .map(|index| row(index, told(index), now.counts, &of_others).on(&index.name))
        .collect()
}

fn row(
    index: &IndexCoverage,
    told: bool,
    now: VersionCounts,
    of_others: &BTreeSet<u64>,
) -> CheckRow {
    let check = CheckId::IndicesCovering;
    let expected = format!("all {} rows covered", now.rows);
    let Some(indexed) = index.rows_indexed else {
        return CheckRow::skipped(
            check,
            expected,
            "the coverage is not recorded, or this build cannot read the index",
        );
    };
    let unindexed = index.rows_unindexed();
    if unindexed == 0 {
        return CheckRow::judged(check, expected, format!("{indexed} rows covered"), true);
    }
    let found = format!("{indexed} rows covered, {unindexed} not");
    if needs_many_rows(&index.index_type) && indexed == 0 && now.rows < MIN_ROWS_TO_TRAIN {
        let found = format!(
            "{found}: fewer than the {MIN_ROWS_TO_TRAIN} rows that a vector index needs to be trained; searches read all rows"
        );
        return CheckRow::judged(check, expected, found, true);
    }
    if told {
        let found = format!("{found}: the compact step said that it leaves this index behind");
        return CheckRow::judged(check, expected, found, true);
    }
    let late: u64 = index
        .uncovered
        .iter()
        .filter(|(fragment, _)| of_others.contains(fragment))
        .map(|(_, rows)| rows)
        .sum();
    if late == unindexed {
        let found = format!("{found}: written by others while compaction ran or after it");
        return CheckRow::judged(check, expected, found, true);
    }
    let found = if late > 0 {
        format!("{found}, of which others wrote {late} while compaction ran or after it")
    } else {
        found
    };
    CheckRow::judged(check, expected, found, false)
}

/// Fragments that other writers added while compaction ran or after it.
fn fragments_of_others(compared: &Compared, now: &VersionView) -> BTreeSet<u64> {
    let after = match compared {
        Compared::Versions(span) => Some(&span.after),
        Compared::BeforeGone { after, .. } => after.as_ref(),
        Compared::NoBaseline | Compared::OtherTable(_) => None,
    };
    let mut fragments: BTreeSet<u64> = after
        .map(|after| &now.fragment_ids - &after.fragment_ids)
        .unwrap_or_default();
    if let Compared::Versions(span) = compared {
        for change in span.changes() {
            fragments.extend(&change.added);
        }
    }
    fragments
}
