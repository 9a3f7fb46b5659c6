//! What another process commits between plan and commit of a rewrite.
//!
//! | operation | result |
//! |---|---|
//! | append, drop column, tag, branch | no conflict |
//! | delete, update, merge_insert, index creation, add column | conflict; planned again and done |
//! | overwrite, restore | conflict; the table that is there now is compacted |

use lance::dataset::NewColumnTransform;
use lancedb::table::AddDataMode;
use lancedb_guard::report::compact::{CompactOutputs, RemediationStatus};
use serde_json::json;

use super::{assert_whole, compact_during, five_fragments};
use crate::harness::Db;
use crate::tables;

/// Compacts five fragments of 100 rows while another process does something.
async fn meanwhile<F>(
    other: impl Fn(lancedb::Table) -> F + Send + Sync + 'static,
) -> (Db, CompactOutputs)
where
    F: Future<Output = ()> + Send + 'static,
{
    let db = five_fragments().await;
    let outputs = compact_during(&db, json!({}), other).await.unwrap();
    assert_eq!(outputs.error, None);
    assert_eq!(outputs.remediation_status, RemediationStatus::Success);
    assert!(outputs.checks.findings.is_empty());
    (db, outputs)
}

/// The operations that won a race.
fn lost_to(outputs: &CompactOutputs) -> Vec<&str> {
    let races = outputs.conflicts.iter();
    races.map(|race| race.operation.as_str()).collect()
}

/// The values of a text column, by id.
async fn texts(db: &Db, predicate: &str) -> Vec<String> {
    use arrow_array::{Array, StringArray};
    use futures::TryStreamExt;
    use lancedb::query::{ExecutableQuery, QueryBase};
    let query = db.lancedb().await.query().only_if(predicate);
    let batches: Vec<_> = query.execute().await.unwrap().try_collect().await.unwrap();
    let mut found = Vec::new();
    for batch in batches {
        let column = batch["text"]
            .as_any()
            .downcast_ref::<StringArray>()
            .unwrap();
        found.extend(column.iter().map(|text| text.unwrap().to_owned()));
    }
    found.sort_unstable();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_is_no_conflict() {
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
async fn an_update_is_planned_again_and_keeps_its_values() {
    let (db, outputs) = meanwhile(|table| async move {
        let update = table.update().only_if("id >= 95 and id < 105");
        update.column("text", "'new'").execute().await.unwrap();
    })
    .await;
    assert_eq!(lost_to(&outputs), ["Update"]);
    assert_eq!(texts(&db, "text = 'new'").await.len(), 10);
    assert_whole(&db, 0..500).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_insert_is_planned_again_and_keeps_its_rows() {
    let (db, outputs) = meanwhile(|table| async move {
        let rows = tables::rows(495..505);
        let schema = rows.schema();
        let reader = arrow_array::RecordBatchIterator::new([Ok(rows)], schema);
        let mut merge = table.merge_insert(&["id"]);
        merge
            .when_matched_update_all(None)
            .when_not_matched_insert_all();
        merge.execute(Box::new(reader)).await.unwrap();
    })
    .await;
    assert_eq!(lost_to(&outputs), ["Update"]);
    assert_whole(&db, 0..505).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_built_meanwhile_is_adapted_to_the_rewrite() {
    let (db, outputs) = meanwhile(|table| async move {
        tables::btree(&table, "id").await.unwrap();
    })
    .await;
    assert_eq!(lost_to(&outputs), ["CreateIndex"]);
    let coverage = db.table().await.index_coverage().await.unwrap();
    assert_eq!(coverage[0].rows_indexed, Some(500));
    assert_eq!(texts(&db, "id = 137").await, [tables::text(137)]);
    assert_whole(&db, 0..500).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_added_column_is_planned_again_and_keeps_its_values() {
    let (db, outputs) = meanwhile(|table| async move {
        let twice = vec![("twice".to_owned(), "id * 2".to_owned())];
        let transform = NewColumnTransform::SqlExpressions(twice);
        table
            .add_columns()
            .transform(transform)
            .execute()
            .await
            .unwrap();
    })
    .await;
    assert_eq!(lost_to(&outputs), ["Merge"]);
    assert_eq!(texts(&db, "twice = 2 * id").await.len(), 500);
    assert_whole(&db, 0..500).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_column_is_no_conflict_and_stays_dropped() {
    let (db, outputs) = meanwhile(|table| async move {
        table.drop_columns(&["vector"]).await.unwrap();
    })
    .await;
    assert_eq!(lost_to(&outputs), [""; 0]);
    let schema = db.lancedb().await.schema().await.unwrap();
    assert!(schema.field_with_name("vector").is_err());
    assert_eq!(texts(&db, "id = 137").await, [tables::text(137)]);
    assert_whole(&db, 0..500).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overwrite_wins_and_its_rows_are_what_there_is() {
    let (db, outputs) = meanwhile(|table| async move {
        let add = table.add(tables::rows(1000..1020));
        add.mode(AddDataMode::Overwrite).execute().await.unwrap();
        tables::append(&table, 10).await.unwrap();
    })
    .await;
    assert_eq!(lost_to(&outputs), ["Overwrite"]);
    assert_eq!(outputs.baseline.after.fragments, 1);
    assert_whole(&db, 1000..1030).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_wins_and_the_restored_rows_are_what_there_is() {
    let (db, outputs) = meanwhile(|table| async move {
        table.checkout(3).await.unwrap();
        table.restore().await.unwrap();
    })
    .await;
    assert_eq!(lost_to(&outputs), ["Restore"]);
    assert_eq!(outputs.baseline.after.fragments, 1);
    assert_whole(&db, 0..300).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_and_a_branch_are_no_conflict_and_read_what_they_did() {
    let (db, outputs) = meanwhile(|table| async move {
        tables::tag(&table, "now", 5).await.unwrap();
        let branch = tables::branch(&table, "aside", 5).await.unwrap();
        tables::delete(&branch, "id < 100").await.unwrap();
    })
    .await;
    assert_eq!(lost_to(&outputs), [""; 0]);
    let tagged = db.lancedb().await;
    tagged.checkout_tag("now").await.unwrap();
    assert_eq!(tables::ids(&tagged).await.unwrap().len(), 500);
    let branch = db
        .lancedb()
        .await
        .checkout_branch("aside", None)
        .await
        .unwrap();
    assert_eq!(tables::ids(&branch).await.unwrap().len(), 400);
    assert_whole(&db, 0..500).await;
}
