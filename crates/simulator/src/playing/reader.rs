//! The background reader: reads a file from beginning to end without pauses. The page cache reads
//! one window ahead of it.
//!
//! ```text
//!   file  ==============[##...........][-------------]
//!                         ^ copied      the window ahead: asked for with the second page of the
//!                                       window before
//! ```
//!
//! As in Linux 2.6.0, `mm/readahead.c`, the first page of a prefetched window makes it the current
//! one, and the second page submits the next window. A process that waits for a window thus has no
//! other request at the disk. Simplified: windows do not start small and grow.

use super::copier::Ready;
use super::file::PlayedFile;
use super::{COMMAND, PAGE};

/// The state of the background reader.
#[derive(Debug)]
pub(super) struct BackgroundReader {
    file: PlayedFile,
    window: u64,
    /// Bytes copied so far.
    pub(super) copied: u64,
    /// The first byte that has not been requested.
    edge: u64,
    /// The first byte of each outstanding read.
    under: Vec<u64>,
}

impl BackgroundReader {
    /// A reader at the beginning of a file, with windows of `window` bytes.
    pub(super) fn new(file: PlayedFile, window: u64) -> BackgroundReader {
        BackgroundReader {
            file,
            window,
            copied: 0,
            edge: 0,
            under: Vec::new(),
        }
    }

    /// The byte range of the next command.
    pub(super) fn ask(&mut self) -> Option<(PlayedFile, (u64, u64))> {
        let second = self.copied % self.window >= PAGE;
        let windows = self.copied / self.window + 1 + u64::from(second);
        let goal = (windows * self.window).min(self.file.bytes());
        let (from, to) = (self.edge, goal.min(self.edge + COMMAND));
        if from >= to {
            return None;
        }
        self.edge = to;
        self.under.push(from);
        Some((self.file, (from, to)))
    }

    /// Records the end of the read that starts at byte `from`.
    pub(super) fn came(&mut self, from: u64) {
        self.under.retain(|&under| under != from);
    }

    /// Whether its next page is in memory.
    pub(super) fn ready(&self) -> Ready {
        let at = self.copied;
        let is_under = |&from: &u64| from <= at && at < from + COMMAND;
        match at < self.edge && !self.under.iter().any(is_under) {
            true => Ready::Page,
            false => Ready::Nothing,
        }
    }

    /// Records the copy of its next page.
    pub(super) fn copied(&mut self) {
        self.copied = (self.copied + PAGE).min(self.file.bytes());
    }

    /// Whether it has read all of its file.
    pub(super) fn is_over(&self) -> bool {
        self.copied >= self.file.bytes()
    }
}
