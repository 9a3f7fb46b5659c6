//! The state that a flow keeps between runs: read in whatever form it comes, renewed for one
//! table, and handed back with everything else as it was.
//!
//! Pure: no clock, no I/O. The rules:
//! - Absent, `null` and an empty string are a first run, and no fault.
//! - Kestra hands a KV value on as an object, or as a JSON string that holds one, or as a string
//!   that holds such a string, depending on how the flow quotes it. All of them are read.
//! - A state that cannot be read starts anew, with a warning; it never fails the run.
//! - Entries of other tables are not looked into: they pass through byte for byte, in order.
//! - A warning says what is wrong and where, and never quotes a value: nobody knows what a flow
//!   wrote into its store.

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::emit::ascii;
use crate::redact;
use crate::report::state::{StateInput, StateSnapshot, TableState};
use crate::report::text::shorten;

/// How often a state may be wrapped in a JSON string.
const MAX_WRAPS: usize = 3;

/// The largest count that JSON readers everywhere keep exact; nothing real comes near.
const MAX_COUNT: u64 = 1 << 53;

/// A table's key and its entry as it came.
type Named = (String, Box<RawValue>);

/// A state, read for one table.
#[derive(Debug, Clone, Default)]
pub struct ReadState {
    /// The entry of the table; absent for the first run, or where it could not be read.
    pub entry: Option<TableState>,
    /// The entries of other tables, in the order in which they came.
    pub others: Vec<(String, Box<RawValue>)>,
    /// Whether something was there that could not be used, so that the trend starts anew.
    pub reset: bool,
    /// What is wrong with the state, for an operator.
    pub warning: Option<String>,
    /// The table's own entry as it came, and how many others stand before it.
    own: Option<(usize, Box<RawValue>)>,
}

/// Reads a state for the table with this key.
#[must_use]
pub fn read(input: &StateInput, key: &str) -> ReadState {
    let Some(raw) = &input.0 else {
        return ReadState::default();
    };
    let entries = match unwrap_map(raw.get()) {
        Ok(Some(entries)) => entries,
        Ok(None) => return ReadState::default(),
        Err(problem) => {
            return ReadState {
                reset: true,
                warning: Some(format!(
                    "the previous state could not be read and the trend starts anew: {problem}"
                )),
                ..ReadState::default()
            };
        }
    };
    let mut state = ReadState::default();
    let mut warnings = Vec::new();
    let (entries, repeated) = last_of_each(entries);
    if !repeated.is_empty() {
        warnings.push(format!(
            "the previous state names {} more than once; the last entry counts",
            some_of(&repeated)
        ));
    }
    for (name, raw) in entries {
        if name != key {
            state.others.push((name, raw));
            continue;
        }
        match read_entry(raw.get()) {
            Ok(entry) => state.entry = entry,
            Err(problem) => {
                state.reset = true;
                warnings.push(format!(
                    "the entry of this table in the previous state could not be read and its trend starts anew: {problem}"
                ));
            }
        }
        state.own = Some((state.others.len(), raw));
    }
    if !warnings.is_empty() {
        state.warning = Some(warnings.join("; "));
    }
    state
}

/// Bytes that a state takes where it is put out again.
#[must_use]
pub fn printed_length(input: &StateInput) -> usize {
    let entries = input.0.as_ref().and_then(|raw| unwrap_map(raw.get()).ok());
    let length = |(name, raw): &Named| {
        ascii::rewrite(&Value::from(name.as_str()).to_string()).len()
            + ascii::rewrite(raw.get()).len()
            + 2
    };
    entries.flatten().iter().flatten().map(length).sum()
}

/// The state with the entry of one table renewed, in its old place or at the end.
///
/// An entry that JSON cannot hold (a percentage that is not finite) is left out; audits never
/// make one.
#[must_use]
pub fn merge(read: ReadState, key: &str, entry: &TableState) -> StateSnapshot {
    let place = read.own.map_or(read.others.len(), |(place, _)| place);
    let mut entries = read.others;
    if let Ok(raw) = serde_json::value::to_raw_value(entry) {
        entries.insert(place.min(entries.len()), (key.to_owned(), raw));
    }
    StateSnapshot { entries }
}

/// The state as it came, the entry of the table included, readable or not: for a step that has
/// nothing to add.
#[must_use]
pub fn keep(read: ReadState, key: &str) -> StateSnapshot {
    let mut entries = read.others;
    if let Some((place, raw)) = read.own {
        entries.insert(place.min(entries.len()), (key.to_owned(), raw));
    }
    StateSnapshot { entries }
}

/// A map that keeps the order, the repetitions and the text of its values.
struct Entries(Vec<Named>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of table keys and their entries")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// The map inside any number of JSON strings; none for the forms of "nothing yet".
fn unwrap_map(text: &str) -> Result<Option<Vec<Named>>, String> {
    let mut text = std::borrow::Cow::Borrowed(text.trim());
    for _ in 0..=MAX_WRAPS {
        if text.is_empty() || text == "null" {
            return Ok(None);
        }
        if !text.starts_with('"') {
            return serde_json::from_str::<Entries>(&text)
                .map(|entries| Some(entries.0))
                .map_err(|error| no_map(&text, &error));
        }
        let inner: String = serde_json::from_str(&text).map_err(|error| no_map(&text, &error))?;
        text = std::borrow::Cow::Owned(inner.trim().to_owned());
    }
    Err(format!(
        "it is wrapped in more than {MAX_WRAPS} JSON strings"
    ))
}

/// Why a text is no map of tables.
fn no_map(text: &str, error: &serde_json::Error) -> String {
    let expected = "an object with an entry for each table";
    match serde_json::from_str::<&RawValue>(text) {
        Ok(value) => format!("it is {}, not {expected}", kind_of(value.get())),
        Err(_) => format!(
            "it is no valid JSON at line {} column {}; it should be {expected}",
            error.line(),
            error.column()
        ),
    }
}

/// What a JSON text is, without its content.
fn kind_of(json: &str) -> &'static str {
    match json.trim_start().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Some names of tables, as they may be printed.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let mut shown: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|name| shorten(&redact::location(name), 200))
        .collect();
    if names.len() > SHOWN {
        shown.push(format!("and {} more", names.len() - SHOWN));
    }
    shown.join(", ")
}

/// The entries with only the last of each name, and the names that came more than once.
fn last_of_each(entries: Vec<Named>) -> (Vec<Named>, Vec<String>) {
    let mut last = std::collections::HashMap::new();
    for (at, (name, _)) in entries.iter().enumerate() {
        last.insert(name.clone(), at);
    }
    let mut repeated = std::collections::BTreeSet::new();
    let mut kept = Vec::with_capacity(last.len());
    for (at, (name, raw)) in entries.into_iter().enumerate() {
        if last.get(&name) == Some(&at) {
            kept.push((name, raw));
        } else {
            repeated.insert(name);
        }
    }
    (kept, repeated.into_iter().collect())
}

/// An entry; none for `null`.
fn read_entry(text: &str) -> Result<Option<TableState>, String> {
    let Some(entry) =
        serde_json::from_str::<Option<TableState>>(text).map_err(|_| broken_field(text))?
    else {
        return Ok(None);
    };
    let counts = [
        ("fragment_count", entry.fragment_count),
        ("active_rows", entry.active_rows),
        ("tombstone_count", entry.tombstone_count),
        ("version_count", entry.version_count),
        ("current_version", entry.current_version),
        ("consecutive_bloated_runs", entry.consecutive_bloated_runs),
    ];
    if let Some((name, value)) = counts.into_iter().find(|(_, value)| *value > MAX_COUNT) {
        return Err(format!("{name} is {value}, which no table has"));
    }
    if !(0.0..=100.0).contains(&entry.tombstone_pct) {
        return Err("tombstone_pct is not between 0 and 100".to_owned());
    }
    Ok(Some(entry))
}

/// What is wrong with an entry that could not be read: the first field that is missing or is
/// something else than it should be.
fn broken_field(text: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str(text) else {
        return format!("it is {}, not an object", kind_of(text));
    };
    let is_time = |value: &Value| {
        value
            .as_str()
            .is_some_and(|time| chrono::DateTime::parse_from_rfc3339(time).is_ok())
    };
    let is_null_or_time = |value: &Value| value.is_null() || is_time(value);
    type Test<'a> = &'a dyn Fn(&Value) -> bool;
    let count: (Test<'_>, &str) = (&Value::is_u64, "a whole number from 0");
    let known: [(&str, bool, (Test<'_>, &str)); 12] = [
        ("fragment_count", true, count),
        ("active_rows", true, count),
        ("tombstone_count", true, count),
        ("tombstone_pct", true, (&Value::is_number, "a number")),
        ("version_count", true, count),
        ("current_version", false, count),
        ("consecutive_bloated_runs", true, count),
        ("last_evaluated_at", true, (&is_time, "a time of RFC 3339")),
        ("last_execution_id", false, (&Value::is_string, "a text")),
        ("history", false, (&Value::is_array, "a list")),
        ("index_names", false, (&Value::is_array, "a list")),
        (
            "last_compacted_at",
            false,
            (&is_null_or_time, "a time of RFC 3339"),
        ),
    ];
    for (name, is_required, (is_right, expected)) in known {
        match fields.get(name) {
            None if is_required => return format!("{name} is missing"),
            Some(value) if !is_right(value) => return format!("{name} is not {expected}"),
            _ => {}
        }
    }
    "an item of history or index_names is not what it should be".to_owned()
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
