//! What a run has done and met so far, which later phases depend on.

use crate::error::{ErrorKind, GuardError};
use crate::report::compact::{BudgetKind, LostRace, PhaseStatus, Remaining};
use crate::table::rewrite::Rewrite;

/// The state that the phases hand on.
#[derive(Debug)]
pub struct Progress {
    /// The failure that stops the phases after it.
    pub error: Option<GuardError>,
    /// Whether this run committed a version. What other writers commit meanwhile is none of its
    /// doing, and neither is a reservation of fragment ids a change.
    pub changed: bool,
    /// What of the compaction was planned and committed.
    pub committed: Rewrite,
    /// The races that were lost.
    pub conflicts: Vec<LostRace>,
    /// What was left because of a budget.
    pub remaining: Option<Remaining>,
}

impl Progress {
    /// Before the first phase.
    pub const fn new() -> Self {
        Self {
            error: None,
            changed: false,
            committed: Rewrite::NOTHING,
            conflicts: Vec::new(),
            remaining: None,
        }
    }

    /// How a phase ended that an error stopped.
    pub const fn status_of(error: &GuardError) -> PhaseStatus {
        match error.kind {
            ErrorKind::Stopped => PhaseStatus::Stopped,
            _ => PhaseStatus::Failed,
        }
    }

    /// What is left, to add to it, with one more reason.
    pub fn leave(&mut self, reason: BudgetKind) -> &mut Remaining {
        let remaining = self.remaining.get_or_insert(Remaining {
            tasks: 0,
            fragments: 0,
            bytes: Some(0),
            indices: Vec::new(),
            versions: 0,
            reasons: Vec::new(),
        });
        if !remaining.reasons.contains(&reason) {
            remaining.reasons.push(reason);
        }
        remaining
    }
}
