//! The answer in words: what memory is worth on this trace.

use super::{LRU, LruCurve, MissCurves, MissRatio, Sampling};

/// What memory is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveSummary {
    /// The share of demands that are the first for their block, which no cache hits without prefetching.
    pub first_demands: f64,
    /// Under LRU, the least memory for shares of what a cache can hit.
    pub memory: Vec<MemoryWorth>,
    /// The policy that is farthest below LRU at one of the sizes, if any is below.
    pub better: Option<Better>,
}

/// Memory for a share of what a cache can hit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryWorth {
    /// The share of the demands that are not the first for their block.
    pub share: f64,
    /// The least size, in blocks.
    pub blocks: u64,
}

/// A policy below LRU.
#[derive(Clone, Debug, PartialEq)]
pub struct Better {
    /// Its miss ratio, and the size.
    pub best: MissRatio,
    /// The miss ratio of LRU at the same size.
    pub lru: f64,
    /// The size at which LRU has the same miss ratio, in blocks.
    pub lru_blocks: u64,
}

/// The shares of [`CurveSummary::memory`]. A choice.
const SHARES: [f64; 3] = [0.5, 0.9, 0.99];

/// Frames of a sample's cache below which its miss ratios are coarse. A choice: whether a sample has one of the most demanded
/// blocks moves the curve there by hundredths (docs/results/cache.md).
const COARSE: u64 = 1_000;

/// The least difference of miss ratios that is worth a sentence. A choice: half a point.
const NOTABLE: f64 = 0.005;

impl MissCurves {
    /// The size below which the curves of a sample are coarse, if one of the sizes is.
    pub fn coarse_below(&self) -> Option<u64> {
        let below = self.lru.sampling.whole(COARSE);
        let is_sample = self.lru.sampling != Sampling::WHOLE;
        (is_sample && self.sizes.iter().any(|&size| size < below)).then_some(below)
    }

    /// What memory is worth.
    pub fn worth(&self) -> CurveSummary {
        let first_demands = self.lru.miss_ratio(self.distinct);
        let memory = SHARES.map(|share| MemoryWorth {
            share,
            blocks: self
                .lru
                .blocks_for(1.0 - share * (1.0 - first_demands), self.distinct),
        });
        let gain = |point: &&MissRatio| self.lru.miss_ratio(point.blocks) - point.miss_ratio;
        let others = self.ratios.iter().filter(|point| point.replacement != LRU);
        let best = others.max_by(|a, b| gain(a).total_cmp(&gain(b)));
        let better = best
            .filter(|point| gain(point) >= NOTABLE)
            .map(|point| Better {
                best: point.clone(),
                lru: self.lru.miss_ratio(point.blocks),
                lru_blocks: self.lru.blocks_for(point.miss_ratio, self.distinct),
            });
        CurveSummary {
            first_demands,
            memory: memory.to_vec(),
            better,
        }
    }
}

impl LruCurve {
    /// The least size with at most this miss ratio, at most `most`.
    fn blocks_for(&self, miss_ratio: f64, most: u64) -> u64 {
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.miss_ratio(middle) <= miss_ratio {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }
}
