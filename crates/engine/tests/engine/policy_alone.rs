//! An engine in which nothing but the policy decides takes a short way. One with explanations takes the row of
//! stages, and does the same.

use std::sync::Arc;

use block::{
    Account, Class, Command, CommandId, Direction, Durability, Duration, Extent, Finished, Instant,
    Lba, Outcome, Owner, Request, RequestId, Sectors, Status,
};
use drive::invented;
use engine::explanation::Known;
use engine::{Engine, Flushed, Limits};
use proptest::prelude::*;
use scheduler::policy::{ALL, NamedPolicy, find};

/// What a client does.
#[derive(Clone, Copy, Debug)]
enum Step {
    Request {
        direction: Direction,
        start: u64,
        length: u64,
        class: Class,
        durability: Durability,
    },
    Flush,
    Barrier,
    Abort(u64),
    Upgrade(u64),
}

/// What an engine answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    Given(Instant, Command),
    Finished(Instant, Finished),
    Flushed(Instant, Flushed),
}

/// A drive that takes `times` for its commands, and ends them with `ends`, in turns. It serves several at once.
struct Drive {
    times: Vec<u64>,
    ends: Vec<Status>,
    given: usize,
    under_way: Vec<Outcome>,
}

impl Drive {
    fn take(&mut self, now: Instant, id: CommandId) {
        let time = self.times[self.given % self.times.len()];
        let status = self.ends[self.given % self.ends.len()];
        self.given += 1;
        self.under_way.push(Outcome {
            id,
            at: now + Duration::from_nanos(time),
            status,
            account: Some(Account {
                queue: Duration::from_nanos(time),
                ..Account::default()
            }),
        });
    }

    fn next(&self) -> Option<Instant> {
        self.under_way.iter().map(|outcome| outcome.at).min()
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        let mut under_way = self.under_way.iter();
        let place = under_way.position(|outcome| outcome.at <= now)?;
        Some(self.under_way.remove(place))
    }
}

/// All answers of an engine to these steps, each so long after the one before.
fn answers(mut engine: Engine, mut drive: Drive, steps: &[(u64, Step)]) -> Vec<Answer> {
    let mut all = Vec::new();
    let mut now = Instant::ZERO;
    let mut at = Instant::ZERO;
    for (id, &(gap, step)) in steps.iter().enumerate() {
        at += Duration::from_nanos(gap);
        while let Some(then) = next(&engine, &drive).filter(|&then| then <= at) {
            now = now.max(then);
            instant(&mut engine, &mut drive, now, &mut all);
        }
        now = at;
        act(&mut engine, now, RequestId(id as u64), step);
        instant(&mut engine, &mut drive, now, &mut all);
    }
    while let Some(then) = next(&engine, &drive) {
        now = now.max(then);
        instant(&mut engine, &mut drive, now, &mut all);
    }
    assert_eq!(engine.held(), 0);
    all
}

fn next(engine: &Engine, drive: &Drive) -> Option<Instant> {
    [drive.next(), engine.next_wakeup()]
        .into_iter()
        .flatten()
        .min()
}

fn act(engine: &mut Engine, now: Instant, id: RequestId, step: Step) {
    match step {
        Step::Request {
            direction,
            start,
            length,
            class,
            durability,
        } => {
            let extent = Extent::new(Lba(start), Sectors(length)).expect("an extent");
            // It may be refused: both engines are full at the same time.
            let _ = engine.submit(
                now,
                Request {
                    id,
                    direction,
                    extent,
                    class,
                    durability,
                    owner: Owner::NOBODY,
                },
            );
        }
        Step::Flush => {
            let _ = engine.flush(now, id);
        }
        Step::Barrier => engine.barrier(now),
        Step::Abort(before) => {
            let _ = engine.abort(now, RequestId(id.0.saturating_sub(before)));
        }
        Step::Upgrade(before) => {
            let whole = Extent::new(Lba(0), Sectors(2800)).expect("an extent");
            let urgent = Class::BestEffort(0);
            let _ = engine.upgrade(now, RequestId(id.0.saturating_sub(before)), whole, urgent);
        }
    }
}

fn instant(engine: &mut Engine, drive: &mut Drive, now: Instant, all: &mut Vec<Answer>) {
    while let Some(outcome) = drive.poll(now) {
        engine.complete(now, outcome.id, outcome);
    }
    while let Some(command) = engine.poll(now) {
        all.push(Answer::Given(now, command));
        drive.take(now, command.id);
    }
    while let Some(finished) = engine.poll_finished() {
        all.push(Answer::Finished(now, finished));
    }
    while let Some(flushed) = engine.poll_flushed() {
        all.push(Answer::Flushed(now, flushed));
    }
}

fn step() -> impl Strategy<Value = Step> {
    let class = prop_oneof![
        3 => (0..7u8).prop_map(Class::BestEffort),
        1 => Just(Class::Background),
        1 => (0..50_000_000u64).prop_map(|at| Class::RealTime {
            deadline: Instant::from_nanos(at)
        }),
    ];
    let durability = prop_oneof![Just(Durability::Volatile), Just(Durability::Durable)];
    let request = (any::<bool>(), 0..2700u64, 1..90u64, class, durability).prop_map(
        |(is_write, start, length, class, durability)| Step::Request {
            direction: match is_write {
                true => Direction::Write,
                false => Direction::Read,
            },
            start,
            length,
            class,
            durability,
        },
    );
    prop_oneof![
        12 => request,
        1 => Just(Step::Flush),
        1 => Just(Step::Barrier),
        1 => (1..6u64).prop_map(Step::Abort),
        1 => (1..6u64).prop_map(Step::Upgrade),
    ]
}

fn policy() -> impl Strategy<Value = NamedPolicy> {
    let names: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
    prop::sample::select(names).prop_map(|name| find(name).expect("a policy of the table"))
}

proptest! {
    #[test]
    fn the_short_way_and_the_row_of_stages_give_the_same(
        policy in policy(),
        requests in 1..20usize,
        commands_at_drive in 1..5usize,
        patience in 1_000_000..100_000_000u64,
        times in prop::collection::vec(1..20_000_000u64, 1..8),
        ends in prop::collection::vec(
            prop_oneof![6 => Just(Status::Good), 1 => Just(Status::TimedOut), 1 => Just(Status::MediumError { at: Lba(7) })],
            1..12),
        steps in prop::collection::vec((0..8_000_000u64, step()), 1..60),
    ) {
        let limits = Limits {
            requests,
            reserved_for_real_time: 0,
            commands_at_drive,
            patience: Duration::from_nanos(patience),
            ..Limits::default()
        };
        let engine = || Engine::new(Arc::new(invented::profile()), &|| policy.make(), limits);
        let drive = || Drive {
            times: times.clone(),
            ends: ends.clone(),
            given: 0,
            under_way: Vec::new(),
        };
        let short = answers(engine(), drive(), &steps);
        let row = answers(engine().with_explanations(Known::Profile), drive(), &steps);
        prop_assert_eq!(short, row);
    }
}
