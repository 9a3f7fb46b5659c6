//! Indices: those that were there are there, and cover the table.

use lance::index::DatasetIndexExt;
use lancedb::index::Index;
use lancedb::index::vector::IvfPqIndexBuilder;
use lancedb_guard::report::verify::{CheckId, CheckStatus};
use serde_json::json;

use super::bench::*;

async fn with_btree() -> Bench {
    let bench = Bench::new(batch(0..20)).await;
    bench.add(batch(20..40)).await;
    btree(&bench).await;
    assert_eq!(bench.version().await, 3);
    bench
}

async fn btree(bench: &Bench) {
    bench
        .table
        .create_index(&["id"], Index::BTree(Default::default()))
        .execute()
        .await
        .unwrap();
}

#[tokio::test]
async fn an_index_that_covers_everything_passes() {
    let bench = with_btree().await;
    bench.compact().await;
    let outputs = bench.verify(&bench.baseline(3, 5, &[4, 5]).await).await;
    assert_passes(&outputs);
    assert_eq!(
        row(&outputs, CheckId::IndicesPresent).expected,
        "the indices id_idx"
    );
    let covering = row_on(&outputs, CheckId::IndicesCovering, "id_idx");
    assert_eq!(covering.expected, "all 40 rows covered");
    assert_eq!(covering.found, "40 rows covered");
    assert_eq!(ended(&outputs, CheckStatus::Skipped), []);
}

#[tokio::test]
async fn an_index_that_the_compaction_lost_fails() {
    let bench = with_btree().await;
    bench.dataset().await.drop_index("id_idx").await.unwrap();
    let outputs = bench.verify(&bench.baseline(3, 4, &[4]).await).await;
    assert_fails_by(&outputs, &[CheckId::IndicesPresent]);
    assert_eq!(
        row(&outputs, CheckId::IndicesPresent).found,
        "id_idx was lost in version 4 (CreateIndex) of the compaction itself"
    );
}

#[tokio::test]
async fn an_index_that_another_writer_dropped_passes_and_is_named() {
    let bench = with_btree().await;
    bench.compact().await;
    let baseline = bench.baseline(3, 5, &[4, 5]).await;
    bench.dataset().await.drop_index("id_idx").await.unwrap();
    bench.reload().await;
    bench.add(batch(40..50)).await;
    let outputs = bench.verify(&baseline).await;
    assert_passes(&outputs);
    assert_eq!(
        row(&outputs, CheckId::IndicesPresent).found,
        "id_idx was dropped by another writer in version 6 (CreateIndex)"
    );
}

#[tokio::test]
async fn a_lost_index_whose_history_is_gone_fails() {
    let bench = with_btree().await;
    bench.compact().await;
    let baseline = bench.baseline(3, 5, &[4, 5]).await;
    bench.dataset().await.drop_index("id_idx").await.unwrap();
    bench.forget(5);
    let outputs = bench.verify(&baseline).await;
    assert_eq!(
        row(&outputs, CheckId::IndicesPresent).found,
        "id_idx is missing, and the versions that are left do not say since when"
    );
    assert!(!outputs.verification_passed);
}

#[tokio::test]
async fn rows_that_compaction_left_unindexed_fail() {
    let bench = with_btree().await;
    bench.add(batch(40..70)).await;
    bench.compact().await;
    let version = bench.version().await;
    let committed: Vec<u64> = (5..=version).collect();
    let outputs = bench
        .verify(&bench.baseline(4, version, &committed).await)
        .await;
    assert_fails_by(&outputs, &[CheckId::IndicesCovering]);
    assert_eq!(
        row_on(&outputs, CheckId::IndicesCovering, "id_idx").found,
        "40 rows covered, 30 not"
    );
    let outputs = bench.verify_with(json!({})).await;
    assert_fails_by(&outputs, &[CheckId::IndicesCovering]);
}

#[tokio::test]
async fn rows_that_others_wrote_during_or_after_compaction_may_be_unindexed() {
    let bench = with_btree().await;
    bench.compact().await;
    bench.add(batch(40..70)).await;
    let mut baseline = bench.baseline(3, 6, &[4, 5]).await;
    baseline.fragments_expected = 1;
    bench.add(batch(70..80)).await;
    let outputs = bench.verify(&baseline).await;
    assert_passes(&outputs);
    assert_eq!(
        row_on(&outputs, CheckId::IndicesCovering, "id_idx").found,
        "40 rows covered, 40 not: written by others while compaction ran or after it"
    );
}

#[tokio::test]
async fn a_vector_index_without_enough_rows_to_train_passes() {
    let bench = Bench::new(batch(0..0)).await;
    let index = IvfPqIndexBuilder::default()
        .num_partitions(2)
        .num_sub_vectors(4);
    bench
        .table
        .create_index(&["vector"], Index::IvfPq(index))
        .execute()
        .await
        .unwrap();
    bench.add(batch(0..50)).await;
    let version = bench.version().await;
    let outputs = bench
        .verify(&bench.baseline(version, version, &[]).await)
        .await;
    assert_passes(&outputs);
    assert_eq!(
        row_on(&outputs, CheckId::IndicesCovering, "vector_idx").found,
        "0 rows covered, 50 not: fewer than the 256 rows that a vector index needs to be trained; searches read all rows"
    );
    assert_eq!(
        row_on(&outputs, CheckId::Canary, "vector").found,
        "5 of 5 found themselves"
    );
}

#[tokio::test]
async fn full_text_and_scalar_indices_are_checked_for_coverage_each_on_its_own() {
    let bench = with_btree().await;
    bench
        .table
        .create_index(&["text"], Index::FTS(Default::default()))
        .execute()
        .await
        .unwrap();
    let outputs = bench.verify(&bench.baseline(4, 4, &[]).await).await;
    assert_passes(&outputs);
    for index in ["id_idx", "text_idx"] {
        assert_eq!(
            row_on(&outputs, CheckId::IndicesCovering, index).found,
            "40 rows covered"
        );
    }
}
