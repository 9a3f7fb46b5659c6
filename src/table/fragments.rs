//! Fragments and rows of the version that is read, from its manifest alone.

use futures::{StreamExt, TryStreamExt, stream};
use lance::dataset::fragment::FileFragment;

use super::target::Target;
use super::{Table, fault};
use crate::error::Result;
use crate::report::table::{FragmentFacts, Spread};
use crate::report::{Unknown, percent};

/// Fragments of old tables whose counts need a read, at the same time.
const PARALLEL_COUNTS: usize = 16;

/// One fragment, as far as maintenance looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentSketch {
    /// Id of the fragment.
    pub id: u64,
    /// Rows as written.
    pub physical_rows: u64,
    /// Deleted ones among them.
    pub deleted_rows: u64,
    /// Bytes of its data files; none where the manifest does not record them.
    pub bytes: Option<u64>,
    /// Whether it has a deletion file.
    pub has_deletion_file: bool,
}

impl FragmentSketch {
    /// Rows that are not deleted.
    #[must_use]
    pub fn live_rows(&self) -> u64 {
        self.physical_rows.saturating_sub(self.deleted_rows)
    }
}

impl Table {
    /// Every fragment of the version that is read, in the order of the manifest.
    ///
    /// The manifest says it all but for tables of very old releases, where the metadata of a
    /// data or deletion file is asked.
    ///
    /// # Errors
    /// Where such a file cannot be read.
    pub async fn fragment_sketches(&self) -> Result<Vec<FragmentSketch>> {
        stream::iter(self.dataset.get_fragments())
            .map(|fragment| async move { sketch(&fragment).await })
            .buffered(PARALLEL_COUNTS)
            .try_collect()
            .await
            .map_err(|e| fault::of_lance(&e, "counting rows"))
    }
}

async fn sketch(fragment: &FileFragment) -> lance::Result<FragmentSketch> {
    let metadata = fragment.metadata();
    let physical_rows = match metadata.physical_rows {
        Some(rows) => rows,
        None => fragment.physical_rows().await?,
    };
    let deleted_rows = match &metadata.deletion_file {
        None => 0,
        Some(file) => match file.num_deleted_rows {
            Some(rows) => rows,
            None => fragment.count_deletions().await?,
        },
    };
    Ok(FragmentSketch {
        id: metadata.id,
        physical_rows: physical_rows as u64,
        deleted_rows: deleted_rows as u64,
        bytes: metadata
            .referenced_lance_files()
            .map(|file| file.file_size_bytes.get().map(u64::from))
            .sum(),
        has_deletion_file: metadata.deletion_file.is_some(),
    })
}

/// The facts about some fragments, and what could not be had.
#[must_use]
pub fn fragment_facts(
    fragments: &[FragmentSketch],
    target: Target,
) -> (FragmentFacts, Vec<Unknown>) {
    let physical_rows = fragments.iter().map(|f| f.physical_rows).sum();
    let tombstones = fragments.iter().map(|f| f.deleted_rows).sum();
    let bytes: Option<Vec<u64>> = fragments.iter().map(|f| f.bytes).collect();
    let mut unknown = Vec::new();
    if bytes.is_none() {
        unknown.push(Unknown::new(
            "bytes_per_fragment",
            "the manifest does not record the size of every data file",
        ));
    }
    let facts = FragmentFacts {
        count: fragments.len() as u64,
        target_rows: target.rows,
        bytes_per_row: target.bytes_per_row,
        under_target: fragments
            .iter()
            .filter(|f| f.physical_rows < target.rows)
            .count() as u64,
        active_rows: fragments.iter().map(FragmentSketch::live_rows).sum(),
        physical_rows,
        tombstones,
        tombstone_pct: percent(tombstones, physical_rows),
        deletion_files: fragments.iter().filter(|f| f.has_deletion_file).count() as u64,
        rows_per_fragment: Spread::of(fragments.iter().map(|f| f.physical_rows).collect()),
        bytes_per_fragment: bytes.and_then(Spread::of),
    };
    (facts, unknown)
}
