//! A step does no more than somebody approved.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use lancedb_guard::error::ErrorKind;
use lancedb_guard::report::approval::{Approval, ApprovalStatus};
use lancedb_guard::report::compact::{PhaseStatus, RemediationStatus};
use serde_json::{Value, json};

use crate::harness::Db;
use crate::races::compact_during;
use crate::{guard, tables};

fn march() -> DateTime<Utc> {
    "2026-03-01T00:00:00Z".parse().unwrap()
}

/// What an audit puts out for approval, as JSON.
async fn approval(db: &Db, fields: Value, at: DateTime<Utc>) -> Value {
    serde_json::to_value(db.audit(fields, at).await.approval).unwrap()
}

async fn fragments(count: usize) -> Db {
    let db = Db::new().await;
    let table = db.create(100).await;
    tables::append_times(&table, count - 1, 100).await.unwrap();
    db
}

/// The refusal of a compact step, with the version of the table afterwards.
async fn refusal(db: &Db, fields: Value) -> (String, u64) {
    let error = db.try_compact(fields, march()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::PlanExceedsApproval);
    assert_eq!((error.code, error.retryable), (4, false));
    (
        error.context["exceeded"].clone(),
        db.table().await.version(),
    )
}

#[tokio::test]
async fn what_the_audit_puts_out_is_what_compact_takes() {
    let db = Db::with_fixture("indexed").await;
    let fields = json!({"prune_estimate": "always", "allowance_percent": 0});
    let approved = approval(&db, fields, march()).await;
    let typed: Approval = serde_json::from_value(approved.clone()).unwrap();
    assert_eq!(typed.read_version, 7);
    assert_eq!(typed.versions_to_prune, 6);
    assert!(typed.bytes_to_prune.unwrap() > 0 && typed.bytes_to_rewrite.unwrap() > 0);
    assert_eq!((typed.fragments_added, typed.allowance_percent), (1, 0));
    for dry_run in [true, false] {
        let fields = json!({"approval": approved, "dry_run": dry_run});
        let outputs = db.compact(fields, march()).await;
        assert_eq!(outputs.approval_status, ApprovalStatus::WithinAllowance);
        assert_eq!(outputs.error, None);
        assert_eq!(outputs.plan.plan_id, typed.plan_id);
    }
    assert_eq!(db.table().await.counts().await.unwrap().fragments, 1);
}

#[tokio::test]
async fn a_run_without_an_approval_is_allowed_and_says_so() {
    let db = fragments(3).await;
    let outputs = db.compact(json!({}), Utc::now()).await;
    assert_eq!(outputs.approval_status, ApprovalStatus::NotGiven);
    assert_eq!(outputs.remediation_status, RemediationStatus::Success);
}

#[tokio::test]
async fn appends_inside_the_allowance_are_compacted_as_well() {
    let db = fragments(8).await;
    let approved = approval(&db, json!({}), march()).await;
    tables::append(&db.lancedb().await, 100).await.unwrap();
    let outputs = db.compact(json!({"approval": approved}), march()).await;
    assert_eq!(outputs.compaction_stats.actual.fragments_removed, 9);
}

#[tokio::test]
async fn a_plan_beyond_the_allowance_is_refused_before_anything_is_changed() {
    let db = fragments(8).await;
    let approved = approval(&db, json!({}), march()).await;
    tables::append_times(&db.lancedb().await, 3, 100)
        .await
        .unwrap();
    for dry_run in [true, false] {
        let fields = json!({"approval": approved, "dry_run": dry_run});
        let exceeded = "bytes_to_rewrite, fragments_removed".to_owned();
        assert_eq!(refusal(&db, fields).await, (exceeded, 11));
    }
    let error = db
        .try_compact(json!({"approval": approved}), march())
        .await
        .unwrap_err();
    assert_eq!(
        error.context["fragments_removed"],
        "approved 8, allowed 10, planned 11"
    );
    let side_by_side: [Approval; 2] = ["approved_plan", "planned"]
        .map(|name| serde_json::from_str(&error.context[name]).unwrap());
    assert_eq!(side_by_side.map(|plan| plan.fragments_removed), [8, 11]);
}

#[tokio::test]
async fn an_index_that_came_since_the_approval_is_not_touched() {
    let db = fragments(3).await;
    let approved = approval(&db, json!({}), march()).await;
    tables::btree(&db.lancedb().await, "id").await.unwrap();
    let fields = json!({"approval": approved});
    assert_eq!(refusal(&db, fields).await, ("indices".to_owned(), 4));
}

#[tokio::test]
async fn a_prune_beyond_the_approved_bytes_is_refused_before_the_rewrite() {
    let db = Db::with_fixture("retention").await;
    let fields = json!({"prune_estimate": "always"});
    let mut approved = approval(&db, fields, march()).await;
    approved["bytes_to_prune"] = json!(1);
    let fields = json!({"approval": approved});
    assert_eq!(refusal(&db, fields).await, ("bytes_to_prune".to_owned(), 4));
    // A prune that is switched off needs no approval.
    let fields = json!({"approval": approved, "prune": {"enabled": false}});
    let outputs = db.compact(fields, march()).await;
    assert_eq!(outputs.cleanup_stats.status, PhaseStatus::SwitchedOff);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_after_a_lost_race_is_bound_as_well() {
    let db = fragments(5).await;
    let approved = approval(&db, json!({"allowance_percent": 0}), march()).await;
    let error = compact_during(&db, json!({"approval": approved}), |table| async move {
        tables::delete(&table, "id = 3").await.unwrap();
        tables::append(&table, 100).await.unwrap();
    })
    .await
    .unwrap_err();
    assert_eq!(error.kind, ErrorKind::PlanExceedsApproval);
    assert_eq!(
        error.context["fragments_removed"],
        "approved 5, allowed 5, planned 6"
    );
    assert_eq!(db.table().await.counts().await.unwrap().fragments, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prune_that_grew_during_the_run_deletes_nothing() {
    let db = Db::with_fixture("tagged").await;
    let approved = approval(&db, json!({"allowance_percent": 0}), Utc::now()).await;
    assert_eq!(approved["versions_to_prune"], 5);
    let outputs = compact_during(&db, json!({"approval": approved}), |table| async move {
        table.tags().await.unwrap().delete("keep").await.unwrap();
    })
    .await
    .unwrap();
    let error = outputs.error.unwrap();
    assert_eq!((error.kind, error.code), (ErrorKind::PartlyDone, 6));
    assert_eq!(error.context["cause"], "plan_exceeds_approval");
    assert_eq!(
        error.context["versions_to_prune"],
        "approved 5, allowed 5, planned 6"
    );
    assert_eq!(outputs.compaction_stats.status, PhaseStatus::Done);
    let versions = db.lancedb().await.list_versions().await.unwrap();
    let versions: BTreeSet<u64> = versions.iter().map(|v| v.version).collect();
    assert_eq!(versions, (1..=9).collect());
}

#[test]
fn a_flow_passes_the_approval_on_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    tables::copy_table(&tables::fixtures(), "bloated", folder.path(), "t").unwrap();
    let spec = |step: &str, fields: Value| {
        let mut spec = json!({"spec_version": 1, "step": step, "table_name": "t",
            "db_uri": folder.path(), "evaluated_at": "2026-01-12T12:00:00Z"});
        for (name, value) in fields.as_object().unwrap() {
            spec[name] = value.clone();
        }
        guard::run(spec.to_string().as_bytes(), folder.path())
    };
    let mut approved =
        spec("audit", json!({"prune_estimate": "always"})).outputs["approval"].take();
    approved["fragments_removed"] = json!(1);
    let run = spec("compact", json!({"approval": approved}));
    assert_eq!(run.code, 4);
    guard::snapshot(
        "ends_plan_exceeds_approval",
        &guard::renamed(&run.stdout, folder.path(), "/data/lancedb"),
    );
    approved["fragments_removed"] = json!(1000);
    let run = spec("compact", json!({"approval": approved}));
    assert_eq!(run.code, 0);
    assert_eq!(run.outputs["approval_status"], "within_allowance");
}
