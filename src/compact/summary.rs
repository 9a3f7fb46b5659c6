//! The compact step in a few sentences.

use crate::audit::summary::plan;
use crate::report::compact::{CompactOutputs, Remaining, RemediationStatus};
use crate::report::text::{bytes, count, count_of, word};

/// What was done, or would be, and what was not.
#[must_use]
pub fn of(outputs: &CompactOutputs) -> String {
    let name = &outputs.table.table_name;
    let status = match outputs.remediation_status {
        RemediationStatus::NothingToDo => "NOTHING_TO_DO",
        RemediationStatus::DryRun => "DRY_RUN",
        RemediationStatus::Success => "SUCCESS",
        RemediationStatus::Partial => "PARTIAL",
        RemediationStatus::Failed => "FAILED",
    };
    let mut text = match outputs.remediation_status {
        RemediationStatus::DryRun => format!(
            "{name}: {status}, nothing was changed. {}",
            plan(&outputs.plan)
        ),
        RemediationStatus::NothingToDo => format!("{name}: {status}, nothing was changed."),
        _ => format!("{name}: {status}. {}", done(outputs)),
    };
    if let Some(remaining) = &outputs.remaining {
        text.push(' ');
        text.push_str(&left(remaining));
    }
    if let Some(error) = &outputs.error {
        text.push(' ');
        text.push_str(&error.message);
        text.push('.');
    }
    if let Some(note) = &outputs.cleanup_stats.note {
        text.push_str(&format!(" Prune: {note}."));
    }
    text
}

/// What was left for the next run, and why.
fn left(remaining: &Remaining) -> String {
    let mut parts = Vec::new();
    if remaining.tasks > 0 {
        parts.push(format!(
            "{} ({})",
            count(remaining.tasks, "compaction task"),
            count(remaining.fragments, "fragment")
        ));
    }
    let indices = remaining.indices.len() as u64;
    if indices > 0 {
        parts.push(count_of(indices, "index", "indices"));
    }
    if remaining.versions > 0 {
        parts.push(format!("{} to prune", count(remaining.versions, "version")));
    }
    let reasons: Vec<String> = remaining.reasons.iter().map(word).collect();
    format!(
        "Left for the next run, by {}: {}.",
        reasons.join(" and "),
        parts.join(", ")
    )
}

fn done(outputs: &CompactOutputs) -> String {
    let mut parts = Vec::new();
    let merged = outputs.index_merge.actual.indices.len() as u64;
    if merged > 0 {
        parts.push(format!(
            "merged the segments of {}",
            count_of(merged, "index", "indices")
        ));
    }
    let compaction = &outputs.compaction_stats.actual;
    if compaction.tasks > 0 {
        parts.push(format!(
            "rewrote {} into {}, clearing {}",
            count(compaction.fragments_removed, "fragment"),
            compaction.fragments_added,
            count(compaction.tombstones_cleared, "deleted row")
        ));
    }
    let caught_up = outputs.index_catch_up.actual.indices.len() as u64;
    if caught_up > 0 {
        parts.push(format!(
            "brought {} up to date",
            count_of(caught_up, "index", "indices")
        ));
    }
    let pruned = &outputs.cleanup_stats.actual;
    if pruned.versions > 0 {
        parts.push(format!(
            "pruned {} and freed {}",
            count(pruned.versions, "version"),
            bytes(pruned.bytes)
        ));
    }
    if parts.is_empty() {
        return if outputs.table_changed {
            "A part was done, and could not be looked at afterwards."
        } else {
            "Nothing was changed."
        }
        .to_owned();
    }
    let text = parts.join(", ");
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect::<String>())
        .unwrap_or_default()
        + "."
}
