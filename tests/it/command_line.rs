//! The command line, and what every run puts out whatever its step.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use lancedb_guard::schemas::SchemaName;
use lancedb_guard::spec::{Step, example};
use serde_json::Value;

use crate::guard;

const MISSING: &str =
    r#"{"spec_version":1,"step":"audit","db_uri":"no/such/db","table_name":"docs"}"#;

fn here() -> &'static Path {
    static HERE: LazyLock<PathBuf> = LazyLock::new(crate::tables::package_folder);
    &HERE
}

#[test]
fn a_missing_database_exits_with_3_and_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let run = guard::run(MISSING.as_bytes(), folder.path());
    assert_eq!(run.code, 3);
    assert_eq!(run.outputs["error"]["kind"], "database_not_found");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn refusals_exit_with_4() {
    let spec = MISSING.replace("no/such/db", "db://prod");
    let run = guard::run(spec.as_bytes(), here());
    assert_eq!(run.code, 4);
    guard::snapshot("refused_managed_database", &run.stdout);

    let spec = MISSING.replace('}', r#","evaluated_at":"2999-01-01T00:00:00Z"}"#);
    let run = guard::run(spec.as_bytes(), here());
    assert_eq!(run.code, 4);
    assert_eq!(run.outputs["error"]["kind"], "clock_ahead");

    let spec = MISSING.replace('}', r#","stale_version_retention_hours":0.99}"#);
    let run = guard::run(spec.as_bytes(), here());
    assert_eq!(run.code, 4);
    guard::snapshot("refused_retention", &run.stdout);
}

#[test]
fn the_spec_may_come_from_a_file_and_the_report_go_to_one() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("spec.json"), MISSING).unwrap();
    let arguments = ["--spec", "spec.json", "--report", "report.json"];
    let run = guard::checked(&guard::raw(&arguments, b"not read", folder.path()));
    assert_eq!(run.code, 3);
    let report = std::fs::read(folder.path().join("report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report, run.outputs);
}

#[test]
fn files_that_cannot_be_used_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let output = guard::raw(&["--spec", "nowhere.json"], b"", folder.path());
    let run = guard::checked(&output);
    assert_eq!(run.code, 2);
    assert_eq!(run.outputs["error"]["kind"], "usage");
    let output = guard::raw(
        &["--report", "no/folder/report.json"],
        MISSING.as_bytes(),
        folder.path(),
    );
    let run = guard::checked(&output);
    assert_eq!(run.code, 1);
    assert_eq!(run.outputs["error"]["kind"], "report_not_writable");
}

#[test]
fn a_report_that_cannot_be_finished_is_logged_beside_the_error_of_the_run() {
    let output = guard::raw(&["--report", "/dev/full"], MISSING.as_bytes(), here());
    let run = guard::checked(&output);
    assert_eq!(run.code, 3);
    assert_eq!(run.outputs["error"]["kind"], "database_not_found");
    assert!(run.stdout.contains("report_not_writable"));
}

#[test]
fn a_wrong_command_line_exits_with_2_and_still_puts_out_an_error() {
    for arguments in [&["--spek", "x"][..], &["schema", "adit-spec"], &["example"]] {
        let run = guard::checked(&guard::raw(arguments, b"", here()));
        assert_eq!(run.code, 2);
        assert_eq!(run.outputs["error"]["kind"], "usage");
        guard::snapshot(
            &format!("usage_{}", arguments[0].trim_matches('-')),
            &run.stdout,
        );
    }
    let output = guard::raw(&["--format", "text", "--spek"], b"", here());
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    let output = guard::raw(&["--format=json", "--spek"], b"", here());
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["error"]["kind"], "usage");
}

#[test]
fn a_spec_given_as_an_argument_is_not_repeated() {
    let spec = r#"{"storage_options":{"x":"hunter2"}}"#;
    let option = format!("--hunter2={spec}");
    for arguments in [
        &[spec][..],
        &["--spek", spec],
        &["--format", spec],
        &["schema", spec],
        &["example", "audit", spec],
        &["--format", "text", spec],
        &[&option],
        &["hunter2"],
        &["-xhunter2"],
    ] {
        let output = guard::raw(arguments, b"", here());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        for text in [output.stdout, output.stderr] {
            let text = String::from_utf8(text).unwrap();
            assert!(!text.contains("hunter2"), "{arguments:?}: {text}");
        }
    }
}

#[test]
fn options_beside_a_command_are_refused() {
    let output = guard::raw(&["--report", "x.json", "example", "audit"], b"", here());
    let run = guard::checked(&output);
    assert_eq!(run.code, 2);
    assert_eq!(run.outputs["error"]["kind"], "usage");
    assert_eq!(
        run.outputs["error"]["message"],
        "no option may stand beside a command"
    );
}

#[test]
fn a_report_replaces_neither_the_spec_nor_stdout() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spec.json");
    std::fs::write(&path, MISSING).unwrap();
    for report in ["spec.json", "./spec.json", "-"] {
        let arguments = ["--spec", "spec.json", "--report", report];
        let run = guard::checked(&guard::raw(&arguments, b"", folder.path()));
        assert_eq!(run.code, 2);
        assert_eq!(run.outputs["error"]["kind"], "usage");
        assert!(run.outputs["error"]["hint"].is_string());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), MISSING);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn outputs_that_cannot_be_printed_are_no_success() {
    use std::process::{Command, Stdio};
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let status = Command::new(assert_cmd::cargo::cargo_bin!("lancedb-guard"))
        .args(["example", "audit"])
        .stdin(Stdio::null())
        .stdout(full)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn formats_for_people_and_programs_hold_no_marker() {
    let output = guard::raw(&["--format", "text"], MISSING.as_bytes(), here());
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Failed: database_not_found (exit 3)") && !text.contains("::"));
    let output = guard::raw(&["--format", "json"], MISSING.as_bytes(), here());
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["error"]["code"], 3);
}

#[test]
fn schemas_and_examples_are_printed_and_fit_each_other() {
    for name in SchemaName::ALL {
        let output = guard::raw(&["schema", name.name()], b"", here());
        assert!(output.status.success());
        assert_eq!(String::from_utf8(output.stdout).unwrap(), name.text());
    }
    for step in Step::ALL {
        let output = guard::raw(&["example", step.name()], b"", here());
        assert!(output.status.success());
        assert_eq!(output.stdout, example(step).as_bytes());
        let spec: Value = serde_json::from_slice(&output.stdout).unwrap();
        let schema = SchemaName::of_spec(step).schema();
        assert!(jsonschema::draft202012::is_valid(&schema, &spec));
    }
}

#[test]
fn schemas_are_written_into_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let output = guard::raw(&["schema", "--write", "out"], b"", folder.path());
    assert!(output.status.success());
    let written = std::fs::read_dir(folder.path().join("out"))
        .unwrap()
        .count();
    assert_eq!(written, SchemaName::ALL.len());
}

#[test]
fn the_version_names_the_engine_that_is_built_in() {
    let output = guard::raw(&["--version"], b"", here());
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "lancedb-guard 0.1.0 (lancedb 0.41.0, lance 14.0.2)\n"
    );
}

#[test]
fn a_closed_pipe_changes_no_exit_code() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("lancedb-guard"))
        .args(["--spec", "/dev/null"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stderr.is_empty());
}
