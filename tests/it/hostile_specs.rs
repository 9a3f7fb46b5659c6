//! Bad specs: each ends with exit code 2, opens nothing, and says what is wrong.

use std::path::{Path, PathBuf};

use crate::guard;

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

#[test]
fn every_hostile_spec_exits_with_2_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let files = corpus();
    assert!(files.len() >= 30, "the corpus is gone");
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let run = guard::run(&std::fs::read(&file).unwrap(), folder.path());
        assert_eq!(run.code, 2, "{name}: {}", run.stdout);
        guard::snapshot(&format!("hostile_{name}"), &run.stdout);
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "a hostile spec left something behind"
    );
}

#[test]
fn a_spec_of_5_mib_is_refused_without_being_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let spec = format!(
        r#"{{"spec_version":1,"step":"audit","db_uri":"db","table_name":"t","previous_state":"{}"}}"#,
        "x".repeat(5 * 1024 * 1024)
    );
    let run = guard::run(spec.as_bytes(), folder.path());
    assert_eq!(run.code, 2);
    guard::snapshot("hostile_5_mib", &run.stdout);
}

#[test]
fn a_spec_of_exactly_4_mib_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = br#"{"spec_version":1,"step":"audit","db_uri":"db","table_name":"t"}"#.to_vec();
    spec.resize(4 * 1024 * 1024, b' ');
    let run = guard::run(&spec, folder.path());
    assert_eq!(run.outputs["error"]["kind"], "database_not_found");
    spec.push(b' ');
    let run = guard::run(&spec, folder.path());
    assert_eq!(run.outputs["error"]["kind"], "spec_too_large");
}

#[test]
fn deep_nesting_does_not_crash() {
    let folder = tempfile::tempdir().unwrap();
    for spec in ["[".repeat(1_000_000), "{\"a\":".repeat(500_000)] {
        let run = guard::run(spec.as_bytes(), folder.path());
        assert_eq!(run.code, 2);
        assert_eq!(run.outputs["error"]["kind"], "spec_not_json");
    }
}
