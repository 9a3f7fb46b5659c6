//! The file of the full report: whole, or as it was before.
//!
//! The report is written to a file beside it, which takes its name at the end, so that a run
//! that fails or is killed leaves an older report as it was. That file is made before the step
//! runs: a path that cannot be written is found while nothing has been changed yet.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A report that is not written yet.
#[derive(Debug)]
pub struct ReportFile {
    target: PathBuf,
    /// The file beside it, which takes its name at the end. None where that is not possible: a
    /// device, or a single file mounted into a container.
    beside: Option<(File, PathBuf)>,
}

impl ReportFile {
    /// Prepares a report. What stands under its name stays as it is.
    ///
    /// # Errors
    /// The file or its folder cannot be written.
    pub fn prepare(path: &Path) -> io::Result<Self> {
        // A symbolic link stays one; what it points to is replaced.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let exists = match target.metadata() {
            Ok(known) => {
                // Not truncated: only to learn whether this user may.
                OpenOptions::new().write(true).open(&target)?;
                if !known.is_file() {
                    return Ok(Self {
                        target,
                        beside: None,
                    });
                }
                true
            }
            Err(_) => false,
        };
        match create_beside(&target) {
            Ok(beside) => {
                if let Ok(known) = target.metadata() {
                    // Whoever could read the older report can read this one; not being able to
                    // say so is no reason to have no report.
                    let _ = beside.0.set_permissions(known.permissions());
                }
                Ok(Self {
                    target,
                    beside: Some(beside),
                })
            }
            // A folder that nothing may be added to, with a file in it that may be written.
            Err(_) if exists => Ok(Self {
                target,
                beside: None,
            }),
            Err(error) => Err(error),
        }
    }

    /// Writes the report under its name.
    ///
    /// # Errors
    /// The report could not be written; an older one is still there.
    pub fn write(mut self, text: &str) -> io::Result<()> {
        let Some((mut file, path)) = self.beside.take() else {
            return in_place(&self.target, text);
        };
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_all());
        if let Err(error) = written {
            let _ = std::fs::remove_file(path);
            return Err(error);
        }
        std::fs::rename(&path, &self.target).or_else(|_| {
            // A file that is mounted by itself cannot be replaced, only written.
            let _ = std::fs::remove_file(&path);
            in_place(&self.target, text)
        })
    }
}

impl Drop for ReportFile {
    fn drop(&mut self) {
        if let Some((_, path)) = self.beside.take() {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether two paths lead to one file. A file that does not exist is no other's.
#[must_use]
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

fn create_beside(target: &Path) -> io::Result<(File, PathBuf)> {
    let name = target
        .file_name()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
    let name = format!(
        ".{}.{}.tmp",
        name.to_string_lossy(),
        uuid::Uuid::new_v4().simple()
    );
    let path = target.with_file_name(name);
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    Ok((file, path))
}

fn in_place(target: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(target)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_report_that_is_not_finished_leaves_the_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        std::fs::write(&path, "older").unwrap();
        let report = ReportFile::prepare(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "older");
        drop(report);
        assert_eq!(names(folder.path()), ["report.json"]);
        ReportFile::prepare(&path).unwrap().write("newer").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "newer");
        assert_eq!(names(folder.path()), ["report.json"]);
    }

    #[test]
    fn a_symbolic_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target.json");
        let link = folder.path().join("link.json");
        std::fs::write(&target, "older").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        ReportFile::prepare(&link).unwrap().write("newer").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "newer");
        assert!(is_same_file(&link, &target));
    }

    #[test]
    fn a_device_is_written_and_not_replaced() {
        ReportFile::prepare(Path::new("/dev/null"))
            .unwrap()
            .write("x")
            .unwrap();
        assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
        let full = ReportFile::prepare(Path::new("/dev/full")).unwrap();
        assert!(full.write("x").is_err());
    }

    #[test]
    fn a_folder_is_no_report() {
        let folder = tempfile::tempdir().unwrap();
        assert!(ReportFile::prepare(folder.path()).is_err());
        assert!(ReportFile::prepare(&folder.path().join("no/such/report")).is_err());
    }
}
