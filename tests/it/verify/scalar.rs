//! Scalar indices: keys looked up through an index are the rows that a scan finds.

use std::sync::Arc;

use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{
    ArrayRef, Int64Array, ListArray, PrimitiveArray, RecordBatch, StringArray, StructArray,
};
use arrow_schema::Field;
use lance::dataset::CommitBuilder;
use lance::dataset::transaction::{Operation, Transaction};
use lance::index::DatasetIndexExt;
use lancedb::index::Index;
use lancedb_guard::report::verify::{CheckId, CheckRow, CheckStatus};
use serde_json::json;

use super::bench::*;

async fn index(bench: &Bench, column: &str, index: Index) {
    bench
        .table
        .create_index(&[column], index)
        .execute()
        .await
        .unwrap();
}

async fn btree(bench: &Bench) {
    index(bench, "id", Index::BTree(Default::default())).await;
}

/// The row of the check on an index of the newest version, without a baseline.
async fn looked_up(bench: &Bench, name: &str) -> CheckRow {
    let outputs = bench.verify_with(json!({})).await;
    row_on(&outputs, CheckId::ScalarIndices, name).clone()
}

/// Rows with a column of each kind that scalar indices are built on.
fn of_every_kind(ids: std::ops::Range<i64>) -> RecordBatch {
    let labels = ids.clone().map(|id| {
        (id % 5 > 0).then(|| vec![Some((id % 7) as i32), Some(100 + (id % 3) as i32), None])
    });
    let nested: ArrayRef = Arc::new(Int64Array::from_iter_values(ids.clone()));
    let floats = ids.clone().map(|id| match id % 4 {
        0 => None,
        1 => Some(f64::NAN),
        _ => Some(id as f64 / 8.0),
    });
    RecordBatch::try_from_iter_with_nullable([
        (
            "id",
            Arc::new(Int64Array::from_iter_values(ids.clone())) as ArrayRef,
            true,
        ),
        (
            "kind",
            Arc::new(StringArray::from_iter(
                ids.clone()
                    .map(|id| (id % 6 > 0).then(|| format!("it's {}", id % 6))),
            )),
            true,
        ),
        (
            "labels",
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(labels)),
            true,
        ),
        (
            "score",
            Arc::new(PrimitiveArray::<Float64Type>::from_iter(floats)),
            true,
        ),
        (
            "nested",
            Arc::new(StructArray::from(vec![(
                Arc::new(Field::new("in side", nested.data_type().clone(), true)),
                nested,
            )])),
            true,
        ),
        (
            "text",
            Arc::new(StringArray::from_iter_values(
                ids.map(|id| format!("text {id}")),
            )),
            true,
        ),
    ])
    .unwrap()
}

#[tokio::test]
async fn every_kind_of_scalar_index_finds_what_a_scan_finds() {
    let bench = Bench::new(of_every_kind(0..60)).await;
    btree(&bench).await;
    index(&bench, "kind", Index::Bitmap(Default::default())).await;
    index(&bench, "labels", Index::LabelList(Default::default())).await;
    index(&bench, "score", Index::ZoneMap(Default::default())).await;
    index(&bench, "nested.`in side`", Index::BTree(Default::default())).await;
    index(&bench, "text", Index::NGram(Default::default())).await;
    bench.add(of_every_kind(60..80)).await;
    bench.table.delete("id % 10 = 3").await.unwrap();
    let outputs = bench.verify_with(json!({"level": "full"})).await;
    let found: Vec<_> = outputs
        .checks
        .iter()
        .filter(|row| row.check == CheckId::ScalarIndices)
        .map(|row| {
            let name = row.subject.as_deref().unwrap();
            assert_eq!(row.status, CheckStatus::Passed, "{row:?}");
            format!("{name}: {}", row.found)
        })
        .collect();
    assert_eq!(
        found,
        [
            "id_idx: 28 keys, 8 of deleted rows only: the same 20 rows both ways",
            "kind_idx: 5 keys: the same 58 rows both ways",
            "labels_idx: 10 keys, 1 of deleted rows only: the same 56 rows both ways",
            "nested.in side_idx: 28 keys, 8 of deleted rows only: the same 20 rows both ways",
            "score_idx: 12 keys, 4 of deleted rows only: the same 8 rows both ways",
            "text_idx: 28 keys, 8 of deleted rows only: the same 28 rows both ways",
        ]
    );
}

#[tokio::test]
async fn an_index_that_cannot_be_asked_for_keys_is_skipped_and_named() {
    let bench = Bench::new(batch(0..40)).await;
    index(&bench, "text", Index::FTS(Default::default())).await;
    let row = looked_up(&bench, "text_idx").await;
    assert_eq!(row.status, CheckStatus::Skipped);
    assert_eq!(
        row.found,
        "an index of type Inverted cannot be compared with a scan key by key"
    );
}

#[tokio::test]
async fn a_table_without_scalar_indices_has_no_row_of_them() {
    let outputs = Bench::new(batch(0..40)).await.verify_with(json!({})).await;
    let rows = outputs.checks.iter();
    assert_eq!(
        rows.filter(|r| r.check == CheckId::ScalarIndices).count(),
        0
    );
}

/// Replaces the files of the newest version's only index by those of another table's.
async fn with_index_of(bench: &Bench, other: &Bench) {
    let folder = |uuid: uuid::Uuid| format!("_indices/{uuid}");
    let of = async |bench: &Bench| {
        let indices = bench.dataset().await.load_indices().await.unwrap();
        assert_eq!(indices.len(), 1);
        files_in(&bench.folder().join(folder(indices[0].uuid)))
    };
    let (files, others) = (of(bench).await, of(other).await);
    assert_eq!(files.len(), others.len());
    for ((file, length), (other, other_length)) in files.iter().zip(&others) {
        assert_eq!(file.file_name(), other.file_name());
        assert_eq!(length, other_length, "the size must not give it away");
        std::fs::copy(other, file).unwrap();
    }
}

#[tokio::test]
async fn stale_entries_that_name_other_rows_fail() {
    let bench = Bench::new(batch(0..40)).await;
    btree(&bench).await;
    // The same keys at other places.
    let moved = Bench::new(batch(10..50)).await;
    btree(&moved).await;
    with_index_of(&bench, &moved).await;
    let outputs = bench.verify_with(json!({})).await;
    assert_fails_by(&outputs, &[CheckId::ScalarIndices]);
    let row = row_on(&outputs, CheckId::ScalarIndices, "id_idx");
    assert!(
        row.found.starts_with("20 keys: the index finds "),
        "{row:?}"
    );
}

#[tokio::test]
async fn a_row_that_the_index_does_not_hold_fails_and_the_version_before_is_asked() {
    let bench = Bench::new(batch(0..40)).await;
    btree(&bench).await;
    bench.add(batch(40..80)).await;
    let dataset = bench.dataset().await;
    let removed = dataset.load_indices_by_name("id_idx").await.unwrap();
    // The index says that it covers a fragment of which it holds nothing.
    let mut lying = removed.clone();
    lying[0].fragment_bitmap.as_mut().unwrap().insert(1);
    let operation = Operation::CreateIndex {
        new_indices: lying,
        removed_indices: removed,
    };
    let transaction = Transaction::new(dataset.version().version, operation, None);
    CommitBuilder::new(Arc::new(dataset))
        .execute(transaction)
        .await
        .unwrap();
    bench.reload().await;
    let outputs = bench.verify(&bench.baseline(3, 4, &[4]).await).await;
    assert_fails_by(&outputs, &[CheckId::ScalarIndices]);
    let row = row_on(&outputs, CheckId::ScalarIndices, "id_idx");
    assert!(
        row.found
            .ends_with("rows, a scan 20; version 3 from before compaction has no such fault"),
        "{row:?}"
    );
    let outputs = bench.verify(&bench.baseline(4, 4, &[]).await).await;
    let row = row_on(&outputs, CheckId::ScalarIndices, "id_idx");
    assert!(
        row.found
            .ends_with("; version 4 from before compaction has the same fault"),
        "{row:?}"
    );
}

#[tokio::test]
async fn a_deleted_row_that_the_index_brings_back_fails() {
    // Two tables of one shape: in the other, the last row has the id that is deleted here.
    let made = async |deleted: i64| {
        let bench = Bench::new(batch(0..38)).await;
        bench.add(batch(38..41)).await;
        btree(&bench).await;
        bench
            .table
            .delete(&format!("id = {deleted}"))
            .await
            .unwrap();
        bench.compact().await;
        bench
    };
    let bench = made(39).await;
    let other = made(40).await;
    let baseline = bench.baseline(4, bench.version().await, &[5, 6]).await;
    let fields = json!({"baseline": baseline, "canary": {"keys": 1, "seed": 3}});
    assert_passes(&bench.verify_with(fields.clone()).await);
    with_index_of(&bench, &other).await;
    let outputs = bench.verify_with(fields).await;
    assert_fails_by(&outputs, &[CheckId::ScalarIndices]);
    let row = row_on(&outputs, CheckId::ScalarIndices, "id_idx");
    assert_eq!(
        row.found,
        "2 keys, 1 of deleted rows only: the index finds 2 rows, a scan 1; version 4 from before compaction has no such fault"
    );
}

#[tokio::test]
async fn an_index_whose_files_hold_garbage_fails() {
    let bench = Bench::new(batch(0..40)).await;
    btree(&bench).await;
    for (file, length) in files_in(&bench.folder().join("_indices")) {
        std::fs::write(file, vec![0x5A; usize::try_from(length).unwrap()]).unwrap();
    }
    let outputs = bench.verify_with(json!({})).await;
    assert_fails_by(&outputs, &[CheckId::ScalarIndices]);
}
