//! Requests that are given to the drive in parts, and that step aside between two of them.
//!
//! ```text
//!                 chosen                              all parts given, all ended
//!   (waiting) -------------> under way: part, part, part --------------------------> ended
//!       ^                        |  ^
//!       |     something more     |  | nobody is more urgent any more
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
use scheduler::freeblock::Lateness;
use scheduler::ordering::Level;
use scheduler::preemption::{Place, Preemption, Worth};

use super::Engine;
use crate::sent::{Sent, Step};

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
    /// Blocks that were read ahead in slack that nobody wanted.
    pub read_ahead: Sectors,
}

/// How far a piece has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    /// The first block that is still to be given; the end of the piece if all are.
    pub(super) next: Lba,
    pub(super) end: Lba,
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

/// The requests in parts of an engine.
pub(super) struct Transfers {
    pub(super) rules: Preemption,
    pub(super) worth: Worth,
    /// How late just-in-time seeks are.
    pub(super) lateness: Lateness,
    pub(super) unlearned: u32,
    /// By piece; of pieces that have not begun, anything.
    of: Vec<Option<Transfer>>,
    /// The piece whose parts are given.
    pub(super) under_way: Option<u32>,
    /// The piece that has stepped aside, and where the head still is.
    pub(super) aside: Option<u32>,
    /// Parts that came back undone, with their pieces.
    undone: Vec<(u32, Extent)>,
    /// Pieces that the head has left while commands of theirs were at the drive.
    left: Vec<u32>,
    /// What follows the read that was given last, if nothing was given since.
    pub(super) ahead: Option<Lba>,
    /// Where the last reads ended, newest last: the drive may have read on there.
    pub(super) ends: [u64; STREAMS],
    newest: usize,
    /// What a seek takes in the mean, and a way back with its latency.
    pub(super) way: Duration,
    pub(super) back: Duration,
    /// Head time that may be spent on ways back.
    pub(super) credit: u64,
    credited: Instant,
    pub(super) told: Preempted,
}

/// What comes next, before anybody is asked.
pub(super) enum Going {
    /// Another part of this piece.
    On(u32),
    /// Nothing, until a part has ended.
    Waiting,
    /// What is on the way now: the transfer steps aside for it.
    Aside,
    /// Whatever is chosen.
    Free,
}

/// Whether more of a piece is to come.
pub(super) enum Rest {
    /// Parts at the drive or to be given.
    More,
    /// None: it ended so.
    None(Status, Option<Account>, Duration),
}

impl Engine {
    /// The engine, whose larger requests step aside under these rules.
    ///
    /// # Panics
    /// If requests are already here.
    pub fn with_preemption(mut self, rules: Preemption) -> Self {
        assert_eq!(self.held(), 0, "rules come before requests");
        let cylinders = self.belief.geometry.cylinders();
        // Two places at random are a third of the cylinders apart in the mean.
        let way = self.belief.seek.read().time(cylinders / 3);
        let half = Duration::from_nanos(self.belief.spindle.period().as_nanos() / 2);
        self.transfers = Some(Box::new(Transfers {
            rules,
            worth: Worth::new(),
            lateness: Lateness::default(),
            unlearned: 0,
            of: Vec::new(),
            under_way: None,
            aside: None,
            undone: Vec::new(),
            left: Vec::new(),
            ahead: None,
            ends: [u64::MAX; STREAMS],
            newest: 0,
            way,
            back: way + half,
            credit: CREDIT.as_nanos(),
            credited: self.now,
            told: Preempted::default(),
        }));
        self
    }

    /// The rules of preemption, if there are any.
    pub fn preemption(&self) -> Option<&Preemption> {
        Some(&self.transfers.as_ref()?.rules)
    }

    /// What preemption came to.
    pub fn preempted(&self) -> Preempted {
        let transfers = self.transfers.as_ref();
        transfers.map_or_else(Preempted::default, |transfers| transfers.told)
    }

    /// A request of this level has come.
    pub(super) fn note_arrival(&mut self, now: Instant, level: Level) {
        if let Some(transfers) = &mut self.transfers {
            transfers.worth.arrived(now, level);
        }
    }

    pub(super) fn transfer(&self, piece: u32) -> Option<Transfer> {
        let transfers = self.transfers.as_ref()?;
        *transfers.of.get(piece as usize)?
    }

    /// A part of a piece is given to the drive; the answer is how durable it has to be.
    fn give_part(&mut self, now: Instant, piece: u32, most: u64) -> (Option<Extent>, Durability) {
        let slot = self.slots.get(self.ordering.owner(piece));
        let (asked, submitted) = (slot.request.durability, self.ordering.entered(piece));
        let (part, place) = self.next_part(piece, most);
        let (direction, whole) = self.ordering.blocks(piece);
        let Some(transfers) = self.transfers.as_deref_mut() else {
            return (Some(part), asked);
        };
        let index = piece as usize;
        if transfers.of.len() <= index {
            transfers.of.resize(index + 1, None);
        }
        let transfer = transfers.of[index].get_or_insert(Transfer {
            next: whole.start(),
            end: whole.end(),
            out: 0,
            parts: 0,
            undone: 0,
            failed: None,
            account: None,
            waited: Duration::ZERO,
            since: submitted,
        });
        if transfer.out == 0 && transfers.under_way != Some(piece) && transfers.aside != Some(piece)
        {
            transfer.waited += now.since(transfer.since);
        }
        let number = transfer.parts;
        let again = transfers
            .undone
            .iter()
            .position(|again| *again == (piece, part));
        match again {
            Some(place) => {
                transfers.undone.remove(place);
                transfer.undone -= 1;
            }
            None => transfer.next = part.end(),
        }
        transfer.out += 1;
        transfer.parts += 1;
        if part != whole {
            transfers.told.parts += 1;
        }
        if transfers.aside != Some(piece) {
            transfers.under_way = match place {
                Place::Inner => Some(piece),
                Place::Last => None,
            };
        } else if place == Place::Last {
            transfers.aside = None;
        }
        transfers.ahead = (direction == Direction::Read).then_some(part.end());
        if direction == Direction::Read {
            transfers.note_end(part);
        }
        let is_forced = direction == Direction::Write && transfers.rules.is_forced(number, place);
        match is_forced {
            true => (Some(part), Durability::Durable),
            false => (Some(part), asked),
        }
    }

    /// The head leaves the transfer that has stepped aside: it waits again.
    pub(super) fn leave_aside(&mut self, now: Instant) {
        let Some(transfers) = self.transfers.as_deref_mut() else {
            return;
        };
        let Some(piece) = transfers.aside.take() else {
            return;
        };
        transfers.told.aside += 1;
        transfers.told.back += transfers.back;
        transfers.credit = transfers.credit.saturating_sub(transfers.back.as_nanos());
        let out = transfers.of[piece as usize].map_or(0, |transfer| transfer.out);
        match out {
            0 => self.wait_again(now, piece),
            _ => transfers.left.push(piece),
        }
    }

    /// A piece of which nothing is at the drive waits for its next part.
    fn wait_again(&mut self, now: Instant, piece: u32) {
        if let Some(Some(transfer)) = self
            .transfers
            .as_deref_mut()
            .and_then(|transfers| transfers.of.get_mut(piece as usize))
        {
            transfer.since = now;
        }
        self.ordering.step_aside(piece);
        self.settled = false;
    }

    /// A command of a piece has ended: what is left of it.
    pub(super) fn part_ended(
        &mut self,
        now: Instant,
        piece: u32,
        sent: &Sent,
        (status, account): (Status, Option<Account>),
        is_undone: bool,
    ) -> Rest {
        let waited = self.ordering.waited(piece).all;
        let Some(transfers) = self.transfers.as_deref_mut() else {
            return Rest::None(status, account, waited);
        };
        let Some(Some(transfer)) = transfers.of.get_mut(piece as usize) else {
            return Rest::None(status, account, waited);
        };
        transfer.out -= 1;
        transfer.account = match (transfer.account, account) {
            (Some(before), Some(this)) => Some(before.and(&this)),
            (before, this) => this.or(before),
        };
        if is_undone {
            let part = sent.part.expect("a command of a piece has a part of it");
            transfer.undone += 1;
            transfers.undone.push((piece, part));
        } else if status != Status::Good && transfer.failed.is_none() {
            transfer.failed = Some(status);
        }
        let is_over =
            transfer.failed.is_some() || (transfer.next == transfer.end && transfer.undone == 0);
        if is_over || transfer.undone > 0 {
            transfers.under_way = transfers.under_way.filter(|&other| other != piece);
            transfers.aside = transfers.aside.filter(|&other| other != piece);
        }
        if transfer.out > 0 {
            return Rest::More;
        }
        let place = transfers.left.iter().position(|&left| left == piece);
        if let Some(place) = place {
            transfers.left.swap_remove(place);
        }
        if is_over {
            let (failed, account) = (transfer.failed, transfer.account);
            let waited = transfer.waited;
            transfers.of[piece as usize] = None;
            transfers.undone.retain(|&(other, _)| other != piece);
            return Rest::None(failed.unwrap_or(Status::Good), account, waited);
        }
        if transfer.undone > 0 {
            transfer.since = now;
            self.retried += 1;
            self.ordering.requeue(piece);
        } else if place.is_some() {
            self.wait_again(now, piece);
        }
        Rest::More
    }

    /// A piece leaves without having been served to its end.
    pub(crate) fn forget_transfer(&mut self, piece: u32) {
        if let Some(transfers) = &mut self.transfers
            && let Some(place) = transfers.of.get_mut(piece as usize)
        {
            *place = None;
            transfers.undone.retain(|&(other, _)| other != piece);
        }
    }

    /// Whether parts of a piece were served.
    pub(crate) fn has_begun(&self, piece: u32) -> bool {
        self.transfer(piece).is_some()
    }

    /// The piece that has stepped aside and where the head still is, if it fills slack.
    pub(super) fn filler(&self) -> Option<u32> {
        let transfers = self.transfers.as_ref()?;
        transfers.aside.filter(|_| self.filler_rule() == Switch::On)
    }

    /// Whether what has stepped aside fills slack.
    pub(super) fn filler_rule(&self) -> Switch {
        let rules = self.transfers.as_ref().and_then(|it| it.rules.aside);
        rules.map_or(Switch::Off, |aside| aside.fill)
    }

    /// A step is given to the drive. The answer is its part of a request, and how durable that has to
    /// be.
    pub(super) fn note_given(&mut self, now: Instant, step: &Step) -> (Option<Extent>, Durability) {
        match *step {
            Step::Request { piece, .. } => {
                self.leave_aside(now);
                self.give_part(now, piece, u64::MAX)
            }
            Step::Part { piece, most } => {
                if let Some(transfers) = &mut self.transfers
                    && transfers.aside == Some(piece)
                {
                    transfers.told.filled += 1;
                }
                self.give_part(now, piece, most)
            }
            Step::Ahead(extent) => {
                if let Some(transfers) = &mut self.transfers {
                    transfers.told.read_ahead.0 += extent.length().0;
                    transfers.ahead = Some(extent.end());
                    transfers.note_end(extent);
                }
                (None, Durability::Volatile)
            }
            Step::Read(..) | Step::Calibration(_) | Step::Hop(_) => {
                // The head goes elsewhere.
                self.leave_aside(now);
                if let Some(transfers) = &mut self.transfers {
                    transfers.ahead = None;
                    transfers.told.hops += u64::from(matches!(step, Step::Hop(_)));
                }
                (None, Durability::Volatile)
            }
        }
    }
}

impl Transfers {
    /// Head time is granted for ways back.
    pub(super) fn earn(&mut self, now: Instant, permille: u16) {
        let elapsed = now.since(self.credited).as_nanos();
        let earned = elapsed * u64::from(permille) / 1000;
        if earned > 0 {
            self.credit = (self.credit + earned).min(CREDIT.as_nanos());
            self.credited = now;
        }
    }

    /// The parts of a piece that came back undone.
    pub(super) fn undone_of(&self, piece: u32) -> impl Iterator<Item = &(u32, Extent)> + Clone {
        self.undone.iter().filter(move |(other, _)| *other == piece)
    }

    /// Whether the head is where a piece goes on.
    pub(super) fn is_there(&self, piece: u32) -> bool {
        self.under_way == Some(piece) || self.aside == Some(piece)
    }

    fn note_end(&mut self, part: Extent) {
        let start = part.start().0;
        // A read that goes on where another ended takes its place.
        let place = match self.ends.iter().position(|&end| end == start) {
            Some(place) => place,
            None => {
                self.newest = (self.newest + 1) % STREAMS;
                self.newest
            }
        };
        self.ends[place] = part.end().0;
    }
}

/// How many reads are remembered by where they ended. A choice: as many as a drive's buffer has segments.
const STREAMS: usize = 16;

/// How much head time for ways back can be saved up. A choice: that of a burst of some ten requests.
const CREDIT: Duration = Duration::from_millis(250);
