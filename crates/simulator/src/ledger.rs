//! Sums over the requests of a run, in bounded memory.
//!
//! ```text
//!   response  = waited | queue | overhead | seek | rotation | transfer | bus
//!               outside  in the drive's account
//! ```
//!
//! Sums are whole nanoseconds in 128 bits. Means are therefore exact and independent of the order
//! of the ends. Percentiles come from a histogram of three significant digits.

use std::hint::select_unpredictable;

use block::{Account, BufferHit, Direction, Duration, Finished, Instant, Status};
use hdrhistogram::Histogram;

use batches::Batches;
use commands::Commands;

use crate::load::LoadPart;

mod batches;
mod commands;
mod report;

pub use batches::BatchMeans;
pub use commands::CommandFigures;
pub use report::{
    AccountMeans, BufferHits, HeadShares, PartFigures, RequestFigures, ResponseTimes, RunReport,
};

/// Totals of a run that the ledger does not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTotals {
    /// Number of requests that ended.
    pub requests: u64,
    /// Number of requests that waited outside because the engine was full.
    pub held_back: u64,
    /// Number of arrivals that were skipped because their blocks are not on the drive.
    pub skipped: u64,
    /// Number of times the engine overruled its policy.
    pub overruled: u64,
    /// The end of the last request.
    pub end: Instant,
    /// The end of the run; later than `end` if a scan continued.
    pub over: Instant,
    /// Time between the first arrival and the last end without any request.
    pub idle: Duration,
}

/// Running sums over the requests that have ended.
#[derive(Clone, Debug)]
pub struct Ledger {
    block_bytes: u32,
    actuators: u8,
    reads: DirectionSums,
    writes: DirectionSums,
    /// One entry for each part of a mixed load.
    parts: Vec<(String, DirectionSums)>,
    commands: Commands,
    /// From the first arrival to the last end.
    span: Option<Span>,
    last_arrival: Instant,
    /// Response times in the order of arrival.
    batches: Batches,
}

/// An interval of time.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: Instant,
    last: Instant,
}

/// The sums of one direction.
#[derive(Clone, Debug)]
struct DirectionSums {
    requests: u64,
    errors: u64,
    blocks: u64,
    response: u128,
    squares: u128,
    shortest: Duration,
    longest: Duration,
    phases: Phases,
    /// Number of misses, partial hits and full hits of the drive's buffer.
    misses: u64,
    partial_hits: u64,
    full_hits: u64,
    /// Response times in nanoseconds.
    histogram: Histogram<u64>,
}

/// Nanoseconds by phase.
#[derive(Clone, Copy, Debug, Default)]
struct Phases {
    waited: u128,
    queue: u128,
    overhead: u128,
    seek: u128,
    rotation: u128,
    transfer: u128,
    bus: u128,
}

/// The resolution of the percentiles: one microsecond, below the accuracy of any drive's timing.
const FINEST_NANOS: u64 = 1_000;

/// The longest response in the percentiles: an hour. Means and maxima have no such limit.
const LONGEST_NANOS: u64 = 3_600_000_000_000;

/// Significant decimal digits of a percentile: finer than the runs' own noise.
const DIGITS: u8 = 3;

impl Ledger {
    /// An empty ledger for a drive with blocks of `block_bytes` bytes and this number of actuators.
    pub fn new(block_bytes: u32, actuators: u8) -> Self {
        Ledger {
            block_bytes,
            actuators,
            reads: DirectionSums::new(),
            writes: DirectionSums::new(),
            parts: Vec::new(),
            commands: Commands::new(),
            span: None,
            last_arrival: Instant::ZERO,
            batches: Batches::default(),
        }
    }

    /// The same ledger with additional sums for each part of the load.
    pub fn with_parts(mut self, names: Vec<String>) -> Self {
        let parts = names.into_iter().map(|name| (name, DirectionSums::new()));
        self.parts = parts.collect();
        self
    }

    /// Adds an ended request of a part of the load. Its id is its number among all arrivals.
    pub fn record(&mut self, part: LoadPart, finished: &Finished) {
        self.span = Some(Span::around(self.span, finished.submitted, finished.at));
        self.last_arrival = self.last_arrival.max(finished.submitted);
        self.batches
            .record(finished.request.id.0, finished.response().as_nanos());
        // Which of the two comes next is not predictable.
        let is_read = finished.request.direction == Direction::Read;
        select_unpredictable(is_read, &mut self.reads, &mut self.writes).record(finished);
        if let Some((_, tally)) = self.parts.get_mut(usize::from(part.0)) {
            tally.record(finished);
        }
    }

    /// Adds a command that could occupy the head from `began` to `ended`.
    pub fn record_command(&mut self, began: Instant, ended: Instant) {
        self.commands.record(began, ended);
    }

    /// The distribution of head times, for plots: the upper end of each non-empty step, and its
    /// number of commands.
    pub fn command_distribution(&self) -> impl Iterator<Item = (Duration, u64)> {
        self.commands.distribution()
    }

    /// The distribution of response times, for plots: the upper end of each non-empty step, and its
    /// number of requests.
    pub fn distribution(&self, direction: Direction) -> impl Iterator<Item = (Duration, u64)> {
        let tally = match direction {
            Direction::Read => &self.reads,
            Direction::Write => &self.writes,
        };
        steps(&tally.histogram)
    }
}

/// The mean in milliseconds, rounded to the nearest nanosecond.
fn mean(sum: u128, count: u64) -> f64 {
    let count = u128::from(count);
    millis((sum + count / 2) / count)
}

fn millis(nanos: u128) -> f64 {
    nanos as f64 / 1e6
}

/// The upper end and the count of each non-empty step of a histogram.
fn steps(histogram: &Histogram<u64>) -> impl Iterator<Item = (Duration, u64)> {
    histogram.iter_recorded().map(|step| {
        let upper = Duration::from_nanos(step.value_iterated_to());
        (upper, step.count_since_last_iteration())
    })
}

impl Span {
    /// The smallest interval that contains both.
    fn around(span: Option<Span>, first: Instant, last: Instant) -> Span {
        span.map_or(Span { first, last }, |span| Span {
            first: span.first.min(first),
            last: span.last.max(last),
        })
    }

    fn length(self) -> Duration {
        self.last.since(self.first)
    }
}

/// An empty histogram of times in nanoseconds.
fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(FINEST_NANOS, LONGEST_NANOS, DIGITS)
        .expect("the bounds are in order, and there are fewer than six digits");
    histogram.auto(false);
    histogram
}

impl DirectionSums {
    fn new() -> Self {
        DirectionSums {
            requests: 0,
            errors: 0,
            blocks: 0,
            response: 0,
            squares: 0,
            shortest: Duration::from_nanos(u64::MAX),
            longest: Duration::ZERO,
            phases: Phases::default(),
            misses: 0,
            partial_hits: 0,
            full_hits: 0,
            histogram: histogram(),
        }
    }

    fn record(&mut self, finished: &Finished) {
        let response = finished.response();
        let nanos = response.as_nanos();
        self.requests += 1;
        self.errors += u64::from(finished.status != Status::Good);
        self.blocks += finished.request.extent.length().0;
        self.response += u128::from(nanos);
        self.squares += u128::from(nanos) * u128::from(nanos);
        self.shortest = self.shortest.min(response);
        self.longest = self.longest.max(response);
        self.histogram.saturating_record(nanos);
        self.phases.waited += u128::from(finished.waited.as_nanos());
        if let Some(account) = &finished.account {
            self.phases.add(account);
            // Without a branch: which of them comes next is not predictable.
            self.misses += u64::from(account.hit == BufferHit::Miss);
            self.partial_hits += u64::from(account.hit == BufferHit::Partial);
            self.full_hits += u64::from(account.hit == BufferHit::Full);
        }
    }

    /// The sums of both directions.
    fn with(&self, other: &DirectionSums) -> DirectionSums {
        let mut both = self.clone();
        both.requests += other.requests;
        both.errors += other.errors;
        both.blocks += other.blocks;
        both.response += other.response;
        both.squares += other.squares;
        both.shortest = both.shortest.min(other.shortest);
        both.longest = both.longest.max(other.longest);
        both.phases.waited += other.phases.waited;
        both.phases.queue += other.phases.queue;
        both.phases.overhead += other.phases.overhead;
        both.phases.seek += other.phases.seek;
        both.phases.rotation += other.phases.rotation;
        both.phases.transfer += other.phases.transfer;
        both.phases.bus += other.phases.bus;
        both.misses += other.misses;
        both.partial_hits += other.partial_hits;
        both.full_hits += other.full_hits;
        both.histogram
            .add(&other.histogram)
            .expect("both histograms have the same bounds");
        both
    }
}

impl Phases {
    fn add(&mut self, account: &Account) {
        self.queue += u128::from(account.queue.as_nanos());
        self.overhead += u128::from(account.overhead.as_nanos());
        self.seek += u128::from(account.seek.as_nanos());
        self.rotation += u128::from(account.rotation.as_nanos());
        self.transfer += u128::from(account.transfer.as_nanos());
        self.bus += u128::from(account.bus.as_nanos());
    }

    /// Time in which the arm or the medium worked.
    fn head(&self) -> u128 {
        self.seek + self.rotation + self.transfer
    }

    fn total(&self) -> u128 {
        self.waited + self.queue + self.overhead + self.head() + self.bus
    }
}
