//! Other writers: how busy they are, and whether a compaction is likely to lose against them.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use crate::error::{ErrorKind, GuardError, Result};
use crate::report::text::{bytes, count, count_of};
use crate::report::writers::WriterActivity;
use crate::table::Table;
use crate::table::history::{RecentCommit, conflicts_with_rewrites};

/// The newest versions whose commits are looked at: so many manifests are read.
const EXAMINED: usize = 10;

/// How fast data is taken to be rewritten, in bytes a second: for a forecast only.
const REWRITE_SPEED: u64 = 50_000_000;

/// Looks at the newest of the versions that exist. Costs [`EXAMINED`] manifests, and O(log n) more
/// where all of those are of the last hour.
///
/// # Errors
/// Where the store does not answer or a manifest cannot be read.
pub async fn activity(
    table: &Table,
    existing: &[u64],
    now: DateTime<Utc>,
) -> Result<WriterActivity> {
    let newest = &existing[existing.len().saturating_sub(EXAMINED)..];
    let commits = table.recent_commits(newest).await?;
    let hour_ago = now - TimeDelta::hours(1);
    let all_recent = commits.iter().all(|commit| commit.at >= hour_ago);
    let in_hour = if all_recent && newest.len() < existing.len() {
        table.committed_since(existing, hour_ago).await?
    } else {
        commits
            .iter()
            .filter(|commit| commit.at >= hour_ago)
            .count() as u64
    };
    Ok(summed_up(&commits, in_hour, now))
}

/// Refuses where another writer committed within so many minutes before `now`.
///
/// # Errors
/// `writers_active`; what reading the newest manifests can meet.
pub async fn must_be_quiet(
    table: &Table,
    existing: &[u64],
    minutes: u64,
    now: DateTime<Utc>,
) -> Result<()> {
    let Some(since) = i64::try_from(minutes)
        .ok()
        .and_then(TimeDelta::try_minutes)
        .filter(|quiet| !quiet.is_zero())
        .and_then(|quiet| now.checked_sub_signed(quiet))
    else {
        return Ok(());
    };
    // Commits of this tool itself may come first, however many.
    for newest in existing.rchunks(EXAMINED) {
        let commits = table.recent_commits(newest).await?;
        for commit in commits.iter().rev() {
            if commit.at < since {
                return Ok(());
            }
            if commit.is_by_others() {
                return Err(active(commit, minutes, now));
            }
        }
    }
    Ok(())
}

fn active(commit: &RecentCommit, minutes: u64, now: DateTime<Utc>) -> GuardError {
    let age = seconds(now - commit.at);
    GuardError::new(
        ErrorKind::WritersActive,
        format!(
            "another writer committed {age} s ago ({}, version {}), and the spec asks for {} without any",
            commit.operation,
            commit.version,
            count(minutes, "minute"),
        ),
    )
    .hint("Nothing was changed. Run it again when the writers are quiet, or lower quiet_minutes.")
    .with("last_commit_age_seconds", age)
    .with("last_commit_operation", &commit.operation)
    .with("last_commit_version", commit.version)
}

/// The facts, from the newest commits and the number of versions of the last hour.
fn summed_up(commits: &[RecentCommit], in_hour: u64, now: DateTime<Utc>) -> WriterActivity {
    let hour_ago = now - TimeDelta::hours(1);
    let others = || commits.iter().filter(|commit| commit.is_by_others());
    let recent = || others().filter(|commit| commit.at >= hour_ago);
    let mut operations = BTreeMap::new();
    for commit in recent() {
        *operations.entry(commit.operation.clone()).or_insert(0) += 1;
    }
    let times: Vec<DateTime<Utc>> = recent()
        .filter(|commit| conflicts_with_rewrites(&commit.operation))
        .map(|commit| commit.at)
        .collect();
    WriterActivity {
        versions_examined: commits.len() as u64,
        versions_last_hour: in_hour,
        commits_last_hour: recent().count() as u64,
        last_commit_age_seconds: others()
            .map(|commit| commit.at)
            .max()
            .map(|at| seconds(now - at)),
        operations,
        conflicting: times.len() as u64,
        conflict_interval_seconds: interval(&times),
    }
}

/// Seconds from one time to the next, on average; none for fewer than two.
fn interval(times: &[DateTime<Utc>]) -> Option<u64> {
    let gaps = (times.len() as u64)
        .checked_sub(1)
        .filter(|gaps| *gaps > 0)?;
    let (first, last) = (times.iter().min()?, times.iter().max()?);
    Some(seconds(*last - *first) / gaps)
}

/// Whole seconds; none before zero, as where a writer's clock is ahead.
fn seconds(span: TimeDelta) -> u64 {
    u64::try_from(span.num_seconds()).unwrap_or(0)
}

/// Warns where one attempt at rewriting so many bytes, in batches of at most `batch_bytes`, is
/// likely to take longer than others leave alone what it rewrites.
#[must_use]
pub fn warning(
    activity: &WriterActivity,
    bytes_to_rewrite: Option<u64>,
    batch_bytes: u64,
) -> Option<String> {
    let batch = bytes_to_rewrite?.min(batch_bytes);
    let interval = activity.conflict_interval_seconds?;
    let attempt = batch / REWRITE_SPEED;
    if attempt <= interval {
        return None;
    }
    Some(format!(
        "other writers change rows every {interval} s ({} in the last hour), and rewriting {} at a time takes about {attempt} s at {} a second: a compact step is likely to lose races; run it when they are quiet (quiet_minutes refuses otherwise), or lower compaction.batch_bytes",
        count_of(activity.conflicting, "such commit", "such commits"),
        bytes(batch),
        bytes(REWRITE_SPEED),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(10)
    }

    fn commit(operation: &str, seconds_ago: i64, ours: bool) -> RecentCommit {
        RecentCommit {
            version: 1,
            operation: operation.to_owned(),
            at: now() - TimeDelta::seconds(seconds_ago),
            by_guard: ours,
        }
    }

    #[test]
    fn what_this_tool_committed_is_left_out() {
        let commits = [
            commit("Append", 4000, false),
            commit("Delete", 300, false),
            commit("Append", 200, false),
            commit("Update", 100, false),
            commit("ReserveFragments", 50, false),
            commit("Rewrite", 50, true),
            commit("CreateIndex", 40, true),
        ];
        let found = summed_up(&commits, 6, now());
        assert_eq!((found.versions_examined, found.versions_last_hour), (7, 6));
        assert_eq!(found.commits_last_hour, 3);
        assert_eq!(found.last_commit_age_seconds, Some(100));
        let operations = [("Append", 1), ("Delete", 1), ("Update", 1)];
        let operations = operations.map(|(name, count)| (name.to_owned(), count));
        assert_eq!(found.operations, BTreeMap::from(operations));
        assert_eq!(
            (found.conflicting, found.conflict_interval_seconds),
            (2, Some(200))
        );
    }

    #[test]
    fn without_others_there_is_no_last_commit() {
        let found = summed_up(&[commit("Rewrite", 5, true)], 1, now());
        assert_eq!(
            (found.commits_last_hour, found.last_commit_age_seconds),
            (0, None)
        );
        // A writer whose clock is ahead committed just now, not in the future.
        let found = summed_up(&[commit("Append", -90, false)], 1, now());
        assert_eq!(
            (found.commits_last_hour, found.last_commit_age_seconds),
            (1, Some(0))
        );
    }

    #[test]
    fn a_batch_that_takes_longer_than_others_leave_rows_alone_is_warned_about() {
        let commits: Vec<_> = (0..4).map(|n| commit("Delete", n * 20, false)).collect();
        let found = summed_up(&commits, 4, now());
        assert_eq!(found.conflict_interval_seconds, Some(20));
        let gigabyte = 1_000_000_000;
        assert_eq!(warning(&found, Some(gigabyte), u64::MAX), None);
        let text = warning(&found, Some(2 * gigabyte), u64::MAX).unwrap();
        assert!(
            text.contains("every 20 s (4 such commits in the last hour)"),
            "{text}"
        );
        assert!(text.contains("2.0 GB at a time takes about 40 s"), "{text}");
        assert_eq!(warning(&found, Some(2 * gigabyte), gigabyte), None);
        assert_eq!(warning(&found, None, u64::MAX), None);
        let appends: Vec<_> = (0..4).map(|n| commit("Append", n, false)).collect();
        assert_eq!(
            warning(&summed_up(&appends, 4, now()), Some(u64::MAX), u64::MAX),
            None
        );
    }
}
