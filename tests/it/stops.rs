//! A run that is stopped or killed loses no row, and the next one goes on.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use chrono::Utc;
use lance::Dataset;
use lance::dataset::WriteParams;
use lancedb_guard::exit::Exit;
use lancedb_guard::run::answer;
use lancedb_guard::stop::Stop;
use serde_json::{Value, json};

use crate::harness::{Db, files_in};
use crate::{guard, tables};

/// Rows of the table, in fragments of 250: a hundred tasks of four.
const ROWS: i64 = 100_000;

/// What Docker grants is ten seconds.
const GRACE: Duration = Duration::from_secs(8);

async fn many_fragments() -> Db {
    let db = Db::new().await;
    let rows = tables::rows(0..ROWS);
    let schema = rows.schema();
    let reader = arrow_array::RecordBatchIterator::new([Ok(rows)], schema);
    let params = WriteParams {
        max_rows_per_file: 250,
        max_rows_per_group: 250,
        ..WriteParams::default()
    };
    let uri = db.table_path().to_string_lossy().into_owned();
    let dataset = Dataset::write(reader, &uri, Some(params)).await.unwrap();
    assert_eq!(dataset.get_fragments().len(), 400);
    db
}

/// A hundred tasks, one at a time.
fn spec(db: &Db, compaction: &Value) -> String {
    let fields = json!({"target_rows_per_fragment": 1000, "compaction": compaction});
    db.spec("compact", fields)
}

fn start(spec: &str, working_dir: &Path) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lancedb-guard"))
        .current_dir(working_dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(spec.as_bytes()).unwrap();
    child
}

fn terminate(child: &Child) {
    let pid = child.id().to_string();
    let status = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(status.success());
}

/// Waits until the run has written some data files.
fn wait_for_files(db: &Db, more_than: usize) {
    let data = db.table_path().join("data");
    let began = Instant::now();
    while files_in(&data) <= more_than {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing written");
        std::thread::sleep(Duration::from_millis(5));
    }
}

async fn assert_whole(db: &Db) {
    assert_eq!(
        tables::ids(&db.lancedb().await).await.unwrap(),
        (0..ROWS).collect::<Vec<_>>()
    );
    let (_, damage) = db.table().await.storage_facts().await.unwrap();
    assert!(damage.is_empty(), "{damage:?}");
}

/// Runs until there is nothing to do, which the second run at the latest finds.
async fn assert_converges(db: &Db) {
    let spec = spec(db, &json!({}));
    let run = guard::run(spec.as_bytes(), db.path());
    assert_eq!(run.code, 0);
    let run = guard::run(spec.as_bytes(), db.path());
    assert_eq!(run.outputs["remediation_status"], "NOTHING_TO_DO");
    assert_eq!(db.table().await.counts().await.unwrap().fragments, 100);
    assert_whole(db).await;
}

#[tokio::test]
async fn sigterm_ends_with_143_and_outputs_and_keeps_what_was_done() {
    let db = many_fragments().await;
    let mut child = start(&spec(&db, &json!({"concurrency": 1})), db.path());
    wait_for_files(&db, 405);
    let asked = Instant::now();
    terminate(&child);
    child.wait().unwrap();
    assert!(asked.elapsed() < GRACE, "{:?}", asked.elapsed());
    let run = guard::checked(&child.wait_with_output().unwrap());
    assert_eq!(run.code, 143);
    assert_eq!(run.outputs["error"]["kind"], "stopped");
    assert_eq!(run.outputs["error"]["message"], "stopped by SIGTERM");
    assert_eq!(run.outputs["remediation_status"], "PARTIAL");
    assert_eq!(run.outputs["compaction_stats"]["status"], "stopped");
    assert_eq!(run.outputs["cleanup_stats"]["status"], "skipped");
    let tasks = run.outputs["compaction_stats"]["actual"]["tasks"]
        .as_u64()
        .unwrap();
    assert!((1..100).contains(&tasks), "{tasks} tasks");
    let fragments = db.table().await.counts().await.unwrap().fragments;
    assert_eq!(fragments, 400 - 3 * tasks);
    assert_whole(&db).await;
    assert_converges(&db).await;
}

#[tokio::test]
async fn sigkill_at_any_time_loses_nothing() {
    let db = many_fragments().await;
    let spec = spec(&db, &json!({"concurrency": 2, "batch_bytes": 1}));
    for round in 0..6 {
        let mut child = start(&spec, db.path());
        let files = files_in(&db.table_path().join("data"));
        // Between the first file of a task and some commits later.
        wait_for_files(&db, files);
        let pause = uuid::Uuid::new_v4().as_bytes()[0];
        std::thread::sleep(Duration::from_millis(u64::from(pause)));
        child.kill().unwrap();
        child.wait().unwrap();
        println!("round {round}: killed {pause} ms after the first file");
        assert_whole(&db).await;
    }
    assert_converges(&db).await;
}

#[test]
fn a_signal_before_a_step_begins_ends_the_process_at_once() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lancedb-guard"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // Held open: waiting for the child would close it, and no spec is an error of its own.
    let _stdin = child.stdin.take();
    std::thread::sleep(Duration::from_secs(1));
    terminate(&child);
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[tokio::test]
async fn every_step_that_is_asked_to_stop_says_so() {
    let db = Db::with_fixture("bloated").await;
    let version = db.table().await.version();
    let folder = db.path().to_owned();
    for step in ["audit", "compact", "verify"] {
        let spec = db.spec(step, json!({}));
        let folder = folder.clone();
        let outcome = std::thread::spawn(move || {
            let stop = Stop::default();
            stop.ask("SIGINT");
            answer(spec.as_bytes(), &folder, &stop, Utc::now())
        });
        let outcome = outcome.join().unwrap();
        assert_eq!(outcome.exit(), Exit::Stopped, "{step}");
        assert_eq!(outcome.error().unwrap().message, "stopped by SIGINT");
    }
    assert_eq!(db.table().await.version(), version);
}
