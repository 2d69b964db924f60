//! Tracks for blocks of which nothing is known: as many as there must be, by their neighbours.

use super::strip::{Origin, Strip};
use block::Lba;

/// In so many steps sectors per track go over from one neighbour's to the other's. A choice: the
/// stretches between pieces are rarely longer than a few zones.
const STEPS: u64 = 8;

/// Blocks of which nothing is known.
pub(super) struct Gap<'a> {
    /// The first.
    pub first: Lba,
    /// How many.
    pub blocks: u64,
    /// A strip like those before.
    pub before: &'a Strip,
    /// A strip like those after.
    pub after: &'a Strip,
    /// Tracks that are missing to the end of a row.
    pub rest: u64,
    /// Tracks of a row.
    pub row: u64,
}

impl Gap<'_> {
    /// Strips that hold its blocks exactly; sectors per track change where rows end.
    pub fn filled(&self) -> Vec<Strip> {
        let mut strips = Vec::new();
        let mut next = Strip {
            first: self.first,
            start: self.before.last_start() + self.before.skew,
            skew: self.before.usual.step,
            slipped: 0,
            origin: Origin::Guess,
            ..*self.before
        };
        let mut left = self.blocks;
        push(&mut strips, &mut next, self.rest, &mut left);
        let mean = (u64::from(self.before.blocks) + u64::from(self.after.blocks)) / 2;
        let rows = left / (self.row * mean.max(1));
        for step in 0..STEPS {
            let between = |from: u32, to: u32| {
                let way = i64::from(to) - i64::from(from);
                let part = way * (2 * step as i64 + 1) / (2 * STEPS as i64);
                (i64::from(from) + part).max(1) as u32
            };
            next.sectors = between(self.before.sectors, self.after.sectors);
            next.blocks = between(self.before.blocks, self.after.blocks).min(next.sectors);
            let rows = rows * (step + 1) / STEPS - rows * step / STEPS;
            push(&mut strips, &mut next, rows * self.row, &mut left);
        }
        (next.sectors, next.blocks) = (self.after.sectors, self.after.blocks);
        push(&mut strips, &mut next, u64::MAX, &mut left);
        if left > 0 {
            next.blocks = left as u32;
            push(&mut strips, &mut next, 1, &mut left);
        }
        strips
    }
}

/// Adds at most so many tracks, as long as there are blocks for whole ones.
fn push(strips: &mut Vec<Strip>, next: &mut Strip, tracks: u64, left: &mut u64) {
    let tracks = tracks.min(*left / u64::from(next.blocks));
    if tracks == 0 {
        return;
    }
    next.tracks = tracks as u32;
    strips.push(*next);
    *left -= tracks * u64::from(next.blocks);
    next.first = next.end();
    next.start = next.last_start() + next.skew;
}
