//! `cargo xtask demo`: the main job on a made-up table, through the public contract alone.
//!
//! ```text
//! audit -> audit -> compact -> verify      one run of the flow, after an audit that only saw
//!       `state`  `baseline`, `state`       the bloat for the first time
//! compact again, audit again               proof that nothing is left to do
//! ```
//!
//! Every step's spec is a file that goes to stdin, and its outputs feed the next step, as in the
//! flow. What must hold is checked on the way, so the demo is an end-to-end test as well.

mod kestra;
mod step;
#[cfg(all(test, unix))]
mod tests;
mod view;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::cargo::{self, Cargo};
use step::{Answer, Runner};

const TABLE: &str = "documents";
const RETENTION_HOURS: u64 = 24;

/// The folder that the demo works in and leaves behind.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes the folder: the one given, which must be new or empty, or a temporary one.
    pub fn new(dir: Option<PathBuf>) -> Result<Self> {
        let Some(dir) = dir else {
            let made = tempfile::Builder::new()
                .prefix("lancedb-guard-demo-")
                .tempdir()?;
            return Ok(Self(made.keep()));
        };
        let path = std::path::absolute(dir)?;
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let empty = fs::read_dir(&path)?.next().is_none();
        ensure!(empty, "{} is not empty", path.display());
        Ok(Self(path))
    }

    /// Removes the folder with everything in it.
    pub fn remove(self) -> Result<()> {
        Ok(fs::remove_dir_all(self.0)?)
    }
}

/// Runs the demo; an error if anything is not as it must be.
pub fn run(cargo: &Cargo, folder: &Folder) -> Result<()> {
    let Folder(folder) = folder;
    println!("Building (the first build takes minutes) …");
    let programs = cargo.build_programs()?;
    let db = folder.join("db");
    cargo::check(
        Command::new(&programs.sample_table)
            .arg("bloated")
            .arg(&db)
            .arg("--fixtures")
            .arg(cargo::root().join("tests/fixtures")),
    )?;
    println!(
        "\nA LanceDB table as months of small appends leave it: many small fragments, deleted rows\n\
         in most of them, indices that cover the oldest rows only, and old versions that nobody\n\
         reads. The steps below run the real binary as the Kestra flow does.\n"
    );
    let mut runner = Runner {
        guard: programs.guard,
        folder: folder.clone(),
        db_uri: db.display().to_string(),
        table_name: TABLE.to_owned(),
        count: 0,
    };
    let told = story(&mut runner);
    println!(
        "\nSpecs and Kestra lines: {0}/*.spec.json, {0}/*.kestra.txt\nThe table:              {1}",
        folder.display(),
        db.join(format!("{TABLE}.lance")).display()
    );
    told
}

fn story(runner: &mut Runner) -> Result<()> {
    let first = audit(runner, "demo-1", json!(null))?;
    tell(
        "audit, first run: bloat is seen once, which may be routine",
        &first,
    )?;
    first.expect("/overall_status", "DEGRADED")?;
    first.expect("/escalation_reason", "awaiting_persistence")?;
    first.expect("/needs_compaction", false)?;

    let second = audit(runner, "demo-2", first.get("/new_state_snapshot")?.clone())?;
    tell("audit, next run: the bloat is still there", &second)?;
    second.expect("/overall_status", "COMPACTION_REQUIRED")?;
    second.expect("/escalation_reason", "persistent_bloat")?;
    second.expect("/needs_compaction", true)?;

    let compacted = compact(runner, "demo-2", &second)?;
    tell(
        "compact: merge index segments, rewrite fragments, prune",
        &compacted,
    )?;
    compacted.expect("/remediation_status", "SUCCESS")?;
    compacted.expect("/baseline/after/rows", second.count("/active_rows")?)?;
    ensure!(
        compacted.count("/cleanup_stats/actual/versions")? > 0,
        "compact pruned no version, though months-old ones were there"
    );

    let verified = verify(runner, "demo-2", &second, &compacted)?;
    tell(
        "verify: the same rows, schema and search results as before",
        &verified,
    )?;
    verified.expect("/verification_passed", true)?;

    let again = compact(runner, "demo-3", &second)?;
    tell("compact again: nothing is left to do", &again)?;
    again.expect("/remediation_status", "NOTHING_TO_DO")?;
    again.expect("/table_changed", false)?;

    let last = audit(
        runner,
        "demo-3",
        verified.get("/new_state_snapshot")?.clone(),
    )?;
    tell("audit, the run after", &last)?;
    last.expect("/overall_status", "HEALTHY")?;
    last.expect("/fragment_count", 1)?;
    last.expect("/tombstone_count", 0)?;
    last.expect("/active_rows", first.count("/active_rows")?)?;

    println!("{}", view::table(&view::compare(&first, &last)?));
    println!(
        "The replaced fragments stay for {RETENTION_HOURS} h, for readers that still use them, and \
         then a later run\nprunes them with the versions of today."
    );
    Ok(())
}

fn audit(
    runner: &mut Runner,
    execution: &str,
    previous_state: serde_json::Value,
) -> Result<Answer> {
    let fields = json!({
        "fragment_count_threshold": 20,
        "critical_fragment_threshold": 100,
        "tombstone_percent_threshold": 15,
        "stale_version_retention_hours": RETENTION_HOURS,
        "stale_version_threshold": 100,
        "unindexed_percent_threshold": 20,
        "target_rows_per_fragment": 100_000,
        "min_consecutive_runs": 2,
        "previous_state": previous_state,
    });
    runner.run("audit", execution, fields)
}

fn compact(runner: &mut Runner, execution: &str, audited: &Answer) -> Result<Answer> {
    let fields = json!({
        "target_rows_per_fragment": 100_000,
        "stale_version_retention_hours": RETENTION_HOURS,
        "dry_run": false,
        "approval": audited.get("/approval")?,
    });
    runner.run("compact", execution, fields)
}

fn verify(
    runner: &mut Runner,
    execution: &str,
    audited: &Answer,
    compacted: &Answer,
) -> Result<Answer> {
    let fields = json!({
        "pre_fragments": audited.count("/fragment_count")?,
        "pre_tombstones": audited.count("/tombstone_count")?,
        "baseline": compacted.get("/baseline")?,
        "previous_state": audited.get("/new_state_snapshot")?,
    });
    runner.run("verify", execution, fields)
}

fn tell(heading: &str, answer: &Answer) -> Result<()> {
    println!("{}  {heading}\n   {}\n", answer.title, answer.summary()?);
    Ok(())
}
