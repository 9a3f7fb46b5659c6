//! The table: the only module that names lance or lancedb types.
//!
//! - [`open`]: finds and opens a table without creating anything.
//! - [`fault`]: what an error of lance, lancedb or the store means to an operator.
//! - [`fragments`], [`versions`], [`refs`], [`indices`], [`coverage`], [`files`], [`format`]: facts
//!   about the version that is read; [`snapshot`] gathers what a decision rests on.
//! - [`counts`], [`history`]: what tells two versions apart.
//! - [`planning`], [`grouping`], [`target`]: what a compact step would do.
//! - [`rewrite`], [`indices`], [`prune`]: what it does.
//! - [`contents`], `hashing`: what the rows hold.
//! - [`volume`]: how much room there is.
//! - [`search`], [`vectors`], [`exact`]: searches with stored vectors.
//! - [`lookup`]: stored keys, through a scalar index and without it.
//! - `sampling`: seeded choices.

pub mod contents;
pub mod counts;
pub mod coverage;
pub mod exact;
pub mod fault;
pub mod files;
pub mod format;
pub mod fragments;
pub mod grouping;
mod hashing;
pub mod history;
pub mod indices;
pub mod lookup;
pub mod open;
pub mod planning;
pub mod prune;
pub mod refs;
pub mod rewrite;
mod sampling;
pub mod search;
pub mod snapshot;
pub mod target;
pub mod vectors;
pub mod versions;
pub mod volume;

use std::sync::Arc;
use std::time::Duration;

use lance::Dataset;
use lance_io::object_store::WrappingObjectStore;

use crate::error::Result;
use crate::report::table::TableId;
use crate::spec::{Location, TableName};
use volume::Volume;

/// The column of row addresses, as lance names it.
const ROW_ADDR: &str = "_rowaddr";

/// An open table at one version.
#[derive(Clone)]
pub struct Table {
    id: TableId,
    dataset: Dataset,
    lancedb: lancedb::Table,
    volume: Volume,
}

impl std::fmt::Debug for Table {
    // Not derived: a dataset's own text holds the storage options, secrets included.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("id", &self.id)
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}

/// How a table is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Wraps the object store, for tests that count requests or let them fail.
    pub store_wrapper: Option<Arc<dyn WrappingObjectStore>>,
    /// Stands in for what the volume of the table has free, for tests.
    pub free_bytes: Option<u64>,
    /// How long opening may take. A store that accepts a connection and never answers would
    /// otherwise hold a run for many minutes, whatever its own time-outs say.
    pub deadline: Duration,
}

impl OpenOptions {
    /// How long opening may take, where nothing else is asked for. The slowest store that was
    /// seen to fail in order took 13 s.
    pub const DEADLINE: Duration = Duration::from_secs(60);
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            store_wrapper: None,
            free_bytes: None,
            deadline: Self::DEADLINE,
        }
    }
}

impl Table {
    /// Which table this is.
    #[must_use]
    pub fn id(&self) -> &TableId {
        &self.id
    }

    /// The version that is read.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.dataset.version_id()
    }

    /// Moves on to the newest version.
    ///
    /// # Errors
    /// Where the store does not answer or the newest manifest cannot be read.
    pub async fn refresh(&mut self) -> Result<()> {
        self.dataset
            .checkout_latest()
            .await
            .map_err(|e| fault::of_lance(&e, "reading the newest version"))
    }

    /// The table as it was at a version.
    ///
    /// # Errors
    /// `version_not_found` where that version does not exist any more.
    pub async fn at(&self, version: u64) -> Result<Self> {
        if version == self.version() {
            return Ok(self.clone());
        }
        let dataset = self
            .dataset
            .checkout_version(version)
            .await
            .map_err(|e| fault::of_version(&e, version))?;
        Ok(Self {
            dataset,
            ..self.clone()
        })
    }
}

/// The key and the printable names of a table.
#[must_use]
pub fn table_id(location: &Location, name: &TableName) -> TableId {
    let db_uri = location.printable();
    TableId {
        key: format!("{}/{}", db_uri.trim_end_matches('/'), name.as_str()),
        table_name: name.as_str().to_owned(),
        db_uri,
    }
}
