//! Lost races: planned again on the newest version, a bounded number of times.

use std::time::Duration;

use crate::error::{ErrorKind, GuardError};
use crate::stop::Stop;

/// The pause before the first retry. Later ones are longer, up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(100);

/// The longest pause between two attempts.
const LONGEST: Duration = Duration::from_secs(30);

/// Counts the races that a phase lost, and decides whether it tries again.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retries {
    /// Races lost so far.
    pub conflicts: u32,
}

impl Retries {
    /// Waits and says true if the error is a lost race and there is a retry left. The error
    /// carries how many races were lost.
    pub async fn again(
        &mut self,
        error: &mut GuardError,
        limit: u32,
        attempt: Duration,
        stop: &Stop,
    ) -> bool {
        if error.kind != ErrorKind::CommitConflict {
            return false;
        }
        self.conflicts += 1;
        error
            .context
            .insert("races_lost".to_owned(), self.conflicts.to_string());
        if self.conflicts > limit {
            return false;
        }
        let pause = tokio::time::sleep(pause(self.conflicts, attempt, random_share()));
        // The next attempt finds out that it was asked.
        tokio::select! {
            () = pause => {}
            () = stop.asked() => {}
        }
        true
    }
}

/// The pause before a retry: doubled each time and no less than half as long as the attempt
/// that was lost, and then between half and all of it, so that two compactors that lost to each
/// other do not meet again.
fn pause(number: u32, attempt: Duration, share: f64) -> Duration {
    let full = FIRST
        .saturating_mul(1 << number.saturating_sub(1).min(16))
        .max(attempt / 2)
        .min(LONGEST);
    full.mul_f64(0.5 + share / 2.0)
}

/// A number from 0 to 1. Only its being different between processes matters.
fn random_share() -> f64 {
    let byte = uuid::Uuid::new_v4().as_bytes()[0];
    f64::from(byte) / f64::from(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_spread_over_their_upper_half() {
        assert_eq!(pause(1, Duration::ZERO, 1.0), Duration::from_millis(100));
        assert_eq!(pause(1, Duration::ZERO, 0.0), Duration::from_millis(50));
        assert_eq!(pause(3, Duration::ZERO, 1.0), Duration::from_millis(400));
        assert_eq!(pause(100, Duration::ZERO, 1.0), LONGEST);
    }

    #[test]
    fn a_pause_grows_with_the_attempt_that_was_lost() {
        let attempt = Duration::from_secs(6);
        assert_eq!(pause(1, attempt, 1.0), Duration::from_secs(3));
        assert_eq!(pause(1, Duration::from_secs(3600), 1.0), LONGEST);
    }

    #[tokio::test]
    async fn only_lost_races_are_tried_again() {
        let (mut retries, stop) = (Retries::default(), Stop::default());
        let mut other = GuardError::new(ErrorKind::Internal, "x");
        assert!(!retries.again(&mut other, 5, Duration::ZERO, &stop).await);
        assert_eq!(retries.conflicts, 0);
        let mut lost = GuardError::new(ErrorKind::CommitConflict, "x");
        assert!(!retries.again(&mut lost, 0, Duration::ZERO, &stop).await);
        assert_eq!(retries.conflicts, 1);
    }
}
