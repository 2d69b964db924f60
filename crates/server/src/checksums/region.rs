//! The region of a volume: a file with the records of its chunks and the intents of its writes.
//!
//! ```text
//!   sector   0        1         2 ... 1537      1538      1539 ...
//!            header   intents   records         intents   records
//!                     '------ 4032 MiB -----'   '------ the next 4032 MiB
//! ```
//!
//! | bytes of a sector | contents |
//! |---|---|
//! | 504 | the header, 4032 intents of a mebibyte each, or 42 records of 12 bytes |
//! | 4 | zeroes |
//! | 4 | CRC-32C of the bytes before, the number of the sector and the number of the region |
//!
//! | bytes of the header | contents |
//! |---|---|
//! | 8, 4 | `HEADSUMS`, and the version, 1 |
//! | 4 | bytes of the drive's blocks |
//! | 8, 8, 8 | the volume's first byte on the drive, bytes of the drive, bytes of the volume |
//! | 8 | the number of the region, from its creation |
//! | 2, ... | the drive's name: its length and its bytes, UTF-8 |
//! | 2, ... | the volume's name |
//!
//! Integers are little-endian. A sector of zeroes is empty. A disk writes a sector as a whole or not at all, so a
//! power cut leaves old or new sectors. The region has 0.0187 % of the volume's size.

use std::io;
use std::ops::Range;

use super::record::{Changes, PageSums, RECORD_BYTES, Record, Verdict, crc};
use super::{CHUNK, CHUNKS_PER_INTENT};

mod header;
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
    #[error("byte 8: version {0} of a region of checksums: expected {VERSION}")]
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

/// Whether a chunk was being changed when the service or the machine stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It was not.
    None,
    /// It may have been.
    Interrupted,
}

/// The result of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// The bytes have the checksum.
    Sound,
    /// There was no checksum: the one of these bytes is kept from now on.
    Adopted,
    /// The bytes differ and a write was interrupted there: their checksum is kept from now on.
    AdoptedAfterCrash,
    /// Trimmed bytes have no checksum.
    Undefined,
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
const INTENTS_PER_SECTOR: u64 = CONTENTS as u64 * 8;
/// Sectors with the records of one sector of intents.
const RECORD_SECTORS: u64 = INTENTS_PER_SECTOR * CHUNKS_PER_INTENT / RECORDS_PER_SECTOR;
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
    ) -> Result<(Self, Vec<u64>), RegionError> {
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

    /// Makes intents durable: writes of their chunks may begin.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn intend(&mut self, intents: &[u64]) -> io::Result<()> {
        self.set_intents(intents, |byte, bit| *byte |= bit)?;
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

    /// Removes intents, once everything before is durable.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn clear(&mut self, intents: &[u64]) -> io::Result<()> {
        if intents.is_empty() {
            return Ok(());
        }
        self.medium.sync()?;
        // A volume that became shorter has no intents past its end.
        let end = chunks(self.length).div_ceil(CHUNKS_PER_INTENT);
        let intents: Vec<u64> = (intents.iter().copied())
            .filter(|&intent| intent < end)
            .collect();
        self.set_intents(&intents, |byte, bit| *byte &= !bit)
    }

    /// Compares a chunk that was read with its record. A chunk without a checksum gets one.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn verify(&mut self, chunk: u64, sums: &PageSums, doubt: Doubt) -> io::Result<Verified> {
        let (sector, _) = place(chunk);
        let mut contents = self.load(sector)?;
        let record = get(&contents, chunk);
        let verified = match (record.verify(sums), doubt) {
            (Verdict::Undefined, _) => return Ok(Verified::Undefined),
            (Verdict::Damaged(pages), Doubt::None) => return Ok(Verified::Damaged(pages)),
            (Verdict::Sound, _) => Verified::Sound,
            (Verdict::Unknown, _) => Verified::Adopted,
            (Verdict::Damaged(_), Doubt::Interrupted) => Verified::AdoptedAfterCrash,
        };
        let whole = Record::of(sums);
        if record != whole {
            put(&mut contents, chunk, whole);
            self.store(sector, &contents)?;
        }
        Ok(verified)
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

    fn intents(&mut self) -> io::Result<Vec<u64>> {
        let mut found = Vec::new();
        let count = chunks(self.length).div_ceil(CHUNKS_PER_INTENT);
        for first in (0..count).step_by(INTENTS_PER_SECTOR as usize) {
            let sector = intent_sector(first);
            let contents = self.load_intents(sector)?;
            let here = first..count.min(first + INTENTS_PER_SECTOR);
            found.extend(here.filter(|intent| {
                let bit = intent % INTENTS_PER_SECTOR;
                contents[(bit / 8) as usize] >> (bit % 8) & 1 == 1
            }));
        }
        Ok(found)
    }

    fn set_intents(&mut self, intents: &[u64], set: impl Fn(&mut u8, u8)) -> io::Result<()> {
        let mut sorted = intents.to_vec();
        sorted.sort_unstable();
        for group in sorted.chunk_by(|a, b| a / INTENTS_PER_SECTOR == b / INTENTS_PER_SECTOR) {
            let sector = intent_sector(group[0]);
            let mut contents = self.load_intents(sector)?;
            for intent in group {
                let bit = intent % INTENTS_PER_SECTOR;
                set(&mut contents[(bit / 8) as usize], 1 << (bit % 8));
            }
            self.store(sector, &contents)?;
        }
        Ok(())
    }

    /// The contents of a sector of intents. Any write of a damaged one may have been interrupted.
    fn load_intents(&mut self, sector: u64) -> io::Result<Contents> {
        let before = self.damaged_sectors;
        let mut contents = self.load(sector)?;
        if self.damaged_sectors > before {
            contents.fill(0xFF);
            self.store(sector, &contents)?;
        }
        Ok(contents)
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
    let group = RECORD_SECTORS * RECORDS_PER_SECTOR;
    let sector = chunk % group / RECORDS_PER_SECTOR;
    let at = (chunk % RECORDS_PER_SECTOR) as usize * RECORD_BYTES;
    (2 + chunk / group * (RECORD_SECTORS + 1) + sector, at)
}

fn intent_sector(intent: u64) -> u64 {
    1 + intent / INTENTS_PER_SECTOR * (RECORD_SECTORS + 1)
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
