//! What a policy is told, what it answers, and the table of all of them.
//!
//! ```text
//!   engine                                policy
//!     |  add(pending)  withdraw(pending)    |   keeps its own index
//!     |------------------------------------>|
//!     |  select(view)                       |
//!     |------------------------------------>|
//!     |     Serve(ticket) | WaitUntil(t) | Nothing
//!     |<------------------------------------|   forgets what it serves
//! ```

use std::ops::RangeInclusive;

use block::{Direction, Duration, Extent, Instant};
use drive::{Position, Positioning, Profile, SeekTarget};

pub mod aged_sptf;
mod anticipation;
pub mod anticipatory;
mod by_cylinder;
pub mod c_look;
pub mod cfq_like;
pub mod deadline;
pub mod fcfs;
pub mod look;
mod naming;
pub mod sptf;
pub mod sptf_sw;
pub mod sstf;

pub use naming::{NamedPolicy, UnknownPolicy, find, usages};

/// Index of a piece: a request, or a part of it, from its entry to its end. Indices are small, so that a
/// policy may index a table with them, and are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PieceId(pub u32);

impl PieceId {
    /// The index in a table of all pieces.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A request that may be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EligibleRequest {
    /// Names it in the answer.
    pub ticket: PieceId,
    /// Its number in the order of arrival, never used twice: what breaks ties.
    pub order: u64,
    /// When it arrived.
    pub submitted: Instant,
    /// Which way the bytes go.
    pub direction: Direction,
    /// Which blocks.
    pub extent: Extent,
    /// Where it begins on the medium, by belief. The beginning of the disk for a policy that
    /// says [`Sight::Order`].
    pub target: SeekTarget,
}

/// What a policy decides by: it spares the engine predictions that nobody reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Arrival and block numbers alone.
    Order,
    /// Where the requests are on the medium, and where the head will be.
    Head,
}

/// The situation in which a policy chooses.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The time.
    pub now: Instant,
    /// The drive, as far as is known.
    pub belief: &'a Profile,
    /// Where the head is believed to be when the drive starts the command.
    pub head: Position,
    /// When the arm will have done what the drive was told before: the end of the last command at
    /// the drive, not `now`.
    pub ready: Instant,
    /// The direction of the command before: the electronics' time depends on it.
    pub previous: Direction,
}

/// What a policy answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Give this one to the drive. The policy has forgotten it.
    Serve(PieceId),
    /// Idle on purpose until then, which is later than now, or until something happens.
    WaitUntil(Instant),
    /// There is nothing to serve.
    Nothing,
}

/// Chooses the next request. The same calls give the same answers on every machine; among equals
/// the one that arrived first is chosen.
pub trait Policy: Send {
    /// What it decides by.
    fn sight(&self) -> Sight;

    /// A request may be served from now on.
    fn add(&mut self, pending: &EligibleRequest);

    /// A request that was added and not chosen may no longer be served.
    fn withdraw(&mut self, pending: &EligibleRequest);

    /// Which of the requests should be next. A request that is chosen is forgotten at once.
    fn select(&mut self, view: &View) -> Choice;
}

/// How many commands the drive should be given at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// At most the engine's limit, so that the choice stays with the policy.
    JustInTime,
    /// As many as the drive's own queue holds: the choice is the drive's.
    DriveQueue,
}

/// One line of the table of policies.
#[derive(Clone, Debug)]
pub struct PolicyEntry {
    /// How users name it.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub what: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// How many commands the drive should be given at once.
    pub depth: Depth,
    /// How to make one.
    pub make: Make,
}

/// How a policy is made.
#[derive(Clone, Debug)]
pub enum Make {
    /// As it is.
    Plain(fn() -> Box<dyn Policy>),
    /// With a number that users write behind its name.
    With(Parameter, fn(u32) -> Box<dyn Policy>),
}

/// The number that a policy takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// What it is, in a sentence, with the origin of the default.
    pub what: &'static str,
    /// What it counts.
    pub unit: &'static str,
    /// What it may be.
    pub range: RangeInclusive<u32>,
    /// What it is if nothing is said.
    pub default: u32,
}

impl View<'_> {
    /// When the arm would begin to move for a command of this direction that is given to the
    /// drive now: the electronics work while the command before still holds the arm.
    ///
    /// ```text
    ///   command before   |--------- arm, medium ---------|
    ///   this one              | overhead |  queued       | seek | rotation | ...
    ///                        now                       start
    /// ```
    pub fn start(&self, direction: Direction) -> Instant {
        self.ready.max(self.now + self.overhead(direction))
    }

    /// What the electronics take before the arm moves for a command of this direction.
    pub fn overhead(&self, direction: Direction) -> Duration {
        let overhead = match direction {
            Direction::Read => self.belief.overheads.read_miss,
            Direction::Write => self.belief.overheads.write_miss,
        };
        match self.previous {
            Direction::Read => overhead.read,
            Direction::Write => overhead.write,
        }
    }

    /// The way to a request's first sector.
    pub fn positioning(&self, to: &SeekTarget, direction: Direction) -> Positioning {
        self.belief
            .positioning(self.head, self.start(direction), to, direction)
    }
}

/// All policies: help texts, experiments and the conformance test are made from this table.
pub const ALL: &[PolicyEntry] = &[
    PolicyEntry {
        name: "fcfs",
        what: "First come, first served.",
        source: "the order of arrival; the baseline of Worthington, Ganger, Patt, SIGMETRICS 1994",
        depth: Depth::JustInTime,
        make: Make::Plain(|| Box::new(fcfs::Fcfs::default())),
    },
    PolicyEntry {
        name: "look",
        what: "Upwards by block number, at the highest pending request downwards, and so on.",
        source: "Merten, 1970; Worthington, Ganger, Patt, SIGMETRICS 1994",
        depth: Depth::JustInTime,
        make: Make::Plain(|| Box::new(look::Look::default())),
    },
    PolicyEntry {
        name: "c-look",
        what: "Upwards by block number, then back to the lowest pending request.",
        source: "Seaman, Lind, Wilson, IBM Systems Journal 5(3), 1966; Worthington et al., 1994",
        depth: Depth::JustInTime,
        make: Make::Plain(|| Box::new(c_look::CLook::default())),
    },
    PolicyEntry {
        name: "sstf",
        what: "Shortest seek first, by the cylinder distance of the belief.",
        source: "Denning, AFIPS Spring Joint Computer Conference 1967",
        depth: Depth::JustInTime,
        make: Make::Plain(|| Box::new(sstf::Sstf::default())),
    },
    PolicyEntry {
        name: "sptf",
        what: "Shortest positioning time first: seek and rotational latency of the belief.",
        source: "Seltzer, Chen, Ousterhout, USENIX Winter 1990; Jacobson, Wilkes, HPL-CSP-91-7",
        depth: Depth::JustInTime,
        make: Make::Plain(|| Box::new(sptf::Sptf::default())),
    },
    PolicyEntry {
        name: "sptf-sw",
        what: "The smallest seek among those up to N % later under the head than the soonest.",
        source: "Lumb, Schindler, Ganger, FAST 2002, 5.3",
        depth: Depth::JustInTime,
        make: Make::With(
            Parameter {
                what: "How much longer than the shortest a positioning time may be; 60: FAST 2002.",
                unit: "percent",
                range: 0..=1000,
                default: sptf_sw::WINDOW_PERCENT,
            },
            |percent| Box::new(sptf_sw::SptfSw::new(percent)),
        ),
    },
    PolicyEntry {
        name: "aged-sptf",
        what: "Shortest positioning time first, less N ms for each second of waiting.",
        source: "Jacobson, Wilkes, HPL-CSP-91-7; Worthington, Ganger, Patt, SIGMETRICS 1994",
        depth: Depth::JustInTime,
        make: Make::With(
            Parameter {
                what: "0 is sptf; 6 is a choice, as in the drives' own aged order.",
                unit: "milliseconds per second",
                range: 0..=1000,
                default: aged_sptf::WEIGHT,
            },
            |weight| Box::new(aged_sptf::AgedSptf::new(weight)),
        ),
    },
    PolicyEntry {
        name: "deadline",
        what: "Linux's deadline: sorted batches, and an expiry for reads and one for writes.",
        source: "Axboe; Linux, block/deadline-iosched.c",
        depth: Depth::JustInTime,
        make: Make::Plain(|| Box::new(deadline::Deadline::default())),
    },
    PolicyEntry {
        name: "anticipatory",
        what: "Deadline, and after a read the disk idles up to N ms for one that follows it.",
        source: "Iyer, Druschel, SOSP 2001; Piggin, Linux 2.6, block/as-iosched.c",
        depth: Depth::JustInTime,
        make: Make::With(
            Parameter {
                what: "How long the disk idles at most; 6: Linux.",
                unit: "milliseconds",
                range: 1..=1000,
                default: anticipatory::PATIENCE_MS,
            },
            |millis| Box::new(anticipatory::Anticipatory::new(millis)),
        ),
    },
    PolicyEntry {
        name: "cfq-like",
        what: "Readers, one for each sixteenth of the disk, and the writes take turns of N ms.",
        source: "Axboe; Linux 2.6.13 to 4.20, block/cfq-iosched.c",
        depth: Depth::JustInTime,
        make: Make::With(
            Parameter {
                what: "How long a turn lasts; 100: Linux.",
                unit: "milliseconds",
                range: 1..=10_000,
                default: cfq_like::SLICE_MS,
            },
            |millis| Box::new(cfq_like::CfqLike::new(millis)),
        ),
    },
    PolicyEntry {
        name: "drive",
        what: "No choice outside: the drive is given all that its queue holds and picks itself.",
        source: "the drive's own queue (SCSI tagged queueing, NCQ)",
        depth: Depth::DriveQueue,
        make: Make::Plain(|| Box::new(fcfs::Fcfs::default())),
    },
];
