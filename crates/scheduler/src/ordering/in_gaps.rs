//! Background pieces for the gaps before other pieces: an index by cylinder.
//!
//! The index has the pieces of the background level that are eligible and not chosen. A piece enters and leaves it
//! with its queue.
//!
//! ```text
//!   cylinder   17     17     204    9131
//!   piece      [ 5 ]  [ 2 ]  [ 9 ]  [ 0 ]
//! ```

use block::Instant;
use drive::SeekTarget;

use super::level::PriorityLevel;
use super::piece::PieceState;
use super::{NextPiece, Ordering};
use crate::policy::PieceId;

/// The eligible background pieces, by cylinder and then by number. It is empty where nobody asks for it.
#[derive(Debug, Default)]
pub(super) struct InGaps {
    is_kept: bool,
    places: Vec<(u32, PieceId)>,
}

impl InGaps {
    /// Adds a piece that enters its queue.
    pub(super) fn enter(&mut self, target: &SeekTarget, piece: PieceId) {
        if self.is_kept {
            let place = (target.position.cylinder, piece);
            let at = self.places.partition_point(|other| *other < place);
            self.places.insert(at, place);
        }
    }

    /// Removes a piece that leaves its queue.
    pub(super) fn leave(&mut self, target: &SeekTarget, piece: PieceId) {
        if self.is_kept {
            let place = (target.position.cylinder, piece);
            let at = self.places.binary_search(&place);
            self.places.remove(at.expect("a piece of the queue"));
        }
    }
}

impl Ordering {
    /// Keeps the index of background pieces from now on.
    ///
    /// # Panics
    /// If a piece waits.
    pub fn index_background(&mut self) {
        assert_eq!(self.waiting, 0, "an index is kept from the first piece on");
        self.in_gaps.is_kept = true;
    }

    /// The eligible background pieces with their cylinders, in the order of these. Empty without
    /// [`Ordering::index_background`].
    pub fn background(&self) -> &[(u32, PieceId)] {
        &self.in_gaps.places
    }

    /// The number of waiting pieces that are not chosen, without those of [`Ordering::background`].
    pub fn waiting_foreground(&self) -> usize {
        self.waiting - self.in_gaps.places.len()
    }

    /// Chooses a piece of [`Ordering::background`] for the gap before another piece: [`Ordering::give`] or
    /// [`Ordering::unchoose`] must follow.
    ///
    /// # Panics
    /// If the piece is not one of them.
    pub fn choose_for_gap(&mut self, now: Instant, piece: PieceId) {
        let entry = self.pieces.get(piece);
        let is_background = entry.level == PriorityLevel::BACKGROUND;
        assert!(
            entry.stage == PieceState::Waiting && is_background && self.is_eligible(piece),
            "{piece:?} is no eligible background piece"
        );
        let chosen = self.choose_past_policy(now, piece);
        debug_assert_eq!(chosen, NextPiece::Piece(piece));
    }
}
