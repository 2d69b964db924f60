//! Two actuators behind one engine: numbers, tasks, and what a drive of two answers.

use std::sync::Arc;

use block::{
    Class, Command, CommandId, Direction, Durability, Duration, Extent, Instant, Lba, Outcome,
    Refused, Request, RequestId, Sectors, Status, Terms,
};
use drive::{VirtualDrive, invented};
use proptest::prelude::*;
use scheduler::background::{Order, TaskPhase};
use scheduler::freeblock::WantedBlocks;
use scheduler::policy::find;
use stream::Piece;

use super::*;
use crate::TaskChange;
use crate::trial::promise;

mod mirrored;

fn extent(start: u64, blocks: u64) -> Extent {
    Extent::new(Lba(start), Sectors(blocks)).expect("an extent")
}

fn two() -> Arc<Profile> {
    let mut profile = invented::profile();
    profile.actuators = 2;
    Arc::new(profile)
}

/// The engine of a drive of two actuators.
fn engine(belief: &Arc<Profile>) -> Engine {
    let policy = find("sptf").expect("a policy of the table");
    Engine::new(Arc::clone(belief), &|| policy.make(), Limits::default())
}

fn request(id: u64, direction: Direction, extent: Extent) -> Request {
    Request {
        id: RequestId(id),
        direction,
        extent,
        class: Class::default(),
        durability: Durability::Volatile,
        owner: block::Owner::process(id as u32),
    }
}

/// Lets engine and drive go on until nothing is left to do. The answer is what was given to the drive.
fn serve(engine: &mut Engine, drive: &mut VirtualDrive, now: &mut Instant) -> Vec<Command> {
    let mut given = Vec::new();
    loop {
        while let Some(outcome) = drive.poll(*now) {
            engine.complete(*now, outcome.id, outcome);
        }
        while let Some(command) = engine.poll(*now) {
            drive.submit(*now, command).expect("the drive has room");
            given.push(command);
        }
        let wakeups = [drive.next_wakeup(), engine.next_wakeup()];
        match wakeups.into_iter().flatten().min() {
            Some(then) => *now = then.max(*now),
            None => return given,
        }
    }
}

proptest! {
    #[test]
    fn parts_of_an_extent_are_the_extent(border in 1..200u64, start in 0..300u64, blocks in 1..300u64) {
        let (edge, whole) = (Division::Border(Lba(border)), extent(start, blocks));
        let mut next = whole.start();
        for (side, part) in edge.parts(whole) {
            let of_drive = edge.of_drive(side, part);
            prop_assert_eq!(of_drive.start(), next);
            prop_assert_eq!(side == Side::First, of_drive.last() < Lba(border));
            next = of_drive.end();
            let command = Command::new(CommandId(7), block::Action::Seek { to: part.start() });
            let sent = edge.command_of_drive(side, command);
            prop_assert_eq!(division::arm_command(sent.id), (side, command.id));
            prop_assert_eq!(sent.action.extent(), Some(Extent::block(of_drive.start())));
            let status = Status::MediumError { at: part.last() };
            let reported = edge.status_of_drive(side, status);
            prop_assert_eq!(reported, Status::MediumError { at: of_drive.last() });
            prop_assert_eq!(edge.status_of_arm(side, reported), status);
        }
        prop_assert_eq!(next, whole.end());
        prop_assert_eq!(edge.only(whole).is_some(), edge.parts(whole).count() == 1);
    }
}

#[test]
fn both_arms_work_at_once_and_a_crossing_request_ends_with_the_later_part() {
    let belief = two();
    let (mut engine, border) = (engine(&belief), belief.share_end(0));
    let mut drive = VirtualDrive::new(Arc::clone(&belief));
    let mut now = Instant::ZERO;
    for (id, whole) in [(1, extent(10, 4)), (2, extent(border + 10, 4))] {
        let read = request(id, Direction::Read, whole);
        engine.submit(now, read).expect("room");
    }
    let crossing = request(3, Direction::Write, extent(border - 3, 8));
    engine.submit(now, crossing).expect("room");
    assert_eq!(engine.held(), 3);
    let given = serve(&mut engine, &mut drive, &mut now);
    let extents: Vec<Option<Extent>> = given.iter().map(|it| it.action.extent()).collect();
    for part in [extent(border - 3, 3), extent(border, 5)] {
        assert!(extents.contains(&Some(part)), "{part} of {extents:?}");
    }
    assert_eq!(given.len(), 4);
    let mut ends: Vec<Finished> = std::iter::from_fn(|| engine.poll_finished()).collect();
    assert_eq!(engine.held(), 0);
    ends.sort_by_key(|end| end.request.id);
    assert_eq!(ends[2].request, crossing);
    assert!(ends.iter().all(|end| end.status == Status::Good));
    // They overlap: each began at once.
    let took: u64 = ends[..2].iter().map(|end| end.response().as_nanos()).sum();
    let latest = ends[..2].iter().map(|end| end.at).max();
    assert!(latest < Some(Instant::from_nanos(took)), "{ends:?}");
}

#[test]
fn an_error_of_the_second_arm_is_told_in_the_blocks_of_the_drive() {
    let belief = two();
    let (mut engine, border) = (engine(&belief), belief.share_end(0));
    let crossing = request(5, Direction::Read, extent(border - 2, 4));
    engine.submit(Instant::ZERO, crossing).expect("room");
    let commands: Vec<Command> = std::iter::from_fn(|| engine.poll(Instant::ZERO)).collect();
    assert_eq!(commands.len(), 2);
    for command in &commands {
        assert_eq!(engine.request_of(command.id), Some(crossing));
        let of_second = command.action.extent() == Some(extent(border, 2));
        let status = match of_second {
            true => Status::MediumError {
                at: Lba(border + 1),
            },
            false => Status::Good,
        };
        let outcome = Outcome {
            id: command.id,
            at: Instant::from_nanos(5),
            status,
            account: None,
        };
        engine.complete(Instant::from_nanos(5), command.id, outcome);
    }
    let ended = engine.poll_finished().expect("both parts have ended");
    assert_eq!(ended.request, crossing);
    assert_eq!(
        ended.status,
        Status::MediumError {
            at: Lba(border + 1)
        }
    );
    assert_eq!(engine.poll_finished(), None);
}

#[test]
fn the_limits_hold_for_both_arms_together() {
    let belief = two();
    let policy = find("fcfs").expect("a policy of the table");
    let limits = Limits {
        requests: 3,
        reserved_for_real_time: 0,
        ..Limits::default()
    };
    let mut engine = Engine::new(Arc::clone(&belief), &|| policy.make(), limits);
    let border = belief.share_end(0);
    for (id, start) in [(1, border - 1), (2, border), (3, 0)] {
        let read = request(id, Direction::Read, extent(start, 2));
        assert_eq!(engine.submit(Instant::ZERO, read), Ok(()));
    }
    let more = request(4, Direction::Read, extent(border - 1, 2));
    let full = Err(Refused::Full { limit: 3 });
    assert_eq!(engine.submit(Instant::ZERO, more), full);
    let capacity = belief.geometry.sectors().0;
    let beyond = request(5, Direction::Read, extent(capacity - 1, 2));
    let past_end = Refused::PastEnd {
        extent: beyond.extent,
        capacity,
    };
    assert_eq!(engine.submit(Instant::ZERO, beyond), Err(past_end));
}

#[test]
fn a_flush_ends_when_both_arms_have_flushed() {
    let belief = two();
    let mut engine = engine(&belief);
    let mut drive = VirtualDrive::new(Arc::clone(&belief));
    let mut now = Instant::ZERO;
    engine.flush(now, RequestId(1)).expect("room");
    engine.flush(now, RequestId(2)).expect("room");
    let given = serve(&mut engine, &mut drive, &mut now);
    assert_eq!(given.len(), 2, "one command of each arm: {given:?}");
    let ended: Vec<RequestId> = std::iter::from_fn(|| engine.poll_flushed())
        .map(|flushed| flushed.id)
        .collect();
    assert_eq!(ended, [RequestId(1), RequestId(2)]);
}

#[test]
fn a_task_over_the_drive_is_read_by_both_arms_and_ends_once() {
    let belief = two();
    let rules = Rules {
        idle_after: Some(Duration::ZERO),
        ..Rules::default()
    };
    let mut engine = engine(&belief).with_background(rules);
    let mut drive = VirtualDrive::new(Arc::clone(&belief));
    let mut now = Instant::ZERO;
    let order = |wanted| Order {
        wanted,
        priority: 0,
        deadline: None,
    };
    let all = WantedBlocks::all(&belief.geometry);
    let scan = engine.begin_task(now, order(all)).expect("a task");
    let blocks = belief.geometry.sectors();
    let begun = engine.task(scan).expect("a task under way");
    assert_eq!((begun.asked, begun.left), (blocks, blocks));
    assert_eq!(engine.left(scan).expect("its blocks").left(), blocks.0);
    // A task of one arm's blocks alone, which ends first.
    let mut wanted = WantedBlocks::none(&belief.geometry);
    wanted.add(extent(3, 5)).expect("blocks of the drive");
    let small = engine.begin_task(now, order(wanted)).expect("a task");
    assert_ne!(scan, small);
    let given = serve(&mut engine, &mut drive, &mut now);
    let mut read = vec![0; blocks.0 as usize];
    for command in &given {
        let extent = command.action.extent().expect("a read");
        (extent.start().0..extent.end().0).for_each(|block| read[block as usize] += 1);
    }
    assert!(read.iter().all(|&times| times == 1), "every block once");
    for (task, asked) in [(scan, blocks), (small, Sectors(5))] {
        let progress = engine.task(task).expect("not forgotten yet");
        assert_eq!(progress.state, TaskPhase::Finished);
        assert_eq!((progress.asked, progress.left), (asked, Sectors(0)));
        assert_eq!(progress.account.blocks(), asked);
        assert!(progress.ended.is_some());
    }
    assert!(engine.change_task(now, scan, TaskChange::Suspend).is_err());
}

#[test]
fn a_narrowed_task_loses_the_blocks_of_both_arms_and_ends_without_any() {
    let belief = two();
    let mut engine = engine(&belief).with_background(Rules::default());
    let (now, border) = (Instant::ZERO, belief.share_end(0));
    let mut wanted = WantedBlocks::none(&belief.geometry);
    let all = extent(border - 8, 16);
    wanted.add(all).expect("blocks of the drive");
    let order = Order {
        wanted,
        priority: 0,
        deadline: None,
    };
    let task = engine.begin_task(now, order).expect("a task");
    let mut narrow = |extents: &[Extent]| engine.narrow_task(now, task, extents);
    let surplus = [extent(border - 8, 4), extent(border - 1, 2)];
    assert_eq!(narrow(&surplus), Ok(()));
    // The second arm's part ends first.
    assert_eq!(narrow(&[extent(border, 8)]), Ok(()));
    let left = engine.left(task).expect("its blocks");
    let extents: Vec<Extent> = left.extents().collect();
    assert_eq!(extents, [extent(border - 4, 3)]);
    assert_eq!(engine.narrow_task(now, task, &[all]), Ok(()));
    let state = engine.task(task).map(|task| task.state);
    assert_eq!(state, Some(TaskPhase::Finished));
    assert!(engine.narrow_task(now, task, &[all]).is_err());
}

#[test]
fn the_blocks_of_a_standing_task_are_those_of_their_arms() {
    let belief = two();
    let mut engine = engine(&belief).with_background(Rules::default());
    let (now, border) = (Instant::ZERO, belief.share_end(0));
    let capacity = belief.geometry.sectors().0;
    let task = engine.begin_standing_task(now, 0).expect("the first one");
    assert!(engine.begin_standing_task(now, 0).is_err());
    let mut change = |change| engine.change_task(now, task, change);
    assert_eq!(change(TaskChange::Want(extent(border - 4, 8))), Ok(()));
    assert_eq!(change(TaskChange::Unwant(extent(border - 1, 2))), Ok(()));
    assert!(change(TaskChange::Want(extent(border - 8, capacity))).is_err());
    let left = engine.left(task).expect("its blocks");
    let extents: Vec<Extent> = left.extents().collect();
    assert_eq!(extents, [extent(border - 4, 3), extent(border + 1, 3)]);
}

#[test]
fn streams_lie_on_the_blocks_of_the_first_actuator() {
    let belief = two();
    let border = belief.share_end(0);
    let promise = Promise {
        place: Some(extent(100, border)),
        ..promise()
    };
    let mut engine = engine(&belief).with_guarantees(promise).expect("a curve");
    let mut attach = |first: u64| {
        let piece = Piece {
            offset: 0,
            extent: extent(first, 80),
        };
        let attach = Attach {
            user: 0,
            terms: Terms {
                memory: Some(1_000_000),
                ..Terms::play(10_000, 4_096)
            },
            map: LocationMap::new(vec![piece], 512, 80 * 512).expect("a valid map"),
        };
        engine.attach(Instant::ZERO, attach).map(|_| ())
    };
    let place = extent(100, border - 100);
    for first in [border - 40, border + 100, 50] {
        let extent = extent(first, 80);
        assert_eq!(attach(first), Err(NotGranted::Outside { extent, place }));
    }
    let granted = attach(border - 80);
    assert!(
        !matches!(granted, Err(NotGranted::Outside { .. })),
        "{granted:?}"
    );
}

#[test]
fn the_counts_of_two_actuators_are_added() {
    let counted = |n: u64| crate::Preempted {
        parts: n,
        aside: 2 * n,
        back: Duration::from_nanos(3 * n),
        filled: 4 * n,
        held: 5 * n,
        missed: 6 * n,
        hops: 7 * n,
        read_ahead: Sectors(8 * n),
    };
    assert_eq!(reports::sum(counted(30), counted(12)), counted(42));
}

#[test]
fn a_flush_ends_with_the_later_arm() {
    for order in [[0, 1], [1, 0]] {
        let mut engine = engine(&two());
        engine.flush(Instant::ZERO, RequestId(1)).expect("room");
        let given: Vec<Command> = std::iter::from_fn(|| engine.poll(Instant::ZERO)).collect();
        for (place, at) in order.into_iter().zip([5, 9]) {
            let outcome = Outcome {
                id: given[place].id,
                at: Instant::from_nanos(at),
                status: Status::Good,
                account: None,
            };
            engine.complete(outcome.at, outcome.id, outcome);
        }
        let flushed = engine.poll_flushed().expect("both have ended");
        assert_eq!(flushed.at, Instant::from_nanos(9));
    }
}

#[test]
fn as_many_flushes_are_held_as_requests_may_be() {
    let policy = find("fcfs").expect("a policy of the table");
    let limits = Limits {
        requests: 3,
        reserved_for_real_time: 0,
        ..Limits::default()
    };
    let mut engine = Engine::new(two(), &|| policy.make(), limits);
    for id in 0..3 {
        assert_eq!(engine.flush(Instant::ZERO, RequestId(id)), Ok(()));
    }
    let full = Err(Refused::Full { limit: 3 });
    assert_eq!(engine.flush(Instant::ZERO, RequestId(3)), full);
}

/// Both arms have begun with their parts: the request is known, and none of it waits.
#[test]
fn a_request_at_both_arms_is_no_longer_changed() {
    let belief = two();
    let (mut engine, border) = (engine(&belief), belief.share_end(0));
    let (now, id) = (Instant::ZERO, RequestId(1));
    let whole = extent(border - 2, 4);
    let changed = |engine: &mut Engine| {
        let class = Class::BestEffort(0);
        [engine.upgrade(now, id, whole, class), engine.abort(now, id)]
    };
    assert_eq!(changed(&mut engine), [Err(Unchanged::Unknown { id }); 2]);
    engine
        .submit(now, request(1, Direction::Read, whole))
        .expect("room");
    let one = engine.poll(now).expect("one arm's part");
    assert_eq!(changed(&mut engine), [Ok(()); 2]);
    engine
        .submit(now, request(2, Direction::Read, whole))
        .expect("room");
    let id = RequestId(2);
    let given = std::iter::from_fn(|| engine.poll(now)).count();
    assert!(given > 0, "{one:?}");
    assert_eq!(engine.abort(now, id), Err(Unchanged::NotWaiting { id }));
}
