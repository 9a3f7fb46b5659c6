//! Recall: a vector index finds as much of what is nearest as before.

use std::sync::Arc;

use arrow_array::FixedSizeListArray;
use arrow_array::types::Float32Type;
use lancedb::DistanceType;
use lancedb::index::Index;
use lancedb::index::vector::{IvfFlatIndexBuilder, IvfPqIndexBuilder};
use lancedb_guard::report::verify::{CheckId, CheckStatus, VerifyOutputs};
use serde_json::json;

use super::bench::*;

async fn index(bench: &Bench, index: Index) {
    bench
        .table
        .create_index(&["vector"], index)
        .execute()
        .await
        .unwrap();
}

/// One partition of whole vectors: it finds everything.
fn exact(metric: DistanceType) -> Index {
    let index = IvfFlatIndexBuilder::default().num_partitions(1);
    Index::IvfFlat(index.distance_type(metric))
}

/// Vectors cut down to one of 256 numbers: it finds few neighbours, and after a closer look the
/// vector itself.
fn coarse() -> Index {
    let index = IvfPqIndexBuilder::default().num_partitions(1);
    Index::IvfPq(index.num_sub_vectors(1))
}

/// Brings the index up to date, in a segment of its own.
async fn catch_up(bench: &Bench) {
    let options = lancedb::table::OptimizeOptions::default();
    let action = lancedb::table::OptimizeAction::Index(options);
    bench.table.optimize(action).await.unwrap();
}

fn found(outputs: &VerifyOutputs) -> &str {
    &row_on(outputs, CheckId::Recall, "vector").found
}

#[tokio::test]
async fn a_compaction_keeps_the_recall_and_the_latency_of_before_is_told() {
    for metric in [DistanceType::L2, DistanceType::Cosine, DistanceType::Dot] {
        let bench = Bench::new(batch(0..200)).await;
        bench.add(batch(200..400)).await;
        index(&bench, exact(metric)).await;
        bench.compact().await;
        let outputs = bench.verify(&bench.baseline(3, 5, &[4, 5]).await).await;
        assert_passes(&outputs);
        assert_eq!(
            row_on(&outputs, CheckId::Recall, "vector").expected,
            "recall@10 of usual searches lower than before by no more than 0.05"
        );
        assert_eq!(
            found(&outputs),
            "recall 1 of the index, 1 of usual searches for 3 stored vectors; recall 1 of the index, 1 of usual searches in version 3",
            "{metric:?}"
        );
        assert!(outputs.canary_latency_before_ms.unwrap() > 0.0);
    }
}

#[tokio::test]
async fn a_recall_that_dropped_fails_unless_it_is_allowed_or_by_another_writer() {
    let bench = Bench::new(batch(0..1000)).await;
    index(&bench, exact(DistanceType::L2)).await;
    index(&bench, coarse()).await;
    let version = bench.version().await;
    let own: Vec<u64> = (3..=version).collect();
    let baseline = bench.baseline(2, version, &own).await;
    let outputs = bench.verify(&baseline).await;
    assert_fails_by(&outputs, &[CheckId::Recall]);
    assert!(
        found(&outputs).ends_with("; recall 1 of the index, 1 of usual searches in version 2"),
        "{}",
        found(&outputs)
    );
    let allowed = json!({"baseline": baseline, "canary": {"max_recall_drop": 1.0}});
    assert_passes(&bench.verify_with(allowed).await);
    let left_out = json!({"baseline": baseline, "canary": {"recall_queries": 0}});
    let outputs = bench.verify_with(left_out).await;
    assert_passes(&outputs);
    assert!(
        outputs
            .checks
            .iter()
            .all(|row| row.check != CheckId::Recall)
    );
    // The same commit, made by another writer.
    let outputs = bench.verify(&bench.baseline(2, version, &[]).await).await;
    assert_passes(&outputs);
    assert_eq!(
        row_on(&outputs, CheckId::Recall, "vector").status,
        CheckStatus::Skipped
    );
    assert!(
        found(&outputs).contains("; other writers may have changed the index in version"),
        "{}",
        found(&outputs)
    );
}

#[tokio::test]
async fn rows_that_others_wrote_meanwhile_are_searched_for_in_their_version_only() {
    let bench = Bench::new(batch(0..200)).await;
    bench.add(batch(200..400)).await;
    index(&bench, exact(DistanceType::L2)).await;
    bench.compact().await;
    bench.add(batch(400..1000)).await;
    let baseline = bench.baseline(3, 6, &[4, 5]).await;
    let outputs = bench
        .verify_with(json!({"baseline": baseline, "canary": {"recall_queries": 12}}))
        .await;
    assert_eq!(
        found(&outputs),
        "recall 1 of the index, 1 of usual searches for 12 stored vectors; recall 1 of the index, 1 of usual searches in version 3"
    );
}

#[tokio::test]
async fn without_a_version_before_the_recall_is_told_and_not_judged() {
    let bench = Bench::new(batch(0..200)).await;
    index(&bench, exact(DistanceType::L2)).await;
    let outputs = bench.verify_with(json!({})).await;
    assert_passes(&outputs);
    assert_eq!(
        found(&outputs),
        "recall 1 of the index, 1 of usual searches for 3 stored vectors; the spec has no baseline to compare with"
    );
    assert_eq!(outputs.canary_latency_before_ms, None);
}

#[tokio::test]
async fn duplicates_as_near_as_the_last_neighbour_count_as_found() {
    let same = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        (0..300).map(|_| Some(vec![Some(0.25); 8])),
        8,
    );
    let bench = Bench::new(batch_with(0..300, Arc::new(same))).await;
    index(&bench, exact(DistanceType::L2)).await;
    let outputs = bench.verify_with(json!({})).await;
    assert!(
        found(&outputs)
            .starts_with("recall 1 of the index, 1 of usual searches for 3 stored vectors;"),
        "{}",
        found(&outputs)
    );
}

/// Rows without an index are compared exactly, so that searches find less of what is nearest
/// once the index holds them as well. That is what an index is, and no fault.
#[tokio::test]
async fn an_index_that_catches_up_is_not_held_to_the_rows_that_had_none() {
    let bench = Bench::new(batch(0..300)).await;
    let kind = IvfPqIndexBuilder::default().num_partitions(1);
    index(&bench, Index::IvfPq(kind.num_sub_vectors(4))).await;
    bench.add(batch(300..1000)).await;
    catch_up(&bench).await;
    bench.compact().await;
    let version = bench.version().await;
    let own: Vec<u64> = (4..=version).collect();
    let baseline = bench.baseline(3, version, &own).await;
    let outputs = bench
        .verify_with(json!({"baseline": baseline, "canary": {"recall_queries": 12}}))
        .await;
    assert_passes(&outputs);
    assert_eq!(
        row_on(&outputs, CheckId::Recall, "vector").status,
        CheckStatus::Passed
    );
    assert_eq!(
        row_on(&outputs, CheckId::Recall, "vector").expected,
        "recall@10 of the index lower than before by no more than 0.05"
    );
    assert!(
        found(&outputs).ends_with(", 1 of usual searches in version 3"),
        "{}",
        found(&outputs)
    );
    assert!(
        !found(&outputs).contains(", 1 of usual searches for"),
        "{}",
        found(&outputs)
    );
}

#[tokio::test]
async fn an_index_that_covered_next_to_nothing_is_not_judged() {
    let bench = Bench::new(batch(0..4)).await;
    index(&bench, exact(DistanceType::L2)).await;
    bench.add(batch(4..400)).await;
    catch_up(&bench).await;
    let version = bench.version().await;
    let own: Vec<u64> = (4..=version).collect();
    let outputs = bench.verify(&bench.baseline(3, version, &own).await).await;
    let row = row_on(&outputs, CheckId::Recall, "vector");
    assert_eq!(row.status, CheckStatus::Skipped);
    assert!(
        row.found
            .ends_with("; the index covers too few of the neighbours to be judged by"),
        "{row:?}"
    );
}
