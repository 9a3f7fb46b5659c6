//! Finds the protocol buffers compiler that lance's build scripts call.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

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
    /// Looks at `PROTOC`, then at `PATH`, then takes the vendored one.
    pub fn find() -> Result<Self> {
        if in_environment(env::var_os("PROTOC"), env::var_os("PATH"))? {
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
    fn the_vendored_protoc_runs() {
        let program = protoc_bin_vendored::protoc_bin_path().unwrap();
        let output = std::process::Command::new(program)
            .arg("--version")
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).starts_with("libprotoc "));
    }
}
