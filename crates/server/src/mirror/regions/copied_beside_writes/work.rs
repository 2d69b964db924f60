//! What is under way at the legs: writes, reads in gaps, and copies.

use std::ops::Range;

use block::RequestId;

/// A write as both legs see it.
pub(super) struct Write {
    pub(super) id: RequestId,
    pub(super) blocks: Range<u64>,
    /// How far each leg is: the one with all data, and the one that is filled.
    pub(super) at: [LegWork; 2],
    pub(super) version: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LegWork {
    Waits,
    Begun,
    Ended,
}

/// A read in a gap, and what it has found of each block so far.
pub(super) struct Read {
    pub(super) command: u64,
    pub(super) blocks: Range<u64>,
    pub(super) found: Vec<Option<u64>>,
}

/// What is on its way to the other leg.
pub(super) enum Locked {
    /// With what the gap has brought.
    Held(Range<u64>, Vec<u64>),
    Piece(Range<u64>, Option<Vec<u64>>),
}
