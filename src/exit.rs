//! Exit codes: one type, one meaning each.

use std::process::ExitCode;

/// How a run ended, as the process tells its caller.
///
/// Answers are successes: findings, nothing to do, a failed verification and a stop at a budget
/// all exit with 0, so that a flow can branch on outputs instead of on a failed task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Exit {
    /// 0: the step ran and answered.
    Answered,
    /// 1: a fault inside the tool or the engine, a caught panic included.
    Internal,
    /// 2: the task spec or the command line is wrong; nothing was opened.
    BadSpec,
    /// 3: database or table not found, or its storage not reachable or not allowed.
    NotReachable,
    /// 4: refused, a precondition does not hold; nothing was changed.
    Refused,
    /// 5: lost against concurrent writers after all retries; running again is right.
    LostRace,
    /// 6: partly done, one phase was committed and a later one failed.
    PartlyDone,
    /// 143: stopped by a signal, with the table whole and the outputs printed.
    Stopped,
}

impl Exit {
    /// Every exit, in the order of its code.
    pub const ALL: [Self; 8] = [
        Self::Answered,
        Self::Internal,
        Self::BadSpec,
        Self::NotReachable,
        Self::Refused,
        Self::LostRace,
        Self::PartlyDone,
        Self::Stopped,
    ];

    /// The process exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Answered => 0,
            Self::Internal => 1,
            Self::BadSpec => 2,
            Self::NotReachable => 3,
            Self::Refused => 4,
            Self::LostRace => 5,
            Self::PartlyDone => 6,
            Self::Stopped => 143,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
