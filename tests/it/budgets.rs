//! Batches, and budgets that leave the rest for the next run.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::FutureExt;
use lancedb_guard::clock::Clock;
use lancedb_guard::compact;
use lancedb_guard::error::ErrorKind;
use lancedb_guard::report::compact::{
    BudgetKind, CompactOutputs, LostRace, PhaseStatus, Remaining, RemediationStatus,
};
use lancedb_guard::report::plan::NoTaskReason;
use lancedb_guard::stop::Stop;
use serde_json::{Value, json};

use crate::harness::Db;
use crate::races::compact_during;
use crate::stores::{Before, Op, Watch};
use crate::tables;

fn march() -> DateTime<Utc> {
    "2026-03-01T00:00:00Z".parse().unwrap()
}

/// Ten fragments of 100 rows.
async fn ten_fragments() -> Db {
    let db = Db::new().await;
    let table = db.create(100).await;
    tables::append_times(&table, 9, 100).await.unwrap();
    db
}

/// Five tasks of two fragments each on that table, one after the other.
fn five_tasks(fields: Value) -> Value {
    let mut all = json!({"target_rows_per_fragment": 200,
        "compaction": {"concurrency": 1, "batch_bytes": 1}});
    for (name, value) in fields.as_object().unwrap() {
        all[name] = value.clone();
    }
    all
}

async fn ids(db: &Db) -> Vec<i64> {
    tables::ids(&db.lancedb().await).await.unwrap()
}

#[tokio::test]
async fn each_batch_is_a_commit_and_the_last_one_leaves_nothing_to_do() {
    let db = ten_fragments().await;
    let outputs = db.compact(five_tasks(json!({})), Utc::now()).await;
    let stats = &outputs.compaction_stats;
    assert_eq!((stats.batches, stats.actual.tasks), (5, 5));
    assert_eq!(stats.planned, stats.actual);
    assert_eq!(outputs.baseline.after.version, 10 + 2 * 5);
    assert_eq!(outputs.baseline.committed_versions.len(), 2 * 5);
    assert_eq!(outputs.baseline.after.fragments, 5);
    assert!(outputs.checks.findings.is_empty());
    assert_eq!(outputs.remediation_status, RemediationStatus::Success);
    let again = db.compact(five_tasks(json!({})), Utc::now()).await;
    assert_eq!(again.remediation_status, RemediationStatus::NothingToDo);
    assert_eq!(db.table().await.version(), 20);
    assert_eq!(ids(&db).await, (0..1000).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_fits_into_one_batch_is_one_commit() {
    let db = ten_fragments().await;
    let fields = json!({"target_rows_per_fragment": 200});
    let outputs = db.compact(fields, Utc::now()).await;
    let stats = &outputs.compaction_stats;
    assert_eq!((stats.batches, stats.actual.tasks), (1, 5));
    assert_eq!(outputs.baseline.after.version, 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_race_is_named_with_the_operation_that_won() {
    let db = ten_fragments().await;
    let outputs = compact_during(&db, five_tasks(json!({})), |table| async move {
        tables::append(&table, 1).await.unwrap();
        tables::delete(&table, "id = 3").await.unwrap();
    })
    .await
    .unwrap();
    let won = LostRace {
        version: 12,
        operation: "Delete".to_owned(),
    };
    assert_eq!(outputs.conflicts, [won]);
    assert_eq!(outputs.compaction_stats.conflicts, 1);
    // The first task takes a third fragment to reach its target again, and so the last goes.
    assert_eq!(outputs.compaction_stats.batches, 4);
    assert_eq!(outputs.remediation_status, RemediationStatus::Success);
    assert_eq!(ids(&db).await.len(), 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_together_stay_below_what_was_approved() {
    let db = ten_fragments().await;
    let audit = json!({"target_rows_per_fragment": 200, "allowance_percent": 0});
    let approval = db.audit(audit, Utc::now()).await.approval;
    let fields = five_tasks(json!({"approval": approval}));
    let outputs = compact_during(&db, fields, |table| async move {
        tables::append_times(&table, 4, 100).await.unwrap();
    })
    .await
    .unwrap();
    let error = outputs.error.unwrap();
    assert_eq!((error.kind, error.code), (ErrorKind::PartlyDone, 6));
    assert_eq!(
        error.context["fragments_removed"],
        "approved 10, allowed 10, planned 14"
    );
    assert_eq!(outputs.compaction_stats.status, PhaseStatus::Failed);
    assert_eq!(outputs.compaction_stats.batches, 1);
    assert_eq!(outputs.baseline.after.fragments, 9 + 4);
    assert_eq!(ids(&db).await.len(), 1400);
}

fn assert_partial(outputs: &CompactOutputs) -> &Remaining {
    assert_eq!(outputs.error, None);
    assert_eq!(outputs.remediation_status, RemediationStatus::Partial);
    outputs.remaining.as_ref().unwrap()
}

#[tokio::test]
async fn what_exceeds_the_bytes_is_left_and_later_runs_finish_it() {
    let db = ten_fragments().await;
    let fields = json!({"target_rows_per_fragment": 200});
    let audit = db.audit(fields, Utc::now()).await;
    let bytes = audit.approval.bytes_to_rewrite.unwrap();
    // Two tasks of the five fit, a third does not.
    let fields = five_tasks(json!({"max_bytes_to_rewrite": bytes / 2}));
    let outputs = db.compact(fields.clone(), Utc::now()).await;
    let remaining = assert_partial(&outputs);
    assert_eq!((remaining.tasks, remaining.fragments), (3, 6));
    assert!(remaining.bytes.unwrap() > bytes / 2);
    assert_eq!(remaining.reasons, [BudgetKind::MaxBytesToRewrite]);
    assert_eq!(outputs.compaction_stats.status, PhaseStatus::Done);
    assert_eq!(outputs.compaction_stats.actual.tasks, 2);
    assert!(outputs.checks.findings.is_empty());
    let outputs = db.compact(fields.clone(), Utc::now()).await;
    assert_eq!(assert_partial(&outputs).tasks, 1);
    let outputs = db.compact(fields.clone(), Utc::now()).await;
    assert_eq!(outputs.remediation_status, RemediationStatus::Success);
    let outputs = db.compact(fields, Utc::now()).await;
    assert_eq!(outputs.remediation_status, RemediationStatus::NothingToDo);
    assert_eq!(ids(&db).await, (0..1000).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_budget_below_the_first_task_is_not_nothing_to_do() {
    let db = ten_fragments().await;
    let fields = five_tasks(json!({"max_bytes_to_rewrite": 1}));
    let outputs = db.compact(fields, Utc::now()).await;
    assert_eq!(assert_partial(&outputs).tasks, 5);
    assert!(!outputs.table_changed);
    assert_eq!(outputs.compaction_stats.status, PhaseStatus::BudgetReached);
    assert_eq!(
        outputs.compaction_stats.no_task_reason,
        Some(NoTaskReason::BudgetBelowFirstTask)
    );
    assert_eq!(db.table().await.version(), 10);
}

#[tokio::test]
async fn versions_beyond_the_budget_are_left_and_the_oldest_go_first() {
    let db = Db::with_fixture("retention").await;
    let fields = json!({"max_versions_to_prune": 2, "target_rows_per_fragment": 1});
    let outputs = db.compact(fields.clone(), march()).await;
    let remaining = assert_partial(&outputs);
    assert_eq!(remaining.versions, 1);
    assert_eq!(remaining.reasons, [BudgetKind::MaxVersionsToPrune]);
    assert_eq!(outputs.cleanup_stats.actual.versions, 2);
    let versions = db.lancedb().await.list_versions().await.unwrap();
    let versions: Vec<u64> = versions.iter().map(|v| v.version).collect();
    assert_eq!(versions, [3, 4]);
    assert_eq!(ids(&db).await.len(), 80);
    let outputs = db.compact(fields, march()).await;
    assert_eq!(outputs.remediation_status, RemediationStatus::Success);
}

#[tokio::test]
async fn nothing_is_started_once_the_time_is_used_up() {
    let db = Db::with_fixture("indexed").await;
    let version = db.table().await.version();
    let outputs = db.compact(json!({"time_budget_seconds": 0}), march()).await;
    let remaining = assert_partial(&outputs);
    assert_eq!(remaining.reasons, [BudgetKind::TimeBudgetSeconds]);
    assert_eq!(remaining.versions, 6);
    assert!(!remaining.indices.is_empty());
    assert_eq!(outputs.index_merge.status, PhaseStatus::BudgetReached);
    assert_eq!(outputs.cleanup_stats.status, PhaseStatus::BudgetReached);
    assert!(!outputs.table_changed);
    assert_eq!(db.table().await.version(), version);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_has_begun_is_finished_and_committed_when_the_time_is_used_up() {
    let db = ten_fragments().await;
    let slow: Before = Arc::new(|op, path| {
        async move {
            if op == Op::Write && path.contains("/data/") {
                tokio::time::sleep(Duration::from_millis(1100)).await;
            }
        }
        .boxed()
    });
    let table = db.open_watched(&Watch::before(slow)).await;
    let fields = five_tasks(json!({"time_budget_seconds": 1}));
    let spec = serde_json::from_str(&db.spec("compact", fields)).unwrap();
    let clock = Clock {
        evaluated_at: Utc::now(),
    };
    let outputs = compact::run(&spec, table, &clock, &Stop::default())
        .await
        .unwrap();
    assert_eq!(assert_partial(&outputs).tasks, 4);
    assert_eq!(outputs.compaction_stats.actual.tasks, 1);
    assert_eq!(db.table().await.counts().await.unwrap().fragments, 9);
    assert_eq!(ids(&db).await, (0..1000).collect::<Vec<_>>());
}
