//! Who prepared the ground: under which arm each region was asked for last.
//!
//! ```text
//!   slots   | check, 15 bits | arm, 1 |  ..   one for four frames of the lower cache
//!              of the region whose hash leads here; another one that does so takes its place
//! ```
//!
//! What an arm leaves in the lower cache, or does not, is found later, in another arm's turn: a block that
//! was let past is a miss there, one that was fetched ahead a hit. So the waiting for a request counts for
//! the arm under which what lies before it was asked for last. Counted where it is found, no coordination
//! pays for what coordination did: SARC above SARC that way looks 7 % better than none, and is 9 % worse.

use super::Arm;
use block::Interval;

/// Regions and arms.
#[derive(Clone, Debug)]
pub(super) struct PreparedGround {
    /// A power of two of them.
    slots: Box<[u16]>,
}

/// Blocks of a region, as a power of two: 64 KiB.
const REGION_BITS: u32 = 4;

/// At least so many frames of the lower cache for a slot: requests of four blocks then fill the cache before
/// they fill the slots. A choice.
const FRAMES: u32 = 4;

/// At least so many slots.
const LEAST: u32 = 64;

/// Of a request so many regions are remembered at most, the last ones.
const MOST_REGIONS: u64 = 64;

/// The bit of a slot for the arm.
const ARM: u16 = 0b1;

/// A slot that was never used; one in 2^16 regions is forgotten for it.
const NEVER: u16 = u16::MAX;

/// 2^64 divided by the golden ratio, made odd (Knuth, The Art of Computer Programming 3, 6.4).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl PreparedGround {
    /// For a lower cache of so many frames.
    pub(super) fn new(frames: u32) -> Self {
        let slots = 1usize << (frames / FRAMES).max(LEAST).ilog2();
        PreparedGround {
            slots: vec![NEVER; slots].into(),
        }
    }

    /// The arm under which what lies before `blocks` or what they are was asked for last.
    pub(super) fn prepared_by(&self, blocks: Interval) -> Option<Arm> {
        let before = blocks.first.saturating_sub(1) >> REGION_BITS;
        let own = blocks.first >> REGION_BITS;
        self.arm(before).or_else(|| self.arm(own))
    }

    /// The blocks are asked for under this arm.
    pub(super) fn ask(&mut self, blocks: Interval, arm: Arm) {
        let last = blocks.last >> REGION_BITS;
        let first = (blocks.first >> REGION_BITS).max(last.saturating_sub(MOST_REGIONS - 1));
        for region in first..=last {
            let (slot, check) = self.place(region);
            self.slots[slot] = check | arm as u16;
        }
    }

    /// Bytes.
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
    use super::{LEAST, PreparedGround};
    use block::Interval;

    #[test]
    fn the_last_arm_that_asked_for_what_lies_before_prepared_it() {
        let mut ground = PreparedGround::new(1 << 16);
        let asked = Interval::new(100, 131);
        assert_eq!(ground.prepared_by(asked), None);
        ground.ask(asked, Coordinated);
        assert_eq!(ground.prepared_by(asked), Some(Coordinated));
        // What goes on from there, into a region that nobody asked for.
        assert_eq!(
            ground.prepared_by(Interval::new(144, 147)),
            Some(Coordinated)
        );
        assert_eq!(ground.prepared_by(Interval::new(161, 161)), None);
        ground.ask(Interval::new(132, 143), Alone);
        assert_eq!(ground.prepared_by(Interval::new(144, 147)), Some(Alone));
        assert_eq!(ground.prepared_by(asked), Some(Coordinated));
        // Its own region where nothing before it was asked for.
        ground.ask(Interval::new(1600, 1600), Coordinated);
        assert_eq!(
            ground.prepared_by(Interval::new(1600, 1600)),
            Some(Coordinated)
        );
    }

    #[test]
    fn it_forgets_and_mistakes_few_regions_for_others() {
        let mut ground = PreparedGround::new(0);
        let region = |number: u64| Interval::of(16 * number + 1, 8);
        (0..u64::from(LEAST)).for_each(|number| ground.ask(region(number), Coordinated));
        // Of as many regions as there are slots some take others' places.
        let known = |ground: &PreparedGround, from: u64, count: u64| {
            let numbers = (from..from + count).filter(|&number| {
                let arm = ground.prepared_by(region(number));
                assert!(arm.is_none_or(|arm| arm == Coordinated));
                arm.is_some()
            });
            numbers.count()
        };
        assert!((30..=64).contains(&known(&ground, 0, 64)));
        // One in 2^15 of the others has the same check.
        assert!(known(&ground, 1000, 100_000) < 50);
    }

    #[test]
    fn hostile_blocks_are_survived() {
        let mut ground = PreparedGround::new(1);
        for (first, last) in [(0, u64::MAX), (u64::MAX, u64::MAX), (0, 0)] {
            ground.ask(Interval::new(first, last), Coordinated);
            let _ = ground.prepared_by(Interval::new(first, last));
        }
    }
}
