//! The drives of a mirror: which of them reads and writes, and what their errors mean.
//!
//! ```text
//!   read ----> both engines wait with it --the first that gives it to its drive has it--> the other withdraws
//!   write ---> all drives that are written --the last end counts--> one end
//!   error of one drive: a read goes to the other; a write takes the drive out
//! ```
//!
//! A read is one of all that wait at both drives, and the drive whose head is nearer takes it: D-SPTF (C. R.
//! Lumb, R. Golding, G. R. Ganger: D-SPTF, ASPLOS 2004), without messages, because both engines are here.

use std::collections::VecDeque;

use block::{Direction, Extent, Request, RequestId, Status};

use super::division::Side;

/// What a drive of a mirror is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegState {
    /// It has all data: it is read and written.
    InSync,
    /// It is being filled: it is written, and not read.
    Filling,
    /// It is neither read nor written.
    Out,
}

/// The drives of a mirror that a write goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WrittenLegs {
    /// All that are not out.
    #[default]
    All,
    /// Those that have all data. One that is being filled gets the blocks by a later copy.
    InSync,
}

/// Which drive of a mirror serves a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadRule {
    /// The one whose policy chooses it first: its head is nearer, or it has less to do.
    #[default]
    Nearest,
    /// One after the other, whatever their heads: for comparisons.
    RoundRobin,
}

impl ReadRule {
    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            ReadRule::Nearest => "nearest",
            ReadRule::RoundRobin => "round-robin",
        }
    }

    /// The rule in words.
    pub fn what(self) -> &'static str {
        match self {
            ReadRule::Nearest => "from the drive whose head is nearer",
            ReadRule::RoundRobin => "from each in turn",
        }
    }
}

/// What one drive of a mirror failed, and the other one did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegFailure {
    /// The drive. After a write or a flush it is out.
    pub leg: Side,
    /// The work.
    pub work: LegWork,
    /// The error.
    pub status: Status,
}

/// The work that a drive failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegWork {
    /// A request.
    Request(Request),
    /// A flush: any of the writes before it may be missing there.
    Flush,
}

/// Why the state of a drive of a mirror cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LegKept {
    /// It is the only one that has all data.
    #[error("it is the only drive of the mirror that has all data")]
    LastInSync,
    /// It has data that the other may lack, and is read.
    #[error("it is not out of its mirror: expected a drive that is, to be filled")]
    NotOut,
    /// There is one drive only.
    #[error("no mirror: expected a volume of two drives")]
    NoMirror,
}

/// The drives of a mirror.
pub(super) struct Copies {
    states: [LegState; 2],
    rule: ReadRule,
    /// The drive that the next read goes to: in turn, or because its head is nearer while both are idle.
    next: Side,
    failures: VecDeque<LegFailure>,
    /// The drive that was taken out last, until its requests have been withdrawn.
    taken_out: Option<Side>,
    /// The drive that served the read that was reported last.
    served: Option<(RequestId, Side)>,
}

impl Copies {
    pub(super) fn new(rule: ReadRule) -> Self {
        Copies {
            states: [LegState::InSync; 2],
            rule,
            next: Side::First,
            failures: VecDeque::new(),
            taken_out: None,
            served: None,
        }
    }

    pub(super) fn state(&self, side: Side) -> LegState {
        self.states[side as usize]
    }

    /// Changes the state of a drive.
    ///
    /// # Errors
    /// If no drive would have all data, or one that is not out should be filled.
    pub(super) fn set(&mut self, side: Side, state: LegState) -> Result<(), LegKept> {
        let other = self.state(side.other());
        if state != LegState::InSync && other != LegState::InSync {
            return Err(LegKept::LastInSync);
        }
        if state == LegState::Filling && self.state(side) != LegState::Out {
            return Err(LegKept::NotOut);
        }
        self.states[side as usize] = state;
        Ok(())
    }

    /// Whether a drive takes part in requests of this direction.
    pub(super) fn takes(&self, side: Side, direction: Direction) -> bool {
        match (self.state(side), direction) {
            (LegState::InSync, _) | (LegState::Filling, Direction::Write) => true,
            (LegState::Filling, Direction::Read) | (LegState::Out, _) => false,
        }
    }

    /// The drives that a request goes to first.
    pub(super) fn sides(&mut self, direction: Direction, legs: WrittenLegs) -> [Option<Side>; 2] {
        let takes = |side: Side| match legs {
            WrittenLegs::All => self.takes(side, direction),
            WrittenLegs::InSync => self.state(side) == LegState::InSync,
        };
        let all = Side::ALL.map(|side| Some(side).filter(|&side| takes(side)));
        let is_turn = direction == Direction::Read && self.rule == ReadRule::RoundRobin;
        match (is_turn, all) {
            (true, [Some(_), Some(_)]) => {
                let side = self.next;
                self.next = side.other();
                [Some(side), None]
            }
            _ => all,
        }
    }

    /// Notes which of two idle drives has the nearer head.
    pub(super) fn note_nearer(&mut self, side: Side) {
        if self.rule == ReadRule::Nearest {
            self.next = side;
        }
    }

    /// The drive that is asked first for a command, if both have as many.
    pub(super) fn preferred(&self) -> Side {
        self.next
    }

    /// What the ends of a write say together. A drive that failed alone is taken out.
    pub(super) fn written(&mut self, request: Request, ends: [Status; 2]) -> Status {
        let (status, failed) = self.judged(ends);
        if let Some((side, error)) = failed {
            self.failures.push_back(LegFailure {
                leg: side,
                work: LegWork::Request(request),
                status: error,
            });
        }
        status
    }

    /// What the ends of a flush say together. A drive that failed alone is taken out.
    pub(super) fn flushed(&mut self, ends: [Status; 2]) -> Status {
        let (status, failed) = self.judged(ends);
        if let Some((side, error)) = failed {
            self.failures.push_back(LegFailure {
                leg: side,
                work: LegWork::Flush,
                status: error,
            });
        }
        status
    }

    /// What two ends say together, and the drive that failed alone, which is taken out.
    fn judged(&mut self, ends: [Status; 2]) -> (Status, Option<(Side, Status)>) {
        for side in Side::ALL {
            let (mine, others) = (ends[side as usize], ends[side.other() as usize]);
            if self.state(side) == LegState::Out {
                return (others, None);
            }
            let other_is_whole = self.state(side.other()) == LegState::InSync;
            if mine != Status::Good && others == Status::Good && other_is_whole {
                self.states[side as usize] = LegState::Out;
                self.taken_out = Some(side);
                return (others, Some((side, mine)));
            }
        }
        match ends {
            [Status::Good, other] => (other, None),
            [error, _] => (error, None),
        }
    }

    /// Notes that a drive failed a request which the other one did not.
    pub(super) fn fail(&mut self, leg: Side, request: Request, status: Status) {
        self.failures.push_back(LegFailure {
            leg,
            work: LegWork::Request(request),
            status,
        });
    }

    /// The drive that a failed write or flush has taken out since the last call.
    pub(super) fn taken_out(&mut self) -> Option<Side> {
        self.taken_out.take()
    }

    pub(super) fn poll_failure(&mut self) -> Option<LegFailure> {
        self.failures.pop_front()
    }

    /// Notes which drive served the request that is reported next.
    pub(super) fn note_served(&mut self, id: RequestId, side: Side) {
        self.served = Some((id, side));
    }

    /// The drive that served a read that has just been reported.
    pub(super) fn served(&self, id: RequestId) -> Option<Side> {
        let (last, side) = self.served?;
        (last == id).then_some(side)
    }
}

/// The number of stripes into which a task is divided between drives, so that each has as much of the outer
/// zones as the other. A choice: with 64 the halves differ by at most 2 % of the capacity.
const STRIPES: u64 = 64;

/// The parts of an extent that each drive reads for a task, if both have all data.
pub(super) fn shares(extent: Extent, capacity: u64) -> Vec<(Side, Extent)> {
    let stripe = capacity.div_ceil(STRIPES).max(1);
    let mut parts = Vec::new();
    let (mut start, end) = (extent.start(), extent.end());
    while start < end {
        let index = start.0 / stripe;
        let stop = block::Lba(((index + 1) * stripe).min(end.0));
        let side = Side::ALL[(index % 2) as usize];
        let blocks = block::Sectors(stop.0 - start.0);
        parts.push((
            side,
            Extent::new(start, blocks).expect("a part of an extent"),
        ));
        start = stop;
    }
    parts
}
