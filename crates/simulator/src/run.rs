//! Runs an engine and a virtual drive in virtual time.
//!
//! ```text
//!   load --arrival--> [held back while the engine is full] --request--> engine --command--> drive
//!    ^                                                                    |  ^                |
//!    '------------- on_finished ---- ledger, watch <---- finished --------'  '--- outcome ----'
//! ```
//!
//! Nothing happens between two events, so that time jumps from one to the next. At one instant
//! commands end first, then clients ask, then the policy chooses: it sees what an end gave rise to.

use std::io;

use block::{Class, Duration, Finished, Instant, Refused, Request, RequestId};
use engine::Engine;
use engine::explanation::{Explanation, Slowest};

use crate::ledger::Ledger;
use crate::run::arrivals::Arrivals;
use crate::run::heads::Heads;
use crate::run::scan::Watched;

mod arrivals;
pub mod audience;
pub mod device;
mod heads;
pub mod load;
pub mod scan;
pub mod shared;

pub use audience::Audience;
pub use device::Device;
pub use load::{Arrival, Demand, Load, LoadError, Part};
pub use scan::{AfterLoad, Point, Scan};
pub use shared::{Known, Shared, Turns};

/// When a run stops taking arrivals, and what it does with bad ones. What was taken is always
/// served to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// At most so many requests.
    pub requests: Option<u64>,
    /// No arrivals after this moment.
    pub until: Option<Instant>,
    /// What becomes of an arrival whose blocks are not on the drive.
    pub past_end: PastEnd,
    /// How many ends lie between two reports of progress.
    pub progress_every: u64,
    /// The background task that is watched.
    pub scan: Option<Scan>,
    /// Of so many requests, the slowest, it is told where their time went.
    pub slowest: usize,
}

/// What becomes of an arrival whose blocks are not on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastEnd {
    /// The run stops with an error.
    Stop,
    /// It is left out and counted.
    Skip,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Requests that have ended.
    pub finished: u64,
    /// The virtual time.
    pub now: Instant,
    /// The share of the scan's blocks that was read, if there is a scan.
    pub scanned: Option<f64>,
}

/// What a run did, beside what the ledger has of each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Requests that were served.
    pub requests: u64,
    /// Those that had to wait outside because the engine was full.
    pub held_back: u64,
    /// Arrivals that were left out because their blocks are not on the drive.
    pub skipped: u64,
    /// How often the engine overruled its policy.
    pub overruled: u64,
    /// When the last one ended.
    pub end: Instant,
    /// When the run was over: later than that if a scan went on.
    pub over: Instant,
    /// Between the first arrival and the last end, while no request was there.
    pub idle: Duration,
}

/// Sees every request that ends, and how the run gets on.
pub trait Watch {
    /// A request has ended. Its number is its place among all arrivals, and it was submitted when
    /// it arrived, even if the engine was full then.
    ///
    /// # Errors
    /// If it cannot be written down; the run stops.
    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        let _ = finished;
        Ok(())
    }

    /// Another [`Options::progress_every`] requests have ended.
    fn progress(&mut self, progress: Progress) {
        let _ = progress;
    }

    /// The run is over, and this was one of its slowest requests; the slowest is the first.
    fn slow(&mut self, number: u64, explanation: &Explanation) {
        let _ = (number, explanation);
    }

    /// Another hundredth of the scan was read.
    fn scanned(&mut self, point: &Point) {
        let _ = point;
    }
}

/// The last moment at which a request may arrive, a century: what is then still to be served ends
/// far below the 584 years of a 64-bit clock. A choice.
pub const LATEST_ARRIVAL: Instant = Instant::from_nanos(3_200_000_000 * NANOS);

/// Arrivals in a row that may be left out before a run is given up: a closed load that only asks
/// for blocks past the end would never end. A choice, above the length of any published trace of a
/// single day.
pub const MOST_SKIPPED: u64 = 10_000_000;

/// In a second.
const NANOS: u64 = 1_000_000_000;

/// Nobody watches.
impl Watch for () {}

/// Why a run stopped early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The load cannot go on.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The load's times are not in order.
    #[error(
        "{}an arrival at {at_ns} ns after one at {before_ns} ns: expected times that never go back",
        at(place)
    )]
    Backwards {
        /// Where in the load's source.
        place: Option<String>,
        /// When it should arrive.
        at_ns: u64,
        /// The time before which nothing can arrive any more.
        before_ns: u64,
    },
    /// An arrival is so late that times could overflow.
    #[error(
        "{}an arrival {} virtual seconds after the first: expected at most {}, a century",
        at(place), at_ns / NANOS, LATEST_ARRIVAL.as_nanos() / NANOS
    )]
    TooLate {
        /// Where in the load's source.
        place: Option<String>,
        /// When it should arrive.
        at_ns: u64,
    },
    /// Nothing but arrivals past the end of the drive.
    #[error(
        "{}{MOST_SKIPPED} requests in a row end past the last block of the drive: expected one \
         that does not",
        at(place)
    )]
    NeverFits {
        /// Where in the load's source.
        place: Option<String>,
    },
    /// The blocks of an arrival are not on the drive.
    #[error("{}{refused}", at(place))]
    PastEnd {
        /// Where in the load's source.
        place: Option<String>,
        /// Which blocks, and how many the drive has.
        refused: Refused,
    },
    /// The drive does not take what the engine gives it: the belief or the engine's limit of
    /// commands at the drive does not fit the drive.
    #[error("the drive refused a command that the engine gave it: {0}")]
    Drive(Refused),
    /// A watcher could not write down what it saw.
    #[error("a request's record cannot be written: {0}")]
    Record(#[from] io::Error),
}

impl Default for Options {
    fn default() -> Self {
        Options {
            requests: None,
            until: None,
            past_end: PastEnd::Stop,
            // Choice: at a million requests a second, a hundred reports a second.
            progress_every: 10_000,
            scan: None,
            slowest: 0,
        }
    }
}

/// Serves the load until it ends or `options` say so.
///
/// # Errors
/// If the load is bad, the drive does not fit the engine, or a watcher cannot write.
///
/// # Panics
/// If the engine or the drive breaks its contract: a wakeup that is not in the future, or a
/// request that never ends.
pub fn run<D: Device, L: Load + ?Sized, W: Watch + ?Sized>(
    engine: &mut Engine,
    drive: &mut D,
    load: &mut L,
    options: &Options,
    ledger: &mut Ledger,
    watch: &mut W,
) -> Result<Ran, RunError> {
    run_beside(engine, drive, load, options, ledger, watch, &mut ())
}

/// The same beside an audience, which stays until it has left by itself.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn run_beside<D: Device, L: Load + ?Sized, W: Watch + ?Sized, A: Audience>(
    engine: &mut Engine,
    drive: &mut D,
    load: &mut L,
    options: &Options,
    ledger: &mut Ledger,
    watch: &mut W,
    audience: &mut A,
) -> Result<Ran, RunError> {
    let capacity = engine.belief().geometry.sectors();
    let mut course = Course {
        arrivals: Arrivals::new(load, options, capacity)?,
        now: Instant::ZERO,
        outside: Outside::default(),
        heads: Heads::default(),
        last_end: Instant::ZERO,
        is_idle: false,
        ran: Ran::default(),
        progress_every: options.progress_every.max(1),
        scan: options.scan.map(Watched::new),
        slowest: Slowest::of(options.slowest),
    };
    loop {
        course.instant(engine, drive, ledger, watch, audience)?;
        if course.look(engine, watch, audience) {
            break;
        }
        match course.next_event(engine, drive, audience) {
            Some(then) => course.now = then,
            None => break,
        }
    }
    assert_eq!(engine.held(), 0, "the run ended, and requests did not");
    for (number, explanation) in course.slowest.iter() {
        watch.slow(*number, explanation);
    }
    course.ran.over = course.now;
    course.ran.skipped = course.arrivals.skipped();
    course.ran.overruled = engine.overruled();
    Ok(course.ran)
}

/// A run under way.
struct Course<'a, L: ?Sized> {
    arrivals: Arrivals<'a, L>,
    now: Instant,
    outside: Outside,
    heads: Heads,
    /// The latest end so far, as the drive reports it.
    last_end: Instant,
    /// No request is there, and one was.
    is_idle: bool,
    ran: Ran,
    progress_every: u64,
    scan: Option<Watched>,
    slowest: Slowest<u64>,
}

/// What the engine is not told of the requests that it holds.
#[derive(Default)]
struct Outside {
    /// By the number under which the engine knows the request.
    known: Vec<Arrived>,
    free: Vec<u32>,
}

/// A request that has arrived.
#[derive(Clone, Copy)]
struct Arrived {
    number: u64,
    at: Instant,
    part: Part,
}

impl<L: Load + ?Sized> Course<'_, L> {
    /// All that happens now.
    fn instant<D: Device, W: Watch + ?Sized, A: Audience>(
        &mut self,
        engine: &mut Engine,
        drive: &mut D,
        ledger: &mut Ledger,
        watch: &mut W,
        audience: &mut A,
    ) -> Result<(), RunError> {
        loop {
            while let Some(outcome) = drive.poll(self.now) {
                let began = self.heads.end(&outcome);
                ledger.record_command(began, outcome.at);
                if let Some(transfer) = engine.stream_of(outcome.id) {
                    audience.moved(transfer, began, outcome.at);
                }
                engine.complete(self.now, outcome.id, outcome);
            }
            while let Some(finished) = engine.poll_finished() {
                let end = finished.at;
                self.finish(engine, finished, ledger, watch)?;
                self.last_end = self.last_end.max(end);
                self.is_idle = engine.held() == 0;
            }
            self.submit(engine)?;
            audience.act(self.now, engine);
            while let Some(command) = engine.poll(self.now) {
                drive.submit(self.now, command).map_err(RunError::Drive)?;
                self.heads.begin(self.now, command.id);
            }
            while let Some(event) = engine.poll_stream() {
                audience.hear(self.now, event);
            }
            if drive.next_wakeup().is_none_or(|then| then > self.now) {
                return Ok(());
            }
        }
    }

    fn finish<W: Watch + ?Sized>(
        &mut self,
        engine: &Engine,
        mut finished: Finished,
        ledger: &mut Ledger,
        watch: &mut W,
    ) -> Result<(), RunError> {
        let Arrived { number, at, part } = self.outside.leave(finished.request.id);
        if self.slowest.is_one(finished.at.since(at))
            && let Some(explanation) = engine.explain(&finished, at)
        {
            self.slowest.take(number, explanation);
        }
        finished.request.id = RequestId(number);
        finished.waited += finished.submitted.since(at);
        finished.submitted = at;
        ledger.record(part, &finished);
        watch.finished(&finished)?;
        self.ran.requests += 1;
        self.ran.end = self.now;
        if self.ran.requests.is_multiple_of(self.progress_every) {
            watch.progress(Progress {
                finished: self.ran.requests,
                now: self.now,
                scanned: self.scan.as_ref().map(Watched::share),
            });
        }
        self.arrivals.on_finished(self.now, part, &finished)
    }

    /// Gives the engine what is due, until it is full.
    fn submit(&mut self, engine: &mut Engine) -> Result<(), RunError> {
        while engine.has_room(Class::default())
            && self.arrivals.due().is_some_and(|due| due <= self.now)
        {
            let Some((number, arrival)) = self.arrivals.take()? else {
                return Ok(());
            };
            self.ran.held_back += u64::from(arrival.at < self.now);
            if self.is_idle {
                self.ran.idle += self.now.since(self.last_end);
                self.is_idle = false;
            }
            let Demand {
                direction,
                extent,
                class,
                part,
            } = arrival.demand;
            let at = arrival.at;
            let request = Request {
                id: self.outside.enter(Arrived { number, at, part }),
                direction,
                extent,
                class,
                durability: block::Durability::Volatile,
            };
            engine
                .submit(self.now, request)
                .expect("the engine has room, and the blocks are on the drive");
        }
        Ok(())
    }

    /// Looks how far the scan has come; whether the run is over although the scan is not.
    fn look<W: Watch + ?Sized, A: Audience>(
        &mut self,
        engine: &mut Engine,
        watch: &mut W,
        audience: &A,
    ) -> bool {
        let Some(scan) = &mut self.scan else {
            return false;
        };
        let requests = self.ran.requests;
        if scan.look(engine, self.now, requests, |point| watch.scanned(point)) {
            self.arrivals.close();
        }
        let is_over = self.arrivals.due().is_none() && engine.held() == 0 && audience.is_over();
        is_over && scan.is_done(engine, self.now)
    }

    /// When something happens next; `None` if nothing ever will.
    fn next_event<D: Device, A: Audience>(
        &self,
        engine: &Engine,
        drive: &D,
        audience: &A,
    ) -> Option<Instant> {
        // What is due already is held back, and will be asked for when something ends.
        let arrival = self.arrivals.due().filter(|&due| due > self.now);
        // Behind the last request an engine may go on looking where the platter is.
        let is_over = self.arrivals.due().is_none() && engine.held() == 0 && self.scan.is_none();
        let is_over = is_over && audience.is_over();
        let acts = audience.next(engine);
        let engine = engine.next_wakeup().filter(|_| !is_over);
        let next = [drive.next_wakeup(), engine, arrival, acts]
            .into_iter()
            .flatten()
            .min()?;
        assert!(
            next > self.now,
            "a wakeup at {next:?} is not after {:?}",
            self.now
        );
        Some(next)
    }
}

impl Outside {
    fn enter(&mut self, arrived: Arrived) -> RequestId {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.known[slot as usize] = arrived;
                slot
            }
            None => {
                self.known.push(arrived);
                self.known.len() as u32 - 1
            }
        };
        RequestId(u64::from(slot))
    }

    fn leave(&mut self, id: RequestId) -> Arrived {
        self.free.push(id.0 as u32);
        self.known[id.0 as usize]
    }
}

/// A place in front of a message.
fn at(place: &Option<String>) -> String {
    place
        .as_ref()
        .map_or_else(String::new, |place| format!("{place}: "))
}
