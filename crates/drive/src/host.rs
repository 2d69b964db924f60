//! The host between a drive and the program that uses it: commands and outcomes arrive late.
//!
//! ```text
//!   program --submit--> [delay] --> drive --> [delay] --outcome--> program
//! ```
//!
//! A host only ever delays: queues of the kernel, wakeups of threads, a network. The drive keeps its
//! own time; the program sees the sum. The delays have dice of their own, so that a drive behind a host does
//! what the same drive does without one.

mod measured;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use block::{Account, Command, CommandId, Duration, Instant, Outcome};
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

pub use measured::MeasuredPath;

/// How long a host delays commands and outcomes; not at all by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostJitter {
    /// The delay that every command and every outcome has.
    pub floor: Duration,
    /// The mean of the exponentially distributed delay on top of it, each way.
    pub mean: Duration,
    /// Outcomes out of a million that are stalled.
    pub stalls_ppm: u32,
    /// The longest stall; stalls are evenly distributed up to it.
    pub longest_stall: Duration,
    /// The path with whose measured delays each command and each outcome is delayed besides.
    pub measured: Option<MeasuredPath>,
    /// How the usual delay changes.
    pub shifts: DelayShifts,
}

/// A host whose usual delay changes, as one whose load does: outcomes are later by a delay that is drawn again from
/// time to time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayShifts {
    /// The largest delay; they are evenly distributed up to it.
    pub most: Duration,
    /// How long each lasts.
    pub every: Duration,
}

impl HostJitter {
    /// The delays that were measured on a path.
    pub fn measured(path: MeasuredPath) -> Self {
        HostJitter {
            measured: Some(path),
            ..HostJitter::default()
        }
    }

    /// Exponentially distributed delays with this mean each way; besides, one outcome in 200 is stalled for
    /// up to 4 ms. Without a mean there is no delay.
    pub fn exponential(mean: Duration) -> Self {
        match mean.is_zero() {
            true => HostJitter::default(),
            false => HostJitter {
                mean,
                stalls_ppm: STALLS_PPM,
                longest_stall: LONGEST_STALL,
                ..HostJitter::default()
            },
        }
    }
}

/// Stalled outcomes in a million: one in 200. A choice: a busy machine of few cores (issue 20: "20 us to
/// several ms").
const STALLS_PPM: u32 = 5_000;

/// The longest stall. A choice: a time slice of Linux's scheduler.
const LONGEST_STALL: Duration = Duration::from_millis(4);

/// Commands and outcomes on their way through a host.
#[derive(Clone, Debug)]
pub(crate) struct HostQueues {
    jitter: HostJitter,
    rng: Pcg64Mcg,
    /// Numbers commands and outcomes, so that those of one instant keep their order.
    count: u64,
    to_drive: BinaryHeap<Reverse<Delayed<Command>>>,
    to_program: BinaryHeap<Reverse<Delayed<Outcome>>>,
    /// When commands were given that have not set out for the program again.
    given: Vec<(CommandId, Instant)>,
    /// By how much the usual delay is longer at present, and since which of its changes.
    shift: (u64, Duration),
}

/// Something on its way, ordered by arrival.
#[derive(Clone, Debug)]
struct Delayed<T> {
    arrives: Instant,
    count: u64,
    what: T,
}

impl<T> PartialEq for Delayed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count
    }
}

impl<T> Eq for Delayed<T> {}

impl<T> PartialOrd for Delayed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Delayed<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.arrives, self.count).cmp(&(other.arrives, other.count))
    }
}

impl HostQueues {
    /// A host with this jitter, if it has any; `seed` decides when it delays by how much.
    pub(crate) fn new(jitter: HostJitter, seed: u64) -> Option<Box<Self>> {
        (jitter != HostJitter::default()).then(|| {
            Box::new(HostQueues {
                jitter,
                rng: Pcg64Mcg::seed_from_u64(seed),
                count: 0,
                to_drive: BinaryHeap::new(),
                to_program: BinaryHeap::new(),
                given: Vec::new(),
                shift: (0, Duration::ZERO),
            })
        })
    }

    /// Commands and outcomes on their way.
    pub(crate) fn held(&self) -> usize {
        self.to_drive.len() + self.to_program.len()
    }

    /// A program gives a command.
    pub(crate) fn send(&mut self, now: Instant, command: Command) {
        let arrives = now + self.delay() + self.measured(MeasuredPath::to_drive);
        self.given.push((command.id, now));
        self.count += 1;
        self.to_drive.push(Reverse(Delayed {
            arrives,
            count: self.count,
            what: command,
        }));
    }

    /// When the next command arrives at the drive.
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        self.to_drive.peek().map(|Reverse(next)| next.arrives)
    }

    /// The next command that has arrived at the drive by `now`.
    pub(crate) fn arrived(&mut self, now: Instant) -> Option<Command> {
        self.next_arrival().filter(|arrives| *arrives <= now)?;
        self.to_drive.pop().map(|Reverse(next)| next.what)
    }

    /// The commands that have not arrived. They are lost, as are those at the drive.
    pub(crate) fn lose(&mut self) -> impl Iterator<Item = Command> {
        self.given.clear();
        self.to_drive.drain().map(|Reverse(lost)| lost.what)
    }

    /// The drive has ended a command. Its account has the delays as waiting time.
    pub(crate) fn ended(&mut self, outcome: Outcome) {
        let usual = self.shift_at(outcome.at);
        let mut arrives =
            outcome.at + usual + self.delay() + self.measured(MeasuredPath::to_program);
        if self.uniform() * 1e6 <= f64::from(self.jitter.stalls_ppm) {
            let longest = self.jitter.longest_stall.as_nanos() as f64;
            arrives += Duration::from_nanos((self.uniform() * longest) as u64);
        }
        let entry = self.given.iter().position(|(id, _)| *id == outcome.id);
        let given = entry.map(|entry| self.given.swap_remove(entry).1);
        let account = outcome.account.map(|account| Account {
            queue: match given {
                Some(given) => account.queue + arrives.since(given) - account.total(),
                None => account.queue,
            },
            ..account
        });
        self.count += 1;
        self.to_program.push(Reverse(Delayed {
            arrives,
            count: self.count,
            what: Outcome {
                at: arrives,
                account,
                ..outcome
            },
        }));
    }

    /// When the next outcome arrives at the program.
    pub(crate) fn next_outcome(&self) -> Option<Instant> {
        self.to_program.peek().map(|Reverse(next)| next.arrives)
    }

    /// The next outcome that has arrived at the program by `now`.
    pub(crate) fn delivered(&mut self, now: Instant) -> Option<Outcome> {
        self.next_outcome().filter(|arrives| *arrives <= now)?;
        self.to_program.pop().map(|Reverse(next)| next.what)
    }

    /// By how much the usual delay is longer at a time.
    fn shift_at(&mut self, now: Instant) -> Duration {
        let DelayShifts { most, every } = self.jitter.shifts;
        if every.is_zero() {
            return Duration::ZERO;
        }
        let change = now.as_nanos() / every.as_nanos() + 1;
        if self.shift.0 != change {
            let nanos = self.uniform() * most.as_nanos() as f64;
            self.shift = (change, Duration::from_nanos(nanos as u64));
        }
        self.shift.1
    }

    /// A number evenly drawn from (0, 1].
    fn uniform(&mut self) -> f64 {
        ((self.rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// A measured delay, drawn by the inverse of its distribution.
    fn measured(&mut self, delay: fn(MeasuredPath, f64) -> u64) -> Duration {
        match self.jitter.measured {
            None => Duration::ZERO,
            Some(path) => Duration::from_nanos(delay(path, self.uniform())),
        }
    }

    fn delay(&mut self) -> Duration {
        let exponential = -self.uniform().ln() * self.jitter.mean.as_nanos() as f64;
        self.jitter.floor + Duration::from_nanos(exponential as u64)
    }
}
