//! The state of a live scan in a file, to resume the scan after a stop or a crash.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `HEADSCAN` |
//! | 4 | the version, 1 |
//! | 2, ... | the drive's name: its length and its bytes, UTF-8 |
//! | 2, ... | the volume's name |
//! | 8, 8 | where the volume begins on the drive, and its length, in bytes |
//! | 4 | bytes of a block |
//! | 1 | who takes the blocks: 0 a checksum, 1 a program, 2 a file |
//! | 8, 8 | the checksum so far: its sum, and of how many pieces |
//! | 8 | blocks that were not dealt with |
//! | 8 | a checksum of everything before it (FNV-1a, 64 bits) |
//! | ... | those blocks, as [`WantedBlocks::encode`] writes them |
//!
//! Integers are little-endian.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use drive::Geometry;
use headtime_client::private;
use rustix::fs::fsync;
use scheduler::freeblock::{DecodeError, WantedBlocks};

use super::set_sum::SetSum;

/// The identity of a scan, and its progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanProgress {
    /// The name of the drive.
    pub drive: String,
    /// The name of the volume.
    pub volume: String,
    /// The first byte of the volume on the drive.
    pub offset: u64,
    /// The number of bytes of the volume.
    pub length: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// The consumer of the blocks.
    pub consumer: Consumer,
    /// The checksum so far.
    pub sum: SetSum,
}

/// The consumer of a scan's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumer {
    /// A checksum.
    Checksum,
    /// A program.
    Program,
    /// A file.
    File,
}

/// The error of a state file.
#[derive(Debug, thiserror::Error)]
pub enum ScanFileError {
    /// Reading failed, or the file is truncated.
    #[error("{0}: expected more of the state of a scan")]
    Io(#[from] io::Error),
    /// The file is no scan's state.
    #[error("byte 0: this is no state of a scan: expected \"HEADSCAN\"")]
    Magic,
    /// Another version wrote the file.
    #[error("byte 8: version {0} of a scan's state: expected {VERSION}")]
    Version(u32),
    /// A name is not UTF-8.
    #[error("a name in it is no text: expected UTF-8")]
    Name,
    /// The consumer is unknown.
    #[error("taker {0} of the blocks: expected 0, 1 or 2")]
    Consumer(u8),
    /// The checksum does not match.
    #[error("checksum {found:016x} of its beginning: expected {expected:016x}: it is damaged")]
    Checksum {
        /// The checksum in the file.
        found: u64,
        /// The checksum of its bytes.
        expected: u64,
    },
    /// The set of blocks is invalid.
    #[error("the blocks that are left: {0}")]
    Blocks(#[from] DecodeError),
    /// The drive has another layout than before.
    #[error(
        "{found} blocks are left in it, {cut} as the drive is believed to be laid out now: expected \
         the belief with which the scan was begun"
    )]
    Cut {
        /// The number of blocks when the file was written.
        found: u64,
        /// The number of blocks in the present layout.
        cut: u64,
    },
    /// The file has more bytes than a state.
    #[error("something follows the state of the scan: expected its end")]
    Longer,
}

impl ScanProgress {
    /// Writes the state with the blocks that are not processed. The writer should be buffered.
    ///
    /// # Errors
    /// The error of the writer.
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
        head.push(match self.consumer {
            Consumer::Checksum => 0,
            Consumer::Program => 1,
            Consumer::File => 2,
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

    /// Reads the state that [`ScanProgress::encode`] wrote for a drive of this layout.
    ///
    /// # Errors
    /// The first error.
    pub fn decode(
        geometry: &Geometry,
        read: impl Read,
    ) -> Result<(Self, WantedBlocks), ScanFileError> {
        let mut head = ParsedHead {
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
        let progress = ScanProgress {
            drive: head.name()?,
            volume: head.name()?,
            offset: u64::from_le_bytes(head.take()?),
            length: u64::from_le_bytes(head.take()?),
            block_bytes: u32::from_le_bytes(head.take()?),
            consumer: match head.take()? {
                [0] => Consumer::Checksum,
                [1] => Consumer::Program,
                [2] => Consumer::File,
                [other] => return Err(ScanFileError::Consumer(other)),
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
            0 => Ok((progress, left)),
            _ => Err(ScanFileError::Longer),
        }
    }

    /// Replaces the file atomically: after a crash it has the old or the new state.
    ///
    /// # Errors
    /// If the file system fails.
    pub(super) fn save(&self, left: &WantedBlocks, file: &Path) -> io::Result<()> {
        let beside = beside(file);
        let mut out = io::BufWriter::new(private::create_file(&beside)?);
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

/// The path of the next state before it is renamed.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    file.with_file_name(name)
}

/// The parsed head of a file.
struct ParsedHead<R> {
    read: R,
    bytes: Vec<u8>,
}

impl<R: Read> ParsedHead<R> {
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

/// The checksum FNV-1a of 64 bits by Fowler, Noll and Vo, as in the set of blocks.
pub(super) fn fnv(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    bytes.iter().fold(start, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

const MAGIC: &[u8; 8] = b"HEADSCAN";

const VERSION: u32 = 1;
