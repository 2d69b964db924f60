//! Which bytes of a read have come: all of them, each once.
//!
//! ```text
//!   |########front|   |####|      |##|        |
//!   begin                pieces             end
//! ```

/// The bytes of one read that have come.
#[derive(Clone, Debug)]
pub struct Coverage {
    front: u64,
    end: u64,
    pieces: Vec<(u64, u64)>,
}

/// Why a piece cannot have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// It is empty, or not within the read.
    Outside,
    /// Some of it was there.
    Overlap,
    /// There are too many pieces with gaps between them.
    TooMany,
}

impl Coverage {
    /// Nothing yet of `length` bytes from `begin`.
    pub const fn new(begin: u64, length: u64) -> Self {
        Self {
            front: begin,
            end: begin.saturating_add(length),
            pieces: Vec::new(),
        }
    }

    /// Whether everything has come.
    pub const fn whole(&self) -> bool {
        self.front == self.end
    }

    /// `length` bytes from `begin` come.
    pub fn add(&mut self, begin: u64, length: u64) -> Result<(), Misfit> {
        let end = begin.checked_add(length).ok_or(Misfit::Outside)?;
        if length == 0 || end > self.end {
            return Err(Misfit::Outside);
        }
        if begin < self.front {
            return Err(Misfit::Overlap);
        }
        let place = self.pieces.partition_point(|piece| piece.0 < begin);
        let before = place.checked_sub(1).map(|place| self.pieces[place]);
        if before.is_some_and(|before| before.1 > begin)
            || self.pieces.get(place).is_some_and(|next| next.0 < end)
        {
            return Err(Misfit::Overlap);
        }
        if begin == self.front {
            self.front = end;
            let joined = self.joined();
            self.pieces.drain(..joined);
        } else if self.pieces.len() == PIECES {
            return Err(Misfit::TooMany);
        } else {
            self.pieces.insert(place, (begin, end));
        }
        Ok(())
    }

    /// Moves the front over the pieces that it has reached; answers how many.
    fn joined(&mut self) -> usize {
        let mut joined = 0;
        for piece in &self.pieces {
            if piece.0 != self.front {
                break;
            }
            self.front = piece.1;
            joined += 1;
        }
        joined
    }
}

/// How many pieces of one read may come out of order. A choice: 64 KiB of pieces of one sector, and
/// 16 KiB of memory, at most.
pub const PIECES: usize = 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pieces_in_any_order_make_a_whole() {
        let mut coverage = Coverage::new(100, 50);
        for (begin, length) in [(120, 10), (140, 10), (100, 20)] {
            assert_eq!(coverage.add(begin, length), Ok(()));
            assert!(!coverage.whole());
        }
        assert_eq!(coverage.add(130, 10), Ok(()));
        assert!(coverage.whole());
    }

    #[test]
    fn there_are_only_so_many_pieces() {
        let mut coverage = Coverage::new(0, u64::MAX);
        for piece in 0..PIECES as u64 {
            assert_eq!(coverage.add(1 + 2 * piece, 1), Ok(()));
        }
        assert_eq!(coverage.add(1 << 40, 1), Err(Misfit::TooMany));
        assert_eq!(coverage.add(0, 1), Ok(()));
        assert_eq!(coverage.add(1 << 40, 1), Ok(()));
    }

    proptest! {
        /// Against a table of bytes.
        #[test]
        fn a_byte_comes_once_and_none_is_missing(
            pieces in prop::collection::vec((0_u64..40, 0_u64..12), 0..40),
        ) {
            let mut coverage = Coverage::new(4, 32);
            let mut table = [false; 64];
            for (begin, length) in pieces {
                let span = begin as usize..(begin + length) as usize;
                let outside = length == 0 || begin + length > 36;
                let overlap = begin < 4 || table[span.clone()].contains(&true);
                let expected = match (outside, overlap) {
                    (true, _) => Err(Misfit::Outside),
                    (_, true) => Err(Misfit::Overlap),
                    _ => Ok(()),
                };
                prop_assert_eq!(coverage.add(begin, length), expected);
                if expected.is_ok() {
                    table[span].fill(true);
                }
                prop_assert_eq!(coverage.whole(), table[4..36].iter().all(|here| *here));
            }
        }
    }
}
