//! Which fragments lance would compact together: its planner's rules, without a table.
//!
//! lance plans on the index coverage that is there. What a compaction would do after the index
//! segments were merged can only be foretold, and this is the foretelling. A test compares it
//! with lance's own plan wherever both can be had. Rules: `DefaultCompactionPlanner::plan` and
//! `CandidateBin` in lance's `dataset/optimize.rs`.

use super::fragments::FragmentSketch;

/// The options that decide which fragments are compacted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupingOptions {
    /// Rows that a fragment should have.
    pub target_rows: u64,
    /// Deleted share of physical rows, strictly above which a fragment is rewritten on its own.
    pub deletion_threshold: f32,
}

/// Groups of neighbouring fragments (by position) that would be rewritten, each as one task.
///
/// `coverage` gives, for each fragment, the index segments that cover it: fragments covered
/// differently are never rewritten together.
#[must_use]
pub fn groups(
    fragments: &[FragmentSketch],
    coverage: &[Vec<usize>],
    options: GroupingOptions,
) -> Vec<Vec<usize>> {
    let mut bins: Vec<Vec<usize>> = Vec::new();
    let mut bin: Vec<usize> = Vec::new();
    for (position, fragment) in fragments.iter().enumerate() {
        let candidate =
            is_worth_itself(fragment, options) || fragment.physical_rows < options.target_rows;
        let joins = bin
            .last()
            .is_some_and(|last| coverage.get(*last) == coverage.get(position));
        if !bin.is_empty() && !(candidate && joins) {
            bins.push(std::mem::take(&mut bin));
        }
        if candidate {
            bin.push(position);
        }
    }
    if !bin.is_empty() {
        bins.push(bin);
    }
    bins.into_iter()
        .filter(|bin| bin.len() > 1 || is_worth_itself(&fragments[bin[0]], options))
        .flat_map(|bin| split(&bin, fragments, options.target_rows))
        .collect()
}

/// Whether the fragment has enough deleted rows to be rewritten without a neighbour.
fn is_worth_itself(fragment: &FragmentSketch, options: GroupingOptions) -> bool {
    #[expect(
        clippy::cast_precision_loss,
        reason = "lance computes the share in f32 in the same way"
    )]
    let share = if fragment.physical_rows == 0 {
        0.0
    } else {
        fragment.deleted_rows as f32 / fragment.physical_rows as f32
    };
    share > options.deletion_threshold
}

/// Splits a run of fragments into tasks of at least the target, the rest going to the last.
fn split(bin: &[usize], fragments: &[FragmentSketch], target_rows: u64) -> Vec<Vec<usize>> {
    let mut left: u64 = bin.iter().map(|i| fragments[*i].live_rows()).sum();
    let mut tasks = Vec::new();
    let mut task = Vec::new();
    let mut rows = 0;
    for position in bin {
        let live = fragments[*position].live_rows();
        rows += live;
        left -= live;
        task.push(*position);
        if rows >= target_rows && left > 0 && left >= target_rows {
            tasks.push(std::mem::take(&mut task));
            rows = 0;
        }
    }
    if !task.is_empty() {
        tasks.push(task);
    }
    tasks
}

/// Fragments that a task of so many live rows leaves: as many as reach the target, the rest
/// spread over them. Source: `rewrite_files` in lance's `dataset/optimize.rs`.
#[must_use]
pub fn fragments_after(live_rows: u64, target_rows: u64) -> u64 {
    if live_rows == 0 {
        0
    } else {
        (live_rows / target_rows.max(1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(id: u64, physical_rows: u64, deleted_rows: u64) -> FragmentSketch {
        FragmentSketch {
            id,
            physical_rows,
            deleted_rows,
            bytes: Some(1),
            has_deletion_file: deleted_rows > 0,
        }
    }

    fn plan(
        fragments: &[FragmentSketch],
        coverage: &[Vec<usize>],
        target_rows: u64,
    ) -> Vec<Vec<usize>> {
        let options = GroupingOptions {
            target_rows,
            deletion_threshold: 0.1,
        };
        groups(fragments, coverage, options)
    }

    #[test]
    fn differently_covered_neighbours_stay_apart() {
        let fragments: Vec<_> = (0..4).map(|id| fragment(id, 10, 0)).collect();
        let coverage = [vec![0], vec![0], vec![1], vec![1]];
        assert_eq!(plan(&fragments, &coverage, 100), [[0, 1], [2, 3]]);
        assert_eq!(
            plan(&fragments, &[const { Vec::new() }; 4], 100),
            [[0, 1, 2, 3]]
        );
    }

    #[test]
    fn the_deletion_threshold_is_strict() {
        let coverage = [Vec::new()];
        assert!(plan(&[fragment(0, 100, 10)], &coverage, 50).is_empty());
        assert_eq!(plan(&[fragment(0, 100, 11)], &coverage, 50), [[0]]);
    }

    #[test]
    fn a_small_fragment_between_full_ones_is_left_alone() {
        let fragments = [fragment(0, 100, 0), fragment(1, 5, 0), fragment(2, 100, 0)];
        assert!(plan(&fragments, &[const { Vec::new() }; 3], 100).is_empty());
    }

    #[test]
    fn ten_thirds_of_a_target_make_two_tasks() {
        let fragments: Vec<_> = (0..10).map(|id| fragment(id, 30, 0)).collect();
        let tasks = plan(&fragments, &[const { Vec::new() }; 10], 100);
        let rows: Vec<usize> = tasks.iter().map(|task| task.len() * 30).collect();
        assert_eq!(rows, [120, 180]);
    }
}
