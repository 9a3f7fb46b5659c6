//! Facts about a table, as outputs carry them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which table a report is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableId {
    /// Key of the table in the state: location and name.
    pub key: String,
    /// Location of the database, without credentials.
    pub db_uri: String,
    /// Name of the table.
    pub table_name: String,
}

/// Smallest, median and largest of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Smallest.
    pub min: u64,
    /// Median; of an even number of values the lower middle one.
    pub median: u64,
    /// Largest.
    pub max: u64,
}

impl Spread {
    /// The spread of some values; none for no values.
    #[must_use]
    pub fn of(mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        Some(Self {
            min: *values.first()?,
            median: values[(values.len() - 1) / 2],
            max: *values.last()?,
        })
    }
}

/// Fragments and rows of the current version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FragmentFacts {
    /// Fragments.
    pub count: u64,
    /// Rows that a fragment should have: `target_rows_per_fragment`, or fewer where so many
    /// would take more than `target_bytes_per_fragment`.
    pub target_rows: u64,
    /// Data bytes of a row, rounded up; absent for a table without rows or where a size is not
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_row: Option<u64>,
    /// Fragments with fewer physical rows than the target.
    pub under_target: u64,
    /// Live rows.
    pub active_rows: u64,
    /// Rows as written, deleted ones included.
    pub physical_rows: u64,
    /// Deleted physical rows.
    pub tombstones: u64,
    /// Deleted physical rows in percent of physical rows.
    pub tombstone_pct: f64,
    /// Deletion files.
    pub deletion_files: u64,
    /// Physical rows of a fragment; absent for a table without fragments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_per_fragment: Option<Spread>,
    /// Data bytes of a fragment; absent without fragments or where a size is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_fragment: Option<Spread>,
}

/// Versions of the table's history that still exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VersionFacts {
    /// Versions that exist.
    pub count: u64,
    /// The oldest version.
    pub oldest: u64,
    /// When the oldest version was committed.
    pub oldest_at: DateTime<Utc>,
    /// The version that was read, the newest when the step began.
    pub current: u64,
    /// When the current version was committed.
    pub current_at: DateTime<Utc>,
    /// Versions superseded before this time are stale.
    pub cutoff: DateTime<Utc>,
    /// The oldest version that was current at any time since the cutoff.
    pub oldest_kept: u64,
    /// Versions that were superseded before the cutoff.
    pub stale: u64,
    /// Stale versions that no tag and no branch holds back.
    pub prunable: u64,
}

/// A tag or branch and the version that it holds back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefFact {
    /// Name of the tag or branch.
    pub name: String,
    /// The version of the main history that it refers to.
    pub version: u64,
    /// Whether that version is stale, so that only this reference keeps it.
    pub holds_back: bool,
}

/// Tags and branches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefFacts {
    /// Tags, by name.
    pub tags: Vec<RefFact>,
    /// Branches, by name.
    pub branches: Vec<RefFact>,
}

/// One index of the current version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IndexFact {
    /// Name of the index.
    pub name: String,
    /// Type of the index, as lance names it.
    pub index_type: String,
    /// Columns that the index is built on.
    pub columns: Vec<String>,
    /// Segments of the index.
    pub segments: u64,
    /// Live rows in fragments that the index covers; absent where the coverage is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_indexed: Option<u64>,
    /// Live rows in fragments that the index does not cover; absent likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_unindexed: Option<u64>,
    /// Uncovered live rows in percent of live rows; absent likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unindexed_pct: Option<f64>,
    /// Bytes of the index files; absent where they are not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Bytes of the table's folder, by what holds them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageFacts {
    /// Files under the table's folder.
    pub files: u64,
    /// Bytes of all files under the table's folder.
    pub bytes_on_disk: u64,
    /// Bytes of the files that the current version refers to.
    pub live_bytes: u64,
    /// Bytes on disk by folder of the table.
    pub bytes_by_folder: BTreeMap<String, u64>,
    /// Referenced files that are missing or do not have their recorded size; anything but 0
    /// means a damaged table.
    pub damaged_files: u64,
}

/// How the table is set up, as far as it matters to maintenance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormatFacts {
    /// Version of the storage format of data files.
    pub storage_version: String,
    /// Whether row ids stay the same when rows are rewritten.
    pub stable_row_ids: bool,
    /// Whether the table refers to files of other tables, as a shallow clone does.
    pub shallow_clone: bool,
    /// The `lance.*` settings of the table.
    pub settings: BTreeMap<String, String>,
}

impl FormatFacts {
    /// After how many commits the table prunes itself; none if it does not.
    #[must_use]
    pub fn auto_cleanup(&self) -> Option<&str> {
        self.settings
            .get("lance.auto_cleanup.interval")
            .map(String::as_str)
    }
}
