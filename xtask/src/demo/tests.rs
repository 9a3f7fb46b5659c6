//! The story against a stand-in for the binary that prints prepared answers, one for each step.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::*;

/// What the stand-in prints for the steps of a run in which all is well.
fn answers() -> [Value; 6] {
    let audit = |status: &str, reason: &str, due: bool, fragments: u64, state: &str| {
        json!({
            "overall_status": status, "escalation_reason": reason, "needs_compaction": due,
            "fragment_count": fragments, "active_rows": 7, "tombstone_count": 0,
            "version_count": 9, "summary": "An audit.", "approval": {"plan_id": "p"}, "new_state_snapshot": {"t": state},
            "audit_manifest": {
                "storage": {"live_bytes": 10, "bytes_on_disk": 20},
                "indices": [{"rows_indexed": 7}]
            }
        })
    };
    [
        audit("DEGRADED", "awaiting_persistence", false, 62, "first"),
        audit(
            "COMPACTION_REQUIRED",
            "persistent_bloat",
            true,
            62,
            "second",
        ),
        json!({
            "remediation_status": "SUCCESS", "baseline": {"after": {"rows": 7}},
            "cleanup_stats": {"actual": {"versions": 46}}, "summary": "Compacted."
        }),
        json!({
            "verification_passed": true, "summary": "Verified.",
            "new_state_snapshot": {"t": "verified"}
        }),
        json!({
            "remediation_status": "NOTHING_TO_DO", "table_changed": false, "summary": "Nothing."
        }),
        audit("HEALTHY", "none", false, 1, "last"),
    ]
}

fn run_story(folder: &Path, answers: &[Value]) -> Result<()> {
    for (index, answer) in answers.iter().enumerate() {
        let lines = format!("::{}::\nsummary\n", json!({ "outputs": answer }));
        fs::write(folder.join(format!("{}.answer", index + 1)), lines).unwrap();
    }
    story(&mut Runner {
        guard: crate::cargo::root().join("xtask/src/demo/stand_in.sh"),
        folder: folder.to_owned(),
        db_uri: "/db".to_owned(),
        table_name: TABLE.to_owned(),
        count: 0,
    })
}

fn spec(folder: &Path, title: &str) -> Value {
    let text = fs::read_to_string(folder.join(format!("{title}.spec.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_outputs_of_a_step_feed_the_next() {
    let Folder(folder) = Folder::new(None).unwrap();
    run_story(&folder, &answers()).unwrap();
    assert_eq!(spec(&folder, "1-audit")["previous_state"], json!(null));
    assert_eq!(
        spec(&folder, "2-audit")["previous_state"],
        json!({"t": "first"})
    );
    let verify = spec(&folder, "4-verify");
    assert_eq!(verify["baseline"], json!({"after": {"rows": 7}}));
    assert_eq!(
        spec(&folder, "3-compact")["approval"],
        json!({"plan_id": "p"})
    );
    assert_eq!(verify["pre_fragments"], json!(62));
    assert_eq!(verify["previous_state"], json!({"t": "second"}));
    assert_eq!(
        spec(&folder, "6-audit")["previous_state"],
        json!({"t": "verified"})
    );
    assert!(folder.join("6-audit.kestra.txt").is_file());
    Folder(folder).remove().unwrap();
}

#[test]
fn an_answer_that_is_not_right_stops_the_demo() {
    for (step, pointer, wrong, message) in [
        (
            0,
            "/overall_status",
            json!("HEALTHY"),
            "1-audit: output /overall_status should be",
        ),
        (
            2,
            "/cleanup_stats/actual/versions",
            json!(0),
            "compact pruned no version",
        ),
        (
            2,
            "/baseline/after/rows",
            json!(6),
            "3-compact: output /baseline/after/rows should be 7",
        ),
        (
            3,
            "/verification_passed",
            json!(false),
            "4-verify: output /verification_passed",
        ),
        (
            4,
            "/table_changed",
            json!(true),
            "5-compact: output /table_changed should be false",
        ),
        (
            5,
            "/fragment_count",
            json!(2),
            "6-audit: output /fragment_count should be 1 and is 2",
        ),
    ] {
        let Folder(folder) = Folder::new(None).unwrap();
        let mut answers = answers();
        *answers[step].pointer_mut(pointer).unwrap() = wrong;
        let error = run_story(&folder, &answers).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
        Folder(folder).remove().unwrap();
    }
}
