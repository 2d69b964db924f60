//! The statistics of a ledger. The same ledger gives the same bytes.

use block::Duration;
use serde::Serialize;

use crate::ledger::{
    BatchMeans, CommandFigures, DirectionSums, Ledger, Phases, RunTotals, Span, mean, millis,
};

/// The statistics of a run. Times are in milliseconds, to the nanosecond.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// From the first arrival to the last end, in virtual time.
    pub span_ms: f64,
    /// From the first arrival to the last one.
    pub arrivals_ms: f64,
    /// Half the width of the 95 % confidence interval of the mean response time, by batch means; `None` for fewer
    /// than 32 requests.
    pub mean_margin_ms: Option<f64>,
    /// The means of these batches, for comparison with another run.
    #[serde(skip)]
    pub batch_means: BatchMeans,
    /// Requests per second of the span.
    pub requests_per_second: f64,
    /// Millions of bytes per second of the span.
    pub megabytes_per_second: f64,
    /// Number of requests that waited outside because the engine was full. Their response time
    /// starts at their arrival.
    pub held_back: u64,
    /// Number of arrivals that were skipped because their blocks are not on the drive.
    pub skipped: u64,
    /// Number of times the engine overruled its policy.
    pub overruled: u64,
    /// Use of the head during the span.
    pub head: HeadShares,
    /// Statistics of head times; `None` without commands.
    pub commands: Option<CommandFigures>,
    /// All requests.
    pub all: RequestFigures,
    /// Reads alone.
    pub reads: RequestFigures,
    /// Writes alone.
    pub writes: RequestFigures,
    /// The statistics of each part of a mixed load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartFigures>,
}

/// The statistics of one part of a load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartFigures {
    /// The name of the part.
    pub name: String,
    /// Requests per second of the run's span.
    pub requests_per_second: f64,
    /// Millions of bytes per second of the run's span.
    pub megabytes_per_second: f64,
    /// The statistics of its requests.
    #[serde(flatten)]
    pub side: RequestFigures,
}

/// The statistics of the requests of one direction, or of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestFigures {
    /// Number of requests that ended.
    pub requests: u64,
    /// Number of requests that ended with an error.
    pub errors: u64,
    /// Bytes requested.
    pub bytes: u64,
    /// Response times; `None` without requests.
    pub response: Option<ResponseTimes>,
    /// Mean time of a request by phase; `None` without requests.
    pub account: Option<AccountMeans>,
    /// Results of the drive's buffer.
    pub hits: BufferHits,
}

/// Response times, from arrival to end. Percentiles are exact to three digits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ResponseTimes {
    /// The mean, from exact sums.
    pub mean_ms: f64,
    /// The standard deviation.
    pub deviation_ms: f64,
    /// The shortest.
    pub min_ms: f64,
    /// The median.
    pub p50_ms: f64,
    /// The 90th percentile.
    pub p90_ms: f64,
    /// The 95th percentile.
    pub p95_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The 99.9th percentile.
    pub p999_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// The mean time of a request by phase. The phases add up to the mean response time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AccountMeans {
    /// Before the dispatch of its command.
    pub waited_ms: f64,
    /// In the drive's queue.
    pub queue_ms: f64,
    /// Electronics of the drive.
    pub overhead_ms: f64,
    /// Arm movement, head switches and settling.
    pub seek_ms: f64,
    /// Rotational latency.
    pub rotation_ms: f64,
    /// Media transfer.
    pub transfer_ms: f64,
    /// Bus transfer that does not overlap with the media transfer.
    pub bus_ms: f64,
    /// Time that no phase accounts for; all of it for a drive without accounts.
    pub unclaimed_ms: f64,
}

/// Number of requests by the result of the drive's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BufferHits {
    /// All blocks were in the buffer.
    pub full: u64,
    /// The first blocks were in the buffer.
    pub partial: u64,
    /// No block was in the buffer.
    pub miss: u64,
}

/// The use of the head during the span, as fractions that add up to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HeadShares {
    /// Arm movement for requests.
    pub seek: f64,
    /// Rotational latency of requests.
    pub rotation: f64,
    /// Media transfer for requests.
    pub transfer: f64,
    /// The remaining time with a request present: electronics, bus, the drive's own look-ahead and
    /// write-back, and an idle actuator beside a busy one.
    pub other: f64,
    /// Time without any request, including the drive's own work in that time.
    pub idle: f64,
}

impl Ledger {
    /// The statistics so far, of a run with the totals `ran`.
    pub fn report(&self, ran: &RunTotals) -> RunReport {
        let all = self.reads.with(&self.writes);
        let span = self.span.map_or(Duration::ZERO, Span::length);
        let bytes = u128::from(all.blocks) * u128::from(self.block_bytes);
        let batch_means = self.batches.means();
        RunReport {
            span_ms: millis(u128::from(span.as_nanos())),
            arrivals_ms: self.span.map_or(0.0, |span| {
                self.last_arrival.since(span.first).as_millis_f64()
            }),
            mean_margin_ms: batch_means.margin_ms(),
            batch_means,
            requests_per_second: per_second(u128::from(all.requests), span),
            megabytes_per_second: per_second(bytes, span) / 1e6,
            held_back: ran.held_back,
            skipped: ran.skipped,
            overruled: ran.overruled,
            head: head_time(&all.phases, span, ran.idle, self.actuators),
            commands: self.commands.figures(self.span),
            all: self.side(&all),
            reads: self.side(&self.reads),
            writes: self.side(&self.writes),
            parts: self
                .parts
                .iter()
                .map(|(name, tally)| self.part(name, tally, span))
                .collect(),
        }
    }

    fn part(&self, name: &str, tally: &DirectionSums, span: Duration) -> PartFigures {
        let bytes = u128::from(tally.blocks) * u128::from(self.block_bytes);
        PartFigures {
            name: name.to_owned(),
            requests_per_second: per_second(u128::from(tally.requests), span),
            megabytes_per_second: per_second(bytes, span) / 1e6,
            side: self.side(tally),
        }
    }

    fn side(&self, tally: &DirectionSums) -> RequestFigures {
        RequestFigures {
            requests: tally.requests,
            errors: tally.errors,
            bytes: tally.blocks * u64::from(self.block_bytes),
            response: (tally.requests > 0).then(|| response(tally)),
            account: (tally.requests > 0).then(|| account(tally)),
            hits: BufferHits {
                full: tally.full_hits,
                partial: tally.partial_hits,
                miss: tally.misses,
            },
        }
    }
}

fn response(tally: &DirectionSums) -> ResponseTimes {
    let longest = tally.longest.as_nanos();
    let quantile = |q| {
        let value = tally.histogram.value_at_quantile(q);
        // A step of the histogram may reach beyond the longest response in it.
        millis(u128::from(value.min(longest)))
    };
    ResponseTimes {
        mean_ms: mean(tally.response, tally.requests),
        deviation_ms: deviation(tally),
        min_ms: millis(u128::from(tally.shortest.as_nanos())),
        p50_ms: quantile(0.5),
        p90_ms: quantile(0.9),
        p95_ms: quantile(0.95),
        p99_ms: quantile(0.99),
        p999_ms: quantile(0.999),
        max_ms: millis(u128::from(longest)),
    }
}

/// The standard deviation over all requests, to the nanosecond.
fn deviation(tally: &DirectionSums) -> f64 {
    let n = u128::from(tally.requests);
    let (mean, rest) = (tally.response / n, tally.response % n);
    // The squares around the whole part of the mean, so that nothing large is subtracted from
    // something large in floating point.
    let around = tally.squares - mean * (2 * tally.response - mean * n);
    let offset = rest as f64 / n as f64;
    let variance = around as f64 / n as f64 - offset * offset;
    millis(variance.max(0.0).sqrt().round() as u128)
}

fn account(tally: &DirectionSums) -> AccountMeans {
    let Phases {
        waited,
        queue,
        overhead,
        seek,
        rotation,
        transfer,
        bus,
    } = tally.phases;
    let of = |sum| mean(sum, tally.requests);
    AccountMeans {
        waited_ms: of(waited),
        queue_ms: of(queue),
        overhead_ms: of(overhead),
        seek_ms: of(seek),
        rotation_ms: of(rotation),
        transfer_ms: of(transfer),
        bus_ms: of(bus),
        unclaimed_ms: of(tally.response.saturating_sub(tally.phases.total())),
    }
}

fn head_time(phases: &Phases, span: Duration, idle: Duration, actuators: u8) -> HeadShares {
    let of_all = |time: Duration| u128::from(time.as_nanos()) * u128::from(actuators.max(1));
    let (span, idle) = (of_all(span), of_all(idle));
    let idle = idle.min(span.saturating_sub(phases.head()));
    let share = |part: u128| match span {
        0 => 0.0,
        // To a millionth: what the drive did in a second, to the microsecond.
        _ => (part as f64 / span as f64 * 1e6).round() / 1e6,
    };
    HeadShares {
        seek: share(phases.seek),
        rotation: share(phases.rotation),
        transfer: share(phases.transfer),
        other: share(span.saturating_sub(phases.head() + idle)),
        idle: share(idle),
    }
}

/// A rate, to a thousandth.
fn per_second(amount: u128, span: Duration) -> f64 {
    match span.as_nanos() {
        0 => 0.0,
        nanos => (amount as f64 / nanos as f64 * 1e12).round() / 1e3,
    }
}
