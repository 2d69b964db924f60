//! Applications with guaranteed streams beside a load: readers that play files and recorders that
//! write them, each at its rate.
//!
//! ```text
//!   attach:  as many as are granted, or as many as are wanted
//!   play:    a report of the playout point before each freezing of a round, no older than the
//!            host's latency; an access of so many bytes whenever the last one is used up
//!   keep:    what had to wait, what came too late, how long the head was held
//! ```
//!
//! Position reports between two freezings do not affect a stream in service and are omitted. A day
//! of a hundred streams then takes minutes.

mod files;
mod hostile;
pub mod trial;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use block::{Direction, Duration, Extent, Instant, Lba};
use engine::Engine;
use engine::streams::{NotGranted, StreamEvent, StreamTransfer};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use stream::Rate;
use stream::admission::Plan;
use stream::playout::{AccessId, Served, Standing};
use stream::streams::{Answer, Notice, StreamId};

use crate::run::Audience;

/// The parameters of the applications.
#[derive(Clone, Debug)]
pub struct StreamingSetup {
    /// Number of readers; `None`: as many as are granted.
    pub readers: Option<usize>,
    /// Number of recorders, which attach before the readers.
    pub recorders: usize,
    /// Bytes per second of each application.
    pub rate: Rate,
    /// Bytes of buffer memory of each application.
    pub memory: u64,
    /// Bytes that an application reads or writes at once.
    pub at_once: u64,
    /// Bytes by which an application runs ahead of its declared playout point: this part of its
    /// buffer is missing.
    pub further: u64,
    /// The extent that contains the files.
    pub place: Extent,
    /// The positions of the files in the extent, and the start of playing.
    pub layout: FileStarts,
    /// The reaction time of the host: the interval between two position reports.
    pub latency: Duration,
    /// The time at which all applications leave.
    pub until: Instant,
    /// The seed for the positions of the files.
    pub seed: u64,
}

/// The positions of files, and the start of playing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileStarts {
    /// Random positions; each file is played as soon as its stream is in service.
    Anywhere,
    /// These blocks; all files start together when all streams are in service. The number of
    /// streams is at most the number of blocks.
    At(Vec<Lba>),
}

/// The results of the applications, counted from the time at which all streams were in service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamingFigures {
    /// Number of granted streams.
    pub streams: usize,
    /// The plan of the rounds when all streams were attached.
    pub plan: Option<Plan>,
    /// The time from which all streams were in service; `None` if that never happened.
    pub since: Option<Instant>,
    /// Number of accesses by applications.
    pub accesses: u64,
    /// Number of accesses that missed their buffer and waited for the disk.
    pub waited: u64,
    /// The longest wait of an access.
    pub longest_wait: Duration,
    /// Number of accesses that were refused because too many were waiting.
    pub refused: u64,
    /// Number of accesses that failed on the disk.
    pub failed: u64,
    /// Number of accesses outside of the buffer or the file, or passed by the playout point before
    /// their data arrived.
    pub elsewhere: u64,
    /// Number of batches that ended.
    pub batches: u64,
    /// Number of batches that ended after their deadline.
    pub late: u64,
    /// The largest delay of a batch.
    pub latest: Duration,
    /// Number of times a guarantee lapsed.
    pub lapsed: u64,
    /// The time for which commands of streams held the head.
    pub head: Duration,
    /// The end of the measurement.
    pub until: Instant,
}

/// The simulated applications.
#[derive(Debug)]
pub struct Applications {
    /// Bytes by which they run ahead of their declared playout points.
    further: u64,
    starts: Starts,
    /// The reaction time of the host.
    latency: Duration,
    /// The time at which all leave.
    until: Instant,
    all: Vec<Application>,
    /// The next access of each application.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Number of streams that are not yet in service.
    coming: usize,
    /// The last position report.
    last_report: Instant,
    /// The time of the last action.
    now: Instant,
    stage: SessionStage,
    accesses: u64,
    kept: StreamingFigures,
}

/// When applications start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Starts {
    /// Each when its stream is in service.
    Alone,
    /// All when all streams are in service.
    Together,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionStage {
    Playing,
    /// The number of streams that have not detached yet.
    Leaving(usize),
}

/// A stream that was attached for an application.
#[derive(Clone, Copy, Debug)]
pub struct AttachedStream {
    /// The stream.
    pub stream: StreamId,
    /// Whether the application plays or records.
    pub direction: Direction,
    /// Bytes per second of the application.
    pub rate: Rate,
    /// Bytes that it reads or writes at once.
    pub at_once: u64,
}

#[derive(Clone, Copy, Debug)]
struct Application {
    of: AttachedStream,
    began: Option<Instant>,
    /// The byte at which the next access begins.
    next: u64,
}

impl StreamingFigures {
    /// The fraction of head time that streams used.
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
    /// Attaches the streams at the beginning of a run.
    ///
    /// # Errors
    /// If a stream of a fixed number is refused, or the engine gives no guarantees.
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
                FileStarts::Anywhere => files::anywhere(engine, &wish, &mut dice),
                FileStarts::At(starts) => match starts.get(all.len()) {
                    Some(start) => start.0 - wish.place.start().0,
                    None => break,
                },
            };
            match files::attach(engine, &wish, direction, offset) {
                Ok(stream) => all.push(AttachedStream {
                    stream,
                    direction,
                    rate: wish.rate,
                    at_once: wish.at_once,
                }),
                Err(NotGranted::Refused(_)) if wanted.is_none() => break,
                Err(refused) => return Err(refused),
            }
        }
        let plan = engine.guarantees().plan();
        let further = wish.further;
        let starts = match wish.layout {
            FileStarts::Anywhere => Starts::Alone,
            FileStarts::At(_) => Starts::Together,
        };
        let (latency, until) = (wish.latency, wish.until);
        Ok(Applications {
            further,
            starts,
            ..Applications::of(all, plan, latency, until)
        })
    }

    /// Applications whose streams are attached. Each starts as soon as its stream is in service. They report their
    /// positions at intervals of `latency`, and leave at `until`.
    pub fn of(
        streams: Vec<AttachedStream>,
        plan: Option<Plan>,
        latency: Duration,
        until: Instant,
    ) -> Applications {
        let all = streams.into_iter().map(|of| Application {
            of,
            began: None,
            next: 0,
        });
        let all: Vec<Application> = all.collect();
        Applications {
            due: BinaryHeap::with_capacity(all.len()),
            coming: all.len(),
            last_report: Instant::ZERO,
            now: Instant::ZERO,
            stage: SessionStage::Playing,
            accesses: 0,
            kept: StreamingFigures {
                streams: all.len(),
                plan,
                ..StreamingFigures::default()
            },
            all,
            further: 0,
            starts: Starts::Alone,
            latency,
            until,
        }
    }

    /// The results.
    pub fn kept(&self) -> &StreamingFigures {
        &self.kept
    }

    /// The last tick of the host at or before `then`.
    fn tick_before(&self, then: Instant) -> Instant {
        let tick = self.latency.as_nanos();
        Instant::from_nanos(then.as_nanos() / tick * tick)
    }

    /// The time of the next position report: the last tick before a freezing.
    fn next_report(&self, engine: &Engine) -> Option<Instant> {
        let tick = self.latency;
        if self.coming > 0 {
            return Some(self.last_report + tick);
        }
        let freezing = engine.guarantees().next_round()?;
        let then = self.tick_before(freezing);
        // A freezing that waits for rounds to end lies in the past.
        (then > self.last_report).then_some(then.max(self.now))
    }

    /// Reports the positions of all applications, and starts those whose streams came into service.
    fn report_positions(&mut self, now: Instant, engine: &mut Engine) {
        self.last_report = now;
        let serves = |it: &Application| {
            engine.guarantees().standing(it.of.stream) == Some(Standing::Serving)
        };
        let begins = self.starts == Starts::Alone || self.all.iter().all(serves);
        for (number, application) in self.all.iter_mut().enumerate() {
            let AttachedStream {
                stream,
                direction,
                rate,
                ..
            } = application.of;
            let Some(began) = application.began else {
                if begins && engine.guarantees().standing(stream) == Some(Standing::Serving) {
                    application.began = Some(now);
                    self.coming -= 1;
                    self.due.push(Reverse((now, number)));
                }
                continue;
            };
            let point = rate.bytes_within(now.since(began));
            if direction == Direction::Read {
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
        let (further, latency) = (self.further, self.latency);
        let application = &mut self.all[number];
        let AttachedStream {
            stream,
            direction,
            rate,
            at_once,
        } = application.of;
        let began = application.began.expect("it has begun to play");
        let point = rate.bytes_within(now.since(began));
        let access = AccessId(self.accesses);
        let taken = match direction {
            // Some of what is read passes before the next tick.
            Direction::Read => {
                let read = (point + further, at_once - at_once.min(PAGE));
                engine.stream(now, stream, engine::StreamInput::Read(access, read))
            }
            Direction::Write => {
                let write = (application.next, at_once);
                engine.stream(now, stream, engine::StreamInput::Write(access, write))
            }
        };
        // So many of its accesses wait that this one cannot.
        self.kept.refused += u64::from(taken.is_err());
        self.accesses += 1;
        self.kept.accesses += 1;
        application.next += at_once;
        let used_up = match direction {
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
            let closed = engine.stream(now, application.of.stream, engine::StreamInput::Detach);
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
        if now >= self.until {
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
                Notice::Late { by, .. } => {
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
        let next_tick = self.tick_before(self.now) + self.latency;
        let tells = self.next_report(engine).map(|then| match then > self.now {
            true => then,
            false => next_tick,
        });
        let moments = [access, tells, Some(self.until)];
        moments.into_iter().flatten().min()
    }

    fn is_over(&self) -> bool {
        self.stage == SessionStage::Leaving(0)
    }
}

/// Bytes per page (ABISS, 4).
pub const PAGE: u64 = 4096;
