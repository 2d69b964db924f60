//! A route from A to B with reads on it, to which the most profitable read is added repeatedly.

use block::{Direction, Instant};
use drive::{Position, Profile};

use super::goal::Worth;
use super::ground::SearchBounds;
use super::merged::{Approach, merged};
use super::search::{CylinderSearch, SearchRules};
use super::visit::{Leg, Visit, Visited};
use crate::freeblock::plan::MOST_STOPS;
use crate::freeblock::{
    Gap, GapPlan, Merging, PlanRules, Ranges, SameTrack, SlowBus, Stop, WantedBlocks,
};

/// The reads between A and B, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    visits: Vec<Visit>,
    /// The read in one command with B.
    merged: Option<Stop>,
}

/// The additional read of a route, and its place.
enum RouteGain {
    Visit(usize, Visit),
    Merged(Stop),
}

/// The constants of one plan.
pub(super) struct Planning<'a> {
    pub profile: &'a Profile,
    pub ground: &'a SearchBounds,
    pub wanted: &'a WantedBlocks,
    pub gap: &'a Gap,
    pub rules: &'a PlanRules,
    pub worth: Worth,
    /// The number of tracks that may still be visited.
    pub left: u32,
}

impl Planning<'_> {
    /// The best plan of one visit, or merged; then more visits by gain, up to the limit.
    pub fn best(&mut self) -> Route {
        let mut route = Route::default();
        let stops = usize::from(self.rules.stops).clamp(1, MOST_STOPS);
        for _ in 0..stops {
            let mut longer = route.clone();
            match self.next(&route, self.rules.ranges) {
                Some(gain) => longer.gains(gain),
                None => break,
            }
            if !self.keeps_pace(&longer) {
                // Two ranges are two commands: perhaps one of them alone fits.
                longer = route.clone();
                match self.next(&route, Ranges::One) {
                    Some(gain) => longer.gains(gain),
                    None => break,
                }
                if !self.keeps_pace(&longer) {
                    break;
                }
            }
            route = longer;
        }
        route
    }

    /// Whether each command is dispatched in time, which is at the completion of the one before the
    /// last. And whether a slow bus is free in time.
    fn keeps_pace(&self, route: &Route) -> bool {
        let gap = self.gap;
        let bus = self.bus(&route.visits).map(|bus| match route.merged {
            Some(merged) => bus.after((merged.begins, merged.ends), merged.extent.length().0),
            None => bus,
        });
        if bus.is_some_and(|bus| !bus.late().is_zero()) {
            return false;
        }
        let stops = route.visits.iter().flat_map(|visit| visit.stops).flatten();
        if stops.clone().nth(1).is_none() {
            return true;
        }
        let ends: Vec<(Instant, Instant)> = self.completions(stops).collect();
        let (Some(last), [.., (_, before), (end, _)]) = (route.visits.last(), &ends[..]) else {
            return true;
        };
        // The second is dispatched at A's completion, the third at the first's.
        let mut waits = ends.windows(2).rev().skip(1);
        if ends[0].0 < gap.follows || waits.any(|pair| pair[1].0 < pair[0].1) {
            return false;
        }
        let (direction, begins, guard) = match route.merged {
            Some(merged) => (Direction::Read, merged.begins, self.rules.guard.to_free),
            None => (gap.direction, gap.begins, self.rules.guard.to_destination),
        };
        let to = gap.destination.position;
        let seek = self.profile.reposition(last.position, to, direction);
        (*end).max(*before) + seek + guard <= begins
    }

    /// The ends of reads on the medium, and the earliest starts of the commands that are dispatched
    /// at their completion.
    fn completions(
        &self,
        stops: impl Iterator<Item = Stop>,
    ) -> impl Iterator<Item = (Instant, Instant)> {
        let (handover, mut bus) = (self.gap.handover, self.gap.bus);
        stops.map(move |stop| {
            bus = bus.map(|bus| bus.after((stop.begins, stop.ends), stop.extent.length().0));
            // The handover has the last block on the bus.
            let carried = bus.map_or(stop.ends, |bus| bus.free.saturating_sub(bus.block));
            (stop.ends, stop.ends.max(carried) + handover)
        })
    }

    /// The plan of a route; `None` if it has no reads.
    pub fn plan(&self, route: &Route) -> Option<GapPlan> {
        let slack = match route.merged {
            Some(merged) => merged.slack,
            None => {
                let last = route.visits.last()?;
                let back = (last.position, self.gap.destination.position);
                let seek = self.profile.reposition(back.0, back.1, self.gap.direction);
                let leaves = last.last()?.ends.max(self.gap.follows);
                self.gap.begins.since(leaves + seek)
            }
        };
        let stops = route.visits.iter().flat_map(|visit| visit.stops);
        let mut stops = stops.flatten().chain(route.merged);
        let first = GapPlan::of(stops.next()?, slack);
        Some(stops.fold(first, |plan, stop| plan.and(stop, slack)))
    }

    /// The most profitable additional read.
    fn next(&mut self, route: &Route, ranges: Ranges) -> Option<RouteGain> {
        let commands = route.commands();
        if commands >= MOST_STOPS {
            return None;
        }
        let mut than = 0;
        let mut gain = None;
        if let Some((stop, track)) = self.merged(route) {
            than = self.worth.of(stop.wanted, track.sectors, track.wanted);
            gain = Some(RouteGain::Merged(stop));
        }
        let taken: Vec<Position> = route.visits.iter().map(|visit| visit.position).collect();
        let gap = self.gap;
        let allowed = self.rules.same_track == SameTrack::Allowed;
        let closed = [
            (!allowed).then_some(gap.source),
            (!allowed || route.merged.is_some()).then_some(gap.destination.position),
        ];
        for place in 0..=route.visits.len() {
            let rules = SearchRules {
                wanted: self.wanted,
                leg: self.leg(route, place),
                // Two ranges are two commands.
                ranges: if commands + 1 < MOST_STOPS {
                    ranges
                } else {
                    Ranges::One
                },
                closed,
                taken: &taken,
                source: gap.source,
                destination: gap.destination.position,
            };
            let beyond = (self.worth, than);
            let found =
                CylinderSearch::best(self.profile, self.ground, &rules, beyond, &mut self.left);
            if let Some((found, worth)) = found {
                than = worth;
                gain = Some(RouteGain::Visit(place, found));
            }
        }
        gain
    }

    /// The part of the route before a visit, or before B.
    fn leg(&self, route: &Route, place: usize) -> Leg {
        let (gap, guard) = (self.gap, self.rules.guard);
        let (from, leaves) = match place
            .checked_sub(1)
            .and_then(|before| route.visits.get(before))
        {
            Some(visit) => (
                visit.position,
                visit.last().map_or(visit.begins, |stop| stop.ends),
            ),
            None => (gap.source, gap.leaves),
        };
        let leg = Leg {
            from,
            leaves,
            follows: gap.follows,
            to: gap.destination.position,
            direction: gap.direction,
            latest: gap.begins.saturating_sub(guard.to_destination),
            done_by: gap.begins.saturating_sub(gap.lag),
            to_free: guard.to_free,
            bus: self.bus(&route.visits[..place]),
        };
        match (route.visits.get(place), route.merged) {
            (Some(next), _) => Leg {
                // The drive has the command queued, without a wait.
                follows: Instant::ZERO,
                to: next.position,
                direction: Direction::Read,
                latest: next.begins.saturating_sub(guard.to_free),
                done_by: next.begins,
                ..leg
            },
            (None, Some(merged)) => Leg {
                direction: Direction::Read,
                latest: merged
                    .begins
                    .saturating_sub(guard.to_free.max(guard.to_destination)),
                done_by: merged.begins,
                ..leg
            },
            (None, None) => leg,
        }
    }

    /// A slow bus after these visits.
    fn bus(&self, visits: &[Visit]) -> Option<SlowBus> {
        let stops = visits.iter().flat_map(|visit| visit.stops).flatten();
        let after =
            |bus: SlowBus, stop: Stop| bus.after((stop.begins, stop.ends), stop.extent.length().0);
        Some(stops.fold(self.gap.bus?, after))
    }

    /// The best read in one command with B, for a route that has none, and its track.
    fn merged(&self, route: &Route) -> Option<(Stop, Visited)> {
        let (gap, guard) = (self.gap, self.rules.guard);
        let at_destination = |visit: &Visit| visit.position == gap.destination.position;
        if gap.direction == Direction::Write
            || self.rules.merging == Merging::Never
            || !self.ground.known().has(gap.destination.position)
            || route.merged.is_some()
            || route.visits.iter().any(at_destination)
        {
            return None;
        }
        let last = route.visits.last();
        let (from, departs, guard) = match last {
            None => (gap.source, gap.departs, guard.to_free),
            Some(last) => (
                last.position,
                last.last()?.ends.max(gap.follows),
                guard.to_free.max(guard.to_destination),
            ),
        };
        let approach = Approach {
            from,
            departs,
            guard,
            target: gap.destination,
            first: gap.extent.start(),
            begins: gap.begins,
            bus: self.bus(&route.visits),
        };
        let outlines = self.ground.outlines();
        merged((self.profile, outlines, self.wanted), &approach)
    }
}

impl Route {
    fn gains(&mut self, gain: RouteGain) {
        match gain {
            RouteGain::Visit(place, visit) => self.visits.insert(place, visit),
            RouteGain::Merged(stop) => self.merged = Some(stop),
        }
    }

    fn commands(&self) -> usize {
        let visits = self
            .visits
            .iter()
            .map(|visit| visit.stops.iter().flatten().count());
        visits.sum::<usize>() + usize::from(self.merged.is_some())
    }
}
