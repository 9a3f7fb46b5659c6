//! Starts cargo so that lance's build scripts find `protoc`.

use std::env;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::protoc::Protoc;

/// The folder of the workspace.
pub fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// Runs a command to its end; an exit code that is not 0 is an error.
pub fn check(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if !status.success() {
        let arguments: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
        bail!(
            "{} {} ended with {status}",
            command.get_program().display(),
            arguments.join(" ")
        );
    }
    Ok(())
}

/// The programs that the demo runs.
#[derive(Debug)]
pub struct Programs {
    /// The tool.
    pub guard: PathBuf,
    /// The maker of sample tables.
    pub sample_table: PathBuf,
}

/// Cargo, with an environment in which lance builds.
#[derive(Debug)]
pub struct Cargo {
    protoc: Protoc,
}

impl Cargo {
    /// Finds `protoc` for cargo.
    pub fn find() -> Result<Self> {
        Ok(Self {
            protoc: Protoc::find()?,
        })
    }

    /// A cargo command in the folder of the workspace.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(program);
        command.args(arguments).current_dir(root());
        if let Protoc::Vendored { program, include } = &self.protoc {
            command
                .env("PROTOC", program)
                .env("PROTOC_INCLUDE", include);
        }
        command
    }

    /// Runs cargo.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<()> {
        check(&mut self.command(arguments))
    }

    /// Builds the tool and the maker of sample tables, and says where cargo put them.
    pub fn build_programs(&self) -> Result<Programs> {
        let mut building = self
            .command(&[
                "build",
                "--package=lancedb-guard",
                "--bin=lancedb-guard",
                "--example=sample_table",
                "--message-format=json-render-diagnostics",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start cargo")?;
        let (mut guard, mut sample_table) = (None, None);
        if let Some(stdout) = building.stdout.take() {
            for line in BufReader::new(stdout).lines() {
                let message: Value = serde_json::from_str(&line?).unwrap_or_default();
                let Some(executable) = message["executable"].as_str() else {
                    continue;
                };
                match message["target"]["name"].as_str() {
                    Some("lancedb-guard") => guard = Some(executable.into()),
                    Some("sample_table") => sample_table = Some(executable.into()),
                    _ => {}
                }
            }
        }
        if !building.wait()?.success() {
            bail!("the build failed; its messages stand above");
        }
        Ok(Programs {
            guard: guard.context("cargo built no lancedb-guard")?,
            sample_table: sample_table.context("cargo built no sample_table")?,
        })
    }
}
