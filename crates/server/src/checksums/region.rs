//! The region of a volume: a file with the records of its chunks and the intents of its writes.
//!
//! ```text
//!   sector   0        1       2       3 ... 18    19      20 ... 35      1634    1635
//!            header   marks   codes   records     codes   records  ...   marks   codes ...
//!                     '       '----- 42 MiB ----' '------ the next ---'
//!                     '------------------- 4032 MiB -----------------'
//! ```
//!
//! A mark says that the codes of a mebibyte's chunks are not all 0, so few sectors of codes are read at a start.
//!
//! | bytes of a sector | contents |
//! |---|---|
//! | 504 | the header, marks of 4032 mebibytes, intents of 672 chunks in six bits each, or 42 records of 12 bytes |
//! | 4 | zeroes |
//! | 4 | CRC-32C of the bytes before, the number of the sector and the number of the region |
//!
//! | bytes of the header | contents |
//! |---|---|
//! | 8, 4 | `HEADSUMS`, and the version, 2 |
//! | 4 | bytes of the drive's blocks |
//! | 8, 8, 8 | the volume's first byte on the drive, bytes of the drive, bytes of the volume |
//! | 8 | the number of the region, from its creation |
//! | 2, ... | the drive's name: its length and its bytes, UTF-8 |
//! | 2, ... | the volume's name |
//!
//! Integers are little-endian. A sector of zeroes is empty. A disk writes a sector as a whole or not at all, so a
//! power cut leaves old or new sectors. The region has 0.0198 % of the volume's size.

use std::io;
use std::ops::Range;

use super::intent::CODE_BITS;
use super::record::{Changes, PageSums, RECORD_BYTES, Record, Verdict, crc};
use super::{ALL_PAGES, CHUNK, PAGES};

mod header;
mod intents;
mod medium;

use header::{VERSION, decode_header, encode_header};
pub use medium::Medium;

/// The volume of a region and its geometry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name of the drive.
    pub drive: String,
    /// The name of the volume.
    pub volume: String,
    /// Bytes of the drive's blocks.
    pub block_bytes: u32,
    /// The first byte of the volume on the drive.
    pub offset: u64,
    /// Bytes of the drive.
    pub capacity: u64,
}

/// The error of a region that is refused.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// The storage failed.
    #[error("{0}: expected a readable and writable file")]
    Io(#[from] io::Error),
    /// The file is no region.
    #[error("byte 0: these are no checksums of a volume: expected \"HEADSUMS\"")]
    Magic,
    /// Another version wrote the file.
    #[error(
        "byte 8: version {0} of a region of checksums: expected {VERSION}. Remove the file: the next scrub builds new ones"
    )]
    Version(u32),
    /// The header is damaged.
    #[error("its header is damaged: expected the checksum of its bytes")]
    Damaged,
    /// The region is of another volume.
    #[error("the checksums are of {found}: expected those of {expected}")]
    Other {
        /// The volume of the region.
        found: String,
        /// The volume that was asked for.
        expected: String,
    },
}

/// The result of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// The bytes have the checksum.
    Sound,
    /// There was no checksum: the one of these bytes is kept from now on.
    Adopted,
    /// The bytes differ where a write was interrupted: their checksum is kept from now on. The mask has the pages whose
    /// damage is not told from the write.
    AdoptedAfterCrash(u16),
    /// Trimmed bytes have no checksum.
    Undefined,
    /// The pages beside unreadable ones have the checksum.
    SoundBeside,
    /// What is left of the checksum does not guard the pages beside unreadable ones.
    Unverified,
    /// Other bytes than those that were written. The mask has the pages that explain it.
    Damaged(u16),
}

/// An open region.
pub struct Region<M> {
    medium: M,
    identity: Identity,
    /// Bytes of the volume.
    length: u64,
    number: u64,
    /// Sectors that were not readable or had another checksum, since the region was opened.
    damaged_sectors: u64,
}

/// Bytes of a sector: the smallest unit that disks write as a whole.
const SECTOR: usize = 512;
/// Bytes of a sector's contents.
const CONTENTS: usize = 504;
const RECORDS_PER_SECTOR: u64 = (CONTENTS / RECORD_BYTES) as u64;
/// Chunks with one mark: those of a mebibyte. A choice: 20 TB have 4,731 sectors of marks.
const CHUNKS_PER_MARK: u64 = 16;
const MARKS_PER_SECTOR: u64 = CONTENTS as u64 * 8;
/// Chunks with one sector of codes.
const CHUNKS_PER_CODES: u64 = CONTENTS as u64 * 8 / CODE_BITS;
/// Sectors of one sector of codes and its records.
const GROUP_SECTORS: u64 = 1 + CHUNKS_PER_CODES / RECORDS_PER_SECTOR;
/// Sectors of one sector of marks and its groups.
const SPAN_SECTORS: u64 = 1 + MARKS_PER_SECTOR * CHUNKS_PER_MARK / CHUNKS_PER_CODES * GROUP_SECTORS;
const _: () = assert!(
    CHUNKS_PER_CODES.is_multiple_of(RECORDS_PER_SECTOR)
        && CHUNKS_PER_CODES.is_multiple_of(CHUNKS_PER_MARK)
        && (MARKS_PER_SECTOR * CHUNKS_PER_MARK).is_multiple_of(CHUNKS_PER_CODES)
        && PAGES == ALL_PAGES.count_ones() as usize,
    "mebibytes and sectors of records are within one group"
);
type Contents = [u8; CONTENTS];

impl<M: Medium> Region<M> {
    /// Makes the empty region of a volume of `length` bytes. `number` should be random.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn create(mut medium: M, identity: Identity, length: u64, number: u64) -> io::Result<Self> {
        medium.set_length(0)?;
        medium.set_length(SECTOR as u64)?;
        let mut region = Region {
            medium,
            identity,
            length,
            number,
            damaged_sectors: 0,
        };
        // A crash meanwhile leaves an unfinished region, or one that was cut off.
        region.write_header()?;
        region.medium.sync()?;
        region.medium.set_length(bytes_for(length))?;
        region.medium.sync()?;
        Ok(region)
    }

    /// Whether a file is empty, or a crash came before its header.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn is_unfinished(medium: &M) -> io::Result<bool> {
        let mut sector = [0; SECTOR];
        match medium.length()? {
            0 => Ok(true),
            // Nothing longer is unfinished: it may be somebody's image.
            512 => {
                medium.read(&mut sector, 0)?;
                Ok(sector == [0; SECTOR])
            }
            _ => Ok(false),
        }
    }

    /// Opens the region of a volume that has `length` bytes now. The second answer is the set of intents: writes
    /// that may have been interrupted.
    ///
    /// # Errors
    /// If the storage fails, or the region is of another volume.
    pub fn open(
        medium: M,
        expected: &Identity,
        length: u64,
    ) -> Result<(Self, Vec<(u64, u16)>), RegionError> {
        let mut sector = [0; SECTOR];
        match medium.length()? {
            0..512 => return Err(RegionError::Magic),
            _ => medium.read(&mut sector, 0)?,
        }
        let (identity, old_length, number) = decode_header(&sector)?;
        if identity != *expected {
            return Err(RegionError::Other {
                found: identity.to_string(),
                expected: expected.to_string(),
            });
        }
        let mut region = Region {
            medium,
            identity,
            length: old_length,
            number,
            damaged_sectors: 0,
        };
        if region.medium.length()? < bytes_for(old_length) {
            // What was cut off reads as empty sectors.
            region.medium.set_length(bytes_for(old_length))?;
        }
        region.resize(length)?;
        let intents = region.intents()?;
        // A killed service may have left intents that were not durable. The next writes rely on them.
        region.medium.sync()?;
        Ok((region, intents))
    }

    /// Bytes of the volume.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Sectors that were not readable or had another checksum, since the region was opened.
    pub fn damaged_sectors(&self) -> u64 {
        self.damaged_sectors
    }

    /// Changes the number of the volume's bytes. The chunk at the shorter end and new chunks have no checksums.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn resize(&mut self, length: u64) -> io::Result<()> {
        if length == self.length {
            return Ok(());
        }
        let (old_end, shorter) = (chunks(self.length.max(length)), self.length.min(length));
        self.medium.set_length(bytes_for(self.length.max(length)))?;
        self.fill(shorter / CHUNK..old_end, Record::Nothing)?;
        self.medium.sync()?;
        self.length = length;
        self.write_header()?;
        self.medium.set_length(bytes_for(length))?;
        self.medium.sync()
    }

    /// Changes records. All changes are durable on the volume's drive already.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn settle(&mut self, changes: &[(u64, Changes)]) -> io::Result<()> {
        // A volume that became shorter has no chunks past its end.
        let end = chunks(self.length);
        for (chunk, changes) in changes.iter().filter(|(chunk, _)| *chunk < end) {
            self.change(*chunk, |contents| {
                let record = get(contents, *chunk).changed(changes);
                put(contents, *chunk, record);
            })?;
        }
        Ok(())
    }

    /// Gives chunks this record durably.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn void_chunks(&mut self, chunks: Range<u64>, record: Record) -> io::Result<()> {
        self.fill(chunks, record)?;
        self.medium.sync()
    }

    fn fill(&mut self, chunks: Range<u64>, record: Record) -> io::Result<()> {
        let mut chunk = chunks.start;
        while chunk < chunks.end {
            // Groups of sectors end with a sector.
            let next = (chunk / RECORDS_PER_SECTOR + 1) * RECORDS_PER_SECTOR;
            let here = chunk..next.min(chunks.end);
            self.change(chunk, |contents| {
                here.for_each(|chunk| put(contents, chunk, record));
            })?;
            chunk = next;
        }
        Ok(())
    }

    /// Removes the checksum of a chunk.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn forget(&mut self, chunk: u64) -> io::Result<()> {
        self.change(chunk, |contents| put(contents, chunk, Record::Nothing))
    }

    /// Compares a chunk that was read with its record. A chunk without a checksum gets one. A crash may have interrupted
    /// changes of the doubted pages.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn verify(&mut self, chunk: u64, sums: &PageSums, doubted: u16) -> io::Result<Verified> {
        let (sector, _) = place(chunk);
        let mut contents = self.load(sector)?;
        let record = get(&contents, chunk);
        let verified = match record.verify(sums) {
            Verdict::Undefined => return Ok(Verified::Undefined),
            Verdict::Sound => Verified::Sound,
            Verdict::Unknown => Verified::Adopted,
            Verdict::Damaged(pages) if doubted == 0 => return Ok(Verified::Damaged(pages)),
            Verdict::Damaged(_) => match record.without(doubted).verify(sums) {
                Verdict::Damaged(pages) => return Ok(Verified::Damaged(pages)),
                Verdict::Sound => Verified::AdoptedAfterCrash(doubted),
                _ => Verified::AdoptedAfterCrash(ALL_PAGES),
            },
        };
        let whole = Record::of(sums);
        if record != whole {
            put(&mut contents, chunk, whole);
            self.store(sector, &contents)?;
        }
        Ok(verified)
    }

    /// Compares the pages of a chunk beside unreadable ones with its record. Nothing is adopted.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn verify_beside(
        &mut self,
        chunk: u64,
        sums: &PageSums,
        (doubted, unreadable): (u16, u16),
    ) -> io::Result<Verified> {
        let record = self.record(chunk)?;
        let rest = |doubted: u16| record.without(doubted | unreadable).verify(sums);
        let verdict = match rest(0) {
            Verdict::Damaged(_) if doubted != 0 => rest(doubted),
            verdict => verdict,
        };
        Ok(match verdict {
            Verdict::Sound => Verified::SoundBeside,
            Verdict::Damaged(pages) => Verified::Damaged(pages & !unreadable),
            Verdict::Unknown | Verdict::Undefined => Verified::Unverified,
        })
    }

    /// The record of a chunk.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn record(&mut self, chunk: u64) -> io::Result<Record> {
        Ok(get(&self.load(place(chunk).0)?, chunk))
    }

    /// The storage, for another service.
    #[cfg(test)]
    pub(super) fn into_medium(self) -> M {
        self.medium
    }

    /// The storage.
    #[cfg(test)]
    pub(super) fn medium(&self) -> &M {
        &self.medium
    }

    /// Empties the region, so that nothing relies on it any more.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn void(&mut self) -> io::Result<()> {
        self.medium.set_length(0)?;
        self.medium.sync()
    }

    /// Changes the sector with a chunk's record.
    fn change(&mut self, chunk: u64, change: impl FnOnce(&mut Contents)) -> io::Result<()> {
        let (sector, _) = place(chunk);
        let old = self.load(sector)?;
        let mut contents = old;
        change(&mut contents);
        match contents == old {
            true => Ok(()),
            false => self.store(sector, &contents),
        }
    }

    /// The contents of a sector. A damaged one is empty.
    fn load(&mut self, sector: u64) -> io::Result<Contents> {
        let mut bytes = [0; SECTOR];
        self.medium.read(&mut bytes, sector * SECTOR as u64)?;
        let mut contents = [0; CONTENTS];
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(contents);
        }
        match bytes[SECTOR - 4..] == self.check(sector, &bytes).to_le_bytes() {
            true => contents.copy_from_slice(&bytes[..CONTENTS]),
            false => self.damaged_sectors += 1,
        }
        Ok(contents)
    }

    fn store(&mut self, sector: u64, contents: &Contents) -> io::Result<()> {
        let mut bytes = [0; SECTOR];
        bytes[..CONTENTS].copy_from_slice(contents);
        let check = self.check(sector, &bytes);
        bytes[SECTOR - 4..].copy_from_slice(&check.to_le_bytes());
        self.medium.write(&bytes, sector * SECTOR as u64)
    }

    fn check(&self, sector: u64, bytes: &[u8; SECTOR]) -> u32 {
        check(sector, self.number, bytes)
    }

    fn write_header(&mut self) -> io::Result<()> {
        let bytes = encode_header(&self.identity, self.length, self.number);
        self.medium.write(&bytes, 0)
    }
}

/// Bytes of the region of a volume of `length` bytes.
pub fn bytes_for(length: u64) -> u64 {
    let last = chunks(length).saturating_sub(1);
    (place(last).0 + 1) * SECTOR as u64
}

fn chunks(length: u64) -> u64 {
    length.div_ceil(CHUNK)
}

/// The sector of a chunk's record, and its first byte there.
fn place(chunk: u64) -> (u64, usize) {
    let sector = chunk % CHUNKS_PER_CODES / RECORDS_PER_SECTOR;
    let at = (chunk % RECORDS_PER_SECTOR) as usize * RECORD_BYTES;
    (codes_sector(chunk) + 1 + sector, at)
}

/// The sector of a mebibyte's mark.
fn marks_sector(mark: u64) -> u64 {
    1 + mark / MARKS_PER_SECTOR * SPAN_SECTORS
}

/// The sector of the code of a chunk's intent.
fn codes_sector(chunk: u64) -> u64 {
    let mark = chunk / CHUNKS_PER_MARK;
    let group = chunk % (MARKS_PER_SECTOR * CHUNKS_PER_MARK) / CHUNKS_PER_CODES;
    marks_sector(mark) + 1 + group * GROUP_SECTORS
}

/// The record of a chunk in its sector. Bytes that are no record count as none.
fn get(contents: &Contents, chunk: u64) -> Record {
    let (_, at) = place(chunk);
    let mut bytes = [0; RECORD_BYTES];
    bytes.copy_from_slice(&contents[at..at + RECORD_BYTES]);
    Record::decode(bytes).unwrap_or_default()
}

fn put(contents: &mut Contents, chunk: u64, record: Record) {
    let (_, at) = place(chunk);
    contents[at..at + RECORD_BYTES].copy_from_slice(&record.encode());
}

fn check(sector: u64, number: u64, bytes: &[u8; SECTOR]) -> u32 {
    let mut all = [0; SECTOR + 12];
    all[..SECTOR - 4].copy_from_slice(&bytes[..SECTOR - 4]);
    all[SECTOR - 4..SECTOR + 4].copy_from_slice(&sector.to_le_bytes());
    all[SECTOR + 4..].copy_from_slice(&number.to_le_bytes());
    crc(&all)
}

#[cfg(test)]
mod tests;
