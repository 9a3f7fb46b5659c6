//! Runs the binary as a flow does, and checks what must hold for every run.

use std::path::Path;
use std::process::Output;

use assert_cmd::cargo::cargo_bin_cmd;
use lancedb_guard::report::text::SENTENCE_LENGTH;
use serde_json::Value;

/// What a run printed, checked against the contract of Kestra lines.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub outputs: Value,
}

/// Runs the binary with a spec on stdin, in Kestra mode.
pub fn run(spec: &[u8], working_dir: &Path) -> Run {
    let output = raw(&[], spec, working_dir);
    checked(&output)
}

/// Runs the binary with arguments and stdin.
pub fn raw(arguments: &[&str], stdin: &[u8], working_dir: &Path) -> Output {
    cargo_bin_cmd!("lancedb-guard")
        .args(arguments)
        .current_dir(working_dir)
        .write_stdin(stdin)
        .output()
        .unwrap()
}

/// Checks what must hold for every run in Kestra mode, and takes the outputs out.
pub fn checked(output: &Output) -> Run {
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "",
        "Kestra shows stderr as errors"
    );
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    let mut outputs = None;
    for line in stdout.lines() {
        // Longer lines are slow in Kestra, and above 1 MiB all outputs are lost. Only the state and
        // the baseline, which the next step needs whole, may be longer; no test has such.
        assert!(line.len() <= 96 * 1024, "a line of {} bytes", line.len());
        let Some(json) = line.strip_prefix("::").and_then(|l| l.strip_suffix("::")) else {
            assert!(!line.starts_with("::"), "half a marker: {line}");
            continue;
        };
        assert!(line.is_ascii());
        let value: Value = serde_json::from_str(json).unwrap();
        assert!(!has_null(&value), "Kestra drops a line with a null: {line}");
        for log in value["logs"].as_array().into_iter().flatten() {
            assert!(log["message"].as_str().unwrap().chars().count() <= SENTENCE_LENGTH);
        }
        let members = value.as_object().unwrap();
        assert_eq!(members.len(), 1, "a marker holds one thing: {line}");
        if let Some(found) = value.get("outputs") {
            assert!(
                outputs.replace(found.clone()).is_none(),
                "two outputs lines"
            );
        }
    }
    let last = stdout.lines().last().unwrap();
    assert!(!last.starts_with("::"), "a marker is the last line");
    assert!(last.chars().count() <= SENTENCE_LENGTH + "lancedb-guard: ".len());
    let outputs = outputs.expect("an outputs line");
    let code = output.status.code().unwrap();
    assert_eq!(
        outputs
            .pointer("/error/code")
            .and_then(Value::as_i64)
            .unwrap_or(0),
        i64::from(code)
    );
    assert_schema(&outputs);
    Run {
        code,
        stdout,
        outputs,
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

/// The outputs satisfy their own schema.
fn assert_schema(outputs: &Value) {
    use lancedb_guard::schemas::SchemaName;
    let is_failure = outputs
        .as_object()
        .unwrap()
        .keys()
        .all(|key| ["step", "error", "truncated"].contains(&key.as_str()));
    let name = match outputs["step"].as_str() {
        _ if is_failure => SchemaName::FailureOutputs,
        Some("audit") => SchemaName::AuditOutputs,
        Some("compact") => SchemaName::CompactOutputs,
        _ => SchemaName::VerifyOutputs,
    };
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&name.schema())
        .unwrap();
    let faults: Vec<String> = validator
        .iter_errors(outputs)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{}: {faults:#?}", name.name());
}

/// A text with the folder of the run under another name, with and without its leading slash:
/// object stores leave it away.
pub fn renamed(text: &str, folder: &Path, name: &str) -> String {
    let folder = folder.to_str().unwrap();
    text.replace(folder, name)
        .replace(folder.trim_start_matches('/'), name.trim_start_matches('/'))
}

/// The stdout with what varies from run to run made the same.
pub fn snapshot(name: &str, stdout: &str) {
    insta::with_settings!({
        omit_expression => true,
        prepend_module_to_snapshot => false,
        filters => vec![
            (r#"("name":"[a-z_]+","type":"timer","value":)[0-9.e-]+"#, "$1[seconds]"),
            (r#"("duration_ms":)[0-9]+"#, "$1[ms]"),
            (r#"("canary_latency_ms":)[0-9.]+"#, "$1[ms]"),
            (r"(the clock of this machine, )[0-9TZ:-]+", "$1[now]"),
            // A hash over the location, which is another folder in each run.
            (r#"(plan_id\\?":\\?")[0-9a-f]{16}"#, "$1[id]"),
            // Names of new files and of versions committed by the run itself.
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[uuid]"),
        ],
    }, {
        insta::assert_snapshot!(name, stdout);
    });
}
