//! The processed blocks of a scan, saved to a file from time to time.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use block::{Extent, Lba, Sectors};
use drive::Geometry;
use scheduler::background::DeclaredSet;
use scheduler::freeblock::WantedBlocks;
use tracing::{info, warn};

use crate::tasks::scan::ScanState;
use crate::tasks::scan_file::{Consumer, ScanProgress};

/// The account of a scan that can be resumed.
pub(crate) struct Ledger {
    file: PathBuf,
    pub(super) progress: ScanProgress,
    /// The blocks that are not processed.
    left: WantedBlocks,
    /// The blocks that the program has not received, if the consumer is a program.
    unread: Option<WantedBlocks>,
    /// The pieces of the drive that the scan reads.
    set: DeclaredSet,
    is_resumed: bool,
    every: Duration,
    /// The earliest time of the next save.
    next: Instant,
    /// Whether blocks were processed since the last save.
    is_news: bool,
    /// The first invalid line of the program.
    pub(super) complaint: Option<String>,
    /// The file that has the blocks, if that is the consumer: it is durable before what it has is saved.
    pub(super) filled: Option<File>,
}

/// The largest number of blocks of a slice. A choice, above a 56th of any track's blocks
/// (`LEAST_STRIDE` of the set of wanted blocks).
const WIDEST_SLICE: u64 = 4096;

/// The reciprocal of the largest share of time for saving. A choice: a large set in pieces has hundreds of
/// megabytes.
const WRITING: u32 = 100;

impl Ledger {
    /// Resumes the scan of a file, or begins one.
    ///
    /// # Errors
    /// If the file is of another scan or unusable, or cannot be created.
    pub(super) fn open(
        state: &ScanState,
        begun: ScanProgress,
        (set, geometry): (&DeclaredSet, &Arc<Geometry>),
    ) -> Result<Self, String> {
        let name = state.file.display();
        if !state.file.is_absolute() || state.file.file_name().is_none() {
            return Err(format!("{name}: expected a file's whole path"));
        }
        let at = |error: &dyn std::fmt::Display| format!("{name}: {error}");
        let all = slices(set, geometry)?;
        let (progress, left, is_resumed) = match File::open(&state.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => (begun, all, false),
            Err(error) => return Err(at(&error)),
            Ok(file) => {
                let decoded = ScanProgress::decode(geometry, BufReader::new(file));
                let (progress, left) = decoded.map_err(|error| at(&error))?;
                is_same(&progress, &begun).map_err(|problem| at(&problem))?;
                let mut beyond = left.clone();
                for extent in all.extents() {
                    beyond.remove(extent);
                }
                if beyond.left() > 0 {
                    return Err(at(&"blocks outside of the volume: expected its own"));
                }
                info!(file = %name, left = left.left(), "a scan is gone on with");
                (progress, left, true)
            }
        };
        let mut ledger = Ledger {
            file: state.file.clone(),
            unread: (progress.consumer == Consumer::Program).then(|| left.clone()),
            progress,
            left,
            set: set.clone(),
            is_resumed,
            every: Duration::from_secs(state.every_s),
            next: Instant::now(),
            is_news: false,
            complaint: None,
            filled: None,
        };
        // Whether it can be written is known now, and not after hours.
        ledger.write().map_err(|error| at(&error))?;
        Ok(ledger)
    }

    /// The blocks that are still to be read.
    pub(super) fn left(&self) -> &WantedBlocks {
        &self.left
    }

    /// Whether it is the account of a scan that was begun before.
    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// The checksum has processed the bytes from `offset` of the volume on.
    pub(super) fn summed(&mut self, offset: u64, bytes: &[u8]) {
        self.progress.sum.add(offset, bytes);
        self.stored(offset, bytes.len() as u64);
    }

    /// The file has so many bytes from `offset` of the volume on.
    pub(super) fn stored(&mut self, offset: u64, length: u64) {
        if let Some(extent) = self.extent(offset, length) {
            self.left.remove(extent);
        }
        self.is_news = true;
        self.save_if_due();
    }

    /// The program is about to receive these bytes of the volume.
    pub(super) fn handed_over(&mut self, offset: u64, length: u64) {
        let extent = self.extent(offset, length);
        if let (Some(unread), Some(extent)) = (&mut self.unread, extent) {
            unread.remove(extent);
        }
    }

    /// The program has acknowledged these bytes of the volume.
    ///
    /// # Errors
    /// If the program has not received them.
    pub(super) fn acknowledged(&mut self, offset: u64, length: u64) -> Result<(), String> {
        let given = self.extent(offset, length).filter(|extent| {
            let mut lbas = extent.start().0..extent.end().0;
            let unread = self.unread.as_ref();
            unread.is_some_and(|unread| lbas.all(|lba| !unread.contains(Lba(lba))))
        });
        let Some(extent) = given else {
            return Err(format!(
                "the program answered \"{offset} {length}\": expected a portion that it was given"
            ));
        };
        self.left.remove(extent);
        self.is_news = true;
        self.save_if_due();
        Ok(())
    }

    /// The program has succeeded, so it has processed everything that it received.
    pub(super) fn all_acknowledged(&mut self) {
        if let Some(unread) = &self.unread {
            self.left = unread.clone();
        }
    }

    /// Saves the account if it is due.
    pub(super) fn save_if_due(&mut self) {
        // What is done needs no file: it is removed at the end.
        if self.is_news && self.left.left() > 0 && Instant::now() >= self.next {
            self.save();
        }
    }

    /// Saves the account.
    pub(crate) fn save(&mut self) {
        if let Err(error) = self.write() {
            let file = self.file.display();
            warn!(%file, %error, "where a scan stands could not be written: the file is of before");
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let began = Instant::now();
        if let Some(filled) = &self.filled {
            filled.sync_data()?;
        }
        let written = self.progress.save(&self.left, &self.file);
        let ended = Instant::now();
        let least = match self.every.is_zero() {
            // Whoever wants it written after each portion pays for that.
            true => Duration::ZERO,
            false => (ended - began) * WRITING,
        };
        self.next = ended + self.every.max(least);
        self.is_news = false;
        written
    }

    /// Ends the account. The answer is a note for the user. The file is removed if no block is left, or
    /// enough of the set was read.
    pub(super) fn close(&mut self, rest: Rest) -> String {
        let file = self.file.display();
        if self.left.left() > 0 && rest == Rest::Needed {
            let bytes = self.left.left() * u64::from(self.progress.block_bytes);
            let text = format!("; {bytes} bytes are left: the same command goes on from {file}");
            self.save();
            return text;
        }
        if let Err(error) = std::fs::remove_file(&self.file) {
            return format!("; {file}, which is of no more use, stays: {error}");
        }
        String::new()
    }

    /// The blocks of the drive for a range of one piece. At the ends of the piece it includes the rest of the
    /// slices there, which are wanted as a whole.
    ///
    /// ```text
    ///        | piece            |
    ///   | slice | slice | ... | slice |
    ///   <------->  what removes the first one
    /// ```
    fn extent(&self, offset: u64, length: u64) -> Option<Extent> {
        let block = u64::from(self.progress.block_bytes);
        let end = offset.checked_add(length)?;
        let is_whole = offset.is_multiple_of(block) && length.is_multiple_of(block);
        if length == 0 || end > self.progress.length || !is_whole {
            return None;
        }
        let mut first = (self.progress.offset + offset) / block;
        let mut past = (self.progress.offset + end) / block;
        let pieces = self.set.pieces();
        let place = pieces.partition_point(|piece| piece.end().0 <= first);
        let piece = pieces.get(place)?;
        if first < piece.start().0 || past > piece.end().0 {
            return None;
        }
        // No slice has blocks of two pieces.
        if first == piece.start().0 {
            let before = place
                .checked_sub(1)
                .map_or(0, |place| pieces[place].end().0);
            first = first.saturating_sub(WIDEST_SLICE).max(before);
        }
        if past == piece.end().0 {
            let after = pieces
                .get(place + 1)
                .map_or(u64::MAX, |piece| piece.start().0);
            past = (past + WIDEST_SLICE).min(after);
        }
        Extent::new(Lba(first), Sectors(past - first)).ok()
    }
}

/// Whether the rest of a set is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// It is.
    Needed,
    /// Enough of the set was read.
    Enough,
}

/// All blocks of the set, rounded up to slices.
///
/// # Errors
/// If two pieces share a slice: whether it was dealt with could not be kept.
fn slices(set: &DeclaredSet, geometry: &Arc<Geometry>) -> Result<WantedBlocks, String> {
    let mut all = WantedBlocks::none(geometry);
    for &piece in set.pieces() {
        if all.contains(piece.start()) {
            return Err(format!(
                "the piece at block {} begins in a slice of the piece before it: expected pieces farther \
                 apart, or one piece of both, to keep a state file",
                piece.start().0
            ));
        }
        all.add(piece).map_err(|error| error.to_string())?;
    }
    Ok(all)
}

/// Checks that a file's scan is the requested one.
fn is_same(found: &ScanProgress, asked: &ScanProgress) -> Result<(), String> {
    let place = |progress: &ScanProgress| {
        format!(
            "volume {} of drive {} ({} bytes from {} on, in blocks of {})",
            progress.volume, progress.drive, progress.length, progress.offset, progress.block_bytes
        )
    };
    if place(found) != place(asked) {
        return Err(format!(
            "the state of a scan of {}: expected one of {}",
            place(found),
            place(asked)
        ));
    }
    let consumer = |consumer| match consumer {
        Consumer::Checksum => "a checksum",
        Consumer::Program => "a program",
        Consumer::File => "a file",
    };
    if found.consumer != asked.consumer {
        return Err(format!(
            "the state of a scan into {}: expected one into {}",
            consumer(found.consumer),
            consumer(asked.consumer)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::set_sum::SetSum;

    /// A drive whose blocks are kept by slices of many.
    fn large() -> Arc<Geometry> {
        let entry = drive::catalog::find("modern-20tb").expect("it is shipped");
        entry.profile().expect("a profile").geometry
    }

    fn progress(consumer: Consumer) -> ScanProgress {
        ScanProgress {
            drive: "disk".to_owned(),
            volume: "db".to_owned(),
            // Not where a slice begins or ends.
            offset: 4096 * 1003,
            length: 4096 * 5,
            block_bytes: 4096,
            consumer,
            sum: SetSum::default(),
        }
    }

    fn ledger(folder: &tempfile::TempDir, consumer: Consumer) -> Result<Ledger, String> {
        let state = ScanState {
            file: folder.path().join("s"),
            every_s: 0,
        };
        let whole = Extent::new(Lba(1003), Sectors(5)).expect("an extent");
        let set = DeclaredSet::all(vec![whole]).expect("a piece");
        Ledger::open(&state, progress(consumer), (&set, &large()))
    }

    /// Slices have several blocks here: a piece is dealt with when the last of its own blocks is, and none
    /// of its neighbours' with it.
    #[test]
    fn pieces_are_dealt_with_one_by_one_and_do_not_share_slices() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = ScanState {
            file: folder.path().join("s"),
            every_s: 0,
        };
        let open = |pieces: &[(u64, u64)]| {
            let pieces = pieces.iter().map(|&(start, length)| {
                Extent::new(Lba(start), Sectors(length)).expect("an extent")
            });
            let set = DeclaredSet::all(pieces.collect()).expect("a set");
            let begun = ScanProgress {
                offset: 0,
                length: 4096 * 100_000,
                ..progress(Consumer::Checksum)
            };
            Ledger::open(&state, begun, (&set, &large()))
        };
        let near = open(&[(1000, 2), (1003, 2)]).err().expect("one slice");
        assert!(near.contains("expected pieces farther apart"), "{near}");
        let mut ledger = open(&[(1000, 3), (1100, 30)]).expect("two pieces");
        let all = ledger.left().left();
        ledger.summed(4096 * 1000, &[0; 4096]);
        ledger.summed(4096 * 1001, &[0; 4096]);
        ledger.summed(4096 * 1100, &[0; 4096 * 30]);
        let left = ledger.left().left();
        assert!(0 < left && left < all && left < 15, "{left} of {all}");
        assert!(
            ledger.extent(4096 * 999, 4096).is_none(),
            "no block of a piece"
        );
        drop(ledger);
        let mut ledger = open(&[(1000, 3), (1100, 30)]).expect("the same pieces");
        assert_eq!(ledger.left().left(), left);
        let rest = ledger.close(Rest::Needed);
        assert!(rest.contains("bytes are left"), "{rest}");
        assert_eq!(ledger.close(Rest::Enough), "");
        assert!(!folder.path().join("s").exists());
    }

    #[test]
    fn slices_at_the_edges_of_a_volume_are_dealt_with_by_what_of_them_is_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ledger = ledger(&folder, Consumer::Program).expect("a file");
        assert!(ledger.left().left() > 5, "slices of more than a block");
        ledger.handed_over(0, 4096 * 5);
        let shorter = ledger.acknowledged(0, 4096 * 6);
        assert!(shorter.expect_err("past the end").contains("expected"));
        assert!(ledger.acknowledged(1, 4096).is_err(), "half a block");
        assert_eq!(ledger.acknowledged(0, 4096 * 5), Ok(()));
        assert_eq!(ledger.left().left(), 0);
        assert_eq!(ledger.close(Rest::Needed), "");
        assert!(!folder.path().join("s").exists());
    }

    #[test]
    fn what_was_not_given_is_not_acknowledged() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ledger = ledger(&folder, Consumer::Program).expect("a file");
        let wanted = ledger.left().left();
        assert!(ledger.acknowledged(0, 4096 * 5).is_err());
        assert_eq!(ledger.left().left(), wanted);
        ledger.all_acknowledged();
        assert_eq!(ledger.left().left(), wanted, "nothing was handed over");
    }

    #[test]
    fn blocks_outside_of_the_volume_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut all = WantedBlocks::none(&large());
        let far = Extent::new(Lba(1_000_000), Sectors(5_000)).expect("an extent");
        all.add(far).expect("on the drive");
        let file = folder.path().join("s");
        let saved = progress(Consumer::Checksum).save(&all, &file);
        saved.expect("it is written");
        let problem = ledger(&folder, Consumer::Checksum).err().expect("refused");
        assert!(
            problem.ends_with("blocks outside of the volume: expected its own"),
            "{problem}"
        );
    }
}
