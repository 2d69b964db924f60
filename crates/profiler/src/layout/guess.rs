//! Tracks for blocks of which nothing is known: as many as there must be, by their neighbours.

use block::Lba;

use super::strip::{Strip, StripOrigin};

/// In so many steps sectors per track go over from one neighbour's to the other's. A choice: the
/// spans between pieces are rarely longer than a few zones.
const STEPS: u64 = 8;

/// Guessed tracks are not so many times as short as the tracks around them. A choice: neighbouring zones differ by a tenth.
const SHORTER: u64 = 2;

/// Blocks of which nothing is known.
pub(super) struct MapGap<'a> {
    /// The first.
    pub first: Lba,
    /// How many.
    pub blocks: u64,
    /// A strip like those before.
    pub before: &'a Strip,
    /// A strip like those after.
    pub after: &'a Strip,
    /// Blocks of a track of its, by all surfaces' tracks before and after.
    pub mean: u64,
}

impl<'a> MapGap<'a> {
    /// The blocks up to `end`, if there are any.
    pub fn between(first: Lba, end: Lba, before: &'a Strip, after: &'a Strip) -> Self {
        MapGap {
            first,
            blocks: end.0.saturating_sub(first.0),
            before,
            after,
            mean: u64::from(before.blocks + after.blocks) / 2,
        }
    }

    /// How many tracks its blocks have about, if the number has to leave a rest when it is divided
    /// by the tracks of a row: the whole number of rows that fits best. If its tracks would be much shorter than their
    /// neighbours, rows were counted wrong, and blocks alone tell.
    pub fn tracks(&self, row: u64, rest: u64) -> u64 {
        let tracks = self.blocks.div_ceil(self.mean.max(1));
        let rows = (tracks + row / 2).saturating_sub(rest) / row;
        let of_rows = rows * row + rest;
        let likely = match of_rows > tracks * SHORTER {
            true => tracks,
            false => of_rows,
        };
        // Not more tracks than blocks, and one at least.
        likely.clamp(1, self.blocks)
    }

    /// So many tracks that hold its blocks exactly.
    pub fn filled(&self, tracks: u64) -> Vec<Strip> {
        let mut strips = Vec::new();
        let mut next = Strip {
            first: self.first,
            start: self.before.last_start() + self.before.regular_skews.step,
            skew: self.before.regular_skews.step,
            slipped: 0,
            origin: StripOrigin::Guess,
            ..*self.before
        };
        let (mut done, mut held) = (0, 0);
        let whole = self.weight(tracks, STEPS);
        for step in 1..=STEPS {
            let until = tracks * step / STEPS;
            let share = u128::from(self.blocks) * self.weight(tracks, step) / whole;
            let blocks = if step == STEPS {
                self.blocks
            } else {
                // At least one block for each track.
                let most = self.blocks - (tracks - until);
                (share as u64).max(held + until - done).min(most)
            };
            let (more, room) = (blocks - held, until - done);
            if room == 0 {
                continue;
            }
            let longer = more % room;
            for (tracks, blocks) in [(longer, more / room + 1), (room - longer, more / room)] {
                push(&mut strips, &mut next, tracks, blocks);
            }
            (done, held) = (until, blocks);
        }
        strips
    }

    /// In what proportion the tracks up to a step hold blocks.
    fn weight(&self, tracks: u64, steps: u64) -> u128 {
        let (from, to) = (u64::from(self.before.blocks), u64::from(self.after.blocks));
        let of = |step: u64| {
            let number = tracks * (step + 1) / STEPS - tracks * step / STEPS;
            let each = (from * (2 * (STEPS - step) - 1) + to * (2 * step + 1)).max(1);
            u128::from(number) * u128::from(each)
        };
        (0..steps).map(of).sum::<u128>()
    }
}

/// Adds tracks of so many blocks each.
fn push(strips: &mut Vec<Strip>, next: &mut Strip, tracks: u64, blocks: u64) {
    if tracks == 0 {
        return;
    }
    next.tracks = tracks as u32;
    next.blocks = blocks as u32;
    next.sectors = next.blocks;
    strips.push(*next);
    next.first = next.end();
    next.start = next.last_start() + next.skew;
}

#[cfg(test)]
mod tests {
    use super::super::strip::RegularSkews;
    use super::*;
    use drive::Angle;

    fn strip(blocks: u32) -> Strip {
        Strip {
            first: Lba(0),
            tracks: 1,
            blocks,
            slipped: 0,
            sectors: blocks,
            start: Angle::ZERO,
            skew: Angle::ZERO,
            front: Angle::ZERO,
            regular_skews: RegularSkews::default(),
            origin: StripOrigin::Map,
        }
    }

    #[test]
    fn every_block_is_on_a_track() {
        let (before, after) = (strip(100), strip(60));
        for blocks in [1, 7, 99, 100, 101, 12_345, 1_000_000] {
            let gap = MapGap {
                first: Lba(5),
                blocks,
                before: &before,
                after: &after,
                mean: 80,
            };
            let tracks = gap.tracks(30, 7);
            let strips = gap.filled(tracks);
            let ends = strips.iter().map(Strip::end);
            let firsts = strips.iter().map(|strip| strip.first).skip(1);
            assert!(ends.zip(firsts).all(|(end, first)| end == first));
            assert_eq!(strips.last().map(Strip::end), Some(Lba(5 + blocks)));
            let sum: u64 = strips.iter().map(|strip| u64::from(strip.tracks)).sum();
            assert_eq!(sum, tracks);
            assert!(strips.iter().all(|strip| strip.blocks > 0));
            assert!(blocks < 1000 || tracks % 30 == 7);
        }
    }

    /// Behind a track too many, the rest of a row is whole but for one: no reason to think that a few blocks hold it.
    #[test]
    fn rows_that_do_not_fit_do_not_make_tracks_short() {
        let (before, after) = (strip(561), strip(550));
        let gap = MapGap::between(Lba(0), Lba(5503), &before, &after);
        assert_eq!([9, 10, 12].map(|rest| gap.tracks(6300, rest)), [9, 10, 12]);
        assert_eq!(gap.tracks(6300, 6299), 10);
        let long = MapGap::between(Lba(0), Lba(6300 * 555), &before, &after);
        assert_eq!([0, 6299].map(|rest| long.tracks(6300, rest)), [6300, 6299]);
    }

    #[test]
    fn tracks_of_one_block_each_are_filled() {
        let (before, after) = (strip(10_000), strip(1));
        for (blocks, tracks) in [(40, 40), (41, 40), (700, 600)] {
            let gap = MapGap::between(Lba(0), Lba(blocks), &before, &after);
            let strips = gap.filled(tracks);
            assert!(strips.iter().all(|strip| strip.blocks > 0), "{blocks}");
            assert_eq!(strips.last().map(Strip::end), Some(Lba(blocks)));
        }
    }

    #[test]
    fn sectors_per_track_go_over_from_one_neighbour_to_the_other() {
        let (before, after) = (strip(100), strip(60));
        let gap = MapGap {
            first: Lba(0),
            blocks: 800_000,
            before: &before,
            after: &after,
            mean: 80,
        };
        let strips = gap.filled(10_000);
        assert!(strips[0].blocks.abs_diff(98) <= 1, "{}", strips[0].blocks);
        let last = strips[strips.len() - 1].blocks;
        assert!(last.abs_diff(62) <= 1, "{last}");
    }
}
