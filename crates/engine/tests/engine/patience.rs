//! No request that is not in the background waits much longer than the patience, whatever the
//! policy, the levels above it, and the drive's own queue do.

use std::sync::Arc;

use block::{
    Class, Command, CommandId, Direction, Duration, Extent, Instant, Lba, Outcome, Request,
    RequestId, Sectors, Status,
};
use drive::invented;
use engine::{Engine, Limits};
use scheduler::Policy;

use crate::hostile::{self, Dawdler};

const REAL_TIME: Class = Class::RealTime {
    deadline: Instant::ZERO,
};

/// What every command takes.
const SERVICE: Duration = Duration::from_millis(4);

const PATIENCE: Duration = Duration::from_millis(100);

fn limits(commands_at_drive: usize) -> Limits {
    Limits {
        commands_at_drive,
        patience: PATIENCE,
        ..Limits::default()
    }
}

fn engine(policy: &dyn Fn() -> Box<dyn Policy>, limits: Limits) -> Engine {
    Engine::new(Arc::new(invented::profile()), policy, limits)
}

fn request(id: u64, direction: Direction, start: u64, class: Class) -> Request {
    let extent = Extent::new(Lba(start), Sectors(1)).expect("a valid extent");
    Request {
        id: RequestId(id),
        direction,
        extent,
        class,
        durability: block::Durability::Volatile,
        owner: block::Owner::NOBODY,
    }
}

fn good(id: CommandId, at: Instant) -> Outcome {
    Outcome {
        id,
        at,
        status: Status::Good,
        account: None,
    }
}

/// A drive that takes the same time for each command, one after the other, and clients that ask
/// for something new whenever something ends.
struct Trial {
    engine: Engine,
    now: Instant,
    serving: Vec<Command>,
    /// When the first of `serving` ends.
    due: Instant,
    asked: u64,
    /// What the next requests are like.
    classes: Vec<Class>,
    /// By request: its class and how long it waited.
    ended: Vec<(u64, Class, Duration)>,
}

impl Trial {
    fn new(engine: Engine, classes: &[Class]) -> Self {
        Trial {
            engine,
            now: Instant::ZERO,
            serving: Vec::new(),
            due: Instant::ZERO,
            asked: 0,
            classes: classes.to_vec(),
            ended: Vec::new(),
        }
    }

    fn ask(&mut self) {
        let class = self.classes[self.asked as usize % self.classes.len()];
        let direction = [Direction::Read, Direction::Write][self.asked as usize % 2];
        // No two that are held have blocks in common.
        let request = request(self.asked, direction, self.asked % 2800, class);
        let accepted = self.engine.submit(self.now, request);
        accepted.expect("there is room");
        self.asked += 1;
    }

    /// Until so many have ended.
    fn serve(&mut self, ends: usize) {
        loop {
            while let Some(command) = self.engine.poll(self.now) {
                if self.serving.is_empty() {
                    self.due = self.now + SERVICE;
                }
                self.serving.push(command);
            }
            let drive = (!self.serving.is_empty()).then_some(self.due);
            let next = [drive, self.engine.next_wakeup()];
            let next = next.into_iter().flatten().min();
            self.now = next.expect("something waits, and nothing will ever happen");
            if !self.serving.is_empty() && self.due <= self.now {
                let id = self.serving.remove(0).id;
                self.engine.complete(self.now, id, good(id, self.now));
                self.due = self.now + SERVICE;
            }
            while let Some(finished) = self.engine.poll_finished() {
                let Request { id, class, .. } = finished.request;
                self.ended.push((id.0, class, finished.waited));
                if self.ended.len() >= ends {
                    return;
                }
                self.ask();
            }
        }
    }

    fn longest_wait(&self) -> Duration {
        let waits = self.ended.iter().map(|&(.., waited)| waited);
        waits.max().expect("something has ended")
    }
}

/// First come, first served.
fn fcfs() -> Box<dyn Policy> {
    hostile::make(0)
}

#[test]
fn patience_holds_under_every_policy() {
    for which in 0..hostile::COUNT {
        let policy = || hostile::make(which);
        for depth in [1, 2, 4] {
            let mut trial = Trial::new(engine(&policy, limits(depth)), &[Class::BestEffort(3)]);
            for _ in 0..10 {
                trial.ask();
            }
            trial.serve(600);
            // Ten are out of patience at once at most, and so many are at the drive already.
            let bound = PATIENCE + SERVICE * (10 + depth as u64);
            let longest = trial.longest_wait();
            assert!(longest <= bound, "policy {which}, {depth}: {longest:?}");
            // None is forgotten: the last that ended are among the newest.
            let oldest = trial.ended.iter().rev().take(20).map(|end| end.0).min();
            assert!(
                oldest.is_some_and(|oldest| oldest > 500),
                "policy {which}, {depth}"
            );
        }
    }
}

#[test]
fn lower_priorities_wait_no_longer_than_their_patience() {
    for which in 0..hostile::COUNT {
        let policy = || hostile::make(which);
        let classes = [0, 0, 0, 0, 0, 0, 0, 0, 6].map(Class::BestEffort);
        let mut trial = Trial::new(engine(&policy, limits(2)), &classes);
        for _ in 0..9 {
            trial.ask();
        }
        trial.serve(600);
        let longest = trial.longest_wait();
        assert!(
            longest <= PATIENCE + SERVICE * 11,
            "policy {which}: {longest:?}"
        );
        let low = trial
            .ended
            .iter()
            .filter(|end| end.1 == Class::BestEffort(6));
        assert!(low.count() > 5, "policy {which}");
    }
}

#[test]
fn at_most_four_real_time_requests_pass_one_out_of_patience() {
    for which in 0..hostile::COUNT {
        let policy = || hostile::make(which);
        let mut classes = [REAL_TIME; 10];
        classes[9] = Class::BestEffort(0);
        let mut trial = Trial::new(engine(&policy, limits(1)), &classes);
        for _ in 0..20 {
            trial.ask();
        }
        trial.serve(900);
        let mut last = 0;
        let mut passed = 0;
        for (place, &(_, class, waited)) in trial.ended.iter().enumerate() {
            if class != REAL_TIME {
                passed = passed.max(place - last);
                last = place;
                let bound = PATIENCE + SERVICE * 5 * 21;
                assert!(waited <= bound, "policy {which}: {waited:?}");
            }
        }
        assert!(
            passed > 0,
            "policy {which}: some best-effort requests were served"
        );
    }
    // One that is out of patience when a crowd of real-time requests comes.
    let mut engine = engine(&fcfs, limits(1));
    let mut now = Instant::ZERO;
    let submitted = engine.submit(now, request(0, Direction::Read, 0, Class::BestEffort(0)));
    submitted.expect("there is room");
    now += PATIENCE;
    for id in 1..20 {
        let submitted = engine.submit(now, request(id, Direction::Read, id, REAL_TIME));
        submitted.expect("there is room");
    }
    let mut order = Vec::new();
    while let Some(command) = engine.poll(now) {
        order.push(engine.request_of(command.id).expect("a request").id.0);
        engine.complete(now, command.id, good(command.id, now));
    }
    assert_eq!(order[..6], [1, 2, 3, 4, 0, 5]);
}

#[test]
fn a_wait_of_the_policy_ends_when_somebody_is_out_of_patience() {
    let mut engine = engine(&|| Box::new(Dawdler::default()), limits(1));
    let submitted = engine.submit(
        Instant::ZERO,
        request(0, Direction::Read, 0, Class::BestEffort(0)),
    );
    submitted.expect("there is room");
    assert_eq!(engine.poll(Instant::ZERO), None);
    assert_eq!(engine.next_wakeup(), Some(Instant::ZERO + PATIENCE));
    let just_before = Instant::from_nanos(PATIENCE.as_nanos() - 1);
    assert_eq!(engine.poll(just_before), None);
    assert!(engine.poll(Instant::ZERO + PATIENCE).is_some());
}

#[test]
fn background_requests_and_what_is_behind_them() {
    let mut engine = engine(&|| Box::new(Dawdler::default()), limits(1));
    let background = request(0, Direction::Write, 0, Class::Background);
    engine.submit(Instant::ZERO, background).expect("room");
    assert_eq!(engine.poll(Instant::ZERO), None);
    let hour = Instant::ZERO + Duration::from_secs(3600);
    assert_eq!(engine.next_wakeup(), Some(hour), "it has no patience");
    // A request with patience waits behind it: then it has to go.
    let behind = request(1, Direction::Read, 0, Class::BestEffort(6));
    engine.submit(Instant::ZERO, behind).expect("room");
    engine.barrier(Instant::ZERO);
    let far = request(2, Direction::Write, 9, Class::BestEffort(6));
    engine.submit(Instant::ZERO, far).expect("room");
    assert_eq!(engine.poll(Instant::ZERO), None);
    let then = Instant::ZERO + PATIENCE;
    assert_eq!(engine.next_wakeup(), Some(then));
    for id in 0..3 {
        let command = engine.poll(then).expect("somebody is out of patience");
        assert_eq!(
            engine.request_of(command.id).expect("a request").id,
            RequestId(id)
        );
        engine.complete(then, command.id, good(command.id, then));
    }
}

#[test]
fn a_drive_that_starves_a_command_is_given_nothing_else() {
    let mut engine = engine(&fcfs, limits(4));
    let mut now = Instant::ZERO;
    let ask = |engine: &mut Engine, now, id| {
        let submitted = engine.submit(now, request(id, Direction::Read, id, REAL_TIME));
        submitted.expect("there is room");
        engine.poll(now)
    };
    let starved = ask(&mut engine, now, 0).expect("the drive is idle");
    for id in 1..25 {
        now = Instant::ZERO + SERVICE * id;
        let other = ask(&mut engine, now, id).expect("nobody is out of patience");
        engine.complete(now, other.id, good(other.id, now));
    }
    now = Instant::ZERO + PATIENCE;
    assert_eq!(ask(&mut engine, now, 25), None);
    engine.complete(now, starved.id, good(starved.id, now));
    assert!(engine.poll(now).is_some());
}
