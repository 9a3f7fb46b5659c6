//! What an operator approves: the sizes of a plan. The audit puts it out, a flow shows it and
//! passes it on as it is, and compact does not go beyond it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sizes of a plan, and by how much a later plan may exceed them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The plan that was shown; for people, since another version of the table has another id.
    #[schemars(length(max = 64))]
    pub plan_id: String,
    /// The version that was planned on.
    pub read_version: u64,
    /// Data bytes that are read and written again. Absent where a size is not recorded: then
    /// they are not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_to_rewrite: Option<u64>,
    /// Fragments that are replaced.
    pub fragments_removed: u64,
    /// Fragments that replace them.
    pub fragments_added: u64,
    /// Versions that are deleted.
    pub versions_to_prune: u64,
    /// Bytes of the files that go with them. Absent where the audit did not ask: then they are
    /// not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_to_prune: Option<u64>,
    /// Names of the indices that are merged, brought up to date, or adapted to rewritten
    /// fragments. An index that is not among them is not touched.
    pub indices: Vec<String>,
    /// By how much, in percent, a plan may exceed each number above.
    #[schemars(range(min = 0, max = 1000))]
    pub allowance_percent: u64,
}

/// Whether the step was bound to what somebody approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// The spec has no approval, as in a scheduled run without a person.
    NotGiven,
    /// The plan is inside what was approved and its allowance.
    WithinAllowance,
}

/// By how much a plan may exceed what was approved, unless somebody says otherwise.
pub(crate) const fn default_allowance_percent() -> u64 {
    25
}
