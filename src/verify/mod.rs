//! Verify: was the compaction right, and is the table healthy now? Changes nothing.
//!
//! The checks, one file each, in the order in which they are put out:
//! - `schema`, `rows`, `fragments`, `tombstones`: the version before compaction against the one
//!   after, by time travel, other writers' commits accounted for (`compared`);
//! - `files`, `indices_present`, `indices_covering`: the current version;
//! - `contents`, above the level `quick`: what the rows hold, before and after;
//! - `scalar_indices`, above the level `quick`: lookups in the current version;
//! - `canary`, above the level `quick`: searches in the current version;
//! - `recall`, above the level `quick`: searches before and after.
//!
//! A check that cannot be applied is skipped with the reason, and does not stand against the
//! verification. A check that the engine cannot carry out, because it cannot read what the check
//! needs, fails. Only a store that does not answer or denies access ends the step with an error.

mod canary;
mod compared;
mod contents;
mod files;
mod fragments;
mod indices_covering;
mod indices_present;
mod recall;
mod rows;
mod scalar_indices;
mod schema;
mod tombstones;

use compared::{Compared, Span};

use crate::clock::Clock;
use crate::error::{ErrorKind, GuardError, Result};
use crate::report::baseline::{Baseline, VersionCounts};
use crate::report::percent;
use crate::report::state::TableState;
use crate::report::text::count;
use crate::report::verify::{AuditRecord, CheckId, CheckRow, CheckStatus, VerifyOutputs};
use crate::spec::verify::Level;
use crate::spec::{Step, VerifySpec};
use crate::state::{self, ReadState};
use crate::table::Table;
use crate::table::counts::VersionView;
use crate::table::coverage::IndexCoverage;

/// Failed checks that the summary tells of.
const FAILURES_TOLD: usize = 3;

/// Verifies the version that `table` reads.
///
/// # Errors
/// Where the store does not answer or denies access, or where a manifest cannot be read. A
/// verification that fails is an answer, not an error.
pub async fn run(spec: &VerifySpec, table: &Table, clock: &Clock) -> Result<VerifyOutputs> {
    let baseline = spec.baseline.as_ref();
    let Structure {
        now,
        compared,
        indices,
        mut checks,
    } = structure_of(table, baseline, spec.pre_fragments, spec.pre_tombstones).await?;
    let mut canary_latency_ms = None;
    let mut canary_latency_before_ms = None;
    let mut contents_read = None;
    if spec.level > Level::Quick {
        let contents = contents::check(&compared, table, spec.level, &spec.contents).await?;
        checks.extend(contents.rows);
        contents_read = contents.read;
        checks.extend(
            scalar_indices::check(&compared, table, spec.level, &spec.canary, &indices).await?,
        );
        let canary = canary::check(table, &spec.canary, now.counts.rows, &indices).await?;
        checks.extend(canary.rows);
        canary_latency_ms = canary.latency_ms;
        let recall = recall::check(&compared, table, &spec.canary, &indices).await?;
        checks.extend(recall.rows);
        canary_latency_before_ms = recall.latency_before_ms;
    }

    let verification_passed = checks.iter().all(|row| row.passed);
    let state = state::read(&spec.previous_state, &table.id().key);
    let mut warnings: Vec<String> = state.warning.iter().cloned().collect();
    if let Compared::Versions(span) = &compared
        && span.after_gone
    {
        warnings.push(format!(
            "the version after compaction was pruned; version {} was compared instead",
            now.counts.version
        ));
    }
    if baseline.is_none() {
        warnings.push(
            "the spec has no baseline: schema, rows and contents from before compaction were not compared".to_owned(),
        );
    }
    let state_reset = state.reset;
    // Without a baseline only fewer fragments or deleted rows than before tell of a compaction.
    let fewer = |before: Option<u64>, now: u64| before.is_some_and(|before| now < before);
    let compacted = baseline.map_or(
        fewer(spec.pre_fragments, now.counts.fragments)
            || fewer(spec.pre_tombstones, now.counts.tombstones),
        Baseline::changed_the_table,
    );
    let resets = verification_passed && compacted;
    let new_state_snapshot = if resets {
        let entry = renewed(&state, spec, table, now.counts, clock).await?;
        state::merge(state, &table.id().key, &entry)
    } else {
        state::keep(state, &table.id().key)
    };
    let mut failed_checks: Vec<CheckId> = checks
        .iter()
        .filter(|row| !row.passed)
        .map(|row| row.check)
        .collect();
    failed_checks.dedup();
    let concurrent_commits = compared.concurrent_commits();
    Ok(VerifyOutputs {
        step: Step::Verify,
        table: table.id().clone(),
        level: spec.level,
        verification_passed,
        summary: summary(table, &checks, concurrent_commits.len(), now.counts),
        post_fragment_count: now.counts.fragments,
        post_tombstone_count: now.counts.tombstones,
        canary_latency_ms,
        canary_latency_before_ms,
        contents_read,
        checks,
        concurrent_commits,
        audit_record: AuditRecord {
            table: table.id().clone(),
            verified_at: clock.evaluated_at,
            execution_id: spec.execution_id.clone(),
            level: spec.level,
            verification_passed,
            version: now.counts.version,
            pre_fragments: spec.pre_fragments.or(baseline.map(|b| b.before.fragments)),
            post_fragments: now.counts.fragments,
            pre_tombstones: spec
                .pre_tombstones
                .or(baseline.map(|b| b.before.tombstones)),
            post_tombstones: now.counts.tombstones,
            failed_checks,
        },
        new_state_snapshot,
        state_reset,
        warnings,
        truncated: Vec::new(),
    })
}

/// The checks of the level `quick`: what must hold before old versions may go.
///
/// # Errors
/// As [`run`].
pub async fn structure(baseline: &Baseline, table: &Table) -> Result<Vec<CheckRow>> {
    let structure = structure_of(table, Some(baseline), None, None).await?;
    Ok(structure.checks)
}

/// What the checks found that look at manifests and listings only.
struct Structure {
    now: VersionView,
    compared: Compared,
    indices: Vec<IndexCoverage>,
    checks: Vec<CheckRow>,
}

async fn structure_of(
    table: &Table,
    baseline: Option<&Baseline>,
    pre_fragments: Option<u64>,
    pre_tombstones: Option<u64>,
) -> Result<Structure> {
    let now = table.view().await?;
    let compared = compared::read(baseline, table, &now).await?;
    let mut checks = vec![
        schema::check(&compared),
        rows::check(&compared, baseline),
        fragments::check(&compared, baseline, pre_fragments, now.counts),
        tombstones::check(&compared, baseline, pre_tombstones, now.counts),
        files::check(table).await?,
        indices_present::check(&compared, baseline, table).await?,
    ];
    let indices = match table.index_coverage().await {
        Ok(indices) => {
            checks.extend(indices_covering::check(&compared, baseline, &now, &indices));
            indices
        }
        Err(error) => {
            let expected = "every index covers every fragment with rows";
            checks.push(failed_by(CheckId::IndicesCovering, expected, error)?);
            Vec::new()
        }
    };
    Ok(Structure {
        now,
        compared,
        indices,
        checks,
    })
}

impl Baseline {
    /// Whether the step that it tells of committed anything: a dry run did not.
    fn changed_the_table(&self) -> bool {
        !self.committed_versions.is_empty()
    }

    /// Whether nobody else committed while the step ran.
    fn all_own(&self) -> bool {
        (self.before.version + 1..=self.after.version)
            .all(|version| self.committed_versions.contains(&version))
    }
}

/// A check that the engine could not carry out: it fails, unless the store is to blame.
fn failed_by(check: CheckId, expected: impl Into<String>, error: GuardError) -> Result<CheckRow> {
    match error.kind {
        ErrorKind::StorageDenied | ErrorKind::StorageUnreachable => Err(error),
        _ => Ok(CheckRow::judged(check, expected, error.message, false)),
    }
}

/// Counts of the baseline that are not those of the manifests: whatever is concluded from such a
/// baseline is worth nothing.
fn lies(
    span: &Span,
    baseline: &Baseline,
    what: &str,
    count: impl Fn(&VersionCounts) -> u64,
) -> Vec<String> {
    let mut pairs = vec![(&baseline.before, &span.before.counts)];
    if !span.after_gone {
        pairs.push((&baseline.after, &span.after.counts));
    }
    pairs
        .into_iter()
        .filter(|(said, is)| count(said) != count(is))
        .map(|(said, is)| {
            format!(
                "the baseline says {} {what} in version {}, which has {}",
                count(said),
                said.version,
                count(is)
            )
        })
        .collect()
}

/// The entry after a verified compaction: the counter starts again, the counts are those of now.
/// What only an audit sees, its history and its execution, stays.
async fn renewed(
    state: &ReadState,
    spec: &VerifySpec,
    table: &Table,
    now: VersionCounts,
    clock: &Clock,
) -> Result<TableState> {
    let old = state.entry.clone();
    Ok(TableState {
        fragment_count: now.fragments,
        active_rows: now.rows,
        tombstone_count: now.tombstones,
        tombstone_pct: percent(now.tombstones, now.rows.saturating_add(now.tombstones)),
        version_count: table.count_versions().await?,
        current_version: now.version,
        consecutive_bloated_runs: 0,
        index_names: table.index_names().await?,
        last_compacted_at: Some(clock.evaluated_at),
        last_evaluated_at: old
            .as_ref()
            .map_or(clock.evaluated_at, |old| old.last_evaluated_at),
        last_execution_id: old.as_ref().map_or_else(
            || spec.execution_id.clone(),
            |old| old.last_execution_id.clone(),
        ),
        history: old.map(|old| old.history).unwrap_or_default(),
    })
}

fn summary(table: &Table, checks: &[CheckRow], concurrent: usize, now: VersionCounts) -> String {
    let of = |status| checks.iter().filter(|row| row.status == status).count() as u64;
    let failed: Vec<&CheckRow> = checks.iter().filter(|row| !row.passed).collect();
    let head = format!("Version {} of {}", now.version, table.id().table_name);
    let mut text = if failed.is_empty() {
        format!(
            "{head} is verified: {} passed",
            count(of(CheckStatus::Passed), "check")
        )
    } else {
        format!(
            "{head} is NOT verified: {} of {} failed",
            failed.len(),
            count(checks.len() as u64, "check")
        )
    };
    let skipped = of(CheckStatus::Skipped);
    if skipped > 0 {
        text.push_str(&format!(", {skipped} could not be applied"));
    }
    text.push_str(&format!(
        ". It has {} in {} and {}.",
        count(now.rows, "row"),
        count(now.fragments, "fragment"),
        count(now.tombstones, "deleted row")
    ));
    if concurrent > 0 {
        text.push_str(&format!(
            " {} of other writers came in between and {} accounted for.",
            count(concurrent as u64, "commit"),
            if concurrent == 1 { "is" } else { "are" }
        ));
    }
    for row in failed.iter().take(FAILURES_TOLD) {
        let subject = row
            .subject
            .as_ref()
            .map_or(String::new(), |subject| format!(" of {subject}"));
        text.push_str(&format!(
            " {}{subject}: expected {}, found {}.",
            row.check.name(),
            row.expected,
            row.found
        ));
    }
    if failed.len() > FAILURES_TOLD {
        text.push_str(&format!(" And {} more.", failed.len() - FAILURES_TOLD));
    }
    text
}
