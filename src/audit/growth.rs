//! Growth: an explosion of fragments told apart from routine ingestion.

use chrono::{DateTime, TimeDelta, Utc};

use crate::report::audit::{Growth, GrowthTrend};
use crate::report::round2;
use crate::report::state::HistoryPoint;

/// A rate this many times the usual one is an explosion.
const EXPLOSION: f64 = 4.0;

/// Fewer new fragments than this are no explosion, at whatever rate.
const FEW_FRAGMENTS: i64 = 10;

/// Growth since the last audit; none for the first, or where the clock went back.
#[must_use]
pub fn of(
    history: &[HistoryPoint],
    fragments: u64,
    critical: u64,
    now: DateTime<Utc>,
) -> Option<Growth> {
    let last = history.last()?;
    let came = difference(last.fragments, fragments);
    let rate = per_day(came, last.at, now)?;
    let explosive =
        usual_rate(history).is_some_and(|usual| came >= FEW_FRAGMENTS && rate >= usual * EXPLOSION);
    let trend = match came {
        ..=0 => GrowthTrend::Steady,
        _ if explosive => GrowthTrend::Explosive,
        _ => GrowthTrend::Routine,
    };
    Some(Growth {
        fragments_since_last: came,
        fragments_per_day: round2(rate),
        trend,
        critical_at: critical_at(fragments, critical, rate, now),
    })
}

/// The median rate of the earlier intervals in which fragments came.
fn usual_rate(history: &[HistoryPoint]) -> Option<f64> {
    let mut rates: Vec<f64> = history
        .windows(2)
        .filter_map(|pair| {
            per_day(
                difference(pair[0].fragments, pair[1].fragments),
                pair[0].at,
                pair[1].at,
            )
        })
        .filter(|rate| *rate > 0.0)
        .collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len().saturating_sub(1) / 2).copied()
}

fn difference(before: u64, after: u64) -> i64 {
    let size = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    size(after).saturating_sub(size(before))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a rate for a report; fragment counts are far below 2^52"
)]
fn per_day(came: i64, from: DateTime<Utc>, to: DateTime<Utc>) -> Option<f64> {
    let seconds = (to - from).num_milliseconds() as f64 / 1000.0;
    (seconds >= 1.0).then(|| came as f64 * 86_400.0 / seconds)
}

/// When the critical threshold is reached at this rate; none if not within a century.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a projection for a report, within a century"
)]
fn critical_at(
    fragments: u64,
    critical: u64,
    rate: f64,
    now: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    if rate <= 0.0 || fragments >= critical {
        return None;
    }
    let days = (critical - fragments) as f64 / rate;
    (days <= 36_500.0).then(|| now + TimeDelta::seconds((days * 86_400.0) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(day: i64, fragments: u64) -> HistoryPoint {
        HistoryPoint {
            at: at(day),
            fragments,
            tombstones: 0,
            versions: 1,
        }
    }

    fn at(day: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(day)
    }

    #[test]
    fn the_first_audit_knows_no_growth() {
        assert_eq!(of(&[], 10, 100, at(0)), None);
    }

    #[test]
    fn a_clock_that_went_back_knows_no_growth() {
        assert_eq!(of(&[point(5, 1)], 10, 100, at(4)), None);
    }

    #[test]
    fn routine_growth_projects_when_critical_is_reached() {
        let growth = of(&[point(0, 10), point(1, 20)], 30, 100, at(2)).unwrap();
        assert_eq!(growth.fragments_since_last, 10);
        assert_eq!(growth.trend, GrowthTrend::Routine);
        assert_eq!(growth.critical_at, Some(at(9)));
    }

    #[test]
    fn four_times_the_usual_rate_is_an_explosion() {
        let history = [point(0, 10), point(1, 20)];
        let trend = |fragments| of(&history, fragments, 1000, at(2)).unwrap().trend;
        assert_eq!(trend(59), GrowthTrend::Routine);
        assert_eq!(trend(60), GrowthTrend::Explosive);
    }

    #[test]
    fn a_compaction_is_steady_and_projects_nothing() {
        let growth = of(&[point(0, 90)], 1, 100, at(1)).unwrap();
        assert_eq!(growth.fragments_since_last, -89);
        assert_eq!(growth.trend, GrowthTrend::Steady);
        assert_eq!(growth.critical_at, None);
    }
}
