//! Where the time of a request went: who held the head while it waited, and what is believed of its own
//! commands. From timings and the belief alone, never from what a simulated drive tells of itself.
//!
//! ```text
//!   head      |==== A ====|===== B =====|           |=== own ===|
//!   request       | at the drive  | more urgent  | nothing | believed seek, rotation, ... and the rest
//!             submitted                                         ended
//! ```
//!
//! Stretches lie between the ends of commands, which are facts. A command holds the head from the end of
//! the one before it, or from when it was given, until its own end. So all parts of an explanation add up
//! to the response time exactly.

use std::cmp::Reverse;
use std::collections::VecDeque;

use block::{Class, CommandId, Direction, Duration, Extent, Finished, Instant, RequestId};
use scheduler::background::Means;
use scheduler::ordering::PriorityLevel;

/// How many commands are remembered. A choice: a disk does some three hundred a second, and no
/// request that is not in the background waits longer than five seconds.
pub const REMEMBERED: usize = 2048;

/// How many of the commands that went before a request are named: the first, and the longest of the
/// others. A choice: what fits on a screen.
pub const NAMED: usize = 6;

/// Whether there is something to be believed of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Its profile.
    Profile,
    /// Only how many blocks it has.
    Nothing,
}

/// Whose a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A request's.
    Request {
        /// Its name.
        id: RequestId,
        /// When it was accepted: names are used again.
        submitted: Instant,
        /// How urgent its client said that it is.
        class: Class,
        /// How urgent it was in the end: as its class, or as the most urgent that waited for it.
        level: PriorityLevel,
        /// Which way its bytes went.
        direction: Direction,
        /// The blocks of the command that were the request's.
        extent: Extent,
    },
    /// A background task's.
    Task(Means),
    /// Nobody's: a read of what follows a request, in slack.
    Ahead,
    /// Nobody's: a stop on the way of a long seek.
    Hop,
    /// Nobody's: a read that told where the platter is.
    Calibration,
    /// A flush's.
    Flush,
}

/// A command that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which.
    pub command: CommandId,
    /// For whom.
    pub whose: Whose,
    /// When it was given to the drive.
    pub given: Instant,
    /// Since when the drive had nothing before it.
    pub from: Instant,
    /// When it ended.
    pub to: Instant,
    /// What was believed of it.
    pub believed: Option<Believed>,
}

/// What was believed of a command when it ended, but for its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Believed {
    /// When its positioning began.
    pub start: Instant,
    /// How long the arm took.
    pub seek: Duration,
    /// How long its first sector was waited for.
    pub rotation: Duration,
    /// When its last sector had passed under the head.
    pub passed: Instant,
    /// When it should have ended.
    pub end: Instant,
    /// Who answered it, as far as its end tells.
    pub by: Answered,
}

/// Who answered a command, as far as its end tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// The medium: its blocks passed under the head.
    Medium,
    /// The drive's buffer: it ended sooner than that.
    Buffer,
}

/// How it came that a command held the head while a request waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// It was at the drive when the request came.
    AtDrive,
    /// It was more urgent.
    MoreUrgent,
    /// It was as urgent, and chosen before.
    AsUrgent,
    /// It was less urgent: chosen before the request came, under way in parts, or out of patience.
    LessUrgent,
    /// A background task's, in the gap before a request.
    Task,
    /// A flush, a read ahead, a stop of the arm, or a read that told where the platter is.
    Upkeep,
}

impl Ahead {
    /// All of them.
    pub const ALL: [Ahead; 6] = [
        Ahead::AtDrive,
        Ahead::MoreUrgent,
        Ahead::AsUrgent,
        Ahead::LessUrgent,
        Ahead::Task,
        Ahead::Upkeep,
    ];
}

/// The commands that went before a request in one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// How many.
    pub commands: u32,
    /// For how long they held the head while it could have been served.
    pub time: Duration,
}

/// One command that went before a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// It.
    pub held: Held,
    /// Why it did.
    pub ahead: Ahead,
    /// For how long it held the head while the request could have been served.
    pub time: Duration,
}

/// What the drive took for a request's own commands. All but the first and the last two is believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InDrive {
    /// How many commands there were.
    pub commands: u32,
    /// How many of them the drive's buffer answered, as far as their ends tell.
    pub buffered: u32,
    /// Before the positioning began: the electronics.
    pub electronics: Duration,
    /// The arm.
    pub seek: Duration,
    /// Waiting for the first sector.
    pub rotation: Duration,
    /// From the first sector to the end of the last.
    pub transfer: Duration,
    /// After the last sector: the bus and the completion.
    pub bus: Duration,
    /// By how many nanoseconds they ended later than was believed; earlier, if negative.
    pub mispredicted: i64,
    /// Of commands of which nothing was believed: all of their time.
    pub unknown: Duration,
}

/// Where the time of one request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The request and how it ended.
    pub finished: Finished,
    /// When it came; it was accepted later if the engine was full.
    pub came: Instant,
    /// It waited behind earlier requests with common blocks, or behind a barrier.
    pub order: Duration,
    /// It waited while others held the head, by [`Ahead`].
    pub others: [Share; Ahead::ALL.len()],
    /// It waited although the drive had nothing to do: on purpose.
    pub held_back: Duration,
    /// It waited so long ago that nobody remembers what for.
    pub forgotten: Duration,
    /// What the drive took for it.
    pub drive: InDrive,
    /// Of the commands before it the first, and the longest of the others, in their order.
    pub before: [Option<Before>; NAMED],
}

/// The commands that ended last.
#[derive(Clone, Debug)]
pub(crate) struct CommandLog {
    /// Whether anything is believed of the drive; `None` if nothing is remembered.
    known: Option<Known>,
    held: VecDeque<Held>,
    /// The end of the last one that is not remembered any more.
    forgotten: Option<Instant>,
}

impl InDrive {
    /// All of it: from the end of what was before each command to its end.
    pub fn total(&self) -> Duration {
        let believed = self.electronics + self.seek + self.rotation + self.transfer + self.bus;
        (believed + self.unknown).adjusted(self.mispredicted)
    }

    /// Adds one of the request's commands.
    fn add(&mut self, held: &Held) {
        self.commands += 1;
        let Some(believed) = &held.believed else {
            self.unknown += held.to.since(held.from);
            return;
        };
        self.buffered += u32::from(believed.by == Answered::Buffer);
        // What lies before the end of the command before it was that one's time.
        let mut at = held.from;
        let mut until = |then: Instant| {
            let phase = then.since(at);
            at = at.max(then);
            phase
        };
        self.electronics += until(believed.start);
        self.seek += until(believed.start + believed.seek);
        self.rotation += until(believed.start + believed.seek + believed.rotation);
        self.transfer += until(believed.passed);
        self.bus += until(believed.end);
        self.mispredicted += held.to.as_nanos() as i64 - at.as_nanos() as i64;
    }
}

impl Explanation {
    /// From its coming to its end.
    pub fn response(&self) -> Duration {
        self.finished.at.since(self.came)
    }

    /// It waited outside, because as many requests were held as may be.
    pub fn outside(&self) -> Duration {
        self.finished.submitted.since(self.came)
    }

    /// The commands that went before it in this way.
    pub fn share(&self, ahead: Ahead) -> Share {
        self.others[ahead as usize]
    }

    /// For how long others held the head while it could have been served.
    pub fn others(&self) -> Duration {
        let each = self.others.iter();
        each.fold(Duration::ZERO, |sum, share| sum + share.time)
    }

    /// Notes a command that went before it.
    fn note(&mut self, before: Before) {
        let share = &mut self.others[before.ahead as usize];
        share.commands += 1;
        share.time += before.time;
        if let Some(place) = self.before.iter_mut().find(|place| place.is_none()) {
            *place = Some(before);
            return;
        }
        // The first stays.
        let shortest = self.before[1..].iter_mut().flatten().min_by_key(|b| b.time);
        if let Some(shortest) = shortest.filter(|shortest| shortest.time < before.time) {
            *shortest = before;
            self.before[1..].sort_unstable_by_key(|b| b.map(|b| b.held.to));
        }
    }
}

impl CommandLog {
    /// Nothing is remembered, and no memory taken.
    pub(crate) fn off() -> Self {
        CommandLog {
            known: None,
            held: VecDeque::new(),
            forgotten: None,
        }
    }

    pub(crate) fn new(known: Known) -> Self {
        CommandLog {
            known: Some(known),
            held: VecDeque::with_capacity(REMEMBERED),
            forgotten: None,
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.known.is_some()
    }

    /// A command has ended at `held.to`; since when it held the head is found here.
    pub(crate) fn ended(&mut self, mut held: Held) {
        let before = self.held.back().map(|last| last.to);
        held.from = before.map_or(held.given, |before| before.max(held.given));
        held.to = held.to.max(held.from);
        if self.known == Some(Known::Nothing) {
            held.believed = None;
        }
        if self.held.len() == REMEMBERED {
            self.forgotten = self.held.pop_front().map(|first| first.to);
        }
        self.held.push_back(held);
    }

    /// Where the time of a request went that has ended just now.
    pub(crate) fn explain(&self, finished: &Finished, came: Instant) -> Explanation {
        let mut explanation = Explanation {
            finished: *finished,
            came,
            order: Duration::ZERO,
            others: Default::default(),
            held_back: Duration::ZERO,
            forgotten: Duration::ZERO,
            drive: InDrive::default(),
            before: [None; NAMED],
        };
        let (submitted, at) = (finished.submitted, finished.at);
        let first = self.held.partition_point(|held| held.to <= submitted);
        let there = self.held.range(first..);
        let own = there.clone().filter(|held| held.whose.is_of(finished));
        let level = own.filter_map(|held| held.whose.level()).min();
        let level = level.or(PriorityLevel::of(finished.request.class));
        let served = submitted + finished.waited_order;
        let mut now = submitted;
        if let Some(then) = self.forgotten
            && then > now
        {
            explanation.forgotten = then.min(at).since(now);
            now = then.min(at);
        }
        for held in there.take_while(|held| held.from <= at) {
            explanation.idle(now, held.from, served);
            let (from, to) = (held.from.max(now), held.to.min(at));
            now = now.max(to);
            if held.whose.is_of(finished) {
                explanation.drive.add(held);
                continue;
            }
            let time = to.since(from.max(served));
            explanation.order += to.since(from) - time;
            if !time.is_zero() {
                let ahead = held.ahead_of(submitted, level);
                let held = *held;
                explanation.note(Before { held, ahead, time });
            }
        }
        explanation.idle(now, at, served);
        explanation
    }
}

impl Explanation {
    /// From one moment to the other nobody held the head; it could be served from `served` on.
    fn idle(&mut self, from: Instant, to: Instant, served: Instant) {
        let held_back = to.since(from.max(served));
        self.order += to.since(from) - held_back;
        self.held_back += held_back;
    }
}

impl Held {
    /// How it came that it went before a request that was accepted then.
    fn ahead_of(&self, submitted: Instant, level: Option<PriorityLevel>) -> Ahead {
        if self.given < submitted {
            return Ahead::AtDrive;
        }
        match self.whose {
            Whose::Request { level: own, .. } if Some(own) < level => Ahead::MoreUrgent,
            Whose::Request { level: own, .. } if Some(own) == level => Ahead::AsUrgent,
            Whose::Request { .. } => Ahead::LessUrgent,
            Whose::Task(_) => Ahead::Task,
            Whose::Ahead | Whose::Hop | Whose::Calibration | Whose::Flush => Ahead::Upkeep,
        }
    }
}

impl Whose {
    fn is_of(&self, finished: &Finished) -> bool {
        let own = (finished.request.id, finished.submitted);
        matches!(*self, Whose::Request { id, submitted, .. } if (id, submitted) == own)
    }

    fn level(&self) -> Option<PriorityLevel> {
        match *self {
            Whose::Request { level, .. } => Some(level),
            Whose::Task(_) | Whose::Ahead | Whose::Hop | Whose::Calibration | Whose::Flush => None,
        }
    }
}

/// The slowest of many requests, and where their time went.
#[derive(Clone, Debug)]
pub struct Slowest<N> {
    most: usize,
    /// The slowest first, each with what it is called.
    kept: Vec<(N, Explanation)>,
}

impl<N> Slowest<N> {
    /// None yet, and at most so many.
    pub fn of(most: usize) -> Self {
        Slowest {
            most,
            kept: Vec::with_capacity(most),
        }
    }

    /// Whether a request that took so long is one of them.
    pub fn is_one(&self, response: Duration) -> bool {
        let last = self.kept.last().map(|(_, last)| last.response());
        self.kept.len() < self.most || last.is_some_and(|last| last < response)
    }

    /// Takes one in, if it is one of them; of two that took as long the earlier one stays.
    pub fn take(&mut self, name: N, explanation: Explanation) {
        if !self.is_one(explanation.response()) {
            return;
        }
        if self.kept.len() == self.most {
            self.kept.pop();
        }
        let slow = Reverse(explanation.response());
        let place = |kept: &(N, Explanation)| Reverse(kept.1.response()) <= slow;
        let place = self.kept.partition_point(place);
        self.kept.insert(place, (name, explanation));
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// They, the slowest first.
    pub fn iter(&self) -> impl Iterator<Item = &(N, Explanation)> {
        self.kept.iter()
    }
}
