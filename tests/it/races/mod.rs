//! Other writers and readers at the same time.
//!
//! - [`writers`]: what another process commits between plan and commit of a rewrite.
//! - [`indices`]: the same while an index is brought up to date.
//! - [`pruning`]: tags, branches, readers and slow writers beside a prune.
//! - [`retries`]: lost races, and races lost for good.

mod indices;
mod pruning;
mod retries;
mod writers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use futures::FutureExt;
use lancedb_guard::clock::Clock;
use lancedb_guard::compact;
use lancedb_guard::error::GuardError;
use lancedb_guard::report::compact::{CompactOutputs, RemediationStatus};
use lancedb_guard::stop::Stop;
use serde_json::{Value, json};

use crate::harness::Db;
use crate::stores::{Before, Op, Watch};
use crate::tables;

/// Compacts while `other` happens before each request that `at` chooses. Says as well whether
/// there was one.
pub async fn compact_while<F>(
    db: &Db,
    fields: Value,
    evaluated_at: DateTime<Utc>,
    at: impl Fn(Op, &str) -> bool + Send + Sync + 'static,
    other: impl Fn(lancedb::Table) -> F + Send + Sync + 'static,
) -> (Result<CompactOutputs, GuardError>, bool)
where
    F: Future<Output = ()> + Send + 'static,
{
    let writer = db.lancedb().await;
    let other = Arc::new(other);
    let happened = Arc::new(AtomicBool::new(false));
    let noted = happened.clone();
    let before: Before = Arc::new(move |op, path| {
        let chosen = at(op, &path);
        noted.fetch_or(chosen, Ordering::SeqCst);
        let (writer, other) = (writer.clone(), other.clone());
        async move {
            if chosen {
                other(writer).await;
            }
        }
        .boxed()
    });
    let table = db.open_watched(&Watch::before(before)).await;
    let spec = serde_json::from_str(&db.spec("compact", fields)).unwrap();
    let outputs = compact::run(&spec, table, &Clock { evaluated_at }, &Stop::default()).await;
    (outputs, happened.load(Ordering::SeqCst))
}

/// The first request of a kind whose path holds a text, and no later one.
pub fn first(op: Op, part: &'static str) -> impl Fn(Op, &str) -> bool + Send + Sync + 'static {
    let done = AtomicBool::new(false);
    move |found, path| found == op && path.contains(part) && !done.swap(true, Ordering::SeqCst)
}

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
    let at = first(Op::Write, "/data/");
    let (outputs, happened) = compact_while(db, fields, Utc::now(), at, other).await;
    assert!(happened, "no data file was written");
    outputs
}

async fn five_fragments() -> Db {
    let db = Db::new().await;
    let table = db.create(100).await;
    tables::append_times(&table, 4, 100).await.unwrap();
    db
}

/// The ids are these, every file that they need is there, and after one more run there is
/// nothing left to do.
async fn assert_whole(db: &Db, ids: impl Iterator<Item = i64>) {
    let ids: Vec<i64> = ids.collect();
    assert_eq!(tables::ids(&db.lancedb().await).await.unwrap(), ids);
    let uri = db.table_path().to_string_lossy().into_owned();
    let dataset = lance::Dataset::open(&uri).await.unwrap();
    dataset.validate().await.unwrap();
    let (_, damage) = db.table().await.storage_facts().await.unwrap();
    assert!(damage.is_empty(), "{damage:?}");

    db.compact(json!({}), Utc::now()).await;
    let version = db.table().await.version();
    let again = db.compact(json!({}), Utc::now()).await;
    assert_eq!(again.remediation_status, RemediationStatus::NothingToDo);
    assert_eq!(db.table().await.version(), version);
    assert_eq!(tables::ids(&db.lancedb().await).await.unwrap(), ids);
}
