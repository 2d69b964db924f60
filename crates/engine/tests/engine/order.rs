//! What goes before what: overlap, barriers, levels, upgrades, what is taken back or given back,
//! turns, reserved slots.

use std::sync::Arc;

use block::{
    Action, Class, Command, Direction, Duration, Extent, Instant, Lba, Outcome, Refused, Request,
    RequestId, Sectors, Status,
};
use drive::invented;
use engine::{Engine, Limits, Unchanged};
use scheduler::ordering::Phases;
use scheduler::policy::find;

use Direction::{Read, Write};

const NOW: Instant = Instant::ZERO;
const REAL_TIME: Class = Class::RealTime {
    deadline: Instant::ZERO,
};

/// First come, first served at each level, so that all that is out of order is the mechanism's.
fn engine(limits: Limits) -> Engine {
    let policy = find("fcfs").expect("a policy of the table");
    Engine::new(Arc::new(invented::profile()), &|| policy.make(), limits)
}

fn limits(commands_at_drive: usize) -> Limits {
    Limits {
        commands_at_drive,
        ..Limits::default()
    }
}

fn blocks(start: u64, length: u64) -> Extent {
    Extent::new(Lba(start), Sectors(length)).expect("a valid extent")
}

fn submit(engine: &mut Engine, id: u64, direction: Direction, extent: Extent, class: Class) {
    let request = Request {
        id: RequestId(id),
        direction,
        extent,
        class,
        durability: block::Durability::Volatile,
        owner: block::Owner::NOBODY,
    };
    engine.submit(NOW, request).expect("there is room");
}

/// A request of the middle best-effort priority.
fn ordinary(engine: &mut Engine, id: u64, direction: Direction, extent: Extent) {
    submit(engine, id, direction, extent, Class::default());
}

/// All commands that the drive is given now, with the request and its blocks.
fn given(engine: &mut Engine) -> Vec<(Command, u64, Extent)> {
    let mut given = Vec::new();
    while let Some(command) = engine.poll(NOW) {
        let extent = command.action.extent().expect("a read or a write");
        given.push((command, name(engine, command), extent));
    }
    given
}

fn requests(given: &[(Command, u64, Extent)]) -> Vec<u64> {
    given.iter().map(|&(_, request, _)| request).collect()
}

fn end(engine: &mut Engine, command: Command, status: Status) {
    let outcome = Outcome {
        id: command.id,
        at: NOW,
        status,
        account: None,
    };
    engine.complete(NOW, command.id, outcome);
}

/// The request that a command serves.
fn name(engine: &Engine, command: Command) -> u64 {
    let request = engine.request_of(command.id);
    request.expect("no background reads").id.0
}

/// One command at the drive at a time: the requests in the order in which the drive gets them.
fn served(engine: &mut Engine) -> Vec<u64> {
    let mut order = Vec::new();
    while let Some(command) = engine.poll(NOW) {
        order.push(name(engine, command));
        end(engine, command, Status::Good);
    }
    order
}

fn finished(engine: &mut Engine) -> Vec<(u64, Status)> {
    std::iter::from_fn(|| engine.poll_finished())
        .map(|finished| (finished.request.id.0, finished.status))
        .collect()
}

#[test]
fn what_conflicts_is_never_at_the_drive_at_once() {
    for (first, second, overlap, together) in [
        (Read, Read, 1, true),
        (Read, Write, 1, false),
        (Write, Read, 1, false),
        (Write, Write, 1, false),
        (Write, Write, 0, true),
        (Read, Write, 0, true),
        (Write, Read, 0, true),
    ] {
        let name = format!("{first:?}, {second:?}, {overlap} common");
        // The first is at the drive when the second comes, or waits.
        for is_at_drive in [true, false] {
            let mut engine = engine(limits(4));
            ordinary(&mut engine, 0, first, blocks(10, 10));
            let mut at_drive = Vec::new();
            if is_at_drive {
                at_drive.extend(given(&mut engine));
            }
            // More urgent, and still not before.
            submit(&mut engine, 1, second, blocks(20 - overlap, 10), REAL_TIME);
            at_drive.extend(given(&mut engine));
            assert_eq!(at_drive.len() == 2, together, "{name}");
            if !together {
                assert_eq!(requests(&at_drive), [0], "{name}");
                end(&mut engine, at_drive[0].0, Status::Good);
                assert_eq!(requests(&given(&mut engine)), [1], "{name}");
            }
        }
    }
}

#[test]
fn those_that_a_third_one_joins_stay_free_of_each_other() {
    let mut engine = engine(limits(8));
    ordinary(&mut engine, 0, Write, blocks(0, 10));
    ordinary(&mut engine, 1, Write, blocks(20, 10));
    ordinary(&mut engine, 2, Read, blocks(5, 20));
    ordinary(&mut engine, 3, Write, blocks(12, 2));
    ordinary(&mut engine, 4, Read, blocks(0, 3));
    ordinary(&mut engine, 5, Read, blocks(15, 3));
    let first = given(&mut engine);
    assert_eq!(requests(&first), [0, 1, 5]);
    end(&mut engine, first[1].0, Status::Good);
    assert_eq!(requests(&given(&mut engine)), []);
    end(&mut engine, first[0].0, Status::Good);
    let second = given(&mut engine);
    assert_eq!(requests(&second), [2, 4]);
    end(&mut engine, second[0].0, Status::Good);
    assert_eq!(requests(&given(&mut engine)), [3]);
}

#[test]
fn writes_never_pass_a_barrier_and_reads_do() {
    let mut engine = engine(limits(8));
    ordinary(&mut engine, 0, Write, blocks(0, 1));
    ordinary(&mut engine, 1, Write, blocks(10, 1));
    engine.barrier(NOW);
    engine.barrier(NOW);
    submit(&mut engine, 2, Write, blocks(20, 1), REAL_TIME);
    ordinary(&mut engine, 3, Read, blocks(30, 1));
    ordinary(&mut engine, 4, Read, blocks(20, 1));
    engine.barrier(NOW);
    ordinary(&mut engine, 5, Write, blocks(40, 1));
    let first = given(&mut engine);
    assert_eq!(requests(&first), [0, 1, 3]);
    end(&mut engine, first[0].0, Status::Good);
    assert_eq!(requests(&given(&mut engine)), []);
    end(&mut engine, first[1].0, Status::Good);
    let second = given(&mut engine);
    assert_eq!(requests(&second), [2]);
    end(&mut engine, second[0].0, Status::Good);
    assert_eq!(requests(&given(&mut engine)), [4, 5]);
}

#[test]
fn a_barrier_holds_while_a_write_before_it_is_given_back_or_taken_back() {
    let mut engine = engine(limits(8));
    ordinary(&mut engine, 0, Write, blocks(0, 1));
    let first = given(&mut engine);
    ordinary(&mut engine, 1, Write, blocks(0, 1));
    engine.barrier(NOW);
    ordinary(&mut engine, 2, Write, blocks(20, 1));
    end(&mut engine, first[0].0, Status::TimedOut);
    let again = given(&mut engine);
    assert_eq!(requests(&again), [0]);
    engine.abort(NOW, RequestId(1)).expect("it waits");
    assert_eq!(requests(&given(&mut engine)), []);
    end(&mut engine, again[0].0, Status::Good);
    assert_eq!(requests(&given(&mut engine)), [2]);
}

#[test]
fn levels_are_served_in_their_order() {
    let mut engine = engine(limits(1));
    submit(&mut engine, 0, Read, blocks(0, 1), Class::Background);
    for priority in 0..7 {
        let class = Class::BestEffort(6 - priority);
        let id = 1 + u64::from(priority);
        submit(&mut engine, id, Read, blocks(10 * id, 1), class);
    }
    submit(&mut engine, 8, Write, blocks(80, 1), REAL_TIME);
    assert_eq!(served(&mut engine), [8, 7, 6, 5, 4, 3, 2, 1, 0]);
}

#[test]
fn what_something_urgent_waits_for_is_as_urgent() {
    let mut engine = engine(limits(1));
    ordinary(&mut engine, 0, Read, blocks(0, 1));
    submit(&mut engine, 1, Write, blocks(10, 1), Class::Background);
    submit(&mut engine, 2, Write, blocks(20, 1), Class::BestEffort(6));
    submit(&mut engine, 3, Read, blocks(20, 1), Class::Background);
    engine.barrier(NOW);
    // It waits for 1 and 2 because of the barrier, and for 3 because of its block.
    submit(&mut engine, 4, Write, blocks(20, 1), REAL_TIME);
    assert_eq!(served(&mut engine), [1, 2, 3, 4, 0]);
}

#[test]
fn an_upgrade_divides_and_raises_only_what_is_wanted() {
    let mut engine = engine(limits(1));
    ordinary(&mut engine, 0, Read, blocks(500, 1));
    submit(&mut engine, 1, Read, blocks(100, 50), Class::Background);
    let wanted = blocks(110, 20);
    let upgraded = engine.upgrade(NOW, RequestId(1), wanted, REAL_TIME);
    upgraded.expect("it waits");
    let mut order = Vec::new();
    for status in [
        Status::Good,
        Status::Good,
        Status::MediumError { at: Lba(105) },
        Status::Good,
    ] {
        let next = given(&mut engine);
        order.push((next[0].1, next[0].2));
        assert_eq!(finished(&mut engine).len(), usize::from(order.len() == 3));
        end(&mut engine, next[0].0, status);
    }
    let parts = [
        (1, wanted),
        (0, blocks(500, 1)),
        (1, blocks(100, 10)),
        (1, blocks(130, 20)),
    ];
    assert_eq!(order, parts);
    let status = Status::MediumError { at: Lba(105) };
    assert_eq!(finished(&mut engine), [(1, status)]);
}

#[test]
fn an_upgrade_raises_what_the_wanted_part_waits_for_and_nothing_else() {
    let mut engine = engine(limits(1));
    ordinary(&mut engine, 0, Read, blocks(500, 1));
    submit(&mut engine, 1, Write, blocks(100, 5), Class::Background);
    submit(&mut engine, 2, Write, blocks(140, 5), Class::BestEffort(6));
    submit(&mut engine, 3, Read, blocks(100, 45), Class::Background);
    let upgraded = engine.upgrade(NOW, RequestId(3), blocks(144, 1), Class::BestEffort(0));
    upgraded.expect("it waits");
    let mut order = Vec::new();
    while let Some(next) = given(&mut engine).first() {
        order.push((next.1, next.2.start().0));
        end(&mut engine, next.0, Status::Good);
    }
    let expected = [(2, 140), (3, 144), (0, 500), (1, 100), (3, 100)];
    assert_eq!(order, expected);
}

#[test]
fn what_waited_for_a_whole_request_waits_for_all_its_parts() {
    let mut engine = engine(limits(8));
    ordinary(&mut engine, 0, Write, blocks(0, 100));
    let held = given(&mut engine);
    ordinary(&mut engine, 1, Write, blocks(0, 100));
    ordinary(&mut engine, 2, Read, blocks(10, 50));
    let upgraded = engine.upgrade(NOW, RequestId(1), blocks(20, 10), REAL_TIME);
    upgraded.expect("it waits");
    end(&mut engine, held[0].0, Status::Good);
    let parts = given(&mut engine);
    let extents: Vec<Extent> = parts.iter().map(|part| part.2).collect();
    assert_eq!(extents, [blocks(20, 10), blocks(0, 20), blocks(30, 70)]);
    end(&mut engine, parts[0].0, Status::Good);
    end(&mut engine, parts[2].0, Status::Good);
    assert_eq!(requests(&given(&mut engine)), []);
    end(&mut engine, parts[1].0, Status::Good);
    assert_eq!(requests(&given(&mut engine)), [2]);
}

#[test]
fn a_request_that_cannot_be_divided_any_more_is_raised_as_a_whole() {
    let mut engine = engine(Limits {
        requests: 1,
        reserved_for_real_time: 0,
        ..limits(1)
    });
    ordinary(&mut engine, 0, Read, blocks(0, 100));
    // Two pieces for each request that may be held: three are one too many.
    let upgraded = engine.upgrade(NOW, RequestId(0), blocks(20, 10), REAL_TIME);
    upgraded.expect("it waits");
    assert_eq!(given(&mut engine)[0].2, blocks(0, 100));
}

#[test]
fn what_cannot_be_changed_is_told_by_name() {
    let mut engine = engine(limits(1));
    ordinary(&mut engine, 7, Read, blocks(0, 10));
    let id = RequestId(7);
    let mut upgrade = |id, part, class| {
        engine
            .upgrade(NOW, id, part, class)
            .map_err(|e| e.to_string())
    };
    for (problem, expected) in [
        (
            upgrade(RequestId(8), blocks(0, 1), REAL_TIME),
            "request 8 is not held: it ended, or never came",
        ),
        (
            upgrade(id, blocks(10, 1), REAL_TIME),
            "blocks 10..11 are not of request 7, which has blocks 0..10",
        ),
        (
            upgrade(id, blocks(0, 1), Class::BestEffort(7)),
            "best-effort priority 7: expected 0 (most urgent) to 6",
        ),
    ] {
        assert_eq!(problem, Err(expected.to_owned()));
    }
    given(&mut engine);
    let gone = Err(Unchanged::NotWaiting { id });
    assert_eq!(engine.upgrade(NOW, id, blocks(0, 1), REAL_TIME), gone);
    assert_eq!(engine.abort(NOW, id), gone);
    let request = Request {
        id,
        direction: Read,
        extent: blocks(0, 1),
        class: Class::BestEffort(7),
        durability: block::Durability::Volatile,
        owner: block::Owner::NOBODY,
    };
    let refused = engine.submit(NOW, request);
    assert_eq!(refused, Err(Refused::Priority { priority: 7 }));
}

#[test]
fn a_waiting_request_is_taken_back_once() {
    let mut engine = engine(limits(1));
    ordinary(&mut engine, 0, Write, blocks(0, 10));
    ordinary(&mut engine, 1, Write, blocks(5, 10));
    ordinary(&mut engine, 2, Read, blocks(12, 10));
    engine.abort(NOW, RequestId(1)).expect("it waits");
    let unknown = engine.abort(NOW, RequestId(1));
    assert_eq!(unknown, Err(Unchanged::NotWaiting { id: RequestId(1) }));
    assert_eq!(finished(&mut engine), [(1, Status::Aborted)]);
    let unknown = engine.abort(NOW, RequestId(1));
    assert_eq!(unknown, Err(Unchanged::Unknown { id: RequestId(1) }));
    // What was behind another one goes before what the policy has.
    assert_eq!(served(&mut engine), [2, 0]);
    let ends = [(2, Status::Good), (0, Status::Good)];
    assert_eq!(finished(&mut engine), ends);
}

#[test]
fn a_request_of_which_a_part_is_at_the_drive_ends_after_it() {
    let mut engine = engine(limits(1));
    ordinary(&mut engine, 0, Write, blocks(0, 10));
    let upgraded = engine.upgrade(NOW, RequestId(0), blocks(0, 5), REAL_TIME);
    upgraded.expect("it waits");
    let first = given(&mut engine);
    engine.abort(NOW, RequestId(0)).expect("a part waits");
    assert_eq!(finished(&mut engine), []);
    assert_eq!(requests(&given(&mut engine)), []);
    end(&mut engine, first[0].0, Status::Good);
    assert_eq!(finished(&mut engine), [(0, Status::Aborted)]);
    assert_eq!(engine.held(), 0);
}

#[test]
fn what_the_drive_gives_back_goes_first_once() {
    let mut engine = engine(limits(2));
    for id in 0..4 {
        ordinary(&mut engine, id, Read, blocks(10 * id, 1));
    }
    let first = given(&mut engine);
    end(&mut engine, first[0].0, Status::TimedOut);
    end(&mut engine, first[1].0, Status::TimedOut);
    let second = given(&mut engine);
    assert_eq!(requests(&second), [1, 0], "the last one goes first");
    assert_eq!(engine.dispatch().retried(), 2);
    end(&mut engine, second[0].0, Status::TimedOut);
    assert_eq!(finished(&mut engine), [(1, Status::TimedOut)]);
    end(&mut engine, second[1].0, Status::Good);
    assert_eq!(finished(&mut engine), [(0, Status::Good)]);
    assert_eq!((engine.dispatch().retried(), engine.held()), (2, 2));
}

#[test]
fn reads_and_writes_take_turns_if_they_are_told_to() {
    let turns = Phases::Alternate {
        read: Duration::from_millis(3),
        write: Duration::from_millis(2),
    };
    let mut engine = engine(Limits {
        phases: turns,
        ..limits(1)
    });
    for id in 0..6 {
        let class = Class::BestEffort(6 - id as u8);
        submit(&mut engine, id, Write, blocks(10 * id, 1), class);
        submit(&mut engine, 10 + id, Read, blocks(10 * id + 5, 1), class);
    }
    submit(&mut engine, 99, Write, blocks(99, 1), REAL_TIME);
    let mut order = Vec::new();
    // Each takes a millisecond.
    for millis in 0..13 {
        let now = NOW + Duration::from_millis(millis);
        let command = engine.poll(now).expect("something waits");
        order.push(name(&engine, command));
        let outcome = Outcome {
            id: command.id,
            at: now,
            status: Status::Good,
            account: None,
        };
        engine.complete(now, command.id, outcome);
    }
    // Real-time at once; a turn of reads, one of writes, and so on; in each by priority.
    assert_eq!(order, [99, 15, 14, 5, 4, 13, 12, 11, 3, 2, 10, 1, 0]);
}

#[test]
fn the_last_slots_are_for_real_time_requests() {
    let mut engine = engine(Limits {
        requests: 5,
        reserved_for_real_time: 2,
        ..limits(1)
    });
    let mut offer = |id, class| {
        let request = Request {
            id: RequestId(id),
            direction: Read,
            extent: blocks(id, 1),
            class,
            durability: block::Durability::Volatile,
            owner: block::Owner::NOBODY,
        };
        engine.submit(NOW, request)
    };
    // Background requests, which wait for long, leave half of the others to more urgent ones.
    let background = [0, 1, 2].map(|id| offer(id, Class::Background).is_ok());
    assert_eq!(background, [true, true, false]);
    assert_eq!(offer(2, Class::BestEffort(0)), Ok(()));
    assert_eq!(
        offer(3, Class::BestEffort(0)),
        Err(Refused::Full { limit: 3 })
    );
    assert_eq!(offer(3, Class::Background), Err(Refused::Full { limit: 2 }));
    assert_eq!(offer(3, REAL_TIME), Ok(()));
    assert_eq!(offer(4, REAL_TIME), Ok(()));
    assert_eq!(offer(5, REAL_TIME), Err(Refused::Full { limit: 5 }));
}

#[test]
fn waiting_behind_others_is_told_apart() {
    let mut engine = engine(limits(1));
    let at = |millis| NOW + Duration::from_millis(millis);
    ordinary(&mut engine, 0, Write, blocks(0, 1));
    ordinary(&mut engine, 1, Read, blocks(10, 1));
    ordinary(&mut engine, 2, Read, blocks(0, 1));
    let mut waited = Vec::new();
    for millis in [5, 8, 12] {
        let command = engine.poll(at(millis - 1)).expect("something waits");
        let id = command.id;
        let outcome = Outcome {
            id,
            at: at(millis),
            status: Status::Good,
            account: None,
        };
        engine.complete(at(millis), id, outcome);
        let finished = engine.poll_finished().expect("it has ended");
        waited.push((
            finished.request.id.0,
            finished.waited.as_nanos() / 1_000_000,
            finished.waited_order.as_nanos() / 1_000_000,
        ));
    }
    assert_eq!(waited, [(0, 4, 0), (2, 7, 5), (1, 11, 0)]);
}

#[test]
fn a_command_says_which_way_its_bytes_go() {
    let mut engine = engine(limits(2));
    ordinary(&mut engine, 0, Write, blocks(0, 1));
    ordinary(&mut engine, 1, Read, blocks(1, 1));
    let given = given(&mut engine);
    assert!(matches!(given[0].0.action, Action::Write { .. }));
    assert!(matches!(given[1].0.action, Action::Read { .. }));
}
