//! Flushes and writes that are to be on the medium: what the drive is told, and when clients are.

use std::sync::Arc;

use block::{
    Action, Class, Command, CommandId, Direction, Durability, Extent, Instant, Lba, Outcome,
    Refused, Request, RequestId, Sectors, Status,
};
use drive::invented;
use engine::{Engine, Flushed, Limits};
use scheduler::policy::find;

fn engine(limits: Limits) -> Engine {
    let policy = find("sptf").expect("a policy of the table");
    Engine::new(Arc::new(invented::profile()), &|| policy.make(), limits)
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn write(id: u64, durability: Durability) -> Request {
    Request {
        id: RequestId(id),
        direction: Direction::Write,
        extent: Extent::new(Lba(id * 100), Sectors(8)).expect("an extent"),
        class: Class::default(),
        durability,
        owner: block::Owner::NOBODY,
    }
}

fn end(engine: &mut Engine, now: Instant, id: CommandId, status: Status) {
    let outcome = Outcome {
        id,
        at: now,
        status,
        account: None,
    };
    engine.complete(now, id, outcome);
}

fn polled(engine: &mut Engine, now: Instant) -> Vec<Command> {
    std::iter::from_fn(|| engine.poll(now)).collect()
}

fn flushed(engine: &mut Engine) -> Vec<(u64, Status)> {
    let ends = std::iter::from_fn(|| engine.poll_flushed());
    ends.map(|Flushed { id, status, .. }| (id.0, status))
        .collect()
}

#[test]
fn the_drive_is_told_which_writes_are_to_be_on_the_medium() {
    let mut engine = engine(Limits::default());
    for (id, durability) in [(1, Durability::Durable), (2, Durability::Volatile)] {
        let now = at(id);
        engine.submit(now, write(id, durability)).expect("room");
        let commands = polled(&mut engine, now);
        let [
            Command {
                id,
                action: Action::Write {
                    durability: told, ..
                },
                ..
            },
        ] = commands[..]
        else {
            panic!("{commands:?}");
        };
        assert_eq!(told, durability);
        end(&mut engine, now, id, Status::Good);
    }
}

#[test]
fn flushes_that_wait_share_a_command_and_later_ones_need_another() {
    let mut engine = engine(Limits::default());
    engine.flush(at(0), RequestId(1)).expect("room");
    engine.flush(at(0), RequestId(2)).expect("room");
    let first = polled(&mut engine, at(0));
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].action, Action::Flush);
    engine.flush(at(5), RequestId(3)).expect("room");
    assert_eq!(
        polled(&mut engine, at(5)),
        [],
        "writes may have ended since"
    );
    assert_eq!(flushed(&mut engine), []);
    end(&mut engine, at(9), first[0].id, Status::Good);
    assert_eq!(flushed(&mut engine), [(1, Status::Good), (2, Status::Good)]);
    let second = polled(&mut engine, at(9));
    assert_eq!(second.len(), 1);
    let bad = Status::MediumError { at: Lba(7) };
    end(&mut engine, at(12), second[0].id, bad);
    assert_eq!(flushed(&mut engine), [(3, bad)]);
    assert_eq!(engine.dispatch().at_drive(), 0);
}

#[test]
fn a_flush_waits_for_room_at_the_drive_and_not_behind_what_waits() {
    let mut engine = engine(Limits::default());
    for id in 1..=4 {
        let request = write(id, Durability::Volatile);
        engine.submit(at(0), request).expect("room");
    }
    let commands = polled(&mut engine, at(0));
    assert_eq!(commands.len(), Limits::default().commands_at_drive);
    engine.flush(at(1), RequestId(9)).expect("room");
    assert_eq!(polled(&mut engine, at(1)), []);
    end(&mut engine, at(5_000_000), commands[0].id, Status::Good);
    let next = polled(&mut engine, at(5_000_000));
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].action, Action::Flush, "two writes wait");
}

#[test]
fn flushes_beyond_the_limit_are_refused_until_one_is_told() {
    let limits = Limits {
        requests: 2,
        reserved_for_real_time: 0,
        ..Limits::default()
    };
    let mut engine = engine(limits);
    engine.flush(at(0), RequestId(1)).expect("room");
    let command = polled(&mut engine, at(0))[0];
    engine.flush(at(0), RequestId(2)).expect("room");
    let refused = Err(Refused::Full { limit: 2 });
    assert_eq!(engine.flush(at(0), RequestId(3)), refused);
    end(&mut engine, at(1), command.id, Status::Good);
    assert_eq!(
        engine.flush(at(1), RequestId(3)),
        refused,
        "one is not told yet"
    );
    assert_eq!(flushed(&mut engine), [(1, Status::Good)]);
    assert_eq!(engine.flush(at(1), RequestId(3)), Ok(()));
}
