//! Serves a load on an engine and a simulated drive, and records every end.
//!
//! ```text
//!   load --arrival--> [held back while the engine is full] --request--> engine --command--> drive
//!    ^                                                                    |  ^                |
//!    '------------- on_finished ---- ledger, watch <---- finished --------'  '--- outcome ----'
//! ```
//!
//! The load is a [`Host`] of the [`Driver`], which says in which order things happen at one instant.

use std::io;

use block::{Class, Command, Finished, Instant, Outcome, Refused, Request, RequestId};
use engine::Engine;
use engine::explanation::{Explanation, Slowest};

use crate::driver::{Activity, Driver, Host, SimulatedDrive, earlier};
use crate::ledger::{Ledger, RunTotals};
use crate::run::arrivals::Arrivals;
use crate::run::heads::Heads;
use crate::run::scan::ScanProgress;

mod arrivals;
pub mod audience;
mod heads;
pub mod scan;
pub mod shared;

pub use crate::load::{Arrival, Demand, Load, LoadError, LoadPart};
pub use audience::Audience;
pub use scan::{AfterLoad, BackgroundScan, ScanPoint};
pub use shared::{ProbeSchedule, ProfiledDrive, ProfilingProgress};

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
    pub scan: Option<BackgroundScan>,
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
pub struct RunProgress {
    /// Requests that have ended.
    pub finished: u64,
    /// The virtual time.
    pub now: Instant,
    /// The share of the scan's blocks that was read, if there is a scan.
    pub scanned: Option<f64>,
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
    fn progress(&mut self, progress: RunProgress) {
        let _ = progress;
    }

    /// The run is over, and this was one of its slowest requests; the slowest is the first.
    fn slow(&mut self, number: u64, explanation: &Explanation) {
        let _ = (number, explanation);
    }

    /// Another hundredth of the scan was read.
    fn scanned(&mut self, point: &ScanPoint) {
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

impl From<Refused> for RunError {
    fn from(refused: Refused) -> Self {
        RunError::Drive(refused)
    }
}

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
pub fn run<D: SimulatedDrive, L: Load + ?Sized, W: Watch + ?Sized>(
    driver: &mut Driver<D>,
    load: &mut L,
    options: &Options,
    ledger: &mut Ledger,
    watch: &mut W,
) -> Result<RunTotals, RunError> {
    run_beside(driver, load, options, ledger, watch, &mut ())
}

/// The same beside an audience, which stays until it has left by itself.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn run_beside<D: SimulatedDrive, L: Load + ?Sized, W: Watch + ?Sized, A: Audience>(
    driver: &mut Driver<D>,
    load: &mut L,
    options: &Options,
    ledger: &mut Ledger,
    watch: &mut W,
    audience: &mut A,
) -> Result<RunTotals, RunError> {
    let capacity = driver.engine().belief().profile().geometry.sectors();
    let mut host = LoadHost {
        arrivals: Arrivals::new(load, options, capacity)?,
        ledger,
        watch,
        audience,
        outside: RequestTable::default(),
        heads: Heads::default(),
        last_end: Instant::ZERO,
        is_idle: false,
        ran: RunTotals::default(),
        progress_every: options.progress_every.max(1),
        scan: options.scan.map(ScanProgress::new),
        slowest: Slowest::of(options.slowest),
    };
    driver.run(&mut host)?;
    let engine = driver.engine();
    assert_eq!(engine.held(), 0, "the run ended, and requests did not");
    for (number, explanation) in host.slowest.iter() {
        host.watch.slow(*number, explanation);
    }
    host.ran.over = driver.now();
    host.ran.skipped = host.arrivals.skipped();
    host.ran.overruled = engine.ordering().overruled();
    Ok(host.ran)
}

/// The host of a run: submits the arrivals of a load, and records their ends.
struct LoadHost<'a, L: ?Sized, W: ?Sized, A> {
    arrivals: Arrivals<'a, L>,
    ledger: &'a mut Ledger,
    watch: &'a mut W,
    audience: &'a mut A,
    outside: RequestTable,
    heads: Heads,
    /// The latest end so far, as the drive reports it.
    last_end: Instant,
    /// No request is there, and one was.
    is_idle: bool,
    ran: RunTotals,
    progress_every: u64,
    scan: Option<ScanProgress>,
    slowest: Slowest<u64>,
}

/// What the engine is not told of the requests that it holds.
#[derive(Default)]
struct RequestTable {
    /// By the number under which the engine knows the request.
    known: Vec<Arrived>,
    free: Vec<u32>,
}

/// A request that has arrived.
#[derive(Clone, Copy)]
struct Arrived {
    number: u64,
    at: Instant,
    part: LoadPart,
}

impl<L: Load + ?Sized, W: Watch + ?Sized, A: Audience> Host for LoadHost<'_, L, W, A> {
    type Error = RunError;

    fn command_ended(&mut self, _: Instant, engine: &Engine, outcome: &Outcome) {
        let began = self.heads.end(outcome);
        self.ledger.record_command(began, outcome.at);
        if let Some(transfer) = engine.stream_of(outcome.id) {
            self.audience.transfer_ended(transfer, began, outcome.at);
        }
    }

    fn request_ended(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        mut finished: Finished,
    ) -> Result<(), RunError> {
        self.last_end = self.last_end.max(finished.at);
        self.is_idle = engine.held() == 0;
        let Arrived { number, at, part } = self.outside.remove(finished.request.id);
        if self.slowest.is_one(finished.at.since(at))
            && let Some(explanation) = engine.belief().explain(&finished, at)
        {
            self.slowest.take(number, explanation);
        }
        finished.request.id = RequestId(number);
        finished.waited += finished.submitted.since(at);
        finished.submitted = at;
        self.ledger.record(part, &finished);
        self.watch.finished(&finished)?;
        self.ran.requests += 1;
        self.ran.end = now;
        if self.ran.requests.is_multiple_of(self.progress_every) {
            self.watch.progress(RunProgress {
                finished: self.ran.requests,
                now,
                scanned: self.scan.as_ref().map(ScanProgress::share),
            });
        }
        self.arrivals.on_finished(now, part, &finished)
    }

    fn act(&mut self, now: Instant, engine: &mut Engine) -> Result<Activity, RunError> {
        self.submit(now, engine)?;
        self.audience.act(now, engine);
        Ok(Activity::Waits)
    }

    fn dispatched(&mut self, now: Instant, command: &Command) {
        self.heads.begin(now, command.id);
    }

    fn round_ended(&mut self, now: Instant, engine: &mut Engine) {
        while let Some(event) = engine.poll_stream() {
            self.audience.stream_event(now, event);
        }
    }

    fn is_over(&mut self, now: Instant, engine: &mut Engine) -> bool {
        let Some(scan) = &mut self.scan else {
            return false;
        };
        let requests = self.ran.requests;
        if scan.look(engine, now, requests, |point| self.watch.scanned(point)) {
            self.arrivals.close();
        }
        let is_served = self.arrivals.due().is_none() && engine.held() == 0;
        is_served && self.audience.is_over() && scan.is_done(engine, now)
    }

    fn next_event(&self, now: Instant, engine: &Engine) -> Option<Instant> {
        // What is due already is held back, and will be asked for when something ends.
        let arrival = self.arrivals.due().filter(|&due| due > now);
        earlier(arrival, self.audience.next_event(engine))
    }

    fn waits_for_engine(&self, engine: &Engine) -> bool {
        self.scan.is_some()
            || self.arrivals.due().is_some()
            || engine.held() > 0
            || !self.audience.is_over()
    }
}

impl<L: Load + ?Sized, W, A> LoadHost<'_, L, W, A>
where
    W: ?Sized,
{
    /// Gives the engine what is due, until it is full.
    fn submit(&mut self, now: Instant, engine: &mut Engine) -> Result<(), RunError> {
        while engine.has_room(Class::default()) && self.arrivals.due().is_some_and(|due| due <= now)
        {
            let Some((number, arrival)) = self.arrivals.take()? else {
                return Ok(());
            };
            self.ran.held_back += u64::from(arrival.at < now);
            if self.is_idle {
                self.ran.idle += now.since(self.last_end);
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
                id: self.outside.insert(Arrived { number, at, part }),
                direction,
                extent,
                class,
                durability: block::Durability::Volatile,
            };
            engine
                .submit(now, request)
                .expect("the engine has room, and the blocks are on the drive");
        }
        Ok(())
    }
}

impl RequestTable {
    fn insert(&mut self, arrived: Arrived) -> RequestId {
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

    fn remove(&mut self, id: RequestId) -> Arrived {
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
