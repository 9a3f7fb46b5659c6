//! Contents: what the rows held before compaction is what they hold after it.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{MapBuilder, StringBuilder};
use arrow_array::types::{Float32Type, Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, Decimal128Array, DictionaryArray, FixedSizeListArray, Float64Array,
    Int64Array, LargeBinaryArray, LargeStringArray, ListArray, RecordBatch, RecordBatchIterator,
    StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema};
use lance::Dataset;
use lance::dataset::optimize::{CompactionOptions, compact_files};
use lance::dataset::{WriteMode, WriteParams};
use lancedb_guard::report::verify::{CheckId, CheckStatus, VerifyOutputs};
use serde_json::json;

use super::bench::*;

/// Rows with these ids, each with the vector and the text of its id.
fn rows(ids: &[i64]) -> RecordBatch {
    let texts = ids.iter().map(|id| format!("text {id}"));
    RecordBatch::try_from_iter_with_nullable([
        (
            "id",
            Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef,
            true,
        ),
        ("vector", Arc::new(vectors_of(ids)), true),
        ("text", Arc::new(StringArray::from_iter_values(texts)), true),
    ])
    .unwrap()
}

fn vectors_of(ids: &[i64]) -> FixedSizeListArray {
    let vectors = ids.iter().map(|id| {
        let numbers = (0..8).map(|place| Some(number(*id, place)));
        Some(numbers.collect::<Vec<_>>())
    });
    FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 8)
}

/// Two fragments of these rows, compacted to one: versions 2 and 4.
async fn compacted(ids: &[i64]) -> Bench {
    let (first, second) = ids.split_at(ids.len() / 2);
    let bench = Bench::new(rows(first)).await;
    bench.add(rows(second)).await;
    bench.compact().await;
    assert_eq!(bench.version().await, 4);
    bench
}

/// The file with the rows of the newest version, which has one.
async fn data_file(bench: &Bench) -> PathBuf {
    let fragments = bench.dataset().await.get_fragments();
    assert_eq!(fragments.len(), 1);
    let name = fragments[0].metadata().files[0].path.clone();
    bench.folder().join("data").join(name)
}

/// Verifies the compaction of the rows `before`, whose rewritten file holds `after` instead.
async fn with_rows_replaced(
    before: &[i64],
    after: &[i64],
    fields: serde_json::Value,
) -> VerifyOutputs {
    let bench = compacted(before).await;
    let other = compacted(after).await;
    let (file, replacement) = (data_file(&bench).await, data_file(&other).await);
    assert_eq!(
        file.metadata().unwrap().len(),
        replacement.metadata().unwrap().len(),
        "the size must not give it away"
    );
    std::fs::copy(replacement, file).unwrap();
    let mut spec = json!({"baseline": bench.baseline(2, 4, &[3, 4]).await});
    for (name, value) in fields.as_object().unwrap() {
        spec[name] = value.clone();
    }
    bench.verify_with(spec).await
}

fn contents(outputs: &VerifyOutputs) -> &str {
    &row(outputs, CheckId::Contents).found
}

fn ids(from: i64, to: i64) -> Vec<i64> {
    (from..to).collect()
}

#[tokio::test]
async fn sampled_rows_of_a_compaction_are_the_same() {
    let bench = Bench::with_tombstones().await;
    bench.compact().await;
    let baseline = bench.baseline(7, 9, &[8, 9]).await;
    let outputs = bench
        .verify_with(json!({"baseline": baseline, "contents": {"sample_rows": 10}}))
        .await;
    assert_passes(&outputs);
    assert_eq!(
        contents(&outputs),
        "10 of 72 rewritten rows are the same in versions 7 and 9"
    );
    assert_eq!(outputs.contents_read.unwrap().rows, 20);
}

#[tokio::test]
async fn the_level_quick_reads_no_row() {
    let bench = Bench::with_tombstones().await;
    bench.compact().await;
    let baseline = bench.baseline(7, 9, &[8, 9]).await;
    let outputs = bench
        .verify_with(json!({"baseline": baseline, "level": "quick"}))
        .await;
    assert_passes(&outputs);
    let checks: Vec<CheckId> = outputs.checks.iter().map(|row| row.check).collect();
    assert_eq!(checks, ORDER[..7]);
    assert_eq!(outputs.contents_read, None);
    assert_eq!(outputs.canary_latency_ms, None);
}

#[tokio::test]
async fn the_level_full_compares_what_was_rewritten_and_reads_the_rest() {
    let bench = Bench::with_tombstones().await;
    bench.compact().await;
    bench.add(batch(200..210)).await;
    let baseline = bench.baseline(7, 9, &[8, 9]).await;
    let outputs = bench
        .verify_with(json!({"baseline": baseline, "level": "full"}))
        .await;
    assert_passes(&outputs);
    let found = contents(&outputs);
    assert!(
        found.starts_with("all 72 rewritten rows are the same in versions 7 and 9; 154 rows of "),
        "{found}"
    );
    let read = outputs.contents_read.unwrap();
    assert_eq!(read.rows, 154);
    assert!(read.bytes > 154 * 40, "{read:?}");
}

#[tokio::test]
async fn a_changed_value_fails() {
    for level in ["standard", "full"] {
        let mut changed = ids(20, 60);
        changed[7] = 99;
        let outputs = with_rows_replaced(&ids(20, 60), &changed, json!({"level": level})).await;
        assert_fails_by(&outputs, &[CheckId::Contents]);
        let found = contents(&outputs);
        assert!(
            found.contains("40 rewritten rows do not hold the same in versions 2 and 4: column id, vector, text"),
            "{found}"
        );
    }
}

#[tokio::test]
async fn a_lost_row_with_another_one_twice_fails() {
    for level in ["standard", "full"] {
        let mut twice = ids(20, 60);
        twice[8] = twice[7];
        let outputs = with_rows_replaced(&ids(20, 60), &twice, json!({"level": level})).await;
        assert_fails_by(&outputs, &[CheckId::Contents]);
    }
}

#[tokio::test]
async fn a_change_outside_the_sample_fails_at_the_level_full_only() {
    let mut changed = ids(20, 60);
    changed[39] = 99;
    let sample = json!({"sample_rows": 1, "seed": 1});
    let fields = json!({"level": "standard", "contents": sample});
    let outputs = with_rows_replaced(&ids(20, 60), &changed, fields).await;
    assert_passes(&outputs);
    let fields = json!({"level": "full", "contents": sample});
    let outputs = with_rows_replaced(&ids(20, 60), &changed, fields).await;
    assert_fails_by(&outputs, &[CheckId::Contents]);
}

#[tokio::test]
async fn rows_in_another_order_are_no_loss() {
    let mut moved = ids(20, 60);
    moved.reverse();
    let outputs = with_rows_replaced(&ids(20, 60), &moved, json!({})).await;
    assert_passes(&outputs);
    assert_eq!(
        contents(&outputs),
        "all 40 rewritten rows are the same in versions 2 and 4, though not in the same order"
    );
}

#[tokio::test]
async fn a_row_lost_in_a_commit_of_the_compaction_fails() {
    let bench = compacted(&ids(0, 40)).await;
    bench.table.delete("id = 30").await.unwrap();
    let baseline = bench.baseline(2, 5, &[3, 4, 5]).await;
    let outputs = bench.verify(&baseline).await;
    assert_fails_by(
        &outputs,
        &[CheckId::Rows, CheckId::Tombstones, CheckId::Contents],
    );
    assert_eq!(
        contents(&outputs),
        "40 rows of version 2 became 39 rows in version 5"
    );
}

#[tokio::test]
async fn what_other_writers_did_in_between_is_left_out() {
    let bench = Bench::new(batch(0..20)).await;
    bench.add(batch(20..40)).await;
    bench.compact().await;
    bench
        .table
        .update()
        .column("text", "'new'")
        .execute()
        .await
        .unwrap();
    bench.add(batch(40..60)).await;
    bench.compact().await;
    let version = bench.version().await;
    let own = [3, 4, version - 1, version];
    let baseline = bench.baseline(2, version, &own).await;
    for level in ["standard", "full"] {
        let outputs = bench
            .verify_with(json!({"baseline": baseline, "level": level}))
            .await;
        let row = row(&outputs, CheckId::Contents);
        assert_eq!(row.status, CheckStatus::Passed, "{row:?}");
        assert!(
            row.found
                .ends_with("what other writers did in versions 5 and 6 is left out"),
            "{row:?}"
        );
    }
    // A run of the compaction's own commits whose beginning is gone cannot be compared.
    bench.forget(6);
    let outputs = bench.verify(&baseline).await;
    let row = row(&outputs, CheckId::Contents);
    assert_eq!(row.status, CheckStatus::Skipped);
    assert!(
        row.found
            .starts_with("versions 6 and 8 cannot be compared, because one of them was pruned"),
        "{row:?}"
    );
}

#[tokio::test]
async fn without_a_baseline_the_level_full_reads_every_row() {
    let bench = Bench::new(batch(0..40)).await;
    let outputs = bench.verify_with(json!({})).await;
    assert_eq!(
        row(&outputs, CheckId::Contents).status,
        CheckStatus::Skipped
    );
    let outputs = bench.verify_with(json!({"level": "full"})).await;
    let row = row(&outputs, CheckId::Contents);
    assert_eq!(row.status, CheckStatus::Passed);
    assert!(
        row.found
            .starts_with("the spec has no baseline to compare with; 40 rows of "),
        "{row:?}"
    );
}

#[tokio::test]
async fn a_row_that_cannot_be_read_fails_the_level_full() {
    let bench = Bench::new(batch(0..40)).await;
    let file = data_file(&bench).await;
    let mut bytes = std::fs::read(&file).unwrap();
    // The pages lie at the front, what describes them at the end: only a read notices.
    let half = bytes.len() / 3;
    bytes[..half].fill(0xFF);
    std::fs::write(&file, bytes).unwrap();
    let outputs = bench.verify_with(json!({"level": "quick"})).await;
    assert_passes(&outputs);
    let outputs = bench.verify_with(json!({"level": "full"})).await;
    assert!(!outputs.verification_passed);
    assert!(!row(&outputs, CheckId::Contents).passed);
}

/// One row of every kind of type that is stored, some of them null.
fn of_every_type(seed: i32) -> RecordBatch {
    let texts = vec![Some(format!("a{seed}")), None, Some(String::new())];
    let item = Arc::new(Field::new("x", DataType::Utf8, true));
    let dictionary: DictionaryArray<Int8Type> = vec![
        Some("one"),
        None,
        Some(if seed == 0 { "two" } else { "three" }),
    ]
    .into_iter()
    .collect();
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(seed), None]),
        None,
        Some(vec![]),
    ]);
    let nan = f64::from_bits(0x7FF8_0000_0000_0000 | u64::from(seed.unsigned_abs()));
    RecordBatch::try_from_iter_with_nullable([
        (
            "struct",
            Arc::new(StructArray::from(vec![(
                item,
                Arc::new(StringArray::from(texts.clone())) as ArrayRef,
            )])) as ArrayRef,
            true,
        ),
        ("dictionary", Arc::new(dictionary), true),
        ("list", Arc::new(lists), true),
        (
            "float",
            Arc::new(Float64Array::from(vec![Some(nan), None, Some(-0.0)])),
            true,
        ),
        (
            "decimal",
            Arc::new(Decimal128Array::from(vec![
                Some(1),
                None,
                Some(seed.into()),
            ])),
            true,
        ),
        (
            "time",
            Arc::new(TimestampMicrosecondArray::from(vec![
                Some(1),
                None,
                Some(seed.into()),
            ])),
            true,
        ),
        ("text", Arc::new(LargeStringArray::from(texts)), true),
    ])
    .unwrap()
}

/// Fragments of these rows, compacted to one, in a format and with a blob column if it has one.
async fn written_and_compacted(parts: Vec<RecordBatch>, version: &str) -> Bench {
    let bench = Bench::new(batch(0..1)).await;
    std::fs::remove_dir_all(bench.folder()).unwrap();
    let count = parts.len();
    for (at, part) in parts.into_iter().enumerate() {
        let params = WriteParams {
            mode: if at == 0 {
                WriteMode::Create
            } else {
                WriteMode::Append
            },
            data_storage_version: Some(version.parse().unwrap()),
            ..WriteParams::default()
        };
        let reader = RecordBatchIterator::new([Ok(part.clone())], part.schema());
        let uri = bench.folder();
        Dataset::write(reader, uri.to_str().unwrap(), Some(params))
            .await
            .unwrap();
    }
    let mut dataset = bench.dataset().await;
    compact_files(&mut dataset, CompactionOptions::default(), None)
        .await
        .unwrap();
    assert_eq!(dataset.version().version, count as u64 + 2);
    bench
}

/// With a column of maps, which the newest storage format holds.
fn with_map(rows: &RecordBatch) -> RecordBatch {
    let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for row in 0..rows.num_rows() {
        for key in 0..row {
            maps.keys().append_value(format!("k{key}"));
            maps.values().append_option((key > 0).then_some("v"));
        }
        maps.append(true).unwrap();
    }
    let maps = maps.finish();
    let mut fields = rows.schema().fields().to_vec();
    fields.push(Arc::new(Field::new("map", maps.data_type().clone(), true)));
    let mut columns = rows.columns().to_vec();
    columns.push(Arc::new(maps));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

#[tokio::test]
async fn every_kind_of_type_is_compared() {
    for version in ["2.0", "2.1", "2.2"] {
        let mut parts = vec![of_every_type(0), of_every_type(1)];
        if version == "2.2" {
            parts = parts.iter().map(with_map).collect();
        }
        let bench = written_and_compacted(parts, version).await;
        let baseline = bench.baseline(2, 4, &[3, 4]).await;
        for level in ["standard", "full"] {
            let outputs = bench
                .verify_with(json!({"baseline": baseline, "level": level}))
                .await;
            assert_passes(&outputs);
            let found = contents(&outputs);
            assert!(
                found.contains("6 rewritten rows are the same"),
                "{version}: {found}"
            );
        }
    }
}

fn with_blobs(blobs: [&[u8]; 2]) -> RecordBatch {
    let metadata = [("lance-encoding:blob".to_owned(), "true".to_owned())];
    let field = Field::new("blob", DataType::LargeBinary, true).with_metadata(metadata.into());
    let id = Field::new("id", DataType::Int64, true);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![1, 2])),
        Arc::new(LargeBinaryArray::from_vec(blobs.to_vec())),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(vec![id, field])), columns).unwrap()
}

#[tokio::test]
async fn blobs_are_compared_at_the_level_full_and_named_where_they_are_not() {
    let parts =
        |last: &'static [u8]| vec![with_blobs([b"one", b"two"]), with_blobs([b"three", last])];
    let bench = written_and_compacted(parts(b"four"), "2.1").await;
    let other = written_and_compacted(parts(b"five"), "2.1").await;
    let baseline = bench.baseline(2, 4, &[3, 4]).await;
    let outputs = bench.verify(&baseline).await;
    assert_passes(&outputs);
    let skipped = row_on(&outputs, CheckId::Contents, "blob");
    assert_eq!(skipped.status, CheckStatus::Skipped);
    assert_eq!(
        skipped.found,
        "it holds blobs, which only the level full reads"
    );
    let full = json!({"baseline": baseline, "level": "full"});
    let outputs = bench.verify_with(full.clone()).await;
    assert_passes(&outputs);
    assert!(contents(&outputs).starts_with("all 4 rewritten rows are the same"));

    std::fs::copy(data_file(&other).await, data_file(&bench).await).unwrap();
    let outputs = bench.verify_with(full).await;
    assert_fails_by(&outputs, &[CheckId::Contents]);
    assert!(contents(&outputs).contains("versions 2 and 4: column blob"));
}
