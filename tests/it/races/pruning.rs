//! Tags, branches, readers and slow writers beside a prune.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use futures::FutureExt;
use lance_io::object_store::ObjectStoreParams;
use lancedb_guard::clock::Clock;
use lancedb_guard::compact;
use lancedb_guard::error::ErrorKind;
use lancedb_guard::report::compact::RemediationStatus;
use lancedb_guard::spec::{Location, TableName};
use lancedb_guard::stop::Stop;
use lancedb_guard::table::{OpenOptions, Table};
use serde_json::json;

use super::{assert_whole, compact_while, first, five_fragments};
use crate::harness::{Db, ahead, one_hour};
use crate::stores::{Before, Op, Watch};
use crate::tables;

/// How many rows a version has.
async fn rows_of(db: &Db, version: u64) -> u64 {
    let table = db.table().await.at(version).await.unwrap();
    table.counts().await.unwrap().rows
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_or_branch_that_came_after_the_plan_keeps_its_version() {
    let db = five_fragments().await;
    let at = first(Op::Write, "/data/");
    let (outputs, _) = compact_while(&db, one_hour(), ahead(), at, |table| async move {
        tables::tag(&table, "keep", 2).await.unwrap();
        tables::branch(&table, "aside", 3).await.unwrap();
    })
    .await;
    let outputs = outputs.unwrap();
    assert_eq!(outputs.error, None);
    assert_eq!(outputs.conflicts, []);
    assert_eq!(outputs.plan.prune.versions, 4);
    // The compaction made two more, 6 and 7, of which 5 and 6 are superseded.
    assert_eq!(outputs.cleanup_stats.actual.versions, 4);
    let kept = &outputs.cleanup_stats.kept_refs;
    assert_eq!((kept.tags[0].version, kept.branches[0].version), (2, 3));
    assert_eq!((rows_of(&db, 2).await, rows_of(&db, 3).await), (200, 300));
    assert_whole(&db, 0..500).await;
}

/// The nth listing of a folder.
fn listing(number: usize, folder: &'static str) -> impl Fn(Op, &str) -> bool + Send + Sync {
    let seen = AtomicUsize::new(1);
    move |op, path| {
        op == Op::List && path.ends_with(folder) && seen.fetch_add(1, Ordering::SeqCst) == number
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_or_branch_that_came_after_the_last_look_keeps_its_version() {
    let db = five_fragments().await;
    // Branches are listed by the plan, by the last look, by lance's foretelling, and by its
    // cleanup, which lists the tags next.
    let at = listing(4, "/_refs/branches");
    // lance sees what a branch refers to only if it was started under the very same location.
    let uri = format!("file-object-store://{}", db.path().display());
    let same = lancedb::connect(&uri).execute().await.unwrap();
    let same = tables::open(&same, "t").await.unwrap();
    let (outputs, happened) = compact_while(&db, one_hour(), ahead(), at, move |table| {
        let same = same.clone();
        async move {
            tables::tag(&table, "keep", 2).await.unwrap();
            tables::branch(&same, "aside", 3).await.unwrap();
        }
    })
    .await;
    assert!(happened);
    let outputs = outputs.unwrap();
    assert_eq!(outputs.error, None);
    assert_eq!(rows_of(&db, 2).await, 200);
    assert_eq!(rows_of(&db, 3).await, 300);
    let same = tables::open(&lancedb::connect(&uri).execute().await.unwrap(), "t").await;
    let branch = same.unwrap().checkout_branch("aside", None).await;
    let ids = tables::ids(&branch.unwrap()).await.unwrap();
    assert_eq!(ids, (0..300).collect::<Vec<_>>());
    assert_eq!(outputs.cleanup_stats.late_refs, None);
    assert_whole(&db, 0..500).await;
}

/// lance reads tags and branches when its cleanup begins. Whoever creates one on a stale version
/// while that is being deleted gets one that refers to nothing or lacks files; the table itself
/// is whole, and the outputs say it.
#[tokio::test(flavor = "multi_thread")]
async fn a_tag_or_branch_on_a_version_that_is_being_deleted_is_named() {
    let db = five_fragments().await;
    // By lance's foretelling, and then by its cleanup, which deletes manifests last.
    let at = listing(2, "t.lance/data");
    let (outputs, happened) = compact_while(&db, one_hour(), ahead(), at, |table| async move {
        tables::tag(&table, "late", 2).await.unwrap();
        tables::branch(&table, "aside", 3).await.unwrap();
    })
    .await;
    assert!(happened);
    let outputs = outputs.unwrap();
    assert_eq!(outputs.error, None);
    let late = outputs.cleanup_stats.late_refs.unwrap();
    assert_eq!(
        (late.tags[0].name.as_str(), late.tags[0].version),
        ("late", 2)
    );
    assert_eq!(late.branches[0].name, "aside");
    let told: Vec<&str> = outputs
        .warnings
        .iter()
        .map(|warning| warning.split(" was ").next().unwrap())
        .collect();
    assert_eq!(told, ["tag late", "branch aside"]);
    let gone = db.table().await.at(2).await.unwrap_err();
    assert_eq!(gone.kind, ErrorKind::VersionNotFound);
    let branch = db.lancedb().await.checkout_branch("aside", None).await;
    assert!(tables::ids(&branch.unwrap()).await.is_err());
    assert_whole(&db, 0..500).await;
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
