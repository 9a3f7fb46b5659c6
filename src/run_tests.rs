use super::*;

#[test]
fn a_panic_becomes_an_internal_error() {
    let error = caught(async { panic!("boom at s3://key:secret@bucket") }).unwrap_err();
    assert_eq!(error.exit(), Exit::Internal);
    assert_eq!(error.kind, ErrorKind::Internal);
    assert_eq!(
        error.message,
        "the engine panicked: boom at s3://***@bucket"
    );
}

#[test]
fn a_closed_stdout_changes_no_exit_code() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
    }
    let exit = run(&mut Process {
        arguments: vec!["lancedb-guard".into(), "example".into(), "audit".into()],
        stdin_is_terminal: false,
        stdin: &mut std::io::empty(),
        stdout: &mut Closed,
        stderr: &mut Closed,
        working_dir: "/".into(),
        stop: Stop::default(),
        now: DateTime::UNIX_EPOCH,
    });
    assert_eq!(exit, Exit::Answered);
}

#[test]
fn a_terminal_without_a_spec_gets_help_instead_of_waiting() {
    struct Never;
    impl Read for Never {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            panic!("waited for a spec from a terminal")
        }
    }
    let mut out = Vec::new();
    let exit = run(&mut Process {
        arguments: vec!["lancedb-guard".into()],
        stdin_is_terminal: true,
        stdin: &mut Never,
        stdout: &mut out,
        stderr: &mut std::io::sink(),
        working_dir: "/".into(),
        stop: Stop::default(),
        now: DateTime::UNIX_EPOCH,
    });
    assert_eq!(exit, Exit::BadSpec);
    assert!(
        String::from_utf8(out)
            .unwrap()
            .contains("Usage: lancedb-guard")
    );
}

fn process<'a>(
    arguments: &[&str],
    stdin: &'a mut dyn Read,
    stdout: &'a mut dyn Write,
    stderr: &'a mut dyn Write,
) -> Process<'a> {
    Process {
        arguments: std::iter::once("lancedb-guard")
            .chain(arguments.iter().copied())
            .map(Into::into)
            .collect(),
        stdin_is_terminal: false,
        stdin,
        stdout,
        stderr,
        working_dir: PathBuf::new(),
        stop: Stop::default(),
        now: DateTime::UNIX_EPOCH,
    }
}

#[test]
fn a_stdout_that_takes_nothing_is_no_success() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut full = Full;
    let exit_of = |arguments: &[&str], full: &mut Full| {
        run(&mut process(
            arguments,
            &mut std::io::empty(),
            full,
            &mut std::io::sink(),
        ))
    };
    assert_eq!(exit_of(&["example", "audit"], &mut full), Exit::Internal);
    assert_eq!(exit_of(&[], &mut full), Exit::BadSpec);
}

#[test]
fn a_panic_outside_the_engine_still_puts_out_an_error() {
    struct Panics;
    impl Read for Panics {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            panic!("MARKER")
        }
    }
    let mut out = Vec::new();
    let exit = run(&mut process(
        &[],
        &mut Panics,
        &mut out,
        &mut std::io::sink(),
    ));
    assert_eq!(exit, Exit::Internal);
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains(r#"::{"outputs":{"error":{"code":1,"kind":"internal""#));
    assert!(!text.contains("MARKER"));
}

#[test]
fn without_a_working_directory_a_relative_location_is_refused() {
    let spec = br#"{"spec_version":1,"step":"audit","db_uri":"db","table_name":"t"}"#;
    let mut out = Vec::new();
    let exit = run(&mut process(
        &[],
        &mut &spec[..],
        &mut out,
        &mut std::io::sink(),
    ));
    assert_eq!(exit, Exit::BadSpec);
    assert!(
        String::from_utf8(out)
            .unwrap()
            .contains("working directory cannot be determined")
    );
}
