//! What an error of lance, lancedb or the store means to an operator.
//!
//! Engine texts are for developers: they carry source positions, request ids and whole XML
//! bodies. The kind decides what a flow does; the text is tidied and shortened.

use std::error::Error as StdError;

use crate::error::{ErrorKind, GuardError};
use crate::redact;

/// Characters of an engine text that are kept.
const TEXT_LENGTH: usize = 400;

/// Fact of a lost race: the version that the other writer committed, where lance says it.
pub const LOST_TO: &str = "lost_to_version";

/// An error of lance while doing something.
pub fn of_lance(error: &lance::Error, doing: &str) -> GuardError {
    let kind = kind_of_lance(error);
    let fault = finish(kind, doing, &error.to_string());
    match error {
        lance::Error::RetryableCommitConflict { version, .. }
        | lance::Error::CommitConflict { version, .. } => fault.with(LOST_TO, version),
        _ => fault,
    }
}

/// An error of lance while reading one version of the history.
pub fn of_version(error: &lance::Error, version: u64) -> GuardError {
    if matches!(
        error,
        lance::Error::DatasetNotFound { .. } | lance::Error::NotFound { .. }
    ) {
        return GuardError::new(
            ErrorKind::VersionNotFound,
            format!("version {version} of the table does not exist any more"),
        )
        .hint("It was pruned meanwhile; run the flow again from the audit.")
        .with("version", version);
    }
    of_lance(error, &format!("reading version {version}"))
}

/// An error of lancedb while doing something.
pub fn of_lancedb(error: &lancedb::Error, doing: &str) -> GuardError {
    match error {
        lancedb::Error::Lance { source } => of_lance(source, doing),
        other => {
            let kind = match other {
                lancedb::Error::TableNotFound { .. } => ErrorKind::TableNotFound,
                lancedb::Error::InvalidTableName { .. } => ErrorKind::SpecInvalid,
                // lancedb's own check of the location wraps the store's error as text.
                _ => kind_of_chain(other)
                    .or_else(|| kind_of_text(&other.to_string()))
                    .unwrap_or(ErrorKind::Internal),
            };
            finish(kind, doing, &other.to_string())
        }
    }
}

fn kind_of_lance(error: &lance::Error) -> ErrorKind {
    use lance::Error as E;
    match error {
        E::RetryableCommitConflict { .. }
        | E::CommitConflict { .. }
        | E::IncompatibleTransaction { .. }
        | E::TooMuchWriteContention { .. } => ErrorKind::CommitConflict,
        E::DatasetNotFound { .. } => ErrorKind::TableNotFound,
        E::CorruptFile { .. } => kind_of_chain(error).unwrap_or(ErrorKind::TableDamaged),
        E::NotFound { .. } => ErrorKind::TableDamaged,
        E::NotSupported { .. } => {
            kind_of_text(&error.to_string()).unwrap_or(ErrorKind::TableTooNew)
        }
        _ => kind_of_chain(error)
            .or_else(|| kind_of_text(&error.to_string()))
            .unwrap_or(ErrorKind::Internal),
    }
}

/// What the store itself said, somewhere down the chain of causes.
fn kind_of_chain(error: &(dyn StdError + 'static)) -> Option<ErrorKind> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(store) = error.downcast_ref::<object_store::Error>() {
            return Some(match store {
                object_store::Error::PermissionDenied { .. }
                | object_store::Error::Unauthenticated { .. } => ErrorKind::StorageDenied,
                object_store::Error::NotFound { .. } => ErrorKind::TableDamaged,
                // Lance's own readers wrap what they find in generic store errors.
                other if is_damage(&other.to_string()) => ErrorKind::TableDamaged,
                other => kind_of_text(&other.to_string()).unwrap_or(ErrorKind::StorageUnreachable),
            });
        }
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            match io.kind() {
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                    return Some(ErrorKind::StorageFull);
                }
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                    return Some(ErrorKind::StorageDenied);
                }
                std::io::ErrorKind::NotFound => return Some(ErrorKind::TableDamaged),
                _ if is_lost_device(io) => return Some(ErrorKind::StorageUnreachable),
                _ => {}
            }
        }
        cause = error.source();
    }
    None
}

/// A disk that cannot be read, or a network volume that went away. By its number on Linux, where
/// the kinds of the standard library do not tell: EIO 5, ENXIO 6, ENODEV 19, ESHUTDOWN 108.
fn is_lost_device(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as Kind;
    let kinds = [
        Kind::StaleNetworkFileHandle,
        Kind::TimedOut,
        Kind::NotConnected,
        Kind::HostUnreachable,
        Kind::NetworkUnreachable,
        Kind::NetworkDown,
        Kind::ConnectionRefused,
        Kind::ConnectionReset,
        Kind::ConnectionAborted,
        Kind::BrokenPipe,
    ];
    kinds.contains(&error.kind()) || matches!(error.raw_os_error(), Some(5 | 6 | 19 | 108))
}

/// A file that is missing, or shorter than its reader was told.
fn is_damage(text: &str) -> bool {
    text.contains("N/A error: Not found: ")
        || (text.contains("Invalid range") && text.contains("for object of size"))
}

/// Some faults are told apart by nothing but their text.
fn kind_of_text(text: &str) -> Option<ErrorKind> {
    let text = text.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if has(&["multiple manifest naming schemes"]) {
        Some(ErrorKind::ManifestSchemeMixed)
    } else if has(&[
        "no space left on device",
        "disk quota exceeded",
        "insufficientstorage",
    ]) {
        Some(ErrorKind::StorageFull)
    } else if has(&["nosuchbucket", "containernotfound", "bucket does not exist"]) {
        Some(ErrorKind::DatabaseNotFound)
    } else if has(&[
        "accessdenied",
        "access denied",
        "permission denied",
        "signaturedoesnotmatch",
        "authenticationfailed",
        "invalidaccesskeyid",
        "unauthorized",
        "403 forbidden",
        "read-only file system",
    ]) {
        Some(ErrorKind::StorageDenied)
    } else if has(&[
        "error sending request",
        "connection refused",
        "kind: connect",
        "dns error",
        "timed out",
        "timeout",
        "service unavailable",
        "input/output error (os error 5)",
        "stale file handle (os error 116)",
        "transport endpoint is not connected (os error 107)",
    ]) {
        Some(ErrorKind::StorageUnreachable)
    } else if has(&[
        "failed to decode protobuf",
        "invalid format",
        "file size is smaller",
        "file size is too small",
        "does not have sufficient data",
        "eof while parsing",
        "magic number",
        "unexpected end of file",
        "corrupt",
    ]) {
        Some(ErrorKind::TableDamaged)
    } else {
        None
    }
}

fn finish(kind: ErrorKind, doing: &str, text: &str) -> GuardError {
    let error = GuardError::in_own_words(kind, format!("{doing}: {}", tidy(&redact::text(text))));
    match kind {
        ErrorKind::StorageDenied => error.hint(
            "Check the credentials in storage_options or the environment, and that they allow reading, writing, listing and deleting.",
        ),
        ErrorKind::StorageUnreachable => {
            error.hint("Check the endpoint, the region and the network; running again is safe.")
        }
        ErrorKind::StorageFull => error.hint(
            "Nothing more could be written; what was committed before is whole. Make room (the audit's plan names free_bytes_needed) and run again.",
        ),
        ErrorKind::ManifestSchemeMixed => error.hint(
            "The _versions folder holds manifests of two naming schemes, as after copying files by hand. Nothing was changed. Restore the folder from a backup, or remove the manifest that does not belong.",
        ),
        ErrorKind::TableTooNew => error.hint(
            "The table was written by a newer release of Lance than this build knows. Nothing was changed. Use a newer release of this tool.",
        ),
        ErrorKind::TableDamaged => error.hint(
            "A file that the table refers to is missing or cannot be read. Nothing is pruned from a damaged table. Restore the file, or an older version of the table.",
        ),
        ErrorKind::CommitConflict => {
            error.hint("Another writer committed first; running again plans on the new version.")
        }
        _ => error,
    }
}

/// An engine text on one line, without source positions and settings, shortened.
fn tidy(text: &str) -> String {
    let text = without_settings(text);
    let mut kept: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        // A source position, such as `/…/dataset/cleanup.rs:733:51`.
        if word.contains(".rs:") || word.starts_with("LanceError(") {
            continue;
        }
        kept.push(word);
    }
    let mut line = kept.join(" ");
    while line.ends_with([',', ':', ' ', '.']) {
        line.pop();
    }
    if line.chars().count() > TEXT_LENGTH {
        line = line.chars().take(TEXT_LENGTH).collect::<String>() + "…";
    }
    line
}

/// Without lance's upload settings, which no operator of this tool has set.
fn without_settings(text: &str) -> String {
    let parts = text.find("LANCE_INITIAL_UPLOAD_SIZE=").and_then(|at| {
        let before = text[..at].rfind(" (")?;
        let after = at + text[at..].find(')')? + 1;
        Some((&text[..before], &text[after..]))
    });
    parts.map_or_else(
        || text.to_owned(),
        |(before, after)| format!("{before}{after}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_volume_is_an_unreachable_storage_and_a_full_one_is_full() {
        for (number, kind) in [
            (5, ErrorKind::StorageUnreachable),
            (116, ErrorKind::StorageUnreachable),
            (107, ErrorKind::StorageUnreachable),
            (28, ErrorKind::StorageFull),
            (122, ErrorKind::StorageFull),
            (13, ErrorKind::StorageDenied),
            (30, ErrorKind::StorageDenied),
        ] {
            let io = || std::io::Error::from_raw_os_error(number);
            let wrapped = lance::Error::io_source(Box::new(io()));
            assert_eq!(kind_of_lance(&wrapped), kind, "{number}");
            // As lance has it where it keeps the text alone.
            assert_eq!(
                kind_of_text(&format!("writing: {}", io())),
                Some(kind),
                "{number}"
            );
        }
    }

    #[test]
    fn upload_settings_go() {
        assert_eq!(
            tidy(
                "single PUT of a failed after 9µs (12 bytes, LANCE_INITIAL_UPLOAD_SIZE=5 bytes, LANCE_UPLOAD_CONCURRENCY=10): full"
            ),
            "single PUT of a failed after 9µs: full"
        );
        assert_eq!(
            tidy("LANCE_INITIAL_UPLOAD_SIZE=5"),
            "LANCE_INITIAL_UPLOAD_SIZE=5"
        );
    }

    #[test]
    fn source_positions_and_line_breaks_go() {
        assert_eq!(
            tidy("Not found: x/y.lance,\n /home/user/.cargo/registry/lance/src/io.rs:12:5"),
            "Not found: x/y.lance"
        );
    }

    #[test]
    fn faults_that_only_their_text_tells_apart() {
        for (text, kind) in [
            (
                "Found multiple manifest naming schemes in directory",
                ErrorKind::ManifestSchemeMixed,
            ),
            ("<Code>NoSuchBucket</Code>", ErrorKind::DatabaseNotFound),
            (
                "<Code>SignatureDoesNotMatch</Code>",
                ErrorKind::StorageDenied,
            ),
            (
                "error sending request for url",
                ErrorKind::StorageUnreachable,
            ),
        ] {
            assert_eq!(kind_of_text(text), Some(kind), "{text}");
        }
        // As lancedb wraps them; the time-out is a setting there, not what happened.
        let wrapped = |inner: &str| {
            format!(
                "Failed to connect to namespace: RetryError(RetryErrorImpl {{ retry_timeout: 180s, inner: {inner}"
            )
        };
        assert_eq!(
            kind_of_text(&wrapped("Http(HttpError { kind: Connect")),
            Some(ErrorKind::StorageUnreachable)
        );
        assert_eq!(
            kind_of_text(&wrapped("body: <Code>SignatureDoesNotMatch</Code>")),
            Some(ErrorKind::StorageDenied)
        );
        assert_eq!(kind_of_text("something else"), None);
        for text in [
            "Generic N/A error: Not found: /db/t.lance/data/a.lance",
            "Generic memory error: Invalid range 0..1915 for object of size 1914 bytes",
        ] {
            assert!(is_damage(text), "{text}");
        }
        assert!(!is_damage("Generic S3 error: error sending request"));
    }
}
