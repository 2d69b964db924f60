//! Random histories of a volume, its drive and its region, with crashes at any point.
//!
//! The drive and the region's file lose or keep each unflushed sector as a seed says. Two oracles: no comparison of a
//! volume that nobody damaged finds a difference, whatever was lost; and each flipped bit of a page that has a checksum
//! is found. `crashes` enumerates all losses of short histories instead.

use std::collections::BTreeMap;

use block::Duration;

use super::settling::LOOK;
use super::*;
use crate::checksums::PAGE;
use crate::checksums::cover::pieces;
use crate::checksums::pass::{DamageKind, PassCounts};
use crate::checksums::record::Record;
use crate::checksums::region::{Identity, Region, Verified};

mod crashes;
mod histories;
mod single;
mod steps;
mod storage;

use steps::{Moment, Step};
use storage::{Chance, Dice, Fuse, Storage};

const BLOCK: u64 = 512;
/// Three intents, and a chunk that is cut.
const LENGTH: u64 = 40 * CHUNK + 3 * PAGE + 2 * BLOCK;

struct Command {
    key: u64,
    range: Range<u64>,
    /// None for a trim.
    value: Option<u8>,
    moment: Moment,
    is_at_drive: bool,
}

/// A read in flight.
struct Reading {
    key: u64,
    range: Range<u64>,
    moment: Moment,
    /// What it has read at its begin.
    bytes: Vec<u8>,
}

struct World {
    now: Instant,
    keys: u64,
    length: u64,
    keeper: Keeper,
    region: Option<Region<Storage>>,
    drive: Storage,
    commands: Vec<Command>,
    reads: Vec<Reading>,
    /// The flush in flight, and how many versions of each sector it covers.
    flushing: Option<(u64, BTreeMap<u64, usize>)>,
    counts: PassCounts,
    /// Comparisons that differed.
    alarms: Vec<u64>,
    fuse: Fuse,
    /// Whether the fuse stopped the region amid a request.
    has_stopped: bool,
}

fn identity() -> Identity {
    Identity {
        drive: "disk".to_owned(),
        volume: "data".to_owned(),
        block_bytes: BLOCK as u32,
        offset: 0,
        capacity: LENGTH,
    }
}

fn contents(range: &Range<u64>, value: u8) -> Vec<u8> {
    let place = |at: u64| (at / BLOCK).wrapping_mul(31) as u8;
    range
        .clone()
        .map(|at| value ^ place(at) ^ (at as u8 & 3))
        .collect()
}

impl World {
    fn new() -> World {
        World::of(LENGTH, 0)
    }

    /// A volume of `length` bytes on a drive with sectors of 2^`shift` blocks.
    fn of(length: u64, shift: u32) -> World {
        let region = Region::create(Storage::default(), identity(), length, 9).expect("memory");
        let mut keeper = Keeper::new(length, Trimmed::Fixed, &[]);
        keeper.begin_pass();
        World {
            now: Instant::ZERO,
            keys: 0,
            length,
            keeper,
            fuse: region.medium().fuse.clone(),
            region: Some(region),
            drive: Storage {
                bytes: vec![0; length as usize],
                shift,
                ..Storage::default()
            },
            commands: Vec::new(),
            reads: Vec::new(),
            flushing: None,
            counts: PassCounts::default(),
            alarms: Vec::new(),
            has_stopped: false,
        }
    }

    fn range(&self, first: u64, count: u64) -> Range<u64> {
        let end = ((first + count) * BLOCK).min(self.length);
        (first * BLOCK).min(end)..end
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Write {
                first,
                count,
                value,
                moment,
            } => self.submit(self.range(first, count), Some(value), moment),
            Step::Punch { first, count } => {
                self.submit(self.range(first, count), None, Moment::Early);
            }
            Step::End { which, ending } => self.end(which, ending),
            Step::Flush => self.turn_flush(),
            Step::FlushFails { seed } => self.fail_flush(&mut Dice(seed)),
            Step::Region { mut count } => {
                while count > 0 && self.order() {
                    count -= 1;
                }
            }
            Step::Pass { seconds } => self.pass_time(seconds),
            Step::Look { seconds } => {
                self.now += Duration::from_secs(seconds);
                self.keeper.settle(self.now);
            }
            Step::Read {
                first,
                count,
                moment,
            } => self.begin_read(self.range(first, count), moment),
            Step::EndRead { which } if !self.reads.is_empty() => {
                let place = which as usize % self.reads.len();
                self.end_read(place);
            }
            Step::EndRead { .. } => (),
            Step::Kill { operations } => {
                self.stop_after(operations);
                self.restart(None);
            }
            Step::PowerCut { operations, seed } => {
                self.stop_after(operations);
                self.restart(Some(&mut Dice(seed)));
            }
            Step::DriveCut { seed } => self.cut_drive(&mut Dice(seed)),
        }
        self.release();
    }

    /// The region stops amid its requests.
    fn stop_after(&mut self, operations: u64) {
        self.fuse.set(Some(operations));
        while !self.fuse.is_out() && self.order() {}
    }

    /// The drive loses its power. Its commands fail.
    fn cut_drive(&mut self, chance: &mut dyn Chance) {
        self.drive.lose(chance);
        self.flushing = None;
        self.keeper.power_cut();
        let failed: Vec<Command> = (self.commands)
            .extract_if(.., |command| command.is_at_drive)
            .collect();
        for command in failed {
            self.keeper
                .change_ended(self.now, command.key, Ending::Failed);
        }
    }

    fn submit(&mut self, range: Range<u64>, value: Option<u8>, moment: Moment) {
        if range.is_empty() {
            return;
        }
        let key = self.keys;
        self.keys += 1;
        if value.is_none() {
            self.keeper.punch_begun(key, range.clone());
        }
        self.commands.push(Command {
            key,
            range,
            value,
            moment,
            is_at_drive: false,
        });
    }

    /// Writes whose intents are durable go to the drive.
    fn release(&mut self) {
        for command in self
            .commands
            .iter_mut()
            .filter(|command| !command.is_at_drive)
        {
            let Some(value) = command.value else { continue };
            if self.keeper.readiness(&command.range) == Readiness::Ready {
                command.is_at_drive = true;
                let bytes = contents(&command.range, value);
                let all = pieces(command.range.start, &bytes).collect();
                self.keeper
                    .write_begun(command.key, command.range.clone(), all);
                if command.moment == Moment::Early {
                    self.drive.put(command.range.start, &bytes);
                }
            }
        }
    }

    fn end(&mut self, which: u64, is_good: bool) {
        let at_drive: Vec<usize> = (0..self.commands.len())
            .filter(|&place| self.commands[place].is_at_drive)
            .collect();
        if at_drive.is_empty() {
            return;
        }
        let place = at_drive[which as usize % at_drive.len()];
        let command = self.commands.remove(place);
        if let (Moment::Late, Some(value), true) = (command.moment, command.value, is_good) {
            self.drive
                .put(command.range.start, &contents(&command.range, value));
        }
        let ending = match is_good {
            true => Ending::Good,
            false => Ending::Failed,
        };
        self.keeper.change_ended(self.now, command.key, ending);
    }

    /// A flush fails that has begun, or begins now.
    fn fail_flush(&mut self, chance: &mut dyn Chance) {
        if self.flushing.is_none() {
            self.turn_flush();
        }
        let (key, _) = self.flushing.take().expect("begun");
        self.drive.lose(chance);
        self.keeper.flush_ended(key, Ending::Failed);
    }

    /// A flush from its begin to its end.
    fn flush(&mut self) {
        if self.flushing.is_none() {
            self.turn_flush();
        }
        self.turn_flush();
    }

    /// A flush begins or ends. It covers the commands that had ended when it began.
    fn turn_flush(&mut self) {
        if let Some((key, covered)) = self.flushing.take() {
            for (sector, count) in covered {
                let older = &mut self.drive.older;
                if let Some(versions) = older.get_mut(&sector) {
                    versions.drain(..count);
                    if versions.is_empty() {
                        older.remove(&sector);
                    }
                }
            }
            return self.keeper.flush_ended(key, Ending::Good);
        }
        let key = self.keys;
        self.keys += 1;
        self.keeper.flush_begun(key);
        let in_flight = |sector: &u64| {
            let bytes = sector * self.drive.sector()..(sector + 1) * self.drive.sector();
            self.commands
                .iter()
                .any(|command| overlap(&command.range, &bytes))
        };
        let ended = self
            .drive
            .older
            .iter()
            .filter(|(sector, _)| !in_flight(sector));
        let covered = ended.map(|(&sector, versions)| (sector, versions.len()));
        self.flushing = Some((key, covered.collect()));
    }

    /// The region carries out a request. The answer is whether there was one.
    fn order(&mut self) -> bool {
        let Some(order) = self.keeper.poll() else {
            return false;
        };
        let region = self.region.as_mut().expect("open");
        let report = match region.carry_out(order) {
            Ok(report) => report,
            Err(error) => {
                assert!(self.fuse.is_out(), "{error}");
                self.has_stopped = true;
                return false;
            }
        };
        if let Some(report) = report {
            if let Report::Verified {
                chunk,
                verified: Verified::Damaged(_),
            } = report
            {
                self.alarms.push(chunk);
            }
            if let Report::Voided(key) = report {
                self.punch(key);
            }
            self.keeper.answer(self.now, &report);
        }
        true
    }

    /// A trim goes to the drive.
    fn punch(&mut self, key: u64) {
        if let Some(command) = self.commands.iter_mut().find(|command| command.key == key) {
            command.is_at_drive = true;
            let zeroes = vec![0; (command.range.end - command.range.start) as usize];
            self.drive.put(command.range.start, &zeroes);
        }
    }

    fn pass_time(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        if self.keeper.settle(self.now) {
            self.flush();
            self.keeper.settle(self.now + LOOK);
        }
    }

    fn begin_read(&mut self, range: Range<u64>, moment: Moment) {
        if range.is_empty() {
            return;
        }
        let key = self.keys;
        self.keys += 1;
        self.keeper.read_begun(key);
        let bytes = self.drive.bytes[range.start as usize..range.end as usize].to_vec();
        self.reads.push(Reading {
            key,
            range,
            moment,
            bytes,
        });
    }

    fn end_read(&mut self, place: usize) {
        let Reading {
            key,
            range,
            moment,
            mut bytes,
        } = self.reads.remove(place);
        if moment == Moment::Late {
            bytes.copy_from_slice(&self.drive.bytes[range.start as usize..range.end as usize]);
        }
        let all: Vec<_> = pieces(range.start, &bytes).collect();
        self.keeper.read_ended(key, &range, Some(all.into_iter()));
    }

    /// The service ends at once and begins again; with chance the machine loses its power.
    fn restart(&mut self, chance: Option<&mut dyn Chance>) {
        self.fuse.set(None);
        self.has_stopped = false;
        let mut medium = self.region.take().expect("open").into_medium();
        if let Some(chance) = chance {
            medium.lose(chance);
            self.drive.lose(chance);
        }
        self.collect();
        self.commands.clear();
        self.reads.clear();
        self.flushing = None;
        let opened = Region::open(medium, &identity(), self.length);
        let (region, intents) = opened.expect("its own");
        self.region = Some(region);
        self.keeper = Keeper::new(self.length, Trimmed::Fixed, &intents);
        self.keeper.begin_pass();
    }

    /// No comparison has found a difference.
    fn collect(&mut self) {
        let pass = self.keeper.pass().expect("begun");
        assert_eq!(self.alarms, [0; 0], "chunks with false alarms");
        self.counts.adopted_after_crash += pass.counts().adopted_after_crash;
        self.counts.sound += pass.counts().sound;
    }

    /// Everything in flight ends, and everything is written.
    fn drain(&mut self) {
        while !self.reads.is_empty() {
            self.end_read(0);
        }
        while !self.commands.is_empty() {
            while self.order() {}
            self.release();
            self.end(0, true);
        }
        self.flush();
        self.flush();
        while self.order() {}
        self.keeper.settle_all();
        while self.order() {}
        assert_eq!((self.keeper.active(), self.keeper.dirty.len()), (0, 0));
    }

    /// Reads everything twice. The answer is what was found.
    fn scrub(&mut self) -> Vec<super::super::pass::Damage> {
        self.keeper.begin_pass();
        self.flush();
        for _ in 0..2 {
            for range in self.keeper.pass().expect("begun").remaining() {
                self.begin_read(range, Moment::Early);
                self.end_read(0);
            }
            while self.order() {}
        }
        let pass = self.keeper.pass_mut().expect("begun");
        assert_eq!(pass.left(), 0, "everything is verified");
        pass.end();
        pass.damaged().to_vec()
    }
}
