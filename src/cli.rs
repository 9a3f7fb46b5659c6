//! The command line.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};

use crate::emit::Format;
use crate::schemas::SchemaName;
use crate::spec::Step;

/// The version of the tool and of the engine that is built in.
pub const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (lancedb ",
    env!("LOCKED_LANCEDB"),
    ", lance ",
    env!("LOCKED_LANCE"),
    ")"
);

/// Keeps LanceDB vector tables healthy: audits, compacts and verifies one table per run.
///
/// Reads one task spec (JSON) from stdin, does its step, and prints Kestra lines.
///
/// Exit codes: 0 answered, 1 internal fault, 2 wrong spec or command line, 3 not found or not
/// reachable, 4 refused, 5 lost against other writers, 6 partly done, 143 stopped by a
/// signal.
#[derive(Debug, Parser)]
#[command(name = "lancedb-guard", version = VERSION, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// File that holds the spec; stdin if absent.
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
    /// File that the full report is written to, as JSON.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// What to do instead of running a step.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do instead of running a step.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Prints a JSON Schema.
    Schema {
        /// Which one.
        #[arg(value_enum, required_unless_present = "write")]
        name: Option<SchemaName>,
        /// Writes every schema into this folder instead.
        #[arg(long, value_name = "DIR", conflicts_with = "name")]
        write: Option<PathBuf>,
    },
    /// Prints a spec of a step to start from.
    Example {
        /// The step.
        #[arg(value_enum)]
        step: Step,
    },
}

/// What is wrong with a command line, in one sentence. It names options and never quotes a
/// value: a spec given as an argument by mistake holds credentials.
#[must_use]
pub fn what_is_wrong(error: &clap::Error) -> String {
    let names = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(name)) => vec![name.clone()],
        Some(ContextValue::Strings(names)) => names.clone(),
        _ => Vec::new(),
    };
    let option = names(ContextKind::InvalidArg)
        .iter()
        .map(|name| option_name(name))
        .collect::<Vec<String>>()
        .join(", ");
    let mut sentence = match error.kind() {
        ErrorKind::UnknownArgument => format!("{option} is not expected"),
        ErrorKind::InvalidSubcommand => "there is no such command".to_owned(),
        ErrorKind::InvalidValue => format!("the value of {option} is missing or not known"),
        ErrorKind::ValueValidation => format!("the value of {option} is not valid"),
        ErrorKind::NoEquals => format!("{option} needs an equals sign and a value"),
        ErrorKind::TooManyValues | ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            format!("{option} has the wrong number of values")
        }
        // clap names no argument where an option stands beside a command.
        ErrorKind::ArgumentConflict if option.is_empty() => {
            "no option may stand beside a command".to_owned()
        }
        ErrorKind::ArgumentConflict => format!("{option} excludes what else is given"),
        ErrorKind::MissingRequiredArgument => format!("{option} is missing"),
        ErrorKind::InvalidUtf8 => "an argument is not UTF-8".to_owned(),
        _ => "the command line cannot be read".to_owned(),
    };
    // Names of ours only.
    let known = names(ContextKind::ValidValue);
    if !known.is_empty() {
        sentence += &format!("; it may be {}", known.join(", "));
    }
    for kind in [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ] {
        if let Some(name) = names(kind).first() {
            sentence += &format!("; perhaps {name} is meant");
        }
    }
    sentence
}

/// An option as it was given, without its value; anything else is not repeated.
fn option_name(given: &str) -> String {
    let name = given
        .split(['=', ' '])
        .next()
        .unwrap_or_default()
        .trim_end_matches('.');
    let letters = name
        .strip_prefix('-')
        .unwrap_or_default()
        .trim_start_matches('-');
    let is_option = name.len() <= 40
        && letters
            .chars()
            .all(|c| c.is_ascii_lowercase() || c == '-' || c == '_')
        && !letters.is_empty();
    // clap's own names of positional arguments: <STEP> and [NAME].
    let is_position = name.len() <= 20
        && name.starts_with(['<', '['])
        && name[1..].ends_with(['>', ']'])
        && name[1..name.len() - 1]
            .chars()
            .all(|c| c.is_ascii_uppercase());
    if is_option || is_position {
        name.to_owned()
    } else {
        "an argument".to_owned()
    }
}
