//! The one error type of the tool, and the space of its kinds.
//!
//! Rules for an error:
//! - `kind` is a closed set: flows branch on it, so a name never changes its meaning.
//! - `message` says what happened, with the values at hand and without secrets.
//! - `hint` says what to do next. It is absent where nothing better than the message is known.
//! - `retryable` is true only where the same spec may succeed without anybody changing anything.
//! - `context` holds facts by name, for people who look into it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::redact;

/// What went wrong. Each kind belongs to exactly one exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A fault inside the tool or the engine.
    Internal,
    /// The report file could not be written.
    ReportNotWritable,
    /// The command line is wrong, or the spec file cannot be read.
    Usage,
    /// The spec is empty.
    SpecEmpty,
    /// The spec is larger than 4 MiB.
    SpecTooLarge,
    /// The spec is not UTF-8.
    SpecNotUtf8,
    /// The spec is not one JSON value, or not an object.
    SpecNotJson,
    /// An object in the spec has the same key twice.
    SpecDuplicateKey,
    /// The state and the baseline in the spec are larger than Kestra can hand on.
    StateTooLarge,
    /// The spec breaks its schema or a rule; `context` lists all faults.
    SpecInvalid,
    /// The database folder or bucket does not exist.
    DatabaseNotFound,
    /// The database has no such table.
    TableNotFound,
    /// A table version that the step needs no longer exists.
    VersionNotFound,
    /// The storage refused the credentials or the permission.
    StorageDenied,
    /// The storage does not answer.
    StorageUnreachable,
    /// The storage is full.
    StorageFull,
    /// This build has no support for the location's scheme.
    StorageNotBuiltIn,
    /// `db://`: a database that LanceDB itself maintains.
    ManagedDatabase,
    /// `evaluated_at` is ahead of the real clock.
    ClockAhead,
    /// The retention is below the floor of one hour.
    RetentionBelowFloor,
    /// The table has manifests in two naming schemes.
    ManifestSchemeMixed,
    /// The table uses a feature that this build does not know.
    TableTooNew,
    /// The table prunes itself on every commit, and so would outside this tool's retention.
    AutoCleanupSet,
    /// Another writer committed within `quiet_minutes`.
    WritersActive,
    /// The table is a shallow clone, which this step would damage.
    ShallowClone,
    /// The plan is larger than what was approved, by more than the allowance.
    PlanExceedsApproval,
    /// The volume of the table has less space than the plan needs.
    InsufficientSpace,
    /// The table is damaged: a referenced file is missing or a file cannot be read.
    TableDamaged,
    /// Lost against concurrent writers after all retries.
    CommitConflict,
    /// A phase was committed and a later one failed.
    PartlyDone,
    /// Stopped by a signal.
    Stopped,
}

impl ErrorKind {
    /// The exit that a run with this error ends with.
    #[must_use]
    pub const fn exit(self) -> Exit {
        match self {
            Self::Internal | Self::ReportNotWritable => Exit::Internal,
            Self::Usage
            | Self::SpecEmpty
            | Self::SpecTooLarge
            | Self::SpecNotUtf8
            | Self::SpecNotJson
            | Self::SpecDuplicateKey
            | Self::StateTooLarge
            | Self::SpecInvalid => Exit::BadSpec,
            Self::DatabaseNotFound
            | Self::TableNotFound
            | Self::VersionNotFound
            | Self::StorageDenied
            | Self::StorageUnreachable
            | Self::StorageFull
            | Self::StorageNotBuiltIn => Exit::NotReachable,
            Self::ManagedDatabase
            | Self::ClockAhead
            | Self::RetentionBelowFloor
            | Self::ManifestSchemeMixed
            | Self::TableTooNew
            | Self::AutoCleanupSet
            | Self::WritersActive
            | Self::ShallowClone
            | Self::PlanExceedsApproval
            | Self::InsufficientSpace
            | Self::TableDamaged => Exit::Refused,
            Self::CommitConflict => Exit::LostRace,
            Self::PartlyDone => Exit::PartlyDone,
            Self::Stopped => Exit::Stopped,
        }
    }
}

/// One fault of a spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpecFault {
    /// JSON pointer (RFC 6901) to the faulty value; empty for the whole spec.
    pub pointer: String,
    /// What is wrong, and what was expected.
    pub problem: String,
    /// The value found, as JSON, shortened; absent where there is none to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The nearest known name, for a name that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub did_you_mean: Option<String>,
}

/// A failure, as code passes it on and as outputs carry it.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize, JsonSchema)]
#[error("{message}")]
#[serde(deny_unknown_fields)]
pub struct GuardError {
    /// The process exit code that goes with the kind.
    pub code: u8,
    /// What went wrong, as a name that does not change.
    pub kind: ErrorKind,
    /// What happened, for a person.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether the same spec may succeed later without anybody changing anything.
    pub retryable: bool,
    /// Facts by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
    /// The faults of the spec, all at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<SpecFault>,
}

/// The result of everything that can fail.
pub type Result<T, E = GuardError> = std::result::Result<T, E>;

impl GuardError {
    /// An error of a kind with what happened. Whatever looks like a credential in `message` is
    /// masked: it may hold words of the engine or of the spec.
    pub fn new(kind: ErrorKind, message: impl AsRef<str>) -> Self {
        Self::in_own_words(kind, redact::text(message.as_ref()))
    }

    /// An error whose message has no foreign text in it, or only such that is masked already.
    /// Nothing is masked, so that a sentence such as "password: is not a known field" stays one.
    pub fn in_own_words(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            code: kind.exit().code(),
            kind,
            message: message.into(),
            hint: None,
            retryable: matches!(
                kind,
                ErrorKind::CommitConflict
                    | ErrorKind::StorageUnreachable
                    | ErrorKind::WritersActive
                    | ErrorKind::Stopped
            ),
            context: BTreeMap::new(),
            faults: Vec::new(),
        }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a fact. Credentials in it are masked.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.context
            .insert(name.to_owned(), redact::text(&value.to_string()));
        self
    }

    /// The exit of a run that ends with this error.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        self.kind.exit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_texts_are_masked_and_own_sentences_are_not() {
        let kind = ErrorKind::Internal;
        assert_eq!(
            GuardError::new(kind, "engine: password=x").message,
            "engine: password=***"
        );
        let own = "/password: is not a known field";
        assert_eq!(GuardError::in_own_words(kind, own).message, own);
        let error = GuardError::in_own_words(kind, "x").with("uri", "s3://a:b@c");
        assert_eq!(error.context["uri"], "s3://***@c");
    }
}
