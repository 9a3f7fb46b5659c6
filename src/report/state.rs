//! The state that a flow keeps in a KV store between audits.
//!
//! The value is one map, `table key -> entry`. Only the entry of the audited table is read and
//! written; the entries of other tables pass through as they came.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// Audits that an entry remembers, at most.
pub const HISTORY_LENGTH: usize = 30;

/// The state as a flow passes it on, not looked into yet: an object, a JSON string that holds
/// one, null or absent.
#[derive(Debug, Clone, Default)]
pub struct StateInput(pub Option<Box<RawValue>>);

impl<'de> Deserialize<'de> for StateInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Self(Some(raw)))
    }
}

impl JsonSchema for StateInput {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StateInput".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The state as the last step put it out: an object, a JSON string that holds one, or null. Anything else is reported and starts a new state."
        })
    }
}

/// What one audit saw, as the history keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryPoint {
    /// When it was evaluated.
    pub at: DateTime<Utc>,
    /// Fragments then.
    pub fragments: u64,
    /// Deleted physical rows then.
    pub tombstones: u64,
    /// Versions then.
    pub versions: u64,
}

/// What is remembered of one table. Unknown fields of an older or newer release are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableState {
    /// Fragments at the last audit.
    pub fragment_count: u64,
    /// Live rows at the last audit.
    pub active_rows: u64,
    /// Deleted physical rows at the last audit.
    pub tombstone_count: u64,
    /// Deleted physical rows in percent at the last audit.
    pub tombstone_pct: f64,
    /// Versions at the last audit.
    pub version_count: u64,
    /// The version that the last audit read.
    #[serde(default)]
    pub current_version: u64,
    /// Audits in a row that saw bloat.
    pub consecutive_bloated_runs: u64,
    /// When the last audit was evaluated.
    pub last_evaluated_at: DateTime<Utc>,
    /// The execution of the last audit; evaluated again, it counts once.
    #[serde(default)]
    pub last_execution_id: String,
    /// What the last audits saw, oldest first.
    #[serde(default)]
    pub history: Vec<HistoryPoint>,
    /// Names of the indices that the last audit saw.
    #[serde(default)]
    pub index_names: BTreeSet<String>,
    /// When a compaction was last verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_compacted_at: Option<DateTime<Utc>>,
}

/// The state to keep: the map with the entry of this table renewed.
#[derive(Debug, Clone, Default)]
pub struct StateSnapshot {
    /// Table key and entry, in the order in which they came.
    pub entries: Vec<(String, Box<RawValue>)>,
}

impl PartialEq for StateSnapshot {
    fn eq(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self
                .entries
                .iter()
                .zip(&other.entries)
                .all(|((k, v), (l, w))| k == l && v.get() == w.get())
    }
}

impl Serialize for StateSnapshot {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.entries.iter().map(|(key, entry)| (key, entry)))
    }
}

impl JsonSchema for StateSnapshot {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StateSnapshot".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        // Entries of other tables pass through whatever they are, so the map itself is open.
        let _ = generator.subschema_for::<TableState>();
        json_schema!({
            "description": "Table key to what is remembered of that table.",
            "type": "object"
        })
    }
}
