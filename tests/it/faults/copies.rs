//! Copies of a small table, and a step on each.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use lancedb_guard::clock::Clock;
use lancedb_guard::error::GuardError;
use lancedb_guard::report::outcome::Outcome;
use lancedb_guard::run::on_table;
use lancedb_guard::spec::{self, Location, TableName};
use lancedb_guard::stop::Stop;
use lancedb_guard::table::{OpenOptions, Table};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Db, ahead};
use crate::stores::Watch;
use crate::tables;

/// A table with something to do for each phase of a compaction, or one that was compacted. Each
/// run gets a copy.
pub struct Template {
    pub folder: TempDir,
    pub step: &'static str,
    pub fields: Value,
    pub ids: Vec<i64>,
    pub version: u64,
    pub at: DateTime<Utc>,
}

impl Template {
    pub async fn bloated(step: &'static str, fields: Value) -> Self {
        let db = Db::new().await;
        let table = db.create(10).await;
        tables::append_times(&table, 2, 10).await.unwrap();
        tables::btree(&table, "id").await.unwrap();
        tables::append_times(&table, 2, 10).await.unwrap();
        tables::delete(&table, "id % 10 < 3").await.unwrap();
        tables::tag(&table, "keep", 2).await.unwrap();
        Self {
            ids: tables::ids(&table).await.unwrap(),
            version: table.version().await.unwrap(),
            folder: db.into_folder(),
            step,
            fields,
            at: ahead(),
        }
    }

    /// Compacted by the step itself, and nothing pruned, so that verify has a version to compare
    /// with.
    pub async fn compacted() -> Self {
        let mut template = Self::bloated("compact", json!({"prune": {"enabled": false}})).await;
        let copy = template.copy();
        let Ok(Outcome::Compact(outputs)) = copy.run(&Watch::default()).await else {
            panic!("no compaction");
        };
        template.version = outputs.baseline.after.version;
        template.folder = copy.folder;
        template.step = "verify";
        template.fields = json!({"baseline": outputs.baseline, "level": "full"});
        template
    }

    pub fn copy(&self) -> Copy {
        let folder = tempfile::tempdir().unwrap();
        link_folder(self.folder.path(), folder.path());
        let mut spec = json!({
            "spec_version": 1,
            "step": self.step,
            "db_uri": folder.path(),
            "table_name": "t",
        });
        for (name, value) in self.fields.as_object().unwrap() {
            spec[name] = value.clone();
        }
        Copy {
            folder,
            spec: spec.to_string(),
            at: self.at,
        }
    }
}

/// By links, which keep the times that a prune lists files by. No file is changed in place.
fn link_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            link_folder(&entry.path(), &target);
        } else {
            fs::hard_link(entry.path(), &target).unwrap();
        }
    }
}

/// Opens with a store that is watched.
pub fn watched(watch: &Watch) -> OpenOptions {
    OpenOptions {
        store_wrapper: Some(Arc::new(watch.clone())),
        ..OpenOptions::default()
    }
}

pub struct Copy {
    pub folder: TempDir,
    pub spec: String,
    pub at: DateTime<Utc>,
}

impl Copy {
    /// Opens the table and does the step, with the store watched from the first request on.
    pub async fn run(&self, watch: &Watch) -> Result<Outcome, GuardError> {
        self.run_with(&watched(watch)).await
    }

    pub async fn run_with(&self, options: &OpenOptions) -> Result<Outcome, GuardError> {
        let mut checked = spec::parse(self.spec.as_bytes(), Path::new("/")).unwrap();
        let path = self.folder.path().display();
        checked.location = Location::Remote(format!("file-object-store://{path}"));
        let clock = Clock {
            evaluated_at: self.at,
        };
        on_table(checked, &clock, &Stop::default(), options).await
    }

    pub async fn table(&self) -> lancedb::Table {
        let connection = tables::connect(self.folder.path()).await.unwrap();
        tables::open(&connection, "t").await.unwrap()
    }

    /// What must hold after any run, however it ended.
    pub async fn check_whole(&self, ids: &[i64]) {
        let table = self.table().await;
        assert_eq!(tables::ids(&table).await.unwrap(), ids);
        let location = Location::Local(self.folder.path().to_owned());
        let name = TableName::parse("t").unwrap();
        let options = OpenOptions::default();
        let found = Table::open(&location, &name, &BTreeMap::new(), &options).await;
        let (_, damage) = found.unwrap().storage_facts().await.unwrap();
        assert_eq!(damage, []);
        table.checkout_tag("keep").await.unwrap();
        let kept = tables::ids(&table).await.unwrap();
        assert_eq!(kept, (0..20).collect::<Vec<_>>());
    }
}
