//! What a run has done and met so far, which later phases depend on.

use crate::error::GuardError;
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
}

impl Progress {
    /// Before the first phase.
    pub const fn new() -> Self {
        Self {
            error: None,
            changed: false,
            committed: Rewrite::NOTHING,
        }
    }
}
