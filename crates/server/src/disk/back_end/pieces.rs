//! The memory of a command that a back end holds back: at most three pieces, in the order of the drive.

use crate::arena::Memory;

/// The memory of a command.
pub(super) type Pieces = [Option<Memory>; 3];

/// The pieces of a command's memory.
pub(super) fn held(memory: &[Memory]) -> Pieces {
    let mut pieces = [None; 3];
    for (place, piece) in pieces.iter_mut().zip(memory) {
        *place = Some(*piece);
    }
    pieces
}

/// The pieces one after the other, and their number.
pub(super) fn in_a_row(pieces: &Pieces) -> ([Memory; 3], usize) {
    let mut all = [Memory::NONE; 3];
    let mut count = 0;
    for piece in pieces.iter().flatten() {
        all[count] = *piece;
        count += 1;
    }
    (all, count)
}
