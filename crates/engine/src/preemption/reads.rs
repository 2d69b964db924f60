//! Where reads ended lately: the drive may have read on there.

use block::{Extent, Lba};

/// The ends of reads.
#[derive(Clone, Debug)]
pub(super) struct ReadEnds {
    /// What follows the read that was given last, if nothing was given since.
    follows: Option<Lba>,
    /// Where the last reads ended; the largest number says nothing.
    ends: [u64; SEGMENTS],
    newest: usize,
}

impl Default for ReadEnds {
    fn default() -> Self {
        ReadEnds {
            follows: None,
            ends: [u64::MAX; SEGMENTS],
            newest: 0,
        }
    }
}

impl ReadEnds {
    /// What follows the read that was given last, if nothing was given since.
    pub(super) fn follows(&self) -> Option<Lba> {
        self.follows
    }

    /// Blocks are read.
    pub(super) fn note(&mut self, part: Extent) {
        self.follows = Some(part.end());
        let start = part.start().0;
        // A read that goes on where another ended takes its place.
        let place = match self.ends.iter().position(|&end| end == start) {
            Some(place) => place,
            None => {
                self.newest = (self.newest + 1) % SEGMENTS;
                self.newest
            }
        };
        self.ends[place] = part.end().0;
    }

    /// The head goes elsewhere, or writes.
    pub(super) fn leave(&mut self) {
        self.follows = None;
    }

    /// Whether `start` is among the `ahead` blocks that follow a read.
    pub(super) fn may_hold(&self, start: Lba, ahead: u64) -> bool {
        let mut ends = self.ends.iter();
        ends.any(|&end| (end..end.saturating_add(ahead)).contains(&start.0))
    }
}

/// How many reads are remembered by where they ended. A choice: as many as a drive's buffer has segments.
const SEGMENTS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use block::Sectors;

    fn extent(start: u64, length: u64) -> Extent {
        Extent::new(Lba(start), Sectors(length)).expect("blocks")
    }

    #[test]
    fn a_read_that_goes_on_takes_the_place_of_the_one_before() {
        let mut reads = ReadEnds::default();
        assert!(!reads.may_hold(Lba(8), 8));
        (0..100).for_each(|n| reads.note(extent(n * 8, 8)));
        reads.note(extent(5_000, 8));
        assert_eq!(reads.follows(), Some(Lba(5_008)));
        assert!(reads.may_hold(Lba(807), 8) && !reads.may_hold(Lba(808), 8));
        assert!(!reads.may_hold(Lba(799), 8), "only its end is remembered");
        reads.leave();
        assert_eq!(reads.follows(), None);
        assert!(reads.may_hold(Lba(5_008), 1), "the buffer still has it");
    }

    #[test]
    fn the_oldest_end_is_forgotten() {
        let mut reads = ReadEnds::default();
        (0..=SEGMENTS as u64).for_each(|n| reads.note(extent(n * 1_000, 8)));
        assert!(!reads.may_hold(Lba(8), 1));
        assert!(reads.may_hold(Lba(1_008), 1));
    }
}
