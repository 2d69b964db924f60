//! The background reader: it reads a file from its beginning to its end and never pauses; the page cache
//! reads a window ahead of it.
//!
//! ```text
//!   file  ==============[##...........][-------------]
//!                         ^ copied      the window ahead: asked for with the second page of the
//!                                       window before
//! ```
//!
//! As in Linux 2.6.0, `mm/readahead.c`: the first page of a window that was read ahead only makes it the
//! present one, and the second page has the next one submitted. Whoever waits for a window thus has
//! nothing else at the disk. Simplified: windows do not grow from small ones.

use super::copier::Ready;
use super::file::PlayedFile;
use super::{COMMAND, PAGE};

/// Where it is.
#[derive(Debug)]
pub(super) struct BackgroundReader {
    file: PlayedFile,
    window: u64,
    /// Bytes that it has.
    pub(super) copied: u64,
    /// Everything before was asked for.
    edge: u64,
    /// What was asked for and has not come.
    under: Vec<u64>,
}

impl BackgroundReader {
    /// At the beginning of a file, with windows of so many bytes.
    pub(super) fn new(file: PlayedFile, window: u64) -> BackgroundReader {
        BackgroundReader {
            file,
            window,
            copied: 0,
            edge: 0,
            under: Vec::new(),
        }
    }

    /// The next bytes to be asked for, as one command.
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

    /// What was asked for from here on is in memory.
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

    /// It has its next page.
    pub(super) fn copied(&mut self) {
        self.copied = (self.copied + PAGE).min(self.file.bytes());
    }

    /// Whether it has all of its file.
    pub(super) fn is_over(&self) -> bool {
        self.copied >= self.file.bytes()
    }
}
