//! The head time of each command, and the time that an arrival at a random moment waits for the
//! command in service (Dimitrijevic et al., Virtual IO, section 3).
//!
//! ```text
//!              T1          T2                      T3
//!         |=========|=============|           |========|
//!   wait  \         \                         \
//!           \         \                         \            area under it: T * T / 2 each,
//!             \         \                         \          over all of the time
//!               \         \                         \
//!         0       0             0     nobody there: 0    0
//! ```

use block::{Duration, Instant};
use hdrhistogram::Histogram;
use serde::Serialize;

use super::{Span, histogram, mean, millis, steps};

/// Running sums over the commands of the drive.
#[derive(Clone, Debug)]
pub(super) struct Commands {
    count: u64,
    sum: u128,
    squares: u128,
    longest: Duration,
    /// From the earliest possible start of the first command to the end of the last.
    span: Option<Span>,
    /// Head times in nanoseconds.
    histogram: Histogram<u64>,
}

/// Statistics of head times. The *head time* of a command is from its earliest possible start (its
/// dispatch or the end of the previous command) to its end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CommandFigures {
    /// Number of commands that ended.
    pub commands: u64,
    /// The mean head time.
    pub mean_ms: f64,
    /// The median.
    pub p50_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// The fraction of the time in which the drive had a command.
    pub busy: f64,
    /// The fraction of commands that lasted 3 to 16 ms, as long as a seek and a rotation.
    pub share_3_to_16_ms: f64,
    /// The mean wait of an arrival at a random moment for the command in service: half the sum of
    /// the squares of the head times, divided by the whole time.
    pub expected_wait_ms: f64,
    /// The same for arrivals at a busy drive: divided by the sum of the head times.
    pub expected_wait_if_busy_ms: f64,
}

/// The shortest and the longest command that is as long as a seek and a rotation (Virtual IO,
/// section 4.1, Figure 11).
const POSITIONING: (Duration, Duration) = (Duration::from_millis(3), Duration::from_millis(16));

impl Commands {
    pub(super) fn new() -> Self {
        Commands {
            count: 0,
            sum: 0,
            squares: 0,
            longest: Duration::ZERO,
            span: None,
            histogram: histogram(),
        }
    }

    /// Adds a command.
    pub(super) fn record(&mut self, began: Instant, ended: Instant) {
        let head_time = ended.since(began);
        let nanos = u128::from(head_time.as_nanos());
        self.count += 1;
        self.sum += nanos;
        self.squares += nanos * nanos;
        self.longest = self.longest.max(head_time);
        self.histogram.saturating_record(head_time.as_nanos());
        self.span = Some(Span::around(self.span, began, ended));
    }

    /// The statistics, if requests came and went during `span`; `None` without commands.
    pub(super) fn figures(&self, span: Option<Span>) -> Option<CommandFigures> {
        let own = self.span?;
        let all = span.map_or(own, |span| Span::around(Some(span), own.first, own.last));
        let elapsed = u128::from(all.length().as_nanos()).max(1);
        let quantile = |q| {
            let value = u128::from(self.histogram.value_at_quantile(q));
            millis(value.min(u128::from(self.longest.as_nanos())))
        };
        // Half a nanosecond rounds up, as everywhere.
        let half_of_squares = |over: u128| millis((self.squares + over) / (2 * over));
        Some(CommandFigures {
            commands: self.count,
            mean_ms: mean(self.sum, self.count),
            p50_ms: quantile(0.5),
            p99_ms: quantile(0.99),
            max_ms: millis(u128::from(self.longest.as_nanos())),
            busy: to_a_millionth(self.sum as f64 / elapsed as f64),
            share_3_to_16_ms: self.share(POSITIONING),
            expected_wait_ms: half_of_squares(elapsed),
            expected_wait_if_busy_ms: half_of_squares(self.sum.max(1)),
        })
    }

    /// The distribution of head times.
    pub(super) fn distribution(&self) -> impl Iterator<Item = (Duration, u64)> {
        steps(&self.histogram)
    }

    /// The fraction of commands between two lengths.
    fn share(&self, (from, to): (Duration, Duration)) -> f64 {
        let (from, to) = (from.as_nanos(), to.as_nanos());
        let within = self.histogram.count_between(from, to);
        to_a_millionth(within as f64 / self.count.max(1) as f64)
    }
}

fn to_a_millionth(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}
