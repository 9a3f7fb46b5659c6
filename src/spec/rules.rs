//! Rules that a schema cannot say: between fields, and about what a text may hold.
//!
//! They read the JSON values and not the typed spec, so that a missing or mistyped field hides
//! no fault in another one: one run names all faults. A field of the wrong type is left to the
//! schema. Numbers need no check for being finite: JSON has no other, and the reader refuses
//! what overflows.

use std::path::Path;

use chrono::DateTime;
use serde_json::Value;

use super::faults::{self, Texts};
use super::{AuditSpec, Location, Step, TableName};
use crate::error::{ErrorKind, GuardError, SpecFault};

/// The shortest retention, in hours. Readers need some time to move on to a newer version.
pub const RETENTION_FLOOR_HOURS: f64 = 1.0;

/// A rule that a spec breaks.
#[derive(Debug, Clone)]
pub struct Broken {
    /// What is wrong.
    pub fault: SpecFault,
    /// The error that it is where nothing else is wrong: a refusal of what the spec says well.
    /// Absent for a fault of the spec.
    pub refusal: Option<GuardError>,
}

/// Every rule that the spec breaks. Without a step the rules of all steps apply: a field means
/// the same in each. Relative paths start at `working_dir`.
#[must_use]
pub fn check(spec: &Value, step: Option<Step>, working_dir: &Path) -> Vec<Broken> {
    let mut rules = Rules {
        spec,
        broken: Vec::new(),
    };
    rules.common(working_dir);
    let is = |steps: &[Step]| step.is_none_or(|step| steps.contains(&step));
    if is(&[Step::Audit]) {
        rules.thresholds();
    }
    if is(&[Step::Audit, Step::Compact]) {
        rules.retention();
    }
    if is(&[Step::Verify]) {
        rules.baseline();
    }
    rules.broken
}

struct Rules<'a> {
    spec: &'a Value,
    broken: Vec<Broken>,
}

impl Rules<'_> {
    fn common(&mut self, working_dir: &Path) {
        if let Some(name) = self.text("/table_name")
            && let Err(problem) = TableName::parse(name)
        {
            self.fault("/table_name", problem);
        }
        if let Some(Err(error)) = self
            .text("/db_uri")
            .map(|uri| Location::parse(uri, working_dir))
        {
            self.fault("/db_uri", error.message.clone());
            if error.kind != ErrorKind::SpecInvalid
                && let Some(last) = self.broken.last_mut()
            {
                last.refusal = Some(error);
            }
        }
        // The execution id is stored in the table's transactions and shown in logs.
        if self
            .text("/execution_id")
            .is_some_and(|id| id.chars().any(char::is_control))
        {
            self.fault("/execution_id", "must not hold control characters");
        }
        let options = self.spec.get("storage_options").and_then(Value::as_object);
        if options.is_some_and(|options| options.keys().any(|key| key.trim().is_empty())) {
            self.fault(
                "/storage_options",
                "the name of an option must not be empty",
            );
        }
        // A form that the schema allows may still be no day of the calendar.
        if let Some(time) = self.text("/evaluated_at")
            && DateTime::parse_from_rfc3339(time).is_err()
        {
            self.fault(
                "/evaluated_at",
                "must be a time of the calendar, such as 2026-07-01T08:00:00Z",
            );
        }
    }

    fn thresholds(&mut self) {
        let defaults = AuditSpec::default_fragment_thresholds();
        let threshold = |name: &str, default: u64| match self.spec.get(name) {
            None => Some(default),
            // One that could not be read is not replaced by its default.
            Some(value) => value.as_u64(),
        };
        if let (Some(limit), Some(critical)) = (
            threshold("fragment_count_threshold", defaults.0),
            threshold("critical_fragment_threshold", defaults.1),
        ) && critical < limit
        {
            self.fault(
                "/critical_fragment_threshold",
                format!("must be at least fragment_count_threshold, which is {limit}"),
            );
            if let Some(last) = self.broken.last_mut() {
                last.fault.found = Some(critical.to_string());
            }
        }
    }

    fn retention(&mut self) {
        let pointer = "/stale_version_retention_hours";
        let hours = self.spec.pointer(pointer).and_then(Value::as_f64);
        if hours.is_none_or(|hours| hours >= RETENTION_FLOOR_HOURS) {
            return;
        }
        let problem = format!("must be at least {RETENTION_FLOOR_HOURS} hour");
        let refusal = GuardError::in_own_words(
            ErrorKind::RetentionBelowFloor,
            format!("{} {problem}", &pointer[1..]),
        )
        .hint("Readers need time to move on to a newer version; give at least one hour.");
        self.fault(pointer, problem);
        if let Some(last) = self.broken.last_mut() {
            last.refusal = Some(refusal);
        }
    }

    fn baseline(&mut self) {
        let version = |pointer: &str| self.spec.pointer(pointer).and_then(Value::as_u64);
        let pointer = "/baseline/after/version";
        if let (Some(before), Some(after)) = (version("/baseline/before/version"), version(pointer))
            && before > after
        {
            self.fault(
                pointer,
                format!("must be at least the version before, which is {before}"),
            );
        }
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.spec.pointer(pointer).and_then(Value::as_str)
    }

    fn fault(&mut self, pointer: &str, problem: impl Into<String>) {
        let mut fault = faults::at(pointer, problem, self.spec, Texts::Shown);
        if ["/db_uri", "/storage_options"].contains(&pointer) {
            fault.found = None;
        }
        self.broken.push(Broken {
            fault,
            refusal: None,
        });
    }
}
