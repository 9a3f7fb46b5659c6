//! One run: arguments and spec in, one step, outputs and exit code out.

use std::any::Any;
use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind::BrokenPipe;
use std::io::{Read, Write};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use chrono::{DateTime, Utc};
use clap::Parser;
use clap::error::ErrorKind as UsageKind;
use futures::FutureExt;

use crate::cli::{self, Cli, Command};
use crate::clock::Clock;
use crate::emit::kestra::Level;
use crate::emit::report_file::{ReportFile, is_same_file};
use crate::emit::{self, Format};
use crate::error::{ErrorKind, GuardError, Result};
use crate::exit::Exit;
use crate::redact::Secrets;
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
    /// Where relative paths start; empty where it cannot be determined.
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
        }) => say(process.stdout, &name.text(), Exit::Answered),
        Some(Command::Schema {
            write: Some(folder),
            ..
        }) => match schemas::write_all(&process.working_dir.join(folder)) {
            Ok(()) => Exit::Answered,
            Err(error) => say(
                process.stderr,
                &format!("{}: {error}\n", folder.display()),
                Exit::Internal,
            ),
        },
        // clap lets no `schema` pass that has neither.
        Some(Command::Schema { .. }) => Exit::Answered,
        Some(Command::Example { step }) => {
            say(process.stdout, spec::example(*step), Exit::Answered)
        }
        None if cli.spec.is_none() && process.stdin_is_terminal => {
            let help = <Cli as clap::CommandFactory>::command().render_long_help();
            say(process.stdout, &help.to_string(), Exit::BadSpec)
        }
        None => guarded(process, &cli),
    }
}

/// Does the task, and turns a panic outside the engine into an answer as well. Answers are
/// printed in one go, so nothing has been printed when one could not be made.
fn guarded(process: &mut Process<'_>, cli: &Cli) -> Exit {
    silence_panics();
    let ended = std::panic::catch_unwind(AssertUnwindSafe(|| task(process, cli)));
    ended.unwrap_or_else(|panic| {
        // No word of the panic: it may quote a value, and the secrets are not at hand.
        let error = panic_error(panic);
        let mut plain = GuardError::in_own_words(
            ErrorKind::Internal,
            "the tool panicked while it read its input or made its answer",
        );
        plain.context = error.context;
        let answer = emit::render(cli.format, &Outcome::failure(None, plain), &[]);
        say(process.stdout, &answer, Exit::Internal)
    })
}

/// Help, version, or a wrong command line.
fn usage(process: &mut Process<'_>, error: &clap::Error) -> Exit {
    if matches!(
        error.kind(),
        UsageKind::DisplayHelp | UsageKind::DisplayVersion
    ) {
        return say(process.stdout, &error.render().to_string(), Exit::Answered);
    }
    let format = format_asked_for(&process.arguments);
    let error =
        usage_error(cli::what_is_wrong(error)).hint("`lancedb-guard --help` names every option.");
    if format == Format::Text {
        let sentence = emit::text::error_sentence(&error);
        return say(process.stderr, &format!("{sentence}\n"), Exit::BadSpec);
    }
    let outcome = Outcome::failure(None, error);
    let answer = emit::render(format, &outcome, &[]);
    say(process.stdout, &answer, outcome.exit())
}

fn usage_error(message: impl Into<String>) -> GuardError {
    GuardError::in_own_words(ErrorKind::Usage, message)
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
    let (report, secrets, outcome) = match files(process, cli) {
        Ok((report, bytes)) => {
            let secrets = bytes.as_deref().map(Secrets::of_spec).unwrap_or_default();
            let outcome = match bytes {
                Ok(bytes) => answer(&bytes, &process.working_dir, &process.stop, process.now),
                Err(error) => Outcome::failure(None, error),
            };
            (report, secrets, outcome)
        }
        Err(error) => (None, Secrets::default(), Outcome::failure(None, error)),
    };
    let report_lost = report.and_then(|report| {
        let written = report.write(&emit::json::report(&outcome, &secrets));
        written.err().map(|error| report_error(cli, &error))
    });
    let metrics = emit::metrics::of(&outcome, began.elapsed());
    let answer = emit::render_without(&secrets, cli.format, &outcome, &metrics);
    let Some(error) = report_lost else {
        return say(process.stdout, &answer, outcome.exit());
    };
    let exit = match outcome.exit() {
        Exit::Answered => error.exit(),
        exit => exit,
    };
    let sentence = emit::text::error_sentence(&error);
    if cli.format != Format::Kestra {
        say(process.stderr, &format!("{sentence}\n"), exit);
        return say(process.stdout, &answer, exit);
    }
    let answer = if outcome.error().is_some() {
        emit::kestra::log(Level::Error, &sentence) + &answer
    } else {
        // The answer stands, and Kestra merges the error of the second line into it.
        let failure = Outcome::failure(outcome.step(), error);
        answer + &emit::render(cli.format, &failure, &[])
    };
    say(process.stdout, &answer, exit)
}

/// Refuses paths that would do something else than was meant.
fn check_paths(process: &Process<'_>, cli: &Cli) -> Result<()> {
    let dash = Path::new("-");
    if cli.report.as_deref() == Some(dash) {
        return Err(usage_error("--report cannot be stdout")
            .hint("Give a file; to have the full report on stdout, use --format json."));
    }
    if cli.spec.as_deref() == Some(dash) {
        return Err(
            usage_error("--spec needs a file").hint("Leave --spec away to give the spec on stdin.")
        );
    }
    if let (Some(spec), Some(report)) = (&cli.spec, &cli.report)
        && is_same_file(
            &process.working_dir.join(spec),
            &process.working_dir.join(report),
        )
    {
        return Err(usage_error("--spec and --report name the same file")
            .hint("The report would replace the spec: give it another name."));
    }
    Ok(())
}

/// The report file and the spec. The spec is read before the report is touched, and the report is
/// prepared before the step, so that a wrong path is found while nothing has been changed yet.
fn files(process: &mut Process<'_>, cli: &Cli) -> Result<(Option<ReportFile>, Result<Vec<u8>>)> {
    check_paths(process, cli)?;
    let bytes = spec_bytes(process, cli);
    let report = cli
        .report
        .as_ref()
        .map(|path| ReportFile::prepare(&process.working_dir.join(path)))
        .transpose()
        .map_err(|error| report_error(cli, &error))?;
    Ok((report, bytes))
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

/// Writes, and says how the run ends. A reader that has gone away is no reason to change that;
/// any other failure is, for nothing may look like a success whose outputs are lost.
fn say(out: &mut dyn Write, text: &str, exit: Exit) -> Exit {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != BrokenPipe && exit == Exit::Answered => Exit::Internal,
        _ => exit,
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
