//! Whether the transfer that is under way goes on, or steps aside for something more urgent.
//!
//! ```text
//!   goes on          | left |   way to the urgent   |             ... to whatever is next
//!   steps aside      |   way to the urgent   |   way back   | left |   ... to whatever is next
//! ```
//!
//! What it costs is the two ways less the one that there would be anyway; what it wins is the urgent
//! one's waiting. Both are known when the policy has chosen for whom: a near one is let in sooner.

use block::{Duration, Instant, Switch};
use scheduler::preemption::{When, Worth};

use super::Engine;
use super::transfer::Going;
use crate::forecast::Route;
use crate::sent::{Planned, Step};

impl Engine {
    /// What is to be done about the transfer that is under way.
    pub(super) fn going(&mut self, now: Instant) -> Going {
        let Some(transfers) = &mut self.transfers else {
            return Going::Free;
        };
        if transfers.under_way.is_none() {
            transfers.under_way = transfers.aside.take();
        }
        let Some(piece) = transfers.under_way else {
            return Going::Free;
        };
        if let Some(urgent) = self.urgent_before(now, piece) {
            if let Some(transfers) = &mut self.transfers {
                transfers.aside = transfers.under_way.take();
            }
            self.way.push_back(Step::Request {
                piece: urgent,
                planned: Planned::No,
                was_held: false,
                merged: None,
                without: None,
            });
            return Going::Aside;
        }
        let (direction, _) = self.ordering.blocks(piece);
        let most = match self.is_hidden(direction) && self.reads_on(direction) {
            true => 1,
            false => self.limits.commands_at_drive,
        };
        match self.at_drive.len() < most {
            true => Going::On(piece),
            false => Going::Waiting,
        }
    }

    /// What the transfer of `piece` steps aside for, chosen; `None` if it goes on.
    fn urgent_before(&mut self, now: Instant, piece: u32) -> Option<u32> {
        if !self.ordering.is_outranked(piece) || self.ordering.is_out_of_patience(now, piece) {
            return None;
        }
        let is_real_time = self.ordering.overtakes(piece);
        let transfers = self.transfers.as_deref_mut()?;
        let aside = transfers.rules.aside?;
        transfers.earn(now, aside.most_permille);
        if !is_real_time && transfers.credit < transfers.back.as_nanos() {
            return None;
        }
        let when = transfers.rules.when;
        let urgent = self.choose(now)?;
        self.aim(urgent);
        let is_let_in = self.ordering.level(urgent) < self.ordering.level(piece)
            && (is_real_time
                || when == When::Always
                || Worth::is_worth_stepping_aside(
                    self.time_left(piece),
                    self.cost_of_aside(now, piece, urgent),
                ));
        if !is_let_in {
            self.ordering.put_back(urgent);
        }
        is_let_in.then_some(urgent)
    }

    /// What it costs that `urgent` is served before the rest of `piece`, by belief.
    fn cost_of_aside(&self, now: Instant, piece: u32, urgent: u32) -> Duration {
        let Some(transfers) = self.transfers.as_deref() else {
            return Duration::ZERO;
        };
        let (direction, _) = self.ordering.blocks(piece);
        let (part, _) = self.next_part(piece, u64::MAX);
        let Some(rest) = Route::new(&self.belief, part, direction) else {
            return transfers.back;
        };
        let route = &self.routes[urgent as usize];
        let there = self.expected_head().course(&self.belief, now, route);
        let given = there.head.free + route.tail(&self.belief, &there.pass);
        let back = there.head.course(&self.belief, given, &rest);
        // While the head waits for the urgent one's sector, the transfer may go on.
        let waited = match self.filler_rule() {
            Switch::On => Duration::ZERO,
            Switch::Off => there.pass.rotation,
        };
        let ways = there.pass.seek + waited + back.pass.seek + back.pass.rotation;
        ways.saturating_sub(transfers.back)
    }

    /// For how long the medium is busy with what is left of a piece.
    fn time_left(&self, piece: u32) -> Duration {
        let Some(transfer) = self.transfer(piece) else {
            return Duration::ZERO;
        };
        let blocks = transfer.end.0.saturating_sub(transfer.next.0);
        let sector = self.routes[piece as usize].width();
        self.belief.spindle.time_of(sector) * blocks
    }
}
