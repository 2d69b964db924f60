//! Players whose streams have a guarantee of the engine.

use block::{Duration, Extent, Instant, Sectors, Terms};
use engine::Engine;
use engine::guarantees::{Beyond, FOREGROUND_BYTES};
use engine::streams::{NotGranted, Promise, StreamEvent};
use stream::admission::Rules;
use stream::location::{LocationMap, Piece};
use stream::playout::{AccessId, Served, Standing};
use stream::quota::Quotas;
use stream::streams::Attach;
use stream::streams::{Answer, Settings, StreamId};

use super::PAGE;
use super::setup::{Guarantee, Players, PlayingError};

/// The streams of the players.
#[derive(Debug)]
pub(super) struct Guaranteed {
    streams: Vec<StreamId>,
    /// The next position report.
    tick: Instant,
}

/// Adds the guarantees that these players need to an engine.
///
/// # Errors
/// If the belief has no seek curve, or the players have no files.
pub(super) fn promising(
    engine: Engine,
    players: &Players,
    guarantee: Guarantee,
) -> Result<Engine, PlayingError> {
    let rules = Rules {
        foreground_permille: 0,
        latency: LATENCY,
        longest_round: guarantee.longest_round,
        streams: players.files.len(),
    };
    let settings = Settings {
        page: PAGE,
        fill: FOREGROUND_BYTES,
        priority: FILLING,
    };
    let promise = Promise {
        beyond: Beyond::default(),
        rules,
        quotas: Quotas::open(),
        settings,
        place: place(players),
    };
    engine
        .with_guarantees(promise)
        .map_err(|_| PlayingError::NoSeeks)
}

/// The smallest extent that contains the players' files.
fn place(players: &Players) -> Option<Extent> {
    let extents = || players.files.iter().filter_map(|file| file.extent());
    let first = extents().map(Extent::start).min()?;
    let end = extents().map(Extent::end).max()?;
    Extent::new(first, Sectors(end.0 - first.0)).ok()
}

impl Guaranteed {
    /// Attaches one stream for each player.
    ///
    /// # Errors
    /// If a stream is refused.
    pub(super) fn new(
        engine: &mut Engine,
        players: &Players,
        guarantee: Guarantee,
        block: u64,
    ) -> Result<Guaranteed, PlayingError> {
        let mut streams = Vec::new();
        for (file, number) in players.files.iter().zip(1..) {
            let extent = file.extent().expect("a file has blocks");
            let map = LocationMap::new(vec![Piece { offset: 0, extent }], block, file.bytes());
            let ask = Attach {
                user: 0,
                terms: Terms {
                    name: "played".to_owned(),
                    memory: Some(guarantee.memory),
                    ..Terms::play(players.rate.bytes(), players.read)
                },
                map: map.expect("one piece from the beginning"),
            };
            let granted = engine.attach(Instant::ZERO, ask);
            let refused = |refused: NotGranted| PlayingError::Stream { number, refused };
            streams.push(granted.map_err(refused)?.stream);
        }
        Ok(Guaranteed {
            streams,
            tick: Instant::ZERO,
        })
    }

    /// Whether all streams are in service.
    pub(super) fn is_serving(&self, engine: &Engine) -> bool {
        let standing = |&stream: &StreamId| engine.guarantees().standing(stream);
        let mut all = self.streams.iter().map(standing);
        all.all(|standing| standing == Some(Standing::Serving))
    }

    /// A player reads these bytes.
    pub(super) fn call(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        player: usize,
        (from, to): (u64, u64),
    ) {
        let stream = self.streams[player];
        let moved = engine.stream(now, stream, engine::StreamInput::Position(from));
        moved.expect("the stream is open");
        let access = AccessId(player as u64);
        let taken = engine.stream(
            now,
            stream,
            engine::StreamInput::Read(access, (from, to - from)),
        );
        taken.expect("one read of a player at a time");
    }

    /// Reports the positions of the players if a report is due.
    pub(super) fn tell(&mut self, now: Instant, engine: &mut Engine, points: &[u64]) {
        if self.tick > now {
            return;
        }
        self.tick = now + LATENCY;
        for (&stream, &point) in self.streams.iter().zip(points) {
            let moved = engine.stream(now, stream, engine::StreamInput::Position(point));
            moved.expect("the stream is open");
        }
    }

    /// The time of the next position report.
    pub(super) fn tick(&self) -> Instant {
        self.tick
    }

    /// The players whose reads have completed since the last call.
    ///
    /// # Panics
    /// If a read failed although its player kept to its terms.
    pub(super) fn answers(engine: &mut Engine) -> Vec<usize> {
        let mut all = Vec::new();
        while let Some(event) = engine.poll_stream() {
            let StreamEvent::Answer(Answer::Access { access, served, .. }) = event else {
                continue;
            };
            match served {
                Served::Memory | Served::Waited(_) => all.push(access.0 as usize),
                Served::Failed | Served::PastEnd | Served::Elsewhere | Served::Closed => {
                    panic!("{served:?}: of a player that is where it said")
                }
            }
        }
        all
    }
}

/// The interval of position reports. A choice: the timer resolution of ABISS's time.
pub(super) const LATENCY: Duration = Duration::from_millis(10);

/// The priority at which buffers fill: the middle one.
const FILLING: u8 = 3;
