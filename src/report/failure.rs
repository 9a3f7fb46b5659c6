//! Outputs of a run that ended with an error.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Truncation;
use crate::error::GuardError;
use crate::spec::Step;

/// What every failed run puts out, beside whatever its step had to say before it failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureOutputs {
    /// The step, where the spec could be read that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// What went wrong.
    pub error: GuardError,
    /// Lists that were cut so that the outputs stay small; absent where all is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub truncated: Vec<Truncation>,
}
