//! Replacements and prefetchers of the caller's, to try an idea.

use std::collections::BTreeSet;

use cache::prefetch::Prefetcher;

use crate::{Failure, Progress};

/// The algorithms of the caller's.
#[derive(Default)]
pub struct OwnAlgorithms {
    /// Replacements. With these, no named ones means none.
    pub replacements: Vec<Box<dyn OwnReplacement>>,
    /// Prefetchers.
    pub prefetchers: Vec<Box<dyn OwnPrefetcher>>,
}

/// A prefetcher of the caller's.
pub trait OwnPrefetcher: Send + Sync {
    /// The name in results.
    fn name(&self) -> &str;

    /// A prefetcher for a cache of so many blocks. It cannot fail later: it cancels the progress instead.
    ///
    /// # Errors
    /// If it fails.
    fn make(&self, blocks: u64) -> Result<Box<dyn Prefetcher>, Failure>;
}

/// A replacement of the caller's.
pub trait OwnReplacement: Send + Sync {
    /// The name in results.
    fn name(&self) -> &str;

    /// An empty cache of so many blocks.
    ///
    /// # Errors
    /// If it fails.
    fn make(&self, blocks: u64) -> Result<Box<dyn Resident>, Failure>;
}

/// What such a replacement is told and asked. Blocks are numbered in the order of their first demands.
pub trait Resident {
    /// A demand found its block in the cache.
    ///
    /// # Errors
    /// If it fails.
    fn hit(&mut self, block: u64) -> Result<(), Failure>;

    /// A block that a demand missed is in the cache now.
    ///
    /// # Errors
    /// If it fails.
    fn insert(&mut self, block: u64) -> Result<(), Failure>;

    /// The block that leaves the full cache before the next insertion.
    ///
    /// # Errors
    /// If it fails.
    fn evict(&mut self) -> Result<u64, Failure>;
}

/// Replays the demands, and returns the hits.
///
/// # Errors
/// If a call fails, or a block is to leave that is not there.
pub(super) fn replayed(
    own: &dyn OwnReplacement,
    frames: u64,
    blocks: &[u32],
    progress: &dyn Progress,
) -> Result<u64, Failure> {
    let mut resident = own.make(frames)?;
    let mut held = BTreeSet::new();
    let mut hits = 0;
    for &block in blocks {
        let block = u64::from(block);
        progress.check()?;
        if held.contains(&block) {
            hits += 1;
            resident.hit(block)?;
            continue;
        }
        if held.len() as u64 == frames {
            let leaving = resident.evict()?;
            if !held.remove(&leaving) {
                let name = own.name();
                return Err(Failure::input(format!(
                    "{name} evicts block {leaving}, which is not in the cache: expected one that is"
                )));
            }
        }
        held.insert(block);
        resident.insert(block)?;
    }
    Ok(hits)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// LRU, or a policy that names a block that is not there.
    struct Lru(Answer);

    #[derive(Clone, Copy, PartialEq)]
    enum Answer {
        Oldest,
        Absent,
    }

    struct LruOrder(VecDeque<u64>, Answer);

    impl OwnReplacement for Lru {
        fn name(&self) -> &str {
            "mine"
        }

        fn make(&self, _blocks: u64) -> Result<Box<dyn Resident>, Failure> {
            Ok(Box::new(LruOrder(VecDeque::new(), self.0)))
        }
    }

    impl Resident for LruOrder {
        fn hit(&mut self, block: u64) -> Result<(), Failure> {
            self.0.retain(|other| *other != block);
            self.insert(block)
        }

        fn insert(&mut self, block: u64) -> Result<(), Failure> {
            self.0.push_back(block);
            Ok(())
        }

        fn evict(&mut self) -> Result<u64, Failure> {
            let oldest = self.0.pop_front();
            match self.1 {
                Answer::Oldest => oldest.ok_or_else(|| Failure::failed("an empty cache")),
                Answer::Absent => Ok(u64::MAX),
            }
        }
    }

    #[test]
    fn lru_of_the_caller_s_hits_what_lru_hits() {
        let mut state = 1u64;
        // A multiplicative generator (Lehmer; Park, Miller, CACM 1988): any would do.
        let blocks = (0..5_000).map(|_| {
            state = state * 48_271 % 0x7FFF_FFFF;
            ((state % 40) * (state % 7)) as u32
        });
        let blocks: Vec<u32> = blocks.collect();
        for frames in [1, 3, 20, 100] {
            let lru = cache::Replay::named("lru", frames);
            let hits = lru.expect("a size").demand(&blocks, 40 * 7);
            let own = replayed(&Lru(Answer::Oldest), frames, &blocks, &());
            assert_eq!(own, Ok(hits), "{frames}");
        }
    }

    #[test]
    fn a_block_that_is_not_there_cannot_leave() {
        let refused = replayed(&Lru(Answer::Absent), 2, &[1, 2, 3], &());
        let problem = "mine evicts block 18446744073709551615, which is not in the cache: \
                       expected one that is";
        assert_eq!(refused, Err(Failure::input(problem)));
    }
}
