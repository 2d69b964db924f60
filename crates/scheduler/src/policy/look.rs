//! LOOK, the elevator: upwards by block number, and at the highest pending request downwards.
//!
//! ```text
//!   block numbers   a . . . b . c . . . . d
//!   sweep                   '-->'-------->'
//!   then            '<--------------------'
//! ```
//!
//! Merten, 1970; Worthington, Ganger, Patt, SIGMETRICS 1994. The policy uses only the order of
//! blocks. It is blind to rotation and unfair: the ends of the disk wait for a sweep in both
//! directions, the middle for half of that. Not for loads whose slowest answers count: C-LOOK
//! treats all blocks alike.

use std::collections::BTreeSet;

use block::Lba;

use crate::policy::{Choice, EligibleRequest, PieceId, Policy, Sight, View};

/// The pending requests by their first block, and the sweep.
#[derive(Clone, Debug, Default)]
pub struct Look {
    pending: BTreeSet<(Lba, u64, PieceId)>,
    /// The first block of the last selected request.
    sweep: Lba,
    towards: Towards,
}

/// The direction of the sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Towards {
    #[default]
    Higher,
    Lower,
}

impl Policy for Look {
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
        let (higher, lower) = (self.higher(), self.lower());
        let (chosen, towards) = match (self.towards, higher, lower) {
            (_, None, None) => return Choice::Nothing,
            (Towards::Higher, Some(chosen), _) | (Towards::Lower, Some(chosen), None) => {
                (chosen, Towards::Higher)
            }
            (_, _, Some(chosen)) => (chosen, Towards::Lower),
        };
        self.pending.remove(&chosen);
        (self.sweep, self.towards) = (chosen.0, towards);
        Choice::Serve(chosen.2)
    }
}

impl Look {
    /// The next request upwards from the sweep.
    fn higher(&self) -> Option<(Lba, u64, PieceId)> {
        self.first_from(self.sweep)
    }

    /// The next request downwards from the sweep; of several at one block, the oldest.
    fn lower(&self) -> Option<(Lba, u64, PieceId)> {
        let upto = (self.sweep, u64::MAX, PieceId(u32::MAX));
        let latest = self.pending.range(..=upto).next_back()?;
        self.first_from(latest.0)
    }

    fn first_from(&self, start: Lba) -> Option<(Lba, u64, PieceId)> {
        self.pending.range((start, 0, PieceId(0))..).next().copied()
    }
}

fn key(pending: &EligibleRequest) -> (Lba, u64, PieceId) {
    (pending.extent.start(), pending.order, pending.ticket)
}
