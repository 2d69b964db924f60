//! Zeroes of any range of bytes, as at most three operations of the volume.
//!
//! ```text
//!   blocks   |          |          |          |          |
//!   zeroes          [===|==========|==========|======]
//!   pieces           2           1               3
//! ```
//!
//! The whole blocks come first: if the drive refuses them, nothing has changed. The volume orders each
//! piece with other changes of its blocks.

use std::array;
use std::ops::Range;

use block::{Durability, Owner};

use super::ExportedFile;
use block::operation::{Ask, OperationError, Space, ZeroingPace};

/// The callback with the result of all pieces.
pub(super) type End = Box<dyn FnOnce(Result<(), OperationError>) + Send>;

/// Zeroes that are not all written.
pub(super) struct Zeroes {
    file: ExportedFile,
    /// Whole blocks, and parts of one block. Some are empty.
    pieces: array::IntoIter<Range<u64>, 3>,
    space: Space,
    pace: ZeroingPace,
    owner: Owner,
    durability: Durability,
    end: End,
}

impl Zeroes {
    /// Zeroes in place of at least one byte.
    pub(super) fn new(
        file: &ExportedFile,
        bytes: Range<u64>,
        (space, pace): (Space, ZeroingPace),
        (owner, durability): (Owner, Durability),
        end: End,
    ) -> Self {
        Zeroes {
            pieces: pieces(bytes, u64::from(file.block_bytes)).into_iter(),
            file: file.clone(),
            space,
            pace,
            owner,
            durability,
            end,
        }
    }

    /// Posts the next piece. Its reply posts the one after it.
    pub(super) fn post(mut self) {
        let Some(piece) = self.pieces.find(|piece| !piece.is_empty()) else {
            return (self.end)(Ok(()));
        };
        let block = u64::from(self.file.block_bytes);
        let is_whole = (piece.end - piece.start).is_multiple_of(block);
        let ask = Ask::Zero {
            durability: self.durability,
            space: self.space,
            // A part of a block is written with the rest of it, whatever the drive does to space.
            pace: if is_whole {
                self.pace
            } else {
                ZeroingPace::Any
            },
        };
        let file = self.file.clone();
        file.post(
            self.owner,
            ask,
            piece,
            Vec::new(),
            Box::new(move |result| match result {
                Ok(_) => self.post(),
                Err(failed) => (self.end)(Err(failed)),
            }),
        );
    }
}

/// The whole blocks of a range, and the parts of blocks before and after them.
fn pieces(Range { start, end }: Range<u64>, block: u64) -> [Range<u64>; 3] {
    let first = start.next_multiple_of(block);
    let last = (end / block * block).max(first);
    let before = start..first.min(end);
    let behind = last.min(end).max(before.end)..end;
    [first..last, before, behind]
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn pieces_cover_every_byte_once_and_never_two_blocks_in_part() {
        const BLOCK: u64 = 4;
        for start in 0..3 * BLOCK {
            for end in start + 1..=4 * BLOCK {
                let mut covered: Vec<u64> = Vec::new();
                for piece in pieces(start..end, BLOCK) {
                    let is_whole = piece.start % BLOCK == 0 && piece.end % BLOCK == 0;
                    let is_within =
                        piece.is_empty() || piece.start / BLOCK == (piece.end - 1) / BLOCK;
                    assert!(is_whole || is_within, "{start}..{end}: {piece:?}");
                    covered.extend(piece);
                }
                covered.sort_unstable();
                assert!(covered.into_iter().eq(start..end), "{start}..{end}");
            }
        }
    }
}
