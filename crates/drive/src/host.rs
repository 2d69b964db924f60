//! A host between the profiler and a virtual drive: commands and outcomes arrive late.
//!
//! ```text
//!   profiler --submit--> [delay] --> drive --> [delay] --outcome--> profiler
//! ```
//!
//! A host only ever delays: queues of the kernel, wakeups of threads, a network. The drive keeps its
//! own time; the profiler sees the sum.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use block::{Command, Duration, Instant, Outcome, Refused};
use drive::VirtualDrive;
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use super::RehearsalDrive;

/// How long a host delays commands and outcomes.
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
}

/// A virtual drive behind a host with jitter.
#[derive(Debug)]
pub struct DelayedDrive {
    drive: VirtualDrive,
    jitter: HostJitter,
    rng: Pcg64Mcg,
    /// Numbers commands and outcomes, so that those of one instant keep their order.
    count: u64,
    to_drive: BinaryHeap<Reverse<Delayed<Command>>>,
    to_host: BinaryHeap<Reverse<Delayed<Outcome>>>,
}

/// Something on its way, ordered by arrival.
#[derive(Debug)]
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

impl DelayedDrive {
    /// Puts a host with this jitter in front of a drive; `seed` decides when it delays by how much.
    pub fn new(drive: VirtualDrive, jitter: HostJitter, seed: u64) -> Self {
        DelayedDrive {
            drive,
            jitter,
            rng: Pcg64Mcg::seed_from_u64(seed),
            count: 0,
            to_drive: BinaryHeap::new(),
            to_host: BinaryHeap::new(),
        }
    }

    /// A number evenly drawn from (0, 1].
    fn uniform(&mut self) -> f64 {
        ((self.rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn delay(&mut self) -> Duration {
        let exponential = -self.uniform().ln() * self.jitter.mean.as_nanos() as f64;
        self.jitter.floor + Duration::from_nanos(exponential as u64)
    }

    /// Lets the drive run up to `now`, and takes the outcomes that it has.
    ///
    /// # Panics
    /// If the drive refuses a command.
    fn advance(&mut self, now: Instant) {
        loop {
            let arrives = self.to_drive.peek().map(|Reverse(next)| next.arrives);
            let next = [arrives, self.drive.next_wakeup()]
                .into_iter()
                .flatten()
                .min();
            let Some(at) = next.filter(|at| *at <= now) else {
                return;
            };
            if arrives.is_some_and(|arrives| arrives <= at)
                && let Some(Reverse(command)) = self.to_drive.pop()
            {
                let taken = self.drive.submit(at, command.what);
                taken.expect("a probe of the drive's own blocks");
            }
            while let Some(outcome) = self.drive.poll(at) {
                let mut arrives = outcome.at + self.delay();
                if self.uniform() * 1e6 <= f64::from(self.jitter.stalls_ppm) {
                    let longest = self.jitter.longest_stall.as_nanos() as f64;
                    arrives += Duration::from_nanos((self.uniform() * longest) as u64);
                }
                self.count += 1;
                self.to_host.push(Reverse(Delayed {
                    arrives,
                    count: self.count,
                    what: Outcome {
                        at: arrives,
                        ..outcome
                    },
                }));
            }
        }
    }
}

impl RehearsalDrive for DelayedDrive {
    fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        let (arrives, count) = (now + self.delay(), self.count + 1);
        self.count = count;
        self.to_drive.push(Reverse(Delayed {
            arrives,
            count,
            what: command,
        }));
        Ok(())
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        self.advance(now);
        self.to_host
            .peek()
            .filter(|Reverse(next)| next.arrives <= now)?;
        self.to_host.pop().map(|Reverse(next)| next.what)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let to_drive = self.to_drive.peek().map(|Reverse(next)| next.arrives);
        let to_host = self.to_host.peek().map(|Reverse(next)| next.arrives);
        let all = [to_drive, to_host, self.drive.next_wakeup()];
        all.into_iter().flatten().min()
    }
}
