//! Circular LOOK: upwards by block number, then back to the lowest pending request.
//!
//! ```text
//!   block numbers   a . . . b . c . . . . d
//!   sweep                   '-->'-------->'
//!   then            '<--------------------'
//! ```
//!
//! The policy uses only the order of blocks, and treats all blocks alike (Worthington, Ganger,
//! Patt, SIGMETRICS 1994). It is blind to rotation. Not for short queues on a drive whose rotation
//! costs more than its short seeks.

use std::collections::BTreeSet;

use block::Lba;

use crate::policy::{Choice, EligibleRequest, PieceId, Policy, Sight, View};

/// The pending requests by their first block, and the sweep.
#[derive(Clone, Debug, Default)]
pub struct CLook {
    pending: BTreeSet<(Lba, u64, PieceId)>,
    /// The first block of the last selected request.
    sweep: Lba,
}

impl Policy for CLook {
    fn sight(&self) -> Sight {
        Sight::Order
    }

    fn add(&mut self, pending: &EligibleRequest) {
        self.pending.insert(key(pending));
    }

    fn withdraw(&mut self, pending: &EligibleRequest) {
        self.pending.remove(&key(pending));
    }

    fn select(&mut self, _view: &View) -> Choice {
        let ahead = self.pending.range((self.sweep, 0, PieceId(0))..).next();
        let Some(&chosen) = ahead.or_else(|| self.pending.first()) else {
            return Choice::Nothing;
        };
        self.pending.remove(&chosen);
        self.sweep = chosen.0;
        Choice::Serve(chosen.2)
    }
}

/// The key; requests with equal first blocks go in the order of arrival.
fn key(pending: &EligibleRequest) -> (Lba, u64, PieceId) {
    (pending.extent.start(), pending.order, pending.ticket)
}
