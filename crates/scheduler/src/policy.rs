//! The interface of a policy, and the table of all policies.
//!
//! ```text
//!   engine                                policy
//!     |  add(request)  withdraw(request)    |   keeps its own index
//!     |------------------------------------>|
//!     |  select(view)                       |
//!     |------------------------------------>|
//!     |     Serve(ticket) | WaitUntil(t) | Nothing
//!     |<------------------------------------|   forgets the served request
//! ```

use std::ops::RangeInclusive;

use block::{Direction, Duration, Extent, Instant, Owner};
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
mod owners;
pub mod sptf;
pub mod sptf_sw;
pub mod sstf;

pub use naming::{NamedPolicy, UnknownPolicy, find, usages};

/// The index of a piece: a request, or a part of it, from entry to end. Indices are small and are
/// reused, so that a policy may index a table with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PieceId(pub u32);

impl PieceId {
    /// The index in a table of all pieces.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A request that the policy may serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EligibleRequest {
    /// The ticket that names the request in the answer.
    pub ticket: PieceId,
    /// The arrival number, which breaks ties. It is never reused.
    pub order: u64,
    /// The moment of arrival.
    pub submitted: Instant,
    /// The direction of the transfer.
    pub direction: Direction,
    /// The blocks.
    pub extent: Extent,
    /// The position of the first block on the medium, by belief. For a policy with
    /// [`Sight::Order`], the beginning of the disk.
    pub target: SeekTarget,
    /// The program that waits for it.
    pub owner: Owner,
}

/// The facts by which a policy decides. The engine computes positions only for policies that use
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Arrival times and block numbers alone.
    Order,
    /// The positions of requests and head.
    Head,
}

/// The situation in which a policy chooses.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The current time.
    pub now: Instant,
    /// The believed profile of the drive.
    pub belief: &'a Profile,
    /// The believed position of the head when the drive starts the command.
    pub head: Position,
    /// The moment at which the arm finishes the commands at the drive; `now` may be earlier.
    pub ready: Instant,
    /// The direction of the previous command, on which the electronics' time depends.
    pub previous: Direction,
}

/// The answer of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Serve this request. The policy has forgotten it.
    Serve(PieceId),
    /// Idle on purpose until this moment, which is later than `now`, or until the next event.
    WaitUntil(Instant),
    /// No request is left.
    Nothing,
}

/// A scheduling policy. The same calls give the same answers on every machine. Among equal requests
/// it chooses the oldest.
pub trait Policy: Send {
    /// The facts by which the policy decides.
    fn sight(&self) -> Sight;

    /// Adds an eligible request.
    fn add(&mut self, pending: &EligibleRequest);

    /// Removes a request that was added and not selected.
    fn withdraw(&mut self, pending: &EligibleRequest);

    /// Selects the next request, and forgets it at once.
    fn select(&mut self, view: &View) -> Choice;
}

/// The number of commands that the drive should hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// At most the engine's limit, so that the choice stays with the policy.
    JustInTime,
    /// As many as the drive's queue holds, so that the drive chooses.
    DriveQueue,
}

/// An entry of the table of policies.
#[derive(Clone, Debug)]
pub struct PolicyEntry {
    /// The name for users.
    pub name: &'static str,
    /// The policy in one sentence.
    pub what: &'static str,
    /// The publication that describes the policy.
    pub source: &'static str,
    /// The number of commands that the drive should hold.
    pub depth: Depth,
    /// The constructor.
    pub make: Make,
}

/// The constructor of a policy.
#[derive(Clone, Debug)]
pub enum Make {
    /// A policy without a parameter.
    Plain(fn() -> Box<dyn Policy>),
    /// A policy with a number that users append to its name.
    With(Parameter, fn(u32) -> Box<dyn Policy>),
}

/// The numeric parameter of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The parameter in one sentence, with the origin of the default.
    pub what: &'static str,
    /// The unit.
    pub unit: &'static str,
    /// The legal values.
    pub range: RangeInclusive<u32>,
    /// The default.
    pub default: u32,
}

impl View<'_> {
    /// The moment at which the arm begins to move for a command that is dispatched now. The
    /// electronics work while the previous command still holds the arm.
    ///
    /// ```text
    ///   previous         |--------- arm, medium ---------|
    ///   this command          | overhead |  queued       | seek | rotation | ...
    ///                        now                       start
    /// ```
    pub fn start(&self, direction: Direction) -> Instant {
        self.ready.max(self.now + self.overhead(direction))
    }

    /// The electronics' time before the arm moves for a command of this direction.
    pub fn overhead(&self, direction: Direction) -> Duration {
        let overheads = &self.belief.overheads;
        overheads.before_positioning(direction, self.previous)
    }

    /// The positioning time to a request's first sector.
    pub fn positioning(&self, to: &SeekTarget, direction: Direction) -> Positioning {
        self.belief
            .positioning(self.head, self.start(direction), to, direction)
    }
}

/// All policies. Help texts, experiments and the conformance tests come from this table.
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
        what: "Deadline, and after a read the disk idles up to N ms for its owner's next one.",
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
        what: "Reads by owner (unknown: by place) and all writes take turns of N ms.",
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
