//! The checks between compaction and prune: a prune makes the old versions go, and with them
//! the way back. So nothing is pruned unless the new version is proved to be whole.

use std::time::Instant;

use super::elapsed_ms;
use super::progress::Progress;
use crate::error::{ErrorKind, GuardError};
use crate::report::baseline::Baseline;
use crate::report::compact::{ChecksPhase, PhaseStatus};
use crate::report::verify::{CheckId, CheckRow, CheckStatus};
use crate::stop::Stop;
use crate::table::Table;
use crate::verify;

/// Checks the newest version against the one that the step began with.
pub async fn before_prune(
    baseline: &Baseline,
    table: &mut Table,
    progress: &mut Progress,
    stop: &Stop,
) -> ChecksPhase {
    if progress.error.is_some() {
        return ChecksPhase {
            status: PhaseStatus::Skipped,
            ..not_run()
        };
    }
    let start = Instant::now();
    let mut phase = not_run();
    let found = match table.refresh().await {
        Ok(()) => stop.or(verify::structure(baseline, table)).await,
        Err(fault) => Err(fault),
    };
    match found {
        Ok(rows) => {
            phase.planned = rows.len() as u64;
            phase.findings = rows
                .into_iter()
                .filter(|row| !row.passed || is_missing(row, baseline))
                .map(|row| {
                    let subject = row.subject.map(|s| format!(" of {s}")).unwrap_or_default();
                    format!(
                        "{}{subject}: expected {}, found {}",
                        row.check.name(),
                        row.expected,
                        row.found
                    )
                })
                .collect();
            phase.actual = phase.planned - phase.findings.len() as u64;
            phase.status = PhaseStatus::Done;
        }
        Err(fault) => {
            phase.status = Progress::status_of(&fault);
            progress.error = Some(fault);
        }
    }
    if let Some(first) = phase.findings.first() {
        phase.status = PhaseStatus::Failed;
        progress.error = Some(
            GuardError::new(
                ErrorKind::TableDamaged,
                format!("a check before the prune failed: {first}"),
            )
            .hint("Nothing was pruned: every version from before this step is still there to go back to."),
        );
    }
    phase.duration_ms = elapsed_ms(start);
    phase
}

/// Whether a comparison with the version before the step could not be made. That version is
/// inside the retention, and so are those between: that one is gone is itself a finding.
fn is_missing(row: &CheckRow, baseline: &Baseline) -> bool {
    let compares = matches!(
        row.check,
        CheckId::Schema | CheckId::Rows | CheckId::Tombstones
    );
    compares
        && row.status == CheckStatus::Skipped
        && baseline.before.version != baseline.after.version
}

/// The phase before it began.
pub fn not_run() -> ChecksPhase {
    ChecksPhase {
        status: PhaseStatus::NothingToDo,
        planned: 0,
        actual: 0,
        findings: Vec::new(),
        duration_ms: 0,
    }
}
