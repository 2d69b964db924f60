//! The changes of a volume in flight, and when they become records.
//!
//! ```text
//!   intent durable --> command at the drive --> ended --> flushed --> quiet for a while --> record, intent removed
//!   '------------------------- a crash: the chunk is doubted, not damaged ------------------------------'
//! ```
//!
//! The keeper does no I/O. [`Keeper::poll`] has its next request to the region, [`Keeper::answer`] takes the answers.
//! The rules that keep it from a false alarm:
//!
//! 1. A change goes to the drive when the intents of its pages are durable.
//! 2. A record follows a change when a flush that began after the change has ended.
//! 3. An intent is removed after its record, and it is durable before.
//! 4. A change that failed, was undone by a power cut or met another one leaves its pages unknown. So does each one that
//!    was not flushed when a flush failed: the drive may have dropped it, and later flushes end well.
//! 5. A read counts if no change of its chunk was in flight meanwhile, and the chunk has no changes without a record.
//! 6. A read counts if all of its bytes are on the medium. An earlier service may have left changes in the drive's
//!    buffer, so reads before the first flush do not count. Nor do reads of trimmed bytes and of chunks without room
//!    for their changes, until a flush.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use block::Instant;

mod intending;
mod reads;
mod settling;
mod space;

use super::cover::{Cover, Piece};
use super::orders::{Order, Report};
use super::pass::Pass;
use super::region::Verified;
use super::{ALL_PAGES, CHUNK};
use intending::Runs;

/// How trimmed bytes read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trimmed {
    /// As the same bytes each time.
    Fixed,
    /// As the drive likes.
    Undefined,
}

/// Whether a change may go to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Its intents are durable.
    Ready,
    /// It waits for its intents.
    Waiting,
}

/// The end of a change or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was carried out.
    Good,
    /// Any part of it may have been.
    Failed,
}

/// The changes of a volume that have no record yet.
pub struct Keeper {
    /// Bytes of the volume.
    length: u64,
    trimmed: Trimmed,
    /// The pages of chunks with an intent on the medium, and of those that were asked for.
    intended: BTreeMap<u64, u16>,
    asked: BTreeMap<u64, u16>,
    /// Sequential writes, whose intents are asked for ahead.
    runs: Runs,
    /// Chunks with changes since their intent.
    dirty: BTreeMap<u64, Dirty>,
    /// Chunks with changes since their record.
    active: BTreeMap<u64, Active>,
    in_flight: BTreeMap<u64, Change>,
    /// Chunks that were trimmed since the last flush, and the numbers of the ends of these trims.
    trims: Vec<(Range<u64>, u64)>,
    /// Reads in flight, and the changes that were in flight meanwhile.
    reads: BTreeMap<u64, Vec<Range<u64>>>,
    /// Flushes in flight, and the changes that they cover.
    flushes: BTreeMap<u64, u64>,
    /// Counts ends of changes. Those up to `durable` are on the medium.
    ended: u64,
    durable: u64,
    /// Whether a flush has ended since the begin. What is read before may be lost with the drive's power.
    has_flushed: bool,
    /// Pages of chunks with changes that a crash may have interrupted.
    doubts: BTreeMap<u64, u16>,
    orders: VecDeque<Order>,
    looked: Instant,
    is_hasty: bool,
    pass: Option<Pass>,
    /// The number of passes that were begun.
    passes: u64,
    /// Chunks whose checksum was given up because too many had changes.
    forgotten: u64,
    /// The largest number of chunks with changes.
    most_active: usize,
}

/// A chunk's changes since its intent.
struct Dirty {
    in_flight: u32,
    /// The number and the time of the last end.
    last: u64,
    at: Instant,
    /// Whether its changes had no room. It has no checksum then.
    is_crowded_out: bool,
}

/// A chunk's changes since its record.
struct Active {
    cover: Cover,
    touched: u16,
    in_flight: u32,
    /// The number and the time of the last end.
    last: u64,
    at: Instant,
    /// The time of the first end.
    since: Option<Instant>,
}

/// A change at the drive.
struct Change {
    range: Range<u64>,
    pieces: Vec<(u64, Piece)>,
    kind: Kind,
    /// Whether it met another change of the same bytes.
    met: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Write,
    /// A trim or zeroes without a transfer.
    Punch,
}

/// The largest number of chunks with changes. A choice: ten megabytes.
const MOST_ACTIVE: usize = 1 << 16;

/// Changes, from their begin to their record.
impl Keeper {
    /// The keeper of a volume of `length` bytes whose region has these intents.
    pub fn new(length: u64, trimmed: Trimmed, intents: &[(u64, u16)]) -> Self {
        Keeper {
            length,
            trimmed,
            intended: intents.iter().copied().collect(),
            asked: BTreeMap::new(),
            runs: Runs::default(),
            dirty: BTreeMap::new(),
            active: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            trims: Vec::new(),
            reads: BTreeMap::new(),
            flushes: BTreeMap::new(),
            ended: 0,
            durable: 0,
            has_flushed: false,
            doubts: intents.iter().copied().collect(),
            orders: VecDeque::new(),
            looked: Instant::ZERO,
            is_hasty: false,
            pass: None,
            passes: 0,
            forgotten: 0,
            most_active: MOST_ACTIVE,
        }
    }

    /// Bytes of the volume.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Chunks whose checksum was given up because too many had changes.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Chunks with changes that have no record yet.
    pub fn active(&self) -> usize {
        self.active.len()
    }

    /// Pages with changes that a crash may have interrupted and that were not verified since.
    pub fn doubted(&self) -> u64 {
        let pages = self.doubts.values();
        pages.map(|pages| u64::from(pages.count_ones())).sum()
    }

    /// A write with these pieces goes to the drive.
    pub fn write_begun(&mut self, key: u64, range: Range<u64>, pieces: Vec<(u64, Piece)>) {
        for chunk in chunks(&range) {
            self.make_room(chunk);
            let active = self.active.entry(chunk);
            active.or_insert_with(Active::new).in_flight += 1;
            let dirty = self.dirty.entry(chunk);
            dirty.or_insert(Dirty::NEW).in_flight += 1;
        }
        self.runs.add(&range);
        self.begin(key, range, pieces, Kind::Write);
    }

    fn begin(&mut self, key: u64, range: Range<u64>, pieces: Vec<(u64, Piece)>, kind: Kind) {
        let mut met = false;
        for other in self
            .in_flight
            .values_mut()
            .filter(|other| overlap(&other.range, &range))
        {
            other.met = true;
            met = true;
        }
        self.reads
            .values_mut()
            .for_each(|spoiled| spoiled.push(range.clone()));
        if let Some(pass) = &mut self.pass {
            pass.spoil(&range);
        }
        let change = Change {
            range,
            pieces,
            kind,
            met,
        };
        let before = self.in_flight.insert(key, change);
        assert!(before.is_none(), "keys of changes in flight are unique");
    }

    /// A change has ended at the drive.
    pub fn change_ended(&mut self, now: Instant, key: u64, ending: Ending) {
        let Some(change) = self.in_flight.remove(&key) else {
            return;
        };
        self.ended += 1;
        if change.kind == Kind::Punch {
            return self.trim_ended(chunks(&change.range));
        }
        for (chunk, piece) in change.pieces {
            let length = bytes_of(chunk, self.length);
            let Some(active) = self.active.get_mut(&chunk) else {
                continue;
            };
            active.touched |= 1 << piece.page;
            match ending == Ending::Good && !change.met {
                true => active.cover.put(piece, length),
                false => active.cover.forget(piece.page, piece.start..piece.end),
            }
        }
        for chunk in chunks(&change.range) {
            if let Some(active) = self.active.get_mut(&chunk) {
                active.in_flight -= 1;
                (active.last, active.at) = (self.ended, now);
                active.since.get_or_insert(now);
            }
            if let Some(dirty) = self.dirty.get_mut(&chunk) {
                dirty.in_flight -= 1;
                (dirty.last, dirty.at) = (self.ended, now);
            }
        }
    }

    /// Gives up the checksum of another chunk if too many have changes.
    fn make_room(&mut self, chunk: u64) {
        if self.active.len() < self.most_active || self.active.contains_key(&chunk) {
            return;
        }
        let idle = self.active.iter().find(|(_, active)| active.in_flight == 0);
        if let Some((&other, _)) = idle {
            self.active.remove(&other);
            self.forgotten += 1;
            if let Some(dirty) = self.dirty.get_mut(&other) {
                dirty.is_crowded_out = true;
            }
            self.orders.push_back(Order::Forget(other));
        }
    }

    /// A flush of the drive begins.
    pub fn flush_begun(&mut self, key: u64) {
        self.flushes.insert(key, self.ended);
    }

    /// A flush has ended.
    pub fn flush_ended(&mut self, key: u64, ending: Ending) {
        let Some(covered) = self.flushes.remove(&key) else {
            return;
        };
        if ending == Ending::Failed {
            // A change that has not ended may be in the drive's buffer, too.
            self.in_flight.values_mut().for_each(|one| one.met = true);
            return self.lose_unflushed();
        }
        self.durable = self.durable.max(covered);
        self.has_flushed = true;
        let durable = self.durable;
        self.trims.retain(|(_, ended)| *ended > durable);
    }

    /// The drive has lost its power, and with it any change that was not flushed.
    pub fn power_cut(&mut self) {
        self.lose_unflushed();
    }

    /// Any change that was not flushed may be undone.
    fn lose_unflushed(&mut self) {
        for active in self.active.values_mut() {
            if active.last > self.durable || active.in_flight > 0 {
                active.cover.clear();
            }
        }
        // What they return may be what was lost.
        self.reads.clear();
    }

    /// The next request to the region.
    pub fn poll(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// An answer of the region.
    pub fn answer(&mut self, now: Instant, report: &Report) {
        match report {
            Report::Intended(intents) => self.are_intended(now, intents),
            Report::Voided(_) => (),
            Report::Verified { chunk, verified } => {
                if let Some(pass) = &mut self.pass {
                    pass.verified(*chunk, *verified);
                }
                if !matches!(
                    verified,
                    Verified::Damaged(_) | Verified::SoundBeside | Verified::Unverified
                ) {
                    self.undoubt(*chunk, ALL_PAGES);
                }
                if self.intended.contains_key(chunk) {
                    // One without changes is removed.
                    let dirty = self.dirty.entry(*chunk);
                    dirty.or_insert(Dirty {
                        at: now,
                        ..Dirty::NEW
                    });
                }
            }
        }
    }

    /// These pages of a chunk have a record that a crash did not interrupt.
    fn undoubt(&mut self, chunk: u64, pages: u16) {
        if let Some(doubted) = self.doubts.get_mut(&chunk) {
            *doubted &= !pages;
            if *doubted == 0 {
                self.doubts.remove(&chunk);
            }
        }
    }

    /// The time of the next [`Keeper::settle`].
    pub fn next_wakeup(&self) -> Option<Instant> {
        (!self.dirty.is_empty() || self.waits_for_flush()).then(|| self.looked + self.interval())
    }
}

impl Active {
    fn new() -> Self {
        Active {
            cover: Cover::default(),
            touched: 0,
            in_flight: 0,
            last: 0,
            at: Instant::ZERO,
            since: None,
        }
    }
}

impl Dirty {
    const NEW: Dirty = Dirty {
        in_flight: 0,
        last: 0,
        at: Instant::ZERO,
        is_crowded_out: false,
    };
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

fn chunks(range: &Range<u64>) -> Range<u64> {
    range.start / CHUNK..range.end.div_ceil(CHUNK)
}

/// Bytes of a chunk in a volume of `length` bytes.
fn bytes_of(chunk: u64, length: u64) -> u64 {
    length.saturating_sub(chunk * CHUNK).min(CHUNK)
}

#[cfg(test)]
mod tests;
