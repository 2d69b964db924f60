//! Where the time of a request went, as the engine explains it, against what somebody saw who stood
//! beside the drive.

use std::sync::Arc;

use block::{
    Class, CommandId, Direction, Duration, Extent, Finished, Instant, Lba, Outcome, Request,
    RequestId, Sectors, Status,
};
use drive::invented::{self, SimpleDrive};
use engine::explanation::{Ahead, Explanation, Known, NAMED, REMEMBERED, Slowest, Whose};
use engine::{Engine, Limits, Rules};
use proptest::prelude::*;
use scheduler::background::Order;
use scheduler::freeblock::WantedBlocks;
use scheduler::policy::find;

/// A command as somebody beside the drive sees it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    id: CommandId,
    given: Instant,
    ended: Option<Instant>,
    request: Option<Request>,
}

/// An engine, its drive, and who stands beside it.
struct Scene {
    engine: Engine,
    drive: SimpleDrive,
    now: Instant,
    seen: Vec<Seen>,
    finished: Vec<(Finished, Explanation)>,
}

fn extent(start: u64, length: u64) -> Extent {
    Extent::new(Lba(start), Sectors(length)).expect("a valid extent")
}

fn request(id: u64, direction: Direction, extent: Extent, class: Class) -> Request {
    Request {
        id: RequestId(id),
        direction,
        extent,
        class,
        durability: block::Durability::Volatile,
        owner: block::Owner::NOBODY,
    }
}

impl Scene {
    fn new(policy: &str, depth: usize, known: Known) -> Self {
        let policy = find(policy).expect("a policy of the table");
        let limits = Limits {
            commands_at_drive: depth,
            ..Limits::default()
        };
        let profile = Arc::new(invented::profile());
        let engine = Engine::new(profile, &|| policy.make(), limits);
        Scene {
            engine: engine.with_explanations(known),
            drive: SimpleDrive::new(invented::profile()),
            now: Instant::ZERO,
            seen: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// All that happens until `then`.
    fn until(&mut self, then: Instant) {
        loop {
            self.instant();
            let wakeups = [self.drive.next_wakeup(), self.engine.next_wakeup()];
            match wakeups.into_iter().flatten().min() {
                Some(next) if next <= then => self.now = next,
                _ => break,
            }
        }
        self.now = self.now.max(then);
    }

    fn instant(&mut self) {
        while let Some(outcome) = self.drive.poll(self.now) {
            let place = self.seen.iter().position(|seen| seen.id == outcome.id);
            let place = place.expect("a command that was given");
            self.seen[place].ended = Some(self.now);
            self.engine.complete(self.now, outcome.id, outcome);
        }
        while let Some(finished) = self.engine.poll_finished() {
            let explained = self.engine.belief().explain(&finished, finished.submitted);
            let explained = explained.expect("an engine with explanations");
            self.finished.push((finished, explained));
        }
        while let Some(command) = self.engine.poll(self.now) {
            self.seen.push(Seen {
                id: command.id,
                given: self.now,
                ended: None,
                request: self.engine.request_of(command.id),
            });
            self.drive.submit(self.now, command).expect("room");
        }
    }

    fn submit(&mut self, request: Request) {
        self.engine.submit(self.now, request).expect("room");
    }

    /// The time between two moments by who held the head: nobody, the request itself, others by what
    /// `of` says of them.
    fn naive(&self, finished: &Finished) -> (Duration, Duration, [Duration; 4]) {
        let from = finished.submitted + finished.waited_order;
        let mut moments: Vec<Instant> = self
            .seen
            .iter()
            .flat_map(|seen| [Some(seen.given), seen.ended])
            .flatten()
            .chain([from, finished.at])
            .filter(|&moment| moment >= from && moment <= finished.at)
            .collect();
        moments.sort_unstable();
        let (mut nobody, mut own, mut others) =
            (Duration::ZERO, Duration::ZERO, [Duration::ZERO; 4]);
        for pair in moments.windows(2) {
            let there = |seen: &&Seen| {
                seen.given <= pair[0] && seen.ended.is_none_or(|ended| ended > pair[0])
            };
            let first = self.seen.iter().find(there);
            let time = pair[1].since(pair[0]);
            match first.map(|seen| (seen, seen.request)) {
                None => nobody += time,
                Some((_, Some(request))) if request == finished.request => own += time,
                Some((seen, request)) => others[place(seen, request, finished)] += time,
            }
        }
        (nobody, own, others)
    }
}

/// At the drive before, more urgent, as urgent, all else.
fn place(seen: &Seen, request: Option<Request>, finished: &Finished) -> usize {
    let rank = |request: &Request| match request.class {
        Class::RealTime { .. } => 0,
        Class::BestEffort(priority) => 1 + priority,
        Class::Background => 8,
    };
    let Some(request) = request else { return 3 };
    match rank(&request).cmp(&rank(&finished.request)) {
        _ if seen.given < finished.submitted => 0,
        std::cmp::Ordering::Less => 1,
        std::cmp::Ordering::Equal => 2,
        std::cmp::Ordering::Greater => 3,
    }
}

fn sum(explanation: &Explanation) -> Duration {
    explanation.outside()
        + explanation.order
        + explanation.others()
        + explanation.held_back
        + explanation.forgotten
        + explanation.drive.total()
}

/// When a request comes after the one before, where, how long it is, its class.
type Step = (u64, u64, u64, u8);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..12_000_000u64, 0..2_700u64, 1..200u64, 0..8u8);
    prop::collection::vec(step, 1..40)
}

fn class(number: u8) -> Class {
    match number {
        7 => Class::Background,
        priority => Class::BestEffort(priority),
    }
}

proptest! {
    #[test]
    fn an_explanation_is_what_somebody_beside_the_drive_saw(
        steps in steps(),
        depth in 1..3usize,
        policy in prop::sample::select(vec!["fcfs", "sptf", "c-look", "anticipatory"]),
        writes in prop::sample::select(vec![1u64, 3]),
    ) {
        let mut scene = Scene::new(policy, depth, Known::Profile);
        let capacity = invented::profile().geometry.sectors().0;
        for (number, &(pause, start, length, rank)) in (0u64..).zip(&steps) {
            let then = scene.now + Duration::from_nanos(pause);
            scene.until(then);
            let direction = match number % writes {
                1 => Direction::Write,
                _ => Direction::Read,
            };
            let blocks = extent(start % (capacity - length), length);
            scene.submit(request(number, direction, blocks, class(rank)));
        }
        let end = scene.now + Duration::from_secs(60);
        scene.until(end);
        prop_assert_eq!(scene.finished.len(), steps.len());
        for (finished, explained) in &scene.finished {
            prop_assert_eq!(sum(explained), finished.response());
            prop_assert_eq!(explained.order, finished.waited_order);
            let (nobody, own, others) = scene.naive(finished);
            prop_assert_eq!(explained.held_back, nobody);
            prop_assert_eq!(explained.drive.total(), own);
            prop_assert_eq!(explained.drive.commands, 1);
            let time = |ahead| explained.share(ahead).time;
            prop_assert_eq!(time(Ahead::AtDrive), others[0]);
            let later = others[1] + others[2] + others[3];
            prop_assert_eq!(explained.others() - others[0], later);
            if writes == 1 {
                // Without writes nobody is raised, because nobody waits for another.
                prop_assert_eq!(time(Ahead::MoreUrgent), others[1]);
                prop_assert_eq!(time(Ahead::AsUrgent), others[2]);
                prop_assert_eq!(time(Ahead::LessUrgent), others[3]);
            }
        }
    }
}

/// A drive that does what is believed of it, one block at a time: the belief's phases are the drive's.
#[test]
fn the_believed_phases_are_those_of_a_drive_that_is_as_believed() {
    let mut scene = Scene::new("sptf", 1, Known::Profile);
    scene.drive.misses_every = Some(5);
    for number in 0..40 {
        let blocks = extent(number * 7919 % 2_700, 1);
        scene.submit(request(number, Direction::Read, blocks, Class::default()));
    }
    scene.until(Instant::from_nanos(10_000_000_000));
    assert_eq!(scene.finished.len(), 40);
    let tail = |explained: &Explanation| {
        // The drive's completion, which is not as long as in the profile.
        let bus = explained.drive.bus.as_nanos() as i64;
        invented::COMPLETION.as_nanos() as i64 - bus
    };
    let period = invented::profile().spindle.period();
    for (number, (finished, explained)) in (1u64..).zip(&scene.finished) {
        let account = finished.account.expect("a simulated drive's");
        let drive = explained.drive;
        let lost = match number % 5 {
            0 => period,
            _ => Duration::ZERO,
        };
        assert_eq!(drive.seek, account.seek, "request {number}");
        assert_eq!(drive.rotation + lost, account.rotation, "request {number}");
        assert_eq!(drive.transfer, account.transfer, "request {number}");
        let mispredicted = tail(explained) + lost.as_nanos() as i64;
        assert_eq!(drive.mispredicted, mispredicted, "request {number}");
        assert_eq!(drive.unknown, Duration::ZERO);
        assert_eq!(drive.buffered, 0);
    }
}

#[test]
fn of_a_drive_of_which_nothing_is_known_nothing_is_believed() {
    let mut scene = Scene::new("c-look", 1, Known::Nothing);
    let read = request(1, Direction::Read, extent(1_000, 8), Class::default());
    scene.submit(read);
    scene.until(Instant::from_nanos(1_000_000_000));
    let (finished, explained) = scene.finished[0];
    assert_eq!(explained.drive.unknown, finished.response());
    assert_eq!(explained.drive.seek + explained.drive.bus, Duration::ZERO);
}

#[test]
fn the_first_command_is_named_and_the_longest_of_the_others() {
    let mut scene = Scene::new("fcfs", 1, Known::Profile);
    let lengths = [1, 8, 150, 2, 130, 4, 100, 3, 190, 140, 170, 5];
    for (number, length) in (0u64..).zip(lengths) {
        let blocks = extent(number * 200, length);
        scene.submit(request(number, Direction::Read, blocks, Class::default()));
        scene.until(Instant::from_nanos(1_000 * (number + 1)));
    }
    let last = request(99, Direction::Read, extent(2_700, 1), Class::default());
    scene.submit(last);
    scene.until(Instant::from_nanos(10_000_000_000));
    let (_, explained) = scene.finished.last().expect("the last one");
    let named = explained.before.iter().flatten().map(|before| {
        let Whose::Request { id, extent, .. } = before.held.whose else {
            panic!("requests only");
        };
        (id.0, extent.length().0)
    });
    let named: Vec<_> = named.collect();
    assert_eq!(named.len(), NAMED);
    let expected = [(0, 1), (2, 150), (4, 130), (8, 190), (9, 140), (10, 170)];
    assert_eq!(named, expected);
    assert_eq!(explained.share(Ahead::AtDrive).commands, 1);
    assert_eq!(explained.share(Ahead::AsUrgent).commands, 11);
}

/// Outcomes are given by hand: the first was at the drive, then a flush goes, then nobody.
#[test]
fn flushes_and_pauses_are_told_apart_from_requests() {
    let mut scene = Scene::new("fcfs", 1, Known::Profile);
    let engine = &mut scene.engine;
    let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    let good = |id, ms| Outcome {
        id,
        at: at(ms),
        status: Status::Good,
        account: None,
    };
    let read = |id, start| request(id, Direction::Read, extent(start, 1), Class::default());
    engine.submit(at(0), read(1, 100)).expect("room");
    let first = engine.poll(at(0)).expect("a command").id;
    engine.submit(at(1), read(2, 2_000)).expect("room");
    engine.flush(at(2), RequestId(3)).expect("room");
    engine.complete(at(10), first, good(first, 10));
    engine.poll_finished().expect("the first");
    let flush = engine.poll(at(10)).expect("the flush").id;
    engine.complete(at(14), flush, good(flush, 14));
    // The driver comes late.
    let second = engine.poll(at(20)).expect("the second").id;
    engine.complete(at(29), second, good(second, 29));
    let finished = engine.poll_finished().expect("the second");
    let explained = engine
        .belief()
        .explain(&finished, at(0))
        .expect("explanations");
    let ms = Duration::from_millis;
    assert_eq!(explained.outside(), ms(1));
    assert_eq!(explained.share(Ahead::AtDrive).time, ms(9));
    assert_eq!(explained.share(Ahead::Upkeep).time, ms(4));
    assert_eq!(explained.held_back, ms(6));
    assert_eq!(explained.drive.total(), ms(9));
    assert_eq!(explained.response(), ms(29));
}

#[test]
fn reads_of_tasks_are_told_apart_from_requests() {
    let profile = Arc::new(invented::profile());
    let policy = find("sptf").expect("a policy of the table");
    let engine = Engine::new(Arc::clone(&profile), &|| policy.make(), Limits::default());
    let mut scene = Scene::new("sptf", 2, Known::Profile);
    scene.engine = engine
        .with_background(Rules::default())
        .with_explanations(Known::Profile);
    let mut wanted = WantedBlocks::none(&profile.geometry);
    let all = extent(0, profile.geometry.sectors().0);
    wanted.add(all).expect("blocks of the drive");
    let order = Order {
        wanted,
        priority: 0,
        deadline: None,
    };
    scene.engine.begin_task(scene.now, order).expect("a task");
    for number in 0..200 {
        let blocks = extent(number * 7919 % 2_700, 2);
        scene.submit(request(number, Direction::Read, blocks, Class::default()));
        let then = scene.now + Duration::from_millis(4);
        scene.until(then);
    }
    let tasks = |(_, explained): &(Finished, Explanation)| explained.share(Ahead::Task).commands;
    let reads: u32 = scene.finished.iter().map(tasks).sum();
    assert!(reads > 20, "{reads} free reads went before requests");
    for (finished, explained) in &scene.finished {
        assert_eq!(sum(explained), finished.response());
    }
}

/// A drive's buffer ends two commands at once: the second holds nothing up, and is one all the same.
#[test]
fn a_command_that_ends_with_the_one_before_it_counts() {
    let mut scene = Scene::new("fcfs", 2, Known::Profile);
    let mut given = Vec::new();
    for id in 0..2 {
        let read = request(id, Direction::Read, extent(id * 100, 8), Class::default());
        scene.submit(read);
        given.extend(scene.engine.poll(scene.now));
    }
    scene.now = Instant::ZERO + Duration::from_millis(3);
    for command in given {
        let outcome = Outcome {
            id: command.id,
            at: scene.now,
            status: Status::Good,
            account: None,
        };
        scene.engine.complete(scene.now, command.id, outcome);
    }
    scene.instant();
    let (_, second) = scene.finished[1];
    assert_eq!(
        (second.drive.commands, second.others()),
        (1, second.response())
    );
}

#[test]
fn what_is_too_long_ago_is_said_to_be_forgotten() {
    let mut scene = Scene::new("fcfs", 1, Known::Profile);
    let background = request(0, Direction::Read, extent(2_000, 1), Class::Background);
    let mut number = 1;
    let foreground = |number| request(number, Direction::Read, extent(5, 1), Class::default());
    scene.submit(foreground(number));
    scene.instant();
    scene.submit(background);
    while number < REMEMBERED as u64 + 100 {
        number += 1;
        scene.submit(foreground(number));
        let next = scene.drive.next_wakeup().expect("a command");
        scene.until(next);
    }
    scene.until(Instant::from_nanos(3_600_000_000_000));
    let mut ended = scene.finished.iter();
    let found = ended.find(|(finished, _)| finished.request.class == Class::Background);
    let (finished, explained) = found.expect("it was served in the end");
    assert!(!explained.forgotten.is_zero());
    assert_eq!(sum(explained), finished.response());
    assert!(explained.share(Ahead::MoreUrgent).commands <= REMEMBERED as u32);
}

proptest! {
    #[test]
    fn the_slowest_are_those_of_a_sorted_list(times in prop::collection::vec(0..30u64, 0..40), most in 0..6usize) {
        let mut scene = Scene::new("fcfs", 1, Known::Profile);
        scene.submit(request(1, Direction::Read, extent(5, 1), Class::default()));
        scene.until(Instant::from_nanos(1_000_000_000));
        let (_, mut explained) = scene.finished[0];
        let mut slowest = Slowest::of(most);
        for (number, &time) in (0u64..).zip(&times) {
            explained.came = Instant::from_nanos(1_000);
            explained.finished.at = Instant::from_nanos(1_000 + time);
            let is_one = slowest.is_one(explained.response());
            slowest.take(number, explained);
            prop_assert_eq!(is_one, slowest.iter().any(|(kept, _)| *kept == number));
        }
        let mut sorted: Vec<(u64, u64)> = (0u64..).zip(times).collect();
        sorted.sort_by_key(|&(number, time)| (std::cmp::Reverse(time), number));
        sorted.truncate(most);
        let kept = slowest.iter().map(|(number, kept)| (*number, kept.response().as_nanos()));
        prop_assert_eq!(kept.collect::<Vec<_>>(), sorted);
    }
}
