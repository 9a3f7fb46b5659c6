//! A report for people. Whatever comes from the table or the spec loses its control characters,
//! so that it cannot drive the terminal.

use std::fmt::Write as _;

use crate::error::GuardError;
use crate::report::audit::AuditOutputs;
use crate::report::compact::CompactOutputs;
use crate::report::outcome::Outcome;
use crate::report::plan::Plan;
use crate::report::table::TableId;
use crate::report::text::{SENTENCE_LENGTH, bytes, count, shorten, word};
use crate::report::verify::{CheckStatus, VerifyOutputs};

/// A text on one line, without control characters and without characters that change the
/// direction of a line.
#[must_use]
pub fn one_line(text: &str) -> String {
    let printable = text.chars().map(|c| match c {
        '\u{2028}' | '\u{2029}' => ' ',
        c if c.is_control() => ' ',
        c => c,
    });
    printable
        .filter(|c| !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
        .collect()
}

/// A run in one sentence, of a length that fits a line.
#[must_use]
pub fn headline(outcome: &Outcome) -> String {
    match outcome.error() {
        Some(error) => error_sentence(error),
        None => shorten(outcome.summary(), SENTENCE_LENGTH),
    }
}

/// An error in one or two sentences. A long message is shortened, so that the hint stays.
#[must_use]
pub fn error_sentence(error: &GuardError) -> String {
    let hint = error
        .hint
        .as_ref()
        .map_or_else(String::new, |hint| format!(". {hint}"));
    let hint = shorten(&hint, SENTENCE_LENGTH / 2);
    let sentence = format!(
        "{} (exit {}): {}",
        word(&error.kind),
        error.code,
        error.message
    );
    shorten(&sentence, SENTENCE_LENGTH - hint.chars().count()) + &hint
}

/// The whole report.
#[must_use]
pub fn report(outcome: &Outcome) -> String {
    let mut page = Page(String::new());
    match outcome {
        Outcome::Audit(outputs) => audit(outputs, &mut page),
        Outcome::Compact(outputs) => compact(outputs, &mut page),
        Outcome::Verify(outputs) => verify(outputs, &mut page),
        Outcome::Failure(_) => {}
    }
    page.list("Warnings", outcome.warnings());
    if let Some(error) = outcome.error() {
        failure(error, &mut page);
    }
    page.0
}

fn audit(outputs: &AuditOutputs, page: &mut Page) {
    let manifest = &outputs.audit_manifest;
    page.title("audit", &outputs.table, &word(&outputs.overall_status));
    page.line(&outputs.summary);
    page.section("Facts");
    page.rows(&[
        ("fragments", number(outputs.fragment_count)),
        ("under target", number(manifest.fragments.under_target)),
        ("live rows", number(outputs.active_rows)),
        (
            "deleted rows",
            format!(
                "{} ({} %)",
                number(outputs.tombstone_count),
                outputs.tombstone_pct
            ),
        ),
        (
            "versions",
            format!(
                "{} ({} stale, {} prunable)",
                number(outputs.version_count),
                number(manifest.versions.stale),
                number(manifest.versions.prunable)
            ),
        ),
        ("on disk", bytes(manifest.storage.bytes_on_disk)),
        ("live", bytes(manifest.storage.live_bytes)),
    ]);
    page.section("Pressures");
    let rows: Vec<(String, String)> = manifest
        .pressures
        .iter()
        .map(|pressure| {
            let state = match (pressure.reached, pressure.curable) {
                (false, _) => "below",
                (true, true) => "reached",
                (true, false) => "reached, but compaction cannot help",
            };
            (
                word(&pressure.kind),
                format!("{} of {}: {state}", pressure.value, pressure.threshold),
            )
        })
        .collect();
    page.rows(&rows);
    plan(&outputs.plan, page);
    let unknown: Vec<String> = outputs
        .unknown
        .iter()
        .map(|unknown| format!("{}: {}", unknown.fact, unknown.reason))
        .collect();
    page.list("Not known", &unknown);
}

fn plan(plan: &Plan, page: &mut Page) {
    page.section("Plan");
    let compaction = &plan.compaction;
    let tasks = match &compaction.no_task_reason {
        Some(reason) => format!("{} ({})", count(compaction.tasks, "task"), word(reason)),
        None => format!(
            "{}, {} to rewrite, {} expected after",
            count(compaction.tasks, "task"),
            count(compaction.fragments_to_rewrite, "fragment"),
            number(compaction.fragments_expected)
        ),
    };
    let merges: Vec<&str> = plan.index_merges.iter().map(|m| m.name.as_str()).collect();
    let prune = format!(
        "{} now, {} later, {} pinned",
        count(plan.prune.versions, "version"),
        number(plan.prune.versions_later),
        number(plan.prune.versions_pinned)
    );
    page.rows(&[
        ("plan", plan.plan_id.clone()),
        ("index merges", names(&merges)),
        ("compaction", tasks),
        ("index catch-up", names(&plan.index_catch_ups)),
        ("prune", prune),
    ]);
}

fn compact(outputs: &CompactOutputs, page: &mut Page) {
    page.title(
        "compact",
        &outputs.table,
        &word(&outputs.remediation_status),
    );
    page.line(&outputs.summary);
    page.section("Phases");
    let phase = |status: String, done: String, duration_ms: u64| {
        format!("{status:<16} {done} ({duration_ms} ms)")
    };
    let (before, after) = (outputs.baseline.before, outputs.baseline.after);
    let (stats, cleanup) = (&outputs.compaction_stats, &outputs.cleanup_stats);
    page.rows(&[
        (
            "index merge",
            phase(
                word(&outputs.index_merge.status),
                format!(
                    "{} merged",
                    count(outputs.index_merge.actual.segments_merged, "segment")
                ),
                outputs.index_merge.duration_ms,
            ),
        ),
        (
            "compaction",
            phase(
                word(&stats.status),
                format!(
                    "{} replaced, {} cleared",
                    count(stats.actual.fragments_removed, "fragment"),
                    count(stats.actual.tombstones_cleared, "deleted row")
                ),
                stats.duration_ms,
            ),
        ),
        (
            "index catch-up",
            phase(
                word(&outputs.index_catch_up.status),
                format!(
                    "{} covered",
                    count(outputs.index_catch_up.actual.rows_covered, "row")
                ),
                outputs.index_catch_up.duration_ms,
            ),
        ),
        (
            "checks",
            phase(
                word(&outputs.checks.status),
                count(outputs.checks.findings.len() as u64, "finding"),
                outputs.checks.duration_ms,
            ),
        ),
        (
            "prune",
            phase(
                word(&cleanup.status),
                format!(
                    "{}, {}",
                    count(cleanup.actual.versions, "version"),
                    bytes(cleanup.actual.bytes)
                ),
                cleanup.duration_ms,
            ),
        ),
    ]);
    page.section("Table");
    let change = |before: u64, after: u64| format!("{} -> {}", number(before), number(after));
    page.rows(&[
        ("version", change(before.version, after.version)),
        ("fragments", change(before.fragments, after.fragments)),
        ("live rows", change(before.rows, after.rows)),
        ("deleted rows", change(before.tombstones, after.tombstones)),
    ]);
    page.list("Findings", &outputs.checks.findings);
    if outputs.dry_run {
        plan(&outputs.plan, page);
    }
}

fn verify(outputs: &VerifyOutputs, page: &mut Page) {
    let passed = if outputs.verification_passed {
        "PASSED"
    } else {
        "FAILED"
    };
    page.title("verify", &outputs.table, passed);
    page.line(&outputs.summary);
    page.section("Checks");
    let rows: Vec<(String, String)> = outputs
        .checks
        .iter()
        .map(|row| {
            let name = match &row.subject {
                Some(subject) => format!("{} ({subject})", word(&row.check)),
                None => word(&row.check),
            };
            let text = match row.status {
                CheckStatus::Passed => format!("passed   {}", row.found),
                CheckStatus::Skipped => format!("skipped  {}", row.found),
                CheckStatus::Failed => {
                    format!("FAILED   expected {}, found {}", row.expected, row.found)
                }
            };
            (name, text)
        })
        .collect();
    page.rows(&rows);
}

fn failure(error: &GuardError, page: &mut Page) {
    page.line(&format!("Failed: {}", error_sentence(error)));
    let faults: Vec<String> = error
        .faults
        .iter()
        .map(|fault| {
            let place = if fault.pointer.is_empty() {
                "/"
            } else {
                &fault.pointer
            };
            let mut text = format!("{place} {}", fault.problem);
            if let Some(found) = &fault.found {
                let _ = write!(text, "; found {found}");
            }
            if let Some(name) = &fault.did_you_mean {
                let _ = write!(text, "; did you mean {name}?");
            }
            text
        })
        .collect();
    page.list("Faults", &faults);
    if !error.context.is_empty() {
        page.section("Context");
        let rows: Vec<_> = error.context.iter().map(|(k, v)| (k, v.clone())).collect();
        page.rows(&rows);
    }
}

/// The page as it grows. Every text goes through [`one_line`].
struct Page(String);

impl Page {
    fn title(&mut self, step: &str, table: &TableId, status: &str) {
        self.line(&format!("{step} {}: {status}", table.key));
    }

    fn line(&mut self, text: &str) {
        self.0 += &one_line(text);
        self.0.push('\n');
    }

    fn section(&mut self, name: &str) {
        self.0.push('\n');
        self.line(name);
    }

    fn rows<N: AsRef<str>>(&mut self, rows: &[(N, String)]) {
        let names = rows.iter().map(|(name, _)| name.as_ref().chars().count());
        let width = names.max().unwrap_or(0);
        for (name, value) in rows {
            self.line(&format!("  {:<width$}  {value}", name.as_ref()));
        }
    }

    fn list(&mut self, name: &str, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.section(name);
        for item in items {
            self.line(&format!("  - {item}"));
        }
    }
}

fn names<T: AsRef<str>>(names: &[T]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    names.join(", ")
}

/// A count with its thousands apart.
fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, SpecFault};

    #[test]
    fn nothing_in_a_report_drives_the_terminal() {
        let mut error = GuardError::new(ErrorKind::SpecInvalid, "a\u{1b}[31mb\r\n::{}::");
        error.faults.push(SpecFault {
            pointer: "/x\u{9b}".to_owned(),
            problem: "is not\u{202e} known".to_owned(),
            found: Some("\u{7}".to_owned()),
            did_you_mean: None,
        });
        let report = report(&Outcome::failure(None, error));
        assert!(
            report.chars().all(|c| c == '\n' || !c.is_control()),
            "{report:?}"
        );
        assert!(!report.contains('\u{202e}'));
        assert_eq!(report.lines().count(), 4);
    }

    #[test]
    fn counts_are_readable() {
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(number(12), "12");
    }
    #[test]
    fn a_sentence_has_a_limit_and_keeps_its_hint() {
        let error = GuardError::new(ErrorKind::Internal, "ä".repeat(5000)).hint("Do this.");
        let sentence = error_sentence(&error);
        assert_eq!(sentence.chars().count(), SENTENCE_LENGTH);
        assert!(sentence.ends_with("ä…. Do this."));
    }
}
