//! Seeded choices: the same seed chooses the same.

use std::collections::BTreeSet;

/// `count` different row offsets below `rows`, sorted; all of them if there are not more.
pub fn draw(count: usize, seed: u64, rows: u64) -> Vec<u64> {
    if rows <= count as u64 {
        return (0..rows).collect();
    }
    let mut drawn = BTreeSet::new();
    let mut state = seed;
    while drawn.len() < count {
        state = state.wrapping_add(1);
        drawn.insert(mixed(state) % rows);
    }
    drawn.into_iter().collect()
}

/// The finalizer of splitmix64: a well-mixed number for each number.
pub fn mixed(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_seeded_sorted_and_different() {
        let drawn = draw(50, 7, 1_000_000);
        assert_eq!(drawn.len(), 50);
        assert!(drawn.is_sorted());
        assert_eq!(drawn, draw(50, 7, 1_000_000));
        assert_ne!(drawn, draw(50, 8, 1_000_000));
        assert_eq!(draw(50, 7, 3), [0, 1, 2]);
        assert_eq!(draw(50, 7, 0), [0_u64; 0]);
    }
}
