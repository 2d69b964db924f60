//! LOOK, the elevator: upwards by block number, and at the highest pending request downwards.
//!
//! ```text
//!   block numbers   a . . . b . c . . . . d
//!   sweep                   '-->'-------->'
//!   then            '<--------------------'
//! ```
//!
//! Merten, 1970; Worthington, Ganger, Patt, SIGMETRICS 1994. Needs no knowledge of the drive but
//! the order of its blocks. Blind to rotation, and unfair: the ends of the disk wait for a whole
//! sweep there and back, the middle for half of that. Not where the slowest answers count: C-LOOK
//! treats all blocks alike.

use std::collections::BTreeSet;

use block::Lba;

use crate::policy::{Choice, EligibleRequest, PieceId, Policy, Sight, View};

/// The requests by their first block, and where the sweep is.
#[derive(Clone, Debug, Default)]
pub struct Look {
    pending: BTreeSet<(Lba, u64, PieceId)>,
    /// The first block of the request that was chosen last.
    sweep: Lba,
    towards: Towards,
}

/// Which way the sweep goes.
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
    /// The next request from the sweep upwards.
    fn higher(&self) -> Option<(Lba, u64, PieceId)> {
        self.first_from(self.sweep)
    }

    /// The next request from the sweep downwards: the earliest of those that begin there.
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
