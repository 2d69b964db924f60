//! Preemption: requests that are given to the drive in parts, and that step aside between two of them.
//!
//! ```text
//!                 chosen                              all parts given, all ended
//!   (waiting) -------------> under way: part, part, part --------------------------> ended
//!       ^                        |  ^
//!       |     something more     |  | nothing is more urgent any more
//!       |     urgent is chosen   v  |
//!       '---------------------- aside: its parts still fill the urgent one's slack
//!          the head leaves
//! ```
//!
//! To the order of requests such a piece is at the drive until it ends or the head leaves it: nothing
//! that overlaps it can come between its parts, and what waits for it is released once.

use block::{
    Account, Direction, Durability, Duration, Extent, Instant, Lba, Sectors, Status, Switch,
};
use drive::Profile;
use scheduler::PieceId;
use scheduler::ordering::PriorityLevel;
use scheduler::preemption::{ChunkRole, LastChunk, Preemption, When, Worth};

use crate::command::{Draft, Planned, SentCommand, StageAnswer};
use crate::context::StageContext;
use crate::guarantees::{Guarantees, PartsInProgress, Restriction};

mod aside;
mod landings;
mod parts;
mod reads;

use aside::ReturnBudget;
pub(crate) use landings::Landings;
pub(crate) use parts::least_part;
use reads::ReadEnds;

/// What stepping aside, and what goes with it, came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preempted {
    /// Commands that were parts of requests, and not all of one.
    pub parts: u64,
    /// How often a transfer stepped aside and the head left it.
    pub aside: u64,
    /// What the ways back are believed to take, in all.
    pub back: Duration,
    /// Parts that were served in the slack of something more urgent.
    pub filled: u64,
    /// Commands that were held back for a just-in-time seek.
    pub held: u64,
    /// Of those, the ones that lost a revolution.
    pub missed: u64,
    /// Seeks that were made on the way to another.
    pub hops: u64,
    /// Blocks that were read ahead in slack that nothing else wanted.
    pub read_ahead: Sectors,
}

/// How far a piece has come.
#[derive(Clone, Copy, Debug)]
struct PieceProgress {
    /// The first block that is still to be given; the end of the piece if all are.
    next: Lba,
    end: Lba,
    /// Commands at the drive.
    out: u32,
    /// Parts that were given.
    parts: u32,
    /// Parts that came back undone: the piece goes on with them when all of its commands have ended.
    undone: u32,
    /// How the first bad part ended.
    failed: Option<Status>,
    account: Option<Account>,
    /// How long it has waited outside the drive, without the present wait.
    waited: Duration,
    /// Since when it waits, if it does.
    since: Instant,
}

/// The requests of an engine that are given in parts. Without rules every request is one command.
pub struct Transfers {
    rules: Option<Preemption>,
    /// How often requests of each level come, and what their waiting is worth.
    pub(crate) worth: Worth,
    pub(crate) landings: Landings,
    /// By piece; of pieces that have not begun, anything.
    of: Vec<Option<PieceProgress>>,
    /// The piece whose parts are given.
    under_way: Option<PieceId>,
    /// The piece that has stepped aside, and where the head still is.
    aside: Option<PieceId>,
    /// Parts that came back undone, with their pieces.
    undone: Vec<(PieceId, Extent)>,
    /// Pieces that the head has left while commands of theirs were at the drive.
    left: Vec<PieceId>,
    reads: ReadEnds,
    /// What a seek takes in the mean.
    seek: Duration,
    budget: ReturnBudget,
    pub(crate) tally: Preempted,
}

/// What is left of a piece when one of its commands has ended.
pub(crate) enum Remainder {
    /// Parts at the drive or to be given.
    More,
    /// Parts that came back undone, or that the head has left: the piece waits again.
    Waits(WaitsAgain),
    /// None: it ended so, and has waited for so long.
    None(Status, Option<Account>, Duration),
}

/// How a piece of which nothing is at the drive comes to wait again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsAgain {
    /// The drive gave it back.
    GivenBack,
    /// The head has left it.
    SteppedAside,
}

/// The part of a request that a command serves, and how durable it has to be.
pub(crate) type GivenPart = (Option<Extent>, Durability);

impl Transfers {
    /// Requests are given in parts only because streams have to get their turn.
    pub(crate) const WHOLE: Preemption = Preemption {
        chunk: None,
        just_in_time: None,
        split: None,
        free_prefetch: Switch::Off,
        last_chunk: LastChunk::Buffered,
        aside: None,
        when: When::Always,
    };

    /// Every request is one command.
    pub(crate) fn none() -> Self {
        Transfers {
            rules: None,
            worth: Worth::new(),
            landings: Landings::default(),
            of: Vec::new(),
            under_way: None,
            aside: None,
            undone: Vec::new(),
            left: Vec::new(),
            reads: ReadEnds::default(),
            seek: Duration::ZERO,
            budget: ReturnBudget::default(),
            tally: Preempted::default(),
        }
    }

    /// Larger requests are given in parts under these rules, from `now` on.
    pub(crate) fn by(rules: Preemption, belief: &Profile, now: Instant) -> Self {
        let cylinders = belief.geometry.cylinders();
        // Two places at random are a third of the cylinders apart in the mean.
        let seek = belief.seek.read().time(cylinders / 3);
        let half = Duration::from_nanos(belief.spindle.period().as_nanos() / 2);
        Transfers {
            rules: Some(rules),
            seek,
            budget: ReturnBudget::new(now, seek + half),
            ..Transfers::none()
        }
    }

    /// The rules, if there are any.
    pub fn rules(&self) -> Option<&Preemption> {
        self.rules.as_ref()
    }

    /// What preemption came to.
    pub fn tally(&self) -> Preempted {
        self.tally
    }

    /// A request of this level has come.
    pub(crate) fn note_arrival(&mut self, now: Instant, level: PriorityLevel) {
        if self.rules.is_some() {
            self.worth.arrived(now, level);
        }
    }

    /// Whether parts of a piece were served.
    pub(crate) fn has_begun(&self, piece: PieceId) -> bool {
        self.progress(piece).is_some()
    }

    /// The piece whose parts are given; what has stepped aside if there is none.
    fn resume(&mut self) -> Option<PieceId> {
        if self.under_way.is_none() {
            self.under_way = self.aside.take();
        }
        self.under_way
    }

    /// The piece that is given in parts.
    pub(crate) fn in_progress(&self) -> PartsInProgress {
        PartsInProgress {
            under_way: self.under_way,
            aside: self.aside,
        }
    }

    /// Gives what streams demand, whatever was under way.
    pub(crate) fn obey(
        &mut self,
        cx: &mut StageContext<'_>,
        guarantees: &Guarantees,
        restriction: Restriction,
    ) -> StageAnswer {
        match restriction {
            Restriction::None => StageAnswer::Pass,
            Restriction::Wait => StageAnswer::WaitUntil(None),
            Restriction::Flush => StageAnswer::Give(Draft::Flush),
            Restriction::Piece(piece) => {
                if self.under_way.is_some_and(|other| other != piece) {
                    self.aside = self.under_way.take();
                }
                self.route_next_part(cx, guarantees, piece);
                StageAnswer::Give(Draft::request(piece, Planned::Yes))
            }
            Restriction::NextPart => {
                let transfer = self.resume();
                transfer.map_or(StageAnswer::Pass, |piece| {
                    StageAnswer::Give(Draft::part(piece))
                })
            }
        }
    }

    fn progress(&self, piece: PieceId) -> Option<PieceProgress> {
        *self.of.get(piece.index())?
    }

    /// A chosen piece may be overtaken until it is given: by what is real-time; with preemption, by what
    /// is more urgent.
    pub(crate) fn let_urgent_pass(&self, cx: &mut StageContext<'_>) {
        let Some(chosen) = cx.dispatch.chosen_piece() else {
            return;
        };
        let is_passed = match self.rules {
            None => cx.ordering.overtakes(chosen),
            Some(_) => {
                cx.ordering.is_outranked(chosen) && !cx.ordering.is_out_of_patience(cx.now, chosen)
            }
        };
        if is_passed {
            cx.put_back_chosen();
        }
    }

    /// The policy chooses a piece among those that wait, of which the next part goes.
    pub(crate) fn choose(&self, cx: &mut StageContext<'_>, guarantees: &Guarantees) -> StageAnswer {
        let Some(piece) = cx.choose() else {
            cx.dispatch.settled = true;
            return StageAnswer::WaitUntil(cx.dispatch.wakeup);
        };
        self.route_next_part(cx, guarantees, piece);
        let draft = Draft::request(piece, Planned::No);
        cx.dispatch.chosen.push_back(draft);
        StageAnswer::Pass
    }

    /// The transfer that is under way goes on, waits for one of its parts, or steps aside for a piece
    /// that is then the chosen one.
    pub(crate) fn go_on(
        &mut self,
        cx: &mut StageContext<'_>,
        guarantees: &Guarantees,
    ) -> StageAnswer {
        let Some(piece) = self.resume() else {
            return StageAnswer::Pass;
        };
        if let Some(urgent) = self.urgent_before(cx, guarantees, piece) {
            self.aside = self.under_way.take();
            cx.dispatch
                .chosen
                .push_back(Draft::request(urgent, Planned::No));
            return StageAnswer::Pass;
        }
        let (direction, _) = cx.ordering.blocks(piece);
        let most = match self.is_hidden(cx.profile(), guarantees, direction)
            && parts::reads_on(cx.profile(), direction)
        {
            true => 1,
            false => cx.intake.limits.commands_at_drive,
        };
        if cx.dispatch.at_drive() < most {
            return StageAnswer::Give(Draft::part(piece));
        }
        cx.dispatch.settled = true;
        StageAnswer::WaitUntil(cx.dispatch.wakeup)
    }

    /// A draft is given to the drive.
    pub(crate) fn note_given(
        &mut self,
        cx: &mut StageContext<'_>,
        guarantees: &Guarantees,
        draft: &Draft,
    ) -> GivenPart {
        match *draft {
            Draft::Request { piece, .. } | Draft::InGap { piece } => {
                self.leave_aside(cx);
                self.give_part(cx, guarantees, piece, u64::MAX)
            }
            Draft::Part { piece, most } => {
                if self.aside == Some(piece) {
                    self.tally.filled += 1;
                }
                self.give_part(cx, guarantees, piece, most)
            }
            Draft::ReadAhead(extent) => {
                self.tally.read_ahead.0 += extent.length().0;
                self.reads.note(extent);
                (None, Durability::Volatile)
            }
            // The head stays.
            Draft::Flush => (None, Durability::Volatile),
            Draft::Background(..) | Draft::Calibration(_) | Draft::Hop(_) => {
                // The head goes elsewhere.
                self.leave_aside(cx);
                self.reads.leave();
                self.tally.hops += u64::from(matches!(draft, Draft::Hop(_)));
                (None, Durability::Volatile)
            }
        }
    }

    /// A part of a piece is given to the drive.
    fn give_part(
        &mut self,
        cx: &StageContext<'_>,
        guarantees: &Guarantees,
        piece: PieceId,
        most: u64,
    ) -> GivenPart {
        let asked = cx.request(piece).durability;
        let (part, place) = self.next_part(cx, guarantees, piece, most);
        let Some(rules) = self.rules else {
            return (Some(part), asked);
        };
        let (direction, whole) = cx.ordering.blocks(piece);
        let index = piece.index();
        if self.of.len() <= index {
            self.of.resize(index + 1, None);
        }
        let progress = self.of[index].get_or_insert(PieceProgress {
            next: whole.start(),
            end: whole.end(),
            out: 0,
            parts: 0,
            undone: 0,
            failed: None,
            account: None,
            waited: Duration::ZERO,
            since: cx.ordering.entered(piece),
        });
        let is_there = self.under_way == Some(piece) || self.aside == Some(piece);
        if progress.out == 0 && !is_there {
            progress.waited += cx.now.since(progress.since);
        }
        let number = progress.parts;
        let mut undone = self.undone.iter();
        match undone.position(|again| *again == (piece, part)) {
            Some(place) => {
                self.undone.remove(place);
                progress.undone -= 1;
            }
            None => progress.next = part.end(),
        }
        progress.out += 1;
        progress.parts += 1;
        self.tally.parts += u64::from(part != whole);
        if self.aside != Some(piece) {
            self.under_way = (place == ChunkRole::Inner).then_some(piece);
        } else if place == ChunkRole::Last {
            self.aside = None;
        }
        match direction {
            Direction::Read => self.reads.note(part),
            Direction::Write => self.reads.leave(),
        }
        let is_forced = direction == Direction::Write && rules.is_forced(number, place);
        match is_forced {
            true => (Some(part), Durability::Durable),
            false => (Some(part), asked),
        }
    }

    /// The head leaves the transfer that has stepped aside: it waits again.
    fn leave_aside(&mut self, cx: &mut StageContext<'_>) {
        let Some(piece) = self.aside.take() else {
            return;
        };
        self.tally.aside += 1;
        self.tally.back += self.budget.spend();
        if let Some(Some(progress)) = self.of.get_mut(piece.index()) {
            if progress.out > 0 {
                self.left.push(piece);
                return;
            }
            progress.since = cx.now;
        }
        cx.ordering.step_aside(piece);
        cx.dispatch.settled = false;
    }

    /// A command of a piece has ended: what is left of it. `waited` is how long the piece had waited
    /// when it was given.
    pub(crate) fn part_ended(
        &mut self,
        now: Instant,
        (piece, waited): (PieceId, Duration),
        sent: &SentCommand,
        (status, account): (Status, Option<Account>),
        is_undone: bool,
    ) -> Remainder {
        if self.rules.is_none() && is_undone {
            return Remainder::Waits(WaitsAgain::GivenBack);
        }
        let Some(Some(progress)) = self.of.get_mut(piece.index()) else {
            return Remainder::None(status, account, waited);
        };
        progress.out -= 1;
        progress.account = match (progress.account, account) {
            (Some(before), Some(this)) => Some(before.and(&this)),
            (before, this) => this.or(before),
        };
        if is_undone {
            let part = sent.part.expect("a command of a piece has a part of it");
            progress.undone += 1;
            self.undone.push((piece, part));
        } else if status != Status::Good && progress.failed.is_none() {
            progress.failed = Some(status);
        }
        let all_given = progress.next == progress.end && progress.undone == 0;
        let is_over = progress.failed.is_some() || all_given;
        if is_over || progress.undone > 0 {
            self.under_way = self.under_way.filter(|&other| other != piece);
            self.aside = self.aside.filter(|&other| other != piece);
        }
        if progress.out > 0 {
            return Remainder::More;
        }
        let place = self.left.iter().position(|&left| left == piece);
        if let Some(place) = place {
            self.left.swap_remove(place);
        }
        if is_over {
            let ended = *progress;
            self.forget(piece);
            let status = ended.failed.unwrap_or(Status::Good);
            return Remainder::None(status, ended.account, ended.waited);
        }
        let waits = match (progress.undone > 0, place.is_some()) {
            (true, _) => WaitsAgain::GivenBack,
            (false, true) => WaitsAgain::SteppedAside,
            (false, false) => return Remainder::More,
        };
        progress.since = now;
        Remainder::Waits(waits)
    }

    /// A command ended that was believed to wait `wait` for its sector, and took so many revolutions
    /// more.
    pub(crate) fn note_landing(
        &mut self,
        sent: &SentCommand,
        wait: Duration,
        period: Duration,
        revolutions: i64,
    ) {
        if self.rules.is_some() {
            self.landings.observe(wait, period, revolutions);
            self.tally.missed += u64::from(sent.was_held && revolutions > 0);
        }
    }

    /// A piece leaves.
    pub(crate) fn forget(&mut self, piece: PieceId) {
        if let Some(place) = self.of.get_mut(piece.index()) {
            *place = None;
            self.undone.retain(|&(other, _)| other != piece);
        }
    }
}

#[cfg(test)]
mod tests;
