//! The file of a dirty bitmap: the chunks that were changed since a checkpoint.
//!
//! ```text
//!   | header | 0 of A | 0 of B | 1 of A | 1 of B | ...       sectors of 512 bytes
//! ```
//!
//! | bytes of a sector of a plane | contents |
//! |---|---|
//! | 508 | bits of 4,064 chunks of 64 KiB, the lowest bit first |
//! | 4 | CRC-32C of the bytes before, the number of the sector and the number of the bitmap |
//!
//! | bytes of the header | contents |
//! |---|---|
//! | 8, 4 | `HEADDIRT`, and the version, 1 |
//! | 4 | bytes of the drive's blocks |
//! | 8, 8, 8 | the volume's first byte on the drive, bytes of the drive, bytes of the volume |
//! | 8 | the number of the bitmap, from its creation |
//! | 8 | the number of the checkpoint that the present plane begins with, 0 at first |
//! | 8 | the number of the frozen checkpoint, or 0 |
//! | 1 | the plane of present changes: 0 is A, 1 is B |
//! | 2, ... | the drive's name: its length and its bytes, UTF-8 |
//! | 2, ... | the volume's name |
//! | 2, ... | the bitmap's name |
//! | last 4 | CRC-32C as above, with zeroes for both numbers |
//!
//! Integers are little-endian. A sector of zeroes is empty. A disk writes a sector as a whole or not at all. A
//! checkpoint freezes the present plane by one write of the header: the other plane, which is empty, takes the
//! changes from then on. A released checkpoint leaves the frozen plane empty again; an abandoned one first adds it to
//! the present plane. A crash abandons. A damaged sector stands for changes of all its chunks.

use std::io;

use super::CHUNK;
use super::bits::Bits;
use crate::checksums::record::crc;
use crate::checksums::region::{Identity, Medium};

/// The error of a bitmap's file that is refused.
#[derive(Debug, thiserror::Error)]
pub enum BitmapError {
    /// The storage failed.
    #[error("{0}: expected a readable and writable file")]
    Io(#[from] io::Error),
    /// The file is no bitmap of this version.
    #[error("{0}: remove the file, and begin with a full backup")]
    Refused(String),
}

/// The file of a dirty bitmap.
pub struct BitmapFile<M> {
    medium: M,
    header: Header,
}

/// What a bitmap's file says in its first sector.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Header {
    identity: Identity,
    name: String,
    /// Bytes of the volume.
    length: u64,
    number: u64,
    base: u64,
    /// The checkpoint of the plane that is not the present one; 0 if that is empty.
    frozen: u64,
    present: u8,
}

/// The changes that an opened file tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Changed chunks.
    pub dirty: Bits,
    /// Chunks among them that are there without a known change: of damaged sectors, or new ones of a volume that
    /// has grown.
    pub assumed: u64,
}

const SECTOR: usize = 512;
const CONTENTS: usize = SECTOR - 4;
/// Chunks of a sector.
const PER_SECTOR: u64 = CONTENTS as u64 * 8;
const MAGIC: &[u8; 8] = b"HEADDIRT";
const VERSION: u32 = 1;
/// Bytes of the longest name in a header. Names in configurations have at most 64.
const MOST_NAME: usize = 128;

type Sector = [u8; SECTOR];

impl<M: Medium> BitmapFile<M> {
    /// Makes the file of an empty bitmap. `number` should be random.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn create(
        mut medium: M,
        identity: Identity,
        (name, length): (String, u64),
        number: u64,
    ) -> io::Result<Self> {
        medium.set_length(0)?;
        medium.set_length(bytes_for(length))?;
        medium.sync()?;
        let mut file = BitmapFile {
            medium,
            header: Header {
                identity,
                name,
                length,
                number,
                base: 0,
                frozen: 0,
                present: 0,
            },
        };
        file.write_header()?;
        file.medium.sync()?;
        Ok(file)
    }

    /// Opens the file of a volume that has `length` bytes now. A checkpoint of an earlier service is abandoned.
    ///
    /// # Errors
    /// If the storage fails, or the bitmap is of another volume.
    pub fn open(
        medium: M,
        expected: &Identity,
        length: u64,
    ) -> Result<(Self, Opened), BitmapError> {
        let mut sector = [0; SECTOR];
        if medium.length()? < SECTOR as u64 {
            return Err(BitmapError::Refused(
                "an empty file: the bitmap could not be kept".to_owned(),
            ));
        }
        medium.read(&mut sector, 0)?;
        let header = decode(&sector).map_err(|problem| BitmapError::Refused(problem.to_owned()))?;
        if header.identity != *expected {
            return Err(BitmapError::Refused(format!(
                "the bitmap is of {}: expected {expected}",
                header.identity
            )));
        }
        let mut file = BitmapFile { medium, header };
        if file.medium.length()? < bytes_for(file.header.length) {
            return Err(BitmapError::Refused("the file has been cut off".to_owned()));
        }
        let mut opened = Opened {
            dirty: Bits::none(file.chunks()),
            assumed: 0,
        };
        let planes = match file.header.frozen {
            0 => vec![file.header.present],
            _ => vec![file.header.present, 1 - file.header.present],
        };
        for plane in planes {
            opened.assumed += file.read_plane(plane, &mut opened.dirty)?;
        }
        // The planes again, without damage, and with the bits of a checkpoint that is abandoned.
        file.write_plane(file.header.present, &opened.dirty)?;
        file.medium.sync()?;
        file.end_frozen(file.header.base)?;
        if length != file.header.length {
            opened.assumed += file.resize(length, &mut opened.dirty)?;
        }
        Ok((file, opened))
    }

    /// The name of the bitmap.
    pub fn name(&self) -> &str {
        &self.header.name
    }

    /// The number of the checkpoint that the present changes begin with, or 0.
    pub fn base(&self) -> u64 {
        self.header.base
    }

    /// The number of the bitmap, from its creation.
    pub fn number(&self) -> u64 {
        self.header.number
    }

    /// Bytes of the volume.
    pub fn length(&self) -> u64 {
        self.header.length
    }

    fn chunks(&self) -> u64 {
        self.header.length.div_ceil(CHUNK)
    }

    /// Adds chunks to the present plane, durably.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn mark(&mut self, chunks: &[u64]) -> io::Result<()> {
        let mut at = 0;
        while at < chunks.len() {
            let sector = chunks[at] / PER_SECTOR;
            let until = chunks[at..]
                .iter()
                .position(|chunk| chunk / PER_SECTOR != sector);
            let until = until.map_or(chunks.len(), |count| at + count);
            let place = place(sector, self.header.present);
            let mut contents = self.load(place)?.unwrap_or([0xFF; CONTENTS]);
            for chunk in &chunks[at..until] {
                let bit = (chunk % PER_SECTOR) as usize;
                contents[bit / 8] |= 1 << (bit % 8);
            }
            self.store(place, &contents)?;
            at = until;
        }
        self.medium.sync()
    }

    /// Freezes the present plane as the changes until a checkpoint. The other plane is empty.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn freeze(&mut self, checkpoint: u64) -> io::Result<()> {
        self.header.frozen = checkpoint;
        self.header.present = 1 - self.header.present;
        self.write_header()?;
        self.medium.sync()
    }

    /// Forgets the frozen plane: a backup has its changes.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn release(&mut self) -> io::Result<()> {
        self.end_frozen(self.header.frozen)
    }

    /// Adds the frozen plane, which has these chunks, to the present one.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn abandon(&mut self, frozen: &Bits) -> io::Result<()> {
        let mut all = Bits::none(self.chunks());
        self.read_plane(self.header.present, &mut all)?;
        all.merge(frozen);
        self.write_plane(self.header.present, &all)?;
        self.medium.sync()?;
        self.end_frozen(self.header.base)
    }

    fn end_frozen(&mut self, base: u64) -> io::Result<()> {
        self.header.base = base;
        self.header.frozen = 0;
        self.write_header()?;
        self.medium.sync()?;
        // Only now: until the header is durable a crash needs the bits.
        self.write_plane(1 - self.header.present, &Bits::none(self.chunks()))?;
        self.medium.sync()
    }

    /// Changes the number of the volume's bytes. New chunks, and the one at the shorter end, count as changed. The
    /// answer is their number. No checkpoint is frozen.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn resize(&mut self, length: u64, dirty: &mut Bits) -> io::Result<u64> {
        let (old, shorter) = (self.header.length, self.header.length.min(length));
        if length > old {
            self.medium.set_length(bytes_for(length))?;
        }
        dirty.resize(length.div_ceil(CHUNK));
        let before = dirty.count();
        dirty.add(shorter / CHUNK..dirty.length());
        let assumed = dirty.count() - before;
        // The longer volume first: a crash then begins again.
        let marked: Vec<u64> = (shorter / CHUNK..dirty.length()).collect();
        self.mark(&marked)?;
        self.header.length = length;
        self.write_header()?;
        self.medium.sync()?;
        Ok(assumed)
    }

    /// Empties the file, so that nothing relies on it any more.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn void(&mut self) -> io::Result<()> {
        self.medium.set_length(0)?;
        self.medium.sync()
    }

    /// The storage, for another service.
    pub fn into_medium(self) -> M {
        self.medium
    }

    /// The storage.
    #[cfg(test)]
    pub(super) fn medium(&self) -> &M {
        &self.medium
    }

    /// Replaces the storage.
    #[cfg(test)]
    pub(super) fn set_medium(&mut self, medium: M) {
        self.medium = medium;
    }

    /// Adds the chunks of a plane. The answer is the number of those in damaged sectors.
    fn read_plane(&mut self, plane: u8, to: &mut Bits) -> io::Result<u64> {
        let (chunks, mut assumed) = (self.chunks(), 0);
        for sector in 0..chunks.div_ceil(PER_SECTOR) {
            let first = sector * PER_SECTOR;
            let Some(contents) = self.load(place(sector, plane))? else {
                to.add(first..first + PER_SECTOR);
                assumed += PER_SECTOR.min(chunks - first);
                continue;
            };
            let set = (0..PER_SECTOR).filter(|bit| {
                let bit = *bit as usize;
                contents[bit / 8] >> (bit % 8) & 1 == 1
            });
            set.for_each(|bit| to.add(first + bit..first + bit + 1));
        }
        Ok(assumed)
    }

    /// Writes the sectors of a plane that differ.
    fn write_plane(&mut self, plane: u8, bits: &Bits) -> io::Result<()> {
        for sector in 0..self.chunks().div_ceil(PER_SECTOR) {
            let mut contents = [0; CONTENTS];
            for bit in 0..PER_SECTOR {
                if bits.has(sector * PER_SECTOR + bit) {
                    contents[bit as usize / 8] |= 1 << (bit % 8);
                }
            }
            let place = place(sector, plane);
            if self.load(place)? != Some(contents) {
                self.store(place, &contents)?;
            }
        }
        Ok(())
    }

    /// The contents of a sector, or none if it is damaged.
    fn load(&mut self, sector: u64) -> io::Result<Option<[u8; CONTENTS]>> {
        let mut bytes = [0; SECTOR];
        self.medium.read(&mut bytes, sector * SECTOR as u64)?;
        let mut contents = [0; CONTENTS];
        contents.copy_from_slice(&bytes[..CONTENTS]);
        let is_empty = bytes.iter().all(|&byte| byte == 0);
        let is_whole = bytes[CONTENTS..] == check(sector, self.header.number, &bytes);
        Ok((is_empty || is_whole).then_some(contents))
    }

    fn store(&mut self, sector: u64, contents: &[u8; CONTENTS]) -> io::Result<()> {
        let mut bytes = [0; SECTOR];
        bytes[..CONTENTS].copy_from_slice(contents);
        if contents.iter().any(|&byte| byte != 0) {
            let check = check(sector, self.header.number, &bytes);
            bytes[CONTENTS..].copy_from_slice(&check);
        }
        self.medium.write(&bytes, sector * SECTOR as u64)
    }

    fn write_header(&mut self) -> io::Result<()> {
        let bytes = encode(&self.header);
        self.medium.write(&bytes, 0)
    }
}

/// Bytes of the file of a volume of `length` bytes.
fn bytes_for(length: u64) -> u64 {
    let sectors = length.div_ceil(CHUNK).div_ceil(PER_SECTOR);
    (1 + 2 * sectors) * SECTOR as u64
}

fn place(sector: u64, plane: u8) -> u64 {
    1 + 2 * sector + u64::from(plane)
}

fn check(sector: u64, number: u64, bytes: &Sector) -> [u8; 4] {
    let mut all = bytes[..CONTENTS].to_vec();
    all.extend(sector.to_le_bytes());
    all.extend(number.to_le_bytes());
    crc(&all).to_le_bytes()
}

fn encode(header: &Header) -> Sector {
    let identity = &header.identity;
    let mut head = MAGIC.to_vec();
    head.extend(VERSION.to_le_bytes());
    head.extend(identity.block_bytes.to_le_bytes());
    for word in [
        identity.offset,
        identity.capacity,
        header.length,
        header.number,
        header.base,
        header.frozen,
    ] {
        head.extend(word.to_le_bytes());
    }
    head.push(header.present);
    for name in [&identity.drive, &identity.volume, &header.name] {
        let name = &name.as_bytes()[..name.len().min(MOST_NAME)];
        head.extend((name.len() as u16).to_le_bytes());
        head.extend(name);
    }
    let mut bytes = [0; SECTOR];
    bytes[..head.len()].copy_from_slice(&head);
    let check = check(0, 0, &bytes);
    bytes[CONTENTS..].copy_from_slice(&check);
    bytes
}

fn decode(bytes: &Sector) -> Result<Header, &'static str> {
    const DAMAGED: &str = "its header is damaged";
    let mut rest = &bytes[..CONTENTS];
    let mut take = |count: usize| {
        let (head, tail) = rest.split_at_checked(count).ok_or(DAMAGED)?;
        rest = tail;
        Ok::<_, &'static str>(head)
    };
    if take(8)? != MAGIC {
        return Err("this is no dirty bitmap");
    }
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    if word(take(4)?) as u32 != VERSION {
        return Err("a bitmap of another version");
    }
    if bytes[CONTENTS..] != check(0, 0, bytes) {
        return Err(DAMAGED);
    }
    let block_bytes = word(take(4)?) as u32;
    let [offset, capacity, length, number, base, frozen] =
        [take(8)?, take(8)?, take(8)?, take(8)?, take(8)?, take(8)?].map(word);
    let present = take(1)?[0];
    let mut name = || {
        let count = word(take(2)?) as usize;
        let name = std::str::from_utf8(take(count)?).map_err(|_| DAMAGED)?;
        Ok::<_, &'static str>(name.to_owned())
    };
    let (drive, volume, name) = (name()?, name()?, name()?);
    if length == 0 || length > MOST_BYTES || present > 1 {
        return Err(DAMAGED);
    }
    Ok(Header {
        identity: Identity {
            drive,
            volume,
            block_bytes,
            offset,
            capacity,
        },
        name,
        length,
        number,
        base,
        frozen,
        present,
    })
}

/// Bytes of the largest volume. A choice: an exbibyte.
const MOST_BYTES: u64 = 1 << 60;

#[cfg(test)]
mod tests;
