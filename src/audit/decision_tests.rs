//! Tables of cases: a snapshot and a past in, a decision out.

use chrono::{DateTime, TimeDelta, Utc};

use super::*;
use crate::report::plan::{Plan, PlannedCompaction, PlannedPrune};
use crate::report::table::{
    FormatFacts, FragmentFacts, IndexFact, RefFacts, TableId, VersionFacts,
};
use crate::table::indices::IndexSketch;
use crate::table::versions::Retention;

const THRESHOLDS: Thresholds = Thresholds {
    fragments: 20,
    critical_fragments: 100,
    tombstone_percent: 15.0,
    stale_versions: 100,
    unindexed_percent: 20.0,
    consecutive_runs: 2,
};

/// What a case is about; everything else is in order.
#[derive(Clone, Copy, Default)]
struct Case {
    fragments: u64,
    fragments_expected: u64,
    tombstone_pct: f64,
    tombstones_to_clear: u64,
    prunable: u64,
    unindexed_pct: f64,
    mergeable: bool,
}

fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(10)
}

fn snapshot(case: Case) -> Snapshot {
    let at = DateTime::UNIX_EPOCH;
    Snapshot {
        id: TableId {
            key: "/db/t".to_owned(),
            db_uri: "/db".to_owned(),
            table_name: "t".to_owned(),
        },
        fragments: FragmentFacts {
            count: case.fragments,
            target_rows: 1000,
            bytes_per_row: None,
            under_target: 0,
            active_rows: 1000,
            physical_rows: 1000,
            tombstones: 0,
            tombstone_pct: case.tombstone_pct,
            deletion_files: 0,
            rows_per_fragment: None,
            bytes_per_fragment: None,
        },
        fragment_sketches: Vec::new(),
        versions: VersionFacts {
            count: 7,
            oldest: 1,
            oldest_at: at,
            current: 7,
            current_at: at,
            cutoff: at,
            oldest_kept: 1,
            stale: case.prunable,
            prunable: case.prunable,
        },
        retention: Retention {
            cutoff: at,
            existing: vec![7],
            oldest_kept: 7,
            oldest_at: at,
            current: 7,
            current_at: at,
        },
        refs: RefFacts::default(),
        indices: vec![IndexSketch {
            fact: IndexFact {
                name: "id_idx".to_owned(),
                index_type: "BTree".to_owned(),
                columns: vec!["id".to_owned()],
                segments: 1,
                rows_indexed: Some(900),
                rows_unindexed: Some(u64::from(case.unindexed_pct > 0.0)),
                unindexed_pct: Some(case.unindexed_pct),
                bytes: None,
            },
            segments: Vec::new(),
            mergeable: case.mergeable,
            is_vector: false,
            futile: false,
        }],
        format: FormatFacts {
            storage_version: "2.0".to_owned(),
            stable_row_ids: false,
            shallow_clone: false,
            settings: std::collections::BTreeMap::new(),
        },
        plan: Plan {
            plan_id: "p".to_owned(),
            read_version: 7,
            index_merges: Vec::new(),
            compaction: PlannedCompaction {
                tasks: u64::from(case.fragments > case.fragments_expected),
                no_task_reason: None,
                after_index_merge: false,
                target_rows: 1000,
                fragments_to_rewrite: 0,
                fragments_expected: case.fragments_expected,
                rows_to_rewrite: 0,
                tombstones_to_clear: case.tombstones_to_clear,
                bytes_to_rewrite: None,
            },
            index_catch_ups: Vec::new(),
            prune: PlannedPrune {
                versions: case.prunable,
                versions_pinned: 0,
                versions_later: 0,
                estimate: None,
                bytes_freed_later: None,
            },
            free_bytes_needed: None,
        },
        unknown: Vec::new(),
    }
}

fn decision(case: Case, previous: Option<&TableState>) -> Decision {
    decide(&snapshot(case), &THRESHOLDS, previous, "now", now())
}

/// What an audit a day ago, by another execution, remembered.
fn past(consecutive_bloated_runs: u64) -> TableState {
    let mut entry = decide(
        &snapshot(Case::default()),
        &THRESHOLDS,
        None,
        "before",
        now() - TimeDelta::days(1),
    )
    .entry;
    entry.consecutive_bloated_runs = consecutive_bloated_runs;
    entry
}

fn tiny(fragments: u64) -> Case {
    Case {
        fragments,
        fragments_expected: 1,
        ..Case::default()
    }
}

#[test]
fn each_pressure_counts_from_its_threshold_on() {
    use EscalationReason as R;
    use OverallStatus as S;
    let deleted = |tombstone_pct| Case {
        tombstone_pct,
        tombstones_to_clear: 10,
        ..tiny(1)
    };
    let stale = |prunable| Case {
        prunable,
        ..tiny(1)
    };
    let behind = |unindexed_pct| Case {
        unindexed_pct,
        mergeable: true,
        ..tiny(1)
    };
    for (name, case, runs_before, status, reason) in [
        ("19 fragments", tiny(19), 1, S::Healthy, R::None),
        ("20 once", tiny(20), 0, S::Degraded, R::AwaitingPersistence),
        (
            "20 twice",
            tiny(20),
            1,
            S::CompactionRequired,
            R::PersistentBloat,
        ),
        ("99 once", tiny(99), 0, S::Degraded, R::AwaitingPersistence),
        ("100 once", tiny(100), 0, S::Critical, R::CriticalFragments),
        ("14.99 % deleted", deleted(14.99), 1, S::Healthy, R::None),
        (
            "15 % deleted",
            deleted(15.0),
            0,
            S::CompactionRequired,
            R::Tombstones,
        ),
        ("99 stale", stale(99), 1, S::Healthy, R::None),
        (
            "100 stale once",
            stale(100),
            0,
            S::Degraded,
            R::AwaitingPersistence,
        ),
        (
            "100 stale twice",
            stale(100),
            1,
            S::CompactionRequired,
            R::PersistentBloat,
        ),
        ("19.99 % unindexed", behind(19.99), 1, S::Healthy, R::None),
        (
            "20 % unindexed",
            behind(20.0),
            0,
            S::Degraded,
            R::AwaitingPersistence,
        ),
        (
            "20 % unindexed twice",
            behind(20.0),
            1,
            S::CompactionRequired,
            R::PersistentBloat,
        ),
    ] {
        let decided = decision(case, Some(&past(runs_before)));
        assert_eq!((decided.status, decided.reason), (status, reason), "{name}");
        assert_eq!(
            decided.needs_compaction,
            matches!(status, S::Critical | S::CompactionRequired),
            "{name}"
        );
    }
}

#[test]
fn what_a_compact_step_cannot_mend_is_no_bloat() {
    for (name, case) in [
        (
            "full-size fragments",
            Case {
                fragments: 500,
                fragments_expected: 500,
                ..Case::default()
            },
        ),
        (
            "a few small among many full ones",
            Case {
                fragments: 519,
                fragments_expected: 501,
                ..Case::default()
            },
        ),
        (
            "deletions spread thin",
            Case {
                tombstone_pct: 50.0,
                ..tiny(1)
            },
        ),
        (
            "an index that cannot be merged",
            Case {
                unindexed_pct: 50.0,
                ..tiny(1)
            },
        ),
    ] {
        let decided = decision(case, Some(&past(5)));
        assert_eq!(decided.status, OverallStatus::Healthy, "{name}");
        assert_eq!(decided.entry.consecutive_bloated_runs, 0, "{name}");
    }
}

#[test]
fn too_many_small_ones_among_many_full_ones_are_bloat() {
    let case = Case {
        fragments: 520,
        fragments_expected: 501,
        ..Case::default()
    };
    assert_eq!(decision(case, None).status, OverallStatus::Degraded);
}

#[test]
fn a_healthy_audit_starts_the_count_again() {
    assert_eq!(
        decision(tiny(1), Some(&past(4)))
            .entry
            .consecutive_bloated_runs,
        0
    );
    assert_eq!(
        decision(tiny(50), Some(&past(4)))
            .entry
            .consecutive_bloated_runs,
        5
    );
}

#[test]
fn the_same_execution_counts_once() {
    let first = decision(tiny(50), Some(&past(0)));
    let again = decision(tiny(50), Some(&first.entry));
    assert_eq!(again.entry.consecutive_bloated_runs, 1);
    assert_eq!(again.status, OverallStatus::Degraded);
    assert_eq!(again.entry.history, first.entry.history);
    assert_eq!(again.growth, first.growth);
}

#[test]
fn manual_runs_count_each() {
    let run = |previous: Option<&TableState>| {
        decide(&snapshot(tiny(50)), &THRESHOLDS, previous, "manual", now())
    };
    let first = run(None);
    assert_eq!(run(Some(&first.entry)).entry.consecutive_bloated_runs, 2);
}

#[test]
fn the_history_is_bounded_and_keeps_the_newest() {
    let mut entry = past(0);
    for run in 0..40 {
        let at = now() + TimeDelta::days(run);
        let name = format!("run {run}");
        entry = decide(&snapshot(tiny(1)), &THRESHOLDS, Some(&entry), &name, at).entry;
    }
    assert_eq!(entry.history.len(), HISTORY_LENGTH);
    assert_eq!(
        entry.history[HISTORY_LENGTH - 1].at,
        now() + TimeDelta::days(39)
    );
}

#[test]
fn an_index_that_was_there_before_is_missed() {
    let mut previous = past(0);
    previous.index_names.insert("vector_idx".to_owned());
    assert_eq!(
        decision(tiny(1), Some(&previous)).indices_lost,
        ["vector_idx"]
    );
}

#[test]
fn the_time_of_the_last_compaction_is_kept() {
    let mut previous = past(0);
    previous.last_compacted_at = Some(now());
    assert_eq!(
        decision(tiny(1), Some(&previous)).entry.last_compacted_at,
        Some(now())
    );
}
