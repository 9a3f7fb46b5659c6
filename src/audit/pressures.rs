//! Pressures: values against thresholds, and whether a compact step would relieve them.
//!
//! A value that a compact step cannot bring down is no bloat: a table of a hundred fragments at
//! their target size is as it should be.

use super::decision::Thresholds;
use crate::report::audit::{Pressure, PressureKind};
use crate::table::snapshot::Snapshot;

/// Every pressure, in a fixed order.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "values for a report; counts near 2^52 do not occur"
)]
pub fn of(snapshot: &Snapshot, thresholds: &Thresholds) -> Vec<Pressure> {
    let fragments = snapshot.fragments.count;
    let prunable = snapshot.versions.prunable;
    let unindexed = snapshot
        .indices
        .iter()
        .filter_map(|i| i.fact.unindexed_pct)
        .fold(0.0, f64::max);
    let index_work = snapshot
        .indices
        .iter()
        .filter(|i| i.is_behind())
        .filter_map(|i| i.fact.unindexed_pct)
        .any(|percent| percent >= thresholds.unindexed_percent);
    vec![
        Pressure {
            kind: PressureKind::Fragments,
            value: fragments as f64,
            threshold: thresholds.fragments as f64,
            reached: fragments >= thresholds.fragments,
            curable: relieves(snapshot, thresholds.fragments),
        },
        Pressure {
            kind: PressureKind::Tombstones,
            value: snapshot.fragments.tombstone_pct,
            threshold: thresholds.tombstone_percent,
            reached: snapshot.fragments.tombstone_pct >= thresholds.tombstone_percent,
            curable: snapshot.plan.compaction.tombstones_to_clear > 0,
        },
        Pressure {
            kind: PressureKind::StaleVersions,
            value: prunable as f64,
            threshold: thresholds.stale_versions as f64,
            reached: prunable >= thresholds.stale_versions,
            curable: prunable > 0,
        },
        Pressure {
            kind: PressureKind::UnindexedRows,
            value: unindexed,
            threshold: thresholds.unindexed_percent,
            reached: unindexed >= thresholds.unindexed_percent,
            curable: index_work,
        },
    ]
}

/// Whether compaction would remove so many fragments that a table which it leaves with one
/// fragment would have reached the threshold: `removed + 1 >= threshold`. Thresholds count the
/// fragments that are too many, so a large table is not bloated by its size alone.
#[must_use]
pub fn relieves(snapshot: &Snapshot, threshold: u64) -> bool {
    let removed = snapshot
        .fragments
        .count
        .saturating_sub(snapshot.plan.compaction.fragments_expected);
    removed > 0 && removed + 1 >= threshold
}
