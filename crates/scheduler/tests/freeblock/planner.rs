//! The planner against brute force.

use std::collections::BTreeSet;
use std::sync::Arc;

use block::{Direction, Duration, Instant, Lba};
use drive::{Position, Profile, SeekTarget};
use proptest::prelude::*;
use scheduler::freeblock::{
    Delivery, Gap, Goal, Guard, Kind, Merging, PlanRules, Planner, Ranges, SameTrack, SlowBus,
    Stop, WantedBlocks,
};

use crate::brute_force::{self, Sliced};
use crate::drives::{Moved, blocks, extent, profile, wide_profile};

/// What a case is made of, besides the drive.
#[derive(Clone, Debug)]
pub struct Situation {
    pub profile: Arc<Profile>,
    pub wanted: BTreeSet<u64>,
    pub gap: Gap,
    pub guard: Guard,
    pub same_track: SameTrack,
}

impl Situation {
    pub fn set(&self) -> WantedBlocks {
        let mut set = WantedBlocks::none(&self.profile.geometry);
        for &block in &self.wanted {
            set.add(extent(block, 1)).expect("a block of the drive");
        }
        set
    }

    pub fn rules(&self) -> PlanRules {
        PlanRules {
            guard: self.guard,
            same_track: self.same_track,
            ..PlanRules::default()
        }
    }
}

/// Whether B is paid for with a revolution.
const PAID: [u64; 4] = [0, 0, 0, 1];

prop_compose! {
    fn times()(
        leaves in 0u64..20_000_000,
        later in 0u64..400_000,
        overhead in prop_oneof![3 => 0u64..400_000, 1 => 0u64..6_000_000],
        write in any::<bool>(),
        paid in proptest::sample::select(PAID.to_vec()),
        guards in prop_oneof![2 => Just((0u64, 0u64)), 1 => (0u64..400, 0u64..400)],
        allowed in any::<bool>(),
    ) -> (Instant, [Duration; 2], Direction, u64, Guard, SameTrack) {
        let guard = Guard {
            to_free: Duration::from_micros(guards.0),
            to_write: Duration::from_micros(guards.0),
            to_destination: Duration::from_micros(guards.1),
        };
        (
            Instant::from_nanos(leaves),
            [later, overhead].map(Duration::from_nanos),
            if write { Direction::Write } else { Direction::Read },
            paid,
            guard,
            if allowed { SameTrack::Allowed } else { SameTrack::Never },
        )
    }
}

prop_compose! {
    /// What is wanted of a drive, and a gap on it.
    fn situation_on(profile: impl Strategy<Value = Arc<Profile>>)(profile in profile)(
        wanted in blocks(profile.geometry.sectors().0),
        source in (0..profile.geometry.cylinders(), 0..profile.geometry.surfaces()),
        first in 0..profile.geometry.sectors().0,
        times in times(),
        profile in Just(profile),
    ) -> Situation {
        let (leaves, [later, overhead], direction, paid, guard, same_track) = times;
        let place = profile.geometry.locate(Lba(first)).expect("a block");
        let destination = SeekTarget::from(&place);
        let source = Position { cylinder: source.0, head: source.1 };
        let departs = leaves + later;
        let way = profile.positioning(source, departs, &destination, direction);
        let turns = profile.spindle.period() * paid;
        let gap = Gap {
            source,
            departs,
            leaves,
            follows: leaves + overhead,
            lag: overhead,
            handover: overhead,
            destination,
            direction,
            extent: extent(first, 1),
            begins: departs + way.total() + turns,
            bus: None,
            delivery: Delivery::Queued,
        };
        Situation { profile, wanted, gap, guard, same_track }
    }
}

/// A small drive, what is wanted of it, and a gap on it.
pub fn situation(moved: Moved) -> impl Strategy<Value = Situation> {
    situation_on(profile(moved))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Where the bus is slower than the medium, it is free again in time.
    #[test]
    fn no_plan_keeps_a_slow_bus_for_too_long(
        situation in situation(Moved::Some),
        (block, held) in (1u64..4_000_000, 0u64..1_000_000),
        (watermark, reselect) in (0u16..=1000, 0u64..200_000),
        stops in 1u8..=4,
        two in any::<bool>(),
    ) {
        let gap = situation.gap;
        let bus = SlowBus {
            block: Duration::from_nanos(block),
            watermark,
            reselect: Duration::from_nanos(reselect),
            free: gap.leaves + Duration::from_nanos(held),
            needed: gap.begins,
        };
        let gap = Gap { bus: Some(bus), ..gap };
        let ranges = if two { Ranges::Two } else { Ranges::One };
        let rules = PlanRules { stops, ranges, ..situation.rules() };
        let plan = Planner::new(Arc::clone(&situation.profile)).plan(&situation.set(), &gap, &rules);
        if let Some(plan) = plan {
            let after = |bus: SlowBus, stop: &Stop| bus.after((stop.begins, stop.ends), stop.extent.length().0);
            prop_assert!(plan.stops().fold(bus, after).late().is_zero(), "{plan:?}");
        }
    }

    /// On drives where the set has several regions, so that the search leaps over some.
    #[test]
    fn no_plan_far_away_has_more(situation in situation_on(wide_profile())) {
        let Situation { profile, wanted, gap, .. } = &situation;
        let rules = situation.rules();
        let blocks = Sliced { blocks: wanted, slices: u64::MAX };
        let best = brute_force::best(profile, blocks, gap, &rules);
        let plan = Planner::new(Arc::clone(profile)).plan(&situation.set(), gap, &rules);
        prop_assert_eq!(plan.map_or(0, |plan| plan.wanted() as usize), best, "{:?}", plan);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_plan_of_one_stop_has_more(situation in situation(Moved::None)) {
        let Situation { profile, wanted, gap, .. } = &situation;
        let rules = situation.rules();
        let blocks = Sliced { blocks: wanted, slices: u64::MAX };
        let best = brute_force::best(profile, blocks, gap, &rules);
        let plan = Planner::new(Arc::clone(profile)).plan(&situation.set(), gap, &rules);
        prop_assert_eq!(plan.map_or(0, |plan| plan.wanted() as usize), best, "{:?}", plan);
        if let Some(plan) = plan {
            prop_assert_eq!(plan.stops().count(), 1);
            let stop = plan.stops().next().expect("a stop");
            let range = stop.extent.start().0..stop.extent.end().0;
            prop_assert_eq!(wanted.range(range).count(), stop.wanted as usize);
        }
    }

    /// By the goal that lets all parts of the disk end together: the share of a revolution, and as
    /// much again for what clears its track.
    #[test]
    fn no_plan_of_one_stop_is_worth_more(situation in situation(Moved::None)) {
        let Situation { profile, wanted, gap, .. } = &situation;
        let rules = PlanRules { goal: Goal::Even, ..situation.rules() };
        let worth = |at: Position, count: usize| {
            let track = profile.geometry.track_at(at.cylinder, at.head).expect("a track");
            let left = wanted.range(track.first.0..=track.last.0).count() as u64;
            let share = (count as u64) * (1 << 20) / u64::from(track.sectors);
            share + share * count as u64 / left
        };
        let blocks = Sliced { blocks: wanted, slices: u64::MAX };
        let tracks = brute_force::best_of_tracks(profile, blocks, gap, &rules);
        let best = tracks.into_iter().map(|(at, count)| worth(at, count)).max().unwrap_or(0);
        let plan = Planner::new(Arc::clone(profile)).plan(&situation.set(), gap, &rules);
        let found = plan.map_or(0, |plan| {
            let stop = plan.stops().next().expect("a stop");
            let place = profile.geometry.locate(stop.extent.start()).expect("a block");
            worth(SeekTarget::from(&place).position, stop.wanted as usize)
        });
        prop_assert_eq!(found, best, "{:?}", plan);
    }

    /// With tracks of up to 19 blocks in up to 8 slices.
    #[test]
    fn no_plan_of_one_stop_has_more_slices(situation in situation(Moved::None)) {
        let Situation { profile, wanted, gap, .. } = &situation;
        let rules = situation.rules();
        let mut set = WantedBlocks::coarse(&profile.geometry, 1);
        for &block in wanted {
            set.add(extent(block, 1)).expect("a block of the drive");
        }
        let rounded = (0..profile.geometry.sectors().0).filter(|&block| set.contains(Lba(block)));
        let rounded: BTreeSet<u64> = rounded.collect();
        prop_assert!(rounded.is_superset(wanted));
        let blocks = Sliced { blocks: &rounded, slices: 8 };
        let best = brute_force::best(profile, blocks, gap, &rules);
        let plan = Planner::new(Arc::clone(profile)).plan(&set, gap, &rules);
        prop_assert_eq!(plan.map_or(0, |plan| plan.wanted() as usize), best, "{:?}", plan);
        for stop in plan.iter().flat_map(|plan| plan.stops()) {
            prop_assert_eq!(set.remove(stop.extent), u64::from(stop.wanted));
        }
    }

    #[test]
    fn more_freedom_never_gives_less(
        situation in situation(Moved::Some),
        stops in 2u8..5,
        tracks in 1u32..60,
    ) {
        let Situation { profile, gap, .. } = &situation;
        let wanted = situation.set();
        let mut planner = Planner::new(Arc::clone(profile));
        let mut count = |rules: &PlanRules| {
            planner.plan(&wanted, gap, rules).map_or(0, |plan| plan.wanted())
        };
        let one = situation.rules();
        let bounded = PlanRules { tracks, ..one };
        prop_assert!(count(&bounded) <= count(&one));
        let two = PlanRules { ranges: Ranges::Two, ..one };
        prop_assert!(count(&one) <= count(&two));
        let more = PlanRules { stops, ..one };
        prop_assert!(count(&one) <= count(&more));
        let apart = PlanRules { merging: Merging::Never, ..one };
        prop_assert!(count(&apart) <= count(&one));
        let plan = planner.plan(&wanted, gap, &PlanRules { merging: Merging::Never, ..more });
        let mut stops = plan.iter().flat_map(|plan| plan.stops());
        prop_assert!(stops.all(|stop| stop.kind != Kind::Merged));
    }
}
