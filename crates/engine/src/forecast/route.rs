//! How the blocks of a command lie on the medium, and what bus and medium make of that.

use block::{Direction, Duration, Extent, Instant};
use drive::firmware::WriteBack;
use drive::geometry::TrackExtent;
use drive::mechanics::Pass;
use drive::{Angle, Certainty, Position, Profile, SeekTarget};
use profiler::slow_heads::{ComparedRead, ReadEnd};
use scheduler::Sight;

use super::Course;

/// How the blocks of a command lie on the medium.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The part on the first track.
    pub(super) first: TrackExtent,
    /// From the end of the first part to the end of the last: the same at any time, because the
    /// head leaves the first part at the same angle.
    pub(super) rest: Duration,
    /// The last track.
    pub(super) last: Position,
    pub(super) direction: Direction,
    pub(super) blocks: u64,
    /// From the end of the last part until the bus has carried a read, at least: the blocks of a later
    /// part are carried after its first sector has passed.
    pub(super) behind: Duration,
    /// From its first sector until the bus takes the first block of a read: the watermark has passed.
    pub(super) held: Duration,
    /// Whether the positions of its blocks were measured.
    pub(super) certainty: Certainty,
    /// Which of bus and medium is slower.
    pub(super) pace: Pace,
}

/// The slower one of bus and medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Medium,
    /// The bus. From its first block until the medium may begin with a write's first sector, so that none of its
    /// blocks is missing when its sector comes.
    Bus(Duration),
}

/// A bus that was free for this part of a revolution before a command's turn on it did not wait for the
/// command before. A choice: what the phase is kept to.
const FREE_BUS: u64 = 100;

impl Route {
    /// The route of a command over `extent`; `None` if the belief does not map its blocks.
    pub fn new(belief: &Profile, extent: Extent, direction: Direction) -> Option<Route> {
        let mut runs = belief.geometry.runs(extent);
        let first = runs.next()?;
        let mut last = SeekTarget::from(&first).position;
        // Any moment will do at which the head has just passed the first part.
        let left = belief
            .spindle
            .wait(Instant::ZERO, first.start + first.sweep);
        let mut at = Instant::ZERO + left;
        let sweep = belief.spindle.time_of(first.sweep);
        let blocks = extent.length().0;
        let watermark = u64::from(belief.buffer.read_watermark);
        let watermark = (blocks * watermark / 1000).max(1);
        let mut passed = u64::from(first.blocks);
        let mut held = part(sweep, watermark.min(passed), first.blocks);
        let mut carried = at;
        let width = belief.spindle.time_of(first.width);
        let bus = belief.bus.write_block;
        let leads = direction == Direction::Write && bus > width;
        let mut ahead = match leads {
            true => lead(bus, &first, (0, Duration::ZERO), sweep),
            false => Duration::ZERO,
        };
        for run in runs {
            let pass = belief.pass(last, at, &run, direction);
            let begins = at + pass.seek + pass.rotation;
            if leads {
                let before = (passed, sweep + begins.since(Instant::ZERO + left));
                ahead = ahead.max(lead(bus, &run, before, pass.transfer));
            }
            let sector = belief.spindle.time_of(run.width);
            carried = carried.max(begins + sector + belief.bus.read_block * (blocks - passed));
            if watermark > passed {
                let needed = (watermark - passed).min(u64::from(run.blocks));
                let before = sweep + begins.since(Instant::ZERO + left);
                held = before + part(pass.transfer, needed, run.blocks);
            }
            passed += u64::from(run.blocks);
            at += pass.total();
            last = SeekTarget::from(&run).position;
        }
        let pace = match direction {
            Direction::Write if leads => Pace::Bus(ahead),
            Direction::Read if belief.bus.read_block > width => Pace::Bus(Duration::ZERO),
            _ => Pace::Medium,
        };
        Some(Route {
            pace,
            first,
            rest: at.since(Instant::ZERO + left),
            last,
            direction,
            behind: carried.since(at),
            held,
            blocks,
            certainty: belief.certainty(extent),
        })
    }

    /// For how long its blocks are under the head, in all.
    pub fn sweep(&self, belief: &Profile) -> Duration {
        belief.spindle.time_of(self.first.sweep) + self.rest
    }

    /// How long after its last sector the command is believed to end: the bus carries what the
    /// medium was too fast for.
    pub fn tail(&self, belief: &Profile, pass: &Pass) -> Duration {
        match self.direction {
            Direction::Read => {
                let block = belief.bus.read_block;
                let medium = pass.transfer + self.rest;
                let behind = (block * self.blocks).saturating_sub(medium);
                behind.max(block) + belief.overheads.read_completion
            }
            Direction::Write => belief.overheads.write_completion,
        }
    }

    /// How long after its first sector the bus takes the first block of a read.
    pub fn held(&self) -> Duration {
        self.held
    }

    /// Whether its blocks come under the head faster than the bus carries them, which begins late.
    pub(super) fn is_faster_than_bus(&self, belief: &Profile) -> bool {
        let sector = belief.spindle.time_of(self.first.width).as_nanos();
        let held = sector * u64::from(belief.buffer.read_watermark) / 1000;
        belief.bus.read_block.as_nanos() + held > sector
    }

    /// When the bus has carried all of it, if its last sector passes under the head at `free`, and others
    /// had the bus until `before`: what a write brings was there before.
    pub fn carried(&self, belief: &Profile, free: Instant, before: Instant) -> Instant {
        match self.direction {
            Direction::Read => {
                let sweep = self.sweep(belief);
                let began = free.saturating_sub(sweep) + self.held;
                let block = belief.bus.read_block;
                let carried = began.max(before) + block * self.blocks;
                carried.max(free + block.max(self.behind))
            }
            Direction::Write => free,
        }
    }

    /// When the command that goes like `course` is believed to end, if that is a known time after its
    /// last sector has passed under the head; it ended at `now`, and the command before at
    /// `before`.
    ///
    /// ```text
    ///   medium        |==1==|==2==|==3==|==4==|
    ///   bus   ...before|    |=====1=====|=====2=====|=====3=====|=====4=====|
    ///                   free                                             now
    /// ```
    ///
    /// A write that the buffer may take tells nothing. Where the bus sets the pace, a read of one track
    /// tells if the bus was free when its turn on it began, counted back from its end, and a write
    /// if its data could be there before its sectors: otherwise the command before set the pace.
    pub fn told(
        &self,
        belief: &Profile,
        course: &Course,
        before: Instant,
        now: Instant,
    ) -> Option<Instant> {
        let sector = belief.spindle.time_of(self.first.width);
        let ends = course.head.free + self.tail(belief, &course.pass);
        let medium = (course.pass.transfer + self.rest).as_nanos();
        let begins = course.head.free.as_nanos().saturating_sub(medium);
        match self.direction {
            Direction::Read => {
                let block = belief.bus.read_block;
                let carried = block * self.blocks + belief.overheads.read_completion;
                let held = self.held;
                let turn = Instant::from_nanos(begins) + held + belief.overheads.read_reselect;
                let margin = belief.spindle.period().as_nanos() / FREE_BUS;
                let margin = Duration::from_nanos(margin);
                if block <= sector && turn + carried <= ends + margin {
                    return Some(ends);
                }
                let took = now.as_nanos().checked_sub(carried.as_nanos())?;
                let is_free = Instant::from_nanos(took) > before + margin;
                let is_one_pass = self.rest.is_zero();
                (is_one_pass && is_free).then_some(ends.max(turn + carried))
            }
            Direction::Write => {
                let block = belief.bus.write_block;
                let is_there = before + block * self.blocks <= Instant::from_nanos(begins);
                let tells = belief.buffer.write_back == WriteBack::None;
                (tells && (block <= sector || is_there)).then_some(ends)
            }
        }
    }

    /// From the end of a read before it on the medium to its first sector, at least: before a
    /// write, the read's last block and then so many of its own go over the bus that none is
    /// missing when its sector comes.
    pub fn lag(&self, belief: &Profile) -> Duration {
        match self.direction {
            Direction::Read => Duration::ZERO,
            Direction::Write => {
                let block = belief.bus.write_block;
                let whole = block * self.blocks;
                // The last one has to be there when its own sector begins.
                let sector = belief.spindle.time_of(self.first.width);
                let held = match self.pace {
                    Pace::Bus(lead) => lead,
                    Pace::Medium => (whole + sector).saturating_sub(self.sweep(belief)),
                };
                let early = u64::from(belief.buffer.write_watermark) * self.blocks / 1000;
                belief.bus.read_block + held.max(block * early.max(1))
            }
        }
    }

    /// Whether all of it is on this track.
    pub fn is_on_track(&self, track: Position) -> bool {
        self.rest.is_zero() && self.target().position == track
    }

    /// Whether the positions of its blocks were measured.
    pub fn certainty(&self) -> Certainty {
        self.certainty
    }

    /// What the end of a read says of its head; `None` if it is no read, or of several heads, or the arm did not move.
    pub fn compared(
        &self,
        course: &Course,
        period: Duration,
        end: ReadEnd,
    ) -> Option<ComparedRead> {
        let place = self.target().position;
        let is_of_one_head = self.direction == Direction::Read && self.last.head == place.head;
        (is_of_one_head && !course.pass.seek.is_zero()).then(|| ComparedRead {
            head: place.head,
            cylinder: place.cylinder,
            believed: course.head.free.since(course.start),
            wait: course.pass.rotation,
            period,
            end,
        })
    }

    /// How wide a sector of its first track is.
    pub fn width(&self) -> Angle {
        self.first.width
    }

    /// Which way its bytes go.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The route, for a policy that looks at the head; `Some(None)` for one that does not.
    pub fn seen(
        sight: Sight,
        belief: &Profile,
        extent: Extent,
        direction: Direction,
    ) -> Option<Option<Route>> {
        match sight {
            Sight::Order => Some(None),
            Sight::Head => Route::new(belief, extent, direction).map(Some),
        }
    }

    /// How many blocks it has.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The part on the first track.
    pub fn first(&self) -> &TrackExtent {
        &self.first
    }

    /// Where it begins.
    pub fn target(&self) -> SeekTarget {
        SeekTarget::from(&self.first)
    }
}

/// From a write's first block on the bus until the medium may begin with its first sector, so that every block
/// of one of its parts is there before its sector. So many blocks are `before` the part, which begins so
/// long after the first sector. Between two parts the medium waits, and the bus does not.
fn lead(
    bus: Duration,
    part: &TrackExtent,
    (before, begins): (u64, Duration),
    transfer: Duration,
) -> Duration {
    let blocks = u64::from(part.blocks);
    let width = Duration::from_nanos(transfer.as_nanos() / blocks.max(1));
    let first = (bus * (before + 1)).saturating_sub(begins);
    let last = (bus * (before + blocks) + width).saturating_sub(begins + transfer);
    first.max(last)
}

/// The time in which so many of the blocks of a transfer pass.
fn part(transfer: Duration, blocks: u64, of: u32) -> Duration {
    Duration::from_nanos(transfer.as_nanos() * blocks / u64::from(of.max(1)))
}
