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

use block::{Direction, Duration, Extent, Instant, Sectors, Switch};
use drive::{Certainty, Position};
use profiler::tracker::BeliefMode;
use scheduler::PieceId;
use scheduler::ordering::PriorityLevel;
use scheduler::preemption::{Landing, Preemption, SplitCost, When};

use crate::command::{Draft, StageAnswer};
use crate::context::StageContext;
use crate::forecast::{Course, Head, Route};
use crate::guarantees::Guarantees;
use crate::preemption::{Transfers, least_part};

/// Whether a request was held back before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldBack {
    No,
    Yes,
}

/// A part of a transfer, or of what follows the last one, that is over before `piece` has to be given.
pub(super) fn fill(
    cx: &StageContext<'_>,
    guarantees: &Guarantees,
    preemption: &Transfers,
    piece: PieceId,
) -> Option<Draft> {
    let rules = preemption.rules()?;
    let level = cx.ordering.level(piece);
    if level == PriorityLevel::REAL_TIME || cx.belief.mode() != BeliefMode::Positioning {
        return None;
    }
    let belief = cx.profile();
    let head = cx.expected_head();
    let to = cx.route(piece);
    let before = head.course(belief, cx.now, to);
    if before.certainty == Certainty::Guessed {
        return None;
    }
    let held = before.pass.seek + before.pass.transfer;
    let landing = landing(cx, preemption, level, held).unwrap_or(FILLED_LANDING);
    let landing = landing + belief.head_switch;
    let leaves = before.start + before.pass.rotation.saturating_sub(landing);
    let sector = belief.spindle.time_of(cx.belief.width_at(head.position)?);
    let most = leaves.since(head.free.min(leaves)).as_nanos() / sector.as_nanos().max(1);
    if most < least_part(belief) {
        return None;
    }
    let is_hidden = |direction| preemption.is_hidden(belief, guarantees, direction);
    let (draft, extent, direction) = if let Some(piece) = preemption.filler() {
        let (direction, _) = cx.ordering.blocks(piece);
        let (extent, _) = preemption.next_part(cx, guarantees, piece, most);
        (Draft::Part { piece, most }, extent, direction)
    } else {
        let start = preemption
            .read_ahead()
            .filter(|_| is_hidden(Direction::Read))?;
        let track = belief.geometry.track_of(start)?;
        let left = track.last.0.saturating_sub(start.0) + 1;
        let most = rules.chunk.map_or(most, |chunk| chunk.0.min(most));
        let extent = Extent::new(start, Sectors(left.min(most))).ok()?;
        (Draft::ReadAhead(extent), extent, Direction::Read)
    };
    let is_barred = cx.is_being_written(extent) || !guarantees.leaves_room(cx, extent);
    if preemption.is_likely_buffered(cx, guarantees, piece) || is_barred {
        return None;
    }
    let route = cx.belief.route_of(extent, direction)?;
    if route.certainty() == Certainty::Guessed {
        return None;
    }
    let filled = match (is_hidden(direction), direction) {
        // When the drive writes it is its own business.
        (true, Direction::Write) => return None,
        // So is whether it reads on behind the end of a track.
        (true, Direction::Read) if !route.is_on_track(head.position) => return None,
        (true, Direction::Read) => head.on(belief, &route),
        (false, _) => head.course(belief, cx.now, &route),
    };
    let given = match cx.dispatch.at_drive() {
        0 => cx.now,
        _ => head.free.max(cx.now) + route.tail(belief, &filled.pass),
    };
    let after = filled.head.course(belief, given, to);
    let is_in_time = arrives(&after) <= arrives(&before) && after.pass.rotation >= landing;
    is_in_time.then_some(draft)
}

/// A chosen request goes now, unless a stop comes before it or it is held back. `is_merged` says
/// whether free blocks come before its own in the same command.
pub(super) fn depart(
    cx: &StageContext<'_>,
    guarantees: &Guarantees,
    preemption: &Transfers,
    (piece, was_held, is_merged): (PieceId, HeldBack, bool),
) -> (StageAnswer, HeldBack) {
    const GO: (StageAnswer, HeldBack) = (StageAnswer::Pass, HeldBack::No);
    let Some(rules) = preemption.rules() else {
        return GO;
    };
    let level = cx.ordering.level(piece);
    let is_positioned = level != PriorityLevel::REAL_TIME
        && preemption.may_be_outranked(cx, piece)
        && cx.belief.mode() == BeliefMode::Positioning
        && cx.ordering.requeued(piece) == 0
        // Its patience bounds its wait: it neither waits nor is hopped to.
        && !cx.ordering.is_out_of_patience(cx.now, piece)
        && !preemption.is_likely_buffered(cx, guarantees, piece);
    if !is_positioned {
        return GO;
    }
    let belief = cx.profile();
    let head = cx.expected_head();
    let route = cx.route(piece);
    let course = head.course_in_order(belief, cx.now, route);
    if course.certainty == Certainty::Guessed {
        return GO;
    }
    let slack = match is_merged {
        true => Duration::ZERO,
        false => {
            let hop = hop(cx, (preemption, rules, level), &head, (&course, route));
            if let Some(hop) = hop {
                return (StageAnswer::Give(Draft::Hop(hop)), HeldBack::No);
            }
            slack(cx, preemption, level, &course, was_held)
        }
    };
    let overhead = head.view(belief, cx.now).overhead(route.direction());
    let landing = landing(
        cx,
        preemption,
        level,
        course.pass.seek + course.pass.transfer,
    );
    let given = match landing {
        _ if !slack.is_zero() => {
            let given = (course.start + slack).saturating_sub(overhead);
            let is_hidden = preemption.is_hidden(belief, guarantees, head.previous);
            match is_hidden {
                true => before_switching(cx, &head, given),
                false => given,
            }
        }
        // While the drive is busy nothing is lost, and whatever is more urgent may still overtake.
        // Hosts are late as seeks are.
        Some(landing) if rules.when == When::Worth && cx.dispatch.at_drive() > 0 => {
            course.start.saturating_sub(overhead + landing)
        }
        Some(_) | None => return GO,
    };
    if given <= cx.now {
        return GO;
    }
    let held = match slack.is_zero() {
        true => HeldBack::No,
        false => HeldBack::Yes,
    };
    (StageAnswer::WaitUntil(Some(given)), held)
}

/// For how long a command that goes like `course` is held back behind the moment at which the head
/// is free; not at all if it is not worth it.
pub(super) fn slack(
    cx: &StageContext<'_>,
    preemption: &Transfers,
    level: PriorityLevel,
    course: &Course,
    was_held: HeldBack,
) -> Duration {
    let held = course.pass.seek + course.pass.transfer;
    let landing = landing(cx, preemption, level, held);
    let (Some(rules), Some(landing)) = (preemption.rules(), landing) else {
        return Duration::ZERO;
    };
    let slack = course.pass.rotation.saturating_sub(landing);
    if slack < LEAST_SLACK {
        return Duration::ZERO;
    }
    if rules.when == When::Worth && was_held == HeldBack::No {
        let whole = preemption.worth.cost(level, held + course.pass.rotation);
        let rest = preemption.worth.cost(level, held + landing);
        let late = preemption.landings.chance(landing);
        let risk = late * cx.profile().spindle.period().as_nanos() as f64;
        if (whole - rest) as f64 <= risk {
            return Duration::ZERO;
        }
    }
    slack
}

/// The moment itself, or just before the drive's look-ahead switches to the next track, if that is
/// when the moment falls: until it has settled there, the arm goes nowhere else.
fn before_switching(cx: &StageContext<'_>, head: &Head, given: Instant) -> Instant {
    let belief = cx.profile();
    let geometry = &belief.geometry;
    let Some(track) = geometry.track_at(head.position.cylinder, head.position.head) else {
        return given;
    };
    let ends = head.free + belief.spindle.wait(head.free, track.start);
    match given > ends && given < ends + belief.head_switch {
        true => ends,
        false => given,
    }
}

/// A block on the way of a long seek: gone to first, or read where the drive has no seek without
/// transfer, if it does not delay the request or may.
fn hop(
    cx: &StageContext<'_>,
    (preemption, rules, level): (&Transfers, &Preemption, PriorityLevel),
    head: &Head,
    (course, route): (&Course, &Route),
) -> Option<Extent> {
    let split = rules.split?;
    if course.distance <= split.longest {
        return None;
    }
    let belief = cx.profile();
    let to = route.target().position;
    let hops = course.distance.div_ceil(split.longest);
    let part = course.distance / hops;
    let cylinder = match to.cylinder > head.position.cylinder {
        true => head.position.cylinder + part,
        false => head.position.cylinder - part,
    };
    let landing = landing(cx, preemption, level, course.pass.seek).unwrap_or(FILLED_LANDING);
    let block = block_under_way(cx, head, cylinder, landing)?;
    let stop = cx.belief.route_of(block, Direction::Read)?;
    let (there, given) = match belief.seek_command {
        Switch::On => {
            let there = head.sought(belief, cx.now, &stop);
            (there, there.head.free)
        }
        Switch::Off => {
            let there = head.course(belief, cx.now, &stop);
            (there, there.head.free + stop.tail(belief, &there.pass))
        }
    };
    let after = there.head.course(belief, given, route);
    let late = arrives(&after)
        .as_nanos()
        .saturating_sub(arrives(course).as_nanos());
    let is_hidden = late == 0 && after.pass.rotation >= landing;
    if !is_hidden && split.cost == SplitCost::Hidden {
        return None;
    }
    if rules.when == When::Always {
        return Some(block);
    }
    let cost = |held: Duration| preemption.worth.cost(level, held);
    let whole = cost(course.pass.seek + landing + course.pass.transfer);
    let first = cost(there.pass.total());
    let second = cost(after.pass.seek + landing + after.pass.transfer);
    let risk = preemption.landings.chance(landing) * belief.spindle.period().as_nanos() as f64;
    let won = whole.saturating_sub(first + second);
    (won as f64 > late as f64 + risk).then_some(block)
}

/// The block of a cylinder that is the first to pass after the arm has landed there.
fn block_under_way(
    cx: &StageContext<'_>,
    head: &Head,
    cylinder: u32,
    landing: Duration,
) -> Option<Extent> {
    let belief = cx.profile();
    let geometry = &belief.geometry;
    let track = geometry.track_at(cylinder, head.position.head)?;
    let position = Position {
        cylinder: track.cylinder,
        head: track.head,
    };
    let start = head.view(belief, cx.now).start(Direction::Read);
    let seek = belief.reposition(head.position, position, Direction::Read);
    let angle = belief.spindle.angle_at(start + seek + landing);
    let past = angle - track.start;
    let sector = (past.raw() / track.width.raw().max(1) + 1) % u64::from(track.sectors.max(1));
    let mut sectors = (0..track.sectors).map(|n| (sector as u32 + n) % track.sectors);
    let block = sectors.find_map(|sector| geometry.lba_at(track.cylinder, track.head, sector))?;
    Some(Extent::block(block))
}

/// How long before its sector a seek should land that holds the drive for about `held`.
fn landing(
    cx: &StageContext<'_>,
    preemption: &Transfers,
    level: PriorityLevel,
    held: Duration,
) -> Option<Duration> {
    match preemption.rules()?.just_in_time? {
        Landing::Fixed(landing) => Some(landing),
        Landing::Learned => {
            let slope = preemption.worth.slope(level, held);
            let period = cx.profile().spindle.period().as_nanos();
            let price = period as f64 * 1e9 / slope.max(1) as f64;
            Some(preemption.landings.guard(price) + LEAST_LANDING)
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

#[cfg(test)]
mod tests;
