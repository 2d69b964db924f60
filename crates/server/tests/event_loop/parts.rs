//! Writers of different bytes of one block, through every pair of doors: no write that was acknowledged
//! is lost, whatever the cache does and whatever runs beside them.
//!
//! FUSE posts what it is asked for, as any bytes of an export; two files of one volume are two exports
//! of the same bytes. ublk posts whole blocks only, whose bytes have one writer.
//!
//! `TWO_WRITERS=n` for more writes of each writer.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use block::operation::{Ask, OperationError, Space, ZeroingPace};
use block::{Class, Durability, Extent, Lba, Sectors};
use headtime_client::wire::StreamMode;
use nbd::Style;
use nbd::request::Asked as Nbd;
use proptest::prelude::*;
use server::cache_setting::{CacheSetting, Writes};
use server::event_loop::mailbox::Mailbox;
use server::volume::Export;
use server::volume::posted::{Contents, Posted};

use crate::cached::posted::{Asked, alone, begun, in_one_turn, writing_back};
use crate::cached::swept::scan;
use crate::client::Client;
use crate::fickle::{Fails, Mood};
use crate::gate::{COARSE, Closed};
use crate::station::{BLOCK, Medium, Served};
use crate::streams;

const VOLATILE: Ask = Ask::Write {
    durability: Durability::Volatile,
};

/// Bytes of the volumes.
const BYTES: u64 = 64 << 10;

/// Bytes of one writer in a row.
const SLOT: u64 = 32;

/// Bytes that two writers share: one block of the finer media, an eighth of one of the coarser.
const SHARED: u64 = 512;

/// How a writer gets to the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Nbd,
    /// The export's place.
    Posted(usize),
}

/// The file, and another file of the same volume.
const FILE: Door = Door::Posted(0);
const TWIN: Door = Door::Posted(1);

/// Every pair.
const PAIRS: [[Door; 2]; 4] = [
    [Door::Nbd, Door::Nbd],
    [Door::Nbd, FILE],
    [FILE, FILE],
    [FILE, TWIN],
];

/// A door that is open.
enum Writer {
    Nbd(Box<Client>),
    Posted(Mailbox, usize),
}

impl Writer {
    fn open(door: Door, socket: &Path, mailbox: &Mailbox) -> Self {
        match door {
            Door::Nbd => Writer::Nbd(Box::new(Client::connect_unaware(socket, Style::Structured))),
            Door::Posted(export) => Writer::Posted(mailbox.clone(), export),
        }
    }

    fn ask(&mut self, ask: Ask, bytes: Range<u64>, contents: Vec<u8>) -> Vec<u8> {
        let (offset, length) = (bytes.start, bytes.end - bytes.start);
        match self {
            Writer::Nbd(client) => {
                let end = client.ask(Nbd::Of(ask), offset, length, &contents);
                assert_eq!(end.result, Ok(()));
                end.bytes
            }
            Writer::Posted(mailbox, export) => {
                let (tell, told) = channel();
                mailbox.submit(Posted {
                    export: *export,
                    ask,
                    offset,
                    length,
                    contents: Contents::Owned(contents),
                    owner: block::Owner::NOBODY,
                    reply: Box::new(move |result| {
                        let _ = tell.send(result.map(<[u8]>::to_vec));
                    }),
                });
                told.recv().expect("an answer").expect("it is done")
            }
        }
    }

    /// Writes every other slot from `first` on, again and again, and looks for what was written. How
    /// many of its acknowledged writes it did not find.
    fn write(&mut self, first: u64, writes: u64) -> u64 {
        let slots: Vec<u64> = (first..SHARED / SLOT).step_by(2).collect();
        let mut lost = 0;
        for round in 0..writes.div_ceil(slots.len() as u64) {
            for slot in &slots {
                let stamp = vec![stamp(round, *slot); SLOT as usize];
                self.ask(VOLATILE, slot * SLOT..(slot + 1) * SLOT, stamp);
            }
            let found = self.ask(Ask::Read, 0..SHARED, Vec::new());
            for slot in &slots {
                let at = (slot * SLOT) as usize;
                let bytes = &found[at..at + SLOT as usize];
                let is_there = bytes.iter().all(|&byte| byte == stamp(round, *slot));
                lost += u64::from(!is_there);
            }
        }
        lost
    }
}

fn stamp(round: u64, slot: u64) -> u8 {
    (round * 16 + slot + 1) as u8
}

fn writes() -> u64 {
    // A choice: a fraction of a second of each pair.
    std::env::var("TWO_WRITERS").map_or(200, |count| count.parse().expect("a number of writes"))
}

/// The station with a second export of its first volume.
fn twinned(served: Served) -> Served {
    let twin = served.ask(|event_loop| {
        let length = event_loop.exports()[0].length;
        event_loop.add_export(Export {
            name: "twin".to_owned(),
            offset: 0,
            length,
            class: Class::BestEffort(0),
        })
    });
    assert_eq!(Door::Posted(twin), TWIN);
    served
}

/// Two writers for each pair of doors, and `beside` again and again until both have ended.
#[allow(
    clippy::print_stderr,
    reason = "whoever runs many writes wants the count"
)]
fn nothing_is_lost(what: &str, served: Served, mut beside: impl FnMut(&Served)) {
    let served = twinned(served);
    for pair in PAIRS {
        let mailbox = served.station.as_ref().expect("it runs").mailbox().clone();
        let socket = served.socket();
        let [one, other] = pair.map(|door| Writer::open(door, &socket, &mailbox));
        let lost: u64 = thread::scope(|scope| {
            let threads = [(one, 0), (other, 1)]
                .map(|(mut writer, first)| scope.spawn(move || writer.write(first, writes())));
            while threads.iter().any(|thread| !thread.is_finished()) {
                beside(&served);
            }
            threads
                .map(|thread| thread.join().expect("it ends"))
                .iter()
                .sum()
        });
        let all = 2 * writes();
        eprintln!("{what}, {pair:?}: {lost} of {all} acknowledged writes lost");
        assert_eq!(lost, 0, "{what}, {pair:?}: of {all} acknowledged writes");
    }
    served.stop();
}

fn nothing_runs_beside(_: &Served) {
    thread::yield_now();
}

fn through() -> CacheSetting {
    CacheSetting {
        writes: Writes::Through,
        ..writing_back(64)
    }
}

#[test]
fn two_writers_of_one_block_lose_nothing_through_any_two_doors() {
    for medium in [
        Medium::Memory,
        Medium::File,
        Medium::CoarseFile,
        Medium::CoarseDrive,
    ] {
        let what = format!("{medium:?}");
        nothing_is_lost(&what, Served::plain(medium, BYTES), nothing_runs_beside);
    }
    let shuffled = Served::shuffled(7, None, BYTES);
    nothing_is_lost("in any order", shuffled, nothing_runs_beside);
}

#[test]
fn two_writers_of_one_block_lose_nothing_behind_a_cache() {
    for setting in [through(), writing_back(64), writing_back(8)] {
        for medium in [Medium::Memory, Medium::CoarseFile, Medium::CoarseDrive] {
            let what = format!("{medium:?} {:?} {}", setting.writes, setting.bytes);
            let served = Served::behind(Some(setting.clone()), medium, BYTES);
            nothing_is_lost(&what, served, nothing_runs_beside);
        }
        let what = format!("in any order {:?} {}", setting.writes, setting.bytes);
        let served = Served::shuffled(7, Some(setting), BYTES);
        nothing_is_lost(&what, served, nothing_runs_beside);
    }
}

#[test]
fn two_writers_of_one_block_lose_nothing_beside_streams() {
    let served = Served::plain(Medium::Promising, 4096 * BLOCK);
    let mut open = streams::Streams::default();
    let mut turn = 0;
    nothing_is_lost("beside streams", served, |served| {
        turn += 1;
        // Those that were closed are held until nothing of them is under way.
        if served.ask(|event_loop| event_loop.streams().list().len()) < 6 {
            let mode = match turn % 3 {
                0 => StreamMode::Record,
                _ => StreamMode::Play,
            };
            open.meet(served, &streams::Step::at_the_beginning(mode));
        }
        open.meet(served, &streams::Step::Position(0, turn % 8));
        if turn % 4 == 0 {
            open.meet(served, &streams::Step::Close(0));
        }
    });
}

#[test]
fn two_writers_of_one_block_lose_nothing_beside_a_scan() {
    for setting in [through(), writing_back(64)] {
        let what = format!("beside a scan {:?}", setting.writes);
        let served = Served::swept(setting, crate::station::FASTEST, BYTES);
        nothing_is_lost(&what, served, |served| {
            let (portions, outstanding) = scan(served, BYTES);
            for _ in portions {
                outstanding.fetch_sub(1, Ordering::AcqRel);
            }
        });
    }
}

/// What a client changes, and how: zero for zeroes, given back or not.
type Part = (u8, u64);

fn change(bytes: Range<u64>, fill: u8) -> Asked {
    let place = (bytes.start, bytes.end - bytes.start);
    match fill {
        0 => Asked::zero(Durability::Durable, place),
        fill => Asked::write(Durability::Durable, place, fill),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Changes of different bytes that begin in one turn never undo each other, whatever ends first.
    #[test]
    fn nothing_is_undone(
        parts in prop::collection::vec((0..3u8, 1..900u64), 1..12),
        turns in prop::collection::vec(any::<prop::sample::Index>(), 12),
        cache in prop_oneof![
            Just(None), Just(Some(through())), Just(Some(writing_back(64)))
        ],
        seed in any::<u64>(),
    ) {
        const BYTES: u64 = 8 * BLOCK;
        let served = twinned(Served::shuffled(seed, cache, BYTES));
        let old = Asked::write(Durability::Volatile, (0, BYTES), 0xFF);
        alone(&served, old).expect("it is written");
        let mut expected = vec![0xFF; BYTES as usize];
        // Side by side on the volume, and begun in any order.
        let mut at = 0;
        let mut all: Vec<(Range<u64>, Part)> = Vec::new();
        for part in parts {
            let until = (at + part.1).min(BYTES);
            if at < until {
                let turn = turns[all.len()].index(all.len() + 1);
                all.insert(turn, (at..until, part));
            }
            at = until;
        }
        let mut asked = Vec::new();
        for (number, (bytes, (fill, _))) in all.into_iter().enumerate() {
            expected[bytes.start as usize..bytes.end as usize].fill(fill);
            asked.push(change(bytes, fill).of(number % 2));
        }
        for ended in in_one_turn(&served, asked) {
            prop_assert!(ended.is_ok());
        }
        let found = alone(&served, Asked::read(0, BYTES)).expect("it can be read");
        prop_assert!(found == expected);
        served.stop();
    }
}

fn gated() -> (Served, Closed) {
    let closed = Closed::default();
    (Served::gated(Arc::clone(&closed)), closed)
}

fn close(closed: &Closed, block: u64) {
    let block = Extent::new(Lba(block), Sectors(1)).expect("a block");
    *closed.lock().expect("a gate") = Some(block);
}

#[test]
fn what_overlaps_a_part_of_a_block_waits_and_the_rest_does_not() {
    const PAGE: u64 = COARSE * BLOCK;
    let (served, closed) = gated();
    close(&closed, 0);
    let write = |place, fill| Asked::write(Durability::Volatile, place, fill);
    let part = begun(&served, &write((1, 1), 1));
    let whole = begun(&served, &write((0, PAGE), 2));
    let behind = begun(&served, &write((PAGE - 1, 2), 4));
    let another = begun(&served, &write((2 * PAGE, PAGE), 3));
    another
        .recv()
        .expect("an answer")
        .1
        .expect("it did not wait");
    assert!(part.try_recv().is_err() && whole.try_recv().is_err() && behind.try_recv().is_err());
    *closed.lock().expect("a gate") = None;
    served.ask(|_| ());
    for ended in [part, whole, behind] {
        ended.recv().expect("an answer").1.expect("it is done");
    }
    let found = alone(&served, Asked::read(0, PAGE + 1)).expect("it can be read");
    let mut expected = vec![2; PAGE as usize + 1];
    expected[PAGE as usize - 1..].fill(4);
    assert!(found == expected);
    served.stop();
}

#[test]
fn a_loop_that_stops_ends_all_that_waits() {
    let (served, closed) = gated();
    close(&closed, 0);
    let part = |at| Asked::write(Durability::Volatile, (at, 1), 7);
    let all = [1, 2, 3].map(|at| begun(&served, &part(at)));
    let mailbox = served.station.as_ref().expect("it runs").mailbox().clone();
    // Nothing wakes the loop after it has closed its mailbox: the drive goes on in the same turn.
    served.ask(move |event_loop| {
        event_loop.stop();
        *closed.lock().expect("a gate") = None;
    });
    let [first, second, third] = all;
    first.recv().expect("an answer").1.expect("it had begun");
    for waited in [second, third] {
        let ended = waited.recv().expect("an answer").1;
        assert_eq!(ended, Err(OperationError::ShuttingDown));
    }
    served.stop();
    let (tell, told) = channel();
    mailbox.submit(Posted {
        export: 0,
        ask: VOLATILE,
        offset: 1,
        length: 1,
        contents: Contents::Owned(vec![7]),
        owner: block::Owner::NOBODY,
        reply: Box::new(move |result| {
            let _ = tell.send(result.map(|_| ()));
        }),
    });
    assert_eq!(
        told.recv().expect("an answer"),
        Err(OperationError::ShuttingDown)
    );
}

#[test]
fn a_part_that_cannot_be_read_is_not_written() {
    let mood = Mood::default();
    let served = Served::fickle(Arc::clone(&mood), &through(), &[BYTES]);
    *mood.lock().expect("a mood") = Fails::Reads;
    let part = Asked::write(Durability::Volatile, (1, 1), 7);
    assert_eq!(alone(&served, part), Err(OperationError::Io));
    *mood.lock().expect("a mood") = Fails::Nothing;
    let found = alone(&served, Asked::read(0, BLOCK)).expect("it can be read");
    assert!(found == vec![0; BLOCK as usize]);
    served.stop();
}

/// Posts writes of a part of the first block one after the other, as long as any are left.
fn go_on_writing(mailbox: &Mailbox, at: u64, left: Arc<AtomicU64>) {
    let (same, count) = (mailbox.clone(), Arc::clone(&left));
    mailbox.submit(Posted {
        export: 0,
        ask: VOLATILE,
        offset: at,
        length: 1,
        contents: Contents::Owned(vec![7]),
        owner: block::Owner::NOBODY,
        reply: Box::new(move |_| {
            let taken = |left: u64| left.checked_sub(1);
            let order = Ordering::SeqCst;
            if count.fetch_update(order, order, taken).is_ok() {
                go_on_writing(&same, at, count);
            }
        }),
    });
}

/// Two clients of FUSE always have the next write of a part of a block waiting: an NBD client that
/// writes another part of it gets its turn.
#[test]
fn a_client_gets_its_turn_at_a_block_that_others_keep_changing() {
    let served = Served::shuffled(5, None, BYTES);
    let mailbox = served.station.as_ref().expect("it runs").mailbox().clone();
    let mut nbd = Writer::open(Door::Nbd, &served.socket(), &mailbox);
    // More than there is time for while one write waits for its turn.
    let left = Arc::new(AtomicU64::new(1_000_000));
    for at in [0, 8, 16] {
        go_on_writing(&mailbox, at, Arc::clone(&left));
    }
    for round in 0..20 {
        nbd.ask(VOLATILE, 100..101, vec![round]);
    }
    assert!(
        left.swap(0, Ordering::SeqCst) > 0,
        "it had to wait for all others"
    );
    served.stop();
}

/// A part of a block and all of it, as ublk writes it, at the same time: the part is there or what was
/// written over it, and nothing else.
#[test]
fn a_whole_block_beside_a_part_of_it_is_before_or_after() {
    let served = twinned(Served::shuffled(3, None, BYTES));
    let socket = served.socket();
    let mailbox = served.station.as_ref().expect("it runs").mailbox().clone();
    let [mut part, mut whole] = [Door::Nbd, FILE].map(|door| Writer::open(door, &socket, &mailbox));
    for round in 0..200u64 {
        let (small, large) = ((2 * round + 1) as u8, (2 * round + 2) as u8);
        thread::scope(|scope| {
            scope.spawn(|| part.ask(VOLATILE, 50..150, vec![small; 100]));
            scope.spawn(|| whole.ask(VOLATILE, 0..BLOCK, vec![large; BLOCK as usize]));
        });
        let found = whole.ask(Ask::Read, 0..BLOCK, Vec::new());
        let is_large = |bytes: &[u8]| bytes.iter().all(|&byte| byte == large);
        assert!(
            is_large(&found[..50]) && is_large(&found[150..]),
            "round {round}"
        );
        let part = &found[50..150];
        assert!(
            is_large(part) || part.iter().all(|&byte| byte == small),
            "round {round}"
        );
    }
    served.stop();
}

/// A hole that the drive makes at once leaves the parts of blocks at its ends to be written: what stays
/// of those blocks is not changed.
#[test]
fn zeroes_change_no_byte_beside_them() {
    let served = Served::plain(Medium::CoarseFile, BYTES);
    let old = Asked::write(Durability::Volatile, (0, BYTES), 5);
    alone(&served, old).expect("it is written");
    let mut posted = Writer::open(
        FILE,
        &served.socket(),
        served.station.as_ref().expect("it runs").mailbox(),
    );
    let mut expected = vec![5; BYTES as usize];
    for (space, bytes) in [
        (Space::MayBeFreed, 100..20_000u64),
        (Space::Kept, 30_001..30_002),
    ] {
        let ask = Ask::Zero {
            durability: Durability::Durable,
            space,
            pace: ZeroingPace::Any,
        };
        posted.ask(ask, bytes.clone(), Vec::new());
        expected[bytes.start as usize..bytes.end as usize].fill(0);
        assert!(posted.ask(Ask::Read, 0..BYTES, Vec::new()) == expected);
    }
    served.stop();
}
