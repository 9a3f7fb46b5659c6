//! The canary: stored vectors are found again, through every kind of index.

use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, ListBuilder, PrimitiveBuilder};
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, UInt8Type};
use arrow_array::{
    ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch, StructArray,
};
use arrow_schema::Field;
use lance::dataset::CommitBuilder;
use lance::dataset::transaction::{Operation, Transaction};
use lance::index::DatasetIndexExt;
use lancedb::DistanceType;
use lancedb::index::Index;
use lancedb::index::vector::{
    IvfFlatIndexBuilder, IvfHnswSqIndexBuilder, IvfPqIndexBuilder, IvfRqIndexBuilder,
};
use lancedb_guard::report::verify::{CheckId, CheckStatus, VerifyOutputs};
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

fn flat() -> IvfFlatIndexBuilder {
    IvfFlatIndexBuilder::default().num_partitions(2)
}

async fn verified(bench: &Bench) -> VerifyOutputs {
    let version = bench.open().await.version();
    bench
        .verify(&bench.baseline(version, version, &[]).await)
        .await
}

/// Vectors of any number type.
fn of_type<T: ArrowPrimitiveType>(
    ids: std::ops::Range<i64>,
    make: impl Fn(f32) -> T::Native,
) -> ArrayRef {
    Arc::new(FixedSizeListArray::from_iter_primitive::<T, _, _>(
        ids.map(|id| {
            Some(
                (0..8)
                    .map(|place| Some(make(number(id, place))))
                    .collect::<Vec<_>>(),
            )
        }),
        8,
    ))
}

#[tokio::test]
async fn vectors_are_found_through_every_kind_of_index() {
    let kinds = [
        Index::IvfFlat(flat()),
        Index::IvfFlat(flat().distance_type(DistanceType::Cosine)),
        Index::IvfPq(
            IvfPqIndexBuilder::default()
                .num_partitions(2)
                .num_sub_vectors(4),
        ),
        Index::IvfRq(IvfRqIndexBuilder::default().num_partitions(2)),
        Index::IvfHnswSq(IvfHnswSqIndexBuilder::default().num_partitions(2)),
    ];
    for kind in kinds {
        let name = format!("{kind:?}");
        let bench = Bench::new(batch(0..300)).await;
        index(&bench, "vector", kind).await;
        let outputs = verified(&bench).await;
        assert_passes(&outputs);
        let canary = row_on(&outputs, CheckId::Canary, "vector");
        assert_eq!(canary.status, CheckStatus::Passed, "{name}");
        assert_eq!(
            canary.expected, "each of 5 stored vectors finds itself and 10 neighbours",
            "{name}"
        );
        assert!(
            canary.found.starts_with("5 of 5 found themselves"),
            "{name}: {canary:?}"
        );
    }
}

#[tokio::test]
async fn with_the_dot_product_a_vector_need_not_find_itself() {
    let bench = Bench::new(batch(0..300)).await;
    index(
        &bench,
        "vector",
        Index::IvfFlat(flat().distance_type(DistanceType::Dot)),
    )
    .await;
    let outputs = verified(&bench).await;
    assert_passes(&outputs);
    let canary = row_on(&outputs, CheckId::Canary, "vector");
    assert_eq!(
        canary.expected,
        "each of 5 stored vectors finds 10 neighbours"
    );
    assert_eq!(canary.found, "all 5 searches gave neighbours");
}

#[tokio::test]
async fn vectors_in_half_and_double_precision_and_of_bits_are_found() {
    type Half = <Float16Type as ArrowPrimitiveType>::Native;
    let columns = [
        (
            of_type::<Float16Type>(0..300, Half::from_f32),
            DistanceType::L2,
        ),
        (
            of_type::<Float64Type>(0..300, f64::from),
            DistanceType::Cosine,
        ),
        (
            of_type::<UInt8Type>(0..300, |v| ((v + 0.5) * 255.0) as u8),
            DistanceType::Hamming,
        ),
    ];
    for (vectors, distance) in columns {
        let name = format!("{:?}", vectors.data_type());
        let bench = Bench::new(batch_with(0..300, vectors)).await;
        index(
            &bench,
            "vector",
            Index::IvfFlat(flat().distance_type(distance)),
        )
        .await;
        let outputs = verified(&bench).await;
        assert_passes(&outputs);
        assert_eq!(
            row_on(&outputs, CheckId::Canary, "vector").found,
            "5 of 5 found themselves",
            "{name}"
        );
    }
}

#[tokio::test]
async fn each_indexed_column_has_its_canary_and_others_have_none() {
    let rows = RecordBatch::try_from_iter([
        (
            "id",
            Arc::new(Int64Array::from_iter_values(0..300)) as ArrayRef,
        ),
        ("first", Arc::new(vectors(0..300))),
        ("second", Arc::new(vectors(1000..1300))),
        ("third", Arc::new(vectors(2000..2300))),
    ])
    .unwrap();
    let bench = Bench::new(rows).await;
    index(&bench, "first", Index::IvfFlat(flat())).await;
    index(&bench, "third", Index::IvfFlat(flat())).await;
    let outputs = verified(&bench).await;
    assert_passes(&outputs);
    let subjects: Vec<_> = outputs
        .checks
        .iter()
        .filter(|row| row.check == CheckId::Canary)
        .map(|row| row.subject.as_deref().unwrap())
        .collect();
    assert_eq!(subjects, ["first", "third"]);
}

#[tokio::test]
async fn without_an_index_every_vector_column_is_searched() {
    let item = Arc::new(vectors(0..40)) as ArrayRef;
    let nested = StructArray::from(vec![(
        Arc::new(Field::new("in-side", item.data_type().clone(), true)),
        item,
    )]);
    let rows = RecordBatch::try_from_iter([
        (
            "id",
            Arc::new(Int64Array::from_iter_values(0..40)) as ArrayRef,
        ),
        ("Vector", Arc::new(vectors(1000..1040))),
        ("nested", Arc::new(nested)),
        ("with a space", Arc::new(vectors(3000..3040))),
    ])
    .unwrap();
    let bench = Bench::new(rows).await;
    let outputs = verified(&bench).await;
    assert_passes(&outputs);
    for column in ["Vector", "nested.in-side", "with a space"] {
        let canary = row_on(&outputs, CheckId::Canary, column);
        assert_eq!(canary.found, "5 of 5 found themselves", "{column}");
    }
}

#[tokio::test]
async fn duplicates_of_a_vector_count_as_itself() {
    let same = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        (0..300).map(|_| Some(vec![Some(0.25); 8])),
        8,
    );
    let bench = Bench::new(batch_with(0..300, Arc::new(same))).await;
    index(&bench, "vector", Index::IvfFlat(flat())).await;
    let outputs = verified(&bench).await;
    assert_passes(&outputs);
    assert_eq!(
        row_on(&outputs, CheckId::Canary, "vector").found,
        "5 of 5 found themselves"
    );
}

#[tokio::test]
async fn rows_without_a_vector_are_not_asked_for_as_neighbours() {
    let some = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        (0..300)
            .map(|id| (id < 4).then(|| (0..8).map(|p| Some(number(id, p))).collect::<Vec<_>>())),
        8,
    );
    let bench = Bench::new(batch_with(0..300, Arc::new(some))).await;
    index(
        &bench,
        "vector",
        Index::IvfFlat(IvfFlatIndexBuilder::default().num_partitions(1)),
    )
    .await;
    let outputs = verified(&bench).await;
    assert_passes(&outputs);
    assert_eq!(
        row_on(&outputs, CheckId::Canary, "vector").found,
        "2 of 2 found themselves; 4 neighbours are all that there are; 2 of 2 were searched again in every partition"
    );
}

#[tokio::test]
async fn vectors_that_are_zero_null_or_not_finite_are_no_canaries() {
    let kinds: [(&str, Option<f32>); 3] = [
        ("zero", Some(0.0)),
        ("null", None),
        ("not a number", Some(f32::NAN)),
    ];
    for (name, value) in kinds {
        let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
            (0..40).map(|_| value.map(|value| vec![Some(value); 8])),
            8,
        );
        let bench = Bench::new(batch_with(0..40, Arc::new(vectors))).await;
        let outputs = verified(&bench).await;
        assert_passes(&outputs);
        let canary = row_on(&outputs, CheckId::Canary, "vector");
        assert_eq!(canary.status, CheckStatus::Skipped, "{name}");
        assert_eq!(
            canary.found,
            "none of the rows that were looked at has a usable vector: all are null, zero or not finite",
            "{name}"
        );
        assert_eq!(outputs.canary_latency_ms, None, "{name}");
    }
}

#[tokio::test]
async fn a_few_usable_vectors_among_many_nulls_are_found() {
    let rare = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        (0..5000).map(|id| (id == 4321).then(|| vec![Some(1.0); 8])),
        8,
    );
    let bench = Bench::new(batch_with(0..5000, Arc::new(rare))).await;
    let outputs = verified(&bench).await;
    assert_passes(&outputs);
    let canary = row_on(&outputs, CheckId::Canary, "vector");
    assert_eq!(canary.found, "1 of 1 found themselves");
}

#[tokio::test]
async fn several_vectors_a_row_are_skipped_with_the_reason() {
    let mut lists = ListBuilder::new(FixedSizeListBuilder::new(
        PrimitiveBuilder::<Float32Type>::new(),
        4,
    ));
    for row in 0..20 {
        for _ in 0..2 {
            lists
                .values()
                .values()
                .append_slice(&[row as f32, 1.0, 2.0, 3.0]);
            lists.values().append(true);
        }
        lists.append(true);
    }
    let bench = Bench::new(batch_with(0..20, Arc::new(lists.finish()))).await;
    let outputs = verified(&bench).await;
    assert_passes(&outputs);
    let canary = row_on(&outputs, CheckId::Canary, "vector");
    assert_eq!(canary.status, CheckStatus::Skipped);
    assert_eq!(
        canary.found,
        "the column cannot be searched here: it holds several vectors a row"
    );
}

#[tokio::test]
async fn a_table_without_vectors_is_scanned() {
    let scalars = Arc::new(Float32Array::from(vec![1.0; 20]));
    let bench = Bench::new(batch_with(0..20, scalars)).await;
    let outputs = verified(&bench).await;
    assert_passes(&outputs);
    let canary = row(&outputs, CheckId::Canary);
    assert_eq!(
        canary.expected,
        "a scan reads 10 rows (the table has no vectors)"
    );
    assert_eq!(canary.found, "10 rows");
    assert!(outputs.canary_latency_ms.is_some());
}

#[tokio::test]
async fn an_empty_table_has_no_canary() {
    for vectors in [
        Arc::new(vectors(0..0)) as ArrayRef,
        Arc::new(Float32Array::from(Vec::<f32>::new())),
    ] {
        let bench = Bench::new(batch_with(0..0, vectors)).await;
        let outputs = verified(&bench).await;
        assert_passes(&outputs);
        let canary = row(&outputs, CheckId::Canary);
        assert_eq!(canary.status, CheckStatus::Skipped);
        assert_eq!(canary.found, "the table has no rows");
    }
}

#[tokio::test]
async fn an_index_whose_files_are_gone_fails() {
    let bench = Bench::new(batch(0..300)).await;
    index(&bench, "vector", Index::IvfFlat(flat())).await;
    for file in files_in(&bench.folder().join("_indices")).into_keys() {
        std::fs::remove_file(file).unwrap();
    }
    let outputs = verified(&bench).await;
    assert_fails_by(
        &outputs,
        &[CheckId::Files, CheckId::Canary, CheckId::Recall],
    );
}

#[tokio::test]
async fn an_index_overwritten_with_as_many_other_bytes_fails_by_the_searches_alone() {
    let bench = Bench::new(batch(0..300)).await;
    index(&bench, "vector", Index::IvfFlat(flat())).await;
    for (file, length) in files_in(&bench.folder().join("_indices")) {
        std::fs::write(file, vec![0x5A; usize::try_from(length).unwrap()]).unwrap();
    }
    let outputs = verified(&bench).await;
    assert_fails_by(&outputs, &[CheckId::Canary, CheckId::Recall]);
}

/// An index that says it covers a fragment whose vectors it does not hold: the fault that no
/// look at the manifest finds.
#[tokio::test]
async fn vectors_that_the_index_does_not_hold_fail() {
    let bench = Bench::new(batch(0..300)).await;
    index(&bench, "vector", Index::IvfFlat(flat())).await;
    bench.add(batch(300..3000)).await;
    let dataset = bench.dataset().await;
    let removed = dataset.load_indices_by_name("vector_idx").await.unwrap();
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

    let outputs = verified(&bench).await;
    assert_fails_by(&outputs, &[CheckId::Canary]);
    assert_eq!(
        row_on(&outputs, CheckId::IndicesCovering, "vector_idx").found,
        "3000 rows covered"
    );
    let canary = row_on(&outputs, CheckId::Canary, "vector");
    assert!(canary.found.contains(" that did not"), "{canary:?}");
}

#[tokio::test]
async fn the_canary_searches_the_version_that_is_verified() {
    let bench = Bench::new(batch(0..20)).await;
    let table = bench.open().await;
    bench.table.delete("id < 15").await.unwrap();
    let searcher = table.searcher().await.unwrap();
    assert_eq!(searcher.scan(100).await.unwrap().0, 20);
    let searcher = table.at(1).await.unwrap().searcher().await.unwrap();
    assert_eq!(searcher.scan(100).await.unwrap().0, 20);
    let newest = bench.open().await;
    assert_eq!(
        newest.searcher().await.unwrap().scan(100).await.unwrap().0,
        5
    );
}

#[tokio::test]
async fn the_spec_says_how_many_queries_and_neighbours() {
    let bench = Bench::new(batch(0..20)).await;
    let outputs = bench
        .verify_with(json!({"canary": {"queries": 2, "neighbours": 30, "seed": 1}}))
        .await;
    assert_eq!(
        row_on(&outputs, CheckId::Canary, "vector").expected,
        "each of 2 stored vectors finds itself and 20 neighbours"
    );
    assert!(outputs.verification_passed);
}
