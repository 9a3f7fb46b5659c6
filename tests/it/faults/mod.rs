//! A store whose requests fail, are answered late, or whose answers are lost: every nth of a
//! kind, and all from the nth on.
//!
//! For each such fault, in each step: no panic, an exit code that says what happened, the table
//! whole, and a run without faults that finishes the work.

mod copies;
mod disk;

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use lancedb_guard::error::{ErrorKind, GuardError};
use lancedb_guard::exit::Exit;
use lancedb_guard::report::compact::RemediationStatus;
use lancedb_guard::report::outcome::Outcome;
use lancedb_guard::report::text::word;
use lancedb_guard::table::OpenOptions;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::harness::files_in;
use crate::stores::{Fault, Faults, Op, Watch, Which};
use copies::{Copy, Template, watched};

const OPS: [Op; 5] = [Op::Read, Op::Write, Op::List, Op::Delete, Op::Copy];

/// The largest n.
const LIMIT: u64 = 40;

/// Runs at the same time.
const PARALLEL: usize = 4;

/// The facts of an answer that no fault may change.
fn facts(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Audit(outputs) => json!([
            outputs.overall_status,
            outputs.escalation_reason,
            outputs.audit_manifest.fragments,
            outputs.audit_manifest.versions,
            outputs.audit_manifest.refs,
            outputs.audit_manifest.indices,
            outputs.audit_manifest.pressures,
            outputs.audit_manifest.storage.files,
            outputs.plan.compaction,
            outputs.warnings,
        ]),
        Outcome::Verify(outputs) => {
            let checks = outputs.checks.iter();
            let checks: Vec<_> = checks.map(|row| (row.check, row.status)).collect();
            json!([outputs.verification_passed, checks, outputs.warnings])
        }
        Outcome::Compact(outputs) => json!([
            outputs.remediation_status,
            outputs.compaction_stats.actual,
            outputs.index_merge.actual,
            outputs.index_catch_up.actual,
            outputs.cleanup_stats.actual.versions,
            outputs.cleanup_stats.actual.data_files,
            outputs.warnings,
        ]),
        Outcome::Failure(outputs) => json!(outputs.error),
    }
}

/// The error of a run that met a fault of the store, which says nothing else but that.
fn check_error(error: &GuardError, kind: ErrorKind) {
    let told = format!("{error:?}");
    if error.kind == ErrorKind::PartlyDone {
        assert_eq!(error.code, 6, "{told}");
        assert_eq!(error.context["cause"], word(&kind), "{told}");
    } else {
        assert_eq!((error.kind, error.code), (kind, 3), "{told}");
    }
    let passes = kind == ErrorKind::StorageUnreachable;
    assert_eq!(error.retryable, passes, "{told}");
    assert!(error.hint.is_some(), "{told}");
    assert!(error.message.chars().count() < 600, "{told}");
}

/// One run of a step that met a fault, and what must hold for it.
async fn check_run(
    copy: &Copy,
    template: &Template,
    reference: &Value,
    faults: &Arc<Faults>,
) -> Exit {
    let (version, files) = (template.version, files_in(copy.folder.path()));
    let outcome = copy.run(&Watch::with_faults(faults)).await;
    copy.check_whole(&template.ids).await;
    let now = copy.table().await.version().await.unwrap();
    let exit = outcome
        .as_ref()
        .map_or_else(GuardError::exit, Outcome::exit);
    let kind = match faults.fault() {
        Fault::Full(_) => ErrorKind::StorageFull,
        _ => ErrorKind::StorageUnreachable,
    };
    let mut finished = false;
    match &outcome {
        Err(error) => {
            check_error(error, kind);
            assert_ne!(error.code, 6, "{error:?}");
            assert_eq!(now, version, "{error:?}");
            assert!(files_in(copy.folder.path()) >= files, "{error:?}");
        }
        Ok(Outcome::Compact(outputs)) if outputs.error.is_some() => {
            check_error(outputs.error.as_ref().unwrap(), kind);
            assert_eq!(outputs.remediation_status, RemediationStatus::Partial);
            assert!(outputs.table_changed);
        }
        Ok(Outcome::Compact(outputs)) if outputs.cleanup_stats.failed_deletes > 0 => {
            assert_eq!(outputs.remediation_status, RemediationStatus::Partial);
            assert_eq!(outputs.warnings.len(), 1, "{:?}", outputs.warnings);
            let pruned = &outputs.cleanup_stats;
            assert!(pruned.actual.versions <= pruned.planned.versions);
        }
        Ok(outcome) => {
            assert_eq!(&facts(outcome), reference);
            finished = true;
        }
    }
    if let Ok(Outcome::Audit(outputs)) = &outcome {
        let absent = outputs.plan.prune.estimate.is_none();
        let named = outputs
            .unknown
            .iter()
            .any(|u| u.fact == "plan.prune.estimate");
        assert_eq!(absent, named);
    }
    if template.step != "compact" {
        assert_eq!((now, files_in(copy.folder.path())), (version, files));
        return exit;
    }
    if finished {
        return exit;
    }
    // The next run finishes the work, and the one after it finds none.
    let next = copy.run(&Watch::default()).await.unwrap();
    assert_eq!(next.exit(), Exit::Answered, "{}", next.summary());
    copy.check_whole(&template.ids).await;
    let table = copy.table().await;
    let dataset = table.dataset().unwrap().get().await.unwrap();
    assert_eq!(dataset.count_fragments(), 1);
    let Outcome::Compact(last) = copy.run(&Watch::default()).await.unwrap() else {
        panic!("no compaction");
    };
    assert_eq!(
        last.remediation_status,
        RemediationStatus::NothingToDo,
        "{}",
        last.summary
    );
    exit
}

/// Runs a step once for each fault that it can meet, and names every fault that broke a rule.
async fn check_step(template: Template, faults: &[Fault]) {
    let watch = Watch::default();
    let reference = template.copy().run(&watch).await.unwrap();
    let reference = facts(&reference);
    let mut cases = Vec::new();
    for op in OPS {
        // A fault that comes after the last request of its kind is none.
        let requests = watch.paths(op).len() as u64;
        for n in 1..=LIMIT.min(requests) {
            for &fault in faults {
                // To who only reads, a lost answer is a failure.
                if fault == Fault::AnswerLost && matches!(op, Op::Read | Op::List) {
                    continue;
                }
                cases.push((op, Which::Every(n), fault));
                if n > 1 && fault == Fault::Fails {
                    cases.push((op, Which::From(n), fault));
                }
            }
        }
    }
    let (template, reference) = (Arc::new(template), Arc::new(reference));
    let broken: Vec<String> = stream::iter(cases)
        .map(|(op, which, fault)| {
            let (template, reference) = (template.clone(), reference.clone());
            async move {
                let faults = Faults::new(op, which, fault);
                let (met, handle) = (faults.clone(), Handle::current());
                // On a thread of its own, so that a panic is one of this case alone.
                let run = spawn_blocking(move || {
                    let copy = template.copy();
                    handle.block_on(check_run(&copy, &template, &reference, &met));
                });
                let ended = run.await;
                assert!(faults.hits() > 0, "{op:?} {which:?} {fault:?} hit nothing");
                ended
                    .err()
                    .map(|e| format!("{op:?} {which:?} {fault:?}: {e}"))
            }
        })
        .buffer_unordered(PARALLEL)
        .filter_map(|broken| async { broken })
        .collect()
        .await;
    assert!(
        broken.is_empty(),
        "{} cases:\n{}",
        broken.len(),
        broken.join("\n")
    );
}

const LATE: Fault = Fault::Late(Duration::from_millis(5));

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_on_a_failing_store_says_so_or_is_right() {
    let fields = json!({"stale_version_retention_hours": 1, "prune_estimate": "always"});
    let template = Template::bloated("audit", fields).await;
    check_step(template, &[Fault::Fails, LATE]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_on_a_failing_store_leaves_a_whole_table_and_the_next_run_converges() {
    let fields = json!({"stale_version_retention_hours": 1});
    let template = Template::bloated("compact", fields).await;
    check_step(template, &[Fault::Fails, Fault::AnswerLost, LATE]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verification_on_a_failing_store_says_so_or_is_right() {
    check_step(Template::compacted().await, &[Fault::Fails, LATE]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_never_answers_ends_the_opening_with_3() {
    let template = Template::bloated("compact", json!({})).await;
    let copy = template.copy();
    let faults = Faults::new(Op::Read, Which::From(1), Fault::Hangs);
    let options = OpenOptions {
        deadline: Duration::from_millis(300),
        ..watched(&Watch::with_faults(&faults))
    };
    let opened = timeout(Duration::from_secs(20), copy.run_with(&options)).await;
    let error = opened.expect("the run hangs").unwrap_err();
    assert_eq!((error.code, error.kind), (3, ErrorKind::StorageUnreachable));
    let path = copy.folder.path().display();
    let said = format!("file-object-store://{path} did not answer within 0.3 s");
    assert_eq!(error.message, said);
    assert!(error.retryable);
    assert_eq!(faults.hits(), 1);
    assert_eq!(OpenOptions::default().deadline, Duration::from_secs(60));
}
