//! The task spec: one JSON object that says which step to run on which table, and how.
//!
//! - [`parse`](mod@parse): bytes to a checked spec, by way of [`strict_json`] and the schema.
//! - `faults`: what is wrong with a spec, in plain words.
//! - [`audit`], [`compact`], [`verify`]: the fields of each step.
//! - [`rules`]: rules between fields, which a schema cannot say.
//! - [`location`]: what a database location and a table name may be.
//! - [`tuning`]: the objects that tune an operation, shared by steps.
//! - [`example`](mod@example): a spec of each step to start from.

pub mod audit;
pub mod compact;
pub mod example;
pub(crate) mod faults;
pub mod location;
pub mod parse;
pub mod rules;
pub mod strict_json;
pub mod tuning;
pub mod verify;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use audit::AuditSpec;
pub use compact::CompactSpec;
pub use example::example;
pub use location::{Location, TableName};
pub use parse::{Checked, parse};
pub use verify::VerifySpec;

/// The largest spec that is read, in bytes.
pub const MAX_SPEC_BYTES: usize = 4 * 1024 * 1024;

/// The version of the spec format that this build understands.
pub const SPEC_VERSION: u32 = 1;

/// The steps of the tool.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Read-only: facts, decision and plan for one table.
    Audit,
    /// Index merge, compaction, index catch-up, checks, prune.
    Compact,
    /// Read-only: was the compaction right, and is the table healthy now?
    Verify,
}

impl Step {
    /// Every step, in the order in which a flow runs them.
    pub const ALL: [Self; 3] = [Self::Audit, Self::Compact, Self::Verify];

    /// The step as the spec spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Compact => "compact",
            Self::Verify => "verify",
        }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A checked spec.
#[derive(Debug, Clone)]
pub enum TaskSpec {
    /// The audit step.
    Audit(AuditSpec),
    /// The compact step.
    Compact(CompactSpec),
    /// The verify step.
    Verify(VerifySpec),
}

/// What every step needs to know, borrowed from its spec.
#[derive(Debug, Clone, Copy)]
pub struct Common<'a> {
    /// The step.
    pub step: Step,
    /// The database location as the spec gives it.
    pub db_uri: &'a str,
    /// The table name as the spec gives it.
    pub table_name: &'a str,
    /// Options of the object store.
    pub storage_options: &'a BTreeMap<String, String>,
    /// The execution that asks, or `manual`.
    pub execution_id: &'a str,
    /// The clock that the spec sets, for replay.
    pub evaluated_at: Option<DateTime<Utc>>,
}

impl TaskSpec {
    /// The fields that every step has.
    #[must_use]
    pub fn common(&self) -> Common<'_> {
        macro_rules! common {
            ($spec:expr, $step:expr) => {
                Common {
                    step: $step,
                    db_uri: &$spec.db_uri,
                    table_name: &$spec.table_name,
                    storage_options: &$spec.storage_options,
                    execution_id: &$spec.execution_id,
                    evaluated_at: $spec.evaluated_at,
                }
            };
        }
        match self {
            Self::Audit(spec) => common!(spec, Step::Audit),
            Self::Compact(spec) => common!(spec, Step::Compact),
            Self::Verify(spec) => common!(spec, Step::Verify),
        }
    }
}

/// The execution id of a spec that names none.
pub(crate) fn manual() -> String {
    "manual".to_owned()
}
