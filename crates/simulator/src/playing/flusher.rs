//! A program that writes a file through the page cache: the kernel keeps its dirty pages and writes them in bursts.
//!
//! ```text
//!   pages made dirty   .......................................
//!   at the disk                     [####]                [####]
//!                      ^ all play   ^ every                ^ 2 every
//! ```
//!
//! Linux 2.6 wakes `pdflush` every 5 seconds, and its queue takes 128 writes. Simplified: a burst writes all pages that are
//! dirty then. If the one before it is not over, the program waits and makes no more pages dirty.

use block::{Duration, Instant};

use super::COMMAND;
use super::file::PlayedFile;
use super::setup::DirtyPages;

/// The state of the bursts.
#[derive(Debug)]
pub(super) struct Flusher {
    dirty: DirtyPages,
    /// The number of times at which a burst was due.
    dues: u64,
    /// Bytes of the burst that are not at the disk yet.
    left: u64,
    /// Outstanding writes.
    outstanding: usize,
    /// The next byte of the file that is written.
    at: u64,
}

impl Flusher {
    /// No burst so far.
    pub(super) fn new(dirty: DirtyPages) -> Flusher {
        Flusher {
            dirty,
            dues: 0,
            left: 0,
            outstanding: 0,
            at: 0,
        }
    }

    /// The time of the next burst, if all played from `began` on.
    pub(super) fn next_event(&self, began: Instant) -> Instant {
        began + Duration::from_nanos(self.dirty.every.as_nanos() * (self.dues + 1))
    }

    /// The byte range of the next write, if one is due and the queue has room.
    pub(super) fn ask(&mut self, now: Instant, began: Instant) -> Option<(PlayedFile, (u64, u64))> {
        if self.next_event(began) <= now {
            self.dues += 1;
            if self.left == 0 {
                self.left = self.dirty.bytes;
            }
        }
        if self.left == 0 || self.outstanding >= QUEUE {
            return None;
        }
        let file = self.dirty.file;
        if self.at >= file.bytes() {
            self.at = 0;
        }
        let from = self.at;
        let to = file.bytes().min(from + COMMAND.min(self.left));
        self.at = to;
        self.left -= to - from;
        self.outstanding += 1;
        Some((file, (from, to)))
    }

    /// Records the end of a write.
    pub(super) fn came(&mut self) {
        self.outstanding -= 1;
    }
}

/// Most outstanding writes: `BLKDEV_MAX_RQ` of Linux 2.6.0 (`include/linux/blkdev.h`).
const QUEUE: usize = 128;
