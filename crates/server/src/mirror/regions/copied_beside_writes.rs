//! A copy under writes, failures and crashes, beside two arrays of what each leg has.
//!
//! Half of all steps begin or end reads in gaps, a third begin or end writes of the same few blocks. A leg's command
//! takes effect block by block at any moment between its begin and its end. Most writes of blocks that the other leg
//! lacks go past it. Whenever nothing is to be copied and no write is under way, the legs are equal.

use super::super::rebuild::{NextPiece, PIECE, PieceRule};
use super::*;

/// Blocks of a piece's quarter: a region has a few, so that all of it is copied often.
const BLOCK: u64 = PIECE / 4;
const REGION: u64 = 8 * BLOCK;
/// Two regions and a half.
const BLOCKS: u64 = 20;
const LENGTH: u64 = BLOCKS * BLOCK;

mod looks;
mod work;

use work::{LegWork, Locked, Read, Write};

struct World {
    /// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
    dice: u64,
    regions: Regions,
    /// The versions of the blocks on each leg.
    legs: [Vec<u64>; 2],
    /// The blocks that the leg with all data cannot read.
    unreadable: Vec<u64>,
    /// Naively: the blocks that the other leg may lack.
    lacks: Vec<bool>,
    /// Naively: the blocks that no read in a gap should be asked for, until something new begins.
    failed: Vec<bool>,
    is_filled: bool,
    writes: Vec<Write>,
    reads: Vec<Read>,
    held: BTreeMap<u64, (Range<u64>, Vec<u64>)>,
    locked: Option<Locked>,
    /// Whether what is locked counts.
    counts: bool,
    numbers: u64,
    equal_looks: u64,
    /// Writes that did not go to the leg that is filled.
    past: u64,
}

fn bytes(blocks: &Range<u64>) -> Range<u64> {
    blocks.start * BLOCK..blocks.end * BLOCK
}

fn blocks(bytes: &Range<u64>) -> Range<u64> {
    assert_eq!((bytes.start % BLOCK, bytes.end % BLOCK), (0, 0));
    bytes.start / BLOCK..bytes.end / BLOCK
}

impl World {
    fn new(seed: u64) -> Self {
        let marks = Bitmap::full(BLOCKS.div_ceil(REGION / BLOCK));
        let regions = Regions::new([1; 16], REGION, LENGTH, marks, Instant::ZERO);
        let versions = (1..=BLOCKS).collect();
        let mut world = World {
            dice: seed,
            regions,
            legs: [versions, vec![0; BLOCKS as usize]],
            unreadable: Vec::new(),
            lacks: vec![false; BLOCKS as usize],
            failed: vec![false; BLOCKS as usize],
            is_filled: false,
            writes: Vec::new(),
            reads: Vec::new(),
            held: BTreeMap::new(),
            locked: None,
            counts: true,
            numbers: BLOCKS,
            equal_looks: 0,
            past: 0,
        };
        if world.dice(4) == 0 {
            let bad = world.dice(BLOCKS);
            world.unreadable.push(bad);
        }
        world.fill();
        world
    }

    fn dice(&mut self, sides: u64) -> u64 {
        self.dice = self.dice.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.dice;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }

    /// Few blocks, so that everything meets.
    fn some_blocks(&mut self, most: u64) -> Range<u64> {
        let length = 1 + self.dice(most);
        let start = self.dice(BLOCKS - length + 1);
        start..start + length
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// The leg is written from now on: all marked regions are to be copied.
    fn fill(&mut self) {
        self.regions.copy_marked();
        self.regions.engage();
        self.is_filled = true;
        self.lacks.fill(true);
        self.failed.fill(false);
        self.counts = false;
    }

    fn submit(&mut self) {
        let (blocks, version) = (self.some_blocks(4), self.number());
        // The engine keeps the order of writes that overlap.
        let meets =
            |write: &Write| write.blocks.start < blocks.end && blocks.start < write.blocks.end;
        if self.writes.iter().any(meets) {
            return;
        }
        let (id, range) = (RequestId(version), bytes(&blocks));
        let lacks = self.is_filled && self.regions.lacks(&range);
        if self.is_filled {
            self.look_at_lacking(&blocks, lacks);
        }
        // Some go to both legs all the same.
        let goes_past = lacks && self.dice(4) > 0;
        match goes_past {
            true => self.regions.submitted_past(id, range),
            false => self.regions.submitted(id, range),
        }
        self.past += u64::from(goes_past);
        let second = match self.is_filled && !goes_past {
            true => LegWork::Waits,
            false => LegWork::Ended,
        };
        self.writes.push(Write {
            id,
            blocks,
            at: [LegWork::Waits, second],
            version,
        });
    }

    /// A leg begins a write, or ends one.
    fn go_on(&mut self) {
        if self.writes.is_empty() {
            return self.submit();
        }
        let place = self.dice(self.writes.len() as u64) as usize;
        let leg = self.dice(2) as usize;
        let range = bytes(&self.writes[place].blocks);
        match self.writes[place].at[leg] {
            LegWork::Waits if self.regions.may_begin(&range) => {
                self.regions.began(&range);
                self.writes[place].at[leg] = LegWork::Begun;
            }
            LegWork::Begun => self.end(place, leg),
            LegWork::Waits | LegWork::Ended => (),
        }
    }

    fn end(&mut self, place: usize, leg: usize) {
        let fails = leg == 0 && self.is_filled && self.dice(12) == 0;
        let write = &mut self.writes[place];
        write.at[leg] = LegWork::Ended;
        let blocks = write.blocks.clone();
        if fails {
            // The last leg with all data stays: the other one has to get what is there.
            self.regions.spoiled(&bytes(&blocks));
            let region = REGION / BLOCK;
            let touched = blocks.start / region * region..blocks.end.div_ceil(region) * region;
            for block in touched.start..touched.end.min(BLOCKS) {
                self.lacks[block as usize] = true;
            }
            if self
                .locked_blocks()
                .is_some_and(|locked| locked.start < touched.end && touched.start < locked.end)
            {
                self.counts = false;
            }
        } else {
            self.settle_blocks(place, leg);
        }
        let write = &self.writes[place];
        if write.at == [LegWork::Ended; 2] {
            let id = write.id;
            self.writes.remove(place);
            self.regions.finished(Instant::ZERO, id);
        }
    }

    /// All blocks of a write have their version on a leg.
    fn settle_blocks(&mut self, place: usize, leg: usize) {
        let write = &self.writes[place];
        for block in write.blocks.clone() {
            self.legs[leg][block as usize] = write.version;
        }
    }

    /// A block of a begun command takes effect, or is read.
    fn take_effect(&mut self) {
        for leg in 0..2 {
            for place in 0..self.writes.len() {
                if self.writes[place].at[leg] == LegWork::Begun {
                    let write = &self.writes[place];
                    let (first, length) =
                        (write.blocks.start, write.blocks.end - write.blocks.start);
                    let version = write.version;
                    let block = first + self.dice(length);
                    self.legs[leg][block as usize] = version;
                }
            }
        }
        for place in 0..self.reads.len() {
            let length = self.reads[place].found.len() as u64;
            let at = self.dice(length) as usize;
            let block = self.reads[place].blocks.start as usize + at;
            let found = self.legs[0][block];
            self.reads[place].found[at].get_or_insert(found);
        }
    }

    fn begin_read(&mut self) {
        if !self.is_filled || self.reads.len() >= 4 {
            return;
        }
        let (blocks, command) = (self.some_blocks(6), self.number());
        self.regions.read_began(command, bytes(&blocks));
        let found = vec![None; (blocks.end - blocks.start) as usize];
        self.reads.push(Read {
            command,
            blocks,
            found,
        });
    }

    fn end_read(&mut self) {
        if self.reads.is_empty() {
            return;
        }
        let place = self.dice(self.reads.len() as u64) as usize;
        let read = self.reads.swap_remove(place);
        if self
            .unreadable
            .iter()
            .any(|block| read.blocks.contains(block))
        {
            for block in read.blocks {
                self.failed[block as usize] |= self.lacks[block as usize];
            }
            return self.regions.rebuild().read_failed(read.command);
        }
        let found: Vec<u64> = read
            .blocks
            .clone()
            .zip(read.found)
            .map(|(block, found)| found.unwrap_or(self.legs[0][block as usize]))
            .collect();
        for part in self.regions.rebuild().read_ended(read.command) {
            let part = blocks(&part);
            let before = (part.start - read.blocks.start) as usize;
            let length = (part.end - part.start) as usize;
            let key = self.number();
            self.regions.rebuild().hold(key, bytes(&part));
            let found = found[before..before + length].to_vec();
            self.held.insert(key, (part, found));
        }
    }

    fn locked_blocks(&self) -> Option<&Range<u64>> {
        match self.locked.as_ref()? {
            Locked::Held(blocks, _) | Locked::Piece(blocks, _) => Some(blocks),
        }
    }

    /// The copy goes on by a step: a held copy is written, or a piece is read and written.
    fn copy(&mut self, rule: Option<PieceRule>) {
        while let Some(key) = self.regions.rebuild().poll_dropped() {
            self.held.remove(&key).expect("it was held");
        }
        match self.locked.take() {
            None if self.is_filled => self.lock(rule),
            None => (),
            Some(Locked::Piece(blocks, None)) => {
                if self.unreadable.iter().any(|block| blocks.contains(block)) {
                    return self.regions.rebuild().unreadable();
                }
                let found = blocks.clone().map(|block| self.legs[0][block as usize]);
                let found = found.collect();
                self.locked = Some(Locked::Piece(blocks, Some(found)));
            }
            Some(Locked::Held(blocks, found) | Locked::Piece(blocks, Some(found))) => {
                self.written(blocks, found);
            }
        }
    }

    fn lock(&mut self, rule: Option<PieceRule>) {
        let near = self.dice(LENGTH);
        let runs = self.regions.rebuild().held_runs(near, 2);
        if !runs.is_empty() {
            let run = runs[self.dice(runs.len() as u64) as usize].clone();
            let mut all = Vec::new();
            for held in self.regions.rebuild().take_run(run.start) {
                let (blocks, found) = self.held.remove(&held.key).expect("it is held");
                assert_eq!(blocks, self::blocks(&held.bytes));
                all.extend(found);
            }
            self.locked = Some(Locked::Held(blocks(&run), all));
            self.counts = true;
        } else if let Some(rule) = rule
            && let NextPiece::Piece(piece) = self.regions.next_piece(rule)
        {
            self.locked = Some(Locked::Piece(blocks(&piece), None));
            self.counts = true;
        }
    }

    fn written(&mut self, blocks: Range<u64>, found: Vec<u64>) {
        for (block, found) in blocks.clone().zip(found) {
            self.legs[1][block as usize] = found;
        }
        let mut lacked = 0;
        for block in blocks {
            if self.counts {
                lacked += u64::from(std::mem::take(&mut self.lacks[block as usize]));
                self.failed[block as usize] = false;
            }
        }
        let counted = self.regions.copied(Instant::ZERO);
        assert_eq!(counted, lacked * BLOCK);
    }

    /// The power of both legs ends: each block of a write under way is there or not, and all is copied again.
    fn cut(&mut self) {
        for place in 0..self.writes.len() {
            for leg in 0..2 {
                if self.writes[place].at[leg] == LegWork::Begun {
                    let (blocks, version) = {
                        let write = &self.writes[place];
                        (write.blocks.clone(), write.version)
                    };
                    for block in blocks {
                        if self.dice(2) == 0 {
                            self.legs[leg][block as usize] = version;
                        }
                    }
                }
            }
        }
        for write in std::mem::take(&mut self.writes) {
            self.regions.finished(Instant::ZERO, write.id);
        }
        self.fill();
        // Commands that were under way end without a result.
        for read in std::mem::take(&mut self.reads) {
            self.regions.rebuild().read_forgotten(read.command);
        }
        if let Some(blocks) = self.locked_blocks().cloned() {
            for block in blocks {
                // Anything may be there.
                self.legs[1][block as usize] = u64::MAX;
            }
            self.locked = None;
            self.regions.rebuild().not_copied();
        }
    }

    /// The leg that is filled fails: it is out, and comes back later.
    fn leave(&mut self) {
        self.regions.stop_copying();
        self.is_filled = false;
        self.lacks.fill(false);
        self.counts = false;
        // Reads and writes that are under way end later.
        for place in (0..self.writes.len()).rev() {
            self.writes[place].at[1] = LegWork::Ended;
            if self.writes[place].at[0] == LegWork::Ended {
                let write = self.writes.remove(place);
                self.regions.finished(Instant::ZERO, write.id);
            }
        }
        self.legs[1].fill(0);
    }

    fn step(&mut self) {
        self.take_effect();
        match self.dice(120) {
            0..20 => self.submit(),
            20..40 => self.go_on(),
            40..65 => self.begin_read(),
            65..90 => self.end_read(),
            90..112 => self.copy(None),
            112..116 => self.copy(Some(PieceRule::Any)),
            116..118 => self.copy(Some(PieceRule::Failed)),
            118 if self.dice(8) == 0 => self.cut(),
            119 if self.dice(4) == 0 => match self.is_filled {
                true => self.leave(),
                false => self.fill(),
            },
            _ => (),
        }
        self.look();
    }

    /// Clients are quiet, and the copy goes on: in gaps, and past the engine what these fail to read.
    fn settle(&mut self) {
        if !self.is_filled {
            self.fill();
        }
        for _ in 0..4000 {
            let (left, unreadable) = self.regions.stale_bytes();
            if self.writes.is_empty() && left == unreadable {
                break;
            }
            self.take_effect();
            if !self.writes.is_empty() {
                self.go_on();
            }
            let wanted = self.regions.wanted();
            match self.dice(3) {
                0 if self.reads.len() < 3 => {
                    // Only what is wanted is read.
                    let count = wanted.iter().count() as u64;
                    if count > 0 {
                        let run = self.dice(count) as usize;
                        let run = blocks(wanted.iter().nth(run).expect("a run"));
                        let blocks = run.start..run.end.min(run.start + 6);
                        let command = self.number();
                        self.regions.read_began(command, bytes(&blocks));
                        let found = vec![None; (blocks.end - blocks.start) as usize];
                        self.reads.push(Read {
                            command,
                            blocks,
                            found,
                        });
                    }
                }
                1 => self.end_read(),
                _ => {
                    let has_failed = self.regions.has_failed();
                    self.copy(has_failed.then_some(PieceRule::Failed));
                }
            }
            self.look();
        }
        let (left, unreadable) = self.regions.stale_bytes();
        assert_eq!(left, unreadable, "what can be read is copied");
        assert_eq!(unreadable > 0, !self.unreadable.is_empty());
        for block in (0..BLOCKS).filter(|&block| !self.is_beside_unreadable(block)) {
            let of = |leg: usize| self.legs[leg][block as usize];
            assert_eq!(of(0), of(1), "block {block}");
        }
        self.look();
    }
}

/// Histories: more with `HEADTIME_REBUILD_CASES`. Each rule that was broken on purpose fails within the first hundred.
fn cases() -> u64 {
    let more = std::env::var("HEADTIME_REBUILD_CASES");
    more.ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(300)
}

#[test]
fn both_legs_are_equal_whenever_nothing_is_to_be_copied() {
    let (mut equal_looks, mut past) = (0, 0);
    for seed in 0..cases() {
        let mut world = World::new(seed);
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..3 {
                for _ in 0..150 {
                    world.step();
                }
                world.settle();
            }
        }));
        assert!(told.is_ok(), "seed {seed}");
        equal_looks += world.equal_looks;
        past += world.past;
    }
    assert!(equal_looks > cases(), "{equal_looks} looks at equal legs");
    assert!(past > cases(), "{past} writes past the leg that is filled");
}
