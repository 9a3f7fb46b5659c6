//! Lost races: planned again, and given up when they go on.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use chrono::Utc;
use lancedb_guard::emit::{self, Format};
use lancedb_guard::error::ErrorKind;
use lancedb_guard::report::compact::{PhaseStatus, RemediationStatus};
use lancedb_guard::report::outcome::Outcome;
use lancedb_guard::spec::Step;
use serde_json::json;

use super::{assert_whole, compact_during, compact_while, five_fragments};
use crate::harness::{Db, ahead, files_in, one_hour};
use crate::stores::Op;
use crate::{guard, tables};

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_race_is_planned_again_and_won() {
    let db = five_fragments().await;
    let outputs = compact_during(&db, json!({}), |table| async move {
        tables::delete(&table, "id = 3").await.unwrap();
    })
    .await
    .unwrap();
    assert_eq!(outputs.remediation_status, RemediationStatus::Success);
    assert_eq!(outputs.compaction_stats.conflicts, 1);
    assert_eq!(outputs.baseline.after.rows, 499);
    assert_eq!(outputs.baseline.after.fragments, 1);
    assert!(outputs.checks.findings.is_empty());
    // The file of the lost attempt is left: no version refers to it, and it may not be deleted.
    let data = db.table_path().join("data");
    assert_eq!(files_in(&data), 5 + 1 + 1);
    db.compact(one_hour(), ahead()).await;
    assert_eq!(files_in(&data), 1 + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_race_lost_for_good_exits_with_five_and_is_retryable() {
    let db = five_fragments().await;
    let error = compact_during(&db, json!({"conflict_retries": 0}), |table| async move {
        tables::delete(&table, "id = 3").await.unwrap();
    })
    .await
    .unwrap_err();
    assert_eq!(error.kind, ErrorKind::CommitConflict);
    assert_eq!(error.code, 5);
    assert!(error.retryable);
    let outcome = Outcome::failure(Some(Step::Compact), error);
    guard::snapshot(
        "ends_commit_conflict",
        &emit::render(Format::Kestra, &outcome, &[]),
    );
    assert_eq!(tables::ids(&db.lancedb().await).await.unwrap().len(), 499);
}

/// Deletes one more row of every fragment each time it is called.
fn delete_some() -> impl Fn(lancedb::Table) -> futures::future::BoxFuture<'static, ()> {
    let next = AtomicI64::new(0);
    move |table| {
        let id = next.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            tables::delete(&table, &format!("id % 100 = {id}"))
                .await
                .unwrap();
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_committed_stays_when_every_later_race_is_lost() {
    let db = Db::new().await;
    let table = db.create(100).await;
    tables::append_times(&table, 9, 100).await.unwrap();
    let files = AtomicUsize::new(0);
    // The first batch is left alone; every attempt at the second meets a delete.
    let at = move |op, path: &str| {
        op == Op::Write && path.contains("/data/") && files.fetch_add(1, Ordering::SeqCst) > 0
    };
    let fields = json!({"target_rows_per_fragment": 200, "conflict_retries": 2,
        "compaction": {"concurrency": 1, "batch_bytes": 1}});
    let (outputs, _) = compact_while(&db, fields, Utc::now(), at, delete_some()).await;
    let outputs = outputs.unwrap();
    let error = outputs.error.as_ref().unwrap();
    assert_eq!((error.kind, error.code), (ErrorKind::CommitConflict, 5));
    assert!(error.retryable);
    assert_eq!(error.context["races_lost"], "3");
    assert_eq!(error.context["failed_phase"], "compaction");
    assert_eq!(outputs.remediation_status, RemediationStatus::Partial);
    assert_eq!(outputs.compaction_stats.batches, 1);
    assert_eq!(outputs.compaction_stats.conflicts, 3);
    assert_eq!(outputs.compaction_stats.actual.fragments_removed, 2);
    let operations: Vec<&str> = outputs
        .conflicts
        .iter()
        .map(|race| race.operation.as_str())
        .collect();
    assert_eq!(operations, ["Delete"; 3]);
    assert_eq!(outputs.index_catch_up.status, PhaseStatus::Skipped);
    assert_eq!(outputs.checks.status, PhaseStatus::Skipped);
    assert_eq!(outputs.cleanup_stats.status, PhaseStatus::Skipped);
    assert_eq!(db.table().await.counts().await.unwrap().fragments, 9);
    assert_whole(&db, (0..1000).filter(|id| id % 100 > 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_compactors_at_once_lose_no_row_and_converge() {
    let db = Db::new().await;
    let table = db.create(100).await;
    tables::append_times(&table, 29, 100).await.unwrap();
    let runs = (0..4).map(|_| db.compact(json!({}), Utc::now()));
    let outputs = futures::future::join_all(runs).await;
    let won = outputs
        .iter()
        .filter(|o| o.compaction_stats.actual.fragments_removed == 30)
        .count();
    assert_eq!(won, 1);
    assert!(outputs.iter().all(|o| o.error.is_none()));
    let counts = db.table().await.counts().await.unwrap();
    assert_eq!((counts.fragments, counts.rows), (1, 3000));
    assert_eq!(
        tables::ids(&db.lancedb().await).await.unwrap(),
        (0..3000).collect::<Vec<_>>()
    );
}
