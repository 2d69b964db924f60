//! What a run is made from.

use std::sync::Arc;

use block::{Duration, Refused};
use drive::{Imperfections, Profile};
use engine::streams::NotGranted;
use scheduler::ordering::Phases;
use scheduler::policy::NamedPolicy;
use stream::Rate;

use super::file::PlayedFile;

/// A system and who uses it.
#[derive(Clone, Debug)]
pub struct PlayingSetup {
    /// What the drive is.
    pub truth: Arc<Profile>,
    /// What the scheduler believes.
    pub belief: Arc<Profile>,
    /// What the drive is besides.
    pub imperfections: Imperfections,
    /// The seed of the drive's dice.
    pub seed: u64,
    /// The elevator.
    pub policy: NamedPolicy,
    /// How reads and writes share it.
    pub phases: Phases,
    /// What is copied in a second from memory to applications, over all of them; in no time, if `None`.
    pub copies: Option<Rate>,
    /// Who plays.
    pub players: Players,
    /// Who else uses the disk.
    pub beside: OtherClients,
    /// Everybody plays for so long at most. It ends before when a file of a player is over, or the
    /// background reader's.
    pub lasts: Duration,
}

/// Applications that play, each its own file.
#[derive(Clone, Debug)]
pub struct Players {
    /// The files.
    pub files: Vec<PlayedFile>,
    /// The rate of each.
    pub rate: Rate,
    /// Bytes of a read.
    pub read: u64,
    /// Who gets them their data.
    pub service: PlayerService,
}

/// Who gets players their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayerService {
    /// Reads at best effort, like everybody's.
    Plain,
    /// ABISS's own: each stream refills by itself, before everybody else.
    Abiss(PacedBuffer),
    /// The engine's: admitted in head time.
    Guaranteed(Guarantee),
}

/// A buffer and its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacedBuffer {
    /// Bytes of the buffer.
    pub memory: u64,
    /// Bytes of a batch.
    pub batch: u64,
}

/// What is asked of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// Bytes of the buffer.
    pub memory: u64,
    /// Rounds are not longer than this, unless their seeks would take too much.
    pub longest_round: Duration,
}

/// Who uses the disk beside the players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherClients {
    /// Nobody.
    Nobody,
    /// A reader that never pauses, and what is read ahead of it, in bytes.
    Reader {
        /// What it reads, once.
        file: PlayedFile,
        /// Bytes of a window.
        read_ahead: u64,
    },
    /// Greedy tasks.
    Tasks(GreedyLoad),
}

/// Tasks that always have a request under way, anywhere; as many reads as writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GreedyLoad {
    /// How many there are.
    pub tasks: usize,
    /// Bytes of a request.
    pub bytes: u64,
    /// The seed of their dice.
    pub seed: u64,
}

/// Why nothing was played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlayingError {
    /// A stream is refused.
    #[error("stream {number}: {refused}")]
    Stream {
        /// Which of the players, from 1.
        number: usize,
        /// Why.
        refused: NotGranted,
    },
    /// A buffer in which no batch is ever due.
    #[error("a buffer of {memory} bytes: expected a batch and a read, {least} bytes, or more")]
    Buffer {
        /// How large it is.
        memory: u64,
        /// How large it has to be.
        least: u64,
    },
    /// Nothing is promised on a drive whose seeks are not known.
    #[error("the belief has no seek curve: expected one, to promise anything by")]
    NoSeeks,
    /// The engine or the drive refuses a request.
    #[error(transparent)]
    Request(#[from] Refused),
}
