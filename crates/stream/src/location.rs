//! Where a file's bytes are: extents by file offset, looked up once, so that no metadata read
//! disturbs the stream (ABISS, section 3).
//!
//! ```text
//!   file   0 [ a a a a ][ hole ][ b b ][ c c c ] length
//!   disk        40..44            90..92  10..13
//! ```

use block::{Extent, Lba, Sectors};

/// A range of a file that lies in one piece on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first byte in the file; a whole number of blocks.
    pub offset: u64,
    /// The blocks.
    pub extent: Extent,
}

/// The pieces of a file in the order of the file; what lies between them are holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocationMap {
    pieces: Vec<Piece>,
    /// Bytes in a block.
    block: u64,
    /// Bytes of the file.
    length: u64,
}

/// Why a list of pieces is not a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// A block has bytes.
    #[error("blocks of {0} bytes: expected a power of two")]
    Block(u64),
    /// Too many pieces to be held.
    #[error("{count} pieces: expected at most {limit}")]
    Full {
        /// How many there are.
        count: usize,
        /// How many may be.
        limit: usize,
    },
    /// Pieces begin on whole blocks and do not overlap.
    #[error("the piece at offset {offset}: expected a whole number of blocks, at {least} or after")]
    Order {
        /// Where the piece begins.
        offset: u64,
        /// Where the one before ends.
        least: u64,
    },
}

/// How a map differs from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Not at all.
    Same,
    /// There is more at the end.
    Grown,
    /// There is less at the end.
    Shrunk,
    /// The first byte that lies elsewhere now.
    Moved(u64),
    /// The first byte that is in a hole now.
    Punched(u64),
}

/// Pieces of a file at most. A choice: 1 MiB extents of a 64 GB file; 2 MiB of memory.
pub const PIECES: usize = 65_536;

impl LocationMap {
    /// The map of a file of `length` bytes, in blocks of `block` bytes.
    ///
    /// # Errors
    /// If the pieces are too many, not in the order of the file, or not on whole blocks.
    pub fn new(mut pieces: Vec<Piece>, block: u64, length: u64) -> Result<Self, MapError> {
        if !block.is_power_of_two() {
            return Err(MapError::Block(block));
        }
        if pieces.len() > PIECES {
            return Err(MapError::Full {
                count: pieces.len(),
                limit: PIECES,
            });
        }
        let mut least = 0;
        for piece in &pieces {
            if piece.offset < least || !piece.offset.is_multiple_of(block) {
                return Err(MapError::Order {
                    offset: piece.offset,
                    least,
                });
            }
            least = piece.end(block);
        }
        // Neighbours in both are one piece: file systems report long extents in parts.
        pieces.dedup_by(|next, piece| {
            let joined =
                next.offset == piece.end(block) && next.extent.start() == piece.extent.end();
            let both = Sectors(
                piece
                    .extent
                    .length()
                    .0
                    .saturating_add(next.extent.length().0),
            );
            match Extent::new(piece.extent.start(), both) {
                Ok(extent) if joined => {
                    piece.extent = extent;
                    true
                }
                _ => false,
            }
        });
        Ok(LocationMap {
            pieces,
            block,
            length,
        })
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes in a block.
    pub fn block(&self) -> u64 {
        self.block
    }

    /// The pieces.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The first piece that lies in `from..to`, cut to whole blocks around it; none if all of that
    /// is a hole.
    pub fn first_in(&self, from: u64, to: u64) -> Option<Piece> {
        let index = self
            .pieces
            .partition_point(|piece| piece.end(self.block) <= from);
        let piece = self.pieces.get(index)?;
        let first = from.saturating_sub(piece.offset) / self.block;
        let offset = piece.offset + first * self.block;
        let blocks = to.checked_sub(offset)?.div_ceil(self.block);
        let blocks = blocks.min(piece.extent.length().0 - first);
        let start = Lba(piece.extent.start().0 + first);
        let extent = Extent::new(start, Sectors(blocks)).ok()?;
        Some(Piece { offset, extent })
    }

    /// The most pieces that any `window` bytes of the file touch: extents in a round.
    pub fn most_pieces(&self, window: u64) -> u64 {
        let mut most = 0;
        let mut first = 0;
        for (index, piece) in self.pieces.iter().enumerate() {
            // The window ends with the first byte of this one.
            while self.pieces[first].end(self.block) + window <= piece.offset + 1 {
                first += 1;
            }
            most = most.max(index - first + 1);
        }
        most as u64
    }

    /// How many pieces lie in `from..to`, whole or in part.
    pub fn pieces_in(&self, from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        let after = |at: u64| {
            self.pieces
                .partition_point(|piece| piece.end(self.block) <= at)
        };
        let begun = self.pieces.partition_point(|piece| piece.offset < to);
        begun.saturating_sub(after(from)) as u64
    }

    /// How this differs from `before`.
    pub fn change(&self, before: &LocationMap) -> Change {
        let common = self.length.min(before.length);
        let mut at = 0;
        while at < common {
            let (now, then) = (self.first_in(at, common), before.first_in(at, common));
            let (now, then) = match (now, then) {
                (None, None) => break,
                (now, then) if now == then => (now, then),
                (now, then) => {
                    let start = |piece: Option<Piece>| piece.map_or(common, |piece| piece.offset);
                    if start(now) > start(then) {
                        return Change::Punched(start(then));
                    }
                    // Filled holes, other places, or the same beginning of another length.
                    let same = matches!((now, then), (Some(a), Some(b))
                        if a.offset == b.offset && a.extent.start() == b.extent.start());
                    if !same {
                        return Change::Moved(start(now));
                    }
                    (now, then)
                }
            };
            let end = |piece: Option<Piece>| piece.map_or(common, |piece| piece.end(self.block));
            at = end(now).min(end(then));
        }
        match self.length.cmp(&before.length) {
            std::cmp::Ordering::Less => Change::Shrunk,
            std::cmp::Ordering::Equal => Change::Same,
            std::cmp::Ordering::Greater => Change::Grown,
        }
    }
}

impl Piece {
    /// The byte after the last one, in blocks of `block` bytes.
    pub fn end(&self, block: u64) -> u64 {
        let bytes = self.extent.length().0.saturating_mul(block);
        self.offset.saturating_add(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(offset: u64, start: u64, blocks: u64) -> Piece {
        let extent = Extent::new(Lba(start), Sectors(blocks)).expect("valid");
        Piece { offset, extent }
    }

    fn map(pieces: &[Piece], length: u64) -> LocationMap {
        LocationMap::new(pieces.to_vec(), 8, length).expect("a valid map")
    }

    #[test]
    fn pieces_out_of_order_are_refused() {
        let error = LocationMap::new(vec![piece(8, 0, 2), piece(16, 9, 1)], 8, 24);
        assert_eq!(
            error,
            Err(MapError::Order {
                offset: 16,
                least: 24
            })
        );
        let error = LocationMap::new(vec![piece(4, 0, 2)], 8, 24);
        assert_eq!(
            error,
            Err(MapError::Order {
                offset: 4,
                least: 0
            })
        );
        assert_eq!(LocationMap::new(vec![], 7, 0), Err(MapError::Block(7)));
    }

    #[test]
    fn neighbours_in_file_and_disk_are_one_piece() {
        let map = map(&[piece(0, 5, 2), piece(16, 7, 1), piece(24, 9, 1)], 32);
        assert_eq!(map.pieces(), [piece(0, 5, 3), piece(24, 9, 1)]);
    }

    #[test]
    fn a_change_says_what_and_where() {
        let before = map(&[piece(0, 5, 3), piece(32, 90, 2)], 48);
        let cases = [
            (map(&[piece(0, 5, 3), piece(32, 90, 2)], 48), Change::Same),
            (map(&[piece(0, 5, 3), piece(32, 90, 4)], 64), Change::Grown),
            (map(&[piece(0, 5, 3), piece(32, 90, 1)], 40), Change::Shrunk),
            (
                map(&[piece(0, 5, 3), piece(32, 70, 2)], 48),
                Change::Moved(32),
            ),
            (
                map(&[piece(0, 5, 1), piece(16, 7, 1), piece(32, 90, 2)], 48),
                Change::Punched(8),
            ),
            (
                map(&[piece(0, 5, 3), piece(24, 8, 1), piece(32, 90, 2)], 48),
                Change::Moved(24),
            ),
        ];
        for (after, change) in cases {
            assert_eq!(after.change(&before), change, "{after:?}");
        }
    }

    proptest! {
        #[test]
        fn lookups_are_those_of_block_after_block(
            lengths in prop::collection::vec((0u64..3, 1u64..5, 0u64..3), 0..8),
            window in 1u64..200,
        ) {
            // The oracle: the block of every eight bytes.
            let mut blocks: Vec<Option<u64>> = Vec::new();
            let mut pieces = Vec::new();
            let mut start = 1_000;
            for (hole, length, gap) in lengths {
                blocks.extend((0..hole).map(|_| None));
                start += gap;
                pieces.push(piece(blocks.len() as u64 * 8, start, length));
                blocks.extend((0..length).map(|at| Some(start + at)));
                start += length;
            }
            let bytes = blocks.len() as u64 * 8;
            let map = LocationMap::new(pieces, 8, bytes).expect("a valid map");
            let runs = |from: u64, to: u64| {
                let touched = (from / 8)..to.div_ceil(8).min(blocks.len() as u64);
                let mut last = None;
                let mut runs: Vec<(u64, u64)> = Vec::new();
                for at in touched {
                    match blocks[at as usize] {
                        Some(lba) if last == lba.checked_sub(1) && last.is_some() => {
                            runs.last_mut().expect("one is open").1 += 1;
                            last = Some(lba);
                        }
                        Some(lba) => {
                            runs.push((lba, 1));
                            last = Some(lba);
                        }
                        None => last = None,
                    }
                }
                runs
            };
            for from in 0..bytes {
                let first = map.first_in(from, from + window);
                let first = first.map(|piece| (piece.extent.start().0, piece.extent.length().0));
                prop_assert_eq!(first, runs(from, from + window).first().copied());
            }
            for from in 0..bytes {
                let pieces = runs(from, from + window).len() as u64;
                prop_assert_eq!(map.pieces_in(from, from + window), pieces);
                prop_assert_eq!(map.pieces_in(from, from), 0);
            }
            let most = (0..bytes).map(|from| runs(from, from + window).len()).max();
            prop_assert_eq!(map.most_pieces(window), most.unwrap_or(0) as u64);
        }
    }
}
