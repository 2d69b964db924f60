//! The file format of a wanted set, which survives a restart.
//!
//! The file holds extents, not bits, because a reader may divide the drive differently.
//!
//! | bytes | meaning |
//! |---|---|
//! | 8 | `HTWANTED` |
//! | 4 | the version, 1 |
//! | 8 | the drive's size in blocks |
//! | ... | for each extent: the blocks since the end of the last one, and its length |
//! | 2 | 0 and 0: the end |
//! | 8 | the checksum of all bytes before it (FNV-1a, 64 bits) |
//!
//! Integers are little-endian. Those of extents have seven bits per byte, lowest first, and the
//! eighth bit is set if more follow (LEB128).

use std::io::{self, Read, Write};

use block::{Extent, Lba, Sectors};
use drive::Geometry;

use super::WantedBlocks;

/// The reason that bytes are not a wanted set of this drive.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The reader failed, or the bytes end too early.
    #[error("byte {at}: {error}: expected more of a set of wanted blocks")]
    Io {
        /// The offset.
        at: u64,
        /// The reader's error.
        error: io::Error,
    },
    /// The bytes are of another format, or end in the first word.
    #[error("byte 0: these bytes are not a set of wanted blocks: expected \"HTWANTED\"")]
    Magic,
    /// The version is unknown.
    #[error("byte 8: version {0} of a set of wanted blocks: expected {VERSION}")]
    Version(u32),
    /// The set belongs to another drive.
    #[error("byte 12: wanted blocks of a drive of {found} blocks: expected one of {expected}")]
    Capacity {
        /// The size in the file, in blocks.
        found: u64,
        /// The drive's size in blocks.
        expected: u64,
    },
    /// A number exceeds 64 bits.
    #[error("byte {at}: a number of more than 64 bits: expected blocks of the drive")]
    Number {
        /// The offset of the number.
        at: u64,
    },
    /// An extent is empty, or begins at the end of the last one.
    #[error(
        "byte {at}: extent number {extent} {}: expected extents with something between them",
        if *length == 0 { "is empty" } else { "touches the one before" }
    )]
    Apart {
        /// The offset of the extent.
        at: u64,
        /// The number of the extent, from 1.
        extent: u64,
        /// The length of the extent.
        length: u64,
    },
    /// An extent is not on the drive.
    #[error(
        "byte {at}: extent number {extent} ends past the end of a drive of {blocks} blocks: expected it to end on the drive"
    )]
    PastEnd {
        /// The offset of the extent.
        at: u64,
        /// The number of the extent, from 1.
        extent: u64,
        /// The drive's size in blocks.
        blocks: u64,
    },
    /// The checksum does not match the bytes.
    #[error("byte {at}: checksum {found:016x}: expected {expected:016x}")]
    Checksum {
        /// The offset of the checksum.
        at: u64,
        /// The checksum in the file.
        found: u64,
        /// The checksum of the bytes.
        expected: u64,
    },
}

impl WantedBlocks {
    /// Writes the set, a few bytes at a time; the writer should be buffered.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn encode(&self, write: impl Write) -> io::Result<()> {
        let mut out = Out {
            write,
            sum: Sum::new(),
        };
        out.put(MAGIC)?;
        out.put(&VERSION.to_le_bytes())?;
        out.put(&self.geometry.sectors().0.to_le_bytes())?;
        let mut end = 0;
        for extent in self.extents() {
            out.number(extent.start().0 - end)?;
            out.number(extent.length().0)?;
            end = extent.end().0;
        }
        out.number(0)?;
        out.number(0)?;
        let sum = out.sum.0.to_le_bytes();
        out.write.write_all(&sum)?;
        out.write.flush()
    }

    /// Reads a set that [`WantedBlocks::encode`] wrote, up to the checksum and not further.
    ///
    /// # Errors
    /// The first mistake, with its offset.
    pub fn decode(geometry: &Geometry, read: impl Read) -> Result<Self, DecodeError> {
        let mut bytes = In {
            read,
            sum: Sum::new(),
            at: 0,
        };
        if bytes.take::<8>()? != *MAGIC {
            return Err(DecodeError::Magic);
        }
        let version = u32::from_le_bytes(bytes.take()?);
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let (found, expected) = (u64::from_le_bytes(bytes.take()?), geometry.sectors().0);
        if found != expected {
            return Err(DecodeError::Capacity { found, expected });
        }
        let mut wanted = WantedBlocks::none(geometry);
        bytes.extents(&mut wanted)?;
        let (expected, at) = (bytes.sum.0, bytes.at);
        let found = u64::from_le_bytes(bytes.take()?);
        if found != expected {
            return Err(DecodeError::Checksum {
                at,
                found,
                expected,
            });
        }
        Ok(wanted)
    }
}

/// A writer that updates a checksum.
struct Out<W> {
    write: W,
    sum: Sum,
}

impl<W: Write> Out<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.add(bytes);
        self.write.write_all(bytes)
    }

    fn number(&mut self, mut number: u64) -> io::Result<()> {
        while number >= 0x80 {
            self.put(&[number as u8 | 0x80])?;
            number >>= 7;
        }
        self.put(&[number as u8])
    }
}

/// A reader that updates a checksum, and counts bytes.
struct In<R> {
    read: R,
    sum: Sum,
    at: u64,
}

impl<R: Read> In<R> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut bytes = [0; N];
        let at = self.at;
        self.read
            .read_exact(&mut bytes)
            .map_err(|error| DecodeError::Io { at, error })?;
        self.sum.add(&bytes);
        self.at += N as u64;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u64, DecodeError> {
        let at = self.at;
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.take::<1>()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(DecodeError::Number { at })
    }

    /// Adds the extents of the file to an empty set.
    fn extents(&mut self, wanted: &mut WantedBlocks) -> Result<(), DecodeError> {
        let blocks = wanted.geometry.sectors().0;
        let mut end = 0u64;
        for extent in 1.. {
            let at = self.at;
            let (gap, length) = (self.number()?, self.number()?);
            if gap == 0 && length == 0 {
                break;
            }
            if length == 0 || (gap == 0 && extent > 1) {
                return Err(DecodeError::Apart { at, extent, length });
            }
            let past_end = DecodeError::PastEnd { at, extent, blocks };
            let Some(start) = end.checked_add(gap) else {
                return Err(past_end);
            };
            let Ok(next) = Extent::new(Lba(start), Sectors(length)) else {
                return Err(past_end);
            };
            if wanted.add(next).is_err() {
                return Err(past_end);
            }
            end = next.end().0;
        }
        Ok(())
    }
}

/// The checksum FNV-1a of 64 bits (Fowler, Noll, Vo). It detects truncation and overwriting. It is
/// no defence against attackers, who could rewrite the whole file.
struct Sum(u64);

impl Sum {
    fn new() -> Self {
        Sum(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

const MAGIC: &[u8; 8] = b"HTWANTED";

const VERSION: u32 = 1;
