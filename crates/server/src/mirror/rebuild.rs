//! Which bytes of a mirror are to be copied, which have been, and what writes undo meanwhile.
//!
//! ```text
//!               read in a gap              written to the leg
//!   missing --> being read --> held -----> locked --> copied
//!      |  ^         |            |         ^
//!      |  '---- a write begins --'         |   writes of locked bytes wait
//!      '---- a piece, past the engine -----'
//! ```
//!
//! Bytes that were read are older than a write that a leg has begun since, or had begun before and not ended. If
//! they came to the other leg after that write, it would be lost there. So reads in gaps never delay writes: a write
//! spoils them. Only bytes that are under way to the other leg hold a write back.
//!
//! A write of bytes that are all missing can go past the other leg. They stay missing, and what was read of them before
//! its end does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::bitmap::Bitmap;

mod held;
mod runs;

use held::HeldCopies;
pub use held::HeldCopy;
pub use runs::Runs;

/// Bytes that are copied at once past the engine, or from held copies that touch. A choice: a few milliseconds of a disk.
pub const PIECE: u64 = 256 << 10;

/// Regions with begun writes that are passed by in one look. A choice: more than a drive has commands.
const TRIES: usize = 64;

/// Whether bytes that were read may be written to the other leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validity {
    /// They are what the leg with all data has.
    #[default]
    Sound,
    /// A write may have made them old.
    Spoiled,
}

/// Which bytes a piece may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceRule {
    /// Any that are missing.
    Any,
    /// Those of reads in gaps that failed.
    Failed,
}

/// What is next to be copied past the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextPiece {
    /// These bytes of the data. They are locked until [`Rebuild::copied`].
    Piece(Range<u64>),
    /// Writes are under way everywhere, or other bytes are locked.
    Later,
    /// All that can be copied has been.
    Done,
}

/// Bytes that are read in a gap.
#[derive(Clone, Debug)]
struct GapRead {
    /// The command. One that also serves a client has two such parts.
    command: u64,
    bytes: Range<u64>,
    validity: Validity,
}

/// Bytes on their way to the other leg.
#[derive(Clone, Debug)]
struct Locked {
    bytes: Range<u64>,
    validity: Validity,
}

/// The copy of a mirror.
pub struct Rebuild {
    /// Bytes of a region, and of all.
    region: u64,
    length: u64,
    /// Regions that are to be copied.
    stale: Bitmap,
    /// What of them has been copied, and how many bytes that is.
    copied: BTreeMap<u64, Runs>,
    copied_bytes: u64,
    /// Regions that could not be read from the leg with all data.
    unreadable: BTreeSet<u64>,
    /// What reads in gaps failed to read.
    failed: Runs,
    reads: Vec<GapRead>,
    held: HeldCopies,
    locked: Option<Locked>,
    /// Where the next piece is looked for.
    at: u64,
}

impl Rebuild {
    /// Nothing is to be copied of `length` bytes in regions of `region` bytes.
    pub fn new(region: u64, length: u64) -> Self {
        Rebuild {
            region,
            length,
            stale: Bitmap::empty(length.div_ceil(region)),
            copied: BTreeMap::new(),
            copied_bytes: 0,
            unreadable: BTreeSet::new(),
            failed: Runs::default(),
            reads: Vec::new(),
            held: HeldCopies::default(),
            locked: None,
            at: 0,
        }
    }

    /// Whether a region is to be copied.
    pub fn is_stale(&self, region: u64) -> bool {
        self.stale.has(region)
    }

    /// Whether nothing has to be copied.
    pub fn is_done(&self) -> bool {
        self.stale.next(0).is_none()
    }

    /// Bytes to be copied, and those of them that lie in regions that cannot be read.
    pub fn left_bytes(&self) -> (u64, u64) {
        let of = |region: u64| {
            let bytes = self.within(region);
            bytes.end - bytes.start
        };
        let last = self.length.div_ceil(self.region).checked_sub(1);
        let short = last.filter(|&last| self.stale.has(last));
        let short = short.map_or(0, |last| self.region - of(last));
        let stale = self.stale.marked() * self.region - short;
        let missing = |region: u64| of(region) - self.copied.get(&region).map_or(0, Runs::bytes);
        let unreadable = self.unreadable.iter().map(|&region| missing(region)).sum();
        (stale - self.copied_bytes, unreadable)
    }

    /// All these regions are to be copied, from the beginning.
    pub fn begin(&mut self, regions: &Bitmap) {
        self.stale.unite(regions);
        self.forget();
    }

    /// Nothing is to be copied any more.
    pub fn give_up(&mut self) {
        self.stale = Bitmap::empty(self.stale.regions());
        self.forget();
    }

    /// A region is to be copied, whatever of it has been.
    pub fn again(&mut self, region: u64) {
        self.stale.set(region);
        let copied = self.copied.remove(&region);
        self.copied_bytes -= copied.map_or(0, |copied| copied.bytes());
        let bytes = self.within(region);
        self.spoil(&bytes);
        if let Some(locked) = &mut self.locked
            && overlap(&locked.bytes, &bytes)
        {
            locked.validity = Validity::Spoiled;
        }
    }

    /// Nothing that was read or copied counts.
    fn forget(&mut self) {
        self.copied.clear();
        self.copied_bytes = 0;
        self.unreadable.clear();
        self.failed = Runs::default();
        self.spoil(&(0..self.length));
        if let Some(locked) = &mut self.locked {
            locked.validity = Validity::Spoiled;
        }
        self.at = 0;
    }

    /// What was read of these bytes is old.
    fn spoil(&mut self, bytes: &Range<u64>) {
        for read in &mut self.reads {
            if overlap(&read.bytes, bytes) {
                read.validity = Validity::Spoiled;
            }
        }
        self.held.drop_all(bytes);
    }

    /// A leg begins to write these bytes.
    pub fn write_began(&mut self, bytes: &Range<u64>) {
        self.spoil(bytes);
    }

    /// Whether a leg may begin to write these bytes.
    pub fn may_write(&self, bytes: &Range<u64>) -> bool {
        let locked = self.locked.as_ref();
        !locked.is_some_and(|locked| overlap(&locked.bytes, bytes))
    }

    /// Whether the other leg has none of these bytes, and is about to get none. A write of them needs not go there: what
    /// is read after its end will. Bytes of regions that cannot be read are not read again.
    pub fn lacks(&self, bytes: &Range<u64>) -> bool {
        let lacks = |region: u64| {
            let copied = self.copied.get(&region);
            self.stale.has(region)
                && !self.unreadable.contains(&region)
                && copied.is_none_or(|copied| !copied.has_any(bytes))
        };
        let mut regions = bytes.start / self.region..bytes.end.div_ceil(self.region);
        self.may_write(bytes) && regions.all(lacks)
    }

    /// The leg that has all data begins to read these bytes for no client. `validity` says whether a write of them
    /// had begun and not ended.
    pub fn read_began(&mut self, command: u64, bytes: Range<u64>, validity: Validity) {
        self.reads.push(GapRead {
            command,
            bytes,
            validity,
        });
    }

    /// The bytes of a command that has ended well which are sound and of which some are missing.
    pub fn read_ended(&mut self, command: u64) -> Vec<Range<u64>> {
        let ended = self.take_reads(command);
        let sound = ended
            .into_iter()
            .filter(|read| read.validity == Validity::Sound);
        sound
            .filter_map(|read| self.missing_of(&read.bytes))
            .collect()
    }

    /// A command has failed. Its bytes are read past the engine, piece by piece.
    pub fn read_failed(&mut self, command: u64) {
        for read in self.take_reads(command) {
            if let Some(missing) = self.missing_of(&read.bytes) {
                self.failed.add(missing);
            }
        }
    }

    /// The bytes of a command are not used.
    pub fn read_forgotten(&mut self, command: u64) {
        self.take_reads(command);
    }

    fn take_reads(&mut self, command: u64) -> Vec<GapRead> {
        let is_of = |read: &mut GapRead| read.command == command;
        self.reads.extract_if(.., is_of).collect()
    }

    /// From the first missing byte of these to the last.
    fn missing_of(&self, bytes: &Range<u64>) -> Option<Range<u64>> {
        let first = self.missing_from(bytes.start, bytes.end).next()?;
        let last = self.missing_from(first.start, bytes.end).last()?;
        Some(first.start..last.end)
    }

    /// Bytes that a read has brought, and that [`Rebuild::read_ended`] has just named, wait under this number. If some
    /// of them are held already, the new copy is dropped.
    pub fn hold(&mut self, key: u64, bytes: Range<u64>) {
        self.held.hold(key, bytes);
    }

    /// Whether copies wait.
    pub fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// A held copy that was spoiled since the last call.
    pub fn poll_dropped(&mut self) -> Option<u64> {
        self.held.poll_dropped()
    }

    /// The runs of held copies that begin next to a byte: at most so many from it on, and so many below it. None while
    /// bytes are locked.
    pub fn held_runs(&self, near: u64, most: usize) -> Vec<Range<u64>> {
        match self.locked {
            None => self.held.runs(near, most),
            Some(_) => Vec::new(),
        }
    }

    /// The held copies of the run that begins at this byte, to be written now. Their bytes are locked until
    /// [`Rebuild::copied`].
    pub fn take_run(&mut self, start: u64) -> Vec<HeldCopy> {
        if self.locked.is_some() {
            return Vec::new();
        }
        let run = self.held.take_run(start);
        if let Some(last) = run.last() {
            self.lock(start..last.bytes.end);
        }
        run
    }

    fn lock(&mut self, bytes: Range<u64>) {
        self.locked = Some(Locked {
            bytes,
            validity: Validity::Sound,
        });
    }

    /// The next piece to copy past the engine. `is_begun` says of which bytes a write has begun and not ended.
    pub fn next_piece(
        &mut self,
        rule: PieceRule,
        is_begun: impl Fn(&Range<u64>) -> bool,
    ) -> NextPiece {
        if self.locked.is_some() {
            return NextPiece::Later;
        }
        // Bytes under a write give way to the next region.
        for _ in 0..TRIES {
            let Some(missing) = self.next_missing(rule) else {
                return NextPiece::Done;
            };
            let piece = missing.start..missing.end.min(missing.start + PIECE);
            if !is_begun(&piece) {
                // What was read of it is not written besides.
                self.spoil(&piece);
                self.lock(piece.clone());
                return NextPiece::Piece(piece);
            }
            self.at = (piece.start / self.region + 1) * self.region;
        }
        NextPiece::Later
    }

    /// The next run of missing bytes within a region, from the present place on and around the end.
    fn next_missing(&self, rule: PieceRule) -> Option<Range<u64>> {
        let places = [self.at..self.length, 0..self.at];
        match rule {
            PieceRule::Any => places
                .into_iter()
                .find_map(|place| self.missing_from(place.start, place.end).next()),
            PieceRule::Failed => places.into_iter().find_map(|place| {
                let mut failed = self.failed.iter();
                failed.find_map(|run| {
                    let (start, end) = (run.start.max(place.start), run.end.min(place.end));
                    self.missing_from(start, end).next()
                })
            }),
        }
    }

    /// Runs of missing bytes within regions that can be read, from a byte on up to an end.
    fn missing_from(&self, start: u64, end: u64) -> impl Iterator<Item = Range<u64>> {
        let mut at = start;
        std::iter::from_fn(move || {
            while at < end {
                let region = self.stale.next(at / self.region)?;
                let within = self.within(region);
                let within = within.start.max(at)..within.end.min(end);
                if within.is_empty() {
                    return None;
                }
                let missing = match self.copied.get(&region) {
                    _ if self.unreadable.contains(&region) => None,
                    None => Some(within.clone()),
                    Some(copied) => copied.first_gap(&within),
                };
                match missing {
                    Some(run) => {
                        at = run.end;
                        return Some(run);
                    }
                    None => at = within.end,
                }
            }
            None
        })
    }

    /// What a task of the engine should read: missing bytes that are neither held nor locked, and that no read in a
    /// gap has failed to read. Runs that touch are one.
    pub fn wanted(&self) -> Runs {
        let mut wanted = Runs::default();
        self.missing_from(0, self.length)
            .for_each(|run| wanted.add(run));
        for held in self.held.iter() {
            wanted.remove(&held.bytes);
        }
        if let Some(locked) = &self.locked {
            wanted.remove(&locked.bytes);
        }
        for failed in self.failed.iter() {
            wanted.remove(failed);
        }
        wanted
    }

    /// Whether reads in gaps have failed, so that pieces are due.
    pub fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// The locked bytes are on the other leg. The answer is the regions that are whole now, and the bytes that count.
    pub fn copied(&mut self) -> (Vec<u64>, u64) {
        let Some(Locked { bytes, validity }) = self.locked.take() else {
            return (Vec::new(), 0);
        };
        if validity == Validity::Spoiled {
            return (Vec::new(), 0);
        }
        self.at = bytes.end % self.length;
        self.failed.remove(&bytes);
        let (mut whole, mut count) = (Vec::new(), 0);
        for region in bytes.start / self.region..bytes.end.div_ceil(self.region) {
            if !self.stale.has(region) {
                continue;
            }
            let within = self.within(region);
            let copied = self.copied.entry(region).or_default();
            let before = copied.bytes();
            copied.add(bytes.start.max(within.start)..bytes.end.min(within.end));
            count += copied.bytes() - before;
            self.copied_bytes += copied.bytes() - before;
            if copied.first_gap(&within).is_none() {
                self.copied.remove(&region);
                self.copied_bytes -= within.end - within.start;
                self.stale.clear(region);
                whole.push(region);
            }
        }
        if self.is_done() {
            // Nobody needs what else was read.
            self.spoil(&(0..self.length));
        }
        (whole, count)
    }

    /// The locked bytes were not copied.
    pub fn not_copied(&mut self) {
        self.locked = None;
    }

    /// The locked bytes cannot be read: their regions stay as they are.
    pub fn unreadable(&mut self) {
        if let Some(locked) = self.locked.take() {
            let regions = locked.bytes.start / self.region..locked.bytes.end.div_ceil(self.region);
            for region in regions {
                self.unreadable.insert(region);
                let bytes = self.within(region);
                self.failed.remove(&bytes);
            }
        }
    }

    /// The bytes of a region.
    fn within(&self, region: u64) -> Range<u64> {
        let first = region * self.region;
        first..(first + self.region).min(self.length)
    }
}

/// Whether two ranges have a byte in common.
pub(super) fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests;
