use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const KEY: &str = "/data/db/documents";

fn input(text: &str) -> StateInput {
    StateInput(Some(RawValue::from_string(text.to_owned()).unwrap()))
}

fn entry() -> Value {
    json!({
        "fragment_count": 12, "active_rows": 100, "tombstone_count": 5, "tombstone_pct": 4.76,
        "version_count": 20, "current_version": 21, "consecutive_bloated_runs": 1,
        "last_evaluated_at": "2026-01-02T03:04:05Z", "last_execution_id": "e1",
    })
}

fn map() -> String {
    format!(
        r#"{{"/data/db/a": {{"x" : 1.0}},"{KEY}":{},"z":null}}"#,
        entry()
    )
}

fn texts(snapshot: &StateSnapshot) -> Vec<(&str, &str)> {
    snapshot
        .entries
        .iter()
        .map(|(key, raw)| (key.as_str(), raw.get()))
        .collect()
}

#[test]
fn nothing_yet_is_a_first_run_in_every_form() {
    for given in ["null", "\"\"", "\"  \"", "\"null\"", "{}", "\"{}\""] {
        let state = read(&input(given), KEY);
        assert!(state.entry.is_none(), "{given}");
        assert!(!state.reset, "{given}");
        assert_eq!(state.warning, None, "{given}");
    }
    assert!(!read(&StateInput(None), KEY).reset);
    let state = read(&input(&format!(r#"{{"{KEY}":null}}"#)), KEY);
    assert!(state.entry.is_none());
    assert!(!state.reset);
}

#[test]
fn an_object_and_strings_that_hold_it_are_the_same() {
    let once = serde_json::to_string(&map()).unwrap();
    let twice = serde_json::to_string(&once).unwrap();
    for given in [map(), once, twice] {
        let state = read(&input(&given), KEY);
        assert_eq!(state.entry.as_ref().unwrap().fragment_count, 12, "{given}");
        assert_eq!(state.others.len(), 2);
        assert!(!state.reset);
        assert_eq!(state.warning, None);
    }
}

#[test]
fn a_state_that_is_no_map_starts_anew_with_a_warning() {
    for given in ["[]", "1", "true", "\"x\"", "\"[1]\"", "\"{\\\"a\\\"\""] {
        let state = read(&input(given), KEY);
        assert!(state.reset, "{given}");
        assert!(state.entry.is_none());
        assert!(
            state
                .warning
                .unwrap()
                .starts_with("the previous state could not be read and the trend starts anew: ")
        );
    }
}

#[test]
fn strings_in_strings_have_an_end() {
    let mut given = "{}".to_owned();
    for _ in 0..4 {
        given = serde_json::to_string(&given).unwrap();
    }
    let state = read(&input(&given), KEY);
    assert!(state.reset);
}

#[test]
fn a_broken_own_entry_starts_anew_and_the_others_stay() {
    let broken = [
        ("fragment_count", json!(-1)),
        ("fragment_count", json!("12")),
        ("fragment_count", json!(1.5)),
        ("active_rows", json!(u64::MAX)),
        ("tombstone_pct", json!(-0.1)),
        ("tombstone_pct", json!(100.5)),
        ("last_evaluated_at", json!("yesterday")),
        ("history", json!({})),
    ];
    for (name, value) in broken {
        let mut own = entry();
        own[name] = value.clone();
        let given = format!(r#"{{"a": {{"x" : 1.0}},"{KEY}":{own},"z":[ ]}}"#);
        let state = read(&input(&given), KEY);
        assert!(state.reset, "{name} {value}");
        assert!(state.entry.is_none(), "{name} {value}");
        assert!(state.warning.is_some());
        let own = own.to_string();
        assert_eq!(
            texts(&keep(state, KEY)),
            [("a", r#"{"x" : 1.0}"#), (KEY, own.as_str()), ("z", "[ ]")]
        );
    }
    for own in ["[]", "\"x\"", "7"] {
        let state = read(&input(&format!(r#"{{"{KEY}":{own}}}"#)), KEY);
        assert!(state.reset, "{own}");
    }
}

#[test]
fn a_warning_says_what_is_wrong_and_quotes_no_value() {
    let own = |name: &str, value: Value| {
        let mut own = entry();
        own[name] = value;
        format!(r#"{{"{KEY}":{own}}}"#)
    };
    let mut missing = entry();
    missing.as_object_mut().unwrap().remove("active_rows");
    for (given, problem) in [
        (
            own("fragment_count", json!("MARKER")),
            "fragment_count is not a whole number from 0",
        ),
        (
            own("last_evaluated_at", json!("MARKER")),
            "last_evaluated_at is not a time of RFC 3339",
        ),
        (
            own("index_names", json!([{"MARKER": 1}])),
            "an item of history or index_names is not what it should be",
        ),
        (
            own("last_compacted_at", json!("MARKER")),
            "last_compacted_at is not a time of RFC 3339",
        ),
        (
            format!(r#"{{"{KEY}":{missing}}}"#),
            "active_rows is missing",
        ),
        (
            format!(r#"{{"{KEY}":"MARKER"}}"#),
            "it is a text, not an object",
        ),
        (
            "[\"MARKER\"]".to_owned(),
            "it is a list, not an object with an entry for each table",
        ),
        (
            "\"MARKER\"".to_owned(),
            "it is no valid JSON at line 1 column 1; it should be an object with an entry for each table",
        ),
    ] {
        let warning = read(&input(&given), KEY).warning.unwrap();
        assert!(warning.ends_with(&format!(": {problem}")), "{warning}");
        assert!(!warning.contains("MARKER"));
    }
}

#[test]
fn many_repeated_keys_make_no_long_warning() {
    let twice: Vec<String> = (0..2000)
        .map(|n| format!(r#""s3://u:MARKER@b{}/t":1"#, n % 1000))
        .collect();
    let warning = read(&input(&format!("{{{}}}", twice.join(","))), KEY)
        .warning
        .unwrap();
    assert!(warning.contains("and 997 more") && !warning.contains("MARKER"));
}

#[test]
fn of_a_repeated_key_the_last_counts_with_a_warning() {
    let mut later = entry();
    later["fragment_count"] = json!(99);
    let given = format!(r#"{{"a":1,"{KEY}":{},"a":2,"{KEY}":{later}}}"#, entry());
    let state = read(&input(&given), KEY);
    assert_eq!(state.entry.as_ref().unwrap().fragment_count, 99);
    assert_eq!(
        state.warning.as_deref(),
        Some(
            "the previous state names /data/db/documents, a more than once; the last entry counts"
        )
    );
    assert!(!state.reset);
    let own = later.to_string();
    assert_eq!(texts(&keep(state, KEY)), [("a", "2"), (KEY, own.as_str())]);
}

#[test]
fn the_renewed_entry_takes_its_old_place_and_a_new_one_the_end() {
    let state = read(&input(&map()), KEY);
    let mut renewed = state.entry.clone().unwrap();
    renewed.consecutive_bloated_runs = 7;
    let snapshot = merge(state, KEY, &renewed);
    let keys: Vec<&str> = snapshot.entries.iter().map(|(k, _)| k.as_str()).collect();
    assert_eq!(keys, ["/data/db/a", KEY, "z"]);
    assert_eq!(snapshot.entries[0].1.get(), r#"{"x" : 1.0}"#);
    let again = read(&input(&serde_json::to_string(&snapshot).unwrap()), KEY);
    assert_eq!(again.entry, Some(renewed.clone()));

    let snapshot = merge(read(&input(r#"{"a":1}"#), KEY), KEY, &renewed);
    let keys: Vec<&str> = snapshot.entries.iter().map(|(k, _)| k.as_str()).collect();
    assert_eq!(keys, ["a", KEY]);
}

#[test]
fn fields_of_other_releases_are_ignored() {
    let mut own = entry();
    own["added_in_release_9"] = json!({"x": [1, 2]});
    let state = read(&input(&format!(r#"{{"{KEY}":{own}}}"#)), KEY);
    assert!(state.entry.is_some());
    assert!(!state.reset);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".*", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn entries_of_other_tables_pass_byte_for_byte(
        entries in prop::collection::vec((".{0,12}", any_json(), any::<bool>()), 0..6),
        wraps in 0_usize..3,
    ) {
        let mut expected: Vec<(String, String)> = Vec::new();
        for (name, value, pretty) in entries {
            if name == KEY || expected.iter().any(|(other, _)| *other == name) {
                continue;
            }
            let text = if pretty {
                serde_json::to_string_pretty(&value).unwrap()
            } else {
                value.to_string()
            };
            expected.push((name, text));
        }
        let fields: Vec<String> = expected
            .iter()
            .map(|(name, text)| format!("{} : {text}", Value::from(name.as_str())))
            .collect();
        let mut given = format!("{{ {} }}", fields.join(" , "));
        for _ in 0..wraps {
            given = Value::from(given).to_string();
        }
        let state = read(&input(&given), KEY);
        prop_assert!(!state.reset);
        let own: TableState = serde_json::from_value(entry()).unwrap();
        let snapshot = merge(state, KEY, &own);
        let got: Vec<(String, String)> = snapshot.entries[..expected.len()]
            .iter()
            .map(|(name, raw)| (name.clone(), raw.get().to_owned()))
            .collect();
        prop_assert_eq!(got, expected);
        prop_assert_eq!(snapshot.entries.last().unwrap().0.as_str(), KEY);
    }

    #[test]
    fn no_state_whatever_fails_a_run(given in any_json()) {
        let state = read(&input(&given.to_string()), KEY);
        prop_assert_eq!(state.reset && state.warning.is_none(), false);
    }
}
