//! Streams that come, play, move, and go beside clients that read and write, large and small, also
//! into the files that are played: nothing is lost, nobody waits for ever, and where nobody writes into
//! a file that is played nothing is late.

use std::collections::BTreeMap;

use block::{Direction, Extent, RequestId};
use drive::Imperfections;
use engine::streams::StreamEvent;
use proptest::prelude::*;
use scheduler::Preemption;
use scheduler::background::Order;
use scheduler::freeblock::WantedBlocks;
use stream::playout::{AccessId, Standing};
use stream::streams::{Answer, StreamId};

use super::world::{MB, PAGE, World, ask, drive, extent, map, promise};
use crate::hostile;

/// What happens, and then some milliseconds pass.
#[derive(Clone, Debug)]
enum Event {
    Attach {
        write: bool,
        rate: u64,
        memory: u64,
        start: u64,
    },
    Detach(usize),
    Move(usize, u64),
    Request {
        write: bool,
        place: u64,
        blocks: u64,
        priority: u8,
    },
    Flush,
    Raise(u64),
    Abort(u64),
    Play(u16),
}

/// Where clients write.
#[derive(Clone, Copy, Debug)]
enum Written {
    Elsewhere,
    Anywhere,
}

/// Blocks in which all files lie; clients' are behind them.
const FILES: u64 = 1_000_000;

/// Megabytes of a file.
const FILE: u64 = 40;

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        3 => (any::<bool>(), 100_000..4 * MB, MB..8 * MB, 0..FILES - 20_000)
            .prop_map(|(write, rate, memory, start)| Event::Attach { write, rate, memory, start }),
        1 => (0..8usize).prop_map(Event::Detach),
        1 => (0..8usize, 0..FILES - 20_000).prop_map(|(which, start)| Event::Move(which, start)),
        8 => (any::<bool>(), 0..2 * FILES, prop_oneof![1..64u64, 1..2_048u64], 0..7u8)
            .prop_map(|(write, place, blocks, priority)| {
                Event::Request { write, place, blocks, priority }
            }),
        1 => Just(Event::Flush),
        1 => any::<u64>().prop_map(Event::Raise),
        1 => any::<u64>().prop_map(Event::Abort),
        6 => (1..2_000u16).prop_map(Event::Play),
    ];
    prop::collection::vec(event, 1..60)
}

/// An application that plays or records at its rate, from when it is served.
struct Application {
    direction: Direction,
    rate: u64,
    point: Option<u64>,
    next: u64,
}

struct Course {
    world: World,
    playing: BTreeMap<StreamId, Application>,
    accesses: u64,
    waiting: BTreeMap<AccessId, StreamId>,
}

impl Course {
    fn attach(&mut self, write: bool, rate: u64, memory: u64, start: u64) {
        let direction = match write {
            true => Direction::Write,
            false => Direction::Read,
        };
        let asked = {
            let mut ask = ask(direction, map(start, FILE));
            ask.terms.rate = rate;
            ask.terms.memory = Some(memory);
            ask
        };
        if let Ok(attached) = self.world.engine.attach(self.world.now, asked) {
            let application = Application {
                direction,
                rate,
                point: None,
                next: 0,
            };
            self.playing.insert(attached.stream, application);
        }
    }

    fn nth(&self, which: usize) -> Option<StreamId> {
        self.playing.keys().nth(which).copied()
    }

    fn happen(&mut self, event: &Event, written: Written) {
        let now = self.world.now;
        match *event {
            Event::Attach {
                write,
                rate,
                memory,
                start,
            } => self.attach(write, rate, memory, start),
            Event::Detach(which) => {
                if let Some(stream) = self.nth(which) {
                    self.playing.remove(&stream);
                    let closed = self
                        .world
                        .engine
                        .stream(now, stream, engine::StreamInput::Detach);
                    closed.expect("it is open");
                }
            }
            Event::Move(which, start) => {
                if let Some(stream) = self.nth(which) {
                    let moved = self.world.engine.refresh(now, stream, map(start, FILE));
                    moved.expect("it is open");
                }
            }
            Event::Request {
                write,
                place,
                blocks,
                priority,
            } => {
                let (direction, place) = match (write, written) {
                    (true, Written::Elsewhere) => (Direction::Write, place % FILES + FILES),
                    (true, Written::Anywhere) => (Direction::Write, place),
                    (false, _) => (Direction::Read, place),
                };
                self.world.request(direction, place, blocks, priority);
            }
            Event::Flush => {
                let flushed = self.world.engine.flush(now, RequestId(0));
                flushed.expect("there is room");
            }
            Event::Raise(which) | Event::Abort(which) if self.world.asked > 0 => {
                let id = RequestId(1 + which % self.world.asked);
                let all = extent(0, 3 * FILES);
                // What has ended cannot be changed.
                let _ = match event {
                    Event::Abort(_) => self.world.engine.abort(now, id),
                    _ => self
                        .world
                        .engine
                        .upgrade(now, id, all, block::Class::BestEffort(0)),
                };
            }
            Event::Raise(_) | Event::Abort(_) => {}
            Event::Play(millis) => self.play(u64::from(millis) / 10 + 1),
        }
    }

    /// So many ticks of ten milliseconds.
    fn play(&mut self, ticks: u64) {
        for _ in 0..ticks {
            let now = self.world.now;
            for (&stream, application) in &mut self.playing {
                let serves =
                    self.world.engine.guarantees().standing(stream) == Some(Standing::Serving);
                match application.point {
                    None if serves => application.point = Some(0),
                    None => continue,
                    Some(point) => application.point = Some(point + application.rate / 100),
                }
                let point = application.point.unwrap_or(0).min(FILE * MB - 64 * 1024);
                self.accesses += 1;
                let access = AccessId(self.accesses);
                let engine = &mut self.world.engine;
                let taken = match application.direction {
                    Direction::Read => {
                        engine
                            .stream(now, stream, engine::StreamInput::Position(point))
                            .expect("it is open");
                        engine.stream(
                            now,
                            stream,
                            engine::StreamInput::Read(access, (point, 4 * PAGE)),
                        )
                    }
                    Direction::Write if application.next + PAGE <= point => {
                        let write = (application.next, PAGE);
                        let taken =
                            engine.stream(now, stream, engine::StreamInput::Write(access, write));
                        application.next += PAGE * u64::from(taken.is_ok());
                        taken
                    }
                    Direction::Write => continue,
                };
                if taken.is_ok() {
                    self.waiting.insert(access, stream);
                }
            }
            self.world.run_for(10);
            self.hear();
        }
    }

    fn hear(&mut self) {
        for (_, event) in self.world.events.drain(..) {
            if let StreamEvent::Answer(Answer::Access { access, .. }) = event {
                let whose = self.waiting.remove(&access);
                assert!(whose.is_some(), "{access:?} was answered twice");
            }
        }
    }

    /// All leave, and everything comes to its end.
    fn end(&mut self) {
        for stream in std::mem::take(&mut self.playing).into_keys() {
            let closed =
                self.world
                    .engine
                    .stream(self.world.now, stream, engine::StreamInput::Detach);
            closed.expect("it is open");
        }
        self.world.run_for(60_000);
        self.hear();
        assert_eq!(self.waiting, BTreeMap::new(), "every access is answered");
        assert_eq!(
            self.world.engine.guarantees().streams().count(),
            0,
            "every stream is closed"
        );
        assert_eq!(self.world.engine.held(), 0, "every request has ended");
        assert_eq!(self.world.finished.len() as u64, self.world.asked);
    }
}

fn course(policy: usize, preempts: bool, scans: bool) -> Course {
    let mut world = World::under(
        &|| hostile::make(policy),
        promise(3),
        Imperfections::default(),
    );
    let drive = drive();
    world = world.with(|engine| match preempts {
        true => engine.with_preemption(Preemption::suited_to(&drive)),
        false => engine,
    });
    if scans {
        world = world.with(|engine| engine.with_background(engine::Rules::default()));
        let mut wanted = WantedBlocks::none(&drive.geometry);
        let whole: Extent = extent(0, 4 * FILES);
        wanted.add(whole).expect("on the drive");
        let order = Order {
            wanted,
            priority: 0,
            deadline: None,
        };
        let begun = world.engine.begin_task(world.now, order);
        begun.expect("there is room");
    }
    Course {
        world,
        playing: BTreeMap::new(),
        accesses: 0,
        waiting: BTreeMap::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_late_whoever_comes_and_goes(
        events in events(),
        policy in 0..hostile::COUNT,
        preempts in any::<bool>(),
        scans in any::<bool>(),
    ) {
        let mut course = course(policy, preempts, scans);
        for event in &events {
            course.happen(event, Written::Elsewhere);
            course.world.run_for(3);
        }
        prop_assert_eq!(course.world.engine.guarantees().late(), 0);
        course.end();
        prop_assert_eq!(course.world.engine.guarantees().late(), 0);
    }

    #[test]
    fn whatever_is_written_into_files_that_play_everything_ends(
        events in events(),
        policy in 0..hostile::COUNT,
        preempts in any::<bool>(),
        scans in any::<bool>(),
    ) {
        let mut course = course(policy, preempts, scans);
        for event in &events {
            course.happen(event, Written::Anywhere);
            course.world.run_for(3);
        }
        course.end();
    }
}
