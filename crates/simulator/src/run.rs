//! Serves a load with an engine and a simulated drive, and records the end of every request.
//!
//! ```text
//!   load --arrival--> [held back while the engine is full] --request--> engine --command--> drive
//!    ^                                                                    |  ^                |
//!    '------------- on_finished ---- ledger, watch <---- finished --------'  '--- outcome ----'
//! ```
//!
//! The load is a [`Host`] of the [`Driver`], which defines the order of events at one instant.

use std::io;

use block::{Class, Command, Finished, Instant, Outcome, Refused, Request, RequestId};
use engine::Engine;
use engine::explanation::{Explanation, Slowest};

use crate::driver::{Activity, Driver, Host, SimulatedDrive, earlier};
use crate::ledger::{Ledger, RunTotals};
use crate::run::arrivals::Arrivals;
use crate::run::heads::Heads;
use crate::run::request_table::{Arrived, RequestTable};
use crate::run::scan::ScanProgress;

mod arrivals;
pub mod audience;
mod ended_command;
mod heads;
mod request_table;
pub mod scan;
pub mod shared;

pub use crate::load::{Arrival, Demand, Load, LoadError, LoadPart};
pub use audience::Audience;
pub use ended_command::{CommandRole, EndedCommand};
pub use scan::{AfterLoad, BackgroundScan, ScanPoint};
pub use shared::{ProfiledDrive, ProfilingProgress};

/// The limits of a run, and its treatment of arrivals past the end of the drive. Every accepted
/// request is served to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Maximum number of requests.
    pub requests: Option<u64>,
    /// The run accepts no arrivals after this time.
    pub until: Option<Instant>,
    /// Treatment of an arrival whose blocks are not on the drive.
    pub past_end: PastEnd,
    /// Number of ended requests between two progress reports.
    pub progress_every: u64,
    /// The background task that the run observes.
    pub scan: Option<BackgroundScan>,
    /// Number of slowest requests for which the run explains where their time went.
    pub slowest: usize,
}

/// Treatment of an arrival whose blocks are not on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastEnd {
    /// The run stops with an error.
    Stop,
    /// The run skips and counts the arrival.
    Skip,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunProgress {
    /// Requests that have ended.
    pub finished: u64,
    /// The current virtual time.
    pub now: Instant,
    /// The fraction of the scan's blocks that has been read; `None` without a scan.
    pub scanned: Option<f64>,
}

/// An observer of a run: receives every ended request and the progress.
pub trait Watch {
    /// A request has ended. Its number is its position among all arrivals. Its time of submission
    /// is its arrival, even if the engine was full at that time.
    ///
    /// # Errors
    /// If the record cannot be written; the run stops.
    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        let _ = finished;
        Ok(())
    }

    /// Whether the observer wants [`Watch::command`]. It is asked once, when the run begins.
    fn wants_commands(&self) -> bool {
        false
    }

    /// A command of the drive has ended. The observer is told only if it wants commands.
    fn command(&mut self, ended: &EndedCommand) {
        let _ = ended;
    }

    /// Another [`Options::progress_every`] requests have ended.
    fn progress(&mut self, progress: RunProgress) {
        let _ = progress;
    }

    /// The run is over, and this is one of its slowest requests, slowest first.
    fn slow(&mut self, number: u64, explanation: &Explanation) {
        let _ = (number, explanation);
    }

    /// Another hundredth of the scan has been read.
    fn scanned(&mut self, point: &ScanPoint) {
        let _ = point;
    }
}

/// The latest arrival of a request: a century. Outstanding requests then end far below the 584
/// years of a 64-bit clock. A choice.
pub const LATEST_ARRIVAL: Instant = Instant::from_nanos(3_200_000_000 * NANOS);

/// Maximum number of consecutive skipped arrivals. A closed load whose requests all lie past the
/// end would never end. A choice, above the length of any published trace of a single day.
pub const MOST_SKIPPED: u64 = 10_000_000;

/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;

/// An observer that ignores everything.
impl Watch for () {}

impl From<Refused> for RunError {
    fn from(refused: Refused) -> Self {
        RunError::Drive(refused)
    }
}

/// An error that stops a run early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The load failed.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The times of the load decrease.
    #[error(
        "{}an arrival at {at_ns} ns after one at {before_ns} ns: expected times that never go back",
        at(place)
    )]
    Backwards {
        /// The position in the load's source.
        place: Option<String>,
        /// The time of the arrival.
        at_ns: u64,
        /// The earliest time at which a request may still arrive.
        before_ns: u64,
    },
    /// An arrival is so late that times could overflow.
    #[error(
        "{}an arrival {} virtual seconds after the first: expected at most {}, a century",
        at(place), at_ns / NANOS, LATEST_ARRIVAL.as_nanos() / NANOS
    )]
    TooLate {
        /// The position in the load's source.
        place: Option<String>,
        /// The time of the arrival.
        at_ns: u64,
    },
    /// All recent arrivals lie past the end of the drive.
    #[error(
        "{}{MOST_SKIPPED} requests in a row end past the last block of the drive: expected one \
         that does not",
        at(place)
    )]
    NeverFits {
        /// The position in the load's source.
        place: Option<String>,
    },
    /// The blocks of an arrival are not on the drive.
    #[error("{}{refused}", at(place))]
    PastEnd {
        /// The position in the load's source.
        place: Option<String>,
        /// The blocks of the request and the capacity of the drive.
        refused: Refused,
    },
    /// The drive refused a command of the engine: the belief or the engine's limit of commands at
    /// the drive does not fit the drive.
    #[error("the drive refused a command that the engine gave it: {0}")]
    Drive(Refused),
    /// An observer could not write a record.
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

/// Serves the load until it ends or `options` stop it.
///
/// # Errors
/// If the load is bad, the drive does not fit the engine, or an observer cannot write.
///
/// # Panics
/// If the engine or the drive breaks its contract: a wakeup that is not in the future, or a
/// request that never ends.
pub fn run<D: SimulatedDrive>(
    driver: &mut Driver<D>,
    load: &mut dyn Load,
    options: &Options,
    ledger: &mut Ledger,
    watch: &mut dyn Watch,
) -> Result<RunTotals, RunError> {
    run_beside(driver, load, options, ledger, watch, None)
}

/// Serves the load beside an audience, if there is one. The run lasts until the audience has left.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn run_beside<D: SimulatedDrive>(
    driver: &mut Driver<D>,
    load: &mut dyn Load,
    options: &Options,
    ledger: &mut Ledger,
    watch: &mut dyn Watch,
    audience: Option<&mut dyn Audience>,
) -> Result<RunTotals, RunError> {
    let capacity = driver.engine().profile().geometry.sectors();
    let arms = driver.engine().arms().count();
    let mut host = LoadHost {
        arrivals: Arrivals::new(load, options, capacity)?,
        ledger,
        wants_commands: watch.wants_commands(),
        watch,
        // The cast shortens the lifetime of the reference.
        audience: audience.map(|audience| audience as &mut dyn Audience),
        outside: RequestTable::default(),
        heads: Heads::of(arms),
        watched: Vec::new(),
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
    host.ran.overruled = engine.overruled();
    Ok(host.ran)
}

/// The host of a run: submits the arrivals of a load and records their ends.
struct LoadHost<'a> {
    arrivals: Arrivals<'a>,
    ledger: &'a mut Ledger,
    watch: &'a mut dyn Watch,
    /// What the observer answered when the run began.
    wants_commands: bool,
    /// None is asked and told nothing.
    audience: Option<&'a mut dyn Audience>,
    outside: RequestTable,
    heads: Heads,
    /// The commands at the drive, if the observer wants them.
    watched: Vec<Command>,
    /// The latest end so far, as the drive reports it.
    last_end: Instant,
    /// The engine holds no request, and held one before.
    is_idle: bool,
    ran: RunTotals,
    progress_every: u64,
    scan: Option<ScanProgress>,
    slowest: Slowest<u64>,
}

impl Host for LoadHost<'_> {
    type Error = RunError;

    fn command_ended(&mut self, _: Instant, engine: &Engine, outcome: &Outcome) {
        let began = self.heads.end(outcome);
        self.ledger.record_command(began, outcome.at);
        if self.wants_commands {
            self.show(engine, began, outcome);
        }
        if let (Some(audience), Some(transfer)) = (&mut self.audience, engine.stream_of(outcome.id))
        {
            audience.transfer_ended(transfer, began, outcome.at);
        }
    }

    fn request_ended(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        finished: &mut Finished,
    ) -> Result<(), RunError> {
        self.last_end = self.last_end.max(finished.at);
        self.is_idle = engine.held() == 0;
        let Arrived { number, at, part } = self.outside.remove(finished.request.id);
        if self.slowest.is_one(finished.at.since(at))
            && let Some(explanation) = engine.explain(finished, at)
        {
            self.slowest.take(number, explanation);
        }
        finished.request.id = RequestId(number);
        finished.waited += finished.submitted.since(at);
        finished.submitted = at;
        self.ledger.record(part, finished);
        self.watch.finished(finished)?;
        self.ran.requests += 1;
        self.ran.end = now;
        if self.ran.requests.is_multiple_of(self.progress_every) {
            self.watch.progress(RunProgress {
                finished: self.ran.requests,
                now,
                scanned: self.scan.as_ref().map(ScanProgress::share),
            });
        }
        self.arrivals.on_finished(now, part, finished)
    }

    #[inline]
    fn act(&mut self, now: Instant, engine: &mut Engine) -> Result<Activity, RunError> {
        if self.arrivals.due().is_some_and(|due| due <= now) {
            self.submit(now, engine)?;
        }
        if let Some(audience) = &mut self.audience {
            audience.act(now, engine);
        }
        Ok(Activity::Waits)
    }

    #[inline]
    fn dispatched(&mut self, now: Instant, command: &Command) {
        self.heads.begin(now, command.id);
        if self.wants_commands {
            self.watched.push(*command);
        }
    }

    #[inline]
    fn round_ended(&mut self, now: Instant, engine: &mut Engine) {
        while let Some(event) = engine.poll_stream() {
            if let Some(audience) = &mut self.audience {
                audience.stream_event(now, event);
            }
        }
    }

    #[inline]
    fn is_over(&mut self, now: Instant, engine: &mut Engine) -> bool {
        let Some(scan) = &mut self.scan else {
            return false;
        };
        let requests = self.ran.requests;
        if scan.look(engine, now, requests, |point| self.watch.scanned(point)) {
            self.arrivals.close();
        }
        let is_served = self.arrivals.due().is_none() && engine.held() == 0;
        is_served
            && self
                .audience
                .as_ref()
                .is_none_or(|audience| audience.is_over())
            && scan.is_done(engine, now)
    }

    #[inline]
    fn next_event(&self, now: Instant, engine: &Engine) -> Option<Instant> {
        // What is due already is held back, and will be asked for when something ends.
        let arrival = self.arrivals.due().filter(|&due| due > now);
        let audience = self.audience.as_ref();
        earlier(
            arrival,
            audience.and_then(|audience| audience.next_event(engine)),
        )
    }

    #[inline]
    fn waits_for_engine(&self, engine: &Engine) -> bool {
        self.scan.is_some()
            || self.arrivals.due().is_some()
            || engine.held() > 0
            || self
                .audience
                .as_ref()
                .is_some_and(|audience| !audience.is_over())
    }
}

impl LoadHost<'_> {
    /// Shows the observer a command.
    #[cold]
    fn show(&mut self, engine: &Engine, began: Instant, outcome: &Outcome) {
        let place = self
            .watched
            .iter()
            .position(|command| command.id == outcome.id);
        let Some(command) = place.map(|place| self.watched.swap_remove(place)) else {
            return;
        };
        self.watch.command(&EndedCommand {
            arm: match engine.arms().count() {
                0 | 1 => 0,
                _ => Engine::leg_of(outcome.id) as u32,
            },
            action: command.action,
            role: CommandRole::of(engine, &command),
            began,
            outcome: *outcome,
        });
    }

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
                owner,
            } = arrival.demand;
            let at = arrival.at;
            let request = Request {
                id: self.outside.insert(Arrived { number, at, part }),
                direction,
                extent,
                class,
                durability: block::Durability::Volatile,
                owner,
            };
            engine
                .submit(now, request)
                .expect("the engine has room, and the blocks are on the drive");
        }
        Ok(())
    }
}

/// The source position as the prefix of a message.
fn at(place: &Option<String>) -> String {
    place
        .as_ref()
        .map_or_else(String::new, |place| format!("{place}: "))
}
