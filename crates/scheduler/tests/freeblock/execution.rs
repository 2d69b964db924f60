//! Plans, executed on a drive that is exactly as believed.

use std::sync::Arc;

use block::{
    Action, Command, CommandId, Direction, Durability, Duration, Extent, Instant, Lba, Sectors,
};
use drive::firmware::QueueOrder;
use drive::{Profile, SeekTarget, VirtualDrive};
use proptest::prelude::*;
use scheduler::freeblock::plan::MOST_STOPS;
use scheduler::freeblock::{Gap, GapPlan, Kind, PlanRules, Planner, Ranges};

use crate::drives::{Moved, extent};
use crate::planner::{Situation, situation};

/// When the last of the commands has ended; all are at the drive from the beginning, and it takes
/// them in their order.
fn ends(profile: &Arc<Profile>, actions: &[(Direction, Extent)]) -> Instant {
    let depth = actions.len() as u32;
    let drive = VirtualDrive::new(Arc::clone(profile));
    let mut drive = drive.with_queue(depth, QueueOrder::Fcfs);
    for (id, &(direction, extent)) in (0..).zip(actions) {
        let durability = Durability::Durable;
        let action = match direction {
            Direction::Read => Action::Read { extent, durability },
            Direction::Write => Action::Write { extent, durability },
        };
        let command = Command::new(CommandId(id), action);
        drive.submit(Instant::ZERO, command).expect("there is room");
    }
    let mut last = Instant::ZERO;
    while let Some(wakeup) = drive.next_wakeup() {
        while let Some(outcome) = drive.poll(wakeup) {
            last = last.max(outcome.at);
        }
    }
    last
}

/// The commands of a plan, and B.
fn actions(plan: &GapPlan, direction: Direction, b: Extent) -> Vec<(Direction, Extent)> {
    let mut actions = Vec::new();
    let mut first = b.start();
    for stop in plan.stops() {
        match stop.kind {
            Kind::Merged => first = stop.extent.start(),
            _ => actions.push((Direction::Read, stop.extent)),
        }
    }
    let whole = Extent::new(first, Sectors(b.end().0 - first.0)).expect("an extent");
    actions.push((direction, whole));
    actions
}

/// The gap between a read of block `a` and the situation's B, on a drive that begins at rest.
fn gap_after(situation: &Situation, profile: &Arc<Profile>, a: u64) -> Gap {
    let leaves = ends(profile, &[(Direction::Read, extent(a, 1))]);
    let place = profile.geometry.locate(Lba(a)).expect("a block");
    let source = SeekTarget::from(&place).position;
    let gap = situation.gap;
    let way = profile.positioning(source, leaves, &gap.destination, gap.direction);
    Gap {
        source,
        departs: leaves,
        leaves,
        follows: leaves,
        lag: Duration::ZERO,
        handover: Duration::ZERO,
        begins: leaves + way.total(),
        ..gap
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_plan_delays_what_comes_after_it(
        situation in situation(Moved::Some),
        a in any::<proptest::sample::Index>(),
        stops in 1u8..=MOST_STOPS as u8,
        two in any::<bool>(),
        zero_latency in any::<bool>(),
    ) {
        let mut profile = Profile::clone(&situation.profile);
        profile.buffer.zero_latency_read = zero_latency;
        let profile = Arc::new(profile);
        let a = a.index(profile.geometry.sectors().0 as usize) as u64;
        let gap = gap_after(&situation, &profile, a);
        let rules = PlanRules {
            stops,
            ranges: if two { Ranges::Two } else { Ranges::One },
            same_track: situation.same_track,
            ..PlanRules::default()
        };
        let before = [(Direction::Read, extent(a, 1)), (gap.direction, gap.extent)];
        let without = ends(&profile, &before);
        let plan = Planner::new(Arc::clone(&profile)).plan(&situation.set(), &gap, &rules);
        if let Some(plan) = plan {
            let mut with = vec![before[0]];
            with.extend(actions(&plan, gap.direction, gap.extent));
            prop_assert!(ends(&profile, &with) <= without, "{plan:?}");
        }
    }
}
