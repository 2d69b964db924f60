//! Miss-ratio curves of LRU in one pass: stack distances (Mattson et al., IBM Systems Journal 1970).
//!
//! The stack distance of a demand is the number of different blocks demanded since the last demand for its
//! block. A cache of `n` frames under LRU hits exactly the demands whose distance is less than `n`.
//!
//! ```text
//!   slots, one for each demand; a set bit marks the last demand for a block
//!
//!     1 0 1 1 0 0 1 0 1 1 .            distance of the demand for A = set bits after its own
//!         A         ^ A is demanded    then its bit is cleared, and the next slot's is set
//! ```
//!
//! Blocks have the numbers 0, 1, .. in order of their first demands; the caller assigns them.

use recency::Recency;

mod recency;

/// The stack distances of a trace so far.
#[derive(Clone, Debug, Default)]
pub struct StackDistances {
    recency: Recency,
    /// The slot of each block's last demand.
    last: Vec<u32>,
    /// The number of demands at each distance.
    at: Vec<u64>,
    demands: u64,
}

impl StackDistances {
    /// No demands yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes a demand, and returns its stack distance; `None` for the first demand for a block.
    ///
    /// # Panics
    /// If `block` is larger than the number of different blocks so far.
    pub fn demand(&mut self, block: u32) -> Option<u64> {
        self.demands += 1;
        if self.recency.is_full() {
            self.recency.compact(&mut self.last);
        }
        let slot = self.recency.next_slot();
        if block as usize == self.last.len() {
            self.last.push(slot);
            self.at.push(0);
            return None;
        }
        let before = std::mem::replace(&mut self.last[block as usize], slot);
        let distance = self.recency.later_than(before);
        self.recency.clear(before);
        self.at[distance as usize] += 1;
        Some(distance)
    }

    /// The number of demands.
    pub fn demands(&self) -> u64 {
        self.demands
    }

    /// The number of different blocks.
    pub fn distinct(&self) -> u64 {
        self.last.len() as u64
    }

    /// The hits of caches of all sizes under LRU.
    pub fn curve(&self) -> HitCurve {
        let mut sum = 0;
        let more = self.at.iter().map(|at| {
            sum += at;
            sum
        });
        HitCurve {
            hits: std::iter::once(0).chain(more).collect(),
        }
    }
}

/// The hits of LRU by the size of the cache.
#[derive(Clone, Debug)]
pub struct HitCurve {
    /// By the number of frames, from none to one for each block.
    hits: Vec<u64>,
}

impl HitCurve {
    /// The number of demands that a cache of `frames` frames would hit.
    pub fn hits(&self, frames: u64) -> u64 {
        let most = self.hits.len() - 1;
        self.hits[usize::try_from(frames).map_or(most, |frames| frames.min(most))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cache, FirstTouch};
    use proptest::prelude::*;

    /// Each demanded block with the number that the order of first demands gives it.
    fn numbered(blocks: &[u64]) -> Vec<u32> {
        let mut seen = Vec::new();
        let number = |block: &u64| {
            let known = seen.iter().position(|other| other == block);
            known.unwrap_or_else(|| {
                seen.push(*block);
                seen.len() - 1
            }) as u32
        };
        blocks.iter().map(number).collect()
    }

    /// By the definition: different blocks since the last demand.
    fn naive(blocks: &[u32], at: usize) -> Option<u64> {
        let last = blocks[..at]
            .iter()
            .rposition(|&block| block == blocks[at])?;
        let between: std::collections::BTreeSet<u32> =
            blocks[last + 1..at].iter().copied().collect();
        Some(between.len() as u64)
    }

    proptest! {
        #[test]
        fn distances_are_the_different_blocks_since_the_last_demand(
            blocks in prop::collection::vec(0u64..40, 0..400)
        ) {
            let blocks = numbered(&blocks);
            let mut distances = StackDistances::new();
            for (at, &block) in blocks.iter().enumerate() {
                prop_assert_eq!(distances.demand(block), naive(&blocks, at), "demand {}", at);
            }
        }

        #[test]
        fn lru_of_every_size_has_as_many_hits(
            blocks in prop::collection::vec(0u64..60, 1..3_000), frames in 1u64..70
        ) {
            let blocks = numbered(&blocks);
            let mut distances = StackDistances::new();
            for &block in &blocks {
                distances.demand(block);
            }
            let mut lru = Cache::named("lru", frames, FirstTouch::default()).expect("a policy of the table");
            let demands: Vec<u64> = blocks.iter().map(|&block| u64::from(block)).collect();
            prop_assert_eq!(distances.curve().hits(frames), lru.replay(&demands).expect("blocks that exist"));
        }
    }

    #[test]
    fn a_loop_hits_only_where_all_of_it_fits() {
        let mut distances = StackDistances::new();
        for demand in 0..100_000u32 {
            distances.demand(demand % 1_000);
        }
        assert_eq!(
            (distances.demands(), distances.distinct()),
            (100_000, 1_000)
        );
        let curve = distances.curve();
        assert_eq!(curve.hits(999), 0);
        assert_eq!(curve.hits(1_000), 99_000);
        assert_eq!(curve.hits(u64::MAX), 99_000);
    }
}
