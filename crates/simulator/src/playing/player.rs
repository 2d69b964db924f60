//! An application that plays a file: it reads the next bytes when they are due.

use block::{Duration, Instant};
use stream::Rate;

use super::file::PlayedFile;
use super::report::PlayerRead;

/// One of them.
#[derive(Debug)]
pub(super) struct Player {
    pub(super) file: PlayedFile,
    /// Bytes that it has read.
    pub(super) at: u64,
    pub(super) state: PlayerState,
    pub(super) reads: Vec<PlayerRead>,
    /// How long after the first one it begins.
    offset: Duration,
}

/// What it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlayerState {
    /// Until its next bytes are due.
    Pausing,
    /// It has called for them; so many of its requests have not come.
    Waiting { called: Instant, requests: usize },
    /// They are being copied for it.
    Copying { called: Instant, came: Instant },
    /// It has all of its file.
    Over,
}

impl Player {
    /// One that begins so long after the first one.
    pub(super) fn new(file: PlayedFile, offset: Duration) -> Player {
        Player {
            file,
            at: 0,
            state: PlayerState::Pausing,
            reads: Vec::new(),
            offset,
        }
    }

    /// When it calls for its next bytes at the earliest.
    pub(super) fn due(&self, began: Instant, rate: Rate) -> Instant {
        began + self.offset + rate.at_most(self.at)
    }

    /// Where it is, as it plays what it has read at its rate.
    pub(super) fn point(&self, now: Instant, began: Instant, rate: Rate, read: u64) -> u64 {
        let played = rate.bytes_within(now.since(began + self.offset));
        let most = match self.state {
            PlayerState::Pausing | PlayerState::Over => self.at,
            PlayerState::Waiting { .. } | PlayerState::Copying { .. } => self.next(read).1,
        };
        played.min(most)
    }

    /// The bytes that it reads next.
    pub(super) fn next(&self, read: u64) -> (u64, u64) {
        (self.at, (self.at + read).min(self.file.bytes()))
    }

    /// All of its bytes are in memory.
    pub(super) fn came(&mut self, now: Instant) {
        if let PlayerState::Waiting { called, .. } = self.state {
            self.state = PlayerState::Copying { called, came: now };
        }
    }

    /// It has what it called for, as `paced` from a beginning.
    pub(super) fn read(&mut self, now: Instant, (began, rate): (Instant, Rate), read: u64) {
        let PlayerState::Copying { called, came } = self.state else {
            return;
        };
        self.reads.push(PlayerRead {
            at: called.since(began),
            waited: came.since(called),
            took: now.since(called),
            behind: called.since(self.due(began, rate)),
        });
        self.at = self.next(read).1;
        self.state = match self.at == self.file.bytes() {
            true => PlayerState::Over,
            false => PlayerState::Pausing,
        };
    }
}
