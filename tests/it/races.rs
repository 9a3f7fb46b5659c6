//! Other writers and readers at the same time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use futures::FutureExt;
use lance_io::object_store::ObjectStoreParams;
use lancedb_guard::clock::Clock;
use lancedb_guard::compact;
use lancedb_guard::emit::{self, Format};
use lancedb_guard::error::{ErrorKind, GuardError};
use lancedb_guard::report::compact::{CompactOutputs, RemediationStatus};
use lancedb_guard::report::outcome::Outcome;
use lancedb_guard::spec::{Location, Step, TableName};
use lancedb_guard::stop::Stop;
use lancedb_guard::table::{OpenOptions, Table};
use serde_json::{Value, json};

use crate::harness::{Db, ahead, files_in, one_hour};
use crate::stores::{Before, Op, Watch};
use crate::{guard, tables};

/// Compacts while `other` happens once, just before the first data file is written: after the
/// plan, and before the commit.
pub async fn compact_during<F>(
    db: &Db,
    fields: Value,
    other: impl Fn(lancedb::Table) -> F + Send + Sync + 'static,
) -> Result<CompactOutputs, GuardError>
where
    F: Future<Output = ()> + Send + 'static,
{
    let writer = db.lancedb().await;
    let other = Arc::new(other);
    let done = Arc::new(AtomicBool::new(false));
    let before: Before = Arc::new(move |op, path| {
        let first =
            op == Op::Write && path.contains("/data/") && !done.swap(true, Ordering::SeqCst);
        let (writer, other) = (writer.clone(), other.clone());
        async move {
            if first {
                other(writer).await;
            }
        }
        .boxed()
    });
    let table = db.open_watched(&Watch::before(before)).await;
    let spec = serde_json::from_str(&db.spec("compact", fields)).unwrap();
    let clock = Clock {
        evaluated_at: Utc::now(),
    };
    compact::run(&spec, table, &clock, &Stop::default()).await
}

async fn five_fragments() -> Db {
    let db = Db::new().await;
    let table = db.create(100).await;
    tables::append_times(&table, 4, 100).await.unwrap();
    db
}

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
async fn an_append_meanwhile_is_no_conflict() {
    let db = five_fragments().await;
    let outputs = compact_during(&db, json!({}), |table| async move {
        tables::append(&table, 10).await.unwrap();
    })
    .await
    .unwrap();
    assert_eq!(outputs.compaction_stats.conflicts, 0);
    assert_eq!(outputs.baseline.after.fragments, 2);
    assert_eq!(outputs.baseline.after.rows, 510);
    assert_eq!(outputs.remediation_status, RemediationStatus::Success);
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

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_loses_no_row_to_compaction_and_prune_in_a_loop() {
    let db = Db::new().await;
    let table = db.create(10).await;
    let writer = tokio::spawn(async move {
        for from in 1..=100 {
            let ids = from * 10..(from + 1) * 10;
            table.add(tables::rows(ids)).execute().await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    // A second of retention: with none, a writer that the machine keeps waiting at the wrong
    // moment loses its commit, as the test below shows.
    let a_second_ago = || Utc::now() + TimeDelta::hours(1) - TimeDelta::seconds(1);
    let mut pruned = 0;
    while !writer.is_finished() {
        let outputs = db.compact(one_hour(), a_second_ago()).await;
        pruned += outputs.cleanup_stats.actual.versions;
    }
    writer.await.unwrap();
    assert!(pruned > 0, "nothing was pruned beside the writer");
    db.compact(one_hour(), ahead()).await;
    assert_eq!(
        tables::ids(&db.lancedb().await).await.unwrap(),
        (0..1010).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn a_reader_inside_the_retention_keeps_its_version() {
    let db = Db::new().await;
    let table = db.create(100).await;
    tables::append(&table, 100).await.unwrap();
    let reader = db.lancedb().await;
    reader.checkout(2).await.unwrap();
    tables::append(&table, 100).await.unwrap();
    let outputs = db.compact(one_hour(), Utc::now()).await;
    assert_eq!(outputs.remediation_status, RemediationStatus::Success);
    assert_eq!(tables::ids(&reader).await.unwrap().len(), 200);
}

#[tokio::test]
async fn a_staged_fragment_survives_every_prune_and_can_be_committed() {
    use lance::dataset::{CommitBuilder, InsertBuilder, WriteMode, WriteParams};
    let db = five_fragments().await;
    let uri = db.table_path().to_string_lossy().into_owned();
    let dataset = Arc::new(lance::Dataset::open(&uri).await.unwrap());
    let append = WriteParams {
        mode: WriteMode::Append,
        ..WriteParams::default()
    };
    let mut staged = InsertBuilder::new(dataset.clone())
        .with_params(&append)
        .execute_uncommitted(vec![tables::rows(500..510)])
        .await
        .unwrap();
    for _ in 0..3 {
        db.compact(one_hour(), ahead()).await;
    }
    assert_eq!(db.table().await.counts().await.unwrap().fragments, 1);
    let newest = Arc::new(lance::Dataset::open(&uri).await.unwrap());
    // The version that it was staged on is gone, as a writer that takes so long must expect.
    staged.read_version = newest.version_id();
    CommitBuilder::new(newest).execute(staged).await.unwrap();
    assert_eq!(
        tables::ids(&db.lancedb().await).await.unwrap(),
        (0..510).collect::<Vec<_>>()
    );
}

/// Compacts and prunes with a retention of nothing, on a runtime of its own.
fn compact_and_prune(folder: &Path) -> u64 {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let spec = json!({"spec_version": 1, "step": "compact", "db_uri": folder, "table_name": "t",
        "stale_version_retention_hours": 1});
    let spec = serde_json::from_value(spec).unwrap();
    let clock = Clock {
        evaluated_at: ahead(),
    };
    runtime.block_on(async {
        let location = Location::Local(folder.to_owned());
        let name = TableName::parse("t").unwrap();
        let options = OpenOptions::default();
        let table = Table::open(&location, &name, &BTreeMap::new(), &options)
            .await
            .unwrap();
        let outputs = compact::run(&spec, table, &clock, &Stop::default()).await;
        outputs.unwrap().cleanup_stats.actual.versions
    })
}

/// Why there is a floor under the retention. lance looks for the newest version, and then writes
/// the manifest of the next one if there is none. Where that next version came and went in
/// between, its number is free again: the commit succeeds, below the newest version, and its
/// rows are never seen.
#[tokio::test(flavor = "multi_thread")]
async fn the_retention_has_to_outlast_the_longest_pause_of_a_writer() {
    let db = five_fragments().await;
    let folder = db.path().to_owned();
    let paused = Arc::new(AtomicBool::new(false));
    let before: Before = Arc::new(move |op, path| {
        let manifest = op == Op::Write && path.ends_with(".manifest");
        let first = manifest && !paused.swap(true, Ordering::SeqCst);
        let folder = folder.clone();
        async move {
            if first {
                // Two versions, 6 and 7, of which 6 is pruned.
                let other = tokio::task::spawn_blocking(move || {
                    let outputs = compact_and_prune(&folder);
                    assert_eq!(outputs, 6);
                });
                other.await.unwrap();
            }
        }
        .boxed()
    });
    let uri = format!("file-object-store://{}", db.table_path().display());
    let store = ObjectStoreParams {
        object_store_wrapper: Some(Arc::new(Watch::before(before))),
        ..ObjectStoreParams::default()
    };
    let builder = lance::dataset::builder::DatasetBuilder::from_uri(&uri);
    let mut writer = builder.with_store_params(store).load().await.unwrap();
    let rows = tables::rows(500..510);
    let schema = rows.schema();
    let reader = arrow_array::RecordBatchIterator::new([Ok(rows)], schema);
    writer.append(reader, None).await.unwrap();
    // Whoever makes lance refuse this may lift the floor.
    assert_eq!(writer.version_id(), 6);
    assert_eq!(db.table().await.version(), 7);
    assert_eq!(tables::ids(&db.lancedb().await).await.unwrap().len(), 500);
}
