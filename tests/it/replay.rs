//! Task specs as flows send them, run through the binary, with the complete stdout as snapshot.
//!
//! `tests/specs/SCENARIO@FIXTURE/N-STEP.json`: the specs of a scenario run in the order of their
//! names on one copy of the fixture, which takes the table's name and the database's location
//! from the specs. A spec recorded in production can be dropped in and becomes a test.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{guard, tables};

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    entries
}

/// The database and the table that a scenario is about: those of its first spec, with the
/// table that its fixture stands for.
fn recorded(spec: &Path) -> String {
    let spec: Value = serde_json::from_slice(&std::fs::read(spec).unwrap()).unwrap();
    spec["db_uri"].as_str().unwrap().to_owned()
}

/// Runs every spec of a scenario, and gives back each exit code and stdout.
fn replay(scenario: &Path) {
    let name = scenario.file_name().unwrap().to_str().unwrap();
    let (title, fixture) = name.split_once('@').expect("SCENARIO@FIXTURE");
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().to_str().unwrap();
    tables::copy_table(&tables::fixtures(), fixture, folder.path(), "documents").unwrap();
    for path in entries(scenario) {
        let step = path.file_stem().unwrap().to_str().unwrap();
        let spec = std::fs::read_to_string(&path).unwrap();
        let spec = spec.replace(&recorded(&path), database);
        let run = guard::run(spec.as_bytes(), folder.path());
        let text = format!("exit code {}\n{}", run.code, run.stdout);
        guard::snapshot(
            &format!("replay_{title}_{step}"),
            &guard::renamed(&text, folder.path(), "/data/lancedb"),
        );
    }
}

#[test]
fn recorded_specs_put_out_what_they_did_before() {
    let specs = tables::package_folder().join("tests/specs");
    let scenarios = entries(&specs);
    assert!(scenarios.len() >= 15, "the scenarios are gone");
    for scenario in scenarios {
        replay(&scenario);
    }
}

#[test]
fn a_database_that_is_not_there_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let spec = r#"{"spec_version":1,"step":"audit","db_uri":"nowhere","table_name":"t"}"#;
    let run = guard::run(spec.as_bytes(), folder.path());
    assert_eq!(run.code, 3);
    assert!(!folder.path().join("nowhere").exists());
    guard::snapshot(
        "ends_database_not_found",
        &guard::renamed(&run.stdout, folder.path(), "/work"),
    );
}

#[test]
fn a_prune_that_fails_after_a_compaction_exits_with_6_and_says_what_was_done() {
    let folder = tempfile::tempdir().unwrap();
    let table = tables::copy_table(&tables::fixtures(), "bloated", folder.path(), "t").unwrap();
    // A prune reads every manifest; nothing else needs this one.
    let old = table.join(format!("_versions/{:020}.manifest", u64::MAX - 7));
    std::fs::write(&old, b"not a manifest").unwrap();
    let database = folder.path().to_str().unwrap();
    let spec = format!(
        r#"{{"spec_version":1,"step":"compact","db_uri":"{database}","table_name":"t","evaluated_at":"2026-01-12T12:00:00Z"}}"#
    );
    let run = guard::run(spec.as_bytes(), folder.path());
    assert_eq!(run.code, 6);
    assert_eq!(run.outputs["error"]["kind"], "partly_done");
    assert_eq!(run.outputs["remediation_status"], "PARTIAL");
    assert_eq!(run.outputs["compaction_stats"]["status"], "done");
    assert_eq!(run.outputs["cleanup_stats"]["status"], "failed");
    guard::snapshot(
        "ends_partly_done",
        &guard::renamed(&run.stdout, folder.path(), "/data/lancedb"),
    );
}
