//! A database in a temporary folder, and the steps of the library on its tables.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use lancedb_guard::clock::Clock;
use lancedb_guard::error::GuardError;
use lancedb_guard::report::audit::AuditOutputs;
use lancedb_guard::report::compact::CompactOutputs;
use lancedb_guard::spec::{Location, TableName};
use lancedb_guard::stop::Stop;
use lancedb_guard::table::{OpenOptions, Table};
use lancedb_guard::{audit, compact};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stores::Watch;
use crate::tables;

/// The target of lance itself, which the acceptance cases were measured with.
pub const LANCE_TARGET: u64 = 1_048_576;

/// A database in a temporary folder, with one table `t`.
pub struct Db {
    folder: TempDir,
    pub connection: lancedb::Connection,
}

impl Db {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let connection = tables::connect(folder.path()).await.unwrap();
        Self { folder, connection }
    }

    /// With a copy of a fixture as table `t`.
    pub async fn with_fixture(name: &str) -> Self {
        let db = Self::new().await;
        tables::copy_table(&tables::fixtures(), name, db.path(), "t").unwrap();
        db
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder alone, which goes when it is dropped.
    pub fn into_folder(self) -> TempDir {
        self.folder
    }

    /// The folder of table `t`.
    pub fn table_path(&self) -> std::path::PathBuf {
        self.path().join("t.lance")
    }

    pub async fn create(&self, rows: i64) -> lancedb::Table {
        tables::create(&self.connection, "t", rows).await.unwrap()
    }

    /// The table through lancedb, at its newest version.
    pub async fn lancedb(&self) -> lancedb::Table {
        tables::open(&self.connection, "t").await.unwrap()
    }

    /// The table through the guard, at its newest version.
    pub async fn table(&self) -> Table {
        self.open(OpenOptions::default()).await.unwrap()
    }

    pub async fn open(&self, options: OpenOptions) -> Result<Table, GuardError> {
        let location = Location::Local(self.path().to_owned());
        let name = TableName::parse("t").unwrap();
        Table::open(&location, &name, &BTreeMap::new(), &options).await
    }

    /// The table through an object store that is watched: reads and writes of local files
    /// would otherwise pass it by.
    pub async fn open_watched(&self, watch: &Watch) -> Table {
        let uri = format!("file-object-store://{}", self.path().display());
        let options = OpenOptions {
            store_wrapper: Some(Arc::new(watch.clone())),
            ..OpenOptions::default()
        };
        let name = TableName::parse("t").unwrap();
        Table::open(&Location::Remote(uri), &name, &BTreeMap::new(), &options)
            .await
            .unwrap()
    }

    /// Audits with lance's own target, unless the fields say otherwise.
    pub async fn audit(&self, fields: Value, at: DateTime<Utc>) -> AuditOutputs {
        let spec = serde_json::from_str(&self.spec("audit", fields)).unwrap();
        audit::run(&spec, &self.table().await, &Clock { evaluated_at: at })
            .await
            .unwrap()
    }

    /// Compacts with lance's own target, unless the fields say otherwise.
    pub async fn compact(&self, fields: Value, at: DateTime<Utc>) -> CompactOutputs {
        self.try_compact(fields, at).await.unwrap()
    }

    pub async fn try_compact(
        &self,
        fields: Value,
        at: DateTime<Utc>,
    ) -> Result<CompactOutputs, GuardError> {
        let spec = serde_json::from_str(&self.spec("compact", fields)).unwrap();
        let clock = Clock { evaluated_at: at };
        compact::run(&spec, self.table().await, &clock, &Stop::default()).await
    }

    /// A spec as text, in which `fields` add to the common ones or replace them.
    pub fn spec(&self, step: &str, fields: Value) -> String {
        let mut spec = json!({
            "spec_version": 1,
            "step": step,
            "db_uri": self.path(),
            "table_name": "t",
        });
        if step != "verify" {
            spec["target_rows_per_fragment"] = LANCE_TARGET.into();
        }
        for (name, value) in fields.as_object().unwrap() {
            spec[name] = value.clone();
        }
        spec.to_string()
    }
}

/// A clock by which everything that is superseded now is older than a retention of one hour:
/// what the tool itself refuses, for cases that were measured with a retention of nothing.
pub fn ahead() -> DateTime<Utc> {
    Utc::now() + TimeDelta::hours(2)
}

/// The fields for a retention of one hour.
pub fn one_hour() -> Value {
    json!({"stale_version_retention_hours": 1})
}

/// How many files a folder of the table holds.
pub fn files_in(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, |entries| {
        entries
            .map(|entry| entry.unwrap().path())
            .map(|path| if path.is_dir() { files_in(&path) } else { 1 })
            .sum()
    })
}
