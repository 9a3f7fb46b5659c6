//! The clock of a run: injected, never asked for inside a step.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use crate::error::{ErrorKind, GuardError, Result};

/// How far `evaluated_at` may be ahead of the real clock.
const MAX_AHEAD: TimeDelta = TimeDelta::minutes(5);

/// The times that a step judges by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// The time at which the table is judged.
    pub evaluated_at: DateTime<Utc>,
}

impl Clock {
    /// The clock of a run: `evaluated_at` of the spec, or the real clock.
    ///
    /// # Errors
    /// `clock_ahead` where the spec's clock is more than five minutes ahead of the real one: a
    /// wrong clock must not shorten the retention.
    pub fn of_run(evaluated_at: Option<DateTime<Utc>>, real: DateTime<Utc>) -> Result<Self> {
        let evaluated_at = evaluated_at.unwrap_or(real);
        if evaluated_at - real > MAX_AHEAD {
            return Err(GuardError::new(
                ErrorKind::ClockAhead,
                format!(
                    "evaluated_at {} is ahead of the clock of this machine, {}",
                    shown(evaluated_at),
                    shown(real)
                ),
            )
            .hint("Leave evaluated_at away, or set the clocks right: a time in the future would shorten the retention."));
        }
        Ok(Self { evaluated_at })
    }
}

/// A time for a person, to the second.
fn shown(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_ahead_by_more_than_five_minutes_is_refused() {
        let real = DateTime::UNIX_EPOCH;
        let at = |seconds| Clock::of_run(Some(real + TimeDelta::seconds(seconds)), real);
        assert!(at(300).is_ok());
        assert_eq!(at(301).unwrap_err().kind, ErrorKind::ClockAhead);
        assert!(at(-1_000_000).is_ok());
        assert_eq!(Clock::of_run(None, real).unwrap().evaluated_at, real);
    }
}
