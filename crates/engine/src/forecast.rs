//! Where the head will be: what the belief says of the commands at the drive.
//!
//! ```text
//!             known                          expected
//!   ...=======|                               |
//!     A ended | B: seek, rotation, transfer   | the next command starts from here
//!             '-------------------------------'
//! ```

use block::{Direction, Duration, Extent, Instant};
use drive::firmware::WriteBack;
use drive::geometry::TrackExtent;
use drive::mechanics::Pass;
use drive::{Angle, Certainty, Position, Profile, SeekTarget};
use scheduler::freeblock::Delivery;
use scheduler::{Sight, View};

/// The head between two commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The track on which it is.
    pub position: Position,
    /// Since when, or from when on, nothing holds it.
    pub free: Instant,
    /// The direction of the command that held it last.
    pub previous: Direction,
    /// Whether its track, and the angle at which it became free, are known. Before the command at the
    /// drive has ended, `free` may be whole revolutions off all the same.
    pub certainty: Certainty,
}

/// How the blocks of a command lie on the medium.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The part on the first track.
    first: TrackExtent,
    /// From the end of the first part to the end of the last: the same at any time, because the
    /// head leaves the first part at the same angle.
    rest: Duration,
    /// The last track.
    last: Position,
    direction: Direction,
    blocks: u64,
    /// From the end of the last part until the bus has carried a read, at least: the blocks of a later
    /// part are carried after its first sector has passed.
    behind: Duration,
    /// From its first sector until the bus takes the first block of a read: the watermark has passed.
    held: Duration,
    /// Whether the positions of its blocks were measured.
    certainty: Certainty,
}

/// What is believed of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// When its positioning begins.
    pub start: Instant,
    /// Its way to the first track and over it.
    pub pass: Pass,
    /// How many cylinders the arm crosses on that way.
    pub distance: u32,
    /// The head after it.
    pub head: Head,
    /// Whether both ends of its way are known: otherwise it predicts nothing.
    pub certainty: Certainty,
}

/// A command that ends further than this part of a revolution from any moment at which its last
/// sector passes was answered by the buffer. A choice: bus and electronics scatter by less.
const SURPRISE: i64 = 4;

/// A bus that was free for this part of a revolution before a command's turn on it did not wait for the
/// command before. A choice: what the phase is kept to.
const FREE_BUS: u64 = 100;

impl Head {
    /// A head of which nothing is known yet: at the beginning of the disk.
    pub const UNKNOWN: Head = Head {
        position: Position {
            cylinder: 0,
            head: 0,
        },
        free: Instant::ZERO,
        previous: Direction::Read,
        certainty: Certainty::Known,
    };

    /// The situation of a command that is given to the drive at `now`, with this head next.
    pub fn view(self, belief: &Profile, now: Instant) -> View<'_> {
        View {
            now,
            belief,
            head: self.position,
            ready: self.free,
            previous: self.previous,
        }
    }

    /// Whether a command that is given to the drive at `given` waits there for the arm.
    pub fn delivery(self, belief: &Profile, given: Instant, direction: Direction) -> Delivery {
        let overhead = self.view(belief, given).overhead(direction);
        Delivery::of(given + overhead, self.free)
    }

    /// What is believed of a command that was given to the drive at `given`.
    pub fn course(self, belief: &Profile, given: Instant, route: &Route) -> Course {
        let view = self.view(belief, given);
        let start = view.start(route.direction);
        let zero_latency = match route.direction {
            Direction::Read => belief.buffer.zero_latency_read,
            Direction::Write => belief.buffer.zero_latency_write,
        };
        let pass = if zero_latency && route.rest.is_zero() {
            belief.pass_zero_latency(self.position, start, &route.first, route.direction)
        } else {
            belief.pass(self.position, start, &route.first, route.direction)
        };
        Course {
            start,
            pass,
            distance: self
                .position
                .cylinder
                .abs_diff(route.target().position.cylinder),
            head: Head {
                position: route.last,
                free: start + pass.total() + route.rest,
                previous: route.direction,
                certainty: route.certainty,
            },
            certainty: self.certainty.and(route.certainty),
        }
    }

    /// The same of a command that begins with its first block: where the head would land inside its
    /// blocks, and take the rest of them first, it may as well leave later, and land before them.
    pub fn course_in_order(self, belief: &Profile, given: Instant, route: &Route) -> Course {
        let course = self.course(belief, given, route);
        if course.pass.wrapped.is_zero() {
            return course;
        }
        let pass = belief.pass(self.position, course.start, &route.first, route.direction);
        let free = course.start + pass.total() + route.rest;
        Course {
            pass,
            head: Head {
                free,
                ..course.head
            },
            ..course
        }
    }

    /// What is believed of a command that takes the arm to where a route begins, and ends there.
    pub fn sought(self, belief: &Profile, given: Instant, route: &Route) -> Course {
        let position = route.target().position;
        let start = self.view(belief, given).start(Direction::Read);
        let seek = belief.reposition(self.position, position, Direction::Read);
        Course {
            start,
            pass: Pass {
                seek,
                ..Pass::default()
            },
            distance: self.position.cylinder.abs_diff(position.cylinder),
            head: Head {
                position,
                free: start + seek,
                previous: Direction::Read,
                // No sector tells when the arm is there, if it is not known where it was.
                certainty: self.certainty.and(route.certainty),
            },
            certainty: self.certainty.and(route.certainty),
        }
    }

    /// What is believed of a command that goes on where the one before ended, without a pause of the
    /// medium: the drive has read ahead, or takes the blocks before it writes them.
    pub fn on(self, belief: &Profile, route: &Route) -> Course {
        let mut pass = belief.pass(self.position, self.free, &route.first, route.direction);
        // The moment is known to some microseconds only: what seems to have just passed has not.
        if pass.rotation.as_nanos() > belief.spindle.period().as_nanos() / 2 {
            pass.rotation = Duration::ZERO;
        }
        Course {
            start: self.free,
            pass,
            distance: 0,
            head: Head {
                position: route.last,
                free: self.free + pass.total() + route.rest,
                previous: route.direction,
                certainty: self.certainty.and(route.certainty),
            },
            certainty: self.certainty.and(route.certainty),
        }
    }
}

impl Course {
    /// How many revolutions more than believed the command took that ended at `now`, and the one before it
    /// at `before` (fewer, if negative); `None` if it ended so early or so oddly that the buffer must have
    /// answered.
    ///
    /// A command that ends late has lost whole revolutions: its last sector passed under the head
    /// at the expected moment or that many revolutions later. What is left over is the bus and
    /// the electronics, which do not hold the head. A bus that is slower than the medium may be later by more
    /// than a revolution: it waits for so many blocks, and for what it carries before.
    pub fn revolutions(
        &self,
        belief: &Profile,
        route: &Route,
        (before, now): (Instant, Instant),
    ) -> Option<i64> {
        let period = belief.spindle.period().as_nanos() as i64;
        let expected = self.expected_end(belief, route, before).as_nanos() as i64;
        let late = now.as_nanos() as i64 - expected;
        let revolutions = (late + period / 2).div_euclid(period);
        let rest = late - revolutions * period;
        let plausible = rest.abs() < period / SURPRISE && revolutions >= -1;
        (plausible || revolutions > 0).then_some(revolutions)
    }

    /// When it is believed to end, if the command before it ended at `before`: until then that had the bus,
    /// where the bus falls behind the medium.
    fn expected_end(&self, belief: &Profile, route: &Route, before: Instant) -> Instant {
        let ends = self.head.free + route.tail(belief, &self.pass);
        match route.direction {
            Direction::Read => {
                let before = match route.is_faster_than_bus(belief) {
                    true => before,
                    false => Instant::ZERO,
                };
                let carried = route.carried(belief, self.head.free, before);
                ends.max(carried + belief.overheads.read_completion)
            }
            Direction::Write => ends,
        }
    }

    /// The expected head after a command that went on where the one before had ended, now that it has
    /// ended at `now`: where the medium is, the buffer does not tell. What ended later than it could
    /// was held up there.
    pub fn gone_on(&self, belief: &Profile, route: &Route, now: Instant) -> Head {
        let expected = self.head.free + route.tail(belief, &self.pass);
        let late = now.as_nanos().saturating_sub(expected.as_nanos());
        let late = match late > belief.spindle.period().as_nanos() / 2 {
            true => Duration::from_nanos(late),
            false => Duration::ZERO,
        };
        Head {
            free: (self.head.free + late).min(now),
            ..self.head
        }
    }

    /// The expected head, now that the command has ended at `now`, and the one before it at `before`.
    pub fn ended(
        &self,
        belief: &Profile,
        route: &Route,
        (before, now): (Instant, Instant),
    ) -> Head {
        if self.head.certainty == Certainty::Guessed {
            // Its last sector passed at an angle that only its end tells.
            return Head {
                free: now.saturating_sub(route.tail(belief, &self.pass)),
                ..self.head
            };
        }
        let expected = self.head.free.as_nanos();
        let period = belief.spindle.period().as_nanos();
        let free = match self.revolutions(belief, route, (before, now)) {
            Some(late) => expected.saturating_add_signed(late * period as i64),
            None => expected,
        };
        Head {
            free: Instant::from_nanos(free).min(now),
            ..self.head
        }
    }
}

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
        for run in runs {
            let pass = belief.pass(last, at, &run, direction);
            let begins = at + pass.seek + pass.rotation;
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
        Some(Route {
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
    fn is_faster_than_bus(&self, belief: &Profile) -> bool {
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
                let held = (whole + sector).saturating_sub(self.sweep(belief));
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

    /// Where it begins.
    pub fn target(&self) -> SeekTarget {
        SeekTarget::from(&self.first)
    }
}

/// The time in which so many of the blocks of a transfer pass.
fn part(transfer: Duration, blocks: u64, of: u32) -> Duration {
    Duration::from_nanos(transfer.as_nanos() * blocks / u64::from(of.max(1)))
}
