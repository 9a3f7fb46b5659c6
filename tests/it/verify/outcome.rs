//! What a verification means for the state.

use lancedb_guard::report::verify::{CheckStatus, VerifyOutputs};
use serde_json::{Value, json};

use super::bench::*;

fn old_entry() -> Value {
    json!({
        "fragment_count": 6, "active_rows": 72, "tombstone_count": 48, "tombstone_pct": 40.0,
        "version_count": 7, "current_version": 7, "consecutive_bloated_runs": 2,
        "last_evaluated_at": "2026-03-04T05:00:00Z", "last_execution_id": "e8",
        "history": [{"at": "2026-03-04T05:00:00Z", "fragments": 6, "tombstones": 48, "versions": 7}],
    })
}

fn state(outputs: &VerifyOutputs) -> Value {
    serde_json::to_value(&outputs.new_state_snapshot).unwrap()
}

#[tokio::test]
async fn a_success_resets_the_counter_and_keeps_what_only_audits_see() {
    let bench = Bench::with_tombstones().await;
    bench.compact().await;
    let baseline = bench.baseline(7, 9, &[8, 9]).await;
    let key = bench.open().await.id().key.clone();
    let outputs = bench
        .verify_with(json!({
            "baseline": baseline,
            "previous_state": {"other": {"x": 1}, key.clone(): old_entry()},
        }))
        .await;
    assert_passes(&outputs);
    assert!(!outputs.state_reset);
    let mut expected = old_entry();
    expected["fragment_count"] = json!(1);
    expected["tombstone_count"] = json!(0);
    expected["tombstone_pct"] = json!(0.0);
    expected["version_count"] = json!(9);
    expected["current_version"] = json!(9);
    expected["consecutive_bloated_runs"] = json!(0);
    expected["index_names"] = json!([]);
    expected["last_compacted_at"] = json!("2026-03-04T05:06:07Z");
    assert_eq!(state(&outputs), json!({"other": {"x": 1}, key: expected}));
}

#[tokio::test]
async fn a_failure_leaves_the_state_as_it_was() {
    let bench = Bench::with_tombstones().await;
    bench.compact().await;
    let mut baseline = bench.baseline(7, 9, &[8, 9]).await;
    baseline.fragments_expected = 3;
    let key = bench.open().await.id().key.clone();
    let previous = json!({"other": {"x": 1}, key: old_entry()});
    let outputs = bench
        .verify_with(json!({"baseline": baseline, "previous_state": previous.to_string()}))
        .await;
    assert!(!outputs.verification_passed);
    assert_eq!(state(&outputs), previous);
}

#[tokio::test]
async fn a_dry_run_resets_nothing() {
    let bench = Bench::with_tombstones().await;
    let key = bench.open().await.id().key.clone();
    let previous = json!({key: old_entry()});
    let outputs = bench
        .verify_with(json!({
            "baseline": bench.baseline(7, 7, &[]).await,
            "previous_state": previous,
        }))
        .await;
    assert_passes(&outputs);
    assert_eq!(state(&outputs), previous);
}

#[tokio::test]
async fn a_broken_state_is_a_warning() {
    let bench = Bench::with_tombstones().await;
    bench.compact().await;
    let outputs = bench
        .verify_with(json!({
            "baseline": bench.baseline(7, 9, &[8, 9]).await,
            "previous_state": "{broken",
        }))
        .await;
    assert_passes(&outputs);
    assert!(outputs.state_reset);
    assert_eq!(outputs.warnings.len(), 1);
    let key = &outputs.table.key;
    assert_eq!(state(&outputs)[key]["consecutive_bloated_runs"], json!(0));
    assert_eq!(state(&outputs)[key]["last_execution_id"], json!("e9"));
}

#[tokio::test]
async fn rows_say_passed_unless_they_failed() {
    let bench = Bench::with_tombstones().await;
    let outputs = bench.verify_with(json!({})).await;
    for row in &outputs.checks {
        assert_eq!(row.passed, row.status != CheckStatus::Failed, "{row:?}");
    }
}
