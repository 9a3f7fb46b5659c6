//! Bytes to a checked spec. Nothing is opened before all of it holds.
//!
//! ```text
//! bytes -> UTF-8 -> strict JSON -> step -> schema and rules -> types -> size of the state
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use serde_json::value::RawValue;

use super::faults::{self, Texts};
use super::rules::{self, Broken};
use super::strict_json::{self, Refusal};
use super::{Location, MAX_SPEC_BYTES, SPEC_VERSION, Step, TableName, TaskSpec};
use crate::emit::ascii;
use crate::emit::cut::MAX_PASSED_ON;
use crate::error::{ErrorKind, GuardError, Result, SpecFault};
use crate::schemas::SchemaName;
use crate::state;

/// Faults that an error lists, at most; the message has the total.
const MAX_FAULTS: usize = 50;

/// The largest whole number that every JSON tool carries exactly.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// The field whose text is kept as it came.
const STATE_FIELD: &str = "previous_state";

/// A spec that holds, and what of it may be opened.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The spec.
    pub spec: TaskSpec,
    /// The database.
    pub location: Location,
    /// The table in it.
    pub table: TableName,
}

/// Reads and checks a spec. Relative paths in it start at `working_dir`.
///
/// # Errors
/// `spec_*` with all faults at once; `retention_below_floor`, `managed_database` or
/// `storage_not_built_in` where such refusals are all that is wrong; `state_too_large`.
pub fn parse(bytes: &[u8], working_dir: &Path) -> Result<Checked> {
    let text = text(bytes)?;
    let mut value = strict_json::parse(text).map_err(|refusal| not_json(&refusal))?;
    let Some(object) = value.as_object_mut() else {
        return Err(GuardError::new(
            ErrorKind::SpecNotJson,
            "the spec must be a JSON object, at line 1 column 1",
        ));
    };
    for (name, member) in object.iter_mut() {
        if name != STATE_FIELD {
            whole_numbers(member);
        }
    }
    let step = step(&value, working_dir)?;
    let schema = SchemaName::of_spec(step).schema();
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .map_err(|e| GuardError::new(ErrorKind::Internal, format!("the schema of {step}: {e}")))?;
    let found = faults::of_schema(&schema, &validator, &value);
    let broken = rules::check(&value, Some(step), working_dir);
    if !found.is_empty() || !broken.is_empty() {
        return Err(refused(found, broken, Some(step)));
    }
    checked(typed(&normalised(text, &value)?, step)?, working_dir)
}

/// The error of a spec with faults. Where all of them are refusals of what the spec says well,
/// it is the first refusal; otherwise the spec is wrong.
fn refused(mut found: Vec<SpecFault>, broken: Vec<Broken>, step: Option<Step>) -> GuardError {
    let is_refused = found.is_empty() && broken.iter().all(|rule| rule.refusal.is_some());
    let refusal = broken.iter().find_map(|rule| rule.refusal.clone());
    let pointers: BTreeSet<String> = found.iter().map(|fault| fault.pointer.clone()).collect();
    // What the schema says of a value is enough.
    let beside = broken.into_iter().map(|rule| rule.fault);
    found.extend(beside.filter(|fault| !pointers.contains(&fault.pointer)));
    found.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    match refusal {
        Some(mut error) if is_refused => {
            error.faults = found;
            error
        }
        _ => invalid(found, step),
    }
}

/// The step that a spec names, however wrong the rest of it is.
#[must_use]
pub fn step_of(bytes: &[u8]) -> Option<Step> {
    #[derive(serde::Deserialize)]
    struct Named {
        step: Step,
    }
    let named: Named = serde_json::from_slice(bytes).ok()?;
    Some(named.step)
}

fn text(bytes: &[u8]) -> Result<&str> {
    if bytes.len() > MAX_SPEC_BYTES {
        return Err(GuardError::new(
            ErrorKind::SpecTooLarge,
            format!("the spec is larger than {MAX_SPEC_BYTES} bytes"),
        )
        .hint("Pass the state of this one table only, not of all tables."));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        GuardError::new(
            ErrorKind::SpecNotUtf8,
            format!("the spec is not UTF-8 at byte {}", error.valid_up_to()),
        )
    })?;
    if text.starts_with('\u{feff}') {
        return Err(GuardError::new(
            ErrorKind::SpecNotJson,
            "the spec begins with a byte order mark, which JSON does not allow",
        ));
    }
    if text.trim().is_empty() {
        return Err(
            GuardError::new(ErrorKind::SpecEmpty, "the spec is empty").hint(
                "Give one JSON object on stdin or with --spec FILE; `lancedb-guard example audit` prints one.",
            ),
        );
    }
    Ok(text)
}

fn not_json(refusal: &Refusal) -> GuardError {
    match refusal {
        Refusal::Syntax {
            problem,
            line,
            column,
        } => {
            let problem = match problem.as_str() {
                "trailing characters" => "there is text after it",
                "recursion limit exceeded" => "it is nested deeper than 127 levels",
                "expected value" | "expected ident" => "there is no JSON value",
                "number out of range" => "there is a number out of range",
                text if text.starts_with("control character") => {
                    "there is a control character inside a text"
                }
                text if text.contains("hex escape") => {
                    "there is half a surrogate pair or another broken \\u escape"
                }
                other => other,
            };
            GuardError::in_own_words(
                ErrorKind::SpecNotJson,
                format!(
                    "the spec is not one JSON object: {problem}, at line {line} column {column}"
                ),
            )
        }
        Refusal::DuplicateKey {
            pointer,
            line,
            column,
        } => {
            let fault = faults::at(
                pointer,
                "stands twice in its object",
                &Value::Null,
                Texts::Measured,
            );
            let mut error = GuardError::in_own_words(
                ErrorKind::SpecDuplicateKey,
                format!(
                    "the key {} stands twice in the spec, the second time at line {line} column {column}",
                    fault.pointer
                ),
            );
            error.faults.push(fault);
            error
        }
    }
}

/// Makes whole numbers of floats that are whole: Kestra writes 12345678 as 1.2345678E7.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(float) = number.as_f64()
                && float.fract() == 0.0
                && float.abs() < MAX_EXACT
            {
                #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
                let whole = float as i64;
                *number = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// Which schema applies. Without a step there is none, so the two fields that choose it are
/// checked by hand.
fn step(spec: &Value, working_dir: &Path) -> Result<Step> {
    let known = Step::ALL.map(|step| Value::from(step.name()));
    let named = spec.get("step");
    if let Some(step) = Step::ALL
        .into_iter()
        .find(|step| named.and_then(Value::as_str) == Some(step.name()))
    {
        return Ok(step);
    }
    let mut found = vec![faults::not_allowed("/step", &known, spec)];
    if named.is_none() {
        found[0].problem = "is required: \"audit\", \"compact\" or \"verify\"".to_owned();
        if let Some(fields) = spec.as_object() {
            // A misspelt "step" itself.
            let near = fields
                .keys()
                .find(|key| faults::nearest(key, ["step"]).is_some());
            found[0].did_you_mean = near.map(|_| "step".to_owned());
        }
    }
    match spec.get("spec_version") {
        None => found.push(faults::at(
            "/spec_version",
            format!("is required: this build understands {SPEC_VERSION}"),
            spec,
            Texts::Measured,
        )),
        Some(version) if version.as_u64() == Some(SPEC_VERSION.into()) => {}
        Some(_) => found.push(faults::not_allowed(
            "/spec_version",
            &[SPEC_VERSION.into()],
            spec,
        )),
    }
    Err(refused(found, rules::check(spec, None, working_dir), None))
}

/// The spec as text again, with whole numbers as such and the state byte for byte as it came.
fn normalised(text: &str, value: &Value) -> Result<String> {
    let internal = |e: serde_json::Error| GuardError::new(ErrorKind::Internal, e.to_string());
    let raw: BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(internal)?;
    let mut members = Vec::new();
    for (name, member) in value.as_object().into_iter().flatten() {
        let name_text = serde_json::to_string(name).map_err(internal)?;
        let member = match raw.get(name) {
            Some(raw) if name == STATE_FIELD => raw.get().to_owned(),
            _ => serde_json::to_string(member).map_err(internal)?,
        };
        members.push(format!("{name_text}:{member}"));
    }
    Ok(format!("{{{}}}", members.join(",")))
}

fn typed(text: &str, step: Step) -> Result<TaskSpec> {
    let spec = match step {
        Step::Audit => serde_json::from_str(text).map(TaskSpec::Audit),
        Step::Compact => serde_json::from_str(text).map(TaskSpec::Compact),
        Step::Verify => serde_json::from_str(text).map(TaskSpec::Verify),
    };
    // The schema and the rules have passed, so this is a value that neither can exclude. The
    // message of serde would quote it.
    spec.map_err(|_| {
        GuardError::in_own_words(
            ErrorKind::SpecInvalid,
            "the spec holds a value that its field cannot take",
        )
    })
}

fn checked(spec: TaskSpec, working_dir: &Path) -> Result<Checked> {
    let (state, baseline) = match &spec {
        TaskSpec::Audit(spec) => (Some(&spec.previous_state), None),
        TaskSpec::Compact(_) => (None, None),
        TaskSpec::Verify(spec) => (Some(&spec.previous_state), spec.baseline.as_ref()),
    };
    let baseline = baseline.map_or(0, |baseline| {
        serde_json::to_string(baseline).map_or(0, |text| ascii::rewrite(&text).len())
    });
    let size = state.map_or(0, state::printed_length) + baseline;
    if size > MAX_PASSED_ON {
        return Err(GuardError::in_own_words(
            ErrorKind::StateTooLarge,
            format!(
                "the state and the baseline take {}, and Kestra loses all outputs of a task above 1 MiB",
                crate::report::text::bytes(size as u64)
            ),
        )
        .hint("Keep one KV key for each table, and pass the state of this one table only."));
    }
    let common = spec.common();
    let location = Location::parse(common.db_uri, working_dir)?;
    let table = TableName::parse(common.table_name)
        .map_err(|problem| GuardError::new(ErrorKind::SpecInvalid, problem))?;
    Ok(Checked {
        location,
        table,
        spec,
    })
}

fn invalid(mut found: Vec<SpecFault>, step: Option<Step>) -> GuardError {
    let total = found.len();
    let first = found.first().map_or_else(String::new, |fault| {
        let place = if fault.pointer.is_empty() {
            "the spec"
        } else {
            &fault.pointer
        };
        format!("{place}: {}", fault.problem)
    });
    let message = match total {
        1 => format!("the spec has a fault: {first}"),
        _ => format!("the spec has {total} faults; the first: {first}"),
    };
    found.truncate(MAX_FAULTS);
    let mut error = GuardError::in_own_words(ErrorKind::SpecInvalid, message)
        .hint(format!(
            "`lancedb-guard schema {}-spec` prints what a spec may hold.",
            step.map_or("STEP", Step::name)
        ))
        .with("faults", total);
    error.faults = found;
    error
}

#[cfg(test)]
mod tests;
