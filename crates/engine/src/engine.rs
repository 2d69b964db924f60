//! One drive, a belief and a policy: requests in, commands out, outcomes in, ends out.
//!
//! Inputs are [`Engine::submit`], [`Engine::flush`] and [`Engine::complete`], and what clients change:
//! [`Engine::barrier`], [`Engine::upgrade`], [`Engine::abort`]. After any input, or at
//! [`Engine::next_wakeup`]: [`Engine::poll`] until `None`, [`Engine::poll_finished`] and
//! [`Engine::poll_flushed`] until `None`; then the next wakeup lies in the future. A call too many is harmless. `now` never goes
//! backwards. Every accepted request comes back exactly once.

use std::collections::VecDeque;
use std::sync::Arc;

use block::{
    Action, Class, Command, CommandId, Direction, Durability, Finished, Instant, Outcome, Refused,
    Request, Sectors, Status,
};
use drive::{Angle, Position, Profile, Target};
use scheduler::ordering::{Drive, Level, Newcomer, Next};
use scheduler::{Ordering, Policy, Sight};

use crate::background::Background;
use crate::explanation::Log;
use crate::forecast::{Head, Route};
use crate::limits::Limits;
use crate::sent::{Manner, Planned, Purpose, Sent, Step};
use crate::slots::{End, Parts, Slots};

mod aside;
mod attached;
mod explaining;
mod flush;
mod gaps;
mod guaranteed;
mod handover;
mod head;
mod parts;
mod safety;
mod slack;
mod tracking;
mod transfer;
mod waiting;

pub use flush::Flushed;
use flush::Flushes;
use guaranteed::Guaranteed;
use safety::Leave;
pub use tracking::Tallies;
use tracking::Tracking;
pub use transfer::Preempted;
use transfer::{Going, Rest, Transfers};
pub(crate) use waiting::Waiting;

/// The state machine between clients and one drive.
pub struct Engine {
    pub(crate) belief: Arc<Profile>,
    capacity: Sectors,
    limits: Limits,
    now: Instant,
    pub(crate) slots: Slots,
    /// The pieces of the requests that wait or are at the drive.
    pub(crate) ordering: Ordering,
    /// By piece, where somebody looks at the head; of pieces that are gone, anything.
    pub(crate) routes: Vec<Route>,
    /// The head after the command that ended last.
    head: Head,
    /// In the order in which the drive was given them.
    at_drive: VecDeque<Sent>,
    /// Chosen, and given to the drive as soon as it may have more: at most one piece, the last.
    way: VecDeque<Step>,
    background: Option<Box<Background>>,
    tracking: Option<Box<Tracking>>,
    transfers: Option<Box<Transfers>>,
    guaranteed: Option<Box<Guaranteed>>,
    /// What held the head lately, if somebody may ask.
    log: Option<Box<Log>>,
    flushes: Flushes,
    /// When a request was last here.
    busy: Instant,
    /// When a command last ended.
    ended_last: Instant,
    pub(crate) ended: VecDeque<u32>,
    /// Nothing is to be given; nobody is asked again before an input or the wakeup.
    pub(crate) settled: bool,
    /// Until when the policy idles on purpose, or somebody is out of patience.
    wakeup: Option<Instant>,
    given: u64,
    retried: u64,
    /// The pieces of a request that a client names.
    pub(crate) found: Vec<u32>,
}

impl Engine {
    /// An engine with nothing to do, on a drive of which `belief` is believed. Each level of
    /// urgency gets a policy of its own from `policy`.
    ///
    /// # Panics
    /// If the limits are such that nothing could ever be served.
    pub fn new(belief: Arc<Profile>, policy: &dyn Fn() -> Box<dyn Policy>, limits: Limits) -> Self {
        limits.check();
        Engine {
            capacity: belief.geometry.sectors(),
            belief,
            limits,
            now: Instant::ZERO,
            slots: Slots::default(),
            ordering: Ordering::new(policy, limits.rules()),
            routes: Vec::new(),
            head: Head::UNKNOWN,
            at_drive: VecDeque::new(),
            way: VecDeque::new(),
            background: None,
            tracking: None,
            transfers: None,
            guaranteed: None,
            log: None,
            flushes: Flushes::default(),
            busy: Instant::ZERO,
            ended_last: Instant::ZERO,
            ended: VecDeque::new(),
            settled: false,
            wakeup: None,
            given: 0,
            retried: 0,
            found: Vec::new(),
        }
    }

    /// What is believed of the drive.
    pub fn belief(&self) -> &Arc<Profile> {
        &self.belief
    }

    /// The bounds.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Requests held: accepted, and their end not yet told.
    pub fn held(&self) -> usize {
        self.slots.held() - self.transfers_held()
    }

    /// Whether a request of this class would be accepted, if its extent is on the drive.
    pub fn has_room(&self, class: Class) -> bool {
        self.held() < self.limits.open_to(class)
    }

    /// Pieces of requests that wait: they are not at the drive, and not on the way to it.
    pub fn waiting(&self) -> usize {
        self.ordering.waiting()
    }

    /// Commands at the drive.
    pub fn at_drive(&self) -> usize {
        self.at_drive.len()
    }

    /// How often a policy answered what cannot be: a request that may not be served, a wait that
    /// was over, or nothing while the drive stood idle. Another request was served instead.
    pub fn overruled(&self) -> u64 {
        self.ordering.overruled()
    }

    /// How often a command that the drive gave back undone was given to it again.
    pub fn retried(&self) -> u64 {
        self.retried
    }

    /// The request of which a command at the drive is a piece; `None` for a background or
    /// calibration read, for a flush, and for a stream's transfer: see [`Engine::stream_of`].
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn request_of(&self, id: CommandId) -> Option<Request> {
        let sent = self.at_drive.iter().find(|sent| sent.id == id);
        let sent = sent.unwrap_or_else(|| panic!("{id:?} is not at the drive"));
        let slot = self.ordering.owner(sent.purpose.piece()?);
        (!self.is_of_stream(slot)).then(|| self.slots.get(slot).request)
    }

    /// A client asks for something.
    ///
    /// # Errors
    /// If as many requests are held as may be, the extent is not on the drive, or the class does
    /// not exist.
    pub fn submit(&mut self, now: Instant, request: Request) -> Result<(), Refused> {
        self.reach(now);
        let Request {
            direction,
            extent,
            class,
            ..
        } = request;
        if extent.end().0 > self.capacity.0 {
            return Err(self.past_end(request));
        }
        let level = match (Level::of(class), class) {
            (Some(level), _) => level,
            (None, Class::BestEffort(priority)) => return Err(Refused::Priority { priority }),
            (None, _) => panic!("{class:?} has no level"),
        };
        if !self.has_room(class) {
            return Err(Refused::Full {
                limit: self.limits.open_to(class),
            });
        }
        let route = Route::seen(self.sight(), &self.belief, extent, direction)
            .ok_or_else(|| self.past_end(request))?;
        self.note_arrival(now, level);
        let newcomer = Newcomer {
            owner: self.slots.accept(now, request),
            direction,
            extent,
            level,
            target: target(route.as_ref()),
        };
        let piece = self.ordering.enter(now, newcomer);
        keep(&mut self.routes, piece, route);
        self.busy = now;
        self.settled = false;
        Ok(())
    }

    /// The next command for the drive, if it should have one now.
    pub fn poll(&mut self, now: Instant) -> Option<Command> {
        self.reach(now);
        self.hear_streams(now);
        if self.at_drive.len() >= self.limits.commands_at_drive {
            // An end comes before anything else can be given.
            self.wakeup = None;
            return None;
        }
        if self.is_starved_in_drive(now) {
            self.wakeup = None;
            return None;
        }
        if let Some(then) = self.taken_up(now) {
            self.wakeup = Some(then);
            return None;
        }
        if let Leave::Streams(command) = self.leave(now) {
            return command;
        }
        self.let_urgent_pass(now);
        if let Some(command) = self.set_out_safely(now) {
            return Some(command);
        }
        if let Some(command) = self.poll_flush(now) {
            return Some(command);
        }
        let is_asleep = self.settled || !self.way.is_empty();
        if is_asleep && self.wakeup.is_none_or(|then| then > now) {
            return None;
        }
        self.wakeup = None;
        match self.going(now) {
            Going::On(piece) => {
                let most = u64::MAX;
                return Some(self.give(now, Step::Part { piece, most }));
            }
            Going::Waiting => {
                self.settled = true;
                return None;
            }
            Going::Aside => return self.set_out_safely(now),
            Going::Free => {}
        }
        if self.ordering.waiting() == 0 {
            return self.poll_idle(now);
        }
        let Some(piece) = self.choose(now) else {
            self.settled = true;
            return None;
        };
        self.put_on_way(now, piece);
        self.set_out_safely(now)
    }

    /// A chosen piece is to be given to the drive.
    fn put_on_way(&mut self, now: Instant, piece: u32) {
        self.aim(piece);
        match self.transfers {
            None => self.plan(now, piece),
            Some(_) => self.way.push_back(Step::Request {
                piece,
                planned: Planned::No,
                was_held: false,
                merged: None,
                without: None,
            }),
        }
    }

    /// A command has ended, as the drive says.
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn complete(&mut self, now: Instant, id: CommandId, outcome: Outcome) {
        self.reach(now);
        assert_eq!(id, outcome.id, "an outcome under another command's name");
        let place = self
            .at_drive
            .iter()
            .position(|sent| sent.id == id)
            .unwrap_or_else(|| panic!("{id:?} ended, which is not at the drive"));
        let sent = self.at_drive.remove(place).expect("a place in the queue");
        self.settled = false;
        self.remember(now, &sent, &outcome);
        self.note_ended(now, id);
        if matches!(sent.purpose, Purpose::Flush) {
            return self.flushed(now, outcome.status);
        }
        if let Some(route) = &sent.route {
            self.resync(now, &sent, route);
        }
        self.ended_last = now;
        self.count_calibration(&sent, &outcome);
        let lost = self.account_for(now, &sent, &outcome);
        let Some(piece) = sent.purpose.piece() else {
            return;
        };
        self.busy = now;
        let is_undone = self.is_tried_again(piece, &sent, outcome.status);
        if is_undone && self.transfers.is_none() {
            self.retried += 1;
            self.ordering.requeue(piece);
            return;
        }
        let ended = (outcome.status, outcome.account);
        let rest = self.part_ended(now, piece, &sent, ended, is_undone);
        let Rest::None(status, account, waited) = rest else {
            return;
        };
        let slot = self.ordering.owner(piece);
        let waited_order = self.ordering.waited(piece).order;
        self.ordering.end(now, piece);
        if !self.is_of_stream(slot) {
            self.feel(now, slot, lost);
        }
        let end = End {
            at: outcome.at,
            status,
            waited,
            waited_order,
            account,
        };
        if self.slots.part_ended(slot, end) == Parts::All {
            self.end_request(now, slot);
        }
    }

    /// The next request that has ended.
    pub fn poll_finished(&mut self) -> Option<Finished> {
        let slot = self.slots.give_back(self.ended.pop_front()?);
        Some(Finished {
            request: slot.request,
            submitted: slot.submitted,
            at: slot.end.at,
            status: slot.end.status,
            waited: slot.end.waited,
            waited_order: slot.end.waited_order,
            account: slot.end.account,
        })
    }

    /// When `poll` should be called next, if nothing else happens.
    pub fn next_wakeup(&self) -> Option<Instant> {
        let streams = self.guaranteed.as_deref();
        let streams = streams.and_then(Guaranteed::next_wakeup);
        [self.wakeup, streams].into_iter().flatten().min()
    }

    /// Which piece is next. It must be given or put back.
    fn choose(&mut self, now: Instant) -> Option<u32> {
        let head = self.expected_head();
        let drive = match self.at_drive.is_empty() {
            true => Drive::Idle,
            false => Drive::Busy,
        };
        match self
            .ordering
            .choose(now, &head.view(&self.belief, now), drive)
        {
            Next::Piece(piece) => Some(piece),
            Next::Nothing(until) => {
                self.wakeup = until;
                None
            }
        }
    }

    /// Hands the next step to the drive.
    fn give(&mut self, now: Instant, step: Step) -> Command {
        let id = CommandId(self.given);
        self.given += 1;
        let manner = self.manner_of(&step);
        let head = self.expected_head_of_streams();
        let (purpose, direction, extent) = self.purpose(now, step);
        let (part, asked) = self.note_given(now, &step);
        let durability = match direction {
            // What is in the drive's buffer delays whatever comes next.
            Direction::Write if self.serves_streams() => Durability::Durable,
            _ => asked,
        };
        let worst = self.note_given_beside_streams(&purpose, extent, head);
        let route = match (step, self.sight()) {
            (_, Sight::Order) => None,
            (
                Step::Request {
                    piece,
                    merged: None,
                    ..
                },
                Sight::Head,
            ) => Some(self.routes[piece as usize]),
            (_, Sight::Head) => Route::new(&self.belief, extent, direction),
        };
        self.at_drive.push_back(Sent {
            id,
            given: now,
            purpose,
            part,
            manner,
            was_held: matches!(step, Step::Request { was_held: true, .. }),
            is_buffered: self.transfers.is_some()
                && direction == Direction::Write
                && durability == Durability::Volatile
                && self.is_hidden(direction),
            route,
            worst,
        });
        let action = match direction {
            _ if manner == Manner::Only => Action::Seek { to: extent.start() },
            Direction::Read => Action::Read { extent, durability },
            Direction::Write => Action::Write { extent, durability },
        };
        Command::new(id, action)
    }

    /// Whether a command is given again that failed: the drive gave it back undone, or what failed
    /// may have been the free blocks that were merged with it.
    fn is_tried_again(&self, piece: u32, sent: &Sent, status: Status) -> bool {
        let is_merged = matches!(sent.purpose, Purpose::Merged { .. });
        let is_undone = status == Status::TimedOut || (is_merged && status != Status::Good);
        // Another try was not counted when the batch was promised.
        is_undone && !self.is_batch(piece) && self.ordering.requeued(piece) < RETRIES
    }

    /// Whether the drive keeps a command for so long that it must not be tempted by another.
    fn is_starved_in_drive(&self, now: Instant) -> bool {
        self.at_drive
            .front()
            .is_some_and(|sent| sent.given + self.limits.patience <= now)
    }

    fn past_end(&self, request: Request) -> Refused {
        Refused::PastEnd {
            extent: request.extent,
            capacity: self.capacity.0,
        }
    }

    pub(crate) fn reach(&mut self, now: Instant) {
        assert!(
            now >= self.now,
            "time went back from {:?} to {now:?}",
            self.now
        );
        self.now = now;
    }
}

/// Notes the route of a piece, if there is one; the answer is what a policy is told of it.
pub(crate) fn keep(routes: &mut Vec<Route>, piece: u32, route: Option<Route>) -> Target {
    let target = target(route.as_ref());
    if let Some(route) = route {
        match routes.get_mut(piece as usize) {
            Some(place) => *place = route,
            None => routes.push(route),
        }
    }
    target
}

/// Where a piece begins; the beginning of the disk if nobody looks.
fn target(route: Option<&Route>) -> Target {
    route.map_or(
        Target {
            position: Position::default(),
            angle: Angle::ZERO,
        },
        Route::target,
    )
}

/// How often a command is given again that the drive gave back undone. A choice: once shows whether
/// it was bad luck.
const RETRIES: u8 = 1;
