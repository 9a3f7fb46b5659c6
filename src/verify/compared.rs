//! The two versions that are compared, and what other writers did between them.
//!
//! ```text
//! before ──own──> ──foreign──> ──own──> after ──foreign──> current
//!        └───── own + foreign, by transaction ────┘
//! ```
//! What a foreign commit changed is the difference of its version and the one before it, which
//! is exact whatever its operation was. The compaction's own commits must account for the rest.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{ErrorKind, Result};
use crate::report::baseline::{Baseline, VersionCounts};
use crate::report::verify::{CheckId, CheckRow, ConcurrentCommit};
use crate::table::Table;
use crate::table::counts::VersionView;
use crate::table::history::Commit;

/// Operations that a compact step commits, as lance names them; `Unknown` is a commit without a
/// recorded transaction.
const OWN_OPERATIONS: [&str; 4] = ["Rewrite", "ReserveFragments", "CreateIndex", "Unknown"];

/// What the baseline allows to compare.
#[derive(Debug)]
pub enum Compared {
    /// The spec has no baseline.
    NoBaseline,
    /// The version before compaction was pruned. `after` is the one after it, if it is there.
    BeforeGone {
        /// Why, for a person.
        reason: String,
        /// The version after compaction.
        after: Option<VersionView>,
    },
    /// The table is not the one that the baseline was taken of, for this reason.
    OtherTable(String),
    /// Both versions can be compared.
    Versions(Box<Span>),
}

/// Two versions and the commits of other writers between them.
#[derive(Debug)]
pub struct Span {
    /// The version before compaction.
    pub before: VersionView,
    /// The version after compaction, or the current one where that is gone.
    pub after: VersionView,
    /// Whether the version after compaction is gone, so that the current one stands in.
    pub after_gone: bool,
    /// Commits of other writers, oldest first.
    pub foreign: Vec<ForeignCommit>,
    /// Versions that the baseline calls its own although no compaction makes such a commit.
    pub not_own: Vec<ConcurrentCommit>,
    /// Versions of the compaction itself that changed the schema, which none may.
    pub own_schema_changes: Vec<u64>,
}

/// A commit of another writer.
#[derive(Debug, Clone)]
pub struct ForeignCommit {
    /// The version that it made.
    pub version: u64,
    /// Its operation, as lance names it.
    pub operation: String,
    /// What it changed; none where its version or the one before it was pruned.
    pub change: Option<Change>,
}

/// What a commit changed.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Fragments more, or fewer if negative.
    pub fragments: i128,
    /// Live rows more.
    pub rows: i128,
    /// Deleted rows more.
    pub tombstones: i128,
    /// Fragments that it added.
    pub added: BTreeSet<u64>,
    /// Whether it changed the schema.
    pub schema: bool,
}

impl Span {
    /// Versions whose change cannot be known any more.
    pub fn unexplained(&self) -> Vec<u64> {
        self.foreign
            .iter()
            .filter(|commit| commit.change.is_none())
            .map(|commit| commit.version)
            .collect()
    }

    /// Each unbroken run of commits of the compaction: the version right before it, and its last.
    pub fn own_runs(&self) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for version in self.before.counts.version + 1..=self.after.counts.version {
            if self.foreign.iter().any(|commit| commit.version == version) {
                continue;
            }
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == version => *last = version,
                _ => runs.push((version - 1, version)),
            }
        }
        runs
    }

    /// The changes of other writers, summed up over those that are known.
    pub fn foreign_sum(&self, part: impl Fn(&Change) -> i128) -> i128 {
        self.changes().map(part).sum()
    }

    /// The changes of other writers that are known, oldest first.
    pub fn changes(&self) -> impl DoubleEndedIterator<Item = &Change> {
        self.foreign.iter().filter_map(|c| c.change.as_ref())
    }

    /// A comparison of the two versions. Where it does not hold although a foreign commit is
    /// left out of it, whose version or the one before was pruned, nobody can tell.
    pub fn judged(&self, check: CheckId, expected: String, found: String, holds: bool) -> CheckRow {
        let unexplained = self.unexplained();
        if holds || unexplained.is_empty() {
            return CheckRow::judged(check, expected, found, holds);
        }
        CheckRow::skipped(
            check,
            expected,
            format!(
                "{found}; what other writers did in {} cannot be told, because it or the version before was pruned",
                versions(&unexplained)
            ),
        )
    }

    /// Names the version after compaction.
    pub fn after_name(&self) -> String {
        let version = self.after.counts.version;
        if self.after_gone {
            format!("the current version {version}, as the one after compaction is gone")
        } else {
            format!("version {version}")
        }
    }
}

impl Compared {
    /// Commits of other writers between the versions, as outputs carry them.
    pub fn concurrent_commits(&self) -> Vec<ConcurrentCommit> {
        match self {
            Self::Versions(span) => span
                .foreign
                .iter()
                .map(|commit| ConcurrentCommit {
                    version: commit.version,
                    operation: commit.operation.clone(),
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Why versions cannot be compared; none where they can.
    pub fn why_not(&self) -> Option<&str> {
        match self {
            Self::NoBaseline => Some("the spec has no baseline to compare with"),
            Self::BeforeGone { reason, .. } | Self::OtherTable(reason) => Some(reason),
            Self::Versions(_) => None,
        }
    }
}

/// Reads what the baseline allows to compare. `now` is the version that the table reads.
pub async fn read(
    baseline: Option<&Baseline>,
    table: &Table,
    now: &VersionView,
) -> Result<Compared> {
    let Some(baseline) = baseline else {
        return Ok(Compared::NoBaseline);
    };
    let (before, after) = (baseline.before.version, baseline.after.version);
    if before > after {
        return Ok(Compared::OtherTable(format!(
            "the baseline says that version {before} came before version {after}"
        )));
    }
    if after > now.counts.version {
        return Ok(Compared::OtherTable(format!(
            "the newest version is {}, older than version {after} that compaction ended with: the table was dropped and made anew, or its files were put back",
            now.counts.version
        )));
    }
    let after_view = view(table, after, now).await?;
    let Some(before_view) = view(table, before, now).await? else {
        return Ok(Compared::BeforeGone {
            reason: format!("version {before} from before compaction was pruned"),
            after: after_view,
        });
    };
    let after_gone = after_view.is_none();
    let after_view = after_view.unwrap_or_else(|| now.clone());
    let history = table.history(before, after_view.counts.version).await?;
    let own: BTreeSet<u64> = baseline.committed_versions.iter().copied().collect();
    let known = KnownCounts {
        history: &history,
        baseline: baseline.after,
    };
    let mut span = Span {
        before: before_view,
        after: after_view,
        after_gone,
        foreign: Vec::new(),
        not_own: Vec::new(),
        own_schema_changes: Vec::new(),
    };
    for version in before + 1..=span.after.counts.version {
        let operation = history
            .get(&version)
            .map_or("Unknown", |commit| &commit.operation)
            .to_owned();
        let change = known.change(version);
        if !own.contains(&version) {
            span.foreign.push(ForeignCommit {
                version,
                operation,
                change,
            });
            continue;
        }
        if change.is_some_and(|change| change.schema) {
            span.own_schema_changes.push(version);
        }
        if !OWN_OPERATIONS.contains(&operation.as_str()) {
            span.not_own.push(ConcurrentCommit { version, operation });
        }
    }
    Ok(Compared::Versions(Box::new(span)))
}

/// A version; none if it was pruned.
async fn view(table: &Table, version: u64, now: &VersionView) -> Result<Option<VersionView>> {
    if version == now.counts.version {
        return Ok(Some(now.clone()));
    }
    match table.at(version).await {
        Ok(table) => table.view().await.map(Some),
        Err(error) if error.kind == ErrorKind::VersionNotFound => Ok(None),
        Err(error) => Err(error),
    }
}

struct KnownCounts<'a> {
    history: &'a BTreeMap<u64, Commit>,
    /// What compact recorded of its last version, for when that version is gone.
    baseline: VersionCounts,
}

impl KnownCounts<'_> {
    fn counts(&self, version: u64) -> Option<VersionCounts> {
        self.history
            .get(&version)
            .map(|commit| commit.view.counts)
            .or_else(|| (version == self.baseline.version).then_some(self.baseline))
    }

    fn change(&self, version: u64) -> Option<Change> {
        let new = &self.history.get(&version)?.view;
        let old = self.counts(version - 1)?;
        let mut change = Change {
            fragments: difference(new.counts.fragments, old.fragments),
            rows: difference(new.counts.rows, old.rows),
            tombstones: difference(new.counts.tombstones, old.tombstones),
            ..Change::default()
        };
        if let Some(old) = self.history.get(&(version - 1)) {
            let old = &old.view;
            change.added = &new.fragment_ids - &old.fragment_ids;
            change.schema = new.schema != old.schema;
        }
        Some(change)
    }
}

fn difference(new: u64, old: u64) -> i128 {
    i128::from(new) - i128::from(old)
}

/// Versions by number, for a person: `versions 3, 4 and 7`.
pub fn versions(numbers: &[u64]) -> String {
    let names: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    match names.split_last() {
        None => "no version".to_owned(),
        Some((last, [])) => format!("version {last}"),
        Some((last, rest)) => format!("versions {} and {last}", rest.join(", ")),
    }
}
