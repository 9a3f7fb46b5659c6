//! Finds the protocol buffers compiler that lance's build scripts call.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// What cargo's environment needs so that build scripts find `protoc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protoc {
    /// Nothing: `PROTOC` is set already, or `protoc` is in `PATH`.
    InEnvironment,
    /// The compiler that comes with a crate, and the `.proto` files that belong to it.
    Vendored { program: PathBuf, include: PathBuf },
}

impl Protoc {
    /// Looks at `PROTOC`, then at `PATH`, then takes the vendored one. One in `PATH` counts only
    /// if it can do what lance needs: distributions package its well-known types apart.
    pub fn find() -> Result<Self> {
        let set = env::var_os("PROTOC");
        let is_set = set.is_some();
        if in_environment(set, env::var_os("PATH"))? && (is_set || compiles("protoc")) {
            return Ok(Self::InEnvironment);
        }
        let advice = "lance needs protoc to build, there is none in PATH and none comes with \
                      this tool for this platform: install the protobuf compiler (Debian: \
                      protobuf-compiler, macOS: brew install protobuf), or set PROTOC to its path";
        Ok(Self::Vendored {
            program: protoc_bin_vendored::protoc_bin_path().context(advice)?,
            include: protoc_bin_vendored::include_path().context(advice)?,
        })
    }
}

/// What lance's own files ask of a compiler.
const PROBE: &str = r#"syntax = "proto3";
import "google/protobuf/any.proto";
message Probe { optional google.protobuf.Any any = 1; }
"#;

/// Whether this compiler knows the well-known types and optional fields.
fn compiles(program: &str) -> bool {
    let folder = env::temp_dir().join(format!("lancedb-guard-protoc-{}", std::process::id()));
    let probed = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("probe.proto"), PROBE))
        .and_then(|()| {
            Command::new(program)
                .arg(format!("-I{}", folder.display()))
                .arg(format!("-o{}", folder.join("probe.bin").display()))
                .arg("probe.proto")
                .output()
        });
    // A folder that is left behind does no harm, and the system clears it.
    let _ = fs::remove_dir_all(&folder);
    probed.is_ok_and(|output| output.status.success())
}

fn in_environment(protoc: Option<OsString>, path: Option<OsString>) -> Result<bool> {
    if let Some(protoc) = protoc {
        // A bare name is looked up in PATH by the build scripts, so only a path can be checked.
        let program = Path::new(&protoc);
        if program.components().count() > 1 && !program.is_file() {
            bail!(
                "PROTOC is set to {}, which is not a file: set it to a protoc, or unset it",
                program.display()
            );
        }
        return Ok(true);
    }
    let name = format!("protoc{}", env::consts::EXE_SUFFIX);
    Ok(path.is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(&name).is_file())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protoc_set_to_a_missing_file_is_an_error_that_says_so() {
        let error = in_environment(Some("/nowhere/protoc".into()), None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "PROTOC is set to /nowhere/protoc, which is not a file: set it to a protoc, or unset it"
        );
    }

    #[test]
    fn without_a_protoc_in_path_the_vendored_one_is_needed() {
        assert!(!in_environment(None, None).unwrap());
        assert!(!in_environment(None, Some("/nowhere".into())).unwrap());
    }

    #[test]
    fn a_protoc_that_does_not_run_is_not_taken() {
        assert!(!compiles("/nowhere/protoc"));
        assert!(!compiles("false"));
    }

    #[test]
    fn the_vendored_protoc_runs() {
        let program = protoc_bin_vendored::protoc_bin_path().unwrap();
        let output = std::process::Command::new(program)
            .arg("--version")
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).starts_with("libprotoc "));
    }
}
