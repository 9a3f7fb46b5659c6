//! What a run puts out, whichever step it was and however it ended.

use serde::{Serialize, Serializer};

use super::audit::AuditOutputs;
use super::compact::CompactOutputs;
use super::failure::FailureOutputs;
use super::table::TableId;
use super::verify::VerifyOutputs;
use crate::error::GuardError;
use crate::exit::Exit;
use crate::spec::Step;

/// The outputs of one run.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The audit answered.
    Audit(Box<AuditOutputs>),
    /// The compact step answered, or failed after it had something to say.
    Compact(Box<CompactOutputs>),
    /// The verification answered.
    Verify(Box<VerifyOutputs>),
    /// The run failed.
    Failure(Box<FailureOutputs>),
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Audit(outputs) => outputs.serialize(serializer),
            Self::Compact(outputs) => outputs.serialize(serializer),
            Self::Verify(outputs) => outputs.serialize(serializer),
            Self::Failure(outputs) => outputs.serialize(serializer),
        }
    }
}

impl Outcome {
    /// The outputs of a run that failed with nothing else to say.
    #[must_use]
    pub fn failure(step: Option<Step>, error: GuardError) -> Self {
        Self::Failure(Box::new(FailureOutputs {
            step,
            error,
            truncated: Vec::new(),
        }))
    }

    /// The step, where it is known.
    #[must_use]
    pub fn step(&self) -> Option<Step> {
        match self {
            Self::Audit(_) => Some(Step::Audit),
            Self::Compact(_) => Some(Step::Compact),
            Self::Verify(_) => Some(Step::Verify),
            Self::Failure(outputs) => outputs.step,
        }
    }

    /// The table, where the run got that far.
    #[must_use]
    pub fn table(&self) -> Option<&TableId> {
        match self {
            Self::Audit(outputs) => Some(&outputs.table),
            Self::Compact(outputs) => Some(&outputs.table),
            Self::Verify(outputs) => Some(&outputs.table),
            Self::Failure(_) => None,
        }
    }

    /// What went wrong, if anything.
    #[must_use]
    pub fn error(&self) -> Option<&GuardError> {
        match self {
            Self::Audit(_) | Self::Verify(_) => None,
            Self::Compact(outputs) => outputs.error.as_ref(),
            Self::Failure(outputs) => Some(&outputs.error),
        }
    }

    /// How the process exits.
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.error().map_or(Exit::Answered, GuardError::exit)
    }

    /// What an operator should know.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        match self {
            Self::Audit(outputs) => &outputs.warnings,
            Self::Compact(outputs) => &outputs.warnings,
            Self::Verify(outputs) => &outputs.warnings,
            Self::Failure(_) => &[],
        }
    }

    /// All of it in a few sentences.
    #[must_use]
    pub fn summary(&self) -> &str {
        match self {
            Self::Audit(outputs) => &outputs.summary,
            Self::Compact(outputs) => &outputs.summary,
            Self::Verify(outputs) => &outputs.summary,
            Self::Failure(outputs) => &outputs.error.message,
        }
    }
}
