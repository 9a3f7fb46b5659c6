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
///
/// As cargo says it to the running program: two checkouts that share a target folder may share
/// this binary as well, which would name the wrong one.
pub fn root() -> PathBuf {
    let xtask = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().map_or(xtask.clone(), Path::to_path_buf)
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

/// Whether cargo sets this variable for the package that it runs, and for no other.
fn is_about_this_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"]
        .iter()
        .any(|prefix| variable.starts_with(prefix))
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
        // `cargo xtask` told this process about its own package. Passed on, that makes build
        // scripts that look at it (ring's) run anew and lance build again, at each change between
        // `cargo xtask` and plain `cargo`.
        for (name, _) in env::vars_os() {
            if is_about_this_package(&name.to_string_lossy()) {
                command.env_remove(name);
            }
        }
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
        let built = self.build(&["--bin=lancedb-guard", "--example=sample_table"])?;
        Ok(Programs {
            guard: executable(&built, "lancedb-guard")?,
            sample_table: executable(&built, "sample_table")?,
        })
    }

    /// Builds the tool, in release mode with object stores or as the tests run it, and says where
    /// cargo put it.
    pub fn build_guard(&self, release: bool) -> Result<PathBuf> {
        let mut arguments = vec!["--bin=lancedb-guard"];
        if release {
            arguments.extend(["--release", "--features=object-stores"]);
        }
        executable(&self.build(&arguments)?, "lancedb-guard")
    }

    /// Builds targets of the tool's package, and returns every executable by its target's name.
    fn build(&self, arguments: &[&str]) -> Result<Vec<(String, PathBuf)>> {
        let mut building = self
            .command(&[
                "build",
                "--locked",
                "--package=lancedb-guard",
                "--message-format=json-render-diagnostics",
            ])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start cargo")?;
        let mut built = Vec::new();
        if let Some(stdout) = building.stdout.take() {
            for line in BufReader::new(stdout).lines() {
                let message: Value = serde_json::from_str(&line?).unwrap_or_default();
                let name = message["target"]["name"].as_str();
                if let (Some(name), Some(path)) = (name, message["executable"].as_str()) {
                    built.push((name.to_owned(), path.into()));
                }
            }
        }
        if !building.wait()?.success() {
            bail!("the build failed; its messages stand above");
        }
        Ok(built)
    }
}

/// Finds one of the executables that cargo built.
fn executable(built: &[(String, PathBuf)], name: &str) -> Result<PathBuf> {
    built
        .iter()
        .find(|(target, _)| target == name)
        .map(|(_, path)| path.clone())
        .with_context(|| format!("cargo built no {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_not_told_about_the_package_of_xtask() {
        let cargo = Cargo {
            protoc: Protoc::InEnvironment,
        };
        let removed: Vec<_> = cargo
            .command(&["build"])
            .get_envs()
            .filter(|(_, value)| value.is_none())
            .map(|(name, _)| name.to_owned())
            .collect();
        for variable in ["CARGO_PKG_NAME", "CARGO_PKG_VERSION", "CARGO_MANIFEST_DIR"] {
            assert!(
                removed.contains(&variable.into()),
                "{variable}: {removed:?}"
            );
        }
        assert!(!is_about_this_package("CARGO_TARGET_DIR"));
        assert!(!is_about_this_package("CARGO_HOME"));
    }

    #[test]
    fn a_vendored_protoc_is_passed_on_to_cargo() {
        let cargo = Cargo {
            protoc: Protoc::Vendored {
                program: "bin/protoc".into(),
                include: "include".into(),
            },
        };
        let command = cargo.command(&["build"]);
        let value = |name: &str| {
            command
                .get_envs()
                .find(|(key, _)| *key == name)
                .and_then(|(_, value)| value)
        };
        assert_eq!(value("PROTOC"), Some(OsStr::new("bin/protoc")));
        assert_eq!(value("PROTOC_INCLUDE"), Some(OsStr::new("include")));
    }
}
