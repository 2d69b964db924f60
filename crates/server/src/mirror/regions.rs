//! The regions of a mirror: which ones may differ between the legs, and which are to be copied.
//!
//! ```text
//!   write submitted --> mark --> mark durable --> commands go to the legs --> write ended
//!        quiet for a while, not to be copied, both legs flushed --> mark removed
//!   to be copied: see `rebuild`
//! ```
//!
//! No piece is copied past the engine under a write of which a leg has begun a part: the other leg would get the older
//! data last.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use block::{Duration, Instant, RequestId};

use super::bitmap::{Bitmap, PAGE_BYTES};
use super::rebuild::{NextPiece, PieceRule, Rebuild, Runs, Validity, overlap};
use super::superblock::Id;

/// A region keeps its mark for this long after its last write. A choice, as for the intents of checksums: a file
/// that is written for a while needs one mark.
pub const QUIET: Duration = Duration::from_secs(10);

/// Pages of marks that are written at once. A choice: half a track of the slowest disk.
pub const PAGES_AT_ONCE: u64 = 16;

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
    rebuild: Rebuild,
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

impl Regions {
    /// Regions of `length` bytes of data with these marks, which are on the legs. `stale` ones are to be copied.
    pub fn new(mirror: Id, region: u64, length: u64, marks: Bitmap, now: Instant) -> Self {
        let quiet = marks.iter().map(|region| (region, now)).collect();
        Regions {
            mirror,
            region,
            length,
            durable: marks.clone(),
            rebuild: Rebuild::new(region, length),
            marks,
            changed: BTreeSet::new(),
            writing: None,
            writes: BTreeMap::new(),
            holds: BTreeMap::new(),
            quiet,
            cleaning: None,
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

    /// Whether a write of these bytes needs not go to the leg that is filled.
    pub fn lacks(&self, bytes: &Range<u64>) -> bool {
        self.rebuild.lacks(bytes)
    }

    /// A write of bytes was submitted that the leg to be filled lacks, and that does not go there. Until it ends it counts
    /// as begun: nothing that was read of them before is copied.
    pub fn submitted_past(&mut self, id: RequestId, bytes: Range<u64>) {
        self.submitted(id, bytes.clone());
        self.began(&bytes);
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
        if !self.rebuild.is_stale(region) && !self.holds.contains_key(&region) {
            self.quiet.insert(region, now);
        }
    }

    /// Whether a leg may begin to write these bytes.
    pub fn may_begin(&self, bytes: &Range<u64>) -> bool {
        self.rebuild.may_write(bytes) && self.of(bytes).all(|region| self.durable.has(region))
    }

    /// A leg begins to write these bytes.
    pub fn began(&mut self, bytes: &Range<u64>) {
        for write in self.writes.values_mut() {
            if overlap(&write.bytes, bytes) {
                write.progress = WriteProgress::Begun;
            }
        }
        self.rebuild.write_began(bytes);
    }

    /// Whether a leg has begun a write of some of these bytes, and the write has not ended.
    fn is_begun(writes: &BTreeMap<RequestId, PendingWrite>, bytes: &Range<u64>) -> bool {
        let mut begun = writes
            .values()
            .filter(|write| write.progress == WriteProgress::Begun);
        begun.any(|write| overlap(&write.bytes, bytes))
    }

    /// A write failed on the leg that has all data: the other one has to get what is there.
    pub fn spoiled(&mut self, bytes: &Range<u64>) {
        for region in self.of(bytes) {
            self.mark(region);
            self.rebuild.again(region);
        }
    }

    /// All marked regions are to be copied.
    pub fn copy_marked(&mut self) {
        self.rebuild.begin(&self.marks);
        self.quiet.clear();
        self.cleaning = None;
    }

    /// From now on all new writes go to both legs.
    pub fn engage(&mut self) {
        self.early = self.writes.keys().copied().collect();
    }

    /// Nothing is to be copied any more: the leg is out. The marks stay.
    pub fn stop_copying(&mut self) {
        self.rebuild.give_up();
    }

    /// The leg that has all data begins to read these bytes for no client.
    pub fn read_began(&mut self, command: u64, bytes: Range<u64>) {
        let is_sound = self.early.is_empty() && !Self::is_begun(&self.writes, &bytes);
        let validity = match is_sound {
            true => Validity::Sound,
            false => Validity::Spoiled,
        };
        self.rebuild.read_began(command, bytes, validity);
    }

    /// The next piece to copy past the engine.
    pub fn next_piece(&mut self, rule: PieceRule) -> NextPiece {
        if !self.early.is_empty() {
            return NextPiece::Later;
        }
        let writes = &self.writes;
        self.rebuild
            .next_piece(rule, |bytes| Self::is_begun(writes, bytes))
    }

    /// Whether copies that gaps have brought wait.
    pub fn has_held(&self) -> bool {
        self.rebuild.has_held()
    }

    /// Whether reads in gaps have failed, so that pieces are due.
    pub fn has_failed(&self) -> bool {
        self.rebuild.has_failed()
    }

    /// What is locked was copied. The answer is how many bytes that are.
    pub fn copied(&mut self, now: Instant) -> u64 {
        let (whole, bytes) = self.rebuild.copied();
        for region in whole {
            self.rest(now, region);
        }
        bytes
    }

    /// What a task of the engine should read now.
    pub fn wanted(&self) -> Runs {
        match self.early.is_empty() {
            true => self.rebuild.wanted(),
            false => Runs::default(),
        }
    }

    /// The copy.
    pub fn rebuild(&mut self) -> &mut Rebuild {
        &mut self.rebuild
    }

    /// Whether pages of marks are to be written.
    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Whether nothing has to be copied.
    pub fn is_copied(&self) -> bool {
        self.rebuild.is_done()
    }

    /// Bytes of regions to be copied, and of those of them that cannot be read.
    pub fn stale_bytes(&self) -> (u64, u64) {
        self.rebuild.left_bytes()
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

fn regions_of(pages: &Range<u64>, count: u64) -> Range<u64> {
    use super::bitmap::PAGE_REGIONS;
    pages.start * PAGE_REGIONS..(pages.end * PAGE_REGIONS).min(count)
}

#[cfg(test)]
mod copied_beside_writes;

#[cfg(test)]
mod tests {
    use super::super::rebuild::PIECE;
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
        while let NextPiece::Piece(piece) = regions.next_piece(PieceRule::Any) {
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
        assert_eq!(regions.next_piece(PieceRule::Any), NextPiece::Done);
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
        assert_eq!(regions.next_piece(PieceRule::Any), NextPiece::Later);
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
        let NextPiece::Piece(piece) = regions.next_piece(PieceRule::Any) else {
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
        assert_eq!(regions.next_piece(PieceRule::Any), NextPiece::Later);
        regions.finished(Instant::ZERO, RequestId(1));
        assert!(matches!(
            regions.next_piece(PieceRule::Any),
            NextPiece::Piece(_)
        ));
    }

    #[test]
    fn a_region_that_a_failed_write_spoils_while_it_is_copied_is_copied_again() {
        let mut regions = filling();
        for _ in 0..2 {
            assert!(matches!(
                regions.next_piece(PieceRule::Any),
                NextPiece::Piece(_)
            ));
            regions.copied(Instant::ZERO);
        }
        assert!(matches!(
            regions.next_piece(PieceRule::Any),
            NextPiece::Piece(_)
        ));
        regions.spoiled(&(0..4096));
        regions.copied(Instant::ZERO);
        let copied = copy_all(&mut regions);
        assert!(copied.contains(&(0..PIECE)), "{copied:?}");
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
