//! The supply of players with data: plain reads, ABISS's buffers, or the engine's streams.

use block::Instant;
use engine::Engine;

use super::buffer::PlayoutBuffer;
use super::guaranteed::Guaranteed;
use super::player::{Player, PlayerState};
use super::setup::{PacedBuffer, PlayerService, Players, PlayingError};

/// The source of the players' data.
#[derive(Debug)]
pub(super) enum Supply {
    /// Plain reads from the disk.
    Plain,
    /// A playout buffer for each player.
    Abiss(PacedBuffer, Vec<PlayoutBuffer>),
    /// A stream of the engine for each player.
    Guaranteed(Guaranteed),
}

impl Supply {
    /// The supply for these players; `block` is the number of bytes per block.
    ///
    /// # Errors
    /// If a stream is refused, or a buffer is too small.
    pub(super) fn new(
        engine: &mut Engine,
        players: &Players,
        block: u64,
    ) -> Result<Supply, PlayingError> {
        Ok(match players.service {
            PlayerService::Plain => Supply::Plain,
            PlayerService::Guaranteed(guarantee) => {
                Supply::Guaranteed(Guaranteed::new(engine, players, guarantee, block)?)
            }
            PlayerService::Abiss(paced) => {
                let (memory, least) = (paced.memory, paced.batch + players.read);
                if memory < least {
                    return Err(PlayingError::Buffer { memory, least });
                }
                let files = players.files.iter();
                let buffer = |end| PlayoutBuffer::new(players.rate, paced.batch, end);
                Supply::Abiss(paced, files.map(|file| buffer(file.bytes())).collect())
            }
        })
    }

    /// The initial reads before the players start: player, first byte, end.
    pub(super) fn fills(&mut self) -> Vec<(usize, u64, u64)> {
        let Supply::Abiss(paced, buffers) = self else {
            return Vec::new();
        };
        let fill = |(player, buffer): (usize, &mut PlayoutBuffer)| {
            let (from, to) = buffer.fill(paced.memory);
            (player, from, to)
        };
        buffers.iter_mut().enumerate().map(fill).collect()
    }

    /// Whether the players may start.
    pub(super) fn is_filled(&self, engine: &Engine) -> bool {
        match self {
            Supply::Plain => true,
            Supply::Guaranteed(streams) => streams.is_serving(engine),
            Supply::Abiss(_, buffers) => buffers.iter().all(PlayoutBuffer::is_quiet),
        }
    }

    /// The due batches: player, first byte, end. The caller must read all of them.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(usize, u64, u64)> {
        let Supply::Abiss(_, buffers) = self else {
            return Vec::new();
        };
        let due = |(player, buffer): (usize, &mut PlayoutBuffer)| {
            let (from, to) = buffer.due(now)?;
            Some((player, from, to))
        };
        buffers.iter_mut().enumerate().filter_map(due).collect()
    }

    /// Records an outstanding read into a player's buffer that starts at byte `from`.
    pub(super) fn asked(&mut self, player: usize, from: u64) {
        if let Supply::Abiss(_, buffers) = self {
            buffers[player].asked(from);
        }
    }

    /// Records the end of that read.
    pub(super) fn came(&mut self, player: usize, from: u64) {
        if let Supply::Abiss(_, buffers) = self {
            buffers[player].came(from);
        }
    }

    /// A player reads these bytes.
    pub(super) fn call(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        player: usize,
        (from, to): (u64, u64),
    ) {
        match self {
            Supply::Plain => {}
            Supply::Abiss(_, buffers) => buffers[player].position(from),
            Supply::Guaranteed(streams) => streams.call(now, engine, player, (from, to)),
        }
    }

    /// Reports the positions of the players if a report is due.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        points: impl FnOnce() -> Vec<u64>,
    ) {
        if let Supply::Guaranteed(streams) = self
            && streams.tick() <= now
        {
            streams.tell(now, engine, &points());
        }
    }

    /// The players whose current read is now in memory.
    pub(super) fn answers(
        &mut self,
        engine: &mut Engine,
        players: &[Player],
        read: u64,
    ) -> Vec<usize> {
        let buffers = match self {
            Supply::Plain => return Vec::new(),
            Supply::Guaranteed(_) => return Guaranteed::answers(engine),
            Supply::Abiss(_, buffers) => buffers,
        };
        let has = |(player, buffer): (&Player, &mut PlayoutBuffer)| {
            let (from, to) = player.next(read);
            matches!(player.state, PlayerState::Waiting { .. }) && buffer.has(from, to)
        };
        let all = players.iter().zip(buffers).enumerate();
        all.filter_map(|(number, both)| has(both).then_some(number))
            .collect()
    }

    /// The time of the next batch or position report.
    pub(super) fn next_event(&self) -> Option<Instant> {
        match self {
            Supply::Plain => None,
            Supply::Abiss(_, buffers) => buffers.iter().filter_map(PlayoutBuffer::next_event).min(),
            Supply::Guaranteed(streams) => Some(streams.tick()),
        }
    }

    /// Bytes per batch; 0 without batches.
    pub(super) fn batch(&self, engine: &Engine) -> u64 {
        match self {
            Supply::Plain => 0,
            Supply::Abiss(paced, _) => paced.batch,
            Supply::Guaranteed(_) => {
                let batches = engine
                    .guarantees()
                    .streams()
                    .filter_map(|stream| stream.batch);
                batches.max().unwrap_or_default()
            }
        }
    }
}
