//! The slack before a chosen request: what is on its way is held back, and the time used otherwise.
//!
//! ```text
//!   at the drive   |== A ==|
//!   chosen                 B:       |---- seek ----|landing|== B ==|
//!                          '- slack -'
//!   first                  parts of what stepped aside, or of what follows A
//!   then                   free blocks
//!   then                   a first part of the way, if it is long
//!   what is left           nothing: whatever is more urgent still overtakes
//! ```

use block::{Command, Direction, Duration, Extent, Instant, Sectors, Switch};
use drive::{Angle, Position};
use profiler::tracker::Mode;
use scheduler::background::Means;
use scheduler::freeblock::Stop;
use scheduler::ordering::Level;
use scheduler::preemption::{Landing, SplitCost, When};

use super::Engine;
use crate::forecast::{Course, Head, Route};
use crate::sent::{Planned, Sent, Step};

/// What is to be done about the way.
enum Departure {
    /// This step.
    Now(Step),
    /// Nothing, until then.
    At(Instant),
}

impl Engine {
    /// Gives the drive the first step of the way, or what fits before it; `None` if there is no way,
    /// or its first step has time.
    pub(super) fn set_out(&mut self, now: Instant) -> Option<Command> {
        if !self.way.is_empty() {
            self.wakeup = None;
        }
        loop {
            let step = match *self.way.front()? {
                Step::Request {
                    piece,
                    planned: Planned::No,
                    ..
                } => {
                    if let Some(step) = self.fill(now, piece) {
                        return Some(self.give(now, step));
                    }
                    self.way.pop_front();
                    self.plan(now, piece);
                    continue;
                }
                Step::Request { piece, merged, .. } => match self.depart(now, piece, merged) {
                    Some(Departure::Now(step)) => return Some(self.give(now, step)),
                    Some(Departure::At(then)) => {
                        self.wakeup = Some(then);
                        return None;
                    }
                    None => self.way.pop_front()?,
                },
                _ => self.way.pop_front()?,
            };
            return Some(self.give(now, step));
        }
    }

    /// A part of a transfer, or of what follows the last one, that is over before `piece` has to
    /// leave.
    fn fill(&mut self, now: Instant, piece: u32) -> Option<Step> {
        let transfers = self.transfers.as_deref()?;
        let level = self.ordering.level(piece);
        if level == Level::REAL_TIME || self.mode() != Mode::Positioning {
            return None;
        }
        let reads_ahead = transfers.rules.free_prefetch == Switch::On && self.filler().is_none();
        let ahead = transfers.ahead.filter(|_| reads_ahead);
        let head = self.expected_head();
        let to = &self.routes[piece as usize];
        let before = head.course(&self.belief, now, to);
        let held = before.pass.seek + before.pass.transfer;
        let landing = self.landing(level, held).unwrap_or(FILLED_LANDING) + self.belief.head_switch;
        let leaves = before.start + before.pass.rotation.saturating_sub(landing);
        let sector = self.belief.spindle.time_of(self.width_at(head.position)?);
        let most = leaves.since(head.free.min(leaves)).as_nanos() / sector.as_nanos().max(1);
        if most < self.least_part() {
            return None;
        }
        let (step, extent, direction) = if let Some(piece) = self.filler() {
            let (direction, _) = self.ordering.blocks(piece);
            let step = Step::Part { piece, most };
            (step, self.next_part(piece, most).0, direction)
        } else {
            let start = ahead.filter(|_| self.is_hidden(Direction::Read))?;
            let track = self.belief.geometry.track_of(start)?;
            let left = track.last.0.saturating_sub(start.0) + 1;
            let most = transfers
                .rules
                .chunk
                .map_or(most, |chunk| chunk.0.min(most));
            let extent = Extent::new(start, Sectors(left.min(most))).ok()?;
            (Step::Ahead(extent), extent, Direction::Read)
        };
        let is_barred = self.is_being_written(extent) || !self.leaves_room(now, extent);
        if self.is_likely_buffered(piece) || is_barred {
            return None;
        }
        let route = Route::new(&self.belief, extent, direction)?;
        let filled = match (self.is_hidden(direction), direction) {
            // When the drive writes it is its own business.
            (true, Direction::Write) => return None,
            // So is whether it reads on behind the end of a track.
            (true, Direction::Read) if !route.is_on_track(head.position) => return None,
            (true, Direction::Read) => head.on(&self.belief, &route),
            (false, _) => head.course(&self.belief, now, &route),
        };
        let given = match self.at_drive.is_empty() {
            true => now,
            false => head.free.max(now) + route.tail(&self.belief, &filled.pass),
        };
        let after = filled.head.course(&self.belief, given, to);
        let is_in_time = arrives(&after) <= arrives(&before) && after.pass.rotation >= landing;
        is_in_time.then_some(step)
    }

    /// How wide a sector of a track is.
    fn width_at(&self, position: Position) -> Option<Angle> {
        let geometry = &self.belief.geometry;
        let track = geometry.track_at(position.cylinder, position.head);
        track.map(|track| track.width)
    }

    /// When the request on the way has to leave, if that is not now; or what comes before.
    fn depart(
        &mut self,
        now: Instant,
        piece: u32,
        merged: Option<(Stop, Means)>,
    ) -> Option<Departure> {
        let transfers = self.transfers.as_deref()?;
        let level = self.ordering.level(piece);
        let is_positioned = level != Level::REAL_TIME
            && self.may_be_outranked(piece)
            && self.mode() == Mode::Positioning
            && self.ordering.requeued(piece) == 0
            && !self.is_likely_buffered(piece);
        if !is_positioned {
            return None;
        }
        let when = transfers.rules.when;
        let head = self.expected_head();
        let route = self.routes[piece as usize];
        let course = head.course_in_order(&self.belief, now, &route);
        // Free blocks that are merged with it come before its own.
        let slack = match merged {
            Some(_) => Duration::ZERO,
            None => {
                if let Some(hop) = self.hop(now, (level, when), &head, (&course, &route)) {
                    return Some(Departure::Now(Step::Hop(hop)));
                }
                self.slack(level, &course)
            }
        };
        let overhead = head.view(&self.belief, now).overhead(route.direction());
        let landing = self.landing(level, course.pass.seek + course.pass.transfer);
        let given = match landing {
            _ if !slack.is_zero() => {
                let given = (course.start + slack).saturating_sub(overhead);
                self.before_switching(&head, given)
            }
            // While the drive is busy nothing is lost, and whatever is more urgent may still overtake.
            // Hosts are late as seeks are.
            Some(landing) if when == When::Worth && !self.at_drive.is_empty() => {
                course.start.saturating_sub(overhead + landing)
            }
            Some(_) | None => return None,
        };
        if given <= now {
            return None;
        }
        if !slack.is_zero() {
            self.note_held();
        }
        Some(Departure::At(given))
    }

    /// For how long a command that goes like `course` is held back behind the moment at which the head
    /// is free; not at all if it is not worth it.
    pub(super) fn slack(&self, level: Level, course: &Course) -> Duration {
        let held = course.pass.seek + course.pass.transfer;
        let landing = self.landing(level, held);
        let (Some(transfers), Some(landing)) = (self.transfers.as_deref(), landing) else {
            return Duration::ZERO;
        };
        let slack = course.pass.rotation.saturating_sub(landing);
        if slack < LEAST_SLACK {
            return Duration::ZERO;
        }
        if transfers.rules.when == When::Worth && !self.way_was_held() {
            let whole = transfers.worth.cost(level, held + course.pass.rotation);
            let rest = transfers.worth.cost(level, held + landing);
            let late = transfers.lateness.chance(landing.as_nanos() as i64);
            let risk = late * self.belief.spindle.period().as_nanos() as f64;
            if (whole - rest) as f64 <= risk {
                return Duration::ZERO;
            }
        }
        slack
    }

    /// The moment itself, or just before the drive's look-ahead switches to the next track, if that is
    /// when the moment falls: until it has settled there, the arm goes nowhere else.
    fn before_switching(&self, head: &Head, given: Instant) -> Instant {
        let geometry = &self.belief.geometry;
        let track = geometry.track_at(head.position.cylinder, head.position.head);
        let Some(track) = track.filter(|_| self.is_hidden(head.previous)) else {
            return given;
        };
        let ends = head.free + self.belief.spindle.wait(head.free, track.start);
        match given > ends && given < ends + self.belief.head_switch {
            true => ends,
            false => given,
        }
    }

    /// A block on the way of a long seek: gone to first, or read where the drive has no seek without
    /// transfer, if it does not delay the request or may.
    fn hop(
        &self,
        now: Instant,
        (level, when): (Level, When),
        head: &Head,
        (course, route): (&Course, &Route),
    ) -> Option<Extent> {
        let transfers = self.transfers.as_deref()?;
        let split = transfers.rules.split?;
        if course.distance <= split.longest {
            return None;
        }
        let to = route.target().position;
        let hops = course.distance.div_ceil(split.longest);
        let part = course.distance / hops;
        let cylinder = match to.cylinder > head.position.cylinder {
            true => head.position.cylinder + part,
            false => head.position.cylinder - part,
        };
        let landing = self
            .landing(level, course.pass.seek)
            .unwrap_or(FILLED_LANDING);
        let block = self.block_under_way(now, head, cylinder, landing)?;
        let stop = Route::new(&self.belief, block, Direction::Read)?;
        let (there, given) = match self.belief.seek_command {
            Switch::On => {
                let there = head.sought(&self.belief, now, &stop);
                (there, there.head.free)
            }
            Switch::Off => {
                let there = head.course(&self.belief, now, &stop);
                (
                    there,
                    there.head.free + stop.tail(&self.belief, &there.pass),
                )
            }
        };
        let after = there.head.course(&self.belief, given, route);
        let late = arrives(&after)
            .as_nanos()
            .saturating_sub(arrives(course).as_nanos());
        let is_hidden = late == 0 && after.pass.rotation >= landing;
        if !is_hidden && split.cost == SplitCost::Hidden {
            return None;
        }
        if when == When::Always {
            return Some(block);
        }
        let cost = |held: Duration| transfers.worth.cost(level, held);
        let whole = cost(course.pass.seek + landing + course.pass.transfer);
        let first = cost(there.pass.total());
        let second = cost(after.pass.seek + landing + after.pass.transfer);
        let risk = transfers.lateness.chance(landing.as_nanos() as i64)
            * self.belief.spindle.period().as_nanos() as f64;
        let won = whole.saturating_sub(first + second);
        (won as f64 > late as f64 + risk).then_some(block)
    }

    /// The block of a cylinder that is the first to pass after the arm has landed there.
    fn block_under_way(
        &self,
        now: Instant,
        head: &Head,
        cylinder: u32,
        landing: Duration,
    ) -> Option<Extent> {
        let geometry = &self.belief.geometry;
        let track = geometry.track_at(cylinder, head.position.head)?;
        let position = Position {
            cylinder: track.cylinder,
            head: track.head,
        };
        let start = head.view(&self.belief, now).start(Direction::Read);
        let seek = self
            .belief
            .reposition(head.position, position, Direction::Read);
        let angle = self.belief.spindle.angle_at(start + seek + landing);
        let past = angle - track.start;
        let sector = (past.raw() / track.width.raw().max(1) + 1) % u64::from(track.sectors.max(1));
        let mut sectors = (0..track.sectors).map(|n| (sector as u32 + n) % track.sectors);
        let block =
            sectors.find_map(|sector| geometry.lba_at(track.cylinder, track.head, sector))?;
        Some(Extent::block(block))
    }

    /// How long before its sector a seek should land that holds the drive for about `held`.
    pub(super) fn landing(&self, level: Level, held: Duration) -> Option<Duration> {
        let transfers = self.transfers.as_ref()?;
        match transfers.rules.just_in_time? {
            Landing::Fixed(landing) => Some(landing),
            Landing::Learned => {
                let slope = transfers.worth.slope(level, held);
                let period = self.belief.spindle.period().as_nanos();
                let price = period as f64 * 1e9 / slope.max(1) as f64;
                Some(transfers.lateness.guard(price) + LEAST_LANDING)
            }
        }
    }

    /// A command ended that was believed to wait `wait` for its sector, and took so many revolutions
    /// more.
    pub(super) fn learn_landing(&mut self, sent: &Sent, wait: Duration, revolutions: i64) {
        let period = self.belief.spindle.period();
        let Some(transfers) = self.transfers.as_deref_mut() else {
            return;
        };
        transfers.lateness.observe(wait, period, revolutions);
        transfers.unlearned += 1;
        if transfers.unlearned >= LEARN_EVERY {
            transfers.unlearned = 0;
            transfers.lateness.learn();
        }
        if sent.was_held {
            transfers.told.missed += u64::from(revolutions > 0);
        }
    }

    /// Whether the request on the way was held back before.
    fn way_was_held(&self) -> bool {
        matches!(self.way.back(), Some(Step::Request { was_held: true, .. }))
    }

    fn note_held(&mut self) {
        if let Some(Step::Request { was_held, .. }) = self.way.back_mut()
            && !std::mem::replace(was_held, true)
            && let Some(transfers) = &mut self.transfers
        {
            transfers.told.held += 1;
        }
    }
}

/// When the first sector begins to pass.
fn arrives(course: &Course) -> Instant {
    course.start + course.pass.seek + course.pass.rotation
}

/// Slack that is shorter is not worth waking up for. A choice: some wakeups.
const LEAST_SLACK: Duration = Duration::from_micros(100);

/// The landing behind a filler or a stop, where no request is held back otherwise. The paper's.
const FILLED_LANDING: Duration = Duration::from_micros(1_500);

/// What a learned landing is added to. A choice: how late a busy host gives a command.
const LEAST_LANDING: Duration = Duration::from_micros(50);

/// After so many ends the chance of being late is worked out anew. A choice.
const LEARN_EVERY: u32 = 16;
