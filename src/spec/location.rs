//! What a database location and a table name may be, checked before anything is opened.

use std::path::{Component, Path, PathBuf};

use crate::error::{ErrorKind, GuardError, Result};
use crate::redact;
use crate::report::text::shorten;

/// Schemes of object stores that LanceDB opens, and the cargo feature that builds each in.
const REMOTE_SCHEMES: [(&str, &str, bool); 5] = [
    ("s3", "aws", cfg!(feature = "aws")),
    ("s3+ddb", "aws", cfg!(feature = "aws")),
    ("gs", "gcs", cfg!(feature = "gcs")),
    ("az", "azure", cfg!(feature = "azure")),
    ("abfss", "azure", cfg!(feature = "azure")),
];

/// A database location that may be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A folder on this machine, absolute, without `.` and `..`.
    Local(PathBuf),
    /// An object store, as the spec gives it, credentials included: never print it.
    Remote(String),
}

impl Location {
    /// Reads a location. Relative paths start at `working_dir`.
    ///
    /// # Errors
    /// `managed_database` for `db://`, `storage_not_built_in` for an object store that this
    /// build leaves out, `spec_invalid` for anything else that LanceDB could not open.
    pub fn parse(db_uri: &str, working_dir: &Path) -> Result<Self> {
        if db_uri.chars().any(char::is_control) {
            return Err(invalid("must not hold control characters"));
        }
        let Some((scheme, rest)) = db_uri.split_once("://") else {
            let path = working_dir.join(db_uri);
            if !path.is_absolute() {
                return Err(invalid(
                    "is a relative path, and the working directory cannot be determined",
                ));
            }
            return Ok(Self::Local(normal(&path)));
        };
        let scheme = scheme.to_ascii_lowercase();
        if scheme == "db" {
            return Err(GuardError::in_own_words(
                ErrorKind::ManagedDatabase,
                "db:// is a database that LanceDB itself maintains",
            )
            .hint("LanceDB Cloud and Enterprise compact and prune on their own; there is nothing for this tool to do."));
        }
        if scheme == "file" {
            return file_path(db_uri, rest).map(|path| Self::Local(normal(&path)));
        }
        let Some((_, feature, built_in)) = REMOTE_SCHEMES.iter().find(|(s, ..)| *s == scheme)
        else {
            let scheme = shorten(&scheme, 20);
            return Err(invalid(&format!(
                "has the scheme {scheme:?}; known are a local path, file://, s3://, gs:// and az://"
            )));
        };
        if rest.trim_matches('/').is_empty() {
            return Err(invalid("names no bucket or container"));
        }
        if redact::is_ambiguous(db_uri) {
            return Err(invalid(
                "has an @ behind a ? or #, so that nobody can tell what of it is a password; write %40 for the @",
            ));
        }
        if !built_in {
            return Err(GuardError::in_own_words(
                ErrorKind::StorageNotBuiltIn,
                format!("this build has no support for {scheme}://"),
            )
            .hint(format!(
                "Use the container image, or build with --features {feature} (object-stores for all)."
            )));
        }
        Ok(Self::Remote(db_uri.trim_end_matches('/').to_owned()))
    }

    /// The location as LanceDB opens it, credentials included.
    #[must_use]
    pub fn to_open(&self) -> String {
        match self {
            Self::Local(path) => path.to_string_lossy().into_owned(),
            Self::Remote(uri) => uri.clone(),
        }
    }

    /// The location as it may be printed and as the state's key spells it.
    #[must_use]
    pub fn printable(&self) -> String {
        match self {
            Self::Local(path) => path.to_string_lossy().into_owned(),
            Self::Remote(uri) => redact::location(uri).trim_end_matches('/').to_owned(),
        }
    }
}

fn invalid(problem: &str) -> GuardError {
    GuardError::in_own_words(ErrorKind::SpecInvalid, problem)
}

/// The path of a `file://` location, its `%XX` decoded.
fn file_path(db_uri: &str, rest: &str) -> Result<PathBuf> {
    if !rest.starts_with('/') {
        return Err(invalid(
            "must be absolute as a file:// location, as in file:///data/db",
        ));
    }
    // A URL would end there, and another folder would be opened than the one that was meant.
    if rest.contains(['?', '#']) {
        return Err(invalid(
            "has no query as a file:// location; write %3F for ? and %23 for #",
        ));
    }
    let path = url::Url::parse(db_uri)
        .ok()
        .and_then(|url| url.to_file_path().ok());
    let text = path.as_ref().and_then(|path| path.to_str());
    match (text, &path) {
        (Some(text), Some(path)) if !text.chars().any(char::is_control) => Ok(path.clone()),
        _ => Err(invalid("is no path of this machine as a file:// location")),
    }
}

/// The path without `.` and `..`, by its text alone: a symbolic link is not followed.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// A table name that LanceDB itself accepts and that cannot leave the database's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName(String);

impl TableName {
    /// Checks a name: letters, digits, `_`, `-` and `.`, as LanceDB allows, and not `.` or `..`.
    ///
    /// # Errors
    /// What is wrong with the name.
    pub fn parse(name: &str) -> Result<Self, String> {
        if name.is_empty() {
            return Err("a table name must not be empty".to_owned());
        }
        if let Some(bad) = name
            .chars()
            .find(|c| !(c.is_ascii_alphanumeric() || "_-.".contains(*c)))
        {
            return Err(format!(
                "a table name holds letters, digits, '_', '-' and '.' only, not {bad:?}"
            ));
        }
        if name.chars().all(|c| c == '.') {
            return Err("a table name must not consist of dots".to_owned());
        }
        Ok(Self(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(uri: &str) -> PathBuf {
        match Location::parse(uri, Path::new("/work/dir")) {
            Ok(Location::Local(path)) => path,
            other => panic!("{uri}: {other:?}"),
        }
    }

    #[test]
    fn spellings_of_one_folder_are_one_location() {
        for uri in [
            "/data/db",
            "/data/db/",
            "/data/./db",
            "/data/x/../db",
            "file:///data/db/",
        ] {
            assert_eq!(local(uri), Path::new("/data/db"), "{uri}");
        }
        assert_eq!(local("db"), Path::new("/work/dir/db"));
    }

    #[test]
    fn a_file_location_is_decoded() {
        assert_eq!(local("file:///data/a%20b%3F"), Path::new("/data/a b?"));
        assert_eq!(local("file:///data/ä b"), Path::new("/data/ä b"));
        assert_eq!(local("/data/a%20b?#@"), Path::new("/data/a%20b?#@"));
    }

    #[test]
    fn without_a_working_directory_a_location_must_be_absolute() {
        let error = Location::parse("db", Path::new("")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::SpecInvalid);
        assert!(Location::parse("/db", Path::new("")).is_ok());
        assert!(Location::parse("file:///db", Path::new("")).is_ok());
    }

    #[test]
    fn a_managed_database_is_refused() {
        let error = Location::parse("db://prod", Path::new("/")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::ManagedDatabase);
        assert_eq!(error.code, 4);
    }

    #[test]
    fn unknown_schemes_and_control_characters_are_faults() {
        for uri in [
            "ftp://x/y",
            "s3://",
            "s3://b/x?y@z",
            "file://host",
            "file:///db?sig=x",
            "file:///db%00",
            "file:///db%FF",
            "/data\n/db",
            "/data\0",
        ] {
            let error = Location::parse(uri, Path::new("/")).unwrap_err();
            assert_eq!(error.kind, ErrorKind::SpecInvalid, "{uri:?}");
        }
    }

    #[test]
    fn a_table_name_cannot_leave_the_database() {
        for name in ["", ".", "..", "../x", "a/b", "a\\b", "a\0", "ä", "a b"] {
            assert!(TableName::parse(name).is_err(), "{name:?}");
        }
        for name in ["documents", "a-b_c.d", "x..y"] {
            assert!(TableName::parse(name).is_ok(), "{name:?}");
        }
    }
}
