//! A cache by itself, over an engine that ends what it is asked in any order that keeps overlapping
//! requests in theirs.
//!
//! The oracle is naive: each sector has the list of values that it was given, and when. A read may find
//! any that it had since it was asked; after a flush the volume has one that is no older than the flush.

mod ahead;
mod joined;
mod passing;
mod plain;
mod steps;
mod wished;

use std::collections::BTreeSet;

use block::{Class, Duration, RequestId};
use proptest::prelude::*;

use super::*;
use passing::Passing;
use steps::{Step, setting, step};

use crate::arena::{Arena, Buffer};
use block::operation::OperationError;

const SECTOR: u64 = 512;
const BLOCKS: u64 = 24;
const SECTORS: u64 = BLOCKS * PAGE / SECTOR;
/// The first byte of the volume on its drive.
const OFFSET: u64 = 5 * PAGE;
/// The index of the cache, and an export of its volume.
const NUMBER: usize = 2;
const EXPORT: usize = 3;
/// The export of those who read.
const READER: usize = 4;

/// A request of the engine.
struct Asked {
    id: RequestId,
    is_write: bool,
    bytes: VolumeBytes,
    is_done: bool,
}

impl Asked {
    fn new(id: RequestId, is_write: bool, bytes: VolumeBytes) -> Self {
        Asked {
            id,
            is_write,
            bytes,
            is_done: false,
        }
    }
}

struct Reading {
    start: u64,
    since: usize,
    buffer: Buffer,
}

struct World {
    cached: Cached,
    now: Instant,
    arena: Arena,
    volume: Buffer,
    /// By sector: what it was given, and when.
    values: Vec<Vec<(usize, u8)>>,
    /// Counts what happens.
    time: usize,
    asked: Vec<Asked>,
    reads: Vec<(usize, Reading)>,
    writes: Vec<(RequestId, Buffer)>,
    passing: Vec<Passing>,
    /// Sectors that the engine's task wants.
    wanted: BTreeSet<u64>,
    next: usize,
    serial: u64,
    fill: u8,
    /// What failed may have any value that it ever had.
    is_broken: Vec<bool>,
}

impl World {
    fn new(setting: &CacheSetting) -> Self {
        let mut arena = Arena::map(64 << 20).expect("memory");
        let volume = CachedVolume {
            offset: OFFSET,
            length: BLOCKS * PAGE,
            block_bytes: SECTOR as u32,
            number: NUMBER,
            export: EXPORT,
        };
        let mut cached = Cached::new(setting, volume).expect("a cache");
        cached.transfers.set_longest(3);
        World {
            cached,
            now: Instant::ZERO,
            volume: arena.allocate((BLOCKS * PAGE) as usize).expect("memory"),
            arena,
            values: vec![vec![(0, 0)]; SECTORS as usize],
            time: 0,
            asked: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            passing: Vec::new(),
            wanted: BTreeSet::new(),
            next: 0,
            serial: 0,
            fill: 0,
            is_broken: vec![false; SECTORS as usize],
        }
    }

    fn take_step(&mut self, step: Step) {
        self.time += 1;
        match step {
            Step::Read(at, count) => self.read(0, at, count),
            Step::Past(at, count) => self.read_past(at, count),
            Step::Write(at, count) => self.write(at, count, false),
            Step::Store(at, count) => self.write(at, count, true),
            Step::Flush => self.flush(),
            Step::Act(which) => {
                let may = self.may();
                if !may.is_empty() {
                    self.act(may[which % may.len()]);
                }
            }
            Step::End(which, is_well) => {
                self.end(which, is_well);
            }
            Step::Trim(at, count) => self.trim(at, count),
            Step::Pass(at, count) => self.pass(BackgroundReadKind::Task, at, count),
            Step::Ahead(at, count) => self.pass(BackgroundReadKind::Ahead, at, count),
            Step::Passed(which, ends) => {
                self.passed(which, ends);
            }
            Step::Wait(ms) => self.now += Duration::from_millis(ms),
        }
        self.settle();
    }

    fn read(&mut self, client: u32, at: u64, count: u64) {
        let (key, memory) = self.begin_read(at, count);
        let read = CacheRead {
            key,
            export: READER,
            client,
            class: Class::BestEffort(0),
            owner: Owner::connection(u64::from(client)),
        };
        let span = (at * SECTOR, count * SECTOR);
        let read = self.cached.read(self.now, &read, span, memory);
        assert_eq!(read, Ok(()));
    }

    fn read_past(&mut self, at: u64, count: u64) {
        let (key, memory) = self.begin_read(at, count);
        let start = at * SECTOR;
        let bytes = VolumeBytes { start, memory };
        self.asked
            .push(Asked::new(RequestId(key as u64), false, bytes));
    }

    fn begin_read(&mut self, at: u64, count: u64) -> (usize, Memory) {
        let buffer = self
            .arena
            .allocate((count * SECTOR) as usize)
            .expect("memory");
        let (key, memory) = (self.next, buffer.memory());
        self.next += 1;
        let reading = Reading {
            start: at,
            since: self.time,
            buffer,
        };
        self.reads.push((key, reading));
        (key, memory)
    }

    fn write(&mut self, at: u64, count: u64, is_kept: bool) {
        let count = count.min(SECTORS - at);
        self.fill = self.fill % 250 + 1;
        let mut buffer = self
            .arena
            .allocate((count * SECTOR) as usize)
            .expect("memory");
        buffer.bytes_mut().fill(self.fill);
        for sector in at..at + count {
            self.values[sector as usize].push((self.time, self.fill));
        }
        self.serial += 1;
        let (start, memory) = (at * SECTOR, buffer.memory());
        if is_kept && self.cached.store(self.now, self.serial, start, memory) {
            return self.arena.free(buffer);
        }
        let id = RequestId(self.next as u64);
        self.next += 1;
        let bytes = VolumeBytes { start, memory };
        self.asked.push(Asked::new(id, true, bytes));
        self.cached.write_submitted(id, start, memory);
        self.writes.push((id, buffer));
    }

    /// Asks the engine, and takes the answers.
    fn settle(&mut self) {
        self.take_wishes();
        // It has room for little, so that things wait.
        while self.asked.len() < 4
            && let Some(request) = self.cached.next_request(self.now, &|_| true)
        {
            let is_write = request.direction == Direction::Write;
            let (number, place) = owner(request.id).expect("a cache's");
            assert_eq!(number, NUMBER);
            let export = self.cached.export_of(place);
            assert_eq!(export, if is_write { EXPORT } else { READER });
            let bytes = VolumeBytes {
                start: request.extent.start().0 * SECTOR - OFFSET,
                memory: self.cached.memory_of(place, request.extent),
            };
            self.asked.push(Asked::new(request.id, is_write, bytes));
        }
        while let Some(ServedRead { key, ending }) = self.cached.poll_answer() {
            let place = self.reads.iter().position(|(other, _)| *other == key);
            let place = place.expect("it reads");
            match ending {
                Ending::Done => {
                    let (_, reading) = self.reads.swap_remove(place);
                    self.found(reading);
                }
                Ending::Failed => {
                    let reading = &mut self.reads[place].1;
                    let bytes = VolumeBytes {
                        start: reading.start * SECTOR,
                        memory: reading.buffer.memory(),
                    };
                    self.asked
                        .push(Asked::new(RequestId(key as u64), false, bytes));
                }
            }
        }
    }

    fn found(&mut self, reading: Reading) {
        let sectors = reading.buffer.bytes().chunks_exact(SECTOR as usize);
        for (sector, bytes) in (reading.start as usize..).zip(sectors) {
            let had = self.values[sector].iter().rev();
            let mut is_over = false;
            let since = reading.since;
            let possible: Vec<u8> = had
                .take_while(|(then, _)| {
                    let was_over = is_over && !self.is_broken[sector];
                    is_over |= *then < since;
                    !was_over
                })
                .map(|(_, value)| *value)
                .collect();
            let is_one = bytes.iter().all(|byte| *byte == bytes[0]);
            assert!(
                is_one && possible.contains(&bytes[0]),
                "sector {sector} has {} (one value: {is_one}), expected one of {possible:?}",
                bytes[0]
            );
        }
        self.arena.free(reading.buffer);
    }

    /// Those that overlap none that came before, as far as one of the two writes.
    fn may(&self) -> Vec<usize> {
        let overlaps = |one: &VolumeBytes, other: &VolumeBytes| {
            one.start < other.end() && other.start < one.end()
        };
        let may_end = |place: &usize| {
            let own = &self.asked[*place];
            let mut before = self.asked[..*place].iter();
            !before
                .any(|other| (own.is_write || other.is_write) && overlaps(&own.bytes, &other.bytes))
        };
        (0..self.asked.len()).filter(may_end).collect()
    }

    fn act(&mut self, place: usize) {
        let asked = &mut self.asked[place];
        let volume = VolumeBytes {
            start: 0,
            memory: self.volume.memory(),
        };
        match (asked.is_done, asked.is_write) {
            (false, true) => asked.bytes.copy_to(&volume),
            (false, false) => volume.copy_to(&asked.bytes),
            (true, _) => (),
        }
        asked.is_done = true;
    }

    /// Ends one of the requests that may end; whether there was one.
    fn end(&mut self, which: usize, is_well: bool) -> bool {
        let may = self.may();
        if may.is_empty() {
            return false;
        }
        let place = may[which % may.len()];
        if is_well {
            self.act(place);
        }
        let Asked {
            id,
            is_write,
            bytes,
            ..
        } = self.asked.remove(place);
        let result = match is_well {
            true => Ok(()),
            false => Err(OperationError::Io),
        };
        if is_write && !is_well {
            let sectors = bytes.start / SECTOR..bytes.end() / SECTOR;
            sectors.for_each(|sector| self.is_broken[sector as usize] = true);
        }
        if let Some((_, place)) = owner(id) {
            self.cached.request_ended(self.now, place, result);
        } else if is_write {
            self.cached.write_ended(id, result);
            let place = self.writes.iter().position(|(other, _)| *other == id);
            let (_, buffer) = self.writes.swap_remove(place.expect("it writes"));
            self.arena.free(buffer);
        } else {
            let place = self.reads.iter().position(|(key, _)| *key as u64 == id.0);
            let (_, reading) = self.reads.swap_remove(place.expect("it reads"));
            self.cached.apply_newer(bytes.start, bytes.memory);
            match is_well {
                true => self.found(reading),
                false => self.arena.free(reading.buffer),
            }
        }
        true
    }

    fn flush(&mut self) {
        let (serial, since) = (self.serial, self.time);
        self.cached
            .begin_flush(Class::BestEffort(0), &mut Vec::new());
        while self.cached.has_unwritten(serial) {
            self.settle();
            assert!(
                self.end(0, true),
                "pages are unwritten, and nothing is under way"
            );
        }
        self.cached.end_flush();
        // What goes through is answered when the volume has it: of these some may not.
        let under_way: Vec<VolumeBytes> = self
            .asked
            .iter()
            .filter(|a| a.is_write)
            .map(|a| a.bytes)
            .collect();
        for sector in 0..SECTORS as usize {
            let start = sector as u64 * SECTOR;
            if self.is_broken[sector]
                || under_way
                    .iter()
                    .any(|b| b.start <= start && start < b.end())
            {
                continue;
            }
            let newest = self.values[sector]
                .iter()
                .rev()
                .find(|(then, _)| *then <= since);
            let there = self.volume.bytes()[start as usize];
            assert_eq!(
                Some(there),
                newest.map(|(_, value)| *value),
                "sector {sector}"
            );
        }
    }

    fn trim(&mut self, at: u64, count: u64) {
        let (start, length) = (at * SECTOR, count * SECTOR);
        if self.cached.prepare_punch(start, length) {
            return;
        }
        for sector in at..at + count {
            self.values[sector as usize].push((self.time, 0));
        }
        self.volume.bytes_mut()[start as usize..(start + length) as usize].fill(0);
        self.cached.void(start, length);
    }
}

fn play(setting: &CacheSetting, steps: Vec<Step>) {
    let mut world = World::new(setting);
    for step in steps {
        world.take_step(step);
    }
    let end_all = |world: &mut World| {
        while world.end(0, true) || world.passed(0, Some(true)) {
            world.settle();
        }
    };
    end_all(&mut world);
    world.flush();
    end_all(&mut world);
    // What the cache says is what is there.
    for block in 0..BLOCKS {
        let (start, length) = (block * PAGE, PAGE as usize);
        let buffer = world.arena.allocate(length).expect("memory");
        world.cached.contents.copy_to(&VolumeBytes {
            start,
            memory: buffer.memory(),
        });
        let frame = world.cached.contents.level().residency().frame(block);
        let there = &world.volume.bytes()[start as usize..][..length];
        assert!(frame.is_none() || buffer.bytes() == there, "block {block}");
        world.arena.free(buffer);
    }
    assert!(world.reads.is_empty() && world.cached.is_idle());
    assert!(world.cached.background.are_none_in_flight());
    // What was read and not taken is wanted no longer, and still wished.
    assert!(world.wanted.len() as u64 * SECTOR <= world.cached.status().wished_bytes);
    assert_eq!(world.cached.contents.level().pending(), 0);
    // Each valid block has a page, and no other has one.
    let resident = u64::from(world.cached.contents.level().residency().resident());
    assert_eq!(world.cached.contents.used_pages() as u64, resident);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn pages_have_what_the_volume_will_have(
        setting in setting(),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        play(&setting, steps);
    }
}
