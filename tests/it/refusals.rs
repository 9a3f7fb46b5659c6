//! Tables that a compact step leaves alone, or goes round, and says so.

use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, FixedSizeListArray, Int64Array, RecordBatch};
use chrono::{DateTime, TimeDelta, Utc};
use lance::Dataset;
use lance_table::io::commit::write_manifest_file_to_path;
use lancedb_guard::clock::Clock;
use lancedb_guard::compact;
use lancedb_guard::error::ErrorKind;
use lancedb_guard::report::compact::RemediationStatus;
use lancedb_guard::stop::Stop;
use serde_json::json;

use crate::harness::{Db, ahead, one_hour};
use crate::tables;

async fn dataset(db: &Db) -> Dataset {
    let uri = db.table_path().to_string_lossy().into_owned();
    Dataset::open(&uri).await.unwrap()
}

#[tokio::test]
async fn a_table_that_prunes_itself_is_refused_unless_that_is_accepted() {
    let db = Db::new().await;
    let table = db.create(10).await;
    tables::append_times(&table, 3, 10).await.unwrap();
    let settings = [
        ("lance.auto_cleanup.interval", "1"),
        ("lance.auto_cleanup.older_than", "0s"),
    ];
    let settings = settings.map(|(k, v)| (k.to_owned(), Some(v.to_owned())));
    dataset(&db).await.update_config(settings).await.unwrap();
    let version = db.table().await.version();
    let error = db.try_compact(json!({}), Utc::now()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::AutoCleanupSet);
    assert_eq!(error.code, 4);
    assert_eq!(db.table().await.version(), version);

    let accepted = json!({"prune": {"accept_auto_cleanup": true}});
    let outputs = db.compact(accepted, Utc::now()).await;
    assert_eq!(outputs.compaction_stats.actual.fragments_removed, 4);
    assert!(outputs.warnings[0].contains("lance.auto_cleanup"));
    // The version that compaction replaced went at once, and with it the proof of the rows.
    assert_eq!(outputs.remediation_status, RemediationStatus::Partial);
    assert!(outputs.checks.findings[0].starts_with("schema"));
}

#[tokio::test]
async fn a_shallow_clone_with_an_index_is_refused() {
    let source = Db::new().await;
    let table = source.create(300).await;
    tables::append(&table, 10).await.unwrap();
    tables::btree(&table, "id").await.unwrap();
    let db = Db::new().await;
    let target = db.table_path().to_string_lossy().into_owned();
    let mut origin = dataset(&source).await;
    let version = origin.version_id();
    origin.shallow_clone(&target, version, None).await.unwrap();
    let audit = db.audit(json!({}), Utc::now()).await;
    assert!(audit.audit_manifest.format.shallow_clone);
    assert_eq!(audit.audit_manifest.storage.damaged_files, 0);
    let error = db.try_compact(json!({}), Utc::now()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ShallowClone);
    assert_eq!(error.code, 4);
    assert_eq!(tables::ids(&db.lancedb().await).await.unwrap().len(), 310);
}

/// Gives a version another commit time.
async fn commit_at(db: &Db, version: u64, time: DateTime<Utc>) {
    let dataset = dataset(db).await.checkout_version(version).await.unwrap();
    let store = dataset.object_store(None).await.unwrap();
    let mut manifest = dataset.manifest().clone();
    manifest.set_timestamp(u128::try_from(time.timestamp_nanos_opt().unwrap()).unwrap());
    let path = &dataset.manifest_location().path;
    manifest.transaction_section = None;
    write_manifest_file_to_path(&store, &mut manifest, None, path, None)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_version_superseded_inside_the_retention_is_kept_whatever_later_clocks_said() {
    let db = Db::new().await;
    let table = db.create(10).await;
    tables::append_times(&table, 3, 10).await.unwrap();
    let now = Utc::now();
    // The writer of v3 had a slow clock: v1 was current until v2 came, two hours ago.
    for (version, hours) in [(1, 100), (2, 2), (3, 50), (4, 1)] {
        commit_at(&db, version, now - TimeDelta::hours(hours)).await;
    }
    let outputs = db
        .compact(json!({"target_rows_per_fragment": 1}), now)
        .await;
    assert_eq!(outputs.cleanup_stats.oldest_kept, 1);
    assert_eq!(outputs.cleanup_stats.actual.versions, 0);
    assert_eq!(outputs.cleanup_stats.versions_left, 4);
}

#[tokio::test]
async fn what_another_writer_did_is_not_called_a_change_of_the_step() {
    let db = Db::new().await;
    let writer = db.create(10).await;
    let opened_before = db.table().await;
    tables::append(&writer, 10).await.unwrap();
    let nothing = json!({"target_rows_per_fragment": 1});
    let spec = serde_json::from_str(&db.spec("compact", nothing)).unwrap();
    let clock = Clock {
        evaluated_at: Utc::now(),
    };
    let outputs = compact::run(&spec, opened_before, &clock, &Stop::default())
        .await
        .unwrap();
    assert_eq!(
        (
            outputs.baseline.before.version,
            outputs.baseline.after.version
        ),
        (1, 2)
    );
    assert_eq!(outputs.baseline.committed_versions, Vec::<u64>::new());
    assert!(!outputs.table_changed);
    assert_eq!(outputs.remediation_status, RemediationStatus::NothingToDo);
}

/// Rows whose vectors are all null.
fn without_vectors(ids: std::ops::Range<i64>) -> RecordBatch {
    let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        ids.clone().map(|_| None::<Vec<Option<f32>>>),
        i32::try_from(tables::DIMENSION).unwrap(),
    );
    let mut columns = tables::rows(ids.clone()).columns().to_vec();
    columns[0] = Arc::new(Int64Array::from_iter_values(ids)) as ArrayRef;
    columns[1] = Arc::new(vectors);
    RecordBatch::try_new(tables::schema(), columns).unwrap()
}

#[tokio::test]
async fn an_index_that_cannot_cover_its_rows_does_not_keep_a_table_from_its_fixed_point() {
    let db = Db::new().await;
    let table = db.create(0).await;
    tables::ivf_pq(&table).await.unwrap();
    for part in 0..4 {
        let rows = without_vectors(part * 100..(part + 1) * 100);
        table.add(rows).execute().await.unwrap();
    }
    let first = db.compact(one_hour(), ahead()).await;
    assert_eq!(first.baseline.after.fragments, 1);
    assert!(first.error.is_none(), "{:?}", first.error);
    assert_eq!(first.index_catch_up.left_behind[0].name, "vector_idx");
    db.compact(one_hour(), ahead()).await;
    let version = db.table().await.version();
    let last = db.compact(one_hour(), ahead()).await;
    assert_eq!(db.table().await.version(), version);
    assert_eq!(last.remediation_status, RemediationStatus::NothingToDo);
}

#[tokio::test]
async fn the_foretelling_of_a_plan_agrees_with_lance() {
    use lancedb_guard::spec::tuning::{CompactionTuning, IndexTuning};
    use lancedb_guard::table::grouping::groups;
    use lancedb_guard::table::planning::RewriteOptions;
    let db = Db::new().await;
    let table = db.create(100).await;
    for (rows, deleted) in [
        (30, 0),
        (5, 2),
        (100, 11),
        (100, 0),
        (40, 40),
        (7, 0),
        (200, 10),
    ] {
        let from = tables::next_id(&table).await.unwrap();
        table
            .add(tables::rows(from..from + rows))
            .execute()
            .await
            .unwrap();
        let predicate = format!("id >= {from} and id < {}", from + deleted);
        tables::delete(&table, &predicate).await.unwrap();
    }
    let guard = db.table().await;
    let fragments = guard.fragment_sketches().await.unwrap();
    let uncovered = vec![Vec::new(); fragments.len()];
    for target_rows in [1, 5, 10, 40, 50, 100, 101, 150, 1000] {
        for percent in [0.0, 5.0, 10.0, 11.0, 40.0, 100.0] {
            let options = RewriteOptions {
                target_rows,
                target_bytes: None,
                compaction: CompactionTuning {
                    deletion_threshold_percent: percent,
                    ..CompactionTuning::default()
                },
                indices: IndexTuning::default(),
            };
            let foretold: Vec<Vec<u64>> = groups(
                &fragments,
                &uncovered,
                options.grouping(options.target(&fragments)),
            )
            .into_iter()
            .map(|group| group.into_iter().map(|at| fragments[at].id).collect())
            .collect();
            let planned = guard.groups_of_lance(&options).await.unwrap();
            assert_eq!(
                foretold, planned,
                "target {target_rows}, threshold {percent} %"
            );
        }
    }
}
