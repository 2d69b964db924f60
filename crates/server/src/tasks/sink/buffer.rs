//! The sink that is a file: the pieces of a task's set one behind the other, and a bit for each block that has come. A file
//! in memory is a buffer, which its reader maps.
//!
//! ```text
//!   | piece 1 | piece 2 | ...        | up to 7 bytes | bits of the blocks, in the order of the bytes |
//!     in the order of the task's                       bit 0 of the first byte: the first block
//! ```
//!
//! A block is written before its bit is set: whoever sees the bit has the block.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::exclusive;

/// For how long a file is waited for that another task or process uses. A choice: locks of a killed service lasted for 66 ms at
/// most ([`exclusive`]).
const PATIENCE: Duration = Duration::from_millis(200);

/// Where a piece of a volume is in a file.
#[derive(Clone, Copy, Debug)]
struct PlacedPiece {
    /// The first byte in the volume.
    first: u64,
    length: u64,
    /// The first byte in the file.
    place: u64,
}

/// A file that receives the blocks of a task.
#[derive(Debug)]
pub(super) struct SinkFile {
    path: PathBuf,
    file: File,
    /// Ascending by their first bytes.
    pieces: Vec<PlacedPiece>,
    block: u64,
    /// The first byte of the bits in the file.
    bits_at: u64,
    bits: Vec<u8>,
}

/// What the file had before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EarlierBlocks {
    /// Nothing that counts.
    None,
    /// The blocks whose bits are set, of the same task.
    Kept,
}

impl SinkFile {
    /// Opens a file for pieces of a volume (first byte and length, in multiples of `block` bytes). It is created if it does
    /// not exist.
    ///
    /// # Errors
    /// If it cannot be written, is no file, or has another length than these pieces need.
    pub(super) fn open(
        path: &Path,
        pieces: &[(u64, u64)],
        block: u64,
        earlier: EarlierBlocks,
    ) -> Result<Self, String> {
        let name = path.display();
        let at = |error: &dyn std::fmt::Display| format!("{name}: {error}");
        if !path.is_absolute() {
            return Err(at(&"expected a file's whole path"));
        }
        let (pieces, bytes) = placed(pieces);
        let bits_at = bytes.next_multiple_of(8);
        let mut bits = vec![0; (bytes / block).div_ceil(8) as usize];
        let length = bits_at + bits.len() as u64;
        let file = open_or_create(path, earlier).map_err(|error| at(&error))?;
        exclusive::claim(&file, path, PATIENCE).map_err(|error| at(&error))?;
        let found = file.metadata().map_err(|error| at(&error))?;
        let is_new = found.len() == 0 && earlier == EarlierBlocks::None;
        if !found.is_file() || (found.len() != length && !is_new) {
            return Err(at(&format!(
                "{} bytes: expected an empty file, or one of {length} bytes for these pieces and their bits",
                found.len()
            )));
        }
        let prepared = match earlier {
            EarlierBlocks::Kept => file.read_exact_at(&mut bits, bits_at),
            EarlierBlocks::None => file
                .set_len(length)
                .and_then(|()| file.write_all_at(&bits, bits_at)),
        };
        prepared.map_err(|error| at(&error))?;
        Ok(SinkFile {
            path: path.to_owned(),
            file,
            pieces,
            block,
            bits_at,
            bits,
        })
    }

    /// Another handle of the file.
    ///
    /// # Errors
    /// If the process has no more.
    pub(super) fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Takes bytes of the volume, from its byte `offset` on. Those of no piece are left out.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn take(&mut self, offset: u64, bytes: &[u8]) -> Result<(), String> {
        let end = offset + bytes.len() as u64;
        let from = self
            .pieces
            .partition_point(|piece| piece.first + piece.length <= offset);
        for place in from..self.pieces.len() {
            let piece = self.pieces[place];
            if piece.first >= end {
                break;
            }
            let first = offset.max(piece.first);
            let last = end.min(piece.first + piece.length);
            let part = &bytes[(first - offset) as usize..(last - offset) as usize];
            self.put(piece.place + (first - piece.first), part)
                .map_err(|error| format!("{}: {error}", self.path.display()))?;
        }
        Ok(())
    }

    /// Writes blocks at a place of the file, and then their bits.
    fn put(&mut self, place: u64, blocks: &[u8]) -> io::Result<()> {
        self.file.write_all_at(blocks, place)?;
        let first = place / self.block;
        let past = (place + blocks.len() as u64) / self.block;
        for block in first..past {
            self.bits[(block / 8) as usize] |= 1 << (block % 8);
        }
        let changed = (first / 8) as usize..past.div_ceil(8) as usize;
        let at = self.bits_at + changed.start as u64;
        self.file.write_all_at(&self.bits[changed], at)
    }

    /// Makes what was written durable, and says what the file has.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn close(self) -> Result<String, String> {
        let name = self.path.display();
        let blocks: u64 = self
            .bits
            .iter()
            .map(|bits| u64::from(bits.count_ones()))
            .sum();
        match self.file.sync_data() {
            Ok(()) => Ok(format!("{} bytes are in {name}", blocks * self.block)),
            Err(error) => Err(format!("{name}: {error}")),
        }
    }
}

/// Opens a file, and creates a missing one if nothing of before is needed. Files of clients are opened without O_CREAT, which
/// kernels refuse for files of others in `/dev/shm` (`fs.protected_regular`).
fn open_or_create(path: &Path, earlier: EarlierBlocks) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && earlier == EarlierBlocks::None => {
            options.create_new(true).open(path)
        }
        opened => opened,
    }
}

/// The places of pieces one behind the other, in the order of the volume, and the bytes of all.
fn placed(pieces: &[(u64, u64)]) -> (Vec<PlacedPiece>, u64) {
    let mut place = 0;
    let each = pieces.iter().map(|&(first, length)| {
        let piece = PlacedPiece {
            first,
            length,
            place,
        };
        place += length;
        piece
    });
    let mut placed: Vec<PlacedPiece> = each.collect();
    placed.sort_unstable_by_key(|piece| piece.first);
    (placed, place)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BLOCK: u64 = 512;

    /// A block of a volume has its number everywhere.
    fn volume(blocks: u64) -> Vec<u8> {
        (0..blocks * BLOCK)
            .map(|byte| (byte / BLOCK) as u8)
            .collect()
    }

    proptest! {
        /// Against a naive copy: whatever comes in whatever order, each block of a piece that came is at its place with its
        /// bit, and no other bit is set.
        #[test]
        fn blocks_are_at_their_places_and_bits_say_which(
            lengths in prop::collection::vec((0_u64..5, 1_u64..9), 1..8),
            order in any::<u64>(),
            portions in prop::collection::vec((0_u64..120, 1_u64..20), 0..20),
        ) {
            let volume = volume(140);
            let mut at = 0;
            let mut pieces: Vec<(u64, u64)> = lengths.iter().map(|&(gap, length)| {
                let first = at + gap;
                at = first + length;
                (first * BLOCK, length * BLOCK)
            }).collect();
            let count = pieces.len();
            pieces.rotate_left(order as usize % count);
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("buffer");
            let open = |earlier| SinkFile::open(&path, &pieces, BLOCK, earlier);
            let mut sink = open(EarlierBlocks::None).expect("a new file");
            let mut came = [false; 140];
            for &(first, blocks) in &portions {
                let (from, to) = (first * BLOCK, (first + blocks) * BLOCK);
                sink.take(from, &volume[from as usize..to as usize]).expect("written");
                came[first as usize..(first + blocks) as usize].fill(true);
            }
            // Those of before count if they are kept.
            drop(sink);
            let sink = open(EarlierBlocks::Kept).expect("the same pieces");
            let said = sink.close().expect("written");
            let file = std::fs::read(&path).expect("a file");
            let all: u64 = pieces.iter().map(|(_, length)| length).sum();
            let bits = &file[all.next_multiple_of(8) as usize..];
            prop_assert_eq!(bits.len() as u64, (all / BLOCK).div_ceil(8));
            let (mut place, mut there) = (0, 0);
            for &(first, length) in &pieces {
                for block in first / BLOCK..(first + length) / BLOCK {
                    let bit = bits[place / 8] >> (place % 8) & 1 == 1;
                    prop_assert_eq!(bit, came[block as usize]);
                    let bytes = &file[place * BLOCK as usize..][..BLOCK as usize];
                    let is = if bit { block as u8 } else { 0 };
                    prop_assert!(bytes.iter().all(|byte| *byte == is));
                    there += u64::from(bit);
                    place += 1;
                }
            }
            let ones: u32 = bits.iter().map(|bits| bits.count_ones()).sum();
            prop_assert_eq!(u64::from(ones), there);
            prop_assert!(said.starts_with(&format!("{} bytes are in ", there * BLOCK)), "{}", said);
        }
    }

    #[test]
    fn a_file_of_another_length_is_refused_and_stays_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("buffer");
        let open = |earlier| SinkFile::open(&path, &[(0, 8 * BLOCK)], BLOCK, earlier);
        let missing = open(EarlierBlocks::Kept).expect_err("nothing was kept");
        assert!(missing.contains("buffer: "), "{missing}");
        std::fs::write(&path, [7; 100]).expect("a file");
        for earlier in [EarlierBlocks::None, EarlierBlocks::Kept] {
            let refused = open(earlier).expect_err("another length");
            assert!(
                refused.contains("100 bytes: expected an empty file, or one of 4097"),
                "{refused}"
            );
        }
        assert_eq!(std::fs::read(&path).expect("a file"), [7; 100]);
        let folder = SinkFile::open(folder.path(), &[(0, BLOCK)], BLOCK, EarlierBlocks::None);
        assert!(folder.is_err());
        let relative = SinkFile::open(Path::new("b"), &[(0, BLOCK)], BLOCK, EarlierBlocks::None);
        assert!(relative.expect_err("relative").contains("whole path"));
        // What an earlier task has left in a buffer of the same length does not count.
        std::fs::write(&path, [0xFF; 4097]).expect("a file");
        let sink = open(EarlierBlocks::None).expect("the right length");
        let second = open(EarlierBlocks::None).expect_err("another task uses it");
        assert!(second.contains("use"), "{second}");
        assert!(
            sink.close()
                .expect("written")
                .starts_with("0 bytes are in ")
        );
    }
}
