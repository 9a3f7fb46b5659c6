//! The command line.

use std::path::PathBuf;

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
#[command(name = "lancedb-guard", version = VERSION)]
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
