//! Where a live scan stands, as a file: to go on after a stop or a crash.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `HEADSCAN` |
//! | 4 | the version, 1 |
//! | 2, ... | the drive's name: its length and its bytes, UTF-8 |
//! | 2, ... | the volume's name |
//! | 8, 8 | where the volume begins on the drive, and its length, in bytes |
//! | 4 | bytes of a block |
//! | 1 | who takes the blocks: 0 a checksum, 1 a program |
//! | 8, 8 | the checksum so far: its sum, and of how many pieces |
//! | 8 | blocks that were not dealt with |
//! | 8 | a checksum of everything before it (FNV-1a, 64 bits) |
//! | ... | those blocks, as [`WantedBlocks::encode`] writes them |
//!
//! The whole numbers are little-endian.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use drive::Geometry;
use rustix::fs::fsync;
use scheduler::freeblock::{DecodeError, WantedBlocks};

use super::set_sum::SetSum;

/// What a scan is of, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The drive's name.
    pub drive: String,
    /// The volume's name.
    pub volume: String,
    /// Where the volume begins on the drive, in bytes.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Who takes the blocks.
    pub taker: Taker,
    /// The checksum so far.
    pub sum: SetSum,
}

/// Who takes the blocks of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taker {
    /// A checksum.
    Checksum,
    /// A program.
    Program,
}

/// Why a file does not say where a scan stands.
#[derive(Debug, thiserror::Error)]
pub enum ScanFileError {
    /// Reading failed, or the bytes end too early.
    #[error("{0}: expected more of the state of a scan")]
    Io(#[from] io::Error),
    /// Something else.
    #[error("byte 0: this is no state of a scan: expected \"HEADSCAN\"")]
    Magic,
    /// Written by another version.
    #[error("byte 8: version {0} of a scan's state: expected {VERSION}")]
    Version(u32),
    /// A name that is no text.
    #[error("a name in it is no text: expected UTF-8")]
    Name,
    /// Nobody takes blocks so.
    #[error("taker {0} of the blocks: expected 0 or 1")]
    Taker(u8),
    /// The bytes were changed since they were written.
    #[error("checksum {found:016x} of its beginning: expected {expected:016x}: it is damaged")]
    Checksum {
        /// In the file.
        found: u64,
        /// Of its bytes.
        expected: u64,
    },
    /// The blocks.
    #[error("the blocks that are left: {0}")]
    Blocks(#[from] DecodeError),
    /// The drive is cut otherwise than it was.
    #[error(
        "{found} blocks are left in it, {cut} as the drive is believed to be laid out now: expected \
         the belief with which the scan was begun"
    )]
    Cut {
        /// When it was written.
        found: u64,
        /// As the drive is cut now.
        cut: u64,
    },
    /// More than belongs to it.
    #[error("something follows the state of the scan: expected its end")]
    Longer,
}

impl Standing {
    /// Writes it with the blocks that were not dealt with. Give it a buffered writer.
    ///
    /// # Errors
    /// What the writer says.
    pub fn encode(&self, left: &WantedBlocks, mut write: impl Write) -> io::Result<()> {
        let mut head = MAGIC.to_vec();
        head.extend(VERSION.to_le_bytes());
        for name in [&self.drive, &self.volume] {
            let length = u16::try_from(name.len()).map_err(|_| {
                io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a name of more than 65,535 bytes",
                )
            })?;
            head.extend(length.to_le_bytes());
            head.extend(name.as_bytes());
        }
        head.extend(self.offset.to_le_bytes());
        head.extend(self.length.to_le_bytes());
        head.extend(self.block_bytes.to_le_bytes());
        head.push(match self.taker {
            Taker::Checksum => 0,
            Taker::Program => 1,
        });
        let (sum, pieces) = self.sum.parts();
        head.extend(sum.to_le_bytes());
        head.extend(pieces.to_le_bytes());
        head.extend(left.left().to_le_bytes());
        let checksum = fnv(&head);
        head.extend(checksum.to_le_bytes());
        write.write_all(&head)?;
        left.encode(write)
    }

    /// Reads what [`Standing::encode`] wrote for a drive of this layout, up to the end.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn decode(
        geometry: &Geometry,
        read: impl Read,
    ) -> Result<(Self, WantedBlocks), ScanFileError> {
        let mut head = Head {
            read,
            bytes: Vec::new(),
        };
        if head.take::<8>()? != *MAGIC {
            return Err(ScanFileError::Magic);
        }
        let version = u32::from_le_bytes(head.take()?);
        if version != VERSION {
            return Err(ScanFileError::Version(version));
        }
        let standing = Standing {
            drive: head.name()?,
            volume: head.name()?,
            offset: u64::from_le_bytes(head.take()?),
            length: u64::from_le_bytes(head.take()?),
            block_bytes: u32::from_le_bytes(head.take()?),
            taker: match head.take()? {
                [0] => Taker::Checksum,
                [1] => Taker::Program,
                [other] => return Err(ScanFileError::Taker(other)),
            },
            sum: SetSum::of_parts(
                u64::from_le_bytes(head.take()?),
                u64::from_le_bytes(head.take()?),
            ),
        };
        let found_left = u64::from_le_bytes(head.take()?);
        let expected = fnv(&head.bytes);
        let found = u64::from_le_bytes(head.take()?);
        if found != expected {
            return Err(ScanFileError::Checksum { found, expected });
        }
        let mut read = head.read;
        let left = WantedBlocks::decode(geometry, &mut read)?;
        if left.left() != found_left {
            return Err(ScanFileError::Cut {
                found: found_left,
                cut: left.left(),
            });
        }
        match read.read(&mut [0])? {
            0 => Ok((standing, left)),
            _ => Err(ScanFileError::Longer),
        }
    }

    /// Puts it in the place of the file, as a whole: after a crash it is the old one or the new one.
    ///
    /// # Errors
    /// If the file system does not take it.
    pub(super) fn save(&self, left: &WantedBlocks, file: &Path) -> io::Result<()> {
        let beside = beside(file);
        let mut out = io::BufWriter::new(std::fs::File::create(&beside)?);
        self.encode(left, &mut out)?;
        out.into_inner().map_err(io::Error::from)?.sync_all()?;
        std::fs::rename(&beside, file)?;
        let folder = file.parent().filter(|folder| *folder != Path::new(""));
        // The name is durable, too, where folders can be made so.
        let folder = std::fs::File::open(folder.unwrap_or(Path::new(".")))?;
        let _ = fsync(&folder);
        Ok(())
    }
}

/// Where the next state is written before it has its name.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    file.with_file_name(name)
}

/// What was read of the beginning.
struct Head<R> {
    read: R,
    bytes: Vec<u8>,
}

impl<R: Read> Head<R> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ScanFileError> {
        let mut bytes = [0; N];
        self.read.read_exact(&mut bytes)?;
        self.bytes.extend(bytes);
        Ok(bytes)
    }

    fn name(&mut self) -> Result<String, ScanFileError> {
        let length = u16::from_le_bytes(self.take()?);
        let mut bytes = vec![0; usize::from(length)];
        self.read.read_exact(&mut bytes)?;
        self.bytes.extend(&bytes);
        String::from_utf8(bytes).map_err(|_| ScanFileError::Name)
    }
}

/// Fowler, Noll and Vo's checksum FNV-1a of 64 bits, as the set of blocks has it.
fn fnv(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    bytes.iter().fold(start, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

const MAGIC: &[u8; 8] = b"HEADSCAN";

const VERSION: u32 = 1;
