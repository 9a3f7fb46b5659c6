use std::path::Path;

use serde_json::{Value, json};

use super::*;

fn spec(step: Step, changes: Value) -> Vec<u8> {
    let mut spec = json!({
        "spec_version": 1, "step": step.name(), "db_uri": "/data/db", "table_name": "docs",
    });
    for (name, value) in changes.as_object().unwrap() {
        spec[name] = value.clone();
    }
    spec.to_string().into_bytes()
}

fn read(bytes: &[u8]) -> Result<Checked> {
    parse(bytes, Path::new("/work/dir"))
}

fn faults_of(bytes: &[u8]) -> Vec<(String, String)> {
    let error = read(bytes).unwrap_err();
    assert_eq!(error.kind, ErrorKind::SpecInvalid, "{error:?}");
    error
        .faults
        .into_iter()
        .map(|fault| (fault.pointer, fault.problem))
        .collect()
}

fn only_fault(bytes: &[u8]) -> SpecFault {
    let error = read(bytes).unwrap_err();
    assert_eq!(error.faults.len(), 1, "{error:?}");
    error.faults.into_iter().next().unwrap()
}

#[test]
fn fills_in_the_defaults() {
    let Checked { spec, location, .. } = read(&spec(Step::Audit, json!({}))).unwrap();
    let TaskSpec::Audit(spec) = spec else {
        panic!("{spec:?}")
    };
    assert_eq!(spec.fragment_count_threshold, 20);
    assert_eq!(spec.execution_id, "manual");
    assert!(spec.previous_state.0.is_none());
    assert_eq!(location, Location::Local("/data/db".into()));
}

#[test]
fn whole_floats_are_whole_numbers_in_integer_fields() {
    let text = br#"{"spec_version":1.0,"step":"verify","db_uri":"/d","table_name":"t",
        "pre_fragments":1.23456785E7,"canary":{"seed":5e0}}"#;
    // Kestra turns big numbers into such floats.
    let error = read(text).unwrap_err();
    assert_eq!(error.faults[0].pointer, "/pre_fragments");
    let text = br#"{"spec_version":1.0,"step":"verify","db_uri":"/d","table_name":"t",
        "pre_fragments":1.2345678E7,"canary":{"seed":5e0}}"#;
    let TaskSpec::Verify(spec) = read(text).unwrap().spec else {
        panic!("not a verify spec")
    };
    assert_eq!(spec.pre_fragments, Some(12_345_678));
    assert_eq!(spec.canary.seed, 5);
}

#[test]
fn keeps_the_bytes_of_the_previous_state() {
    let state = r#"{ "s3://b/x" : {"n": 1.0, "big":1E400, "t":"\u00e4" } }"#;
    let text = format!(
        r#"{{"spec_version":1,"step":"audit","db_uri":"/d","table_name":"t","previous_state":{state}}}"#
    );
    // A number that no machine reads is refused, like everywhere else in a spec.
    assert_eq!(
        read(text.as_bytes()).unwrap_err().kind,
        ErrorKind::SpecNotJson
    );
    let text = text.replace("1E400", "1E40");
    let TaskSpec::Audit(spec) = read(text.as_bytes()).unwrap().spec else {
        panic!("not an audit spec")
    };
    let kept = spec.previous_state.0.unwrap();
    assert_eq!(kept.get(), state.replace("1E400", "1E40"));
}

#[test]
fn lists_every_fault_at_once() {
    let faults = faults_of(&spec(
        Step::Audit,
        json!({
            "fragment_count_threshold": 1,
            "tombstone_percent_threshold": 91,
            "evaluated_at": "yesterday",
            "compaction": {"concurency": 2},
            "prune_estimate": "sometimes",
            "table_name": 5,
            "dry_run": true,
        }),
    ));
    let expected = [
        ("/compaction/concurency", "is not a known field"),
        ("/dry_run", "is not a known field"),
        (
            "/evaluated_at",
            "must be a time of RFC 3339, such as 2026-07-01T08:00:00Z",
        ),
        ("/fragment_count_threshold", "must be at least 2"),
        (
            "/prune_estimate",
            "must be one of \"auto\", \"always\", \"never\"",
        ),
        ("/table_name", "must be a string"),
        ("/tombstone_percent_threshold", "must be at most 90"),
    ];
    let expected = expected.map(|(p, t)| (p.to_owned(), t.to_owned()));
    assert_eq!(faults, expected);
}

#[test]
fn names_the_nearest_known_name() {
    for (changes, meant) in [
        (
            json!({"fragment_threshold": 5}),
            Some("fragment_count_threshold"),
        ),
        (json!({"Execution_Id": "x"}), Some("execution_id")),
        (json!({"compaction": {"batch_row": 5}}), Some("batch_rows")),
        (json!({"prune_estimate": "allways"}), Some("always")),
        (json!({"target_rows": 5}), Some("target_rows_per_fragment")),
        (json!({"qqqqqqqq": 5}), None),
    ] {
        let fault = only_fault(&spec(Step::Audit, changes.clone()));
        assert_eq!(fault.did_you_mean.as_deref(), meant, "{changes}");
    }
}

#[test]
fn a_missing_field_is_named_where_it_belongs() {
    let faults = faults_of(br#"{"step":"compact"}"#);
    let pointers: Vec<&str> = faults.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(pointers, ["/db_uri", "/spec_version", "/table_name"]);
}

#[test]
fn without_a_step_the_two_fields_that_choose_the_schema_are_named() {
    let faults = faults_of(br#"{"spec_version":2,"step":"adit"}"#);
    assert_eq!(faults.len(), 2);
    let error = read(br#"{"spec_version":1,"step":"adit"}"#).unwrap_err();
    assert_eq!(error.faults[0].did_you_mean.as_deref(), Some("audit"));
    assert_eq!(faults_of(b"{}").len(), 2);
}

#[test]
fn faults_inside_an_optional_object_have_their_own_pointer() {
    let counts = json!({"version": 3, "fragments": 1, "rows": 1, "tombstones": "x"});
    let baseline = json!({
        "before": counts, "after": {"version": 3, "fragments": 1, "rows": 1, "tombstones": 0},
        "fragments_expected": 1, "tombstones_to_clear": 0, "fragments_removed": 0,
        "fragments_added": 0, "committed_versions": [], "index_names": [],
    });
    let mut fixed = baseline.clone();
    fixed["before"]["tombstones"] = 0.into();
    fixed["after"]["version"] = 2.into();
    for (baseline, pointer) in [
        (baseline, "/baseline/before/tombstones"),
        (fixed, "/baseline/after/version"),
        (json!(5), "/baseline"),
    ] {
        let fault = only_fault(&spec(Step::Verify, json!({"baseline": baseline})));
        assert_eq!(fault.pointer, pointer);
    }
}

#[test]
fn never_shows_a_secret() {
    let secret = "AKIAVERYSECRET";
    for changes in [
        json!({"storage_options": {"some_key": {"deep": secret}}}),
        json!({"storage_options": {"some_key": [secret]}}),
        json!({"storage_options": secret}),
        json!({"storage_option": {"x": secret}}),
        json!({"storage_option": secret}),
        json!({"aws_secret_access_key": secret}),
        json!({"qqqqqqqq": secret}),
        json!({"canary": {"qqqqqqqq": secret}}),
        json!({"canary": secret}),
        json!({"canary": {"queries": secret}}),
        json!({"baseline": secret}),
        json!({"pre_fragments": secret}),
        json!({"spec_version": secret}),
        json!({"table_name": [secret]}),
        json!({"db_uri": format!("{secret}{}", "x".repeat(5000))}),
        json!({"db_uri": format!("s3://{secret}:{secret}@b/?x@y")}),
        json!({"canary": {"password": secret}}),
        json!({"settings": {"password": secret}}),
        json!({"db_uri": format!("ftp://user:{secret}@host/x")}),
        json!({"execution_id": format!("s3://user:{secret}@host/\u{1}")}),
        json!({"evaluated_at": format!("https://h/?X-Amz-Signature={secret}")}),
    ] {
        let error = read(&spec(Step::Verify, changes.clone())).unwrap_err();
        let text = serde_json::to_string(&error).unwrap();
        assert!(!text.contains(secret), "{changes}: {text}");
    }
}

#[test]
fn long_values_and_names_are_shortened() {
    let long = "ä".repeat(10_000);
    let fault = only_fault(&spec(Step::Audit, json!({ "prune_estimate": long })));
    assert_eq!(fault.found.unwrap().chars().count(), 80);
    let fault = only_fault(&spec(Step::Audit, json!({ long: 1 })));
    assert_eq!(fault.pointer.chars().count(), 160);
}

#[test]
fn many_faults_are_counted_and_the_first_are_listed() {
    let many: serde_json::Map<String, Value> =
        (0..5000).map(|n| (format!("q{n}"), n.into())).collect();
    let error = read(&spec(Step::Audit, many.into())).unwrap_err();
    assert_eq!(error.faults.len(), MAX_FAULTS);
    assert_eq!(error.context["faults"], "5000");
}

#[test]
fn a_retention_below_the_floor_is_a_refusal_only_if_nothing_else_is_wrong() {
    for step in [Step::Audit, Step::Compact] {
        let given = json!({"stale_version_retention_hours": 0.5});
        let error = read(&spec(step, given)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::RetentionBelowFloor);
        assert_eq!(error.code, 4);
        let given = json!({"stale_version_retention_hours": 0.5, "table_name": "../x"});
        assert_eq!(faults_of(&spec(step, given)).len(), 2);
        let given = json!({"stale_version_retention_hours": -1});
        let error = read(&spec(step, given)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::RetentionBelowFloor);
    }
    assert!(
        read(&spec(
            Step::Audit,
            json!({"stale_version_retention_hours": 1})
        ))
        .is_ok()
    );
}

#[test]
fn rules_between_fields_are_applied_together() {
    let faults = faults_of(&spec(
        Step::Audit,
        json!({
            "critical_fragment_threshold": 10,
            "table_name": "a/b",
            "execution_id": "a\nb",
            "storage_options": {"": "x"},
            "db_uri": "ftp://x/y",
        }),
    ));
    let pointers: Vec<&str> = faults.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(
        pointers,
        [
            "/critical_fragment_threshold",
            "/db_uri",
            "/execution_id",
            "/storage_options",
            "/table_name"
        ]
    );
}

#[test]
fn a_managed_database_is_refused_before_anything_is_opened() {
    let error = read(&spec(Step::Audit, json!({"db_uri": "db://prod"}))).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ManagedDatabase);
    assert_eq!(error.faults[0].pointer, "/db_uri");
    // Two refusals are a refusal still, with both named.
    let given = json!({"db_uri": "db://prod", "stale_version_retention_hours": 0});
    let error = read(&spec(Step::Audit, given)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ManagedDatabase);
    assert_eq!(error.faults.len(), 2);
    let given = json!({"db_uri": "db://prod", "zzz": 0});
    assert_eq!(faults_of(&spec(Step::Audit, given)).len(), 2);
}

#[test]
fn a_missing_or_mistyped_field_hides_no_fault_of_another() {
    for text in [
        r#"{"spec_version":1,"step":"audit","db_uri":"ftp://x","execution_id":"a\tb","stale_version_retention_hours":0}"#,
        r#"{"spec_version":1,"step":"audit","table_name":7,"db_uri":"ftp://x","execution_id":"a\tb","stale_version_retention_hours":0}"#,
    ] {
        let faults = faults_of(text.as_bytes());
        let pointers: Vec<&str> = faults.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/db_uri",
                "/execution_id",
                "/stale_version_retention_hours",
                "/table_name"
            ]
        );
    }
    // Without a step as well.
    let faults = faults_of(br#"{"spec_version":1,"db_uri":"ftp://x","table_name":"a/b"}"#);
    assert_eq!(faults.len(), 3);
}

#[test]
fn a_state_that_kestra_cannot_hand_on_is_refused() {
    let state = |length: usize| json!({"previous_state": {"/other/t": "x".repeat(length)}});
    for step in [Step::Audit, Step::Verify] {
        assert!(read(&spec(step, state(MAX_PASSED_ON - 100))).is_ok());
        let error = read(&spec(step, state(MAX_PASSED_ON + 1))).unwrap_err();
        assert_eq!(error.kind, ErrorKind::StateTooLarge);
        assert_eq!(error.code, 2);
        // Not what it takes here, but what it takes where it is printed.
        let escaped = json!({"previous_state": {"/other/t": "ä".repeat(MAX_PASSED_ON / 6 + 1)}});
        let error = read(&spec(step, escaped)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::StateTooLarge);
    }
}

#[test]
fn rules_are_applied_beside_faults_of_the_schema() {
    let faults = faults_of(&spec(
        Step::Audit,
        json!({"zzz": 1, "critical_fragment_threshold": 10, "stale_version_retention_hours": 0.5}),
    ));
    let pointers: Vec<&str> = faults.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(
        pointers,
        [
            "/critical_fragment_threshold",
            "/stale_version_retention_hours",
            "/zzz"
        ]
    );
    // Not compared with the default of a threshold that could not be read.
    for given in [
        json!({"fragment_count_threshold": "x", "critical_fragment_threshold": 10}),
        json!({"fragment_count_threshold": 200, "critical_fragment_threshold": "x"}),
    ] {
        assert_eq!(faults_of(&spec(Step::Audit, given)).len(), 1);
    }
}
