//! The two readers: a sequential one, and a mixed one with short runs at random places.

use block::{Direction, Instant, Interval};
use simulator::caching::{BadSetup, CacheArrival, CacheLoad};

use super::CachesBench;
use crate::Progress;

/// The requests of one reader, in order.
#[derive(Clone, Debug)]
pub(super) struct CacheReader {
    pub(super) client: u32,
    /// The reader's blocks.
    own: Interval,
    pub(super) left: u32,
    /// The first block of a request that continues the run.
    next: u64,
    /// Remaining requests of the run.
    run: u64,
    dice: Option<u64>,
}

/// Blocks of a sequential request. A choice: that of a copying program.
const SEQUENTIAL: u64 = 4;

impl CacheReader {
    pub(super) fn both(settings: &CachesBench) -> [CacheReader; 2] {
        let reader = |client: u32, left: u32, dice| {
            let own = Interval::of(u64::from(client) * settings.footprint, settings.footprint);
            CacheReader {
                client,
                own,
                left,
                next: own.first,
                run: 0,
                dice,
            }
        };
        [
            reader(0, settings.requests * 3, None),
            reader(1, settings.requests, Some(settings.seed)),
        ]
    }

    /// The first block of the reader's own.
    pub(super) fn own_first(&self) -> u64 {
        self.own.first
    }

    /// SplitMix64.
    fn roll(dice: &mut u64, sides: u64) -> u64 {
        *dice = dice.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = *dice;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }
}

impl Iterator for CacheReader {
    type Item = Interval;

    /// The next request. The mixed reader picks a random place, and half of the time continues
    /// there: up to sixteen requests of one to eight blocks.
    fn next(&mut self) -> Option<Interval> {
        self.left = self.left.checked_sub(1)?;
        let mut count = SEQUENTIAL;
        if let Some(dice) = &mut self.dice {
            count = 1 + Self::roll(dice, 8);
            match self.run.checked_sub(1) {
                Some(run) => self.run = run,
                None => {
                    self.next = self.own.first + Self::roll(dice, self.own.len());
                    self.run = Self::roll(dice, 2) * Self::roll(dice, 16);
                }
            }
        }
        if self.next + count - 1 > self.own.last {
            self.next = self.own.first;
        }
        let blocks = Interval::of(self.next, count);
        self.next = blocks.last + 1;
        Some(blocks)
    }
}

/// Both readers as one load of the simulator.
pub(super) struct BothReaders<'a> {
    pub(super) readers: [CacheReader; 2],
    /// The blocks of the disk.
    pub(super) within: Interval,
    /// Advances with each request.
    pub(super) progress: &'a dyn Progress,
}

impl CacheLoad for BothReaders<'_> {
    fn arrival(&mut self, client: u32) -> Result<Option<CacheArrival>, BadSetup> {
        self.progress.advance(1);
        let reader = &mut self.readers[client as usize];
        let (client, within) = (reader.client, self.within);
        Ok(reader.next().map(|blocks| CacheArrival {
            at: Instant::ZERO,
            client,
            file: 0,
            blocks,
            within,
            direction: Direction::Read,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_stay_within_their_blocks_and_one_of_them_goes_straight_on() {
        let own = Interval::new(100, 163);
        let reader = |dice| CacheReader {
            client: 0,
            own,
            left: 1000,
            next: own.first,
            run: 0,
            dice,
        };
        let sequential: Vec<Interval> = reader(None).collect();
        assert_eq!(
            sequential[..2],
            [Interval::of(100, 4), Interval::of(104, 4)]
        );
        assert_eq!(
            sequential[16],
            Interval::of(100, 4),
            "and from the beginning"
        );
        let mixed: Vec<Interval> = reader(Some(7)).collect();
        assert_eq!((sequential.len(), mixed.len()), (1000, 1000));
        assert!(
            mixed
                .iter()
                .all(|blocks| own.contains(blocks.first) && own.contains(blocks.last))
        );
        let goes_on = mixed
            .windows(2)
            .filter(|pair| pair[0].last + 1 == pair[1].first);
        let share = goes_on.count() as f64 / 1000.0;
        assert!((0.3..0.95).contains(&share), "{share}");
    }
}
