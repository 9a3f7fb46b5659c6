//! Tables of every kind: old formats, all sorts of columns, stable row ids, mixed manifests.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, DictionaryArray, Int32Array, Int64Array, LargeBinaryArray, ListArray,
    RecordBatch, RecordBatchIterator, StringArray, StructArray,
};
use arrow_schema::{DataType, Field};
use chrono::Utc;
use futures::TryStreamExt;
use lance::Dataset;
use lance::dataset::{WriteMode, WriteParams};
use lance::index::DatasetIndexExt;
use lance_index::IndexType;
use lance_index::scalar::ScalarIndexParams;
use lancedb_guard::error::ErrorKind;
use lancedb_guard::report::compact::RemediationStatus;
use lancedb_guard::table::OpenOptions;
use serde_json::json;

use crate::harness::{Db, ahead, files_in, one_hour};
use crate::tables;

/// Writes batches with lance itself, one commit each.
async fn write(db: &Db, batches: Vec<RecordBatch>, params: WriteParams) -> Dataset {
    let uri = db.table_path().to_string_lossy().into_owned();
    let mut written = None;
    for batch in batches {
        let schema = batch.schema();
        let reader = RecordBatchIterator::new([Ok(batch)], schema);
        let mode = if written.is_some() {
            WriteMode::Append
        } else {
            WriteMode::Create
        };
        let params = WriteParams {
            mode,
            ..params.clone()
        };
        written = Some(Dataset::write(reader, &uri, Some(params)).await.unwrap());
    }
    written.unwrap()
}

#[tokio::test]
async fn a_table_of_the_first_storage_format_is_compacted_and_keeps_it() {
    let db = Db::new().await;
    let batches = (0..6)
        .map(|n| tables::rows(n * 100..(n + 1) * 100))
        .collect();
    let legacy = WriteParams {
        data_storage_version: Some("0.1".parse().unwrap()),
        ..WriteParams::default()
    };
    let mut dataset = write(&db, batches, legacy).await;
    dataset.delete("id % 4 = 0").await.unwrap();
    let before = db.audit(json!({}), Utc::now()).await;
    assert_eq!(before.audit_manifest.format.storage_version, "0.1");
    assert_eq!(before.tombstone_pct, 25.0);
    let outputs = db.compact(json!({}), Utc::now()).await;
    assert_eq!(outputs.remediation_status, RemediationStatus::Success);
    assert_eq!(outputs.baseline.after.fragments, 1);
    assert_eq!(outputs.baseline.after.tombstones, 0);
    let after = db.audit(json!({}), Utc::now()).await;
    assert_eq!(after.audit_manifest.format.storage_version, "0.1");
}

/// A table whose manifests carry the names of the first scheme.
async fn first_naming_scheme(db: &Db) {
    let batches = (0..4).map(|n| tables::rows(n * 10..(n + 1) * 10)).collect();
    let params = WriteParams {
        enable_v2_manifest_paths: false,
        ..WriteParams::default()
    };
    write(db, batches, params).await;
}

#[tokio::test]
async fn a_table_with_old_manifest_names_is_compacted_and_pruned() {
    let db = Db::new().await;
    first_naming_scheme(&db).await;
    let outputs = db.compact(one_hour(), ahead()).await;
    assert_eq!(outputs.baseline.after.version, 6);
    assert_eq!(outputs.cleanup_stats.versions_left, 1);
    let manifests = std::fs::read_dir(db.table_path().join("_versions"))
        .unwrap()
        .filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().ends_with(".manifest")
        });
    assert_eq!(manifests.count(), 1);
    assert_eq!(tables::ids(&db.lancedb().await).await.unwrap().len(), 40);
}

#[tokio::test]
async fn mixed_manifest_names_are_refused_and_nothing_is_written() {
    let old = Db::new().await;
    first_naming_scheme(&old).await;
    let db = Db::new().await;
    let table = db.create(10).await;
    tables::append(&table, 10).await.unwrap();
    std::fs::copy(
        old.table_path().join("_versions/1.manifest"),
        db.table_path().join("_versions/1.manifest"),
    )
    .unwrap();
    let files = files_in(&db.table_path());
    let error = db.open(OpenOptions::default()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ManifestSchemeMixed);
    assert_eq!(error.code, 4);
    assert_eq!(files_in(&db.table_path()), files);
}

/// Columns of every nesting, with nulls, for ten ids.
fn all_sorts(from: i64) -> RecordBatch {
    let ids: Vec<i64> = (from..from + 10).collect();
    let number = |id: i64| i32::try_from(id).unwrap();
    let some = |id: i64| id % 3 != 0;
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(
        ids.iter()
            .map(|id| some(*id).then(|| (0..id % 4).map(|n| Some(number(n))).collect::<Vec<_>>())),
    );
    let names: Vec<Option<String>> = ids
        .iter()
        .map(|id| some(*id).then(|| format!("name {}", id % 2)))
        .collect();
    let dictionary: DictionaryArray<Int32Type> = names.iter().map(Option::as_deref).collect();
    let inner: ArrayRef = Arc::new(Int32Array::from_iter(
        ids.iter().map(|id| some(*id).then(|| number(*id))),
    ));
    let nested = StructArray::from(vec![
        (Arc::new(Field::new("number", DataType::Int32, true)), inner),
        (
            Arc::new(Field::new("name", DataType::Utf8, true)),
            Arc::new(StringArray::from(names.clone())) as ArrayRef,
        ),
    ]);
    let bytes: Vec<Option<Vec<u8>>> = ids
        .iter()
        .map(|id| some(*id).then(|| vec![0, 255, u8::try_from(id % 256).unwrap()]))
        .collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(ids))),
        ("lists", Arc::new(lists)),
        ("dictionary", Arc::new(dictionary)),
        ("nested", Arc::new(nested)),
        (
            "binary",
            Arc::new(BinaryArray::from_iter(bytes.iter().map(Option::as_deref))),
        ),
        (
            "large_binary",
            Arc::new(LargeBinaryArray::from_iter(
                bytes.iter().map(Option::as_deref),
            )),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, name != "id")),
    )
    .unwrap()
}

/// The values of a dictionary, which a rewrite may number anew.
fn without_dictionary(column: &ArrayRef) -> ArrayRef {
    let dictionary = column.as_any().downcast_ref::<DictionaryArray<Int32Type>>();
    dictionary.map_or_else(
        || column.clone(),
        |dictionary| {
            let values = dictionary.downcast_dict::<StringArray>().unwrap();
            Arc::new(values.into_iter().collect::<StringArray>())
        },
    )
}

/// Every row as text, sorted.
async fn contents(dataset: &Dataset) -> Vec<String> {
    let batches: Vec<RecordBatch> = dataset
        .scan()
        .try_into_stream()
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    let mut rows: Vec<String> = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let row = batch.slice(row, 1);
            let columns: Vec<ArrayRef> = row.columns().iter().map(without_dictionary).collect();
            rows.push(format!("{columns:?}"));
        }
    }
    rows.sort_unstable();
    rows
}

#[tokio::test]
async fn columns_of_every_kind_are_equal_before_and_after() {
    let db = Db::new().await;
    let batches = (0..5).map(|n| all_sorts(n * 10)).collect();
    let mut dataset = write(&db, batches, WriteParams::default()).await;
    dataset.delete("id % 7 = 0").await.unwrap();
    let before = contents(&dataset).await;
    assert_eq!(before.len(), 42);
    let outputs = db.compact(json!({}), Utc::now()).await;
    assert_eq!(outputs.baseline.after.fragments, 1);
    dataset.checkout_latest().await.unwrap();
    assert!(contents(&dataset).await == before, "a row was changed");
}

#[tokio::test]
async fn stable_row_ids_are_found_once_through_the_index_after_two_compactions() {
    let db = Db::new().await;
    let batches = (0..3)
        .map(|n| tables::rows(n * 100..(n + 1) * 100))
        .collect();
    let stable = WriteParams {
        enable_stable_row_ids: true,
        ..WriteParams::default()
    };
    let mut dataset = write(&db, batches, stable).await;
    dataset
        .create_index(
            &["id"],
            IndexType::BTree,
            None,
            &ScalarIndexParams::default(),
            false,
        )
        .await
        .unwrap();
    let table = db.lancedb().await;
    for round in 0..2 {
        tables::append(&table, 50).await.unwrap();
        tables::delete(&table, &format!("id % 10 = {round}"))
            .await
            .unwrap();
        let outputs = db.compact(json!({}), Utc::now()).await;
        assert_eq!(outputs.remediation_status, RemediationStatus::Success);
        assert_eq!(outputs.baseline.after.fragments, 1);
    }
    let audit = db.audit(json!({}), Utc::now()).await;
    assert!(audit.audit_manifest.format.stable_row_ids);
    assert_eq!(audit.audit_manifest.indices[0].rows_unindexed, Some(0));
    let ids = tables::ids(&db.lancedb().await).await.unwrap();
    for id in 0..400 {
        let found = db
            .lancedb()
            .await
            .count_rows(Some(format!("id = {id}")))
            .await
            .unwrap();
        assert_eq!(
            found,
            ids.iter().filter(|other| **other == id).count(),
            "id {id}"
        );
    }
}
