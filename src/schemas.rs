//! The JSON Schemas of everything that goes in and out, generated from the Rust types.
//!
//! The binary validates specs with them, the tests validate outputs with them, and `schemas/`
//! holds them as files, which a test keeps from drifting.

use std::io;
use std::path::Path;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::error::GuardError;
use crate::report::audit::AuditOutputs;
use crate::report::compact::CompactOutputs;
use crate::report::failure::FailureOutputs;
use crate::report::state::StateSnapshot;
use crate::report::verify::VerifyOutputs;
use crate::spec::{AuditSpec, CompactSpec, SPEC_VERSION, Step, VerifySpec};

/// The largest whole number that every JSON tool carries exactly.
const MAX_EXACT_INTEGER: u64 = (1 << 53) - 1;

/// The schemas, by the name under which they are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum SchemaName {
    /// Spec of the audit step.
    AuditSpec,
    /// Spec of the compact step.
    CompactSpec,
    /// Spec of the verify step.
    VerifySpec,
    /// Outputs of the audit step.
    AuditOutputs,
    /// Outputs of the compact step.
    CompactOutputs,
    /// Outputs of the verify step.
    VerifyOutputs,
    /// Outputs of a run that failed before its step had anything to say.
    FailureOutputs,
    /// The state that a flow keeps.
    State,
    /// An error in outputs.
    Error,
}

impl SchemaName {
    /// Every schema.
    pub const ALL: [Self; 9] = [
        Self::AuditSpec,
        Self::CompactSpec,
        Self::VerifySpec,
        Self::AuditOutputs,
        Self::CompactOutputs,
        Self::VerifyOutputs,
        Self::FailureOutputs,
        Self::State,
        Self::Error,
    ];

    /// The schema of a step's spec.
    #[must_use]
    pub const fn of_spec(step: Step) -> Self {
        match step {
            Step::Audit => Self::AuditSpec,
            Step::Compact => Self::CompactSpec,
            Step::Verify => Self::VerifySpec,
        }
    }

    /// The schema of a step's outputs.
    #[must_use]
    pub const fn of_outputs(step: Step) -> Self {
        match step {
            Step::Audit => Self::AuditOutputs,
            Step::Compact => Self::CompactOutputs,
            Step::Verify => Self::VerifyOutputs,
        }
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AuditSpec => "audit-spec",
            Self::CompactSpec => "compact-spec",
            Self::VerifySpec => "verify-spec",
            Self::AuditOutputs => "audit-outputs",
            Self::CompactOutputs => "compact-outputs",
            Self::VerifyOutputs => "verify-outputs",
            Self::FailureOutputs => "failure-outputs",
            Self::State => "state",
            Self::Error => "error",
        }
    }

    /// The schema.
    #[must_use]
    pub fn schema(self) -> Value {
        match self {
            Self::AuditSpec => spec::<AuditSpec>(Step::Audit),
            Self::CompactSpec => spec::<CompactSpec>(Step::Compact),
            Self::VerifySpec => spec::<VerifySpec>(Step::Verify),
            Self::AuditOutputs => outputs::<AuditOutputs>(Some(Step::Audit)),
            Self::CompactOutputs => outputs::<CompactOutputs>(Some(Step::Compact)),
            Self::VerifyOutputs => outputs::<VerifyOutputs>(Some(Step::Verify)),
            Self::FailureOutputs => outputs::<FailureOutputs>(None),
            Self::State => outputs::<StateSnapshot>(None),
            Self::Error => outputs::<GuardError>(None),
        }
    }

    /// The schema as pretty text, the same for the same types.
    #[must_use]
    pub fn text(self) -> String {
        format!("{:#}\n", self.schema())
    }

    /// The name of its file.
    #[must_use]
    pub fn file_name(self) -> String {
        format!("{}.json", self.name())
    }
}

/// Writes every schema into a folder.
///
/// # Errors
/// Where the folder or a file cannot be written.
pub fn write_all(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for name in SchemaName::ALL {
        std::fs::write(folder.join(name.file_name()), name.text())?;
    }
    Ok(())
}

fn spec<T: JsonSchema>(step: Step) -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    constant(&mut schema, "step", step.name().into());
    constant(&mut schema, "spec_version", SPEC_VERSION.into());
    explicit_limits(&mut schema);
    schema
}

fn outputs<T: JsonSchema>(step: Option<Step>) -> Value {
    let generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    if let Some(step) = step {
        constant(&mut schema, "step", step.name().into());
    }
    schema
}

/// Ties a field to the one value that it can have in this schema.
fn constant(schema: &mut Value, field: &str, value: Value) {
    if let Some(Value::Object(part)) = schema.pointer_mut(&format!("/properties/{field}")) {
        let description = part.remove("description");
        *part = Map::new();
        part.extend(description.map(|text| ("description".to_owned(), text)));
        part.insert("const".to_owned(), value);
    }
    // What nothing refers to any more would only puzzle a reader.
    if !schema.to_string().contains("\"#/$defs/Step\"")
        && let Some(Value::Object(definitions)) = schema.get_mut("$defs")
    {
        definitions.remove("Step");
    }
}

/// Puts the limit of every integer into numbers: `uint64` is no format that a validator knows.
fn explicit_limits(schema: &mut Value) {
    match schema {
        Value::Object(part) => {
            let limit = match part.get("format").and_then(Value::as_str) {
                Some("uint64" | "int64") => Some(MAX_EXACT_INTEGER),
                Some("uint32") => Some(u32::MAX.into()),
                _ => None,
            };
            if let Some(limit) = limit {
                part.entry("maximum").or_insert_with(|| limit.into());
            }
            part.values_mut().for_each(explicit_limits);
        }
        Value::Array(items) => items.iter_mut().for_each(explicit_limits),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_schema_files_are_what_the_types_say() {
        // As cargo says it to the running test: checkouts may share a target folder.
        let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
        let folder = Path::new(&package).join("schemas");
        for name in SchemaName::ALL {
            let file = folder.join(name.file_name());
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(
                text == name.text(),
                "{} has drifted from the types: run `cargo xtask schemas`",
                file.display()
            );
        }
        let files: BTreeSet<String> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let expected: BTreeSet<String> = SchemaName::ALL.map(SchemaName::file_name).into();
        assert_eq!(files, expected, "a file in schemas/ belongs to no type");
    }

    #[test]
    fn every_schema_is_a_valid_schema() {
        for name in SchemaName::ALL {
            assert!(
                jsonschema::meta::is_valid(&name.schema()),
                "{}",
                name.name()
            );
        }
    }

    #[test]
    fn every_integer_of_a_spec_has_both_limits() {
        fn check(part: &Value, path: &str) {
            let is_integer = match part.get("type") {
                Some(Value::String(kind)) => kind == "integer",
                Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "integer"),
                _ => false,
            };
            if is_integer {
                assert!(
                    part.get("minimum").is_some() && part.get("maximum").is_some(),
                    "{path}: {part}"
                );
            }
            match part {
                Value::Object(members) => {
                    for (name, member) in members {
                        check(member, &format!("{path}/{name}"));
                    }
                }
                Value::Array(items) => items.iter().for_each(|item| check(item, path)),
                _ => {}
            }
        }
        for step in Step::ALL {
            check(&SchemaName::of_spec(step).schema(), step.name());
        }
    }
}
