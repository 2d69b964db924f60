//! An application that plays a file: it reads the next bytes when they are due.

use block::{Duration, Instant};
use stream::Rate;

use super::file::PlayedFile;
use super::report::PlayerRead;

/// One player.
#[derive(Debug)]
pub(super) struct Player {
    pub(super) file: PlayedFile,
    /// Bytes read so far.
    pub(super) at: u64,
    pub(super) state: PlayerState,
    pub(super) reads: Vec<PlayerRead>,
    /// The delay of its start after the first player's.
    offset: Duration,
}

/// The state of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlayerState {
    /// The player waits until its next bytes are due.
    Pausing,
    /// The player waits for a read with this number of outstanding requests.
    Waiting { called: Instant, requests: usize },
    /// The data of a read are copied to the player.
    Copying { called: Instant, came: Instant },
    /// The player has read all of its file.
    Over,
}

impl Player {
    /// A player that starts `offset` after the first one.
    pub(super) fn new(file: PlayedFile, offset: Duration) -> Player {
        Player {
            file,
            at: 0,
            state: PlayerState::Pausing,
            reads: Vec::new(),
            offset,
        }
    }

    /// The earliest time of its next read.
    pub(super) fn due(&self, began: Instant, rate: Rate) -> Instant {
        began + self.offset + rate.at_most(self.at)
    }

    /// The playout point at `now`, limited to the bytes that it has read.
    pub(super) fn point(&self, now: Instant, began: Instant, rate: Rate, read: u64) -> u64 {
        let played = rate.bytes_within(now.since(began + self.offset));
        let most = match self.state {
            PlayerState::Pausing | PlayerState::Over => self.at,
            PlayerState::Waiting { .. } | PlayerState::Copying { .. } => self.next(read).1,
        };
        played.min(most)
    }

    /// The byte range of its next read.
    pub(super) fn next(&self, read: u64) -> (u64, u64) {
        (self.at, (self.at + read).min(self.file.bytes()))
    }

    /// All bytes of the current read are in memory.
    pub(super) fn came(&mut self, now: Instant) {
        if let PlayerState::Waiting { called, .. } = self.state {
            self.state = PlayerState::Copying { called, came: now };
        }
    }

    /// The current read is complete and copied; `began` and `rate` define when it was due.
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
