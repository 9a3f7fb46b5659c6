//! The project's own commands: `cargo xtask --help`.
//!
//! lance needs `protoc` to build, and a fresh machine has none. This crate builds without lance,
//! so it can find or provide `protoc` first and start cargo then; see [`cargo`].

mod cargo;
mod demo;
mod image;
mod protoc;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::cargo::Cargo;

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "The project's own commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Audit, compact and verify a made-up bloated table, and show what happened.
    Demo {
        /// The folder for the table, the specs and the Kestra lines; a new temporary one if absent.
        #[arg(long)]
        dir: Option<PathBuf>,
    },
    /// Run every check: formatting, clippy, tests, demo.
    Test,
    /// Build the container image from a binary that is built on this machine.
    Image(image::Image),
    /// Write the JSON Schemas anew from the Rust types.
    Schemas,
    /// Make the fixture tables of the tests anew (needs Debian's package faketime).
    Fixtures,
    /// Run any cargo command with PROTOC set: `cargo xtask cargo -- build --release`.
    Cargo {
        /// The arguments of cargo.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let cargo = Cargo::find()?;
    match command {
        Command::Demo { dir } => {
            let folder = demo::Folder::new(dir)?;
            demo::run(&cargo, &folder)
        }
        Command::Test => test::run(&cargo),
        Command::Image(image) => image::run(&cargo, &image),
        Command::Schemas => cargo.run(&[
            "run",
            "--quiet",
            "--package",
            "lancedb-guard",
            "--",
            "schema",
            "--write",
            "schemas",
        ]),
        Command::Fixtures => {
            let programs = cargo.build_programs()?;
            cargo::check(
                std::process::Command::new(cargo::root().join("tests/fixtures/make.sh"))
                    .env("SAMPLE_TABLE", programs.sample_table),
            )
        }
        Command::Cargo { arguments } => cargo.run(&arguments),
    }
}
