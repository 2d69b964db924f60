//! Where the head will be: what the belief says of the commands at the drive.
//!
//! ```text
//!             known                          expected
//!   ...=======|                               |
//!     A ended | B: seek, rotation, transfer   | the next command starts from here
//!             '-------------------------------'
//! ```

use block::{Direction, Duration, Instant};
use drive::mechanics::Pass;
use drive::{Certainty, Position, Profile};
use scheduler::View;
use scheduler::freeblock::Delivery;

use route::Pace;
pub use route::Route;

mod route;

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
    /// Until when the bus carries the commands before, if it is slower than the medium.
    pub bus: Instant,
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
        bus: Instant::ZERO,
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
        let mut pass = if zero_latency && route.rest.is_zero() {
            belief.pass_zero_latency(self.position, start, &route.first, route.direction)
        } else {
            belief.pass(self.position, start, &route.first, route.direction)
        };
        let bus = match route.pace {
            Pace::Medium => self.bus,
            Pace::Bus(lead) => self.after_bus(belief, (given, start), route, (lead, &mut pass)),
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
                bus,
            },
            certainty: self.certainty.and(route.certainty),
        }
    }

    /// The end of the bus transfer of a command that was given at `given` and starts at `start`, if the bus is
    /// slower than the medium. A write's pass begins whole revolutions later until its blocks are there in time.
    fn after_bus(
        self,
        belief: &Profile,
        (given, start): (Instant, Instant),
        route: &Route,
        (lead, pass): (Duration, &mut Pass),
    ) -> Instant {
        match route.direction {
            Direction::Read => route.carried(belief, start + pass.total() + route.rest, self.bus),
            Direction::Write => {
                let overheads = &belief.overheads;
                let decoded = given + overheads.before_positioning(route.direction, self.previous);
                let begins = self.bus.max(decoded + overheads.write_reselect);
                // A head that lands inside the blocks takes the rest of them first.
                if pass.wrapped.is_zero() {
                    let missing = (begins + lead).since(start + pass.seek + pass.rotation);
                    let period = belief.spindle.period();
                    let turns = missing.as_nanos().div_ceil(period.as_nanos().max(1));
                    pass.rotation += period * turns;
                }
                begins + belief.bus.write_block * route.blocks
            }
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
                bus: self.bus,
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
                bus: self.bus,
            },
            certainty: self.certainty.and(route.certainty),
        }
    }
}

impl Course {
    /// Whether its end tells on which side of its first sector the head arrived: it did not land inside its blocks,
    /// and its blocks did not come too late over the bus.
    pub fn waits_for_sector(&self, belief: &Profile) -> bool {
        self.pass.wrapped.is_zero() && self.pass.rotation < belief.spindle.period()
    }

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
                bus: self.head.bus.min(now),
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
            bus: self.head.bus.min(now),
            ..self.head
        }
    }
}

#[cfg(test)]
mod tests {
    use block::{Action, Command, CommandId, Durability, Extent, Lba, Sectors};
    use drive::firmware::QueueOrder;
    use drive::{VirtualDrive, catalog};

    use super::*;

    /// The end of a command at the drive, in nanoseconds.
    fn end(drive: &mut VirtualDrive) -> i64 {
        loop {
            let then = drive.next_wakeup().expect("a command is at the drive");
            if let Some(outcome) = drive.poll(then) {
                return outcome.at.as_nanos() as i64;
            }
        }
    }

    /// The bus of the Atlas 10K carries a block five times as long as it takes under the head.
    #[test]
    fn a_write_waits_for_blocks_that_come_over_the_bus_behind_a_read() {
        let entry = catalog::find("quantum-atlas-10k").expect("a shipped drive");
        let belief = entry.profile().expect("a valid profile");
        let belief = std::sync::Arc::new(belief.switched(block::Switch::Off, block::Switch::Off));
        let (mut right, mut pairs) = (0, 0);
        for n in 0..400_u64 {
            let dice = |k: u64| (n * 4 + k + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let extent = |k: u64, length: u64| {
                Extent::new(Lba(dice(k) % 17_000_000), Sectors(length)).expect("blocks")
            };
            let (read, write) = (extent(0, 8 + n % 64), extent(1, 8 + n / 8 % 32));
            let queued = VirtualDrive::new(belief.clone()).with_queue(2, QueueOrder::Fcfs);
            let mut drive = queued;
            let durability = Durability::Volatile;
            let actions = [
                Action::Read {
                    extent: read,
                    durability,
                },
                Action::Write {
                    extent: write,
                    durability,
                },
            ];
            for (id, action) in actions.into_iter().enumerate() {
                let command = Command::new(CommandId(id as u64), action);
                drive.submit(Instant::ZERO, command).expect("there is room");
            }
            let route = |extent, direction| Route::new(&belief, extent, direction);
            let read = route(read, Direction::Read).expect("a mapped block");
            let write = route(write, Direction::Write).expect("a mapped block");
            let first = Head::UNKNOWN.course(&belief, Instant::ZERO, &read);
            let second = first.head.course(&belief, Instant::ZERO, &write);
            let tail = write.tail(&belief, &second.pass);
            let _read = end(&mut drive);
            let ended = end(&mut drive);
            let off = ended - (second.head.free + tail).as_nanos() as i64;
            right += u32::from(off.abs() < 50_000);
            pairs += 1;
        }
        // A head that lands inside the blocks of a write may begin with others.
        assert!(right * 100 >= pairs * 97, "{right} of {pairs}");
    }

    /// Block by block: each of a write's blocks is on the bus before its sector comes.
    #[test]
    fn the_medium_waits_until_no_block_of_any_track_will_be_missing() {
        let entry = catalog::find("quantum-atlas-10k").expect("a shipped drive");
        let belief = entry.profile().expect("a valid profile");
        let block = belief.bus.write_block.as_nanos() as i64;
        let mut crossing = 0;
        for n in 0..2_000_u64 {
            let first = Lba(n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 17_000_000);
            let extent = Extent::new(first, Sectors(1 + n % 96)).expect("blocks");
            let route = Route::new(&belief, extent, Direction::Write).expect("mapped blocks");
            let Pace::Bus(lead) = route.pace else {
                panic!("the bus of the Atlas 10K is slower than its medium");
            };
            // The sectors of the first track, and those behind the way to each other one.
            let (mut at, mut on, mut carried, mut needed) = (None, route.target().position, 0, 0);
            let mut begins = Instant::ZERO;
            for run in belief.geometry.runs(extent) {
                let start = match at {
                    None => Instant::ZERO + belief.spindle.wait(Instant::ZERO, run.start),
                    Some(at) => {
                        let pass = belief.pass(on, at, &run, Direction::Write);
                        at + pass.seek + pass.rotation
                    }
                };
                if at.is_none() {
                    begins = start;
                }
                let sweep = belief.spindle.time_of(run.sweep);
                for sector in 0..u64::from(run.blocks) {
                    carried += block;
                    let passed = sweep.as_nanos() * sector / u64::from(run.blocks);
                    let comes = (start.since(begins).as_nanos() + passed) as i64;
                    needed = needed.max(carried - comes);
                }
                on = drive::SeekTarget::from(&run).position;
                at = Some(start + sweep);
            }
            crossing += u32::from(!route.rest.is_zero());
            let off = lead.as_nanos() as i64 - needed;
            assert!(
                off.abs() < 2_000,
                "{extent}: {lead:?}, {needed} ns are needed"
            );
        }
        assert!(crossing > 100, "{crossing}");
    }

    /// A bus that carries a block sooner than the next one has passed still falls behind if it begins late.
    #[test]
    fn a_bus_that_begins_late_is_slower_than_its_blocks() {
        let entry = catalog::find("quantum-atlas-10k").expect("a shipped drive");
        let mut belief = entry.profile().expect("a valid profile");
        let extent = Extent::new(Lba(0), Sectors(8)).expect("blocks");
        let route = Route::new(&belief, extent, Direction::Read).expect("mapped blocks");
        let sector = belief.spindle.time_of(route.width()).as_nanos();
        for (percent, permille, is_faster) in [
            (99, 0, false),
            (101, 0, true),
            (60, 380, false),
            (60, 420, true),
            (2, 1_000, true),
        ] {
            belief.bus.read_block = Duration::from_nanos(sector * percent / 100);
            belief.buffer.read_watermark = permille;
            let found = route.is_faster_than_bus(&belief);
            assert_eq!(found, is_faster, "{percent} %, watermark {permille}");
        }
    }
}
