//! Dispatch: what is chosen, what is at the drive, and until when nothing is asked.
//!
//! ```text
//!   chosen: [free read][request]  --give-->  at the drive: [in service][queued]  --complete-->
//! ```

use scheduler::PieceId;
use std::collections::VecDeque;

use block::{CommandId, Duration, Extent, Instant};
use scheduler::freeblock::GapUse;

use crate::command::{Draft, Purpose, SentCommand, StageAnswer};
use crate::intake::limits::Limits;

/// The commands of an engine, from the choice to the end.
#[derive(Debug, Default)]
pub struct Dispatch {
    /// In the order in which the drive was given them.
    at_drive: VecDeque<SentCommand>,
    /// Given to the drive as soon as it may have more. The last is a piece of a request, and what comes before it goes in
    /// its gap.
    pub(crate) chosen: VecDeque<Draft>,
    /// How many commands were given.
    given: u64,
    /// How many of them a second time.
    pub(crate) retried: u64,
    /// No stage has anything to give: none is asked again before an input or the wakeup.
    pub(crate) settled: bool,
    /// Until when the policy idles on purpose, or a request runs out of patience.
    pub(crate) wakeup: Option<Instant>,
}

impl Dispatch {
    /// Commands at the drive.
    pub fn at_drive(&self) -> usize {
        self.at_drive.len()
    }

    /// How often a command that the drive gave back undone was given to it again.
    pub fn retried(&self) -> u64 {
        self.retried
    }

    /// Whether a command is at the drive.
    pub fn is_at_drive(&self, id: CommandId) -> bool {
        self.at_drive.iter().any(|sent| sent.id == id)
    }

    /// Whether a command at the drive belongs to no request.
    pub fn is_background(&self, id: CommandId) -> bool {
        let mut at_drive = self.at_drive.iter();
        at_drive.any(|sent| sent.id == id && sent.purpose.piece().is_none())
    }

    /// Whether a command at the drive serves a background request in the gap before another one.
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn is_in_gap(&self, id: CommandId) -> bool {
        matches!(self.find(id).purpose, Purpose::InGap { .. })
    }

    /// Whether a command at the drive reads ahead of a request, in slack that nothing else wanted.
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn is_read_ahead(&self, id: CommandId) -> bool {
        matches!(self.find(id).purpose, Purpose::ReadAhead)
    }

    /// The blocks that a command at the drive reads in the background, by itself or merged with those
    /// of a request; `None` if it reads none. The owner of its bytes has them when it ends.
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn background_of(&self, id: CommandId) -> Option<Extent> {
        match self.find(id).purpose {
            Purpose::Background(read) | Purpose::Merged { read, .. } => Some(read.extent),
            _ => None,
        }
    }

    /// A command at the drive.
    pub(crate) fn find(&self, id: CommandId) -> &SentCommand {
        self.get(self.place_of(id))
    }

    /// The place of a command, valid until one is given or ends.
    ///
    /// # Panics
    /// If it is not at the drive.
    #[inline]
    pub(crate) fn place_of(&self, id: CommandId) -> usize {
        match self.at_drive.front() {
            // The usual one.
            Some(first) if first.id == id => 0,
            _ => {
                let place = self.at_drive.iter().position(|sent| sent.id == id);
                place.unwrap_or_else(|| panic!("{id:?} is not at the drive"))
            }
        }
    }

    /// The command of a place.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> &SentCommand {
        &self.at_drive[place]
    }

    /// The commands at the drive, the one in service first.
    pub(crate) fn commands(&self) -> impl Iterator<Item = &SentCommand> {
        self.at_drive.iter()
    }

    /// The command that was given last, if it is at the drive.
    pub(crate) fn last(&self) -> Option<&SentCommand> {
        self.at_drive.back()
    }

    /// The pieces of requests at the drive.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = PieceId> {
        self.at_drive.iter().filter_map(|sent| sent.purpose.piece())
    }

    /// The name of the next command.
    pub(crate) fn next_id(&self) -> CommandId {
        CommandId(self.given)
    }

    /// A command is given to the drive.
    pub(crate) fn send(&mut self, sent: SentCommand) {
        self.given += 1;
        self.at_drive.push_back(sent);
    }

    /// A command has ended.
    ///
    /// # Panics
    /// If it is not at the drive.
    pub(crate) fn take(&mut self, id: CommandId) -> SentCommand {
        // Commands are large, and this copies one once.
        let place = self.place_of(id);
        let sent = *self.get(place);
        self.forget(place);
        sent
    }

    /// The command of a place has ended, and all of it is known.
    #[inline]
    pub(crate) fn forget(&mut self, place: usize) {
        self.settled = false;
        match place {
            0 => drop(self.at_drive.pop_front()),
            _ => drop(self.at_drive.remove(place)),
        }
    }

    /// The command `id` has left the medium at `end`: what was expected after it shifts.
    pub(crate) fn resync(&mut self, id: CommandId, end: Instant) {
        let given = self.at_drive.iter_mut().map(|sent| &mut sent.purpose);
        given
            .filter_map(Purpose::unplanned_mut)
            .for_each(|unplanned| unplanned.resync(id, end));
        for draft in &mut self.chosen {
            if let Draft::Request {
                unplanned: Some(unplanned),
                ..
            } = draft
            {
                unplanned.resync(id, end);
            }
        }
    }

    /// The piece that is chosen, and not yet at the drive.
    pub(crate) fn chosen_piece(&self) -> Option<PieceId> {
        match self.chosen.back() {
            Some(&Draft::Request { piece, .. }) => Some(piece),
            Some(_) | None => None,
        }
    }

    /// The pieces that are chosen: that one, and a background one before it.
    pub(crate) fn chosen_pieces(&self) -> impl Iterator<Item = PieceId> {
        self.chosen.iter().filter_map(|draft| match *draft {
            Draft::Request { piece, .. } | Draft::InGap { piece } => Some(piece),
            _ => None,
        })
    }

    /// Whether a free read has been given to the drive for the chosen piece, which is then the best that
    /// can follow it.
    pub(crate) fn is_read_given(&self) -> bool {
        let is_read = |sent: &SentCommand| matches!(sent.purpose, Purpose::Background(_));
        match self.chosen.front() {
            Some(Draft::Request { unplanned, .. }) => {
                unplanned.is_some_and(|unplanned| matches!(unplanned.gap, GapUse::Apart(_)))
            }
            // Another stop of the same plan is about to be given.
            Some(Draft::Background(_)) => self.last().is_some_and(is_read),
            Some(_) | None => false,
        }
    }

    /// Whether the drive has as many commands as it may: an end comes before anything else can be given.
    #[inline]
    pub(crate) fn is_full(&self, limits: &Limits) -> bool {
        self.at_drive.len() >= limits.commands_at_drive
    }

    /// Whether the drive takes another command: it has room for one, and starves none of those that it
    /// has. A drive that reorders two that come together would take either, so it first takes up the one
    /// that it has where `taking_up` says for how long that lasts.
    pub(crate) fn room(
        &self,
        now: Instant,
        limits: &Limits,
        taking_up: Option<Duration>,
    ) -> StageAnswer {
        let Some(first) = self.at_drive.front() else {
            return StageAnswer::Pass;
        };
        let is_starved = first.given + limits.patience <= now;
        if self.is_full(limits) || is_starved {
            return StageAnswer::WaitUntil(None);
        }
        let taken_up = taking_up.filter(|_| self.at_drive.len() == 1);
        let taken_up = taken_up.map(|time| first.given + time);
        match taken_up.filter(|&then| then > now) {
            Some(then) => StageAnswer::WaitUntil(Some(then)),
            None => StageAnswer::Pass,
        }
    }

    /// Whether the last answer still holds: no stage has anything to give, or what is chosen has time.
    pub(crate) fn rest(&mut self, now: Instant) -> StageAnswer {
        let is_resting = self.settled || !self.chosen.is_empty();
        if is_resting && self.wakeup.is_none_or(|then| then > now) {
            return StageAnswer::WaitUntil(self.wakeup);
        }
        self.wakeup = None;
        StageAnswer::Pass
    }
}

#[cfg(test)]
mod tests;
