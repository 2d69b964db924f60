//! Background requests in gaps: one goes before a chosen request that is not later for it.
//!
//! ```text
//!   at the drive   | A, in service             |
//!   chosen         X and B
//!   medium         == A ==|-- seek --|...|= X =|---- seek ----|....|== B ==
//!                                     landing                  landing
//!                                     before X                 before B
//! ```
//!
//! A request that is too large for the gap is divided, and the part that passes under the head goes: the rest waits for
//! other gaps. The order of overlapping requests is kept: only pieces without predecessors are looked at
//! ([`Ordering::background`](scheduler::Ordering::background)).

use block::{Direction, Duration, Extent, Instant, Lba, Sectors};
use drive::{Certainty, Profile};
use scheduler::PieceId;
use scheduler::freeblock::{Gap, GapPlan, Kind, PlanRules, SameTrack, Stop};
use scheduler::ordering::PriorityLevel;

use super::handover::given_after;
use crate::context::StageContext;
use crate::forecast::{Course, Head, Route};
use crate::guarantees::Guarantees;
use crate::preemption::Transfers;

/// A background request for a gap, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestPlan {
    pub(crate) piece: PieceId,
    /// Those of its blocks that fit.
    pub(crate) part: Extent,
    /// These as the only stop.
    pub(crate) plan: GapPlan,
    /// The head time that it saves: without the gap, the request would need a way of its own.
    pub(crate) worth: Duration,
}

/// A gap, and the background requests that wait.
pub(crate) struct WaitingRequests<'a> {
    cx: &'a StageContext<'a>,
    preemption: &'a Transfers,
    /// The gap before the chosen request.
    gap: &'a Gap,
    /// The head before the gap.
    head: Head,
    /// The chosen request, and how it goes with nothing before it.
    route: &'a Route,
    course: &'a Course,
    /// When the chosen request is given to the drive, if another one goes before it.
    given: Instant,
}

/// Who has the next gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum GapTurn {
    /// Background requests.
    #[default]
    Requests,
    /// Tasks.
    Tasks,
}

impl<'a> WaitingRequests<'a> {
    /// The requests for a gap before a request of `route`, which goes like `course` with nothing before it. The head is
    /// there before; `slow_block` is for how long a bus that is slower than the medium carries a block.
    pub(super) fn new(
        cx: &'a StageContext<'a>,
        preemption: &'a Transfers,
        gap: &'a Gap,
        ((head, slow_block), (route, course)): ((Head, Option<Duration>), (&'a Route, &'a Course)),
    ) -> Self {
        WaitingRequests {
            cx,
            preemption,
            gap,
            head,
            route,
            course,
            given: given_after(cx, &head, slow_block),
        }
    }

    /// Whether there are requests for a gap before the chosen `piece`, which is more urgent.
    pub(super) fn has_any(cx: &StageContext<'_>, piece: PieceId) -> bool {
        !cx.ordering.background().is_empty()
            && cx.ordering.level(piece) != PriorityLevel::BACKGROUND
    }

    /// The request of which most blocks fit, near the chosen one if there are several.
    pub(super) fn best(&self, rules: &PlanRules) -> Option<RequestPlan> {
        let mut best: Option<RequestPlan> = None;
        for place in self.within_reach().take(rules.tracks as usize) {
            let least = best.map_or(0, |best| best.part.length().0);
            best = self.plan(rules, place, least).or(best);
        }
        best
    }

    /// The requests to which the arm may get and back in time, those near the chosen request first.
    fn within_reach(&self) -> impl Iterator<Item = (u32, PieceId)> {
        let belief = self.cx.profile();
        let all = self.cx.ordering.background();
        let (from, to) = (
            self.gap.source.cylinder,
            self.gap.destination.position.cylinder,
        );
        let time = self.gap.begins.since(self.gap.leaves);
        let reads = belief.seek.read().reach(time);
        let reach = reads.max(belief.seek.write().reach(time));
        let lowest = from.max(to).saturating_sub(reach);
        let highest = from.min(to).saturating_add(reach);
        let below = |cylinder: u32| all.partition_point(|place| place.0 < cylinder);
        let first = below(lowest);
        let end = all.partition_point(|place| place.0 <= highest).max(first);
        let mut right = below(to).clamp(first, end);
        let mut left = right;
        std::iter::from_fn(move || {
            let before = (left > first).then(|| all[left - 1]);
            let behind = (right < end).then(|| all[right]);
            let is_before = match (before, behind) {
                (Some(before), Some(behind)) => to - before.0 < behind.0 - to,
                (before, _) => before.is_some(),
            };
            match is_before {
                true => {
                    left -= 1;
                    before
                }
                false => {
                    right += 1;
                    behind
                }
            }
        })
    }

    /// The largest part of a request in the gap that has more than `least` blocks, if there is one.
    fn plan(
        &self,
        rules: &PlanRules,
        (cylinder, piece): (u32, PieceId),
        least: u64,
    ) -> Option<RequestPlan> {
        let cx = self.cx;
        let route = cx.route(piece);
        let target = route.target().position;
        let is_known = route.certainty() == Certainty::Known && target.cylinder == cylinder;
        if !is_known || self.preemption.has_begun(piece) || self.is_prefetched(rules, route) {
            return None;
        }
        let (direction, whole) = cx.ordering.blocks(piece);
        let is_divided = direction == Direction::Read || cx.intake.divides_writes;
        let mut part = self.passing(rules, piece)?;
        for _ in 0..TRIES {
            if part.length().0 <= least || (part != whole && !is_divided) {
                return None;
            }
            let seen = match part == whole {
                true => *route,
                false => cx.belief.route_of(part, route.direction())?,
            };
            if let Some(plan) = self.in_time(rules, part, &seen) {
                return Some(RequestPlan {
                    piece,
                    part,
                    plan,
                    worth: self.worth(piece, &seen),
                });
            }
            // The bus may be too slow for so many, or a sector is slipped.
            part = self.shortened(piece, part)?;
        }
        None
    }

    /// The blocks of a request that pass from the arrival of the arm at its first track until it has to leave for the chosen
    /// request.
    ///
    /// ```text
    ///   track            |  the request's blocks   |
    ///   from its start       |======== part ====|        it arrives among them
    ///               |....|======= part =======|          or before them
    /// ```
    fn passing(&self, rules: &PlanRules, piece: PieceId) -> Option<Extent> {
        let (cx, belief) = (self.cx, self.cx.profile());
        let route = cx.route(piece);
        let (direction, first) = (route.direction(), route.first());
        let position = route.target().position;
        let seek = belief.reposition(self.head.position, position, direction);
        let arrives = self.head.view(belief, cx.now).start(direction) + seek;
        let to = self.gap.destination.position;
        let back = belief.reposition(position, to, self.gap.direction);
        let leaves = self
            .gap
            .begins
            .saturating_sub(back + rules.guard.to_destination);
        let landing = landing(rules, direction);
        let sector = belief.spindle.time_of(first.width).as_nanos().max(1);
        let comes = belief.spindle.wait(arrives, first.start);
        let passed = belief.spindle.period().saturating_sub(comes) + landing;
        let among = passed.as_nanos().div_ceil(sector);
        let blocks = u64::from(first.blocks);
        let begun = match among < blocks {
            true => among,
            false if comes >= landing => 0,
            false => return None,
        };
        let begins = match begun {
            0 => arrives + comes,
            _ => arrives + landing,
        };
        let (_, whole) = cx.ordering.blocks(piece);
        // Behind the end of the track its next one comes, to which the drive switches.
        let time = leaves.since(begins).as_nanos();
        let on_first = (time / sector).min(blocks - begun);
        let left = time.saturating_sub(on_first * sector + belief.head_switch.as_nanos());
        let behind = match begun + on_first == blocks {
            true => left / sector,
            false => 0,
        };
        let until = (begun + on_first + behind).min(whole.length().0);
        let longest = self.preemption.rules().and_then(|rules| rules.chunk);
        let until = longest.map_or(until, |most| until.min(begun + most.0));
        self.whole_pages(whole, (whole.start().0 + begun, whole.start().0 + until))
    }

    /// A part of a request, without pages of which only some blocks are in it.
    fn whole_pages(&self, whole: Extent, (start, end): (u64, u64)) -> Option<Extent> {
        let page = (PAGE_BYTES / u64::from(self.cx.profile().block_bytes)).max(1);
        let start = match start == whole.start().0 {
            true => start,
            false => start.next_multiple_of(page),
        };
        let end = match end == whole.end().0 {
            true => end,
            false => end / page * page,
        };
        Extent::new(Lba(start), Sectors(end.checked_sub(start)?)).ok()
    }

    /// The first three quarters of a part.
    fn shortened(&self, piece: PieceId, part: Extent) -> Option<Extent> {
        let (_, whole) = self.cx.ordering.blocks(piece);
        let start = part.start().0;
        self.whole_pages(whole, (start, start + part.length().0 * 3 / 4))
    }

    /// The plan of a part, if the chosen request is not later for it.
    fn in_time(&self, rules: &PlanRules, part: Extent, route: &Route) -> Option<GapPlan> {
        let belief = self.cx.profile();
        let first = self.head.course(belief, self.cx.now, route);
        let is_predicted = first.certainty == Certainty::Known && first.waits_for_sector(belief);
        let landing = landing(rules, route.direction());
        if !is_predicted || first.pass.rotation < landing || first.head.free >= self.gap.begins {
            return None;
        }
        let after = first.head.course(belief, self.given, self.route);
        let is_in_time = after.waits_for_sector(belief)
            && after.pass.rotation >= rules.guard.to_destination
            && after.head.free <= self.course.head.free + tolerance(belief);
        let stop = Stop {
            kind: Kind::Detour,
            direction: route.direction(),
            extent: part,
            wanted: part.length().0 as u32,
            slack: first.pass.rotation,
            begins: first.start + first.pass.seek + first.pass.rotation,
            ends: first.head.free,
        };
        is_in_time.then(|| GapPlan::of(stop, after.pass.rotation))
    }

    /// The time of the part under the head, and its share of the way that its request would need: a seek over a third of the
    /// cylinders, as between two random places, and half a revolution.
    fn worth(&self, piece: PieceId, part: &Route) -> Duration {
        let belief = self.cx.profile();
        let whole = self.cx.request(piece).extent.length().0;
        let seek = belief.seek.read().time(belief.geometry.cylinders() / 3);
        let way = seek.as_nanos() + belief.spindle.period().as_nanos() / 2;
        let share = way * part.blocks().min(whole) / whole;
        part.sweep(belief) + Duration::from_nanos(share)
    }

    /// Whether the drive would begin to prefetch: a read is on a track of the foreground.
    fn is_prefetched(&self, rules: &PlanRules, route: &Route) -> bool {
        let tracks = [self.gap.source, self.gap.destination.position];
        route.direction() == Direction::Read
            && rules.same_track == SameTrack::Never
            && tracks.contains(&route.target().position)
    }
}

/// Chooses the part of a request, which is divided for it. The answer is `false`, and nothing is chosen, if as many pieces
/// are held as may be, or the part would be given in several commands.
pub(super) fn choose(
    cx: &mut StageContext<'_>,
    guarantees: &Guarantees,
    preemption: &Transfers,
    (piece, part): (PieceId, Extent),
) -> bool {
    cx.divide(piece, part);
    let (_, whole) = cx.ordering.blocks(piece);
    let (next, _) = preemption.next_part(cx, guarantees, piece, u64::MAX);
    let is_one = whole == part && next == part;
    if is_one {
        cx.ordering.choose_for_gap(cx.now, piece);
    }
    is_one
}

/// The margin before the first sector of a request.
fn landing(rules: &PlanRules, direction: Direction) -> Duration {
    match direction {
        Direction::Read => rules.guard.to_free,
        Direction::Write => rules.guard.to_write,
    }
}

/// The same sector comes at the same moment, or a revolution later: less than that is rounding.
fn tolerance(belief: &Profile) -> Duration {
    Duration::from_nanos(belief.spindle.period().as_nanos() / 8)
}

/// How often a part is shortened. A choice: to a third.
const TRIES: u32 = 4;

/// Requests are divided at multiples of so many bytes: the physical blocks of drives with 512-byte sectors.
const PAGE_BYTES: u64 = 4096;
