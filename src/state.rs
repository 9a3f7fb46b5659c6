//! The state that a flow keeps between runs: read in whatever form it comes, renewed for one
//! table, and handed back with everything else as it was.
//!
//! Pure: no clock, no I/O. The rules:
//! - Absent, `null` and an empty string are a first run, and no fault.
//! - Kestra hands a KV value on as an object, or as a JSON string that holds one, or as a string
//!   that holds such a string, depending on how the flow quotes it. All of them are read.
//! - A state that cannot be read starts anew, with a warning; it never fails the run.
//! - Entries of other tables are not looked into: they pass through byte for byte, in order.

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::report::state::{StateInput, StateSnapshot, TableState};

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
            repeated.join(", ")
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
                .map_err(|e| e.to_string());
        }
        let inner: String = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        text = std::borrow::Cow::Owned(inner.trim().to_owned());
    }
    Err(format!(
        "it is wrapped in more than {MAX_WRAPS} JSON strings"
    ))
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
        serde_json::from_str::<Option<TableState>>(text).map_err(|e| e.to_string())?
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
        return Err(format!("{name} is {value}"));
    }
    if !(0.0..=100.0).contains(&entry.tombstone_pct) {
        return Err(format!("tombstone_pct is {}", entry.tombstone_pct));
    }
    Ok(Some(entry))
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
