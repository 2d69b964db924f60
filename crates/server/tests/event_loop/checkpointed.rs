//! A checkpoint under writes of all doors is the volume at one moment, compared with a list of all writes.
//!
//! ```text
//!   writes     |---a---|   |-----b-----|  |--c--|      |--d--|
//!   order                       O---------------->P
//!   moment                          somewhere here
//! ```
//!
//! A byte of the moment may be that of a write if it was submitted before P, and no other write of the byte began
//! after its end and ended before O. `a` may not be there if `b` covers it and ended before O; `d` never is.

use std::ops::Range;
use std::sync::mpsc::{Receiver, channel};

use block::operation::{Ask, OperationError, Space, ZeroingPace};
use block::{Class, Durability};
use nbd::Style;
use nbd::request::Asked;
use proptest::prelude::*;
use server::cache_setting::CacheSetting;
use server::checkpoint::CHUNK;
use server::checkpoint::store::StoreOrder;
use server::volume::posted::{Contents, Posted};
use server::volume::{CheckpointOrder, Release};

use crate::cached::setting;
use crate::client::Client;
use crate::station::{Medium, Served};

/// Bytes of the volume: more chunks than copies at a time, and one of them in part.
const BYTES: u64 = 20 * CHUNK - 8192;

/// The doors: two NBD clients, and a front end on another thread.
const DOORS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Change {
        door: usize,
        kind: Kind,
        bytes: Range<u64>,
    },
    Flush(usize),
    /// Waits for all operations of a door.
    Await(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Write(Durability),
    Zero(Space),
    Trim,
}

/// A change, and when it began and ended. Moments are numbers of events.
struct Change {
    bytes: Range<u64>,
    value: u8,
    kind: Kind,
    began: usize,
    ended: usize,
}

/// The answer of a posted operation.
type Answered = Result<Vec<u8>, OperationError>;

/// A load in progress.
struct Load<'a> {
    served: &'a Served,
    clients: Vec<Client>,
    /// Cookies of changes under way, and their places in `changes`.
    under_way: [Vec<(u64, Option<usize>)>; DOORS - 1],
    posted: Vec<(Receiver<Answered>, Option<usize>)>,
    changes: Vec<Change>,
    clock: usize,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Write(Durability::Volatile)),
        1 => Just(Kind::Write(Durability::Durable)),
        1 => Just(Kind::Zero(Space::Kept)),
        1 => Just(Kind::Zero(Space::MayBeFreed)),
        1 => Just(Kind::Trim),
    ]
}

/// Short and long ones, at the borders of chunks and elsewhere, in bytes of any alignment.
fn bytes() -> impl Strategy<Value = Range<u64>> {
    let start = prop_oneof![
        0..BYTES,
        (0..BYTES / CHUNK, 0..1024_u64)
            .prop_map(|(chunk, before)| (chunk * CHUNK).saturating_sub(before))
    ];
    let length = prop_oneof![1..2000_u64, 1..4 * CHUNK];
    (start, length).prop_map(|(start, length)| start..(start + length).min(BYTES))
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..DOORS, kind(), bytes()).prop_map(|(door, kind, bytes)| Step::Change { door, kind, bytes }),
        1 => (0..DOORS).prop_map(Step::Flush),
        2 => (0..DOORS).prop_map(Step::Await),
    ];
    prop::collection::vec(step, 0..most)
}

impl<'a> Load<'a> {
    fn begin(served: &'a Served) -> Self {
        let client = |_| Client::connect_unaware(&served.socket(), Style::Structured);
        Load {
            served,
            clients: (1..DOORS).map(client).collect(),
            under_way: Default::default(),
            posted: Vec::new(),
            changes: Vec::new(),
            clock: 0,
        }
    }

    fn tick(&mut self) -> usize {
        self.clock += 1;
        self.clock
    }

    fn play(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Change { door, kind, bytes } => {
                    let value = (self.changes.len() % 250 + 1) as u8;
                    let began = self.tick();
                    self.changes.push(Change {
                        bytes: bytes.clone(),
                        value,
                        kind: *kind,
                        began,
                        ended: usize::MAX,
                    });
                    let length = (bytes.end - bytes.start) as usize;
                    let (ask, payload) = match *kind {
                        Kind::Write(durability) => (Ask::Write { durability }, vec![value; length]),
                        Kind::Zero(space) => {
                            let (pace, durability) = (ZeroingPace::Any, Durability::Volatile);
                            let ask = Ask::Zero {
                                space,
                                pace,
                                durability,
                            };
                            (ask, Vec::new())
                        }
                        Kind::Trim => {
                            let durability = Durability::Volatile;
                            (Ask::Trim { durability }, Vec::new())
                        }
                    };
                    let number = Some(self.changes.len() - 1);
                    self.submit(*door, ask, bytes.clone(), payload, number);
                }
                Step::Flush(door) => self.submit(*door, Ask::Flush, 0..0, Vec::new(), None),
                Step::Await(door) => self.wait(*door),
            }
        }
    }

    fn submit(
        &mut self,
        door: usize,
        ask: Ask,
        bytes: Range<u64>,
        payload: Vec<u8>,
        number: Option<usize>,
    ) {
        let (offset, length) = (bytes.start, bytes.end - bytes.start);
        match self.clients.get_mut(door) {
            Some(client) => {
                let cookie = client.submit(Asked::Of(ask), offset, length, &payload);
                self.under_way[door].push((cookie, number));
            }
            None => {
                let told = self.post(0, ask, bytes, payload);
                self.posted.push((told, number));
            }
        }
    }

    fn post(
        &self,
        export: usize,
        ask: Ask,
        bytes: Range<u64>,
        contents: Vec<u8>,
    ) -> Receiver<Answered> {
        let (tell, told) = channel();
        let station = self.served.station.as_ref().expect("it runs");
        station.mailbox().submit(Posted {
            export,
            ask,
            offset: bytes.start,
            length: bytes.end - bytes.start,
            contents: Contents::Owned(contents),
            owner: block::Owner::NOBODY,
            reply: Box::new(move |result| {
                let _ = tell.send(result.map(<[u8]>::to_vec));
            }),
        });
        told
    }

    fn wait(&mut self, door: usize) {
        while let Some(number) = self.next_end(door) {
            let now = self.tick();
            if let Some(number) = number {
                self.changes[number].ended = now;
            }
        }
    }

    /// Waits for an end at a door, if anything is under way there.
    fn next_end(&mut self, door: usize) -> Option<Option<usize>> {
        match self.clients.get_mut(door) {
            None => {
                let (told, number) = self.posted.pop()?;
                assert!(told.recv().expect("an answer").is_ok());
                Some(number)
            }
            Some(_) if self.under_way[door].is_empty() => None,
            Some(client) => {
                let end = client.end().expect("the server answers");
                assert_eq!(end.result, Ok(()));
                let mut cookies = self.under_way[door].iter();
                let place = cookies.position(|(cookie, _)| *cookie == end.cookie);
                Some(self.under_way[door].swap_remove(place.expect("its")).1)
            }
        }
    }

    /// Reads bytes of a moment, as a front end does.
    fn read(&self, export: usize, bytes: Range<u64>) -> Answered {
        let told = self.post(export, Ask::Read, bytes, Vec::new());
        told.recv().expect("an answer")
    }

    /// Compares the bytes of a moment between two events with what they may be.
    fn assert_moment(&self, image: &[u8], (ordered, opened): (usize, usize)) {
        let mut allowed = vec![Vec::new(); image.len()];
        let is_over = |earlier: usize, at: u64| {
            let mut later = self.changes.iter();
            later.any(|other| {
                other.kind != Kind::Trim
                    && other.bytes.contains(&at)
                    && other.began > earlier
                    && other.ended < ordered
            })
        };
        for (at, allowed) in (0..).zip(&mut allowed) {
            if !is_over(0, at) {
                allowed.push(0);
            }
            for change in self.changes.iter().filter(|one| one.bytes.contains(&at)) {
                if change.began < opened && !is_over(change.ended, at) {
                    allowed.push(match change.kind {
                        Kind::Write(_) => change.value,
                        Kind::Zero(_) | Kind::Trim => 0,
                    });
                }
            }
        }
        for (at, (byte, allowed)) in image.iter().zip(&allowed).enumerate() {
            assert!(allowed.contains(byte), "byte {at}: {byte} of {allowed:?}");
        }
    }
}

/// Orders a checkpoint; its moment comes later.
fn order(served: &Served, store: StoreOrder) -> Receiver<Result<usize, String>> {
    let (tell, told) = channel();
    let order = CheckpointOrder {
        volume: "all".to_owned(),
        bytes: 0..BYTES,
        class: Class::BestEffort(6),
        bitmap: None,
        store,
    };
    served.ask(move |event_loop| {
        let opened = Box::new(move |result| drop(tell.send(result)));
        event_loop.checkpoints().begin(order, opened);
    });
    told
}

/// What happens before the order, between it and the moment, and afterwards.
type Phases = [Vec<Step>; 3];

fn phases() -> impl Strategy<Value = Phases> {
    [steps(24), steps(6), steps(40)]
}

fn play(served: Served, phases: &Phases, reads: &[Range<u64>]) {
    let mut load = Load::begin(&served);
    load.play(&phases[0]);
    let ordered = load.tick();
    let told = order(&served, StoreOrder::default());
    load.play(&phases[1]);
    let export = told.recv().expect("an answer").expect("a checkpoint");
    let opened = load.tick();
    let mut early = Vec::new();
    for (steps, bytes) in phases[2].chunks(8).zip(reads.iter().cycle()) {
        load.play(steps);
        let read = load.read(export, bytes.clone()).expect("readable");
        early.push((bytes.clone(), read));
    }
    (0..DOORS).for_each(|door| load.wait(door));
    let image = load.read(export, 0..BYTES).expect("readable");
    load.assert_moment(&image, (ordered, opened));
    for (bytes, read) in early {
        let late = &image[bytes.start as usize..bytes.end as usize];
        assert!(read == late, "{bytes:?} have changed after the moment");
    }
    served
        .ask(|event_loop| event_loop.checkpoints().release("all", Release::Abandoned))
        .expect("there is one");
    assert_eq!(load.read(export, 0..512), Err(OperationError::Io));
    drop(load);
    served.assert_nothing_is_held();
    served.stop();
}

fn behind(setting: &CacheSetting, medium: Medium) -> Served {
    Served::behind(Some(setting.clone()), medium, BYTES)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn a_checkpoint_is_one_moment_of_memory_and_files(
        phases in phases(),
        reads in prop::collection::vec(bytes(), 1..4),
        seed: u64,
    ) {
        play(Served::plain(Medium::Memory, BYTES), &phases, &reads);
        play(Served::plain(Medium::File, BYTES), &phases, &reads);
        play(Served::shuffled(seed, None, BYTES), &phases, &reads);
    }

    #[test]
    fn a_checkpoint_is_one_moment_of_drives(
        phases in phases(),
        reads in prop::collection::vec(bytes(), 1..4),
    ) {
        play(Served::plain(Medium::Emulated, BYTES), &phases, &reads);
        play(Served::plain(Medium::CoarseDrive, BYTES), &phases, &reads);
    }

    #[test]
    fn a_checkpoint_is_one_moment_of_cached_volumes(
        setting in setting(300),
        phases in phases(),
        reads in prop::collection::vec(bytes(), 1..4),
        seed: u64,
    ) {
        play(behind(&setting, Medium::File), &phases, &reads);
        play(behind(&setting, Medium::Emulated), &phases, &reads);
        play(behind(&setting, Medium::CoarseFile), &phases, &reads);
        play(Served::shuffled(seed, Some(setting), BYTES), &phases, &reads);
    }
}

#[test]
fn a_full_store_ends_the_checkpoint_and_the_writes_go_on() {
    let served = Served::plain(Medium::File, BYTES);
    let mut load = Load::begin(&served);
    let store = StoreOrder {
        folder: Some(served.folder.path().to_owned()),
        bytes: 3 * CHUNK,
    };
    let opened = order(&served, store).recv().expect("an answer");
    let export = opened.expect("a checkpoint");
    for chunk in 0..3 {
        let bytes = chunk * CHUNK..chunk * CHUNK + 512;
        let kind = Kind::Write(Durability::Volatile);
        load.play(&[
            Step::Change {
                door: 0,
                kind,
                bytes,
            },
            Step::Await(0),
        ]);
        assert!(load.read(export, 0..BYTES).is_ok());
    }
    let status = || served.ask(|event_loop| event_loop.checkpoints().list());
    assert_eq!(status()[0].store_bytes, 3 * CHUNK);
    let all = Step::Change {
        door: 1,
        kind: Kind::Write(Durability::Volatile),
        bytes: 0..1 << 20,
    };
    load.play(&[all, Step::Await(1)]);
    let problem = status()[0].problem.clone().expect("it is lost");
    assert!(problem.contains("is full: expected"), "{problem}");
    assert_eq!(load.read(export, 0..512), Err(OperationError::Io));
    let again = order(&served, StoreOrder::default());
    let refused = again.recv().expect("an answer").expect_err("refused");
    assert!(refused.contains("expected its release first"), "{refused}");
    drop(load);
    served.assert_nothing_is_held();
    served.stop();
}
