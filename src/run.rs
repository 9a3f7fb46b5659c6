//! One run: arguments and spec in, one step, outputs and exit code out.

use std::any::Any;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use chrono::{DateTime, Utc};
use clap::Parser;
use clap::error::ErrorKind as UsageKind;
use futures::FutureExt;

use crate::cli::{Cli, Command};
use crate::clock::Clock;
use crate::emit::kestra::Level;
use crate::emit::{self, Format};
use crate::error::{ErrorKind, GuardError, Result};
use crate::exit::Exit;
use crate::report::outcome::Outcome;
use crate::schemas;
use crate::spec::{self, Checked, MAX_SPEC_BYTES};
use crate::step;
use crate::stop::Stop;
use crate::table::{OpenOptions, Table};

/// What a process has, collected by `main` so that tests can give it.
pub struct Process<'a> {
    /// Arguments, the program's name first.
    pub arguments: Vec<OsString>,
    /// Whether a person sits at stdin, so that there is no spec to wait for.
    pub stdin_is_terminal: bool,
    /// Where the spec comes from.
    pub stdin: &'a mut dyn Read,
    /// Where the answer goes.
    pub stdout: &'a mut dyn Write,
    /// Where usage errors go, in the formats for people only: Kestra shows stderr as errors.
    pub stderr: &'a mut dyn Write,
    /// Where relative paths start.
    pub working_dir: PathBuf,
    /// What asks the run to stop.
    pub stop: Stop,
    /// The real clock when the run began.
    pub now: DateTime<Utc>,
}

/// Runs the tool.
pub fn run(process: &mut Process<'_>) -> Exit {
    let cli = match Cli::try_parse_from(&process.arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(process, &error),
    };
    match &cli.command {
        Some(Command::Schema {
            name: Some(name), ..
        }) => say(process.stdout, &name.text()),
        Some(Command::Schema {
            write: Some(folder),
            ..
        }) => {
            if let Err(error) = schemas::write_all(&process.working_dir.join(folder)) {
                say(process.stderr, &format!("{}: {error}\n", folder.display()));
                return Exit::Internal;
            }
        }
        // clap lets no `schema` pass that has neither.
        Some(Command::Schema { .. }) => {}
        Some(Command::Example { step }) => say(process.stdout, spec::example(*step)),
        None if cli.spec.is_none() && process.stdin_is_terminal => {
            let help = <Cli as clap::CommandFactory>::command().render_long_help();
            say(process.stdout, &help.to_string());
            return Exit::BadSpec;
        }
        None => return task(process, &cli),
    }
    Exit::Answered
}

/// Help, version, or a wrong command line.
fn usage(process: &mut Process<'_>, error: &clap::Error) -> Exit {
    if matches!(
        error.kind(),
        UsageKind::DisplayHelp | UsageKind::DisplayVersion
    ) {
        say(process.stdout, &error.render().to_string());
        return Exit::Answered;
    }
    let format = format_asked_for(&process.arguments);
    let text = error.render().to_string();
    if format == Format::Text {
        say(process.stderr, &text);
        return Exit::BadSpec;
    }
    // The first paragraph says what is wrong; the rest is the usage that --help prints as well.
    let first = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = first.split_whitespace().collect();
    let message = words.join(" ");
    let error = GuardError::new(
        ErrorKind::Usage,
        message.strip_prefix("error: ").unwrap_or(&message),
    )
    .hint("`lancedb-guard --help` names every option.");
    let outcome = Outcome::failure(None, error);
    say(process.stdout, &emit::render(format, &outcome, &[]));
    outcome.exit()
}

/// The format of a command line that could not be read as a whole.
fn format_asked_for(arguments: &[OsString]) -> Format {
    let words: Vec<_> = arguments
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let asked =
        words
            .iter()
            .enumerate()
            .find_map(|(at, word)| match word.strip_prefix("--format=") {
                Some(value) => Some(value.to_owned()),
                None if word == "--format" => words.get(at + 1).map(ToString::to_string),
                None => None,
            });
    match asked.as_deref() {
        Some("text") => Format::Text,
        Some("json") => Format::Json,
        _ => Format::Kestra,
    }
}

/// Reads the spec, does its step, and prints what came of it.
fn task(process: &mut Process<'_>, cli: &Cli) -> Exit {
    let began = Instant::now();
    silence_panics();
    // The report file is opened before the step, so that a wrong path is found while nothing
    // has been changed yet.
    let mut report = None;
    let outcome = match open_report(cli, &process.working_dir) {
        Ok(file) => {
            report = file;
            match spec_bytes(process, cli) {
                Ok(bytes) => answer(&bytes, &process.working_dir, &process.stop, process.now),
                Err(error) => Outcome::failure(None, error),
            }
        }
        Err(error) => Outcome::failure(None, error),
    };
    let report_lost = report.and_then(|mut file| {
        let written = file.write_all(emit::json::report(&outcome).as_bytes());
        written.err().map(|error| report_error(cli, &error))
    });
    let metrics = emit::metrics::of(&outcome, began.elapsed());
    let answer = emit::render(cli.format, &outcome, &metrics);
    let Some(error) = report_lost else {
        say(process.stdout, &answer);
        return outcome.exit();
    };
    let sentence = emit::text::error_sentence(&error);
    if cli.format != Format::Kestra {
        say(process.stdout, &answer);
        say(process.stderr, &format!("{sentence}\n"));
    } else if outcome.error().is_some() {
        say(
            process.stdout,
            &(emit::kestra::log(Level::Error, &sentence) + &answer),
        );
    } else {
        // The answer stands, and Kestra merges the error of the second line into it.
        let failure = Outcome::failure(outcome.step(), error.clone());
        say(
            process.stdout,
            &(answer + &emit::render(cli.format, &failure, &[])),
        );
    }
    match outcome.exit() {
        Exit::Answered => error.exit(),
        exit => exit,
    }
}

fn open_report(cli: &Cli, working_dir: &Path) -> Result<Option<File>> {
    let Some(path) = &cli.report else {
        return Ok(None);
    };
    File::create(working_dir.join(path))
        .map(Some)
        .map_err(|error| report_error(cli, &error))
}

fn report_error(cli: &Cli, error: &std::io::Error) -> GuardError {
    let path = cli.report.as_deref().unwrap_or(Path::new(""));
    GuardError::new(
        ErrorKind::ReportNotWritable,
        format!("the report {} cannot be written: {error}", path.display()),
    )
    .hint("In a container, the working folder may belong to root: give a path that this user may write.")
}

/// The spec's bytes: at most one more than the limit, however many there are.
fn spec_bytes(process: &mut Process<'_>, cli: &Cli) -> Result<Vec<u8>> {
    let limit = MAX_SPEC_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    let read = match &cli.spec {
        Some(path) => File::open(process.working_dir.join(path))
            .and_then(|file| file.take(limit).read_to_end(&mut bytes)),
        None => process.stdin.take(limit).read_to_end(&mut bytes),
    };
    read.map(|_| bytes).map_err(|error| {
        let source = match &cli.spec {
            Some(path) => format!("the spec file {}", path.display()),
            None => "stdin".to_owned(),
        };
        GuardError::new(
            ErrorKind::Usage,
            format!("{source} cannot be read: {error}"),
        )
    })
}

/// Parses the spec and does its step. Never fails: a failure is an outcome as well.
#[must_use]
pub fn answer(bytes: &[u8], working_dir: &Path, stop: &Stop, now: DateTime<Utc>) -> Outcome {
    stop.step_begins();
    let step = spec::parse::step_of(bytes);
    caught(async {
        let checked = spec::parse(bytes, working_dir)?;
        let clock = Clock::of_run(checked.spec.common().evaluated_at, now)?;
        on_table(checked, &clock, stop, &OpenOptions::default()).await
    })
    .unwrap_or_else(|error| Outcome::failure(step, error))
}

/// Opens the table of a checked spec and does the step.
///
/// # Errors
/// Whatever the step could not do.
pub async fn on_table(
    checked: Checked,
    clock: &Clock,
    stop: &Stop,
    options: &OpenOptions,
) -> Result<Outcome> {
    let storage_options = checked.spec.common().storage_options;
    let opening = Table::open(&checked.location, &checked.table, storage_options, options);
    let table = stop.or(opening).await?;
    step::run(&checked.spec, table, clock, stop).await
}

/// Runs a future on a runtime of its own and turns a panic into an error. What the future holds
/// is dropped by the panic, so nothing half-changed is seen afterwards.
fn caught(work: impl Future<Output = Result<Outcome>>) -> Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| GuardError::new(ErrorKind::Internal, format!("no runtime: {error}")))?;
    let ended = runtime.block_on(AssertUnwindSafe(work).catch_unwind());
    // Not waiting for blocking reads of the engine that nobody needs any more.
    runtime.shutdown_background();
    ended.unwrap_or_else(|panic| Err(panic_error(panic)))
}

/// Where the last panic happened, as the hook saw it.
static PANIC_PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Keeps panics off stderr, which Kestra would show as errors of their own, and remembers where
/// they happened instead.
fn silence_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|place| {
            // The file alone: the folders are those of the machine that built the binary.
            let file = Path::new(place.file()).file_name().unwrap_or_default();
            format!("{}:{}", file.to_string_lossy(), place.line())
        });
        *PANIC_PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }));
}

fn panic_error(panic: Box<dyn Any + Send>) -> GuardError {
    let message = match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic
            .downcast::<&str>()
            .map_or_else(|_| "no message".to_owned(), |text| (*text).to_owned()),
    };
    let error = GuardError::new(ErrorKind::Internal, format!("the engine panicked: {message}"))
        .hint("This is a fault of the tool or of the engine; please report it with the spec and this message.");
    let place = PANIC_PLACE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    match place {
        Some(place) => error.with("panicked_at", place),
        None => error,
    }
}

/// Writes without minding whether anybody reads: a reader that has gone away is no reason to
/// change how the run ended.
fn say(out: &mut dyn Write, text: &str) {
    if out.write_all(text.as_bytes()).is_ok() {
        let _ = out.flush();
    }
}

#[cfg(test)]
mod tests {
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
}
