//! The positions of runs on the disk: files in sequence with gaps between them, and the set of
//! blocks that have been read.

use block::Interval;

use super::{FileKind, SyntheticCacheLoad, log_even};
use crate::workload::dice::{Chance, Dice, Toss};

/// The position of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunPlace {
    pub(super) file: u64,
    /// All blocks of the file.
    pub(super) within: Interval,
    /// The blocks that are available to the run.
    pub(super) blocks: Interval,
}

impl Default for RunPlace {
    fn default() -> Self {
        RunPlace {
            file: 0,
            within: Interval::EMPTY,
            blocks: Interval::EMPTY,
        }
    }
}

/// The disk.
#[derive(Clone, Debug)]
pub(super) struct Space {
    disk: Interval,
    /// In ascending order.
    files: Vec<Interval>,
    /// Files in the order of their first complete read, the next one last.
    unread: Vec<usize>,
    /// One bit for each block that has been read or belongs to a run in progress.
    bits: Vec<u64>,
    touched: u64,
    /// Ends of fresh runs.
    ends: Vec<u64>,
}

impl Space {
    /// The disk with one in `part` of the load's files, evenly distributed.
    pub(super) fn new(of: &SyntheticCacheLoad, part: u64, disk: u64, dice: &mut Dice) -> Self {
        let lengths = lengths(&of.files, part, disk, dice);
        let all: u64 = lengths.iter().sum();
        let gap = disk.saturating_sub(all) / lengths.len().max(1) as u64;
        let mut files = Vec::new();
        let mut first = 0;
        for length in lengths {
            files.push(Interval::of(first, length));
            first += length + gap;
        }
        Space {
            disk: Interval::of(0, disk),
            unread: groups(files.len(), dice),
            files,
            bits: vec![0; (disk / 64 + 1) as usize],
            touched: 0,
            ends: Vec::new(),
        }
    }

    /// All blocks of the disk.
    pub(super) fn disk(&self) -> Interval {
        self.disk
    }

    /// Number of blocks that have been read.
    pub(super) fn touched(&self) -> u64 {
        self.touched
    }

    /// A file that has not been read completely; a random one if all have been.
    pub(super) fn next_file(&mut self, dice: &mut Dice) -> RunPlace {
        let files = self.files.len();
        let next = self.unread.pop();
        let file = next.unwrap_or_else(|| dice.below(files as u64) as usize);
        self.of(file, self.files[file])
    }

    /// Free space for a fresh run of about `blocks` blocks, with a reserve.
    pub(super) fn place(
        &mut self,
        blocks: u64,
        of: &SyntheticCacheLoad,
        dice: &mut Dice,
    ) -> RunPlace {
        let mut found = (0, 0, 0);
        for _ in 0..TRIES {
            let (file, first) = match dice.happens(Chance::new(of.near)) {
                Toss::Yes if !self.ends.is_empty() => self.near(dice),
                _ => self.anywhere(dice),
            };
            let within = self.files[file];
            let first = first / of.align * of.align;
            let first = first.max(within.first);
            // A run may turn out longer than it is expected to.
            let wanted = (2 * blocks).min(within.last + 1 - first);
            let is_free = |&block: &u64| self.bits[block as usize / 64] & 1 << (block % 64) == 0;
            let free = (first..first + wanted).take_while(is_free).count() as u64;
            if free > found.2 {
                found = (file, first, free);
            }
            if found.2 >= wanted.min(blocks) && found.2 > 0 {
                break;
            }
        }
        let (file, first, free) = found;
        if free == 0 {
            // Nothing is left there: some blocks once more.
            let (file, first) = self.anywhere(dice);
            return self.of(file, Interval::new(first, self.files[file].last));
        }
        let blocks = Interval::of(first, free);
        self.of(file, blocks)
    }

    /// Marks the blocks of a fresh run.
    pub(super) fn touch(&mut self, blocks: Interval) {
        for block in blocks.blocks() {
            let (word, bit) = (block as usize / 64, 1 << (block % 64));
            self.touched += u64::from(self.bits[word] & bit == 0);
            self.bits[word] |= bit;
        }
        self.ends.push(blocks.last);
    }

    fn of(&self, file: usize, blocks: Interval) -> RunPlace {
        RunPlace {
            file: file as u64,
            within: self.files[file],
            blocks,
        }
    }

    fn anywhere(&self, dice: &mut Dice) -> (usize, u64) {
        let file = dice.below(self.files.len() as u64) as usize;
        let blocks = self.files[file];
        (file, blocks.first + dice.below(blocks.len()))
    }

    /// A position shortly after an earlier run.
    fn near(&self, dice: &mut Dice) -> (usize, u64) {
        let end = self.ends[dice.below(self.ends.len() as u64) as usize];
        let file = self.files.partition_point(|file| file.last < end);
        let even = (dice.any() >> 11) as f64 / (1u64 << 53) as f64;
        let first = end + log_even(even, 1, NEAR);
        (file, first.min(self.files[file].last))
    }
}

fn lengths(files: &[FileKind], part: u64, disk: u64, dice: &mut Dice) -> Vec<u64> {
    let mut lengths = Vec::new();
    for kind in files {
        // Volumes are few, and each of them stays.
        let count = match kind.from == kind.to {
            true => kind.count,
            false => (kind.count / part).max(1),
        };
        for _ in 0..count {
            let even = (dice.any() >> 11) as f64 / (1u64 << 53) as f64;
            lengths.push(log_even(even, kind.from, kind.to));
        }
    }
    // All kinds are everywhere on the disk.
    for at in (1..lengths.len()).rev() {
        lengths.swap(at, dice.below(at as u64 + 1) as usize);
    }
    let all: u64 = lengths.iter().sum();
    if all > disk {
        let smaller = |length: &mut u64| *length = (*length * disk / all).max(1);
        lengths.iter_mut().for_each(smaller);
    }
    lengths
}

/// Indices of files in random groups of neighbours, ascending within a group, in reverse order.
fn groups(files: usize, dice: &mut Dice) -> Vec<usize> {
    let mut starts: Vec<usize> = (0..files).step_by(TOGETHER).collect();
    for at in (1..starts.len()).rev() {
        starts.swap(at, dice.below(at as u64 + 1) as usize);
    }
    let members = |start: usize| (start..files.min(start + TOGETHER)).rev();
    starts.into_iter().flat_map(members).collect()
}

/// Number of positions to try for a fresh run. A choice: with a footprint of a quarter of the disk,
/// one in 10^9 fails.
const TRIES: u32 = 16;

/// Maximum distance of a near run in blocks: 256 KiB, the unit in which the spread of the genuine
/// prefixes is measured.
const NEAR: u64 = 64;

/// Number of neighbouring files that are read together, such as those of a directory. A choice.
const TOGETHER: usize = 16;
