//! The engine's contract under any policy, and what it expects of the head.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use block::{
    Action, Class, Direction, Duration, Extent, Instant, Lba, Refused, Request, RequestId, Sectors,
};
use drive::invented::{self, SimpleDrive};
use engine::{Engine, Limits};
use proptest::prelude::*;
use scheduler::policy::{ALL, find};
use scheduler::{Choice, EligibleRequest, PieceId, Policy, Sight, View};

fn extent(start: u64, length: u64) -> Extent {
    Extent::new(Lba(start), Sectors(length)).expect("a valid extent")
}

fn request(id: u64, direction: Direction, extent: Extent) -> Request {
    Request {
        id: RequestId(id),
        direction,
        extent,
        class: Class::default(),
        durability: block::Durability::Volatile,
        owner: block::Owner::NOBODY,
    }
}

fn limits(requests: usize, commands_at_drive: usize) -> Limits {
    Limits {
        requests,
        reserved_for_real_time: 0,
        commands_at_drive,
        ..Limits::default()
    }
}

fn engine(policy: &dyn Fn() -> Box<dyn Policy>, limits: Limits) -> Engine {
    Engine::new(Arc::new(invented::profile()), policy, limits)
}

fn named(policy: &str) -> Box<dyn Policy> {
    find(policy).expect("a policy of the table").make()
}

/// Answers whatever it was told to answer, and never what makes sense.
struct Hostile {
    sight: Sight,
    answers: Vec<Choice>,
    asked: usize,
}

impl Policy for Hostile {
    fn sight(&self) -> Sight {
        self.sight
    }

    fn add(&mut self, _pending: &EligibleRequest) {}

    fn withdraw(&mut self, _pending: &EligibleRequest) {}

    fn select(&mut self, view: &View) -> Choice {
        self.asked += 1;
        match self.answers.get(self.asked % self.answers.len().max(1)) {
            // Nothing bounds how often a policy may wait.
            Some(Choice::WaitUntil(_)) if self.asked > 100 => Choice::Nothing,
            // A wait counts from now; one of no length is over.
            Some(Choice::WaitUntil(then)) => {
                Choice::WaitUntil(view.now + then.since(Instant::ZERO))
            }
            Some(&choice) => choice,
            None => Choice::Nothing,
        }
    }
}

fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        (0..12u32).prop_map(|slot| Choice::Serve(PieceId(slot))),
        Just(Choice::Serve(PieceId(u32::MAX))),
        (0..20_000_000u64).prop_map(|ns| Choice::WaitUntil(Instant::from_nanos(ns))),
        Just(Choice::Nothing),
    ]
}

fn policy() -> impl Strategy<Value = (Sight, Option<&'static str>, Vec<Choice>)> {
    let names = ALL.iter().map(|entry| Some(entry.name)).collect::<Vec<_>>();
    let sight = prop_oneof![Just(Sight::Order), Just(Sight::Head)];
    prop_oneof![
        prop::sample::select(names).prop_map(|name| (Sight::Order, name, vec![])),
        (sight, prop::collection::vec(choice(), 0..6)).prop_map(|(sight, c)| (sight, None, c)),
    ]
}

/// An engine and a drive, and what a client knows of its requests.
struct Trial {
    engine: Engine,
    drive: SimpleDrive,
    limits: Limits,
    now: Instant,
    unanswered: BTreeSet<u64>,
    ended: u64,
}

impl Trial {
    /// Everything that the contract asks of the driver at one instant.
    fn instant(&mut self) {
        while let Some(outcome) = self.drive.poll(self.now) {
            self.engine.complete(self.now, outcome.id, outcome);
        }
        while let Some(command) = self.engine.poll(self.now) {
            self.drive
                .submit(self.now, command)
                .expect("the engine keeps to what the drive holds");
            assert!(self.engine.dispatch().at_drive() <= self.limits.commands_at_drive);
        }
        while let Some(finished) = self.engine.poll_finished() {
            let id = finished.request.id.0;
            assert!(self.unanswered.remove(&id), "{id} ended twice");
            let account = finished.account.expect("the drive keeps accounts");
            assert_eq!(finished.waited + account.total(), finished.response());
            self.ended += 1;
        }
        assert_eq!(
            self.engine.poll(self.now),
            None,
            "a call too many is harmless"
        );
        assert_eq!(self.engine.poll_finished(), None);
        let wakeup = self.engine.next_wakeup();
        assert!(wakeup.is_none_or(|then| then > self.now), "a stale wakeup");
        assert_eq!(self.engine.held(), self.unanswered.len());
    }

    fn next_event(&self) -> Option<Instant> {
        let events = [self.drive.next_wakeup(), self.engine.next_wakeup()];
        events.into_iter().flatten().min()
    }

    fn submit(&mut self, id: u64, direction: Direction, start: u64, length: u64) {
        let request = request(id, direction, extent(start, length));
        let held = self.engine.held();
        match self.engine.submit(self.now, request) {
            Ok(()) => {
                assert!(held < self.limits.requests && start + length <= 2800);
                self.unanswered.insert(id);
            }
            Err(Refused::Full { limit }) => assert_eq!(limit, held),
            Err(Refused::PastEnd { .. }) => assert!(start + length > 2800),
            Err(refused) => panic!("{refused}"),
        }
    }
}

proptest! {
    #[test]
    fn whatever_the_policy_every_request_ends_once(
        (sight, name, answers) in policy(),
        requests in 1..12usize,
        commands_at_drive in 1..6usize,
        misses in prop_oneof![Just(None), (1..4u64).prop_map(Some)],
        arrivals in prop::collection::vec(
            (0..30_000_000u64, any::<bool>(), 0..2820u64, 1..90u64), 0..60),
    ) {
        let limits = limits(requests, commands_at_drive);
        let policy = || match name {
            Some(name) => named(name),
            None => Box::new(Hostile { sight, answers: answers.clone(), asked: 0 }),
        };
        let mut drive = SimpleDrive::new(invented::profile());
        drive.misses_every = misses;
        let mut trial = Trial {
            engine: engine(&policy, limits),
            drive,
            limits,
            now: Instant::ZERO,
            unanswered: BTreeSet::new(),
            ended: 0,
        };
        let mut accepted = 0;
        let mut at = Instant::ZERO;
        for (id, &(gap, write, start, length)) in arrivals.iter().enumerate() {
            at += Duration::from_nanos(gap);
            while let Some(then) = trial.next_event().filter(|&then| then <= at) {
                trial.now = then;
                trial.instant();
            }
            trial.now = at;
            let direction = if write { Direction::Write } else { Direction::Read };
            let before = trial.unanswered.len();
            trial.submit(id as u64, direction, start, length);
            accepted += (trial.unanswered.len() - before) as u64;
            trial.instant();
        }
        while let Some(then) = trial.next_event() {
            trial.now = then;
            trial.instant();
        }
        prop_assert!(trial.unanswered.is_empty(), "not ended: {:?}", trial.unanswered);
        prop_assert_eq!(trial.ended, accepted);
    }
}

/// First come, first served, and writes down the expected head.
#[derive(Clone, Default)]
struct Spy {
    queue: Vec<PieceId>,
    expected: Arc<Mutex<Vec<Instant>>>,
}

impl Policy for Spy {
    fn sight(&self) -> Sight {
        Sight::Head
    }

    fn add(&mut self, pending: &EligibleRequest) {
        self.queue.push(pending.ticket);
    }

    fn withdraw(&mut self, pending: &EligibleRequest) {
        self.queue.retain(|&ticket| ticket != pending.ticket);
    }

    fn select(&mut self, view: &View) -> Choice {
        if self.queue.is_empty() {
            return Choice::Nothing;
        }
        let mut expected = self.expected.lock().expect("no test panicked");
        expected.push(view.ready);
        Choice::Serve(self.queue.remove(0))
    }
}

/// Serves random reads and writes, some over several tracks, and compares at every choice when
/// the head is expected to be free with when it will be.
fn compare_expectations(commands_at_drive: usize, misses_every: Option<u64>) -> (usize, usize) {
    let spy = Spy::default();
    let expected = Arc::clone(&spy.expected);
    let limits = limits(64, commands_at_drive);
    let mut engine = engine(&|| Box::new(spy.clone()), limits);
    let mut drive = SimpleDrive::new(invented::profile());
    drive.misses_every = misses_every;
    let mut now = Instant::ZERO;
    // No two have blocks in common: what waits behind another is not the policy's to choose.
    for id in 0..20 {
        let direction = [Direction::Read, Direction::Write][(id % 3 == 0) as usize];
        let extent = extent(id * 13 % 20 * 130, 1 + (id * 31) % 130);
        let accepted = engine.submit(now, request(id, direction, extent));
        accepted.expect("there is room");
    }
    let mut truth = Vec::new();
    loop {
        while let Some(outcome) = drive.poll(now) {
            engine.complete(now, outcome.id, outcome);
        }
        loop {
            let free = drive.free;
            let Some(command) = engine.poll(now) else {
                break;
            };
            truth.push(free);
            drive.submit(now, command).expect("there is room");
        }
        while engine.poll_finished().is_some() {}
        match drive.next_wakeup() {
            Some(then) => now = then,
            None => break,
        }
    }
    let expected = expected.lock().expect("no test panicked");
    assert_eq!(expected.len(), truth.len());
    let right = expected.iter().zip(&truth).filter(|(e, t)| e == t).count();
    (right, truth.len())
}

#[test]
fn with_a_true_belief_the_head_is_where_it_is_expected() {
    for commands_at_drive in [1, 2, 5] {
        let (right, all) = compare_expectations(commands_at_drive, None);
        assert_eq!(right, all, "with {commands_at_drive} at the drive");
    }
}

#[test]
fn a_lost_revolution_is_noticed_at_the_next_completion() {
    // One at the drive: every choice follows a completion.
    let (right, all) = compare_expectations(1, Some(3));
    assert_eq!(right, all);
    // Two: a choice during the command that loses the revolution cannot know, the next does.
    let (right, all) = compare_expectations(2, Some(4));
    assert!(right < all && right >= all * 3 / 4 - 1, "{right} of {all}");
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let mut engine = engine(&|| named("fcfs"), limits(2, 1));
    let now = Instant::ZERO;
    let past = engine.submit(now, request(0, Direction::Read, extent(2799, 2)));
    assert_eq!(
        past.expect_err("one block too many").to_string(),
        "blocks 2799..2801 end past the last block of the drive, which has 2800 blocks"
    );
    for id in 1..3 {
        let accepted = engine.submit(now, request(id, Direction::Write, extent(2798, 2)));
        accepted.expect("there is room");
    }
    let full = engine.submit(now, request(3, Direction::Read, extent(0, 1)));
    assert_eq!(full, Err(Refused::Full { limit: 2 }));
    let command = engine.poll(now).expect("the drive is idle");
    assert!(matches!(command.action, Action::Write { extent, .. } if extent.start() == Lba(2798)));
    assert_eq!(engine.poll(now), None, "one at the drive is the limit");
    assert_eq!(
        (
            engine.held(),
            engine.ordering().waiting(),
            engine.dispatch().at_drive()
        ),
        (2, 1, 1)
    );
}

#[test]
#[should_panic(expected = "time went back")]
fn time_never_goes_back() {
    let mut engine = engine(&|| named("fcfs"), Limits::default());
    engine.poll(Instant::from_nanos(5));
    engine.poll(Instant::from_nanos(4));
}
