//! A file or a block device: commands are reads and writes of the kernel.
//!
//! ```text
//!   command --> one operation for each piece of memory --> all ended: Ended
//!                   ^                  |
//!                   '-- the rest of a short one
//! ```

#![allow(
    unsafe_code,
    reason = "the ring reads and writes memory by address while an operation is in flight"
)]

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use block::{Action, Command, CommandId, Durability, Instant};
use rustix::fs::SeekFrom;
use slab::Slab;
use tracing::error;

use super::{BackEnd, Ended, Holds, Punch, Run, Shape, Span};
use crate::arena::Memory;
use crate::exclusive;
use crate::ring::{Owner, Ring, Ticket};
use block::operation::OperationError;

pub mod creation;

/// The use of the kernel's page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// Reads and writes bypass it (`O_DIRECT`).
    Direct,
    /// Reads and writes use it.
    Cached,
}

/// A file or a block device.
pub struct Image {
    file: File,
    path: PathBuf,
    shape: Shape,
    jobs: Slab<CommandJob>,
    operations: Slab<Operation>,
    ended: VecDeque<Ended>,
    punched: VecDeque<(u32, Result<(), OperationError>)>,
    errors: Errors,
    doubts: Vec<Doubt>,
}

/// The treatment of a piece that the kernel reports as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errors {
    /// The command fails.
    Final,
    /// The owner repeats the piece, see [`Image::take_doubt`].
    Doubted,
}

/// A failed piece of a command that waits for [`Image::settle`].
#[derive(Clone, Copy)]
pub(super) struct Doubt {
    /// The command of the piece.
    pub job: usize,
    /// The memory of the piece.
    pub memory: Memory,
    /// The offset in bytes.
    pub offset: u64,
    /// The direction.
    pub transfer: PieceTransfer,
    /// The error number.
    pub number: i32,
}

/// A command in flight.
struct CommandJob {
    id: CommandId,
    /// The number of operations in flight.
    left: u32,
    result: Result<(), OperationError>,
}

/// An operation of the ring.
enum Operation {
    /// A piece of a command.
    Piece {
        job: usize,
        memory: Memory,
        offset: u64,
        transfer: PieceTransfer,
    },
    Flush {
        job: usize,
    },
    Punch {
        key: u32,
        what: Punch,
        span: Span,
    },
}

/// The direction of a piece.
#[derive(Clone, Copy)]
pub(super) enum PieceTransfer {
    /// A read.
    Read,
    /// A write.
    Write(Durability),
}

impl Image {
    /// Opens an existing file as a device of whole blocks. The rest of the file is not used. No other service can open
    /// the file while the image exists.
    ///
    /// # Errors
    /// If the file cannot be opened for reading and writing, is in use, or is shorter than a block.
    pub fn open(path: &Path, block_bytes: u32, caching: Caching) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        if caching == Caching::Direct {
            options.custom_flags(libc::O_DIRECT);
        }
        let file = options.open(path)?;
        exclusive::claim(&file, path, exclusive::PATIENCE)?;
        let bytes = rustix::fs::seek(&file, SeekFrom::End(0))?;
        let blocks = bytes / u64::from(block_bytes);
        if blocks == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{bytes} bytes: expected at least one block of {block_bytes}"),
            ));
        }
        let shape = Shape {
            block_bytes,
            blocks,
            trims: true,
            zeroes_fast: true,
            rotational: false,
        };
        Ok(Image::of(file, path, shape, Errors::Final))
    }

    /// A device of an open file.
    pub(super) fn of(file: File, path: &Path, shape: Shape, errors: Errors) -> Self {
        Image {
            file,
            path: path.to_owned(),
            shape,
            jobs: Slab::new(),
            operations: Slab::new(),
            ended: VecDeque::new(),
            punched: VecDeque::new(),
            errors,
            doubts: Vec::new(),
        }
    }

    /// The next failed piece for the owner.
    pub(super) fn take_doubt(&mut self) -> Option<Doubt> {
        self.doubts.pop()
    }

    /// Ends a failed piece with the owner's result.
    pub(super) fn settle(&mut self, doubt: &Doubt, result: Result<(), OperationError>) {
        self.ended(doubt.job, result);
    }

    /// Opens a file as [`Image::open`] does, or makes a sparse one. The rest of a longer file is not used.
    ///
    /// # Errors
    /// If that fails, or the file is shorter than `blocks` blocks.
    pub fn open_or_make(
        path: &Path,
        block_bytes: u32,
        blocks: u64,
        caching: Caching,
    ) -> io::Result<Self> {
        let bytes = blocks * u64::from(block_bytes);
        creation::make(path, bytes)?;
        let mut image = Image::open(path, block_bytes, caching)?;
        if image.shape.blocks < blocks {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "{} bytes: expected {bytes}, as many as the drive has; `truncate -s {bytes} {}` \
                     makes it longer without taking space",
                    image.shape.bytes(),
                    path.display()
                ),
            ));
        }
        image.shape.blocks = blocks;
        Ok(image)
    }

    /// Writes a block now, while the drive is off.
    pub(super) fn put(&self, block: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = block * u64::from(self.shape.block_bytes);
        self.file.write_all_at(bytes, offset)
    }

    fn raw(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Submits a piece, or the rest of one.
    ///
    /// # Safety
    /// As for [`BackEnd::start`].
    unsafe fn submit(&mut self, operation: Operation, ring: &mut Ring) {
        let Operation::Piece {
            memory,
            offset,
            transfer,
            ..
        } = operation
        else {
            return;
        };
        let key = self.operations.insert(operation) as u32;
        let ticket = ticket(key);
        let file = self.raw();
        // SAFETY: the caller's promise about the command's memory.
        unsafe {
            match transfer {
                PieceTransfer::Read => ring.read(ticket, file, memory, offset),
                PieceTransfer::Write(Durability::Volatile) => {
                    ring.write(ticket, file, memory, offset, 0)
                }
                PieceTransfer::Write(Durability::Durable) => {
                    ring.write(ticket, file, memory, offset, libc::RWF_DSYNC);
                }
            }
        }
    }

    fn failed(&self, number: i32, offset: u64) -> OperationError {
        let reason = io::Error::from_raw_os_error(number);
        let path = self.path.display();
        match number {
            libc::ENOSPC | libc::EDQUOT => {
                error!(%path, offset, "{reason}: free space on the file system of the image");
                OperationError::NoSpace
            }
            libc::EOPNOTSUPP => OperationError::Unsupported,
            _ => {
                error!(%path, offset, "{reason}: see what the kernel says of the disk (dmesg)");
                OperationError::Io
            }
        }
    }

    fn ended(&mut self, job: usize, result: Result<(), OperationError>) {
        let entry = &mut self.jobs[job];
        entry.result = entry.result.and(result);
        entry.left -= 1;
        if entry.left == 0 {
            let CommandJob { id, result, .. } = self.jobs.remove(job);
            self.ended.push_back(Ended {
                id,
                result,
                account: None,
            });
        }
    }

    /// A piece has ended, maybe with fewer bytes.
    fn piece_ended(&mut self, operation: Operation, result: i32, ring: &mut Ring) {
        let Operation::Piece {
            job,
            memory,
            offset,
            transfer,
        } = operation
        else {
            return;
        };
        match usize::try_from(result) {
            Ok(done) if done == memory.length => self.ended(job, Ok(())),
            Ok(0) => {
                error!(
                    path = %self.path.display(), offset,
                    "the image ends before the volume does: was it cut? `truncate -s {}` makes it \
                     as long as it was", self.shape.bytes()
                );
                self.ended(job, Err(OperationError::Io));
            }
            Ok(done) => {
                let rest = Operation::Piece {
                    job,
                    memory: memory.part(done, memory.length - done),
                    offset: offset + done as u64,
                    transfer,
                };
                // SAFETY: the rest of the memory that the command still has.
                unsafe { self.submit(rest, ring) };
            }
            Err(_) if self.errors == Errors::Doubted => self.doubts.push(Doubt {
                job,
                memory,
                offset,
                transfer,
                number: -result,
            }),
            Err(_) => {
                let failed = self.failed(-result, offset);
                self.ended(job, Err(failed));
            }
        }
    }
}

impl BackEnd for Image {
    fn shape(&self) -> Shape {
        self.shape
    }

    unsafe fn start(&mut self, _: Instant, command: &Command, memory: &[Memory], ring: &mut Ring) {
        let (extent, transfer) = match command.action {
            Action::Read { extent, .. } => (extent, PieceTransfer::Read),
            Action::Write { extent, durability } => (extent, PieceTransfer::Write(durability)),
            Action::Flush => {
                let job = self.jobs.insert(CommandJob {
                    id: command.id,
                    left: 1,
                    result: Ok(()),
                });
                let key = self.operations.insert(Operation::Flush { job }) as u32;
                ring.sync(ticket(key), self.raw());
                return;
            }
            // A file has no arm and no switches.
            Action::Seek { .. } | Action::SetLookAhead(_) | Action::SetWriteCache(_) => {
                self.ended.push_back(Ended {
                    id: command.id,
                    result: Ok(()),
                    account: None,
                });
                return;
            }
        };
        let job = self.jobs.insert(CommandJob {
            id: command.id,
            left: memory.len() as u32,
            result: Ok(()),
        });
        let mut offset = extent.start().0 * u64::from(self.shape.block_bytes);
        for &memory in memory {
            let piece = Operation::Piece {
                job,
                memory,
                offset,
                transfer,
            };
            offset += memory.length as u64;
            // SAFETY: the caller's promise.
            unsafe { self.submit(piece, ring) };
        }
    }

    fn ring_ended(&mut self, _: Instant, key: u32, result: i32, ring: &mut Ring) {
        match self.operations.remove(key as usize) {
            piece @ Operation::Piece { .. } => self.piece_ended(piece, result, ring),
            Operation::Flush { job } => {
                let result = match result {
                    0.. => Ok(()),
                    _ => Err(self.failed(-result, 0)),
                };
                self.ended(job, result);
            }
            Operation::Punch {
                key,
                what: Punch::Zero(pace),
                span,
            } if -result == libc::EOPNOTSUPP => {
                // Some file systems, tmpfs for one, make holes only: zeroes all the same.
                self.punch(key, Punch::Free(pace), span, ring);
            }
            Operation::Punch { key, what, span } => {
                let result = match (result, what) {
                    (0.., _) => Ok(()),
                    // A trim is a hint: a file system without holes keeps the bytes.
                    (_, Punch::Trim) if -result == libc::EOPNOTSUPP => Ok(()),
                    _ => Err(self.failed(-result, span.offset)),
                };
                self.punched.push_back((key, result));
            }
        }
    }

    fn poll(&mut self, _: Instant) -> Option<Ended> {
        self.ended.pop_front()
    }

    fn punch(&mut self, key: u32, what: Punch, span: Span, ring: &mut Ring) {
        let mode = match what {
            Punch::Trim | Punch::Free(_) => libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
            Punch::Zero(_) => libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE,
        };
        let operation = self.operations.insert(Operation::Punch { key, what, span }) as u32;
        ring.allocate(
            ticket(operation),
            self.raw(),
            mode,
            span.offset,
            span.length,
        );
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        self.punched.pop_front()
    }

    fn runs(&mut self, span: Span) -> Vec<Run> {
        let mut runs = Vec::new();
        let (mut at, end) = (span.offset, span.offset + span.length);
        while at < end && runs.len() < MOST_RUNS {
            let data = match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
                Ok(data) => data,
                // Past the last bytes there is no data any more.
                Err(rustix::io::Errno::NXIO) => end,
                // What knows no holes, such as a block device, has none.
                Err(_) => at,
            };
            let (until, holds) = match data > at {
                true => (data, Holds::Hole),
                false => {
                    let hole = rustix::fs::seek(&self.file, SeekFrom::Hole(at)).unwrap_or(end);
                    (end_of_bytes(at, hole), Holds::Bytes)
                }
            };
            let until = until.min(end);
            runs.push(Run {
                length: until - at,
                holds,
            });
            at = until;
        }
        runs
    }
}

/// Where a run of bytes that begins at `at` ends. The hole may have been punched at `at` since data was found there: one
/// page counts as bytes then, because runs are of whole blocks.
fn end_of_bytes(at: u64, hole: u64) -> u64 {
    match hole > at {
        true => hole,
        false => (at / PAGE + 1) * PAGE,
    }
}

/// The unit of holes, in bytes: the largest logical block, and what file systems punch.
const PAGE: u64 = 4096;

fn ticket(key: u32) -> Ticket {
    let owner = Owner::BackEnd;
    Ticket { owner, key }
}

/// The largest number of runs in one answer. Each takes two system calls. A choice.
const MOST_RUNS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_hole_that_is_punched_between_two_looks_leaves_whole_blocks() {
        assert_eq!(end_of_bytes(8192, 20_480), 20_480);
        assert_eq!(end_of_bytes(8192, 8192), 12_288);
        assert_eq!(end_of_bytes(8192 + 512, 8192 + 512), 12_288);
    }

    #[test]
    fn a_new_image_is_this_users_alone_and_one_that_is_too_long_leaves_no_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("disk.img");
        // 2^63 bytes: more than any file system has.
        assert!(Image::open_or_make(&path, 512, 1 << 54, Caching::Cached).is_err());
        assert!(!path.exists(), "an empty file is left");
        Image::open_or_make(&path, 512, 8, Caching::Cached).expect("an image");
        let mode = std::fs::metadata(&path).expect("it is there").permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
    }

    /// A block device fails like this socket, which cannot seek.
    #[test]
    fn what_knows_no_holes_is_all_bytes() {
        let (socket, _other) = UnixStream::pair().expect("sockets");
        let shape = Shape {
            block_bytes: 512,
            blocks: 8,
            trims: false,
            zeroes_fast: false,
            rotational: true,
        };
        let file = File::from(OwnedFd::from(socket));
        let mut image = Image::of(file, Path::new("socket"), shape, Errors::Final);
        let span = Span {
            offset: 512,
            length: 1024,
        };
        let run = Run {
            length: 1024,
            holds: Holds::Bytes,
        };
        assert_eq!(image.runs(span), [run]);
    }
}
