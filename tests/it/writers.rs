//! Other writers: how busy the audit says they are, and a step that waits for quiet.

use std::collections::BTreeMap;

use chrono::{TimeDelta, Utc};
use lancedb_guard::error::ErrorKind;
use lancedb_guard::report::compact::RemediationStatus;
use serde_json::json;

use crate::harness::Db;
use crate::tables;

async fn busy() -> Db {
    let db = Db::new().await;
    let table = db.create(100).await;
    tables::append_times(&table, 2, 100).await.unwrap();
    tables::delete(&table, "id = 3").await.unwrap();
    tables::delete(&table, "id = 103").await.unwrap();
    db
}

#[tokio::test]
async fn the_audit_tells_what_others_committed_and_leaves_its_own_out() {
    let db = busy().await;
    let before = db.audit(json!({}), Utc::now()).await;
    let before = before.audit_manifest.writers.unwrap();
    assert_eq!(before.versions_examined, 5);
    assert_eq!(before.commits_last_hour, 5);
    assert!(before.last_commit_age_seconds.unwrap() < 3600);
    let operations = [("Append", 2), ("Delete", 2), ("Overwrite", 1)];
    let operations = operations.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(before.operations, BTreeMap::from(operations));
    assert_eq!(before.conflicting, 3);

    db.compact(json!({}), Utc::now()).await;
    let after = db.audit(json!({}), Utc::now()).await;
    let after = after.audit_manifest.writers.unwrap();
    assert_eq!(after.versions_examined, 7);
    assert_eq!((after.versions_last_hour, after.commits_last_hour), (7, 5));
    assert_eq!(after.operations, before.operations);

    let later = db.audit(json!({}), Utc::now() + TimeDelta::hours(2)).await;
    let later = later.audit_manifest.writers.unwrap();
    assert_eq!((later.commits_last_hour, later.conflicting), (0, 0));
    assert!(later.last_commit_age_seconds.unwrap() > 3600);
    assert!(later.operations.is_empty());
}

#[tokio::test]
async fn versions_of_the_last_hour_are_counted_beyond_the_newest_that_are_read() {
    let db = Db::new().await;
    let table = db.create(1).await;
    tables::append_times(&table, 14, 1).await.unwrap();
    let writers = db.audit(json!({}), Utc::now()).await.audit_manifest.writers;
    let writers = writers.unwrap();
    assert_eq!(
        (writers.versions_examined, writers.versions_last_hour),
        (10, 15)
    );
    assert_eq!(writers.commits_last_hour, 10);
    assert_eq!(writers.operations.values().sum::<u64>(), 10);
}

#[tokio::test]
async fn a_step_that_waits_for_quiet_refuses_beside_writers_and_changes_nothing() {
    let db = busy().await;
    for dry_run in [true, false] {
        let fields = json!({"quiet_minutes": 10, "dry_run": dry_run});
        let error = db.try_compact(fields, Utc::now()).await.unwrap_err();
        assert_eq!((error.kind, error.code), (ErrorKind::WritersActive, 4));
        assert!(error.retryable);
        assert_eq!(error.context["last_commit_operation"], "Delete");
        assert_eq!(error.context["last_commit_version"], "5");
    }
    assert_eq!(db.table().await.version(), 5);
    // The clock of a writer that is ahead does not make its commits old.
    let fields = json!({"quiet_minutes": 10});
    let past = Utc::now() - TimeDelta::minutes(5);
    assert!(db.try_compact(fields.clone(), past).await.is_err());
    let later = Utc::now() + TimeDelta::minutes(11);
    let outputs = db.compact(fields, later).await;
    assert_eq!(outputs.remediation_status, RemediationStatus::Success);
}

#[tokio::test]
async fn commits_of_this_tool_are_no_other_writers() {
    let db = Db::new().await;
    let table = db.create(100).await;
    tables::append_times(&table, 19, 100).await.unwrap();
    // More commits than are read at once: ten batches of two each.
    let fields = json!({"target_rows_per_fragment": 200,
        "compaction": {"concurrency": 1, "batch_bytes": 1}});
    let outputs = db.compact(fields, Utc::now()).await;
    assert_eq!(outputs.baseline.committed_versions.len(), 20);
    let quiet = json!({"quiet_minutes": 10});
    // What others committed before is old by then, what the run committed is not: it is the
    // order that counts, not the clock of the test.
    let error = db.try_compact(quiet.clone(), Utc::now()).await.unwrap_err();
    assert_eq!(error.context["last_commit_version"], "20");
    let later = Utc::now() + TimeDelta::minutes(11);
    let outputs = db.compact(quiet, later).await;
    assert_eq!(outputs.error, None);

    let writers = db.audit(json!({}), Utc::now()).await.audit_manifest.writers;
    let writers = writers.unwrap();
    assert_eq!((writers.commits_last_hour, writers.conflicting), (0, 0));
    assert_eq!(writers.last_commit_age_seconds, None);
}
