//! Schema, rows, fragments and tombstones: one version against another.

use lancedb_guard::report::verify::{CheckId, CheckStatus, ConcurrentCommit};
use serde_json::json;

use super::bench::*;

async fn compacted() -> Bench {
    let bench = Bench::with_tombstones().await;
    bench.compact().await;
    assert_eq!(bench.version().await, 9);
    bench
}

#[tokio::test]
async fn a_healthy_compaction_is_verified() {
    let bench = compacted().await;
    let outputs = bench.verify(&bench.baseline(7, 9, &[8, 9]).await).await;
    assert_passes(&outputs);
    let order: Vec<CheckId> = outputs.checks.iter().map(|row| row.check).collect();
    assert_eq!(order, ORDER);
    assert_eq!(
        ended(&outputs, CheckStatus::Skipped),
        [CheckId::IndicesCovering]
    );
    assert_eq!(outputs.post_fragment_count, 1);
    assert_eq!(outputs.post_tombstone_count, 0);
    assert!(outputs.canary_latency_ms.unwrap() > 0.0);
    assert_eq!(outputs.concurrent_commits, []);
    assert_eq!(outputs.warnings, [""; 0]);
    assert_eq!(
        row(&outputs, CheckId::Schema).found,
        "the same 3 fields and metadata entries"
    );
    assert_eq!(
        row(&outputs, CheckId::Rows).expected,
        "72 rows as in version 7"
    );
    assert_eq!(row(&outputs, CheckId::Rows).found, "72 rows in version 9");
    assert_eq!(
        row(&outputs, CheckId::Fragments).found,
        "1 fragment in version 9"
    );
    assert_eq!(
        row(&outputs, CheckId::Tombstones).expected,
        "at most 0 deleted rows: 48 in version 7, less 48 as planned"
    );
    assert_eq!(
        outputs.summary,
        "Version 9 of documents is verified: 8 checks passed, 1 could not be applied. It has 72 rows in 1 fragment and 0 deleted rows."
    );
    let record = outputs.audit_record;
    assert!(record.verification_passed);
    assert_eq!(record.version, 9);
    assert_eq!((record.pre_fragments, record.post_fragments), (Some(6), 1));
    assert_eq!(
        (record.pre_tombstones, record.post_tombstones),
        (Some(48), 0)
    );
    assert_eq!(record.failed_checks, []);
}

#[tokio::test]
async fn an_append_after_compaction_is_none_of_its_business() {
    let bench = compacted().await;
    let baseline = bench.baseline(7, 9, &[8, 9]).await;
    bench.add(batch(200..210)).await;
    let outputs = bench.verify(&baseline).await;
    assert_passes(&outputs);
    assert_eq!(row(&outputs, CheckId::Rows).found, "72 rows in version 9");
    assert_eq!(outputs.concurrent_commits, []);
    assert_eq!(outputs.post_fragment_count, 2);
}

#[tokio::test]
async fn a_concurrent_append_is_accounted_for_and_named() {
    let bench = compacted().await;
    bench.add(batch(200..210)).await;
    let mut baseline = bench.baseline(7, 10, &[8, 9]).await;
    baseline.fragments_expected = 1;
    let outputs = bench.verify(&baseline).await;
    assert_passes(&outputs);
    assert_eq!(
        outputs.concurrent_commits,
        [ConcurrentCommit {
            version: 10,
            operation: "Append".to_owned()
        }]
    );
    assert_eq!(
        row(&outputs, CheckId::Rows).expected,
        "82 rows: 72 as in version 7, and +10 by other writers"
    );
    assert_eq!(
        row(&outputs, CheckId::Fragments).expected,
        "1 fragment as planned, and +1 by other writers"
    );
}

#[tokio::test]
async fn an_append_that_a_second_plan_already_counted_is_not_counted_twice() {
    let bench = Bench::with_tombstones().await;
    bench.add(batch(200..210)).await;
    bench.compact().await;
    let outputs = bench.verify(&bench.baseline(7, 10, &[9, 10]).await).await;
    assert_passes(&outputs);
    assert_eq!(
        row(&outputs, CheckId::Fragments).found,
        "1 fragment in version 10"
    );
    assert_eq!(outputs.concurrent_commits.len(), 1);
}

#[tokio::test]
async fn concurrent_deletes_and_overwrites_are_accounted_for_exactly() {
    let bench = compacted().await;
    bench.table.delete("id < 20").await.unwrap();
    let mut baseline = bench.baseline(7, 10, &[8, 9]).await;
    baseline.tombstones_to_clear = 48;
    let outputs = bench.verify(&baseline).await;
    assert_passes(&outputs);
    assert_eq!(
        row(&outputs, CheckId::Rows).expected,
        "60 rows: 72 as in version 7, and -12 by other writers"
    );
    assert_eq!(
        row(&outputs, CheckId::Tombstones).found,
        "12 deleted rows in version 10"
    );

    let table = bench.table.clone();
    table
        .add(batch(0..5))
        .mode(lancedb::table::AddDataMode::Overwrite)
        .execute()
        .await
        .unwrap();
    let mut baseline = bench.baseline(7, 11, &[8, 9]).await;
    baseline.fragments_expected = 1;
    let outputs = bench.verify(&baseline).await;
    assert_passes(&outputs);
    assert_eq!(
        outputs.concurrent_commits[1],
        ConcurrentCommit {
            version: 11,
            operation: "Overwrite".to_owned()
        }
    );
}

#[tokio::test]
async fn a_delete_passed_off_as_the_compactions_own_fails_rows() {
    let bench = compacted().await;
    bench.table.delete("id = 30").await.unwrap();
    let mut baseline = bench.baseline(7, 10, &[8, 9, 10]).await;
    baseline.tombstones_to_clear = 47;
    let outputs = bench.verify(&baseline).await;
    assert_fails_by(&outputs, &[CheckId::Rows, CheckId::Contents]);
    assert_eq!(
        row(&outputs, CheckId::Rows).found,
        "71 rows in version 10; version 10 is called a commit of the compaction, but it is a Delete"
    );
    assert_eq!(
        outputs.audit_record.failed_checks,
        [CheckId::Rows, CheckId::Contents]
    );
}

#[tokio::test]
async fn a_baseline_that_lies_fails() {
    let bench = compacted().await;
    let honest = bench.baseline(7, 9, &[8, 9]).await;
    let mut baseline = honest.clone();
    baseline.before.rows = 73;
    let outputs = bench.verify(&baseline).await;
    assert_fails_by(&outputs, &[CheckId::Rows]);
    assert_eq!(
        row(&outputs, CheckId::Rows).found,
        "72 rows in version 9; the baseline says 73 rows in version 7, which has 72"
    );
    let mut baseline = honest.clone();
    baseline.after.fragments = 2;
    assert_fails_by(&bench.verify(&baseline).await, &[CheckId::Fragments]);
    let mut baseline = honest;
    baseline.before.tombstones = 47;
    assert_fails_by(&bench.verify(&baseline).await, &[CheckId::Tombstones]);
}

#[tokio::test]
async fn fragments_that_are_not_as_planned_fail() {
    let bench = compacted().await;
    let mut baseline = bench.baseline(7, 9, &[8, 9]).await;
    baseline.fragments_expected = 2;
    let outputs = bench.verify(&baseline).await;
    assert_fails_by(&outputs, &[CheckId::Fragments]);
    assert_eq!(
        row(&outputs, CheckId::Fragments).expected,
        "2 fragments as planned"
    );
}

#[tokio::test]
async fn tombstones_that_were_not_cleared_fail() {
    let bench = Bench::with_tombstones().await;
    let mut baseline = bench.baseline(7, 7, &[]).await;
    baseline.tombstones_to_clear = 48;
    let outputs = bench.verify(&baseline).await;
    assert_fails_by(&outputs, &[CheckId::Tombstones]);
    assert_eq!(
        row(&outputs, CheckId::Tombstones).found,
        "48 deleted rows in version 7"
    );
}

#[tokio::test]
async fn a_schema_that_the_compaction_changed_fails() {
    let bench = compacted().await;
    bench.dataset().await.drop_columns(&["text"]).await.unwrap();
    let outputs = bench
        .verify(&bench.baseline(7, 10, &[8, 9, 10]).await)
        .await;
    assert_fails_by(
        &outputs,
        &[CheckId::Schema, CheckId::Rows, CheckId::Contents],
    );
    assert_eq!(
        row(&outputs, CheckId::Schema).found,
        r#"without "text: string nullable #2""#
    );
}

#[tokio::test]
async fn a_schema_that_another_writer_changed_passes_and_is_named() {
    let bench = compacted().await;
    bench.dataset().await.drop_columns(&["text"]).await.unwrap();
    let outputs = bench.verify(&bench.baseline(7, 10, &[8, 9]).await).await;
    assert_passes(&outputs);
    assert_eq!(
        row(&outputs, CheckId::Schema).found,
        r#"without "text: string nullable #2"; changed by another writer in version 10"#
    );
}

#[tokio::test]
async fn a_pruned_version_before_compaction_skips_what_needs_it() {
    let bench = compacted().await;
    let baseline = bench.baseline(7, 9, &[8, 9]).await;
    bench.forget(7);
    let outputs = bench.verify(&baseline).await;
    assert_passes(&outputs);
    let needs_it = [CheckId::Schema, CheckId::Fragments, CheckId::Tombstones];
    assert_eq!(ended(&outputs, CheckStatus::Skipped)[..3], needs_it);
    for check in needs_it {
        assert_eq!(
            row(&outputs, check).found,
            "version 7 from before compaction was pruned"
        );
    }
}

#[tokio::test]
async fn rows_are_held_to_the_baseline_where_the_version_before_is_gone() {
    let bench = compacted().await;
    let mut baseline = bench.baseline(7, 9, &[8, 9]).await;
    bench.forget(7);
    let outputs = bench.verify(&baseline).await;
    assert_eq!(row(&outputs, CheckId::Rows).status, CheckStatus::Passed);
    baseline.before.rows = 100_000;
    let outputs = bench.verify(&baseline).await;
    assert!(!outputs.verification_passed);
    assert_eq!(row(&outputs, CheckId::Rows).status, CheckStatus::Failed);
}

#[tokio::test]
async fn a_version_that_never_was_is_as_one_that_was_pruned() {
    let bench = compacted().await;
    let mut baseline = bench.baseline(7, 9, &[8, 9]).await;
    baseline.before.version = 0;
    let outputs = bench.verify(&baseline).await;
    assert_passes(&outputs);
    assert_eq!(row(&outputs, CheckId::Rows).status, CheckStatus::Skipped);
}

#[tokio::test]
async fn a_pruned_version_after_compaction_is_stood_in_for_by_the_current_one() {
    let bench = compacted().await;
    let baseline = bench.baseline(7, 9, &[8, 9]).await;
    bench.add(batch(200..210)).await;
    bench.forget(9);
    let outputs = bench.verify(&baseline).await;
    assert_passes(&outputs);
    assert_eq!(
        row(&outputs, CheckId::Rows).found,
        "82 rows in the current version 10, as the one after compaction is gone"
    );
    assert_eq!(
        outputs.warnings,
        ["the version after compaction was pruned; version 10 was compared instead"]
    );
    assert_eq!(outputs.concurrent_commits.len(), 1);
}

#[tokio::test]
async fn a_commit_that_was_pruned_leaves_a_difference_unexplained_not_failed() {
    let bench = compacted().await;
    bench.add(batch(200..210)).await;
    bench.add(batch(210..220)).await;
    let baseline = bench.baseline(7, 11, &[8, 9]).await;
    bench.forget(10);
    let outputs = bench.verify(&baseline).await;
    assert_passes(&outputs);
    assert_eq!(row(&outputs, CheckId::Rows).status, CheckStatus::Skipped);
    assert_eq!(
        row(&outputs, CheckId::Rows).found,
        "92 rows in version 11; what other writers did in versions 10 and 11 cannot be told, because it or the version before was pruned"
    );
}

#[tokio::test]
async fn a_table_made_anew_since_fails() {
    let bench = Bench::new(batch(0..20)).await;
    let mut baseline = bench.baseline(1, 1, &[]).await;
    baseline.before.version = 7;
    baseline.after.version = 9;
    let outputs = bench.verify(&baseline).await;
    assert_fails_by(
        &outputs,
        &[
            CheckId::Schema,
            CheckId::Rows,
            CheckId::Fragments,
            CheckId::Tombstones,
        ],
    );
}

#[tokio::test]
async fn without_a_baseline_counts_must_not_have_grown() {
    let bench = compacted().await;
    let outputs = bench
        .verify_with(json!({"pre_fragments": 6, "pre_tombstones": 48}))
        .await;
    assert_passes(&outputs);
    assert_eq!(
        row(&outputs, CheckId::Fragments).expected,
        "at most 6 fragments, as many as before (without a baseline the plan is not known)"
    );
    assert_eq!(row(&outputs, CheckId::Schema).status, CheckStatus::Skipped);
    assert_eq!(outputs.audit_record.pre_fragments, Some(6));

    let bench = Bench::with_tombstones().await;
    let outputs = bench
        .verify_with(json!({"pre_fragments": 5, "pre_tombstones": 47}))
        .await;
    assert_fails_by(&outputs, &[CheckId::Fragments, CheckId::Tombstones]);
}
