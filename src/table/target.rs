//! The row target of a fragment on one version: what the spec says, bounded by bytes.
//!
//! Audit and compact both ask [`RewriteOptions::target`], so they never judge a fragment by
//! different rules. lance knows rows only, so a bound in bytes becomes one in rows, by the bytes
//! of a row as the manifest records them. Those change a little with every append and rewrite,
//! and a target that followed each change would find all fragments of yesterday a little too
//! small. So a bound by bytes is rounded down to a power of two: it stands still while a row
//! stays between two sizes of which one is double the other, and a fragment that was rewritten
//! is rewritten again only when the target has doubled. A rewrite that makes the target rise, as
//! where rows lay in tiny files, is followed by another one in the same run; then none is left:
//!
//! ```text
//! target after a rewrite ≤ target of the rewrite  ──►  nothing more to rewrite
//! ```

use super::Table;
use super::fragments::FragmentSketch;
use super::planning::RewriteOptions;
use crate::error::Result;
use crate::report::Unknown;

/// How large a fragment of one version should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Rows.
    pub rows: u64,
    /// Whether bytes bound the rows, rather than the spec's own number of rows.
    pub bound_by_bytes: bool,
    /// Data bytes of a row, rounded up; none for a table without rows, or where a size is not
    /// recorded.
    pub bytes_per_row: Option<u64>,
}

impl RewriteOptions {
    /// The target on a version with these fragments. Where the size of a data file is not
    /// recorded, rows alone decide.
    #[must_use]
    pub fn target(&self, fragments: &[FragmentSketch]) -> Target {
        let rows: u64 = fragments.iter().map(|f| f.physical_rows).sum();
        let bytes: Option<u64> = fragments.iter().map(|f| f.bytes).sum();
        let measured = bytes.filter(|bytes| *bytes > 0 && rows > 0);
        let by_bytes = self
            .target_bytes
            .zip(measured)
            .map(|(target, bytes)| rows_within(target, rows, bytes))
            .filter(|by_bytes| *by_bytes < self.target_rows);
        Target {
            rows: by_bytes.unwrap_or(self.target_rows),
            bound_by_bytes: by_bytes.is_some(),
            bytes_per_row: measured.map(|bytes| bytes.div_ceil(rows)),
        }
    }

    /// That the bytes of a row cannot be had although the spec bounds the target by them.
    #[must_use]
    pub fn unmeasured(&self, fragments: &[FragmentSketch]) -> Option<Unknown> {
        let missing = fragments.iter().filter(|f| f.bytes.is_none()).count();
        (self.target_bytes.is_some() && missing > 0).then(|| {
            Unknown::new(
                "bytes_per_row",
                format!(
                    "the manifest does not record the size of every data file ({missing} of {} fragments), so target_bytes_per_fragment bounds nothing and target_rows_per_fragment alone decides",
                    fragments.len()
                ),
            )
        })
    }
}

/// The largest power of two of rows that fit into so many bytes; a row that is larger than that
/// stands alone.
fn rows_within(target_bytes: u64, rows: u64, bytes: u64) -> u64 {
    let fit = u128::from(target_bytes) * u128::from(rows) / u128::from(bytes.max(1));
    let fit = u64::try_from(fit).unwrap_or(u64::MAX);
    1 << fit.max(1).ilog2()
}

impl Table {
    /// The target on the version that is read.
    ///
    /// # Errors
    /// As [`Table::fragment_sketches`].
    pub async fn target(&self, options: &RewriteOptions) -> Result<Target> {
        Ok(options.target(&self.fragment_sketches().await?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::spec::tuning::{CompactionTuning, IndexTuning};
    use crate::table::grouping::{GroupingOptions, fragments_after, groups};

    fn options(target_rows: u64, target_bytes: Option<u64>) -> RewriteOptions {
        RewriteOptions {
            target_rows,
            target_bytes,
            compaction: CompactionTuning::default(),
            indices: IndexTuning::default(),
        }
    }

    fn fragment(id: u64, rows: u64, bytes: Option<u64>) -> FragmentSketch {
        FragmentSketch {
            id,
            physical_rows: rows,
            deleted_rows: 0,
            bytes,
            has_deletion_file: false,
        }
    }

    #[test]
    fn wide_rows_are_bounded_by_bytes_and_narrow_ones_by_rows() {
        // 1,536 float32, and a little beside them.
        let wide = [fragment(0, 100_000, Some(615_000_000))];
        let found = options(100_000, Some(256_000_000)).target(&wide);
        assert_eq!((found.rows, found.bound_by_bytes), (32_768, true));
        assert_eq!(found.bytes_per_row, Some(6150));
        assert!(found.rows * 6150 <= 256_000_000);
        let narrow = [fragment(0, 100_000, Some(1_000_000))];
        let found = options(100_000, Some(256_000_000)).target(&narrow);
        assert_eq!((found.rows, found.bound_by_bytes), (100_000, false));
        assert_eq!(options(100_000, None).target(&wide).rows, 100_000);
    }

    #[test]
    fn a_row_larger_than_the_target_stands_alone() {
        let huge = [fragment(0, 3, Some(3_000_000_000))];
        assert_eq!(options(100_000, Some(1_048_576)).target(&huge).rows, 1);
    }

    #[test]
    fn where_a_size_is_not_recorded_rows_alone_decide() {
        let fragments = [fragment(0, 10, Some(10_000_000)), fragment(1, 10, None)];
        let found = options(1000, Some(1_048_576)).target(&fragments);
        assert_eq!((found.rows, found.bytes_per_row), (1000, None));
        let none = options(1000, Some(1_048_576)).target(&[]);
        assert_eq!((none.rows, none.bytes_per_row), (1000, None));
    }

    #[test]
    fn the_target_stands_still_while_a_row_grows_by_less_than_double() {
        let at = |bytes_per_row: u64| {
            let table = [fragment(0, 1000, Some(1000 * bytes_per_row))];
            options(1_000_000, Some(1 << 30)).target(&table).rows
        };
        assert_eq!([at(4097), at(6000), at(8191), at(8192)], [131_072; 4]);
        assert_eq!((at(4096), at(8193)), (262_144, 65_536));
    }

    /// Rewrites by a plan as lance does, with files that come out larger or smaller than the
    /// ones they replace: `sizes` is a percentage for each group.
    fn rewritten(
        fragments: &[FragmentSketch],
        groups: &[Vec<usize>],
        target: u64,
        sizes: &[u64],
    ) -> Vec<FragmentSketch> {
        let mut after = Vec::new();
        for (position, fragment) in fragments.iter().enumerate() {
            let Some(number) = groups.iter().position(|group| group.contains(&position)) else {
                after.push(fragment.clone());
                continue;
            };
            let group = &groups[number];
            if group[0] != position {
                continue;
            }
            let live: u64 = group.iter().map(|at| fragments[*at].live_rows()).sum();
            let bytes: u64 = group.iter().filter_map(|at| fragments[*at].bytes).sum();
            let count = fragments_after(live, target);
            let bytes = bytes * sizes[number % sizes.len()] / 100 / count.max(1);
            after.extend((0..count).map(|nth| {
                let rows = live / count + u64::from(nth < live % count);
                super::tests::fragment(0, rows, Some(bytes.max(1)))
            }));
        }
        for (id, fragment) in after.iter_mut().enumerate() {
            fragment.id = id as u64;
        }
        after
    }

    fn plan(fragments: &[FragmentSketch], target_rows: u64) -> Vec<Vec<usize>> {
        let options = GroupingOptions {
            target_rows,
            deletion_threshold: 0.1,
        };
        groups(fragments, &vec![Vec::new(); fragments.len()], options)
    }

    fn tables() -> impl Strategy<Value = Vec<FragmentSketch>> {
        let one = (1_u64..3000, 1_u64..5_000_000, 0_u64..100);
        proptest::collection::vec(one, 0..40).prop_map(|fragments| {
            let sketch = |(id, (rows, bytes, percent)): (usize, (u64, u64, u64))| FragmentSketch {
                deleted_rows: rows * percent.saturating_sub(50) / 100,
                ..fragment(id as u64, rows, Some(bytes))
            };
            fragments.into_iter().enumerate().map(sketch).collect()
        })
    }

    proptest! {
        #[test]
        fn a_rewrite_after_which_the_target_did_not_rise_leaves_nothing_to_rewrite(
            before in tables(),
            sizes in proptest::collection::vec(5_u64..300, 1..8),
        ) {
            let options = options(2000, Some(1_048_576));
            let mut fragments = before;
            let mut target = options.target(&fragments).rows;
            let mut rewrites = 0;
            loop {
                let groups = plan(&fragments, target);
                fragments = rewritten(&fragments, &groups, target, &sizes);
                let risen = options.target(&fragments).rows;
                if risen <= target {
                    prop_assert_eq!(plan(&fragments, risen), Vec::<Vec<usize>>::new());
                    break;
                }
                target = risen;
                rewrites += 1;
                prop_assert!(rewrites <= 11, "2,000 rows are fewer than eleven doublings");
            }
        }
    }
}
