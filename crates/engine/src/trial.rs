//! A trial of the engine: any bytes as a sequence of inputs, for fuzzers and property tests.
//!
//! ```text
//!   bytes:  setup | input, pause | input, pause | ...        then everything drains
//! ```
//!
//! The trial checks the contract: no input panics, the next wakeup lies in the future, and every request,
//! flush, access and stream ends exactly once.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use block::{
    Class, Command, Direction, Durability, Duration, Extent, Instant, Lba, Outcome, Owner, Request,
    RequestId, Sectors, Status, Terms,
};
use drive::{Profile, invented};
use scheduler::Preemption;
use scheduler::background::{Order, TaskId};
use scheduler::freeblock::WantedBlocks;
use scheduler::ordering::Grace;
use scheduler::policy::{ALL, NamedPolicy};
use stream::playout::AccessId;
use stream::quota::Quotas;
use stream::streams::{Answer, Attach, Settings, StreamId};
use stream::{LocationMap, Piece};

use crate::streams::{Promise, StreamEvent};
use crate::{EncodedOrder, Engine, Input, Limits, Reply, Rules, StreamInput, TaskChange};

/// Drives an engine with the inputs that `bytes` encode, and then to its end.
///
/// # Panics
/// If the engine breaks its contract.
pub fn run(bytes: &[u8]) {
    let mut source = Source(bytes);
    let mut trial = Trial::new(&mut source);
    while !source.0.is_empty() {
        let input = trial.input(&mut source);
        trial.apply(&input);
        trial.pass(Duration::from_micros(source.number(1) * source.number(1)));
    }
    trial.drain();
}

/// Numbers from the bytes; zeroes behind their end.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    /// A number of so many bytes.
    fn number(&mut self, length: usize) -> u64 {
        let (head, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        head.iter()
            .fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.number(2) % limit
    }

    fn extent(&mut self, longest: u64) -> Extent {
        let length = 1 + self.below(longest);
        // Some of them end behind the drive.
        let start = Lba(self.below(BLOCKS));
        Extent::new(start, Sectors(length)).unwrap_or(Extent::block(start))
    }

    fn direction(&mut self) -> Direction {
        match self.number(1) % 2 {
            0 => Direction::Read,
            _ => Direction::Write,
        }
    }

    fn class(&mut self) -> Class {
        match self.number(1) % 10 {
            0 => Class::RealTime {
                deadline: Instant::ZERO,
            },
            1 => Class::Background,
            // There is no priority of 7.
            priority => Class::BestEffort(priority as u8 - 2),
        }
    }

    fn map(&mut self) -> LocationMap {
        let piece = Piece {
            offset: 0,
            extent: self.extent(BLOCKS / 4),
        };
        let length = piece.extent.length().0 * BLOCK;
        let map = LocationMap::new(vec![piece], BLOCK, length);
        map.expect("one piece from the beginning")
    }
}

/// An engine, its drive, and what has to end.
struct Trial {
    engine: Engine,
    now: Instant,
    at_drive: Vec<Command>,
    named: u64,
    requests: BTreeSet<RequestId>,
    flushes: usize,
    accesses: BTreeSet<AccessId>,
    tasks: u64,
    streams: u64,
}

impl Trial {
    fn new(source: &mut Source<'_>) -> Self {
        let policy = &ALL[source.below(ALL.len() as u64) as usize];
        let policy = NamedPolicy::from(policy);
        let limits = Limits {
            requests: 40,
            reserved_for_real_time: 4,
            commands_at_drive: 2 + source.below(3) as usize,
            patience: Duration::from_millis(1 + source.number(1)),
            grace: (source.number(1) & 1 == 1).then(Grace::default),
            ..Limits::default()
        };
        let parts = source.number(1);
        let mut belief = Arc::clone(&BELIEF);
        if parts & 16 != 0 {
            Arc::make_mut(&mut belief).actuators = 2;
        }
        let preemption = Preemption::suited_to(&belief);
        let mut engine = Engine::new(belief, &|| policy.make(), limits);
        if parts & 1 != 0 {
            engine = engine.with_background(Rules {
                paid_ppm: 100_000,
                ..Rules::default()
            });
        }
        if parts & 2 != 0 {
            engine = engine.with_preemption(preemption);
        }
        if parts & 4 != 0 {
            engine = engine.with_guarantees(promise()).expect("a seek curve");
        }
        if parts & 8 != 0 {
            engine = engine.with_tracking(policy);
        }
        Trial {
            engine,
            now: Instant::ZERO,
            at_drive: Vec::new(),
            named: 0,
            requests: BTreeSet::new(),
            flushes: 0,
            accesses: BTreeSet::new(),
            tasks: 0,
            streams: 0,
        }
    }

    fn input(&mut self, source: &mut Source<'_>) -> Input {
        let name = |source: &mut Source<'_>, named: u64| RequestId(source.below(1 + named));
        match source.number(1) % 20 {
            0..6 => {
                self.named += 1;
                Input::Submit(Request {
                    id: RequestId(self.named),
                    direction: source.direction(),
                    extent: source.extent(200),
                    class: source.class(),
                    durability: Durability::Volatile,
                    owner: Owner::process((self.named % 4) as u32),
                })
            }
            6 => Input::Flush(RequestId(0)),
            7 => Input::Barrier,
            8 => Input::Upgrade(name(source, self.named), source.extent(200), source.class()),
            9 => Input::Abort(name(source, self.named)),
            10 => {
                let mut wanted = WantedBlocks::none(&BELIEF.geometry);
                // None if they end behind the drive.
                let _ = wanted.add(source.extent(500));
                Input::BeginTask(EncodedOrder::from(&Order {
                    wanted,
                    priority: source.number(1) as u8,
                    deadline: None,
                }))
            }
            11 => Input::BeginStandingTask(source.number(1) as u8),
            12 => {
                let id = TaskId(source.below(1 + self.tasks));
                match source.number(1) {
                    240.. => Input::NarrowTask(id, vec![source.extent(300), source.extent(300)]),
                    kind => Input::ChangeTask(id, self.change(source, kind)),
                }
            }
            13 => Input::SetImpactBudget(source.number(2) as u32),
            14 => Input::Attach(Attach {
                user: 0,
                terms: Terms {
                    mode: match source.direction() {
                        Direction::Read => block::StreamMode::Play,
                        Direction::Write => block::StreamMode::Record,
                    },
                    memory: Some(source.number(3)),
                    ..Terms::play(source.number(2) * 8, source.number(2))
                },
                map: source.map(),
            }),
            15 => Input::Refresh(StreamId(source.below(1 + self.streams)), source.map()),
            16..18 => {
                let stream = StreamId(source.below(1 + self.streams));
                Input::Stream(stream, self.stream_input(source))
            }
            _ => match self.at_drive.len() as u64 {
                0 => Input::Poll,
                count => {
                    let command = self.at_drive[source.below(count) as usize];
                    let status = match source.number(1) % 8 {
                        0 => Status::TimedOut,
                        1 => Status::MediumError { at: Lba(0) },
                        _ => Status::Good,
                    };
                    Input::Complete(self.outcome(command, status))
                }
            },
        }
    }

    fn change(&self, source: &mut Source<'_>, kind: u64) -> TaskChange {
        match kind % 8 {
            0 => TaskChange::Suspend,
            1 => TaskChange::Resume,
            2 => TaskChange::Abort,
            3 => TaskChange::Promote(source.number(1) as u8),
            4 => TaskChange::Want(source.extent(300)),
            5 => TaskChange::Finish,
            6 => TaskChange::Hasten,
            _ => TaskChange::Unwant(source.extent(300)),
        }
    }

    fn stream_input(&mut self, source: &mut Source<'_>) -> StreamInput {
        self.named += 1;
        let access = AccessId(self.named);
        match source.number(1) % 8 {
            0..3 => StreamInput::Position(source.number(3)),
            3..5 => StreamInput::Read(access, (source.number(3), source.number(2))),
            5..7 => {
                let (first, pages) = (source.below(64), 1 + source.below(4));
                StreamInput::Write(access, (first * PAGE, pages * PAGE))
            }
            _ => StreamInput::Detach,
        }
    }

    fn outcome(&self, command: Command, status: Status) -> Outcome {
        Outcome {
            id: command.id,
            at: self.now,
            status,
            account: None,
        }
    }

    fn apply(&mut self, input: &Input) {
        // An impossible input is refused by name, and nothing has happened.
        let Ok(reply) = self.engine.apply(self.now, input) else {
            return;
        };
        match (input, reply) {
            (Input::Submit(request), Reply::Taken) => {
                self.requests.insert(request.id);
            }
            (Input::Flush(_), Reply::Taken) => self.flushes += 1,
            (Input::BeginTask(_) | Input::BeginStandingTask(_), Reply::Taken) => self.tasks += 1,
            (Input::Attach(_), Reply::Taken) => self.streams += 1,
            (
                Input::Stream(_, StreamInput::Read(access, _) | StreamInput::Write(access, _)),
                Reply::Taken,
            ) => {
                self.accesses.insert(*access);
            }
            (Input::Complete(outcome), _) => self.at_drive.retain(|it| it.id != outcome.id),
            (_, Reply::Command(Some(command))) => self.at_drive.push(command),
            _ => {}
        }
        self.take_outputs();
    }

    /// Takes all outputs, as the driver does after each input.
    fn take_outputs(&mut self) {
        while let Some(command) = self.engine.poll(self.now) {
            self.at_drive.push(command);
        }
        let most = self.engine.limits().commands_at_drive * self.engine.arms().count();
        assert!(self.at_drive.len() <= most, "{:?}", self.at_drive);
        while let Some(finished) = self.engine.poll_finished() {
            assert!(self.requests.remove(&finished.request.id), "{finished:?}");
        }
        while let Some(flushed) = self.engine.poll_flushed() {
            let left = self.flushes.checked_sub(1);
            self.flushes = left.unwrap_or_else(|| panic!("{flushed:?} of none"));
        }
        while let Some(event) = self.engine.poll_stream() {
            if let StreamEvent::Answer(Answer::Access { access, .. }) = event {
                assert!(self.accesses.remove(&access), "{access:?} of none");
            }
        }
        let wakeup = self.engine.next_wakeup();
        assert!(wakeup.is_none_or(|then| then > self.now), "a stale wakeup");
    }

    /// Lets time pass: the engine is polled at its wakeups.
    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(then) = self.engine.next_wakeup().filter(|&then| then <= until) {
            self.now = then;
            self.take_outputs();
        }
        self.now = until;
        self.take_outputs();
    }

    /// Closes all streams, and completes commands until nothing is left.
    fn drain(&mut self) {
        let streams = self.engine.guarantees().streams();
        let streams: Vec<StreamId> = streams.map(|listed| listed.stream).collect();
        for stream in streams {
            self.apply(&Input::Stream(stream, StreamInput::Detach));
        }
        for _ in 0..LONGEST {
            let is_over = self.engine.held() == 0
                && self.at_drive.is_empty()
                && self.engine.guarantees().streams().next().is_none();
            if is_over {
                break;
            }
            match self.at_drive.first() {
                Some(&command) => {
                    self.pass(SERVICE);
                    self.apply(&Input::Complete(self.outcome(command, Status::Good)));
                }
                None => {
                    let wakeup = self.engine.next_wakeup();
                    let wakeup = wakeup.expect("something is held, and nothing will happen");
                    self.pass(wakeup.since(self.now));
                }
            }
        }
        assert_eq!(self.requests, BTreeSet::new(), "every request ends");
        assert_eq!(self.accesses, BTreeSet::new(), "every access is answered");
        assert_eq!(self.flushes, 0, "every flush ends");
        assert_eq!(self.engine.guarantees().streams().count(), 0);
    }
}

/// What an engine of the invented drive may promise to streams, anywhere on it.
pub(crate) fn promise() -> Promise {
    Promise {
        beyond: crate::guarantees::Beyond::default(),
        rules: stream::admission::Rules {
            foreground_permille: 0,
            latency: Duration::from_millis(1),
            longest_round: Duration::from_secs(2),
            streams: 8,
        },
        quotas: Quotas::open(),
        settings: Settings {
            page: PAGE,
            fill: 4 * PAGE,
            priority: 3,
        },
        place: None,
    }
}

static BELIEF: LazyLock<Arc<Profile>> = LazyLock::new(|| Arc::new(invented::profile()));

/// Blocks of the drive.
const BLOCKS: u64 = 2_800;

/// Bytes of a block.
const BLOCK: u64 = 512;

/// Bytes of a page of a stream.
const PAGE: u64 = 4_096;

/// How long a command takes while everything drains.
const SERVICE: Duration = Duration::from_millis(4);

/// After so many steps everything has drained. A choice: many times what any case takes.
const LONGEST: u32 = 100_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn any_bytes_keep_the_contract(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
            super::run(&bytes);
        }
    }
}
