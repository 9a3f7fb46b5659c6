//! Bad specs: each ends with exit code 2, opens nothing, and says what is wrong.

use std::path::PathBuf;

use crate::guard;

fn corpus() -> Vec<PathBuf> {
    let folder = crate::tables::package_folder().join("tests/hostile");
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

/// What must not be printed, wherever in a spec it stands.
const MARKER: &str = "hunter2";

#[test]
fn no_secret_of_a_hostile_spec_is_printed_or_reported() {
    let secrets = r#""storage_options":{"aws_secret_access_key":"hunter2/x","token":"a\"hunter2","some_option":"hunter2-long"}"#;
    let base = r#""spec_version":1,"step":"audit","table_name":"t""#;
    let specs = [
        format!(r#"{{{base},"db_uri":"no/hunter2/x/db",{secrets}}}"#),
        format!(r#"{{{base},"db_uri":"no/hunter2-long/db",{secrets}}}"#),
        format!(r#"{{{base},"db_uri":"no/db","execution_id":"hunter2-long\u0001",{secrets}}}"#),
        format!(r#"{{{base},"db_uri":"no/db","prune_estimate":"hunter2-long",{secrets}}}"#),
        format!(r#"{{{base},"db_uri":"s3://AKIA:hunter2/x@b@:bad:/db?sig=hunter2"}}"#),
        format!(r#"{{{base},"db_uri":"s3://b/db?sig=hunter2@x"}}"#),
        format!(r#"{{{base},"db_uri":"file:///db?sig=hunter2"}}"#),
        format!(r#"{{{base},"db_uri":"hunter2://x"}}"#)
            .replace("hunter2://", "ftp://hunter2:hunter2@"),
        format!(r#"{{{base},"db_uri":"db://prod","zzzzzz":"hunter2","compaction":"hunter2"}}"#),
        r#"{"spec_version":"hunter2","step":["hunter2"],"x":"hunter2"}"#.to_owned(),
        r#"{"spec_version":1,"step":"audit","password":"hunter2""#.to_owned(),
        r#"{"a":"hunter2","a":"hunter2"}"#.to_owned(),
        "hunter2".to_owned(),
        "\"hunter2\"".to_owned(),
    ];
    let folder = tempfile::tempdir().unwrap();
    for spec in specs {
        for format in ["kestra", "text", "json"] {
            let arguments = ["--format", format, "--report", "report.json"];
            let output = guard::raw(&arguments, spec.as_bytes(), folder.path());
            let report = std::fs::read_to_string(folder.path().join("report.json")).unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            assert_ne!(output.status.code(), Some(0), "{spec}");
            for text in [printed, report] {
                assert!(!text.contains(MARKER), "{spec}: {text}");
            }
        }
    }
}

#[test]
fn a_state_and_a_baseline_beyond_what_kestra_takes_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..20_000).map(|n| format!("\"{n:0>60}\"")).collect();
    let counts = r#"{"version":1,"fragments":1,"rows":1,"tombstones":0}"#;
    let spec = format!(
        r#"{{"spec_version":1,"step":"verify","db_uri":"no/db","table_name":"t","baseline":{{"before":{counts},"after":{counts},"fragments_expected":1,"tombstones_to_clear":0,"fragments_removed":0,"fragments_added":0,"committed_versions":[],"index_names":[{}]}}}}"#,
        names.join(",")
    );
    let run = guard::run(spec.as_bytes(), folder.path());
    assert_eq!(run.code, 2);
    assert_eq!(run.outputs["error"]["kind"], "state_too_large");
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
