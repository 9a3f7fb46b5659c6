//! A target in bytes: wide rows make smaller fragments, and a second run finds nothing to do.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, StringArray};
use chrono::Utc;
use lance::Dataset;
use lance::dataset::WriteParams;
use lancedb_guard::report::audit::AuditOutputs;
use lancedb_guard::report::compact::{BudgetKind, CompactOutputs, RemediationStatus};
use lancedb_guard::report::table::Spread;
use serde_json::{Value, json};

use crate::harness::Db;
use crate::tables;

/// A text that no encoding makes much shorter, of a length that differs from row to row.
fn text(id: i64, longest: u64) -> String {
    let mut state = id.cast_unsigned().wrapping_add(1);
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let length = next() % longest.max(1);
    (0..length)
        .map(|_| char::from(b' ' + u8::try_from(next() % 95).unwrap()))
        .collect()
}

/// Rows with texts of up to so many bytes.
fn rows(ids: Range<i64>, longest: u64) -> RecordBatch {
    let batch = tables::rows(ids.clone());
    let mut columns = batch.columns().to_vec();
    let texts = StringArray::from_iter_values(ids.map(|id| text(id, longest)));
    columns[2] = Arc::new(texts) as Arc<dyn Array>;
    RecordBatch::try_new(batch.schema(), columns).unwrap()
}

/// Appends such rows, as one fragment.
async fn append(table: &lancedb::Table, count: i64, longest: u64) {
    let from = tables::next_id(table).await.unwrap();
    let batch = rows(from..from + count, longest);
    table.add(batch).execute().await.unwrap();
}

fn target(bytes: u64) -> Value {
    json!({"target_rows_per_fragment": 100_000, "target_bytes_per_fragment": bytes})
}

async fn audit(db: &Db, bytes: u64) -> AuditOutputs {
    db.audit(target(bytes), Utc::now()).await
}

async fn compact(db: &Db, bytes: u64) -> CompactOutputs {
    db.compact(target(bytes), Utc::now()).await
}

/// A second run changes nothing, and the audit agrees that there is nothing to do.
async fn assert_fixed_point(db: &Db, bytes: u64) {
    let version = db.table().await.version();
    let again = compact(db, bytes).await;
    assert_eq!(again.remediation_status, RemediationStatus::NothingToDo);
    assert_eq!(db.table().await.version(), version);
    let audit = audit(db, bytes).await;
    assert_eq!(audit.plan.compaction.tasks, 0);
    assert_eq!(
        audit.plan.compaction.fragments_expected,
        audit.fragment_count
    );
}

#[tokio::test]
async fn wide_rows_make_fragments_by_bytes_as_the_audit_said() {
    let db = Db::new().await;
    let table = db.create(0).await;
    for _ in 0..12 {
        append(&table, 100, 4000).await;
    }
    let before = audit(&db, 600_000).await;
    let facts = &before.audit_manifest.fragments;
    assert_eq!((facts.target_rows, facts.under_target), (256, 12));
    assert_eq!(before.plan.compaction.target_rows, 256);
    let row = facts.bytes_per_row.unwrap();
    assert!((1200..2300).contains(&row), "{row}");
    assert_eq!(before.plan.compaction.fragments_expected, 4);

    let outputs = compact(&db, 600_000).await;
    assert_eq!(outputs.plan.plan_id, before.plan.plan_id);
    assert_eq!(outputs.compaction_stats.batches, 1);
    assert_eq!(outputs.baseline.after.fragments, 4);
    let after = audit(&db, 600_000).await;
    let facts = &after.audit_manifest.fragments;
    assert_eq!(facts.under_target, 0);
    assert_eq!(
        facts.rows_per_fragment,
        Some(Spread {
            min: 300,
            median: 300,
            max: 300
        })
    );
    assert_fixed_point(&db, 600_000).await;
    // By rows alone, the same table is one fragment.
    let by_rows = db
        .audit(json!({"target_rows_per_fragment": 100_000}), Utc::now())
        .await;
    assert_eq!(by_rows.audit_manifest.fragments.target_rows, 100_000);
    assert_eq!(by_rows.plan.compaction.fragments_expected, 1);
}

#[tokio::test]
async fn appends_that_change_the_bytes_of_a_row_a_little_rewrite_only_themselves() {
    let db = Db::new().await;
    let table = db.create(0).await;
    for _ in 0..12 {
        append(&table, 100, 4000).await;
    }
    compact(&db, 600_000).await;
    for longest in [3000, 4600, 2500] {
        let before = audit(&db, 600_000).await;
        append(&table, 150, longest).await;
        append(&table, 150, longest).await;
        let seen = audit(&db, 600_000).await.audit_manifest.fragments;
        assert_ne!(
            seen.bytes_per_row,
            before.audit_manifest.fragments.bytes_per_row
        );
        assert_eq!(seen.under_target, 2);
        let outputs = compact(&db, 600_000).await;
        assert_eq!(outputs.compaction_stats.actual.fragments_removed, 2);
        assert_fixed_point(&db, 600_000).await;
    }
}

/// One-row files have more beside their row than in it: 200 of them, which look like wide rows.
async fn tiny_files() -> Db {
    let db = Db::new().await;
    db.create(0).await;
    let uri = db.table_path().to_string_lossy().into_owned();
    let mut dataset = Dataset::open(&uri).await.unwrap();
    let batch = rows(0..200, 8);
    let schema = batch.schema();
    let reader = arrow_array::RecordBatchIterator::new([Ok(batch)], schema);
    let params = WriteParams {
        max_rows_per_file: 1,
        max_rows_per_group: 1,
        ..WriteParams::default()
    };
    dataset.append(reader, Some(params)).await.unwrap();
    db
}

#[tokio::test]
async fn a_target_that_rises_with_the_rewrite_is_reached_in_the_same_run() {
    let db = tiny_files().await;
    let before = audit(&db, 20_000).await.plan.compaction;
    let outputs = compact(&db, 20_000).await;
    assert_eq!(outputs.remediation_status, RemediationStatus::Success);
    let after = audit(&db, 20_000).await.plan.compaction;
    assert!(after.target_rows > before.target_rows);
    assert!(outputs.compaction_stats.batches > 1);
    assert!(outputs.baseline.after.fragments < before.fragments_expected);
    let stats = &outputs.compaction_stats;
    assert_eq!(stats.planned, stats.actual);
    assert_eq!(
        outputs.baseline.fragments_expected,
        outputs.baseline.after.fragments
    );
    assert_fixed_point(&db, 20_000).await;
    let ids = tables::ids(&db.lancedb().await).await.unwrap();
    assert_eq!(ids, (0..200).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_a_risen_target_adds_is_not_done_beyond_an_approval() {
    let db = tiny_files().await;
    let mut fields = target(20_000);
    fields["allowance_percent"] = 0.into();
    let approved = db.audit(fields, Utc::now()).await.approval;
    let mut fields = target(20_000);
    fields["approval"] = serde_json::to_value(&approved).unwrap();
    let outputs = db.compact(fields.clone(), Utc::now()).await;
    assert_eq!(outputs.error, None);
    assert_eq!(outputs.remediation_status, RemediationStatus::Partial);
    let remaining = outputs.remaining.unwrap();
    assert_eq!(remaining.reasons, [BudgetKind::Approval]);
    assert_eq!(remaining.fragments, outputs.baseline.after.fragments);
    assert_eq!(outputs.baseline.after.fragments, approved.fragments_added);
    // The next run finishes it.
    compact(&db, 20_000).await;
    assert_fixed_point(&db, 20_000).await;
}
