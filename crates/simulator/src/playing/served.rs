//! Who gets players their data: nobody in particular, ABISS's buffers, or the engine's streams.

use block::Instant;
use engine::Engine;

use super::buffer::Buffer;
use super::guaranteed::Guaranteed;
use super::player::{Player, State};
use super::setup::{NotPlayed, Paced, Players, Service};

/// One of them.
#[derive(Debug)]
pub(super) enum Served {
    /// The disk itself.
    Plain,
    /// A buffer for each player.
    Abiss(Paced, Vec<Buffer>),
    /// A stream of the engine for each player.
    Guaranteed(Guaranteed),
}

impl Served {
    /// For these players; blocks have so many bytes.
    ///
    /// # Errors
    /// If a stream is refused, or a buffer is too small.
    pub(super) fn new(
        engine: &mut Engine,
        players: &Players,
        block: u64,
    ) -> Result<Served, NotPlayed> {
        Ok(match players.service {
            Service::Plain => Served::Plain,
            Service::Guaranteed(guarantee) => {
                Served::Guaranteed(Guaranteed::new(engine, players, guarantee, block)?)
            }
            Service::Abiss(paced) => {
                let (memory, least) = (paced.memory, paced.batch + players.read);
                if memory < least {
                    return Err(NotPlayed::Buffer { memory, least });
                }
                let files = players.files.iter();
                let buffer = |end| Buffer::new(players.rate, paced.batch, end);
                Served::Abiss(paced, files.map(|file| buffer(file.bytes())).collect())
            }
        })
    }

    /// Whether players' reads go to the disk.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Served::Plain)
    }

    /// What is to be read before anybody plays, by player.
    pub(super) fn fills(&mut self) -> Vec<(usize, u64, u64)> {
        let Served::Abiss(paced, buffers) = self else {
            return Vec::new();
        };
        let fill = |(player, buffer): (usize, &mut Buffer)| {
            let (from, to) = buffer.fill(paced.memory);
            (player, from, to)
        };
        buffers.iter_mut().enumerate().map(fill).collect()
    }

    /// Whether everybody may play.
    pub(super) fn is_filled(&self, engine: &Engine) -> bool {
        match self {
            Served::Plain => true,
            Served::Guaranteed(streams) => streams.is_serving(engine),
            Served::Abiss(_, buffers) => buffers.iter().all(Buffer::is_quiet),
        }
    }

    /// The batches that are due, by player; all of them have to be asked for.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(usize, u64, u64)> {
        let Served::Abiss(_, buffers) = self else {
            return Vec::new();
        };
        let due = |(player, buffer): (usize, &mut Buffer)| {
            let (from, to) = buffer.due(now)?;
            Some((player, from, to))
        };
        buffers.iter_mut().enumerate().filter_map(due).collect()
    }

    /// A part of a player's buffer was asked for, from this byte on.
    pub(super) fn asked(&mut self, player: usize, from: u64) {
        if let Served::Abiss(_, buffers) = self {
            buffers[player].asked(from);
        }
    }

    /// It is in memory.
    pub(super) fn came(&mut self, player: usize, from: u64) {
        if let Served::Abiss(_, buffers) = self {
            buffers[player].came(from);
        }
    }

    /// A player calls for these bytes.
    pub(super) fn call(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        player: usize,
        (from, to): (u64, u64),
    ) {
        match self {
            Served::Plain => {}
            Served::Abiss(_, buffers) => buffers[player].position(from),
            Served::Guaranteed(streams) => streams.call(now, engine, player, (from, to)),
        }
    }

    /// Players tell where they are, if it is time.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        points: impl FnOnce() -> Vec<u64>,
    ) {
        if let Served::Guaranteed(streams) = self
            && streams.tick() <= now
        {
            streams.tell(now, engine, &points());
        }
    }

    /// The players of which all that they called for is in memory now.
    pub(super) fn answers(
        &mut self,
        engine: &mut Engine,
        players: &[Player],
        read: u64,
    ) -> Vec<usize> {
        let buffers = match self {
            Served::Plain => return Vec::new(),
            Served::Guaranteed(_) => return Guaranteed::answers(engine),
            Served::Abiss(_, buffers) => buffers,
        };
        let has = |(player, buffer): (&Player, &mut Buffer)| {
            let (from, to) = player.next(read);
            matches!(player.state, State::Waiting { .. }) && buffer.has(from, to)
        };
        let all = players.iter().zip(buffers).enumerate();
        all.filter_map(|(number, both)| has(both).then_some(number))
            .collect()
    }

    /// When the next batch is due, or players tell where they are.
    pub(super) fn next_event(&self) -> Option<Instant> {
        match self {
            Served::Plain => None,
            Served::Abiss(_, buffers) => buffers.iter().filter_map(Buffer::next_event).min(),
            Served::Guaranteed(streams) => Some(streams.tick()),
        }
    }

    /// Bytes of a batch; none where nothing is batched.
    pub(super) fn batch(&self, engine: &Engine) -> u64 {
        match self {
            Served::Plain => 0,
            Served::Abiss(paced, _) => paced.batch,
            Served::Guaranteed(_) => {
                let batches = engine.streams().filter_map(|stream| stream.batch);
                batches.max().unwrap_or_default()
            }
        }
    }
}
