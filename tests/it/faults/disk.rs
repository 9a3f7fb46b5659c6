//! A disk that fills up while a compaction writes.

use std::collections::BTreeSet;

use std::process::Command;

use lancedb_guard::error::{ErrorKind, GuardError};
use lancedb_guard::exit::Exit;
use lancedb_guard::report::outcome::Outcome;
use lancedb_guard::table::OpenOptions;
use serde_json::{Value, json};

use super::copies::{Copy, Template};
use super::{check_run, facts};
use crate::harness::{Db, files_in};
use crate::stores::{Fault, Faults, Op, Watch, Which};

/// Steps between an empty disk and one that takes all.
const LEVELS: u64 = 24;

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_up_midway_leaves_the_table_at_the_last_commit() {
    let template = Template::bloated("compact", json!({"stale_version_retention_hours": 1})).await;
    let all = Faults::new(Op::Write, Which::Every(1), Fault::Full(u64::MAX));
    let reference = template
        .copy()
        .run(&Watch::with_faults(&all))
        .await
        .unwrap();
    assert_eq!(all.hits(), 0);
    let needed = all.written();
    let reference = facts(&reference);
    let mut exits = BTreeSet::new();
    for level in 0..LEVELS {
        let limit = needed * level / LEVELS;
        let faults = Faults::new(Op::Write, Which::Every(1), Fault::Full(limit));
        exits.insert(check_run(&template.copy(), &template, &reference, &faults).await);
        assert!(faults.hits() > 0, "{limit} of {needed} bytes were enough");
    }
    assert_eq!(exits, [Exit::NotReachable, Exit::PartlyDone].into());
}

/// A compaction with this much free on the volume.
async fn with_free(template: &Template, bytes: u64) -> (Copy, Result<Outcome, GuardError>) {
    let copy = template.copy();
    let options = OpenOptions {
        free_bytes: Some(bytes),
        ..OpenOptions::default()
    };
    let outcome = copy.run_with(&options).await;
    (copy, outcome)
}

fn retention(more: &Value) -> Value {
    let mut fields = json!({"stale_version_retention_hours": 1});
    for (name, value) in more.as_object().unwrap() {
        fields[name] = value.clone();
    }
    fields
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_the_volume_has_no_room_for_is_refused_before_anything_is_written() {
    let template = Template::bloated("compact", retention(&json!({}))).await;
    let (_, outcome) = with_free(&template, u64::MAX).await;
    let Ok(Outcome::Compact(outputs)) = outcome else {
        panic!("no compaction");
    };
    let needed = outputs.plan.free_bytes_needed.unwrap();
    let (copy, outcome) = with_free(&template, needed - 1).await;
    let error = outcome.unwrap_err();
    assert_eq!((error.code, error.kind), (4, ErrorKind::InsufficientSpace));
    assert_eq!(error.context["needed_bytes"], needed.to_string());
    assert_eq!(error.context["free_bytes"], (needed - 1).to_string());
    assert!(!error.retryable);
    assert_eq!(
        files_in(copy.folder.path()),
        files_in(template.folder.path())
    );
    let (_, outcome) = with_free(&template, needed).await;
    assert_eq!(outcome.unwrap().exit(), Exit::Answered);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_volume_can_still_be_pruned_as_the_hint_says() {
    let fields = retention(&json!({
        "max_bytes_to_rewrite": 1,
        "indices": {"merge_segments": "never", "catch_up": false},
    }));
    let template = Template::bloated("compact", fields).await;
    let (_, outcome) = with_free(&template, 0).await;
    let Ok(Outcome::Compact(outputs)) = outcome else {
        panic!("no compaction: {outcome:?}");
    };
    assert!(outputs.cleanup_stats.actual.versions > 0);
    assert_eq!(outputs.baseline.after.version, template.version);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_warns_of_a_volume_without_room() {
    let template = Template::bloated("audit", json!({})).await;
    let (_, outcome) = with_free(&template, 1000).await;
    let outcome = outcome.unwrap();
    assert_eq!(outcome.warnings().len(), 1);
    assert!(
        outcome.warnings()[0]
            .ends_with("the volume of the table has 1.0 kB free: it refuses unless there is room"),
        "{:?}",
        outcome.warnings()
    );
    let (_, outcome) = with_free(&template, u64::MAX).await;
    assert_eq!(outcome.unwrap().warnings(), [] as [String; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_free_space_of_a_local_table_is_that_of_its_volume() {
    let db = Db::new().await;
    db.create(1).await;
    let free = db.table().await.free_bytes().unwrap();
    // As another program sees it; others write meanwhile.
    let output = Command::new("df")
        .args(["-P", "-k"])
        .arg(db.table_path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let kib: u64 = text
        .lines()
        .nth(1)
        .unwrap()
        .split_whitespace()
        .nth(3)
        .unwrap()
        .parse()
        .unwrap();
    assert!(
        free.abs_diff(kib * 1024) < 2_000_000_000,
        "{free} against {text}"
    );
    assert_eq!(db.open_watched(&Watch::default()).await.free_bytes(), None);
}
