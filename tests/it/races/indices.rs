//! What another process commits while an index is brought up to date.

use chrono::Utc;
use lancedb::table::AddDataMode;
use lancedb_guard::report::compact::{CompactOutputs, RemediationStatus};
use serde_json::json;

use super::{assert_whole, compact_while, first};
use crate::harness::Db;
use crate::stores::Op;
use crate::tables;

/// Brings an index on `id` up to date, 300 rows of 500, while another process does something
/// before the first index file is written. The target keeps fragments as they are.
async fn meanwhile<F>(
    other: impl Fn(lancedb::Table) -> F + Send + Sync + 'static,
) -> (Db, CompactOutputs)
where
    F: Future<Output = ()> + Send + 'static,
{
    let db = Db::new().await;
    let table = db.create(300).await;
    tables::btree(&table, "id").await.unwrap();
    tables::append(&table, 200).await.unwrap();
    let fields = json!({"target_rows_per_fragment": 1});
    let at = first(Op::Write, "/_indices/");
    let (outputs, happened) = compact_while(&db, fields, Utc::now(), at, other).await;
    assert!(happened);
    let outputs = outputs.unwrap();
    assert_eq!(outputs.error, None);
    assert!(outputs.checks.findings.is_empty());
    (db, outputs)
}

fn lost_to(outputs: &CompactOutputs) -> Vec<&str> {
    let races = outputs.conflicts.iter();
    races.map(|race| race.operation.as_str()).collect()
}

/// Rows that the index on `id` covers, and the ones that it does not.
async fn coverage(db: &Db) -> (Option<u64>, u64) {
    let indices = db.table().await.index_coverage().await.unwrap();
    (indices[0].rows_indexed, indices[0].rows_unindexed())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_is_no_conflict_and_its_rows_wait_for_the_next_run() {
    let (db, outputs) = meanwhile(|table| async move {
        tables::append(&table, 10).await.unwrap();
    })
    .await;
    assert_eq!(lost_to(&outputs), [""; 0]);
    assert_eq!(outputs.index_catch_up.actual.rows_covered, 200);
    assert_eq!(coverage(&db).await, (Some(500), 10));
    assert_whole(&db, 0..510).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_deleted_meanwhile_stay_deleted() {
    let (db, outputs) = meanwhile(|table| async move {
        tables::delete(&table, "id >= 250 and id < 350")
            .await
            .unwrap();
    })
    .await;
    assert_eq!(lost_to(&outputs), [""; 0]);
    assert_eq!(coverage(&db).await, (Some(400), 0));
    assert_whole(&db, (0..500).filter(|id| !(250..350).contains(id))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_rebuilt_meanwhile_is_not_replaced_by_an_older_one() {
    let (db, outputs) = meanwhile(|table| async move {
        tables::append(&table, 10).await.unwrap();
        tables::btree(&table, "id").await.unwrap();
    })
    .await;
    assert_eq!(lost_to(&outputs), ["CreateIndex"]);
    assert_eq!(coverage(&db).await, (Some(510), 0));
    assert_whole(&db, 0..510).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_dropped_meanwhile_does_not_come_back() {
    let (db, outputs) = meanwhile(|table| async move {
        table.drop_index("id_idx").await.unwrap();
    })
    .await;
    assert_eq!(lost_to(&outputs), ["CreateIndex"]);
    assert_eq!(outputs.remediation_status, RemediationStatus::NothingToDo);
    assert!(db.table().await.index_names().await.unwrap().is_empty());
    assert_whole(&db, 0..500).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overwrite_wins_and_leaves_no_index_of_the_old_rows() {
    let (db, outputs) = meanwhile(|table| async move {
        let add = table.add(tables::rows(1000..1020));
        add.mode(AddDataMode::Overwrite).execute().await.unwrap();
    })
    .await;
    assert_eq!(lost_to(&outputs), ["Overwrite"]);
    assert!(db.table().await.index_names().await.unwrap().is_empty());
    assert_whole(&db, 1000..1020).await;
}
