//! Rules that a schema cannot say: between fields, and about what a text may hold.
//!
//! All are applied, so that one run names all faults. Numbers need no check for being finite:
//! JSON has no other, and the reader refuses what overflows.

use super::{Common, TableName, TaskSpec};
use crate::error::SpecFault;

/// The shortest retention, in hours. Readers need some time to move on to a newer version.
pub const RETENTION_FLOOR_HOURS: f64 = 1.0;

/// The fault that is a refusal (exit 4) where it is the only one.
pub const RETENTION_POINTER: &str = "/stale_version_retention_hours";

/// The fault of two thresholds that contradict each other.
pub const CRITICAL_POINTER: &str = "/critical_fragment_threshold";

/// Every rule that the spec breaks.
#[must_use]
pub fn check(spec: &TaskSpec) -> Vec<SpecFault> {
    let mut faults = Vec::new();
    common(&spec.common(), &mut faults);
    match spec {
        TaskSpec::Audit(spec) => {
            if spec.critical_fragment_threshold < spec.fragment_count_threshold {
                faults.push(fault(
                    CRITICAL_POINTER,
                    format!(
                        "must be at least fragment_count_threshold, which is {}",
                        spec.fragment_count_threshold
                    ),
                    Some(spec.critical_fragment_threshold.to_string()),
                ));
            }
            retention(spec.stale_version_retention_hours, &mut faults);
        }
        TaskSpec::Compact(spec) => retention(spec.stale_version_retention_hours, &mut faults),
        TaskSpec::Verify(spec) => {
            if let Some(baseline) = &spec.baseline
                && baseline.before.version > baseline.after.version
            {
                faults.push(fault(
                    "/baseline/after/version",
                    format!(
                        "must be at least the version before, which is {}",
                        baseline.before.version
                    ),
                    Some(baseline.after.version.to_string()),
                ));
            }
        }
    }
    faults
}

fn common(spec: &Common<'_>, faults: &mut Vec<SpecFault>) {
    if let Err(problem) = TableName::parse(spec.table_name) {
        faults.push(fault("/table_name", problem, Some(shown(spec.table_name))));
    }
    // The execution id is stored in the table's transactions and shown in logs.
    if spec.execution_id.chars().any(char::is_control) {
        faults.push(fault(
            "/execution_id",
            "must not hold control characters",
            Some(shown(spec.execution_id)),
        ));
    }
    if spec.storage_options.keys().any(|key| key.trim().is_empty()) {
        faults.push(fault(
            "/storage_options",
            "the name of an option must not be empty",
            None,
        ));
    }
}

fn retention(hours: f64, faults: &mut Vec<SpecFault>) {
    if hours < RETENTION_FLOOR_HOURS {
        faults.push(fault(
            RETENTION_POINTER,
            format!("must be at least {RETENTION_FLOOR_HOURS} hour"),
            Some(hours.to_string()),
        ));
    }
}

fn shown(text: &str) -> String {
    super::faults::shown(&serde_json::Value::from(text))
}

fn fault(pointer: &str, problem: impl Into<String>, found: Option<String>) -> SpecFault {
    SpecFault {
        pointer: pointer.to_owned(),
        problem: problem.into(),
        found,
        did_you_mean: None,
    }
}
