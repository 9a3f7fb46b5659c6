//! The objects that tune an operation. Every field has a default that suits most tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The default row target of a fragment.
pub(crate) const fn default_target_rows() -> u64 {
    100_000
}

/// How compaction works. The audit plans with the same object that compact works with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompactionTuning {
    /// A fragment with more deleted rows than this, in percent, is rewritten on its own
    /// (strictly more, as lance compares it).
    #[schemars(range(min = 0, max = 100))]
    pub deletion_threshold_percent: f64,
    /// Rows that are read at once; fewer need less memory. Absent: the engine's own default.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub batch_rows: Option<u64>,
    /// Bytes that may queue up between reading and writing. Absent: the engine's own default.
    #[schemars(range(min = 1_048_576, max = 17_179_869_184_u64))]
    pub io_buffer_bytes: Option<u64>,
    /// Compaction tasks that run at the same time.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: u32,
    /// Source bytes that are rewritten before they are committed together; at least one task
    /// is. A lost race or a stop loses no more than one such batch.
    #[schemars(range(min = 1, max = 1_125_899_906_842_624_u64))]
    pub batch_bytes: u64,
}

impl Default for CompactionTuning {
    fn default() -> Self {
        Self {
            deletion_threshold_percent: 10.0,
            batch_rows: None,
            io_buffer_bytes: None,
            concurrency: 2,
            batch_bytes: 4 * 1024 * 1024 * 1024,
        }
    }
}

/// When the segments of an index are merged before compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeSegments {
    /// Only where they keep fragments from being compacted together.
    #[default]
    WhenBlocking,
    /// Never.
    Never,
}

/// What is done to indices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IndexTuning {
    /// When segments are merged before compaction.
    pub merge_segments: MergeSegments,
    /// Bring every index up to date after compaction.
    pub catch_up: bool,
}

impl Default for IndexTuning {
    fn default() -> Self {
        Self {
            merge_segments: MergeSegments::WhenBlocking,
            catch_up: true,
        }
    }
}

/// How old versions are deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PruneTuning {
    /// Whether old versions are deleted at all.
    pub enabled: bool,
    /// Deletions a second, at most. Absent: no limit.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub deletes_per_second: Option<u64>,
    /// Deletions at the same time, at most. Absent: as the store allows.
    #[schemars(range(min = 1, max = 1024))]
    pub concurrent_deletes: Option<u32>,
    /// Go on with a table that prunes itself (`lance.auto_cleanup`): each commit of this step
    /// may then delete versions by the table's own rule, inside the retention as well.
    pub accept_auto_cleanup: bool,
}

impl Default for PruneTuning {
    fn default() -> Self {
        Self {
            accept_auto_cleanup: false,
            enabled: true,
            deletes_per_second: None,
            concurrent_deletes: None,
        }
    }
}

/// How the searches work that prove the table still answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CanaryTuning {
    /// Stored vectors that are searched for, in each vector column.
    #[schemars(range(min = 1, max = 1000))]
    pub queries: u32,
    /// Neighbours that are asked for in each search.
    #[schemars(range(min = 1, max = 1000))]
    pub neighbours: u32,
    /// Stored keys that are looked up in each scalar index.
    #[schemars(range(min = 1, max = 1000))]
    pub keys: u32,
    /// Stored vectors by which the recall of each vector index is measured, before and after.
    /// The check reads the column once in each of the two versions; 0 leaves it out.
    #[schemars(range(min = 0, max = 1000))]
    pub recall_queries: u32,
    /// The recall of an index may be lower than before by this much, as a part of 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_recall_drop: f64,
    /// Chooses the stored vectors and keys; the same seed on the same version chooses the same.
    pub seed: u64,
}

impl Default for CanaryTuning {
    fn default() -> Self {
        Self {
            queries: 5,
            neighbours: 10,
            keys: 20,
            recall_queries: 20,
            max_recall_drop: 0.05,
            seed: 42,
        }
    }
}

/// How the rows from before compaction are compared with those after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContentsTuning {
    /// Rows that the level `standard` compares, among those that compaction rewrote.
    #[schemars(range(min = 1, max = 100_000))]
    pub sample_rows: u32,
    /// Chooses the rows; the same seed on the same versions chooses the same.
    pub seed: u64,
    /// Rows that are read at once; fewer need less memory.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub batch_rows: u32,
    /// Batches that are hashed at the same time, and fragments that are read ahead, in each of
    /// the two versions.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: u32,
}

impl Default for ContentsTuning {
    fn default() -> Self {
        Self {
            sample_rows: 200,
            seed: 42,
            batch_rows: 1024,
            concurrency: 2,
        }
    }
}
