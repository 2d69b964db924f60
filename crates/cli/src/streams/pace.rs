//! Reads or writes at a rate, and how long each of them took.
//!
//! ```text
//!   due       |         |         |         every so many bytes at the rate
//!   begun     |         |   |               later than due: this machine's own stall, counted apart
//!   done       |         |   |---------|    the delay, which is the disk's and the service's
//!   due and begun             |         |   behind: the one before took so long; this is counted apart, too
//! ```

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::output::micros;

/// One read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PacedAccess {
    offset: u64,
    due: Duration,
    /// How long after that the access before ended.
    behind: Duration,
    /// From the later of both to the begin.
    stall: Duration,
    delay: Duration,
}

/// Reads or writes at a constant rate.
#[derive(Debug)]
pub struct PacedRun {
    began: Instant,
    rate: u64,
    accesses: Vec<PacedAccess>,
    bytes: u64,
    /// The end of the last access.
    done: Duration,
}

/// The statistics of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PaceSummary {
    /// The number of accesses.
    pub count: usize,
    /// The bytes of all accesses.
    pub bytes: u64,
    /// The time from the first access to the end of the last, in seconds.
    pub seconds: f64,
    /// The number of accesses that took longer than `late_after_us`.
    pub late: usize,
    /// The limit of an access, in microseconds.
    pub late_after_us: u64,
    /// The median delay.
    pub p50_us: u64,
    /// The 99th percentile of the delay.
    pub p99_us: u64,
    /// The longest delay.
    pub longest_us: u64,
    /// The number of accesses that this machine began more than a millisecond late, although the one before had
    /// ended. The disk has no part in them.
    pub stalls: usize,
    /// The longest stall.
    pub longest_stall_us: u64,
    /// The number of accesses that were due more than a millisecond before the end of the one before.
    pub behind: usize,
    /// The longest such time.
    pub longest_behind_us: u64,
}

/// Smallest stall that counts. A choice: timers of an idle machine are more exact.
const STALL: Duration = Duration::from_millis(1);

impl PacedRun {
    /// Begins a run of `rate` bytes per second.
    pub fn begin(rate: u64) -> Self {
        PacedRun {
            began: Instant::now(),
            rate,
            accesses: Vec::new(),
            bytes: 0,
            done: Duration::ZERO,
        }
    }

    /// Waits until the next access is due, runs it, and records its delay. Returns the number of
    /// bytes.
    ///
    /// # Errors
    /// The error of the access.
    pub fn access<E>(
        &mut self,
        offset: u64,
        act: impl FnOnce() -> Result<usize, E>,
    ) -> Result<usize, E> {
        let due = self.due();
        let now = self.began.elapsed();
        if let Some(wait) = due.checked_sub(now) {
            thread::sleep(wait);
        }
        let begun = self.began.elapsed();
        let count = act()?;
        let done = self.began.elapsed();
        if count > 0 {
            self.accesses.push(PacedAccess {
                offset,
                due,
                behind: self.done.saturating_sub(due),
                stall: begun.saturating_sub(due.max(self.done)),
                delay: done - begun,
            });
            self.bytes += count as u64;
            self.done = done;
        }
        Ok(count)
    }

    /// The due time of the next access.
    fn due(&self) -> Duration {
        let nanos = u128::from(self.bytes) * 1_000_000_000 / u128::from(self.rate.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The statistics, where accesses longer than `late` are late.
    pub fn summary(&self, late: Duration) -> PaceSummary {
        let mut delays: Vec<Duration> = self.accesses.iter().map(|it| it.delay).collect();
        delays.sort_unstable();
        let at = |share: f64| {
            let place = (delays.len() as f64 * share).ceil() as usize;
            let delay = delays.get(place.max(1) - 1).copied().unwrap_or_default();
            delay.as_micros() as u64
        };
        let stalls = self.accesses.iter().filter(|it| it.stall > STALL);
        let longest_stall = self.accesses.iter().map(|it| it.stall).max();
        let last = self.accesses.last();
        let end = last.map(|it| it.due + it.behind + it.stall + it.delay);
        let behind = self.accesses.iter().filter(|it| it.behind > STALL);
        let longest_behind = self.accesses.iter().map(|it| it.behind).max();
        PaceSummary {
            count: delays.len(),
            bytes: self.bytes,
            seconds: end.unwrap_or_default().as_secs_f64(),
            late: delays.iter().filter(|&&delay| delay > late).count(),
            late_after_us: late.as_micros() as u64,
            p50_us: at(0.5),
            p99_us: at(0.99),
            longest_us: at(1.0),
            stalls: stalls.count(),
            longest_stall_us: longest_stall.unwrap_or_default().as_micros() as u64,
            behind: behind.count(),
            longest_behind_us: longest_behind.unwrap_or_default().as_micros() as u64,
        }
    }

    /// The accesses as CSV.
    pub fn log(&self) -> String {
        let mut text = String::from("offset,due_us,behind_us,stall_us,delay_us\n");
        for it in &self.accesses {
            let times = [it.due, it.behind, it.stall, it.delay];
            let [due, behind, stall, delay] = times.map(|time| time.as_micros());
            // Writing to a text never fails.
            let _ = writeln!(text, "{},{due},{behind},{stall},{delay}", it.offset);
        }
        text
    }
}

impl PaceSummary {
    /// Whether the rate was kept without a guarantee, in a sentence.
    pub fn verdict(&self) -> String {
        match self.behind {
            0 => String::from("No guarantee was asked for. The rate was kept.\n"),
            _ => format!(
                "No guarantee was asked for. The rate was not kept: up to {} behind.\n",
                micros(self.longest_behind_us as f64)
            ),
        }
    }

    /// The statistics as text; `what` names the accesses.
    pub fn describe(&self, what: &str) -> String {
        let ms = |us: u64| us as f64 / 1e3;
        format!(
            "{} {what}, {} bytes in {:.1} s\n  \
             {} took longer than {:.1} ms\n  \
             p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms\n  \
             {} began late because this machine was busy, the longest by {:.2} ms\n  \
             {} began late because the one before took so long, the longest by {:.2} ms\n",
            self.count,
            self.bytes,
            self.seconds,
            self.late,
            ms(self.late_after_us),
            ms(self.p50_us),
            ms(self.p99_us),
            ms(self.longest_us),
            self.stalls,
            ms(self.longest_stall_us),
            self.behind,
            ms(self.longest_behind_us),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pace of which everything is known.
    fn known(delays_us: &[u64]) -> PacedRun {
        let access = |(index, &delay): (usize, &u64)| PacedAccess {
            offset: index as u64 * 10,
            due: Duration::from_millis(index as u64),
            behind: Duration::from_micros(if index == 2 { 3000 } else { 0 }),
            stall: Duration::from_micros(if index == 1 { 1500 } else { 20 }),
            delay: Duration::from_micros(delay),
        };
        PacedRun {
            began: Instant::now(),
            rate: 10_000,
            accesses: delays_us.iter().enumerate().map(access).collect(),
            bytes: delays_us.len() as u64 * 10,
            done: Duration::ZERO,
        }
    }

    #[test]
    fn a_summary_counts_late_ones_and_the_machines_stalls_apart() {
        let mut delays = vec![100; 98];
        delays.extend([9_000, 20_000]);
        let summary = known(&delays).summary(Duration::from_millis(8));
        assert_eq!((summary.count, summary.late, summary.stalls), (100, 2, 1));
        assert_eq!((summary.p50_us, summary.p99_us), (100, 9_000));
        assert_eq!(
            (summary.longest_us, summary.longest_stall_us),
            (20_000, 1_500)
        );
        assert_eq!((summary.behind, summary.longest_behind_us), (1, 3_000));
        assert!(summary.verdict().contains("not kept: up to 3.0 ms behind"));
        let kept = known(&[100, 100]).summary(STALL).verdict();
        assert!(kept.ends_with("The rate was kept.\n"), "{kept}");
        assert_eq!(
            known(&[]).summary(STALL),
            PaceSummary {
                late_after_us: 1000,
                ..PaceSummary::default()
            }
        );
    }

    #[test]
    fn who_waits_for_the_one_before_does_not_blame_the_machine() {
        let mut pace = PacedRun::begin(1_000_000_000);
        pace.done = Duration::from_secs(3600);
        let count = pace.access(0, || Ok::<_, ()>(1));
        assert_eq!(count, Ok(1));
        let summary = pace.summary(STALL);
        assert_eq!((summary.behind, summary.stalls), (1, 0));
        assert_eq!(summary.longest_behind_us, 3_600_000_000);
    }

    #[test]
    fn what_is_due_follows_from_the_bytes_before() {
        let pace = known(&[1; 100]);
        assert_eq!(pace.due(), Duration::from_millis(100));
        assert_eq!(pace.log().lines().nth(2), Some("10,1000,0,1500,1"));
    }
}
