//! The wanted blocks as extents in ascending order.

use block::{Extent, Lba, Sectors};
use drive::geometry::Track;

use super::WantedBlocks;
use super::home::home;

/// An iterator over the wanted extents; see [`WantedBlocks::extents`].
#[derive(Clone, Debug)]
pub struct Extents<'a> {
    wanted: &'a WantedBlocks,
    next: u64,
    /// The number of wanted blocks from `next` on.
    left: u64,
    /// The track of `next`, if it was looked up.
    track: Option<Track>,
}

/// The target of a search through the blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sought {
    Wanted,
    Unwanted,
}

impl<'a> Extents<'a> {
    pub(super) fn new(wanted: &'a WantedBlocks) -> Self {
        Extents {
            wanted,
            next: 0,
            left: wanted.left(),
            track: None,
        }
    }

    /// Advances `next` to the first block of this kind, or to the end of the drive.
    fn seek(&mut self, sought: Sought) {
        let geometry = self.wanted.geometry();
        while self.next < geometry.sectors().0 {
            let here = self.track.filter(|track| track.last.0 >= self.next);
            let Some(track) = here.or_else(|| home(geometry, Lba(self.next))) else {
                return;
            };
            self.track = Some(track);
            let within = (self.next - track.first.0) as u32;
            let found = match (self.wanted.slices(&track), sought) {
                (None, Sought::Wanted) => None,
                (None, Sought::Unwanted) => return,
                (Some(slices), sought) => {
                    let range = slices.touched(within..within + 1).start..slices.count();
                    let slice = match sought {
                        Sought::Wanted => slices.first(range),
                        Sought::Unwanted => slices.first_unwanted(range),
                    };
                    slice.map(|slice| slices.blocks_of(slice..slice + 1).start)
                }
            };
            match found {
                Some(block) => {
                    self.next = self.next.max(track.first.0 + u64::from(block));
                    return;
                }
                None => self.next = track.last.0 + 1,
            }
        }
    }
}

impl Iterator for Extents<'_> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        if self.left == 0 {
            return None;
        }
        // All blocks are wanted: no track needs to be read.
        let all = self.wanted.geometry().sectors();
        if self.left == all.0 {
            self.left = 0;
            return Extent::new(Lba(0), all).ok();
        }
        self.seek(Sought::Wanted);
        let start = self.next;
        self.seek(Sought::Unwanted);
        let length = self.next - start;
        self.left -= length;
        Extent::new(Lba(start), Sectors(length)).ok()
    }
}
