//! What a prune keeps, and what a dry run leaves alone.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Utc};
use lancedb_guard::error::ErrorKind;
use lancedb_guard::report::compact::{PhaseStatus, RemediationStatus};
use serde_json::json;

use crate::harness::{Db, ahead, one_hour};
use crate::tables;

fn at(time: &str) -> DateTime<Utc> {
    time.parse().unwrap()
}

/// The versions that exist.
async fn versions(db: &Db) -> Vec<u64> {
    let versions = db.lancedb().await.list_versions().await.unwrap();
    versions.iter().map(|v| v.version).collect()
}

/// Nothing but the prune, so that the versions stay as the fixture numbers them.
fn prune_only(hours: u64) -> serde_json::Value {
    json!({"stale_version_retention_hours": hours, "target_rows_per_fragment": 1})
}

#[tokio::test]
async fn the_version_that_was_current_at_the_cutoff_is_kept() {
    // v1 and v2 on January 5, v3 and v4 on January 9: v2 was current for the days between.
    let db = Db::with_fixture("retention").await;
    let outputs = db.compact(prune_only(48), at("2026-01-09T13:00:00Z")).await;
    assert_eq!(outputs.cleanup_stats.oldest_kept, 2);
    assert_eq!(outputs.cleanup_stats.actual.versions, 1);
    assert_eq!(versions(&db).await, [2, 3, 4]);
}

#[tokio::test]
async fn a_version_superseded_exactly_at_the_cutoff_is_kept() {
    // v2 was superseded on January 9 at 11:00.
    let db = Db::with_fixture("retention").await;
    db.compact(prune_only(1), at("2026-01-09T12:00:00Z")).await;
    assert_eq!(versions(&db).await, [2, 3, 4]);
    db.compact(prune_only(1), at("2026-01-09T12:00:01Z")).await;
    assert_eq!(versions(&db).await, [3, 4]);
}

#[tokio::test]
async fn keeps_the_version_that_compaction_replaced() {
    let db = Db::with_fixture("retention").await;
    let outputs = db
        .compact(
            json!({"stale_version_retention_hours": 1}),
            at("2026-03-01T00:00:00Z"),
        )
        .await;
    // v4 was current until a moment ago, whenever it was committed.
    assert_eq!(outputs.cleanup_stats.actual.versions, 3);
    assert_eq!(versions(&db).await, [4, 5, 6]);
}

#[tokio::test]
async fn keeps_tagged_versions_and_names_them() {
    let db = Db::with_fixture("tagged").await;
    let audit = db.audit(json!({}), at("2026-03-01T00:00:00Z")).await;
    assert_eq!(audit.audit_manifest.versions.stale, 6);
    assert_eq!(audit.audit_manifest.versions.prunable, 5);
    let outputs = db.compact(json!({}), at("2026-03-01T00:00:00Z")).await;
    assert_eq!(outputs.cleanup_stats.actual.versions, 5);
    assert_eq!(
        outputs.cleanup_stats.note.as_deref(),
        Some("tags or branches hold back 1 stale version")
    );
    assert_eq!(versions(&db).await, [2, 7, 8, 9]);
}

#[tokio::test]
async fn keeps_the_version_that_a_branch_starts_from() {
    let db = Db::with_fixture("retention").await;
    let branch = tables::branch(&db.lancedb().await, "experiment", 2)
        .await
        .unwrap();
    let outputs = db.compact(json!({}), at("2026-03-01T00:00:00Z")).await;
    assert_eq!(
        outputs.cleanup_stats.kept_refs.branches[0].name,
        "experiment"
    );
    assert!(outputs.cleanup_stats.kept_refs.branches[0].holds_back);
    assert_eq!(versions(&db).await, [2, 4, 5, 6]);
    assert_eq!(tables::ids(&branch).await.unwrap().len(), 40);
}

#[tokio::test]
async fn a_prune_that_is_switched_off_deletes_nothing() {
    let db = Db::with_fixture("retention").await;
    let outputs = db
        .compact(
            json!({"prune": {"enabled": false}}),
            at("2026-03-01T00:00:00Z"),
        )
        .await;
    assert_eq!(outputs.cleanup_stats.status, PhaseStatus::SwitchedOff);
    assert_eq!(versions(&db).await, [1, 2, 3, 4, 5, 6]);
}

/// Every file under a folder with its contents.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            files.insert(path.to_string_lossy().into_owned(), bytes);
        }
    }
    files
}

#[tokio::test]
async fn a_dry_run_plans_everything_and_changes_nothing() {
    let db = Db::with_fixture("indexed").await;
    let before = contents(&db.table_path());
    let fields = json!({"dry_run": true});
    let outputs = db.compact(fields, at("2026-03-01T00:00:00Z")).await;
    assert_eq!(outputs.remediation_status, RemediationStatus::DryRun);
    assert!(!outputs.table_changed);
    assert_eq!(outputs.index_merge.status, PhaseStatus::Planned);
    assert_eq!(outputs.compaction_stats.status, PhaseStatus::Planned);
    assert_eq!(outputs.compaction_stats.planned.fragments_after, 1);
    assert_eq!(outputs.cleanup_stats.status, PhaseStatus::Planned);
    assert_eq!(outputs.cleanup_stats.planned.versions, 6);
    assert_eq!(db.table().await.version(), 7);
    assert!(contents(&db.table_path()) == before, "a file was changed");
}

#[tokio::test]
async fn an_audit_changes_nothing() {
    let db = Db::with_fixture("aged").await;
    let before = contents(&db.table_path());
    let fields = json!({"prune_estimate": "always"});
    db.audit(fields, at("2026-03-01T00:00:00Z")).await;
    assert!(contents(&db.table_path()) == before, "a file was changed");
}

#[tokio::test]
async fn an_old_manifest_that_cannot_be_read_leaves_the_estimate_unknown() {
    let db = Db::with_fixture("bloated").await;
    let old = format!("_versions/{:020}.manifest", u64::MAX - 7);
    std::fs::write(db.table_path().join(old), b"not a manifest").unwrap();
    let fields = json!({"prune_estimate": "always"});
    let audit = db.audit(fields, at("2026-03-01T00:00:00Z")).await;
    assert_eq!(audit.plan.prune.estimate, None);
    assert_eq!(audit.unknown[0].fact, "plan.prune.estimate");
    assert_eq!(audit.fragment_count, 30);
}

#[tokio::test]
async fn a_damaged_table_is_reported_and_neither_compacted_nor_pruned() {
    let db = Db::with_fixture("tombstones").await;
    let data = std::fs::read_dir(db.table_path().join("data")).unwrap();
    let lost = data.map(|entry| entry.unwrap().path()).min().unwrap();
    std::fs::remove_file(lost).unwrap();
    let before = contents(&db.table_path());
    let audit = db.audit(json!({}), Utc::now()).await;
    assert_eq!(audit.audit_manifest.storage.damaged_files, 1);
    assert!(audit.warnings[0].starts_with("the table is damaged: data/"));
    let error = db.try_compact(one_hour(), ahead()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TableDamaged);
    assert_eq!(error.code, 4);
    assert!(contents(&db.table_path()) == before, "a file was changed");
}
