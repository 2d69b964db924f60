//! A disk of this machine. The kernel reads and writes it past its page cache. Durable writes, flushes and
//! failed pieces go to the drive as SCSI commands.
//!
//! ```text
//!   reads, writes ------> io_uring, O_DIRECT --good--> Ended
//!                                  '--failed--> the same piece as SCSI commands --> Ended, with the
//!   durable writes, flushes ------------------> SCSI commands -----------^          reason
//! ```
//!
//! The kernel sends neither flushes nor FUA to a drive whose write cache it believes to be off. It is not
//! notified when a reset has switched the cache on again. So these commands bypass it.
//!
//! A piece that the kernel reports as failed goes to the drive a second time, and that result counts. The
//! kernel combines neighbouring pieces into one command, and all of them fail with one bad block.
//!
//! A disk without SCSI commands (virtual ones, NVMe) is left to the kernel alone.

#![allow(
    unsafe_code,
    reason = "hands the memory of commands on while these are in flight"
)]

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use block::{Action, Command, Durability, Instant};
use tracing::{error, warn};

use super::file::{Doubt, Errors, Image, PieceTransfer};
use super::scsi::passthrough::Passthrough;
use super::scsi::pool::{BELL, Work};
use super::scsi::switched::Switched;
use super::{BackEnd, Ended, Punch, Shape, Span};
use crate::arena::Memory;
use crate::ring::Ring;
use block::operation::OperationError;

pub mod claim;
pub mod sysfs;

/// A disk of this machine.
pub struct LocalDisk {
    /// The SCSI side, if the disk takes SCSI commands. It is dropped before the image, whose claim ends
    /// when the caches are switched back.
    scsi: Option<Passthrough>,
    image: Image,
    name: String,
    block_bytes: u64,
    /// The pieces that the drive repeats, by their keys.
    doubts: Vec<(u32, Doubt)>,
}

impl LocalDisk {
    /// A disk that no other program uses while `file` is open. No SCSI command has more than `most_bytes`
    /// bytes.
    ///
    /// # Errors
    /// If there are no more threads or file descriptors.
    pub fn new(
        file: File,
        path: &Path,
        shape: Shape,
        drive: Option<Arc<Switched>>,
        most_bytes: usize,
    ) -> io::Result<Self> {
        let scsi = drive.map(|drive| Passthrough::new(drive, shape, most_bytes, None));
        Ok(LocalDisk {
            scsi: scsi.transpose()?,
            image: Image::of(file, path, shape, Errors::Doubted),
            name: path.display().to_string(),
            block_bytes: u64::from(shape.block_bytes),
            doubts: Vec::new(),
        })
    }

    /// Repeats a piece as a SCSI command, if the drive can say more than the kernel.
    fn ask(&mut self, doubt: Doubt, ring: &mut Ring) {
        let Some(scsi) = self.scsi.as_mut().filter(|_| is_the_drives(doubt.number)) else {
            let result = Err(self.failed(&doubt));
            self.image.settle(&doubt, result);
            return;
        };
        let (first, memory) = (doubt.offset / self.block_bytes, doubt.memory);
        let work = match doubt.transfer {
            PieceTransfer::Read => Work::Read {
                first,
                memory,
                durability: Durability::Volatile,
            },
            PieceTransfer::Write(durability) => Work::Write {
                first,
                memory,
                durability,
            },
        };
        // SAFETY: the command has its memory until its pieces are settled.
        let key = unsafe { scsi.piece(work, ring) };
        self.doubts.push((key, doubt));
    }

    fn answered(&mut self, key: u32, result: Result<(), OperationError>) {
        let Some(place) = self.doubts.iter().position(|(other, _)| *other == key) else {
            return;
        };
        let (_, doubt) = self.doubts.swap_remove(place);
        if result.is_ok() {
            let reason = io::Error::from_raw_os_error(doubt.number);
            warn!(
                device = self.name,
                offset = doubt.offset,
                "{reason}, and the second time it succeeded: see what the kernel says (dmesg)"
            );
        }
        self.image.settle(&doubt, result);
    }

    fn failed(&self, doubt: &Doubt) -> OperationError {
        let reason = io::Error::from_raw_os_error(doubt.number);
        let (device, offset) = (&self.name, doubt.offset);
        match doubt.number {
            libc::ENODEV | libc::ENXIO | libc::ENOLINK | libc::ETIMEDOUT => error!(
                device,
                offset, "{reason}: is the drive still there? look at its power and its cable"
            ),
            _ => error!(
                device,
                offset, "{reason}: see what the kernel says of the disk (dmesg)"
            ),
        }
        match doubt.number {
            libc::ENOSPC => OperationError::NoSpace,
            libc::EOPNOTSUPP => OperationError::Unsupported,
            libc::EPERM | libc::EROFS => OperationError::NotPermitted,
            _ => OperationError::Io,
        }
    }
}

/// Whether the drive has caused an error, by the statuses of blocks in the kernel's `block/blk-core.c`.
/// Other errors are of the transport, where a repetition fails, too.
fn is_the_drives(number: i32) -> bool {
    matches!(
        number,
        libc::EIO | libc::ENODATA | libc::EREMOTEIO | libc::EILSEQ | libc::ENOSPC | libc::EBADE
    )
}

impl BackEnd for LocalDisk {
    fn shape(&self) -> Shape {
        self.image.shape()
    }

    unsafe fn start(
        &mut self,
        now: Instant,
        command: &Command,
        memory: &[Memory],
        ring: &mut Ring,
    ) {
        let is_durable = match command.action {
            Action::Write { durability, .. } => durability == Durability::Durable,
            action => action == Action::Flush,
        };
        // SAFETY: the caller's promise.
        unsafe {
            match self.scsi.as_mut().filter(|_| is_durable) {
                Some(scsi) => scsi.start(now, command, memory, ring),
                None => self.image.start(now, command, memory, ring),
            }
        }
    }

    fn ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring) {
        match self.scsi.as_mut().filter(|_| key == BELL) {
            Some(scsi) => {
                scsi.ring_ended(now, key, result, ring);
                while let Some((key, result)) = self.scsi.as_mut().and_then(Passthrough::poll_piece)
                {
                    self.answered(key, result);
                }
            }
            None => self.image.ring_ended(now, key, result, ring),
        }
        while let Some(doubt) = self.image.take_doubt() {
            self.ask(doubt, ring);
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Ended> {
        let scsi = self.scsi.as_mut();
        let ended = scsi.and_then(|scsi| scsi.poll(now));
        ended.or_else(|| self.image.poll(now))
    }

    fn punch(&mut self, key: u32, what: Punch, span: Span, ring: &mut Ring) {
        self.image.punch(key, what, span, ring);
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        self.image.poll_punched()
    }
}
