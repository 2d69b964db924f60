//! The arm of the last request for each region.
//!
//! ```text
//!   slots   | check, 15 bits | arm, 1 |  ..   one per four frames of the lower cache
//!              of the last region with this hash
//! ```
//!
//! An arm's effect on the lower cache shows later, in another arm's turn: a bypassed block is a miss there, a
//! prefetched one a hit. The wait of a request therefore counts for the arm of the last request for the region
//! before it. Counted for the arm in turn, coordination's misses would count against no coordination: SARC above
//! SARC then looks 7 % better than none, and is 9 % worse.

use super::Arm;
use block::Interval;

/// A table of regions and arms.
#[derive(Clone, Debug)]
pub(super) struct PreparedRegions {
    /// The slots; their number is a power of two.
    slots: Box<[u16]>,
}

/// Blocks of a region, as a power of two: 64 KiB.
const REGION_BITS: u32 = 4;

/// The least number of the lower cache's frames per slot. Requests of four blocks then fill the cache before
/// the slots. A choice.
const FRAMES: u32 = 4;

/// The least number of slots.
const LEAST: u32 = 64;

/// The largest number of regions that a request marks: its last ones.
const MOST_REGIONS: u64 = 64;

/// The bit of a slot for the arm.
const ARM: u16 = 0b1;

/// The value of an unused slot; one in 2^16 regions collides with it.
const NEVER: u16 = u16::MAX;

/// 2^64 divided by the golden ratio, made odd (Knuth, The Art of Computer Programming 3, 6.4).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl PreparedRegions {
    /// An empty table for a lower cache of `frames` frames.
    pub(super) fn new(frames: u32) -> Self {
        let slots = 1usize << (frames / FRAMES).max(LEAST).ilog2();
        PreparedRegions {
            slots: vec![NEVER; slots].into(),
        }
    }

    /// The arm of the last request for the block before `blocks`, or for their first block.
    pub(super) fn prepared_by(&self, blocks: Interval) -> Option<Arm> {
        let before = blocks.first.saturating_sub(1) >> REGION_BITS;
        let own = blocks.first >> REGION_BITS;
        self.arm(before).or_else(|| self.arm(own))
    }

    /// Notes a request for the blocks under this arm.
    pub(super) fn ask(&mut self, blocks: Interval, arm: Arm) {
        let last = blocks.last >> REGION_BITS;
        let first = (blocks.first >> REGION_BITS).max(last.saturating_sub(MOST_REGIONS - 1));
        for region in first..=last {
            let (slot, check) = self.place(region);
            self.slots[slot] = check | arm as u16;
        }
    }

    /// The memory in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.slots)
    }

    fn arm(&self, region: u64) -> Option<Arm> {
        let (slot, check) = self.place(region);
        let found = self.slots[slot];
        if found == NEVER || found & !ARM != check {
            return None;
        }
        Some(match found & ARM {
            0 => Arm::Alone,
            _ => Arm::Coordinated,
        })
    }

    fn place(&self, region: u64) -> (usize, u16) {
        let mixed = region.wrapping_mul(GOLDEN);
        let slot = (mixed >> 32) as usize & (self.slots.len() - 1);
        let check = (mixed >> 48) as u16 & !ARM;
        (slot, check)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Arm::{Alone, Coordinated};
    use super::{LEAST, PreparedRegions};
    use block::Interval;

    #[test]
    fn the_last_arm_that_asked_for_what_lies_before_prepared_it() {
        let mut regions = PreparedRegions::new(1 << 16);
        let asked = Interval::new(100, 131);
        assert_eq!(regions.prepared_by(asked), None);
        regions.ask(asked, Coordinated);
        assert_eq!(regions.prepared_by(asked), Some(Coordinated));
        // What goes on from there, into a region that nobody asked for.
        assert_eq!(
            regions.prepared_by(Interval::new(144, 147)),
            Some(Coordinated)
        );
        assert_eq!(regions.prepared_by(Interval::new(161, 161)), None);
        regions.ask(Interval::new(132, 143), Alone);
        assert_eq!(regions.prepared_by(Interval::new(144, 147)), Some(Alone));
        assert_eq!(regions.prepared_by(asked), Some(Coordinated));
        // Its own region where nothing before it was asked for.
        regions.ask(Interval::new(1600, 1600), Coordinated);
        assert_eq!(
            regions.prepared_by(Interval::new(1600, 1600)),
            Some(Coordinated)
        );
    }

    #[test]
    fn it_forgets_and_mistakes_few_regions_for_others() {
        let mut regions = PreparedRegions::new(0);
        let region = |number: u64| Interval::of(16 * number + 1, 8);
        (0..u64::from(LEAST)).for_each(|number| regions.ask(region(number), Coordinated));
        // Of as many regions as there are slots some take others' places.
        let known = |regions: &PreparedRegions, from: u64, count: u64| {
            let numbers = (from..from + count).filter(|&number| {
                let arm = regions.prepared_by(region(number));
                assert!(arm.is_none_or(|arm| arm == Coordinated));
                arm.is_some()
            });
            numbers.count()
        };
        assert!((30..=64).contains(&known(&regions, 0, 64)));
        // One in 2^15 of the others has the same check.
        assert!(known(&regions, 1000, 100_000) < 50);
    }

    #[test]
    fn hostile_blocks_are_survived() {
        let mut regions = PreparedRegions::new(1);
        for (first, last) in [(0, u64::MAX), (u64::MAX, u64::MAX), (0, 0)] {
            regions.ask(Interval::new(first, last), Coordinated);
            let _ = regions.prepared_by(Interval::new(first, last));
        }
    }
}
