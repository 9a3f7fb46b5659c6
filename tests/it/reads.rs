//! What an audit reads: counted at the store, not timed.

use chrono::Utc;
use lance::Dataset;
use lance::dataset::WriteParams;
use lancedb_guard::audit;
use lancedb_guard::clock::Clock;
use serde_json::json;

use crate::harness::Db;
use crate::stores::{Op, Watch};
use crate::tables;

/// 2,000 versions of one fragment, and then a commit of 1,199 fragments of one row each: cheap
/// to make, since the manifests of the past are small.
async fn large_history(db: &Db) {
    db.create(1).await;
    let uri = db.table_path().to_string_lossy().into_owned();
    let mut dataset = Dataset::open(&uri).await.unwrap();
    while dataset.version_id() < 2000 {
        let count = dataset.version_id().to_string();
        dataset
            .update_config([("count".to_owned(), Some(count))])
            .await
            .unwrap();
    }
    let rows = tables::rows(1..1200);
    let schema = rows.schema();
    let reader = arrow_array::RecordBatchIterator::new([Ok(rows)], schema);
    let params = WriteParams {
        max_rows_per_file: 1,
        max_rows_per_group: 1,
        ..WriteParams::default()
    };
    dataset.append(reader, Some(params)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_reads_no_data_file_and_log_n_manifests_and_one_listing() {
    let db = Db::new().await;
    large_history(&db).await;
    let watch = Watch::default();
    let table = db.open_watched(&watch).await;
    let opening_lists = watch.paths(Op::List).len();
    let fields = json!({"prune_estimate": "never", "target_rows_per_fragment": 100_000});
    let spec = serde_json::from_str(&db.spec("audit", fields)).unwrap();
    let clock = Clock {
        evaluated_at: Utc::now(),
    };
    let outputs = audit::run(&spec, &table, &clock).await.unwrap();
    assert_eq!(outputs.fragment_count, 1200);
    assert_eq!(outputs.version_count, 2001);

    for folder in ["/data/", "/_deletions/", "/_indices/", "/_transactions/"] {
        assert_eq!(watch.count(Op::Read, folder), 0, "reads of {folder}");
    }
    for op in [Op::Write, Op::Delete, Op::Copy] {
        assert_eq!(watch.paths(op), Vec::<String>::new());
    }
    let mut manifests = watch.paths(Op::Read);
    manifests.retain(|path| path.ends_with(".manifest"));
    manifests.sort_unstable();
    manifests.dedup();
    // log2 of 2,001 is 11; the newest ten, of which others' commits are told, and the oldest come
    // on top.
    assert!(manifests.len() <= 22, "{manifests:#?}");
    let lists = watch.paths(Op::List);
    let of_table = lists.iter().filter(|path| path.ends_with("t.lance"));
    assert_eq!(of_table.count(), 1, "{lists:?}");
    // Versions, tags and branches are listed besides, once each, whatever their number.
    assert!(lists.len() - opening_lists <= 4, "{lists:?}");
}
