//! The binary: collects what a process has, and hands it over.

use std::io::{IsTerminal, stderr, stdin, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    let exit = lancedb_guard::run(&mut lancedb_guard::Process {
        arguments: std::env::args_os().collect(),
        stdin_is_terminal: stdin().is_terminal(),
        stdin: &mut stdin(),
        stdout: &mut stdout(),
        stderr: &mut stderr(),
        // Without one, relative locations are refused: they must not start somewhere else.
        working_dir: std::env::current_dir().unwrap_or_default(),
        stop: lancedb_guard::stop::Stop::on_signals(),
        now: chrono::Utc::now(),
    });
    exit.into()
}
