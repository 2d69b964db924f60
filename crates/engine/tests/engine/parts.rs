//! Requests in parts: which commands they become, how durable, and how they end.

use std::sync::Arc;

use block::{
    Action, Class, Command, Direction, Durability, Duration, Extent, Instant, Lba, Outcome,
    Request, RequestId, Sectors, Status, Switch,
};
use drive::firmware::{LookAhead, WriteBack};
use drive::invented;
use engine::{Engine, Limits};
use scheduler::Preemption;
use scheduler::policy::find;
use scheduler::preemption::{Aside, Landing, LastChunk, When};

/// Chunks of four blocks, and nothing else but what a test switches on.
const RULES: Preemption = Preemption {
    chunk: Some(Sectors(4)),
    just_in_time: None,
    split: None,
    free_prefetch: Switch::Off,
    last_chunk: LastChunk::Buffered,
    aside: Some(Aside {
        fill: Switch::Off,
        most_permille: 1000,
    }),
    when: When::Always,
};

/// Whether the drive hides that parts are given one by one.
fn engine(rules: Preemption, has_buffer: bool) -> Engine {
    let mut belief = invented::profile();
    if has_buffer {
        belief.buffer.segments = 4;
        belief.buffer.segment_blocks = 64;
        belief.buffer.look_ahead = LookAhead::Segment;
        belief.buffer.write_back = WriteBack::All;
    }
    let policy = find("fcfs").expect("a policy of the table");
    let limits = Limits {
        patience: Duration::from_millis(PATIENCE),
        ..Limits::default()
    };
    let engine = Engine::new(Arc::new(belief), &|| policy.make(), limits);
    engine.with_preemption(rules)
}

/// In milliseconds: longer than most of these tests.
const PATIENCE: u64 = 1000;

fn request(id: u64, direction: Direction, (start, length): (u64, u64), priority: u8) -> Request {
    Request {
        id: RequestId(id),
        direction,
        extent: Extent::new(Lba(start), Sectors(length)).expect("an extent"),
        class: Class::BestEffort(priority),
        durability: Durability::Volatile,
        owner: block::Owner::NOBODY,
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// The blocks of a command, and how durable they have to be.
fn told(command: Command) -> (u64, u64, Durability) {
    match command.action {
        Action::Read { extent, durability } | Action::Write { extent, durability } => {
            (extent.start().0, extent.length().0, durability)
        }
        other => panic!("{other:?} is not a part"),
    }
}

fn end(engine: &mut Engine, now: Instant, command: Command, status: Status) {
    let outcome = Outcome {
        id: command.id,
        at: now,
        status,
        account: None,
    };
    engine.complete(now, command.id, outcome);
}

/// Ends whatever is given, one command a millisecond, until nothing is; the commands' blocks.
fn run(engine: &mut Engine, mut millis: u64) -> Vec<(u64, u64, Durability)> {
    let mut given = Vec::new();
    let mut at_drive: Vec<Command> = Vec::new();
    loop {
        at_drive.extend(std::iter::from_fn(|| engine.poll(at(millis))));
        if at_drive.is_empty() {
            return given;
        }
        let first = at_drive.remove(0);
        given.push(told(first));
        millis += 1;
        end(engine, at(millis), first, Status::Good);
    }
}

fn finished(engine: &mut Engine) -> Vec<(u64, Status)> {
    std::iter::from_fn(|| engine.poll_finished())
        .map(|finished| (finished.request.id.0, finished.status))
        .collect()
}

#[test]
fn a_request_ends_once_when_its_last_part_has() {
    for has_buffer in [false, true] {
        let mut engine = engine(RULES, has_buffer);
        let asked = request(1, Direction::Read, (100, 10), 3);
        engine.submit(at(0), asked).expect("room");
        let parts: Vec<_> = run(&mut engine, 0).iter().map(|it| (it.0, it.1)).collect();
        assert_eq!(parts, [(100, 4), (104, 4), (108, 2)]);
        assert_eq!(finished(&mut engine), [(1, Status::Good)]);
        assert_eq!(engine.held(), 0);
    }
}

#[test]
fn where_the_drive_reads_on_one_part_is_there_at_a_time_and_two_elsewhere() {
    for (has_buffer, most) in [(true, 1), (false, 2)] {
        let mut engine = engine(RULES, has_buffer);
        let asked = request(1, Direction::Read, (100, 40), 3);
        engine.submit(at(0), asked).expect("room");
        let first = engine.poll(at(0)).expect("a part");
        assert_eq!(engine.poll(at(1)).is_some(), most == 2);
        assert_eq!(engine.poll(at(2)), None);
        end(&mut engine, at(3), first, Status::Good);
        assert!(engine.poll(at(3)).is_some());
    }
}

/// Of two commands that come together a drive takes which it likes.
#[test]
fn the_second_part_is_given_when_the_drive_has_taken_up_the_first() {
    let mut engine = engine(RULES, false);
    let asked = request(1, Direction::Read, (100, 40), 3);
    engine.submit(at(0), asked).expect("room");
    assert!(engine.poll(at(0)).is_some());
    assert_eq!(engine.poll(at(0)), None);
    let then = engine.next_wakeup().expect("it waits for the drive");
    assert_eq!(then, at(0) + Duration::from_micros(20));
    assert!(engine.poll(then).is_some());
}

#[test]
fn the_first_error_of_its_parts_is_the_requests_and_no_more_are_given() {
    let mut engine = engine(RULES, false);
    let asked = request(1, Direction::Read, (100, 40), 3);
    engine.submit(at(0), asked).expect("room");
    let first = engine.poll(at(0)).expect("a part");
    let second = engine.poll(at(1)).expect("another");
    let bad = |block| Status::MediumError { at: Lba(block) };
    end(&mut engine, at(2), first, bad(101));
    assert_eq!(finished(&mut engine), [], "another part is at the drive");
    assert_eq!(engine.poll(at(3)), None);
    end(&mut engine, at(4), second, bad(105));
    assert_eq!(finished(&mut engine), [(1, bad(101))]);
    assert_eq!((engine.held(), engine.poll(at(5))), (0, None));
}

#[test]
fn something_urgent_goes_between_two_parts_and_the_rest_after_it() {
    let mut engine = engine(RULES, true);
    let bulk = request(1, Direction::Read, (100, 12), 3);
    engine.submit(at(0), bulk).expect("room");
    let first = engine.poll(at(0)).expect("a part");
    let urgent = request(2, Direction::Read, (2000, 2), 0);
    engine.submit(at(1), urgent).expect("room");
    let second = engine.poll(at(1)).expect("the urgent one");
    assert_eq!((told(first).0, told(second).0), (100, 2000));
    end(&mut engine, at(2), first, Status::Good);
    end(&mut engine, at(3), second, Status::Good);
    assert_eq!(finished(&mut engine), [(2, Status::Good)]);
    let rest: Vec<_> = run(&mut engine, 4).iter().map(|it| (it.0, it.1)).collect();
    assert_eq!(rest, [(104, 4), (108, 4)]);
    assert_eq!(finished(&mut engine), [(1, Status::Good)]);
    assert_eq!(engine.preemption().tally().aside, 1);
}

#[test]
fn what_overlaps_a_write_that_stepped_aside_waits_for_all_of_it() {
    let mut engine = engine(RULES, true);
    let write = request(1, Direction::Write, (100, 12), 3);
    engine.submit(at(0), write).expect("room");
    let first = engine.poll(at(0)).expect("a part");
    engine
        .submit(at(1), request(2, Direction::Read, (2000, 2), 0))
        .expect("room");
    let urgent = engine.poll(at(1)).map(told).expect("the urgent one");
    assert_eq!(urgent.0, 2000);
    // As urgent, but it overlaps what is still to be written: that becomes as urgent, and goes first.
    engine
        .submit(at(1), request(3, Direction::Read, (110, 2), 0))
        .expect("room");
    end(&mut engine, at(2), first, Status::Good);
    let mut order: Vec<u64> = vec![urgent.0];
    order.extend(run(&mut engine, 3).iter().map(|it| it.0));
    let place = |block| order.iter().position(|&start| start == block);
    assert!(
        place(110) > place(104) && place(110) > place(108),
        "{order:?}"
    );
}

#[test]
fn every_part_of_a_durable_write_is_durable_and_of_others_what_the_rule_says() {
    use Durability::{Durable, Volatile};
    let parts = |last_chunk, durability| {
        let mut engine = engine(
            Preemption {
                last_chunk,
                ..RULES
            },
            true,
        );
        let asked = request(1, Direction::Write, (100, 20), 3);
        engine
            .submit(
                at(0),
                Request {
                    durability,
                    ..asked
                },
            )
            .expect("room");
        run(&mut engine, 0)
            .iter()
            .map(|it| it.2)
            .collect::<Vec<_>>()
    };
    for last_chunk in [LastChunk::Buffered, LastChunk::Forced, LastChunk::Every(2)] {
        assert_eq!(parts(last_chunk, Durable), [Durable; 5]);
    }
    assert_eq!(parts(LastChunk::Buffered, Volatile), [Volatile; 5]);
    let forced = [Volatile, Volatile, Volatile, Volatile, Durable];
    assert_eq!(parts(LastChunk::Forced, Volatile), forced);
    let every = [Volatile, Durable, Volatile, Durable, Durable];
    assert_eq!(parts(LastChunk::Every(2), Volatile), every);
}

#[test]
fn reads_are_never_forced() {
    let rules = Preemption {
        last_chunk: LastChunk::Every(1),
        ..RULES
    };
    let mut engine = engine(rules, true);
    let asked = request(1, Direction::Read, (100, 8), 3);
    engine.submit(at(0), asked).expect("room");
    let parts = run(&mut engine, 0);
    assert!(
        parts.iter().all(|it| it.2 == Durability::Volatile),
        "{parts:?}"
    );
}

#[test]
fn a_part_that_comes_back_undone_is_done_again_and_no_other() {
    let mut engine = engine(RULES, true);
    let asked = request(1, Direction::Read, (100, 12), 3);
    engine.submit(at(0), asked).expect("room");
    let first = engine.poll(at(0)).expect("a part");
    end(&mut engine, at(1), first, Status::Good);
    let second = engine.poll(at(1)).expect("another");
    end(&mut engine, at(2), second, Status::TimedOut);
    let rest: Vec<_> = run(&mut engine, 2).iter().map(|it| (it.0, it.1)).collect();
    assert_eq!(rest, [(104, 4), (108, 4)]);
    assert_eq!(finished(&mut engine), [(1, Status::Good)]);
}

#[test]
fn what_stepped_aside_and_waits_can_be_taken_back() {
    let mut engine = engine(RULES, true);
    engine
        .submit(at(0), request(1, Direction::Read, (100, 12), 3))
        .expect("room");
    let first = engine.poll(at(0)).expect("a part");
    engine
        .submit(at(1), request(2, Direction::Read, (2000, 2), 0))
        .expect("room");
    let urgent = engine.poll(at(1)).expect("the urgent one");
    end(&mut engine, at(2), first, Status::Good);
    engine.abort(at(2), RequestId(1)).expect("its rest waits");
    end(&mut engine, at(3), urgent, Status::Good);
    let all = finished(&mut engine);
    assert_eq!(all, [(1, Status::Aborted), (2, Status::Good)]);
    assert_eq!((engine.held(), run(&mut engine, 4)), (0, vec![]));
}

#[test]
fn an_urgent_request_waits_for_no_part_of_another_as_urgent() {
    let mut engine = engine(RULES, true);
    engine
        .submit(at(0), request(1, Direction::Read, (100, 12), 3))
        .expect("room");
    let first = engine.poll(at(0)).expect("a part");
    engine
        .submit(at(1), request(2, Direction::Read, (2000, 2), 3))
        .expect("room");
    assert_eq!(engine.poll(at(1)), None, "nobody steps aside for his like");
    end(&mut engine, at(2), first, Status::Good);
    let order: Vec<u64> = run(&mut engine, 2).iter().map(|it| it.0).collect();
    assert_eq!(order, [104, 108, 2000]);
}

#[test]
fn what_has_waited_longer_than_the_patience_steps_aside_no_more() {
    let mut engine = engine(RULES, true);
    let bulk = request(1, Direction::Read, (100, 12), 3);
    engine.submit(at(0), bulk).expect("room");
    let first = engine.poll(at(PATIENCE - 1)).expect("a part");
    let urgent = request(2, Direction::Read, (2000, 2), 0);
    engine.submit(at(PATIENCE), urgent).expect("room");
    end(&mut engine, at(PATIENCE), first, Status::Good);
    let order: Vec<u64> = run(&mut engine, PATIENCE).iter().map(|it| it.0).collect();
    assert_eq!(order, [104, 108, 2000]);
}

#[test]
fn what_is_held_back_lets_something_urgent_pass() {
    let rules = Preemption {
        just_in_time: Some(Landing::Fixed(Duration::from_micros(100))),
        ..RULES
    };
    let mut engine = engine(rules, false);
    // One of these has to wait for its sector for long enough.
    let (bulk, held) = (0..10)
        .find_map(|n| {
            let bulk = 1500 + 4 * n;
            engine
                .submit(at(n), request(n, Direction::Read, (bulk, 4), 3))
                .expect("room");
            match engine.poll(at(n)) {
                None => Some((bulk, at(n))),
                Some(command) => {
                    end(&mut engine, at(n), command, Status::Good);
                    None
                }
            }
        })
        .expect("one that is held back");
    let then = engine.next_wakeup().expect("a moment at which it leaves");
    assert!(then > held);
    let urgent = request(100, Direction::Read, (100, 2), 0);
    engine.submit(held, urgent).expect("room");
    let first = engine.poll(held).expect("the urgent one, at once");
    assert_eq!(told(first).0, 100);
    end(&mut engine, then, first, Status::Good);
    let mut now = then;
    let second = loop {
        match engine.poll(now) {
            Some(command) => break command,
            None => now = engine.next_wakeup().expect("the other one leaves"),
        }
    };
    assert_eq!(told(second).0, bulk);
}
