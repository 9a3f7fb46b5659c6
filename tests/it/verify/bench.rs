//! A small table to compact, break and verify.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, FixedSizeListArray, Int64Array, RecordBatch, StringArray};
use chrono::{DateTime, Utc};
use lance::Dataset;
use lance::dataset::optimize::CompactionOptions;
use lancedb::table::OptimizeAction;
use lancedb_guard::clock::Clock;
use lancedb_guard::report::baseline::{Baseline, VersionCounts};
use lancedb_guard::report::verify::{CheckId, CheckRow, CheckStatus, VerifyOutputs};
use lancedb_guard::spec::{Location, TableName, VerifySpec};
use lancedb_guard::table::{OpenOptions, Table};
use serde_json::{Value, json};
use tempfile::TempDir;

pub const NAME: &str = "documents";

/// The order in which checks are put out.
pub const ORDER: [CheckId; 9] = [
    CheckId::Schema,
    CheckId::Rows,
    CheckId::Fragments,
    CheckId::Tombstones,
    CheckId::Files,
    CheckId::IndicesPresent,
    CheckId::IndicesCovering,
    CheckId::Contents,
    CheckId::Canary,
];

pub struct Bench {
    pub dir: TempDir,
    pub table: lancedb::Table,
}

/// A number for each place in each vector, the same in every run.
pub fn number(id: i64, place: i64) -> f32 {
    let mut z = (id * 131 + place) as u64;
    z = (z ^ (z >> 30))
        .wrapping_mul(0xBF58_476D_1CE4_E5B9)
        .wrapping_add(0x9E37_79B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z >> 40) as f32) / (1_u64 << 24) as f32 - 0.5
}

pub fn vectors(ids: std::ops::Range<i64>) -> FixedSizeListArray {
    FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        ids.map(|id| {
            Some(
                (0..8)
                    .map(|place| Some(number(id, place)))
                    .collect::<Vec<_>>(),
            )
        }),
        8,
    )
}

pub fn batch(ids: std::ops::Range<i64>) -> RecordBatch {
    batch_with(ids.clone(), Arc::new(vectors(ids)))
}

/// Rows with an id, a vector column of any kind, and a text.
pub fn batch_with(ids: std::ops::Range<i64>, vectors: ArrayRef) -> RecordBatch {
    let text = StringArray::from_iter_values(ids.clone().map(|id| format!("text {id}")));
    RecordBatch::try_from_iter_with_nullable([
        (
            "id",
            Arc::new(Int64Array::from_iter_values(ids)) as ArrayRef,
            true,
        ),
        ("vector", vectors, true),
        ("text", Arc::new(text), true),
    ])
    .unwrap()
}

impl Bench {
    pub async fn new(first: RecordBatch) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = lancedb::connect(dir.path().to_str().unwrap())
            .execute()
            .await
            .unwrap();
        let table = db.create_table(NAME, first).execute().await.unwrap();
        Self { dir, table }
    }

    /// 6 fragments of 20 rows, 8 of each deleted: version 7, 72 rows, 48 deleted ones.
    pub async fn with_tombstones() -> Self {
        let bench = Self::new(batch(0..20)).await;
        for part in 1..6 {
            bench.add(batch(part * 20..part * 20 + 20)).await;
        }
        bench.table.delete("id % 20 < 8").await.unwrap();
        assert_eq!(bench.version().await, 7);
        bench
    }

    pub async fn add(&self, rows: RecordBatch) {
        self.table.add(rows).execute().await.unwrap();
    }

    /// Compacts to one fragment, if the table lets it.
    pub async fn compact(&self) {
        self.table
            .optimize(OptimizeAction::Compact {
                options: CompactionOptions::default(),
                remap_options: None,
            })
            .await
            .unwrap();
    }

    pub async fn version(&self) -> u64 {
        self.table.version().await.unwrap()
    }

    /// The table's folder.
    pub fn folder(&self) -> PathBuf {
        self.dir.path().join(format!("{NAME}.lance"))
    }

    /// The dataset, for what lancedb itself does not offer. Its commits are not seen by
    /// `self.table` before `reload`.
    pub async fn dataset(&self) -> Dataset {
        Dataset::open(self.folder().to_str().unwrap())
            .await
            .unwrap()
    }

    pub async fn reload(&self) {
        self.table.checkout_latest().await.unwrap();
    }

    /// Removes a version as a prune does, but nothing else.
    pub fn forget(&self, version: u64) {
        let manifest = format!("_versions/{:020}.manifest", u64::MAX - version);
        std::fs::remove_file(self.folder().join(manifest)).unwrap();
    }

    /// The table as a run of the tool opens it.
    pub async fn open(&self) -> Table {
        let uri = self.dir.path().to_str().unwrap();
        Table::open(
            &Location::parse(uri, Path::new("/")).unwrap(),
            &TableName::parse(NAME).unwrap(),
            &BTreeMap::new(),
            &OpenOptions::default(),
        )
        .await
        .unwrap()
    }

    pub async fn counts(&self, version: u64) -> VersionCounts {
        let table = self.open().await.at(version).await.unwrap();
        table.counts().await.unwrap()
    }

    /// The baseline of a compaction that did what it promised.
    pub async fn baseline(&self, before: u64, after: u64, committed: &[u64]) -> Baseline {
        let before = self.counts(before).await;
        let after = self.counts(after).await;
        let table = self.open().await.at(before.version).await.unwrap();
        Baseline {
            before,
            after,
            fragments_expected: after.fragments,
            tombstones_to_clear: before.tombstones.saturating_sub(after.tombstones),
            fragments_removed: before.fragments,
            fragments_added: after.fragments,
            committed_versions: committed.to_vec(),
            index_names: table.index_names().await.unwrap().into_iter().collect(),
            indices_left_behind: Vec::new(),
        }
    }

    pub async fn verify(&self, baseline: &Baseline) -> VerifyOutputs {
        self.verify_with(json!({"baseline": baseline})).await
    }

    pub async fn verify_with(&self, fields: Value) -> VerifyOutputs {
        let mut spec = json!({
            "spec_version": 1,
            "step": "verify",
            "db_uri": self.dir.path(),
            "table_name": NAME,
            "execution_id": "e9",
        });
        for (name, value) in fields.as_object().unwrap() {
            spec[name] = value.clone();
        }
        // As many searches as it takes, which are slow without optimisation.
        if spec["canary"]["recall_queries"].is_null() {
            spec["canary"]["recall_queries"] = json!(3);
        }
        let spec: VerifySpec = serde_json::from_str(&spec.to_string()).unwrap();
        let before = files_in(&self.folder());
        let outputs = lancedb_guard::verify::run(&spec, &self.open().await, &clock())
            .await
            .unwrap();
        assert_eq!(files_in(&self.folder()), before, "verify is read-only");
        outputs
    }
}

pub fn clock() -> Clock {
    Clock { evaluated_at: at() }
}

pub fn at() -> DateTime<Utc> {
    "2026-03-04T05:06:07Z".parse().unwrap()
}

/// Every file below a folder and its length.
pub fn files_in(folder: &Path) -> BTreeMap<PathBuf, u64> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                files.insert(entry.path(), entry.metadata().unwrap().len());
            }
        }
    }
    files
}

/// The only row of a check.
pub fn row(outputs: &VerifyOutputs, check: CheckId) -> &CheckRow {
    let rows: Vec<_> = outputs.checks.iter().filter(|r| r.check == check).collect();
    assert_eq!(rows.len(), 1, "{:#?}", outputs.checks);
    rows[0]
}

/// The row of a check on a subject.
pub fn row_on<'a>(outputs: &'a VerifyOutputs, check: CheckId, subject: &str) -> &'a CheckRow {
    outputs
        .checks
        .iter()
        .find(|r| r.check == check && r.subject.as_deref() == Some(subject))
        .unwrap_or_else(|| panic!("no row on {subject}: {:#?}", outputs.checks))
}

/// Checks that ended so.
pub fn ended(outputs: &VerifyOutputs, status: CheckStatus) -> Vec<CheckId> {
    outputs
        .checks
        .iter()
        .filter(|row| row.status == status)
        .map(|row| row.check)
        .collect()
}

/// The verification failed, by exactly these checks.
pub fn assert_fails_by(outputs: &VerifyOutputs, checks: &[CheckId]) {
    assert_eq!(
        ended(outputs, CheckStatus::Failed),
        checks,
        "{:#?}",
        outputs.checks
    );
    assert!(!outputs.verification_passed);
    assert!(
        outputs.summary.contains("NOT verified"),
        "{}",
        outputs.summary
    );
}

pub fn assert_passes(outputs: &VerifyOutputs) {
    assert_eq!(
        ended(outputs, CheckStatus::Failed),
        [],
        "{:#?}",
        outputs.checks
    );
    assert!(outputs.verification_passed);
}
