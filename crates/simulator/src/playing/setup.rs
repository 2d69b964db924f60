//! The parameters of a run.

use std::sync::Arc;

use block::{Duration, Refused};
use drive::{Imperfections, Profile};
use engine::streams::NotGranted;
use scheduler::ordering::Phases;
use scheduler::policy::NamedPolicy;
use stream::Rate;

use super::file::PlayedFile;

/// A system and its clients.
#[derive(Clone, Debug)]
pub struct PlayingSetup {
    /// The profile of the simulated drive.
    pub truth: Arc<Profile>,
    /// The profile that the scheduler believes.
    pub belief: Arc<Profile>,
    /// Deviations of the drive from its profile.
    pub imperfections: Imperfections,
    /// The seed of the drive's random numbers.
    pub seed: u64,
    /// The scheduling policy.
    pub policy: NamedPolicy,
    /// The alternation of reads and writes in the elevator.
    pub phases: Phases,
    /// The copy rate from memory to all applications together; `None`: instantaneous.
    pub copies: Option<Rate>,
    /// The players.
    pub players: Players,
    /// The other clients of the disk.
    pub beside: OtherClients,
    /// The pages that another program makes dirty.
    pub dirty: Option<DirtyPages>,
    /// Maximum time for which all players play. The run ends earlier at the end of a player's or
    /// the background reader's file.
    pub lasts: Duration,
}

/// Applications that each play a file of their own.
#[derive(Clone, Debug)]
pub struct Players {
    /// The files.
    pub files: Vec<PlayedFile>,
    /// The rate of each player.
    pub rate: Rate,
    /// Bytes per read.
    pub read: u64,
    /// The source of the players' data.
    pub service: PlayerService,
}

/// The source of the players' data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayerService {
    /// Plain reads at best effort.
    Plain,
    /// The service of ABISS: each stream refills on its own, before all other requests.
    Abiss(PacedBuffer),
    /// The service of the engine: streams admitted in head time.
    Guaranteed(Guarantee),
}

/// A playout buffer that refills in batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacedBuffer {
    /// Bytes of the buffer.
    pub memory: u64,
    /// Bytes per batch.
    pub batch: u64,
}

/// The parameters of the engine's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// Bytes of the buffer.
    pub memory: u64,
    /// Maximum length of a round, unless its seeks would take too much of it.
    pub longest_round: Duration,
}

/// The clients of the disk beside the players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherClients {
    /// No other client.
    Nobody,
    /// A sequential reader without pauses.
    Reader {
        /// The file, which it reads once.
        file: PlayedFile,
        /// Bytes of a read-ahead window.
        read_ahead: u64,
    },
    /// Greedy tasks.
    Tasks(GreedyLoad),
}

/// The dirty pages of a program that writes a file through the page cache, without priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirtyPages {
    /// The file, from whose beginning they are written again after its end. Whole pages.
    pub file: PlayedFile,
    /// The time between two bursts.
    pub every: Duration,
    /// Bytes of a burst: whole pages.
    pub bytes: u64,
}

/// Tasks that always have one outstanding request at a random position, half of them reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GreedyLoad {
    /// Number of tasks.
    pub tasks: usize,
    /// Bytes per request.
    pub bytes: u64,
    /// The seed of their random numbers.
    pub seed: u64,
}

/// An error that prevents a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlayingError {
    /// A stream is refused.
    #[error("stream {number}: {refused}")]
    Stream {
        /// The number of the player, from 1.
        number: usize,
        /// The reason.
        refused: NotGranted,
    },
    /// The buffer is too small for any batch to become due.
    #[error("a buffer of {memory} bytes: expected a batch and a read, {least} bytes, or more")]
    Buffer {
        /// Bytes of the buffer.
        memory: u64,
        /// Minimum bytes of the buffer.
        least: u64,
    },
    /// A drive without a seek curve supports no guarantees.
    #[error("the belief has no seek curve: expected one, to promise anything by")]
    NoSeeks,
    /// The engine or the drive refuses a request.
    #[error(transparent)]
    Request(#[from] Refused),
}
