//! Applications with guaranteed streams beside a load: readers that play files, recorders that
//! write them, each at its rate.
//!
//! ```text
//!   attach:  as many as are granted, or as many as are wanted
//!   play:    a report of the playout point before each freezing of a round, no older than the
//!            host's latency; an access of so many bytes whenever the last one is used up
//!   keep:    what had to wait, what came too late, how long the head was held
//! ```
//!
//! Reports between two freezings change nothing for a stream that is served, and are left out: a
//! day of a hundred streams is then a matter of minutes.

mod hostile;
pub mod trial;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use block::{Direction, Duration, Extent, Instant, Lba, Sectors, StreamMode, Terms};
use engine::Engine;
use engine::streams::{NotGranted, StreamEvent, StreamTransfer};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use stream::admission::Plan;
use stream::location::Piece;
use stream::playout::{AccessId, Served, Standing};
use stream::streams::Attach;
use stream::streams::{Answer, Notice, StreamId};
use stream::{LocationMap, Rate};

use crate::run::Audience;

/// What the applications are.
#[derive(Clone, Debug)]
pub struct StreamingSetup {
    /// Readers; none: as many as are granted.
    pub readers: Option<usize>,
    /// Recorders, which ask before the readers.
    pub recorders: usize,
    /// Bytes in a second, of each.
    pub rate: Rate,
    /// Bytes of memory, of each.
    pub memory: u64,
    /// Bytes that an application reads or writes at once.
    pub at_once: u64,
    /// By how many bytes more than it said it goes beyond its playout point: so much of its buffer
    /// is missing.
    pub further: u64,
    /// Where the files are.
    pub place: Extent,
    /// Where in it they begin, and when they are played.
    pub layout: FileStarts,
    /// How late the host may notice anything: the time between two reports.
    pub latency: Duration,
    /// When all of them leave.
    pub until: Instant,
    /// Where the files begin is drawn from it.
    pub seed: u64,
}

/// Where files begin, and when they are played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileStarts {
    /// Anywhere, each from when it is served.
    Anywhere,
    /// These blocks, all of them at once, when all are served; no more than there are blocks.
    At(Vec<Lba>),
}

/// What came of it, from the moment on at which all were served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamingFigures {
    /// Streams that were granted.
    pub streams: usize,
    /// How rounds went when all were there.
    pub plan: Option<Plan>,
    /// Since when all were served; none: never.
    pub since: Option<Instant>,
    /// Accesses of applications.
    pub accesses: u64,
    /// Those that did not find their memory, and waited for the disk.
    pub waited: u64,
    /// The longest that one waited.
    pub longest_wait: Duration,
    /// Those that were not taken, because too many waited.
    pub refused: u64,
    /// Those that the disk could not do.
    pub failed: u64,
    /// Those that were answered otherwise: outside of the buffer or of the file, or passed by the
    /// playout point before the disk was there.
    pub elsewhere: u64,
    /// Batches that ended.
    pub batches: u64,
    /// Those that ended after their deadline.
    pub late: u64,
    /// How late the latest was.
    pub latest: Duration,
    /// How often a guarantee lapsed.
    pub lapsed: u64,
    /// For how long commands of streams held the head.
    pub head: Duration,
    /// Until when all this was counted.
    pub until: Instant,
}

/// The applications.
#[derive(Debug)]
pub struct Applications {
    wish: StreamingSetup,
    all: Vec<Application>,
    /// When each of them accesses its file next.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    /// How many are not served yet.
    coming: usize,
    /// When it was last told where they are.
    last_report: Instant,
    /// When they did something last.
    now: Instant,
    stage: SessionStage,
    accesses: u64,
    kept: StreamingFigures,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionStage {
    Playing,
    /// So many have not left.
    Leaving(usize),
}

#[derive(Clone, Copy, Debug)]
struct Application {
    stream: StreamId,
    direction: Direction,
    began: Option<Instant>,
    /// The byte at which the next access begins.
    next: u64,
}

impl StreamingFigures {
    /// The share of head time that streams took.
    pub fn head_share(&self) -> f64 {
        let time = self
            .since
            .map_or(Duration::ZERO, |since| self.until.since(since));
        match time.is_zero() {
            true => 0.0,
            false => self.head.as_secs_f64() / time.as_secs_f64(),
        }
    }
}

impl Applications {
    /// Those that are granted of what is wished for, at the beginning of a run.
    ///
    /// # Errors
    /// The refusal, if a number was wished for and not granted; or if the engine promises nothing.
    pub fn attach(engine: &mut Engine, wish: StreamingSetup) -> Result<Applications, NotGranted> {
        let mut dice = Pcg64Mcg::seed_from_u64(wish.seed);
        let wanted = wish.readers.map(|readers| readers + wish.recorders);
        let mut all = Vec::new();
        while wanted != Some(all.len()) {
            let direction = match all.len() < wish.recorders {
                true => Direction::Write,
                false => Direction::Read,
            };
            let offset = match &wish.layout {
                FileStarts::Anywhere => anywhere(engine, &wish, &mut dice),
                FileStarts::At(starts) => match starts.get(all.len()) {
                    Some(start) => start.0 - wish.place.start().0,
                    None => break,
                },
            };
            match attach(engine, &wish, direction, offset) {
                Ok(stream) => all.push(Application {
                    stream,
                    direction,
                    began: None,
                    next: 0,
                }),
                Err(NotGranted::Refused(_)) if wanted.is_none() => break,
                Err(refused) => return Err(refused),
            }
        }
        Ok(Applications {
            due: BinaryHeap::with_capacity(all.len()),
            coming: all.len(),
            last_report: Instant::ZERO,
            now: Instant::ZERO,
            stage: SessionStage::Playing,
            accesses: 0,
            kept: StreamingFigures {
                streams: all.len(),
                plan: engine.guarantees().plan(),
                ..StreamingFigures::default()
            },
            all,
            wish,
        })
    }

    /// What came of it.
    pub fn kept(&self) -> &StreamingFigures {
        &self.kept
    }

    /// The tick of the host at `then` or before.
    fn tick_before(&self, then: Instant) -> Instant {
        let tick = self.wish.latency.as_nanos();
        Instant::from_nanos(then.as_nanos() / tick * tick)
    }

    /// When the applications tell next where they are: at the last tick before a freezing.
    fn next_report(&self, engine: &Engine) -> Option<Instant> {
        let tick = self.wish.latency;
        if self.coming > 0 {
            return Some(self.last_report + tick);
        }
        let freezing = engine.guarantees().next_round()?;
        let then = self.tick_before(freezing);
        // A freezing that waits for rounds to end lies in the past.
        (then > self.last_report).then_some(then.max(self.now))
    }

    /// All tell where they are; those that are served now begin.
    fn report_positions(&mut self, now: Instant, engine: &mut Engine) {
        self.last_report = now;
        let serves =
            |it: &Application| engine.guarantees().standing(it.stream) == Some(Standing::Serving);
        let begins = self.wish.layout == FileStarts::Anywhere || self.all.iter().all(serves);
        for (number, application) in self.all.iter_mut().enumerate() {
            let stream = application.stream;
            let Some(began) = application.began else {
                if begins && engine.guarantees().standing(stream) == Some(Standing::Serving) {
                    application.began = Some(now);
                    self.coming -= 1;
                    self.due.push(Reverse((now, number)));
                }
                continue;
            };
            let point = self.wish.rate.bytes_within(now.since(began));
            if application.direction == Direction::Read {
                let moved = engine.stream(now, stream, engine::StreamInput::Position(point));
                moved.expect("its stream is open");
            }
        }
        if self.coming == 0 && self.kept.since.is_none() {
            self.kept = StreamingFigures {
                streams: self.kept.streams,
                plan: engine.guarantees().plan(),
                since: Some(now),
                ..StreamingFigures::default()
            };
        }
    }

    /// An application reads or writes.
    fn access(&mut self, now: Instant, number: usize, engine: &mut Engine) {
        let StreamingSetup {
            rate,
            at_once,
            further,
            latency,
            ..
        } = self.wish;
        let application = &mut self.all[number];
        let began = application.began.expect("it has begun to play");
        let point = rate.bytes_within(now.since(began));
        let access = AccessId(self.accesses);
        let taken = match application.direction {
            // Some of what is read passes before the next tick.
            Direction::Read => {
                let read = (point + further, at_once - at_once.min(PAGE));
                engine.stream(
                    now,
                    application.stream,
                    engine::StreamInput::Read(access, read),
                )
            }
            Direction::Write => {
                let write = (application.next, at_once);
                engine.stream(
                    now,
                    application.stream,
                    engine::StreamInput::Write(access, write),
                )
            }
        };
        // So many of its accesses wait that this one cannot.
        self.kept.refused += u64::from(taken.is_err());
        self.accesses += 1;
        self.kept.accesses += 1;
        application.next += at_once;
        let used_up = match application.direction {
            Direction::Read => application.next,
            Direction::Write => (application.next + at_once).saturating_sub(further),
        };
        let then = began + rate.at_most(used_up);
        let tick = latency.as_nanos();
        let then = Instant::from_nanos(then.as_nanos().div_ceil(tick) * tick);
        self.due.push(Reverse((then.max(now + latency), number)));
    }

    fn detach_all(&mut self, now: Instant, engine: &mut Engine) {
        self.stage = SessionStage::Leaving(self.all.len());
        self.kept.until = now;
        for application in &self.all {
            let closed = engine.stream(now, application.stream, engine::StreamInput::Detach);
            closed.expect("its stream is open");
        }
    }

    fn served(&mut self, now: Instant, served: Served) {
        let kept = &mut self.kept;
        match served {
            Served::Memory => {}
            Served::Waited(since) => {
                kept.waited += 1;
                kept.longest_wait = kept.longest_wait.max(now.since(since));
            }
            Served::Failed => kept.failed += 1,
            Served::PastEnd | Served::Elsewhere | Served::Closed => kept.elsewhere += 1,
        }
    }
}

impl Audience for Applications {
    fn act(&mut self, now: Instant, engine: &mut Engine) {
        if self.stage != SessionStage::Playing {
            return;
        }
        self.now = now;
        if self.next_report(engine).is_some_and(|then| then <= now) {
            self.report_positions(now, engine);
        }
        while let Some(&Reverse((then, number))) = self.due.peek() {
            if then > now {
                break;
            }
            self.due.pop();
            self.access(now, number, engine);
        }
        if now >= self.wish.until {
            self.detach_all(now, engine);
        }
    }

    fn stream_event(&mut self, now: Instant, event: StreamEvent) {
        let answer = match event {
            StreamEvent::Moved { .. } => {
                self.kept.batches += u64::from(self.stage == SessionStage::Playing);
                return;
            }
            StreamEvent::Answer(answer) => answer,
        };
        match (answer, &mut self.stage) {
            (
                Answer::Notice {
                    notice: Notice::Closed,
                    ..
                },
                SessionStage::Leaving(left),
            ) => *left -= 1,
            (_, SessionStage::Leaving(_)) => {}
            (Answer::Access { served, .. }, SessionStage::Playing) => self.served(now, served),
            (Answer::Notice { notice, .. }, SessionStage::Playing) => match notice {
                Notice::Late(by) => {
                    self.kept.late += 1;
                    self.kept.latest = self.kept.latest.max(by);
                }
                Notice::Stands(Standing::Filling | Standing::Behind) => self.kept.lapsed += 1,
                _ => {}
            },
        }
    }

    fn transfer_ended(&mut self, _: StreamTransfer, began: Instant, ended: Instant) {
        if self.stage == SessionStage::Playing {
            self.kept.head += ended.since(began);
        }
    }

    fn next_event(&self, engine: &Engine) -> Option<Instant> {
        if self.stage != SessionStage::Playing {
            return None;
        }
        let access = self.due.peek().map(|Reverse((then, _))| *then);
        // What has become due since is done at the next tick.
        let next_tick = self.tick_before(self.now) + self.wish.latency;
        let tells = self.next_report(engine).map(|then| match then > self.now {
            true => then,
            false => next_tick,
        });
        let moments = [access, tells, Some(self.wish.until)];
        moments.into_iter().flatten().min()
    }

    fn is_over(&self) -> bool {
        self.stage == SessionStage::Leaving(0)
    }
}

/// The blocks of each file.
fn file_blocks(engine: &Engine, wish: &StreamingSetup) -> u64 {
    let block = u64::from(engine.belief().profile().block_bytes);
    let seconds = wish.until.as_nanos().div_ceil(stream::rate::SECOND) + 1;
    let length = wish.rate.bytes() * seconds + wish.memory + wish.further + wish.at_once;
    let blocks = length.div_ceil(PAGE) * (PAGE / block);
    blocks.min(wish.place.length().0)
}

/// Where a file begins, from the beginning of the place.
fn anywhere(engine: &Engine, wish: &StreamingSetup, dice: &mut Pcg64Mcg) -> u64 {
    let page = PAGE / u64::from(engine.belief().profile().block_bytes);
    match wish.place.length().0 - file_blocks(engine, wish) {
        0 => 0,
        spread => (dice.next_u64() % spread) / page * page,
    }
}

/// Asks for one stream over a file in one piece.
fn attach(
    engine: &mut Engine,
    wish: &StreamingSetup,
    direction: Direction,
    offset: u64,
) -> Result<StreamId, NotGranted> {
    let block = u64::from(engine.belief().profile().block_bytes);
    let place = wish.place;
    let blocks = file_blocks(engine, wish);
    let extent = Extent::new(Lba(place.start().0 + offset), Sectors(blocks));
    let extent = extent.expect("a file of at least one page, on the drive");
    let map = LocationMap::new(vec![Piece { offset: 0, extent }], block, blocks * block);
    let ask = Attach {
        user: 0,
        terms: Terms {
            name: "simulated".to_owned(),
            mode: match direction {
                Direction::Read => StreamMode::Play,
                Direction::Write => StreamMode::Record,
            },
            memory: Some(wish.memory),
            ..Terms::play(wish.rate.bytes(), wish.at_once)
        },
        map: map.expect("one piece is a map"),
    };
    Ok(engine.attach(Instant::ZERO, ask)?.stream)
}

/// Bytes of a page (ABISS, 4).
pub const PAGE: u64 = 4096;
