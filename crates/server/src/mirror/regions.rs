//! The regions of a mirror: which ones may differ between the legs, and which are to be copied.
//!
//! ```text
//!   write submitted --> mark --> mark durable --> commands go to the legs --> write ended
//!        quiet for a while, not to be copied, both legs flushed --> mark removed
//!   to be copied: pieces one after the other, none under a write of which a leg has begun a part
//! ```
//!
//! The rule of copies: a piece is read from the leg that has all data and written to the other one, and no write of
//! these blocks begins meanwhile. A write that one leg has begun and the other one has not would be undone there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use block::{Duration, Instant, RequestId};

use super::bitmap::{Bitmap, PAGE_BYTES};
use super::superblock::Id;

/// A region keeps its mark for this long after its last write. A choice, as for the intents of checksums: a file
/// that is written for a while needs one mark.
pub const QUIET: Duration = Duration::from_secs(10);

/// Pages of marks that are written at once. A choice: half a track of the slowest disk.
pub const PAGES_AT_ONCE: u64 = 16;

/// Bytes that are copied at once. A choice: a few milliseconds of a disk.
pub const PIECE: u64 = 256 << 10;

/// The regions of a mirror.
pub struct Regions {
    mirror: Id,
    /// Bytes of a region, and of all.
    region: u64,
    length: u64,
    /// The marks as they should be on the legs.
    marks: Bitmap,
    /// The marks that are certainly on all legs in use.
    durable: Bitmap,
    /// What is to be copied.
    stale: Bitmap,
    /// Regions that could not be read from the leg with all data.
    unreadable: BTreeSet<u64>,
    /// Pages on the legs that are not as they should be.
    changed: BTreeSet<u64>,
    /// The pages that are being written, as they are written.
    writing: Option<(Range<u64>, Bitmap)>,
    /// Writes that were submitted and have not ended.
    writes: BTreeMap<RequestId, PendingWrite>,
    /// How many of them each region has.
    holds: BTreeMap<u64, usize>,
    /// Marked regions without writes, and when the last one ended.
    quiet: BTreeMap<u64, Instant>,
    /// Regions whose marks go when the flush has ended.
    cleaning: Option<BTreeSet<u64>>,
    copying: Copying,
    /// Writes that were submitted while the leg to be filled was not written. They come before all copies.
    early: BTreeSet<RequestId>,
}

/// A write that has not ended.
struct PendingWrite {
    bytes: Range<u64>,
    progress: WriteProgress,
}

/// How far a write has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteProgress {
    /// No leg has it.
    Submitted,
    /// A leg has begun it.
    Begun,
}

/// The place of the copy.
#[derive(Clone, Debug, Default)]
struct Copying {
    /// The next byte.
    at: u64,
    /// The piece that is being copied.
    piece: Option<Range<u64>>,
    /// Whether the region of the piece has to be copied from its beginning.
    restart: Restart,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Restart {
    #[default]
    No,
    Yes,
}

/// What is next to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextPiece {
    /// These bytes of the data. They are held until [`Regions::copied`].
    Piece(Range<u64>),
    /// Writes are under way everywhere.
    Later,
    /// All that can be copied has been.
    Done,
}

impl Regions {
    /// Regions of `length` bytes of data with these marks, which are on the legs. `stale` ones are to be copied.
    pub fn new(mirror: Id, region: u64, length: u64, marks: Bitmap, now: Instant) -> Self {
        let quiet = marks.iter().map(|region| (region, now)).collect();
        Regions {
            mirror,
            region,
            length,
            durable: marks.clone(),
            stale: Bitmap::empty(marks.regions()),
            marks,
            unreadable: BTreeSet::new(),
            changed: BTreeSet::new(),
            writing: None,
            writes: BTreeMap::new(),
            holds: BTreeMap::new(),
            quiet,
            cleaning: None,
            copying: Copying::default(),
            early: BTreeSet::new(),
        }
    }

    fn of(&self, bytes: &Range<u64>) -> Range<u64> {
        bytes.start / self.region..bytes.end.div_ceil(self.region)
    }

    /// A write of these bytes of the data was submitted: its regions get marks.
    pub fn submitted(&mut self, id: RequestId, bytes: Range<u64>) {
        for region in self.of(&bytes) {
            *self.holds.entry(region).or_default() += 1;
            self.mark(region);
        }
        let progress = WriteProgress::Submitted;
        self.writes.insert(id, PendingWrite { bytes, progress });
    }

    fn mark(&mut self, region: u64) {
        self.quiet.remove(&region);
        if let Some(cleaning) = &mut self.cleaning {
            cleaning.remove(&region);
        }
        if !self.marks.has(region) {
            self.marks.set(region);
            self.changed.insert(Bitmap::page_of(region));
        }
    }

    /// A request has ended. It may have been no write.
    pub fn finished(&mut self, now: Instant, id: RequestId) {
        let Some(write) = self.writes.remove(&id) else {
            return;
        };
        self.early.remove(&id);
        for region in self.of(&write.bytes) {
            let left = self.holds.get(&region).map_or(0, |holds| holds - 1);
            match left {
                0 => {
                    self.holds.remove(&region);
                    self.rest(now, region);
                }
                _ => {
                    self.holds.insert(region, left);
                }
            }
        }
    }

    /// A region without writes loses its mark later, unless it is to be copied.
    fn rest(&mut self, now: Instant, region: u64) {
        if !self.stale.has(region) && !self.holds.contains_key(&region) {
            self.quiet.insert(region, now);
        }
    }

    /// Whether a leg may begin to write these bytes.
    pub fn may_begin(&self, bytes: &Range<u64>) -> bool {
        let piece = self.copying.piece.as_ref();
        !piece.is_some_and(|piece| overlap(piece, bytes))
            && self.of(bytes).all(|region| self.durable.has(region))
    }

    /// A leg begins to write these bytes.
    pub fn began(&mut self, bytes: &Range<u64>) {
        for write in self.writes.values_mut() {
            if overlap(&write.bytes, bytes) {
                write.progress = WriteProgress::Begun;
            }
        }
    }

    /// A write failed on the leg that has all data: the other one has to get what is there.
    pub fn spoiled(&mut self, bytes: &Range<u64>) {
        for region in self.of(bytes) {
            self.mark(region);
            self.stale.set(region);
            self.copy_again(region);
        }
    }

    /// What was copied of a region does not count.
    fn copy_again(&mut self, region: u64) {
        let first = region * self.region;
        let within = first..first + self.region;
        if within.contains(&self.copying.at) {
            self.copying.at = first;
        }
        if (self.copying.piece.as_ref()).is_some_and(|piece| within.contains(&piece.start)) {
            self.copying.restart = Restart::Yes;
        }
    }

    /// All marked regions are to be copied.
    pub fn copy_marked(&mut self) {
        self.stale.unite(&self.marks);
        self.quiet.clear();
        self.cleaning = None;
        self.unreadable.clear();
        self.copying.at = 0;
        self.copying.restart = Restart::Yes;
    }

    /// From now on all new writes go to both legs.
    pub fn engage(&mut self) {
        self.early = self.writes.keys().copied().collect();
    }

    /// Nothing is to be copied any more: the leg is out. The marks stay.
    pub fn stop_copying(&mut self) {
        self.stale = Bitmap::empty(self.marks.regions());
        self.copying = Copying::default();
        self.unreadable.clear();
    }

    /// The next piece to copy.
    pub fn next_piece(&mut self) -> NextPiece {
        if self.copying.piece.is_some() || !self.early.is_empty() {
            return NextPiece::Later;
        }
        self.copying.restart = Restart::No;
        // A region in which writes are under way gives way to the next one, and begins again later.
        for _ in 0..TRIES {
            let Some(region) = self.stale_from(self.copying.at / self.region) else {
                return NextPiece::Done;
            };
            let first = region * self.region;
            if !(first..first + self.region).contains(&self.copying.at) {
                self.copying.at = first;
            }
            let end = (self.copying.at + PIECE)
                .min(first + self.region)
                .min(self.length);
            let piece = self.copying.at..end;
            let is_begun = |write: &PendingWrite| {
                write.progress == WriteProgress::Begun && overlap(&write.bytes, &piece)
            };
            if !self.writes.values().any(is_begun) {
                self.copying.piece = Some(piece.clone());
                return NextPiece::Piece(piece);
            }
            self.copying.at = (region + 1) * self.region;
        }
        NextPiece::Later
    }

    /// The next region to copy from this one on, around the end.
    fn stale_from(&self, region: u64) -> Option<u64> {
        let readable = |from: u64| {
            let mut next = self.stale.next(from);
            while let Some(found) = next {
                if !self.unreadable.contains(&found) {
                    break;
                }
                next = self.stale.next(found + 1);
            }
            next
        };
        readable(region).or_else(|| readable(0))
    }

    /// The piece was copied.
    pub fn copied(&mut self, now: Instant) {
        let Some(piece) = self.copying.piece.take() else {
            return;
        };
        let region = piece.start / self.region;
        if self.copying.restart == Restart::Yes {
            return;
        }
        self.copying.at = piece.end;
        if piece.end == ((region + 1) * self.region).min(self.length) {
            self.stale.clear(region);
            self.rest(now, region);
        }
    }

    /// The piece was not copied, and will be tried again.
    pub fn not_copied(&mut self) {
        self.copying.piece = None;
    }

    /// The piece cannot be read: its region stays as it is.
    pub fn unreadable(&mut self) {
        if let Some(piece) = self.copying.piece.take() {
            self.unreadable.insert(piece.start / self.region);
        }
    }

    /// Whether pages of marks are to be written.
    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Whether nothing has to be copied.
    pub fn is_copied(&self) -> bool {
        self.stale.next(0).is_none()
    }

    /// Bytes of regions to be copied, and of those of them that cannot be read.
    pub fn stale_bytes(&self) -> (u64, u64) {
        let stale = (self.stale.marked() * self.region).min(self.length);
        (stale, self.unreadable.len() as u64 * self.region)
    }

    /// Bytes of regions in which the legs may differ.
    pub fn marked_bytes(&self) -> u64 {
        (self.marks.marked() * self.region).min(self.length)
    }

    /// The pages of marks to write next: their numbers and their bytes. One write at a time.
    pub fn next_pages(&mut self) -> Option<(Range<u64>, Vec<u8>)> {
        let first = *self.changed.first().filter(|_| self.writing.is_none())?;
        let mut end = first;
        while end < first + PAGES_AT_ONCE && self.changed.remove(&end) {
            end += 1;
        }
        let mut bytes = Vec::with_capacity((end - first) as usize * PAGE_BYTES);
        for page in first..end {
            bytes.extend(self.marks.page(page, &self.mirror));
        }
        self.writing = Some((first..end, self.marks.clone()));
        Some((first..end, bytes))
    }

    /// The pages are on all legs in use.
    pub fn pages_written(&mut self) {
        let Some((pages, written)) = self.writing.take() else {
            return;
        };
        for region in regions_of(&pages, written.regions()) {
            // A mark that was removed since is not counted on.
            if written.has(region) && self.marks.has(region) {
                self.durable.set(region);
            }
        }
    }

    /// The pages may be on no leg.
    pub fn pages_failed(&mut self) {
        if let Some((pages, _)) = self.writing.take() {
            self.changed.extend(pages);
        }
    }

    /// When marks can be removed next. It looks at all quiet regions.
    pub fn next_cleaning(&self) -> Option<Instant> {
        let earliest = self
            .quiet
            .values()
            .min()
            .filter(|_| self.cleaning.is_none());
        earliest.map(|&since| since + QUIET)
    }

    /// Begins to remove the marks of regions that were quiet for so long. Both legs are flushed now.
    pub fn begin_cleaning(&mut self, now: Instant, quiet: Duration) {
        let due = self.quiet.iter();
        let due = due.filter(|(_, since)| **since + quiet <= now);
        self.cleaning = Some(due.map(|(&region, _)| region).collect());
    }

    /// Both legs were flushed.
    pub fn flushed(&mut self) {
        for region in self.cleaning.take().into_iter().flatten() {
            self.quiet.remove(&region);
            self.marks.clear(region);
            self.durable.clear(region);
            self.changed.insert(Bitmap::page_of(region));
        }
    }

    /// A leg was not flushed.
    pub fn not_flushed(&mut self, now: Instant) {
        for region in self.cleaning.take().into_iter().flatten() {
            self.rest(now, region);
        }
    }
}

/// Regions with begun writes that are passed by in one look. A choice: more than a drive has commands.
const TRIES: usize = 64;

fn regions_of(pages: &Range<u64>, count: u64) -> Range<u64> {
    use super::bitmap::PAGE_REGIONS;
    pages.start * PAGE_REGIONS..(pages.end * PAGE_REGIONS).min(count)
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: u64 = 1 << 20;

    /// Three regions with marks on the legs, all to be copied.
    fn filling() -> Regions {
        let mut regions = Regions::new([1; 16], REGION, 3 * REGION, Bitmap::full(3), Instant::ZERO);
        regions.copy_marked();
        regions
    }

    fn copy_all(regions: &mut Regions) -> Vec<Range<u64>> {
        let mut copied = Vec::new();
        while let NextPiece::Piece(piece) = regions.next_piece() {
            copied.push(piece);
            regions.copied(Instant::ZERO);
        }
        copied
    }

    #[test]
    fn all_marked_bytes_are_copied_once() {
        let mut regions = filling();
        let copied = copy_all(&mut regions);
        assert!(regions.is_copied());
        assert_eq!(regions.next_piece(), NextPiece::Done);
        let expected = (0..12).map(|piece| piece * PIECE..(piece + 1) * PIECE);
        assert!(copied.into_iter().eq(expected));
    }

    #[test]
    fn no_piece_is_copied_under_a_write_that_a_leg_has_begun() {
        let mut regions = filling();
        let id = RequestId(1);
        regions.submitted(id, 4096..8192);
        regions.began(&(4096..8192));
        let copied = copy_all(&mut regions);
        assert!(
            copied.iter().all(|piece| piece.start >= REGION),
            "{copied:?}"
        );
        assert_eq!(regions.next_piece(), NextPiece::Later);
        assert!(!regions.is_copied());
        regions.finished(Instant::ZERO, id);
        assert_eq!(
            copy_all(&mut regions).len(),
            4,
            "its region from the beginning"
        );
        assert!(regions.is_copied());
    }

    #[test]
    fn no_write_begins_under_a_copy_and_none_without_a_durable_mark() {
        let mut regions = filling();
        let NextPiece::Piece(piece) = regions.next_piece() else {
            panic!("there is one");
        };
        assert!(!regions.may_begin(&(piece.end - 4096..piece.end + 4096)));
        assert!(regions.may_begin(&(piece.end..piece.end + 4096)));
        regions.copied(Instant::ZERO);
        assert!(regions.may_begin(&piece));
        let mut clean = Regions::new([1; 16], REGION, 3 * REGION, Bitmap::empty(3), Instant::ZERO);
        let bytes = REGION - 4096..REGION + 4096;
        clean.submitted(RequestId(1), bytes.clone());
        assert!(!clean.may_begin(&bytes));
        assert!(clean.next_pages().is_some());
        assert!(!clean.may_begin(&bytes), "they are not yet there");
        clean.pages_written();
        assert!(clean.may_begin(&bytes));
    }

    #[test]
    fn writes_from_before_the_leg_was_written_end_before_the_first_copy() {
        let mut regions = filling();
        regions.submitted(RequestId(1), 2 * REGION..2 * REGION + 4096);
        regions.engage();
        regions.submitted(RequestId(2), 0..4096);
        assert_eq!(regions.next_piece(), NextPiece::Later);
        regions.finished(Instant::ZERO, RequestId(1));
        assert!(matches!(regions.next_piece(), NextPiece::Piece(_)));
    }

    #[test]
    fn a_region_that_a_failed_write_spoils_while_it_is_copied_is_copied_again() {
        let mut regions = filling();
        for _ in 0..2 {
            assert!(matches!(regions.next_piece(), NextPiece::Piece(_)));
            regions.copied(Instant::ZERO);
        }
        assert!(matches!(regions.next_piece(), NextPiece::Piece(_)));
        regions.spoiled(&(0..4096));
        regions.copied(Instant::ZERO);
        assert_eq!(regions.next_piece(), NextPiece::Piece(0..PIECE));
    }

    #[test]
    fn a_mark_goes_only_after_a_flush_that_began_after_the_last_write() {
        let mut regions = Regions::new([1; 16], REGION, REGION, Bitmap::full(1), Instant::ZERO);
        let due = regions.next_cleaning().expect("it is quiet");
        assert_eq!(due, Instant::ZERO + QUIET);
        regions.begin_cleaning(due, QUIET);
        regions.submitted(RequestId(1), 0..4096);
        regions.finished(due, RequestId(1));
        regions.flushed();
        assert_eq!(
            regions.marked_bytes(),
            REGION,
            "written since the flush began"
        );
        regions.begin_cleaning(due + QUIET, QUIET);
        assert_eq!(regions.marked_bytes(), REGION);
        regions.flushed();
        assert_eq!(regions.marked_bytes(), 0);
        assert!(!regions.may_begin(&(0..4096)), "the mark is not counted on");
    }
}
