//! What the engine does, with exact numbers: what the guard must report and achieve.

use chrono::Utc;
use lancedb_guard::report::compact::{PhaseStatus, RemediationStatus};
use lancedb_guard::report::plan::{NoTaskReason, PruneCounts};
use serde_json::json;

use crate::harness::{Db, LANCE_TARGET, ahead, files_in, one_hour};
use crate::tables;

#[tokio::test]
async fn one_row_appends_become_one_fragment_and_a_tag_survives_the_prune() {
    let db = Db::new().await;
    let table = db.create(1).await;
    tables::append_times(&table, 119, 1).await.unwrap();
    tables::delete(&table, "id % 5 < 2").await.unwrap();
    tables::tag(&table, "keep", 3).await.unwrap();

    let audit = db.audit(json!({}), Utc::now()).await;
    assert_eq!(audit.fragment_count, 72);
    assert_eq!(audit.active_rows, 72);
    assert_eq!(audit.tombstone_count, 0);
    assert_eq!(audit.audit_manifest.fragments.deletion_files, 0);
    assert_eq!(audit.version_count, 121);

    let compact = db.compact(one_hour(), Utc::now()).await;
    assert_eq!(compact.compaction_stats.actual.fragments_removed, 72);
    assert_eq!(compact.compaction_stats.actual.fragments_added, 1);
    assert_eq!(compact.baseline.after.version, 123);
    assert_eq!(compact.baseline.after.rows, 72);
    assert_eq!(compact.cleanup_stats.actual, PruneCounts::default());
    assert_eq!(compact.remediation_status, RemediationStatus::Success);
    assert_eq!(
        compact.cleanup_stats.note.as_deref(),
        Some("no version is stale: all were current at some time in the last 1 h")
    );

    let prune = db.compact(one_hour(), ahead()).await;
    let actual = &prune.cleanup_stats.actual;
    assert_eq!(actual, &prune.cleanup_stats.planned);
    assert_eq!(actual.versions, 121);
    assert_eq!(actual.data_files, 117);
    assert_eq!(actual.transaction_files, 121);
    assert_eq!(prune.cleanup_stats.versions_left, 2);
    assert_eq!(prune.cleanup_stats.kept_refs.tags[0].name, "keep");
    assert!(prune.cleanup_stats.kept_refs.tags[0].holds_back);
    assert_eq!(files_in(&db.table_path().join("data")), 4);
    assert_eq!(
        db.table()
            .await
            .at(3)
            .await
            .unwrap()
            .counts()
            .await
            .unwrap()
            .rows,
        3
    );
    let tagged = db.lancedb().await;
    tagged.checkout_tag("keep").await.unwrap();
    assert_eq!(tables::ids(&tagged).await.unwrap(), [0, 1, 2]);
}

#[tokio::test]
async fn tombstones_are_counted_and_materialised_once() {
    let db = Db::new().await;
    let table = db.create(20).await;
    tables::append_times(&table, 5, 20).await.unwrap();
    tables::delete(&table, "id % 20 < 8").await.unwrap();

    let audit = db.audit(json!({}), Utc::now()).await;
    let facts = &audit.audit_manifest.fragments;
    assert_eq!(audit.audit_manifest.versions.current, 7);
    assert_eq!((facts.count, facts.physical_rows), (6, 120));
    assert_eq!((audit.tombstone_count, audit.tombstone_pct), (48, 40.0));
    assert_eq!((audit.active_rows, facts.deletion_files), (72, 6));

    let compact = db.compact(json!({}), Utc::now()).await;
    let after = compact.baseline.after;
    assert_eq!((after.version, after.fragments), (9, 1));
    assert_eq!((after.rows, after.tombstones), (72, 0));
    assert_eq!(compact.compaction_stats.actual.tombstones_cleared, 48);

    let again = db.compact(json!({}), Utc::now()).await;
    assert_eq!(again.remediation_status, RemediationStatus::NothingToDo);
    assert!(!again.table_changed);
    assert_eq!(again.baseline.after.version, 9);
}

/// Fragments of 100 rows each, of which a share is deleted.
async fn deleted_share(fragments: usize, percent: i64) -> Db {
    let db = Db::new().await;
    let table = db.create(100).await;
    tables::append_times(&table, fragments - 1, 100)
        .await
        .unwrap();
    if percent > 0 {
        let predicate = format!("id % 100 < {percent}");
        tables::delete(&table, &predicate).await.unwrap();
    }
    db
}

#[tokio::test]
async fn a_fragment_is_rewritten_on_its_own_strictly_above_the_threshold() {
    for (percent, version, tombstones) in [(10, 2, 10), (11, 4, 0), (0, 1, 0)] {
        let db = deleted_share(1, percent).await;
        let after = db.compact(json!({}), Utc::now()).await.baseline.after;
        assert_eq!(
            (after.version, after.tombstones),
            (version, tombstones),
            "{percent} %"
        );
    }
    let db = deleted_share(1, 100).await;
    let after = db.compact(json!({}), Utc::now()).await;
    assert_eq!(after.baseline.after.fragments, 0);
    assert_eq!(after.remediation_status, RemediationStatus::NothingToDo);
}

#[tokio::test]
async fn neighbours_are_merged_whatever_their_deletions() {
    let db = deleted_share(2, 5).await;
    let after = db.compact(json!({}), Utc::now()).await.baseline.after;
    assert_eq!((after.fragments, after.tombstones), (1, 0));
}

#[tokio::test]
async fn full_fragments_below_the_threshold_get_no_task_and_a_reason() {
    for percent in [5, 10] {
        let db = deleted_share(10, percent).await;
        let audit = db
            .audit(json!({"target_rows_per_fragment": 100}), Utc::now())
            .await;
        assert_eq!(audit.plan.compaction.tasks, 0);
        assert_eq!(
            audit.plan.compaction.no_task_reason,
            Some(NoTaskReason::BelowDeletionThreshold)
        );
    }
    let db = deleted_share(10, 11).await;
    let audit = db
        .audit(json!({"target_rows_per_fragment": 100}), Utc::now())
        .await;
    assert_eq!(audit.plan.compaction.tasks, 5);
    assert_eq!(audit.plan.compaction.fragments_expected, 5);
    let compact = db
        .compact(json!({"target_rows_per_fragment": 100}), Utc::now())
        .await;
    assert_eq!(compact.baseline.after.fragments, 5);
    assert_eq!(compact.baseline.fragments_expected, 5);
}

#[tokio::test]
async fn small_fragments_reach_a_fixed_point() {
    let db = Db::new().await;
    let table = db.create(30).await;
    tables::append_times(&table, 9, 30).await.unwrap();
    let target = json!({"target_rows_per_fragment": 100});
    let first = db.compact(target.clone(), Utc::now()).await;
    assert_eq!(first.compaction_stats.actual.tasks, 2);
    let sketches = db.table().await.fragment_sketches().await.unwrap();
    let rows: Vec<u64> = sketches.iter().map(|f| f.physical_rows).collect();
    assert_eq!(rows, [120, 180]);
    let second = db.compact(target, Utc::now()).await;
    assert_eq!(second.compaction_stats.actual.tasks, 0);
    assert_eq!(second.remediation_status, RemediationStatus::NothingToDo);
}

#[tokio::test]
async fn an_indexed_table_with_an_unindexed_tail_becomes_one_fragment() {
    let db = Db::new().await;
    let table = db.create(300).await;
    tables::append_times(&table, 9, 300).await.unwrap();
    tables::ivf_pq(&table).await.unwrap();
    tables::btree(&table, "id").await.unwrap();
    tables::append_times(&table, 10, 300).await.unwrap();

    let audit = db.audit(json!({}), Utc::now()).await;
    assert_eq!(audit.audit_manifest.versions.current, 22);
    assert_eq!(audit.fragment_count, 20);
    for index in &audit.audit_manifest.indices {
        assert_eq!(
            (index.rows_unindexed, index.rows_indexed),
            (Some(3000), Some(3000))
        );
        assert_eq!(index.unindexed_pct, Some(50.0));
    }
    assert!(audit.plan.compaction.after_index_merge);
    assert_eq!(audit.plan.compaction.fragments_expected, 1);

    let compact = db.compact(json!({}), Utc::now()).await;
    let after = compact.baseline.after;
    assert_eq!((after.version, after.fragments, after.rows), (25, 1, 6000));
    assert_eq!(compact.index_merge.actual.rows_covered, 6000);
    let audit = db.audit(json!({}), Utc::now()).await;
    for index in &audit.audit_manifest.indices {
        assert_eq!((index.rows_unindexed, index.segments), (Some(0), 1));
    }
}

#[tokio::test]
async fn an_index_that_optimize_leaves_behind_does_not_keep_fragments_apart() {
    let db = Db::new().await;
    let table = db.create(1000).await;
    tables::btree(&table, "id").await.unwrap();
    for _ in 0..6 {
        tables::append(&table, 100).await.unwrap();
        let compact = db.compact(json!({}), Utc::now()).await;
        assert_eq!(compact.baseline.after.fragments, 1);
        assert_eq!(compact.remediation_status, RemediationStatus::Success);
    }
}

#[tokio::test]
async fn an_empty_table_has_ratios_of_zero_and_stays_as_it_is() {
    let db = Db::new().await;
    db.create(0).await;
    let audit = db.audit(json!({}), Utc::now()).await;
    assert_eq!((audit.fragment_count, audit.active_rows), (0, 0));
    assert_eq!(audit.tombstone_pct, 0.0);
    assert_eq!(
        audit.plan.compaction.no_task_reason,
        Some(NoTaskReason::EmptyTable)
    );
    let compact = db.compact(json!({}), Utc::now()).await;
    assert_eq!(compact.baseline.after.version, 1);
    assert_eq!(compact.remediation_status, RemediationStatus::NothingToDo);
}

#[tokio::test]
async fn an_index_without_rows_to_train_is_reported_and_no_failure() {
    let db = Db::new().await;
    let table = db.create(0).await;
    tables::btree(&table, "id").await.unwrap();
    tables::ivf_pq(&table).await.unwrap();
    tables::append(&table, 50).await.unwrap();
    let audit = db.audit(json!({}), Utc::now()).await;
    for index in &audit.audit_manifest.indices {
        assert_eq!(
            (index.rows_indexed, index.rows_unindexed),
            (Some(0), Some(50))
        );
    }
    let compact = db.compact(json!({}), Utc::now()).await;
    assert_eq!(compact.index_catch_up.actual.indices, ["id_idx"]);
    assert_eq!(
        compact.index_catch_up.left_behind[0].reason,
        "not enough rows to train: it needs 256, the table has 50"
    );
    let again = db.compact(json!({}), Utc::now()).await;
    assert_eq!(again.remediation_status, RemediationStatus::NothingToDo);
}

#[tokio::test]
async fn a_table_whose_rows_are_all_deleted_keeps_its_indices() {
    let db = Db::new().await;
    let table = db.create(300).await;
    tables::btree(&table, "id").await.unwrap();
    tables::ivf_pq(&table).await.unwrap();
    tables::delete(&table, "true").await.unwrap();
    let audit = db.audit(json!({}), Utc::now()).await;
    assert_eq!(audit.audit_manifest.versions.current, 4);
    assert_eq!(audit.fragment_count, 0);
    for index in &audit.audit_manifest.indices {
        assert_eq!(
            (index.rows_indexed, index.rows_unindexed),
            (Some(0), Some(0))
        );
    }
    tables::append(&table, 20).await.unwrap();
    let audit = db.audit(json!({}), Utc::now()).await;
    assert_eq!(audit.audit_manifest.indices[0].rows_unindexed, Some(20));
    let compact = db.compact(json!({}), Utc::now()).await;
    assert!(compact.error.is_none());
    assert_eq!(compact.baseline.after.rows, 20);
}

#[tokio::test]
async fn an_overwrite_is_reclaimable_and_its_lost_index_is_named() {
    let db = Db::new().await;
    let table = db.create(2000).await;
    tables::btree(&table, "id").await.unwrap();
    let first = db.audit(json!({}), Utc::now()).await;
    table
        .add(tables::rows(0..10))
        .mode(lancedb::table::AddDataMode::Overwrite)
        .execute()
        .await
        .unwrap();
    let fields = json!({
        "previous_state": first.new_state_snapshot,
        "stale_version_retention_hours": 1,
        "prune_estimate": "always",
    });
    let audit = db.audit(fields, ahead()).await;
    assert_eq!(audit.audit_manifest.versions.current, 3);
    assert_eq!(audit.audit_manifest.indices_lost, ["id_idx"]);
    let estimate = audit.plan.prune.estimate.unwrap();
    assert_eq!((estimate.versions, estimate.data_files), (2, 1));
    assert_eq!(estimate.index_files, 2);
    assert!(estimate.bytes > 20 * audit.audit_manifest.storage.live_bytes);
    let compact = db.compact(one_hour(), ahead()).await;
    assert_eq!(compact.cleanup_stats.actual, estimate);
}

#[tokio::test]
async fn a_dropped_index_keeps_its_files_until_the_version_before_is_pruned() {
    let db = Db::new().await;
    let table = db.create(2000).await;
    tables::btree(&table, "id").await.unwrap();
    table.drop_index("id_idx").await.unwrap();
    let week = json!({"stale_version_retention_hours": 168, "prune_estimate": "always"});
    let audit = db.audit(week, ahead()).await;
    assert_eq!(audit.plan.prune.estimate, Some(PruneCounts::default()));
    let outputs = db.compact(one_hour(), ahead()).await;
    assert_eq!(outputs.cleanup_stats.actual.index_files, 2);
    assert_eq!(outputs.cleanup_stats.actual.data_files, 0);
}

#[tokio::test]
async fn a_thousand_one_row_appends_become_one_fragment_and_one_old_version() {
    let db = Db::new().await;
    let table = db.create(1).await;
    tables::append_times(&table, 999, 1).await.unwrap();
    let fields = json!({"stale_version_retention_hours": 1, "prune_estimate": "always"});
    let audit = db.audit(fields, ahead()).await;
    assert_eq!((audit.fragment_count, audit.version_count), (1000, 1000));
    let estimate = audit.plan.prune.estimate.unwrap();
    // Appends share the files of the versions before them.
    assert_eq!((estimate.versions, estimate.data_files), (999, 0));
    let outputs = db.compact(one_hour(), Utc::now()).await;
    assert_eq!(outputs.baseline.after.fragments, 1);
    let outputs = db.compact(one_hour(), ahead()).await;
    let actual = outputs.cleanup_stats.actual;
    assert_eq!((actual.versions, actual.data_files), (1001, 1000));
    assert_eq!(outputs.cleanup_stats.versions_left, 1);
    assert_eq!(tables::ids(&db.lancedb().await).await.unwrap().len(), 1000);
}

#[tokio::test]
async fn a_converged_table_is_left_alone() {
    let db = Db::new().await;
    let table = db.create(300).await;
    tables::ivf_pq(&table).await.unwrap();
    tables::append_times(&table, 5, 50).await.unwrap();
    db.compact(one_hour(), ahead()).await;
    let version = db.table().await.version();
    let again = db.compact(one_hour(), ahead()).await;
    // The prune of the first run could not take the version that it made itself superseded.
    assert_eq!(again.baseline.after.version, version);
    assert_eq!(again.compaction_stats.status, PhaseStatus::NothingToDo);
    let third = db.compact(one_hour(), ahead()).await;
    assert_eq!(third.remediation_status, RemediationStatus::NothingToDo);
}

#[tokio::test]
async fn the_plan_of_the_audit_is_the_plan_of_lance() {
    // The foretelling for merged segments and lance's own planner agree without indices.
    for (fragments, percent) in [(1, 11), (3, 0), (7, 12), (10, 5)] {
        for target in [100, 150, 250, LANCE_TARGET] {
            let db = deleted_share(fragments, percent).await;
            let audit = db
                .audit(json!({"target_rows_per_fragment": target}), Utc::now())
                .await;
            let compact = db
                .compact(json!({"target_rows_per_fragment": target}), Utc::now())
                .await;
            let case = format!("{fragments} fragments, {percent} %, target {target}");
            assert_eq!(
                compact.baseline.after.fragments, audit.plan.compaction.fragments_expected,
                "{case}"
            );
            assert_eq!(
                compact.compaction_stats.actual.tasks, audit.plan.compaction.tasks,
                "{case}"
            );
        }
    }
}
