//! A drive on which every command takes its worst case: whatever is not safe is late there.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use block::{
    Action, Class, CommandId, Direction, Durability, Duration, Extent, Instant, Lba, Outcome,
    Request, RequestId, Sectors, Status,
};
use drive::{Position, Profile, SeekTarget};
use engine::guarantees::{Beyond, FOREGROUND_BYTES, head_times, pass, slowest_zone, worst_cost};
use engine::streams::{Promise, StreamEvent};
use engine::{Engine, Limits};
use scheduler::Policy;
use scheduler::background::Order;
use scheduler::freeblock::WantedBlocks;
use stream::HeadTimes;
use stream::playout::{AccessId, Served, Standing};
use stream::streams::Attach;
use stream::streams::{Answer, StreamId};

use super::world::{LONGEST, MB, PAGE, ask, drive, map, promise};
use crate::hostile;

/// Serves commands in their order.
struct Slowest {
    belief: Arc<Profile>,
    times: HeadTimes,
    head: Position,
    free: Instant,
    ends: VecDeque<(Instant, CommandId)>,
    /// The longest that blocks took to pass where there are neither films nor a scan.
    passed: Duration,
}

impl Slowest {
    fn new(belief: Arc<Profile>) -> Slowest {
        Slowest {
            times: head_times(&belief, Beyond::default()).expect("a seek curve"),
            belief,
            head: Position::default(),
            free: Instant::ZERO,
            ends: VecDeque::new(),
            passed: Duration::ZERO,
        }
    }

    /// The longest that it may take by each form: run by run, by the rate of its zone, track by track.
    fn cost(&self, direction: Direction, extent: Extent) -> Duration {
        let beyond = Beyond::default();
        let anywhere = worst_cost((&self.times, beyond), &self.belief, self.head, extent);
        let geometry = &self.belief.geometry;
        let zone = slowest_zone(&self.belief, extent, beyond, direction);
        let first = geometry.locate(extent.start()).expect("on the drive");
        let way = self.head.cylinder.abs_diff(first.cylinder);
        let seek = self.times.seek.at(way);
        // The bus carries a command's blocks while the head is on its way to the next one's.
        let by_rate =
            self.times.access(direction) + zone.sustained.at_most(extent.length().0 * PAGE);
        let tracks = geometry.runs(extent).count() as u64;
        let by_tracks = zone
            .tracks
            .map(|whole| self.times.aligned_access(direction, whole.time * tracks));
        anywhere.min(seek + by_tracks.map_or(by_rate, |by_tracks| by_tracks.min(by_rate)))
    }

    fn submit(&mut self, now: Instant, id: CommandId, action: Action) {
        let took = match action {
            Action::Read { extent, .. } | Action::Write { extent, .. } => {
                let direction = match action {
                    Action::Read { .. } => Direction::Read,
                    _ => Direction::Write,
                };
                let took = self.cost(direction, extent);
                if FREE.start <= extent.start().0 && extent.end().0 <= FREE.end {
                    self.passed = self
                        .passed
                        .max(pass(&self.belief, Beyond::default(), extent));
                }
                let last = self.belief.geometry.locate(extent.last());
                self.head = SeekTarget::from(&last.expect("on the drive")).position;
                took
            }
            Action::Seek { .. } => self.times.seek.longest(),
            _ => Duration::ZERO,
        };
        self.free = self.free.max(now) + took;
        self.ends.push_back((self.free, id));
    }
}

pub struct Scene {
    pub engine: Engine,
    drive: Slowest,
    now: Instant,
    pub streams: Vec<StreamId>,
    /// Theirs.
    rates: Vec<u64>,
    asked: u64,
    pub waited: u64,
    tasks: Tasks,
}

/// Where greedy tasks read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tasks {
    /// From one edge of the disk to the other.
    Edges,
    /// This block and the next one, and what is around them.
    Across(Lba),
}

/// Here there are no films but the first, and nothing is scanned.
const FREE: Range<u64> = SCANNED..8_000_000;

/// So many blocks are scanned.
const SCANNED: u64 = 4_000_000;

/// As many readers as there may be, all over the disk.
pub fn films(memory: u64) -> impl Iterator<Item = Attach> {
    let blocks = drive().geometry.sectors().0;
    (0..u128::MAX).map(move |number| {
        // By the golden section: however many they are, they lie evenly.
        let place = (number * 0x9E37_79B9 % (1 << 32)) as u64;
        let start = (blocks - 30_000) / (1 << 32) * place;
        {
            let mut ask = ask(Direction::Read, map(start, 100));
            ask.terms.memory = Some(memory);
            ask
        }
    })
}

impl Scene {
    /// These films, as far as they are granted, and a scan of the first blocks.
    pub fn new(
        make: &dyn Fn() -> Box<dyn Policy>,
        promise: Promise,
        films: impl Iterator<Item = Attach>,
    ) -> Scene {
        let belief = drive();
        let engine = Engine::new(Arc::clone(&belief), make, Limits::default());
        let engine = engine.with_guarantees(promise).expect("a seek curve");
        let mut engine = engine.with_background(engine::Rules::default());
        let (mut streams, mut rates) = (Vec::new(), Vec::new());
        for film in films {
            rates.push(film.terms.rate);
            match engine.attach(Instant::ZERO, film) {
                Ok(attached) => streams.push(attached.stream),
                Err(_) => break,
            }
        }
        let mut wanted = WantedBlocks::none(&belief.geometry);
        let scanned = Extent::new(Lba(0), Sectors(SCANNED)).expect("blocks");
        wanted.add(scanned).expect("on the drive");
        let order = Order {
            wanted,
            priority: 0,
            deadline: None,
        };
        engine
            .begin_task(Instant::ZERO, order)
            .expect("there is room");
        Scene {
            engine,
            drive: Slowest::new(belief),
            now: Instant::ZERO,
            streams,
            rates,
            asked: 0,
            waited: 0,
            tasks: Tasks::Edges,
        }
    }

    fn run(&mut self, until: Instant) {
        loop {
            while let Some(&(at, id)) = self.drive.ends.front() {
                if at > self.now {
                    break;
                }
                self.drive.ends.pop_front();
                let outcome = Outcome {
                    id,
                    at,
                    status: Status::Good,
                    account: None,
                };
                self.engine.complete(self.now, id, outcome);
            }
            while let Some(command) = self.engine.poll(self.now) {
                self.drive.submit(self.now, command.id, command.action);
            }
            while self.engine.poll_finished().is_some() {}
            while let Some(event) = self.engine.poll_stream() {
                if let StreamEvent::Answer(Answer::Access { served, .. }) = event {
                    self.waited += u64::from(served != Served::Memory);
                }
            }
            let ends = self.drive.ends.front().map(|(at, _)| *at);
            if ends.is_some_and(|at| at <= self.now) {
                continue;
            }
            let next = [self.engine.next_wakeup(), ends]
                .into_iter()
                .flatten()
                .min();
            assert!(next.is_none_or(|next| next > self.now), "a stale wakeup");
            self.now = next.map_or(until, |next| next.min(until));
            if next.is_none_or(|next| next > until) {
                return;
            }
        }
    }

    fn run_for(&mut self, millis: u64) {
        self.run(self.now + Duration::from_millis(millis));
    }

    /// Plays for so long beside this many greedy tasks.
    pub fn play(&mut self, ticks: u64, tasks: u64) {
        while !self
            .streams
            .iter()
            .all(|stream| self.engine.guarantees().standing(*stream) == Some(Standing::Serving))
        {
            self.run_for(100);
            assert!(
                self.now < Instant::ZERO + Duration::from_secs(900),
                "it never begins"
            );
        }
        let blocks = self.drive.belief.geometry.sectors().0;
        self.waited = 0;
        for tick in 0..ticks {
            while (self.engine.held() as u64) < tasks {
                self.asked += 1;
                let start = match self.tasks {
                    Tasks::Edges => {
                        let edge = (self.asked % 2) * (blocks - 10_000_000);
                        Lba(edge + self.asked * 7_919 % 9_000_000)
                    }
                    Tasks::Across(last) => Lba(last.0 - self.asked % (LONGEST - 1)),
                };
                let request = Request {
                    id: RequestId(self.asked),
                    direction: Direction::Read,
                    extent: Extent::new(start, Sectors(LONGEST)).expect("blocks"),
                    class: Class::BestEffort(0),
                    durability: Durability::Volatile,
                    owner: block::Owner::NOBODY,
                };
                self.engine.submit(self.now, request).expect("it has room");
            }
            let each = self.streams.iter().zip(&self.rates);
            for (number, (stream, rate)) in each.enumerate() {
                let point = tick * rate / 100;
                let engine = &mut self.engine;
                engine
                    .stream(self.now, *stream, engine::StreamInput::Position(point))
                    .expect("it is open");
                let access = AccessId(tick * 1_000 + number as u64);
                let taken = engine.stream(
                    self.now,
                    *stream,
                    engine::StreamInput::Read(access, (point, PAGE)),
                );
                taken.expect("it is taken");
            }
            self.run_for(10);
        }
    }
}

#[test]
fn nothing_is_late_where_everything_takes_its_worst_case() {
    assert_eq!(LONGEST * PAGE, FOREGROUND_BYTES);
    let newest = hostile::COUNT - 2;
    // Without tasks the scan has the gaps, in reads of 8 MiB.
    for (policy, memory, tasks) in [
        (0, 2 * MB, 8),
        (4, 4 * MB, 8),
        (newest, 8 * MB, 8),
        (newest, 4 * MB, 1),
        (4, 2 * MB, 0),
        (4, 8 * MB, 0),
    ] {
        let make = || hostile::make(policy);
        let mut scene = Scene::new(&make, promise(0), films(memory));
        assert!(scene.streams.len() > 40, "{}", scene.streams.len());
        scene.play(1_200, tasks);
        let broken = (scene.engine.guarantees().late(), scene.waited);
        assert_eq!(
            broken,
            (0, 0),
            "policy {policy}, {memory} bytes, {tasks} tasks"
        );
    }
}

/// Where a serpentine ends the way to the next track is long: what others want on both sides of it comes
/// in two commands, none of which takes longer than what is kept for their longest.
#[test]
fn others_do_not_cross_a_long_way_in_one_command() {
    let belief = drive();
    let times = head_times(&belief, Beyond::default()).expect("a seek curve");
    let across = |last: u64| {
        let both = Extent::new(Lba(last), Sectors(2)).expect("blocks");
        pass(&belief, Beyond::default(), both)
    };
    let mut track = Lba(FREE.start + LONGEST);
    let ends = std::iter::from_fn(|| {
        let last = belief.geometry.track_of(track)?.last;
        track = Lba(last.0 + 1);
        Some(last.0)
    });
    let ends = ends.take_while(|&last| last < FREE.end - LONGEST);
    let last = ends.max_by_key(|&last| across(last)).expect("a track");
    assert!(across(last) > times.foreground, "{last}");
    let make = || hostile::make(hostile::COUNT - 2);
    let mut scene = Scene::new(&make, promise(0), films(4 * MB).skip(1));
    scene.tasks = Tasks::Across(Lba(last));
    scene.play(200, 8);
    assert_eq!((scene.engine.guarantees().late(), scene.waited), (0, 0));
    let passed = scene.drive.passed;
    assert!(passed > Duration::ZERO, "nobody was there");
    assert!(
        passed <= times.foreground,
        "{passed} of {}",
        times.foreground
    );
}
