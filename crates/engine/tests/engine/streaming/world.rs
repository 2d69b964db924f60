//! An engine with guarantees, a drive, and what came of them.

use std::sync::Arc;

use block::{
    Class, Command, Direction, Durability, Duration, Extent, Finished, Instant, Lba, Request,
    RequestId, Sectors, StreamMode, Terms,
};
use drive::{Imperfections, Profile, VirtualDrive, catalog};
use engine::guarantees::{Beyond, FOREGROUND_BYTES};
use engine::streams::{Promise, StreamEvent};
use engine::{Engine, Limits};
use scheduler::Policy;
use scheduler::policy::find;
use stream::LocationMap;
use stream::admission::Rules;
use stream::location::Piece;
use stream::playout::{AccessId, Served};
use stream::quota::Quotas;
use stream::streams::Attach;
use stream::streams::{Answer, Notice, Settings, StreamId};

pub const PAGE: u64 = 4096;
pub const MB: u64 = 1_000_000;
pub const LONGEST: u64 = FOREGROUND_BYTES / PAGE;

pub fn drive() -> Arc<Profile> {
    let entry = catalog::find("modern-20tb").expect("a shipped drive");
    Arc::new(entry.profile().expect("a valid profile"))
}

pub fn promise(priority: u8) -> Promise {
    Promise {
        beyond: Beyond::default(),
        rules: Rules {
            foreground_permille: 0,
            latency: Duration::from_millis(10),
            longest_round: Duration::from_secs(10),
            streams: 100,
        },
        quotas: Quotas::open(),
        settings: Settings {
            page: PAGE,
            fill: FOREGROUND_BYTES,
            priority,
        },
        place: None,
    }
}

/// An engine, its drive, and all that came of them.
pub struct World {
    pub engine: Engine,
    pub drive: VirtualDrive,
    /// How many times as long as it is believed to the drive takes for everything.
    pub slowness: u64,
    pub now: Instant,
    pub commands: Vec<Command>,
    pub events: Vec<(Instant, StreamEvent)>,
    pub finished: Vec<Finished>,
    pub asked: u64,
}

impl World {
    pub fn new(promise: Promise) -> World {
        World::imperfect(promise, Imperfections::default())
    }

    pub fn imperfect(promise: Promise, imperfections: Imperfections) -> World {
        let sptf = find("sptf").expect("a policy");
        World::under(&|| sptf.make(), promise, imperfections)
    }

    pub fn under(
        policy: &dyn Fn() -> Box<dyn Policy>,
        promise: Promise,
        imperfections: Imperfections,
    ) -> World {
        let belief = drive();
        let engine = Engine::new(Arc::clone(&belief), policy, Limits::default());
        World {
            engine: engine.with_guarantees(promise).expect("a seek curve"),
            drive: VirtualDrive::imperfect(belief, imperfections, 1),
            slowness: 1,
            now: Instant::ZERO,
            commands: Vec::new(),
            events: Vec::new(),
            finished: Vec::new(),
            asked: 0,
        }
    }

    /// The same with another engine, made of this one.
    pub fn with(self, make: impl FnOnce(Engine) -> Engine) -> World {
        World {
            engine: make(self.engine),
            ..self
        }
    }

    pub fn ask(&mut self, direction: Direction, start: u64, megabytes: u64) -> StreamId {
        let ask = ask(direction, map(start, megabytes));
        let attached = self.engine.attach(self.now, ask).expect("there is room");
        attached.stream
    }

    /// As many recordings as are granted, each from `start` of the number before it.
    pub fn record_all(&mut self, start: impl Fn(u64) -> u64) -> Vec<StreamId> {
        let mut streams = Vec::new();
        loop {
            let mut ask = ask(Direction::Write, map(start(streams.len() as u64), 400));
            ask.terms.memory = Some(2 * MB);
            match self.engine.attach(self.now, ask) {
                Ok(attached) => streams.push(attached.stream),
                Err(_) => break,
            }
        }
        assert!(streams.len() > 15, "{}", streams.len());
        streams
    }

    /// A client asks for blocks.
    pub fn request(&mut self, direction: Direction, start: u64, blocks: u64, priority: u8) -> u64 {
        self.asked += 1;
        let request = Request {
            id: RequestId(self.asked),
            direction,
            extent: extent(start, blocks),
            class: Class::BestEffort(priority),
            durability: Durability::Volatile,
            owner: block::Owner::NOBODY,
        };
        self.engine.submit(self.now, request).expect("it has room");
        self.asked
    }

    /// Until then.
    pub fn run(&mut self, until: Instant) {
        loop {
            let of_the_drive = Instant::from_nanos(self.now.as_nanos() / self.slowness);
            while let Some(mut outcome) = self.drive.poll(of_the_drive) {
                outcome.at = self.of_the_clock(outcome.at);
                self.engine.complete(self.now, outcome.id, outcome);
            }
            while let Some(command) = self.engine.poll(self.now) {
                let taken = self.drive.submit(of_the_drive, command);
                taken.expect("it has room");
                self.commands.push(command);
            }
            while let Some(event) = self.engine.poll_stream() {
                self.events.push((self.now, event));
            }
            self.finished
                .extend(std::iter::from_fn(|| self.engine.poll_finished()));
            let drive = self.drive.next_wakeup();
            if drive.is_some_and(|then| then <= of_the_drive) {
                continue;
            }
            let drive = drive.map(|then| self.of_the_clock(then));
            let wakeups = [self.engine.next_wakeup(), drive];
            let next = wakeups.into_iter().flatten().min();
            assert!(next.is_none_or(|next| next > self.now), "a stale wakeup");
            let next = next.filter(|&next| next <= until);
            self.now = next.unwrap_or(until);
            if next.is_none() {
                return;
            }
        }
    }

    /// A moment of the drive's as all others see it.
    fn of_the_clock(&self, then: Instant) -> Instant {
        Instant::from_nanos(then.as_nanos() * self.slowness)
    }

    pub fn run_for(&mut self, millis: u64) {
        self.run(self.now + Duration::from_millis(millis));
    }

    /// Plays from the beginning for so many milliseconds, a report every ten of them.
    pub fn play(&mut self, stream: StreamId, millis: u64) {
        for tick in 0..millis / 10 {
            let point = tick * 10 * MB / 1000;
            let moved = self
                .engine
                .stream(self.now, stream, engine::StreamInput::Position(point));
            moved.expect("it is open");
            if tick % 4 == 0 {
                let read = (point, 32 * 1024);
                let taken = self.engine.stream(
                    self.now,
                    stream,
                    engine::StreamInput::Read(AccessId(tick), read),
                );
                taken.expect("it is taken");
            }
            self.run_for(10);
        }
    }

    pub fn served(&self) -> Vec<Served> {
        let answers = self.events.iter().filter_map(|(_, event)| match event {
            StreamEvent::Answer(Answer::Access { served, .. }) => Some(*served),
            _ => None,
        });
        answers.collect()
    }

    pub fn is_told(&self, what: &Notice) -> bool {
        self.events.iter().any(|(_, event)| {
            matches!(event, StreamEvent::Answer(Answer::Notice { notice, .. }) if notice == what)
        })
    }

    pub fn ended(&self, id: u64) -> Option<&Finished> {
        let mut finished = self.finished.iter();
        finished.find(|finished| finished.request.id == RequestId(id))
    }
}

pub fn extent(start: u64, blocks: u64) -> Extent {
    Extent::new(Lba(start), Sectors(blocks)).expect("blocks")
}

pub fn map(start: u64, megabytes: u64) -> LocationMap {
    let bytes = (megabytes * MB).next_multiple_of(PAGE);
    let piece = Piece {
        offset: 0,
        extent: extent(start, bytes / PAGE),
    };
    LocationMap::new(vec![piece], PAGE, bytes).expect("a valid map")
}

pub fn ask(direction: Direction, map: LocationMap) -> Attach {
    Attach {
        user: 7,
        terms: Terms {
            name: "film".to_owned(),
            mode: match direction {
                Direction::Read => StreamMode::Play,
                Direction::Write => StreamMode::Record,
            },
            memory: Some(4 * MB),
            ..Terms::play(MB, 64 * 1024)
        },
        map,
    }
}
