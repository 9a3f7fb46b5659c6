//! Faults of a spec in plain words: what a schema validator found, for the person who wrote it.
//!
//! A value is shown only as far as it is safe. Never what stands under `storage_options`, under a
//! name that says secret or as the location. A text only where a text was wanted: what stands
//! under an unknown name or in the wrong place may be a credential, so its length must do. Of
//! objects and lists only their size, because a misspelt name may hide credentials inside.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use super::strict_json::push_step;
use crate::error::SpecFault;
use crate::redact;
use crate::report::text::{count, shorten};

/// Characters of a value that are shown.
const SHOWN_LENGTH: usize = 80;

/// Characters of a pointer that are shown: keys may be as long as the spec.
const POINTER_LENGTH: usize = 160;

/// Every fault that the schema finds in a spec, by pointer.
pub fn of_schema(
    schema: &Value,
    validator: &jsonschema::Validator,
    spec: &Value,
) -> Vec<SpecFault> {
    let mut faults = Vec::new();
    for error in validator.iter_errors(spec) {
        explain(&error, schema, spec, &mut faults);
    }
    faults.sort_by(|a, b| (&a.pointer, &a.problem).cmp(&(&b.pointer, &b.problem)));
    faults.dedup();
    faults
}

/// Whether a fault may show the text that stands at its pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    /// A text was wanted there, and it is a wrong one.
    Shown,
    /// Something else was wanted, or nothing.
    Measured,
}

/// A value as a fault shows it.
fn shown(value: &Value, texts: Texts) -> String {
    match value {
        Value::Object(members) => {
            format!("an object with {}", count(members.len() as u64, "field"))
        }
        Value::Array(items) => format!("a list of {}", count(items.len() as u64, "item")),
        Value::String(text) if texts == Texts::Measured => {
            let length = count(text.chars().count() as u64, "character");
            // The usual reason in a flow.
            let template = if text.contains("{{") {
                ", a template that was not rendered"
            } else {
                ""
            };
            format!("a string of {length}{template}")
        }
        scalar => shorten(&redact::text(&scalar.to_string()), SHOWN_LENGTH),
    }
}

/// The known name that was probably meant.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    // A very long name is no typing error, and the distance costs its square.
    if given.chars().count() > 100 {
        return None;
    }
    let given = given.to_lowercase();
    let known: Vec<&str> = known.into_iter().collect();
    // A name that was left off in the middle: `target_rows`.
    let mut begun = known
        .iter()
        .filter(|name| given.chars().count() >= 4 && name.to_lowercase().starts_with(&given));
    if let (Some(only), None) = (begun.next(), begun.next()) {
        return Some((*only).to_owned());
    }
    let most = (given.chars().count() / 3).max(2);
    known
        .into_iter()
        .map(|name| {
            (
                strsim::damerau_levenshtein(&given, &name.to_lowercase()),
                name,
            )
        })
        .filter(|(distance, name)| *distance <= most && *distance < name.len())
        .min()
        .map(|(_, name)| name.to_owned())
}

/// A fault at a pointer, with the value that stands there.
pub fn at(pointer: &str, problem: impl Into<String>, spec: &Value, texts: Texts) -> SpecFault {
    let secret = pointer
        .split('/')
        .any(|step| step == "storage_options" || redact::is_secret_name(step));
    let found = spec.pointer(pointer).map(|value| match texts {
        _ if secret => redact::MASK.to_owned(),
        _ if pointer == "/db_uri" => shown(value, Texts::Measured),
        texts => shown(value, texts),
    });
    SpecFault {
        pointer: shorten(pointer, POINTER_LENGTH),
        problem: problem.into(),
        found,
        did_you_mean: None,
    }
}

fn explain(error: &ValidationError<'_>, schema: &Value, spec: &Value, faults: &mut Vec<SpecFault>) {
    let pointer = error.instance_path().as_str();
    match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            let known = known_fields(schema, pointer);
            for name in unexpected {
                let mut path = pointer.to_owned();
                push_step(&mut path, name);
                let mut fault = at(&path, "is not a known field", spec, Texts::Measured);
                fault.did_you_mean = nearest(name, known.iter().copied());
                // Whatever a misspelt `storage_options` holds is a secret as well.
                if fault.did_you_mean.as_deref() == Some("storage_options") {
                    fault.found = Some(redact::MASK.to_owned());
                }
                faults.push(fault);
            }
        }
        Kind::Required { property } => {
            let mut path = pointer.to_owned();
            push_step(&mut path, property.as_str().unwrap_or_default());
            faults.push(at(&path, "is required", spec, Texts::Measured));
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            let allowed = allowed_values(schema, pointer);
            if allowed.is_empty() {
                // An object or null: the faults of the object are the ones to tell.
                let is_null_branch = |branch: &&Vec<ValidationError<'static>>| {
                    branch.iter().any(|e| {
                        e.instance_path().as_str() == pointer
                            && matches!(e.kind(), Kind::Type { kind } if type_names(kind) == "null")
                    })
                };
                for inner in context.iter().filter(|b| !is_null_branch(b)).flatten() {
                    explain(inner, schema, spec, faults);
                }
            } else {
                faults.push(not_allowed(pointer, &allowed, spec));
            }
        }
        Kind::Enum { .. } | Kind::Constant { .. } => {
            faults.push(not_allowed(pointer, &allowed_values(schema, pointer), spec));
        }
        Kind::Type { .. } => {
            let problem = plain(error.kind(), error);
            faults.push(at(pointer, problem, spec, Texts::Measured));
        }
        kind => faults.push(at(pointer, plain(kind, error), spec, Texts::Shown)),
    }
}

/// A value that is none of the values allowed.
pub fn not_allowed(pointer: &str, allowed: &[Value], spec: &Value) -> SpecFault {
    let names: Vec<String> = allowed.iter().map(Value::to_string).collect();
    let problem = match names.as_slice() {
        [only] => format!("must be {only}"),
        _ => format!("must be one of {}", names.join(", ")),
    };
    let texts = if allowed.iter().any(Value::is_string) {
        Texts::Shown
    } else {
        Texts::Measured
    };
    let mut fault = at(pointer, problem, spec, texts);
    if let Some(Value::String(given)) = spec.pointer(pointer) {
        fault.did_you_mean = nearest(given, allowed.iter().filter_map(Value::as_str));
    }
    fault
}

fn plain(kind: &Kind, error: &ValidationError<'_>) -> String {
    match kind {
        Kind::Type { kind } => format!("must be {}", article(&type_names(kind))),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::MinLength { limit: 1 } => "must not be empty".to_owned(),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::Format { format } if format == "date-time" => {
            "must be a time of RFC 3339, such as 2026-07-01T08:00:00Z".to_owned()
        }
        _ => shorten(&error.masked().to_string(), POINTER_LENGTH),
    }
}

fn type_names(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => kind.to_string(),
        TypeKind::Multiple(kinds) => {
            let mut names: Vec<String> = kinds.iter().map(|kind| kind.to_string()).collect();
            names.sort_by_key(|name| name == "null");
            names.join(" or ")
        }
    }
}

fn article(names: &str) -> String {
    if names.starts_with("null") {
        return names.to_owned();
    }
    let vowel = names.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {names}", if vowel { "an" } else { "a" })
}

/// The part of a schema that describes the value at a pointer, references followed.
fn schema_at<'s>(schema: &'s Value, pointer: &str) -> Option<&'s Value> {
    let mut part = resolve(schema, schema)?;
    for step in pointer.split('/').skip(1) {
        let name = step.replace("~1", "/").replace("~0", "~");
        part = resolve(schema, part.get("properties")?.get(&name)?)?;
    }
    Some(part)
}

fn resolve<'s>(root: &'s Value, part: &'s Value) -> Option<&'s Value> {
    if let Some(reference) = part.get("$ref").and_then(Value::as_str) {
        return resolve(root, root.pointer(reference.strip_prefix('#')?)?);
    }
    // An optional object is "the object or null".
    match part.get("anyOf").and_then(Value::as_array) {
        Some(branches) => branches
            .iter()
            .find(|branch| branch.get("$ref").is_some())
            .and_then(|branch| resolve(root, branch)),
        None => Some(part),
    }
}

fn known_fields<'s>(schema: &'s Value, pointer: &str) -> Vec<&'s str> {
    schema_at(schema, pointer)
        .and_then(|part| part.get("properties")?.as_object())
        .map(|fields| fields.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

fn allowed_values(schema: &Value, pointer: &str) -> Vec<Value> {
    let Some(part) = schema_at(schema, pointer) else {
        return Vec::new();
    };
    let mut values: Vec<Value> = part.get("const").cloned().into_iter().collect();
    values.extend(
        part.get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .cloned(),
    );
    for branch in part
        .get("oneOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        values.extend(branch.get("const").cloned());
        values.extend(
            branch
                .get("enum")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .cloned(),
        );
    }
    values
}
