//! Demands by a Zipf law, the usual load of benchmarks of caches.

use crate::dice::SplitMix;

/// The demands: ranks with probabilities in proportion to their inverses (alpha 1.0). The number of a block says
/// nothing of its rank.
pub(super) fn demands(count: usize, blocks: u64) -> Vec<u64> {
    let mut total = 0.0;
    let mut sums = Vec::with_capacity(blocks as usize);
    for rank in 1..=blocks {
        total += 1.0 / rank as f64;
        sums.push(total);
    }
    let mut dice = SplitMix::new(SEED);
    let demand = |_| {
        let at = (dice.number() >> 11) as f64 / (1u64 << 53) as f64 * total;
        let rank = sums.partition_point(|sum| *sum <= at) as u64;
        // 2^32 over the golden ratio: odd, so that different ranks have different numbers.
        rank.wrapping_mul(0x9E37_79B1) & 0xFFFF_FFFF
    };
    (0..count).map(demand).collect()
}

/// Any seed does.
const SEED: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_first_rank_has_its_share() {
        let demands = demands(50_000, 1_000);
        let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
        for block in demands {
            *counts.entry(block).or_default() += 1;
        }
        // The thousandth harmonic number is 7.485.
        let most = counts.values().max().copied().unwrap_or_default();
        assert!((6_300..7_100).contains(&most), "{most}");
        assert!(counts.len() > 950, "{}", counts.len());
    }
}
