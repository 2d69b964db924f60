//! `headtime bench streams`: as many streams as are granted, beside a greedy load and a scan of the
//! whole disk, in virtual time: what was late, and what others got.

use std::fmt::Write as _;
use std::sync::Arc;

use block::{Duration, Instant};
use clap::Args;
use drive::Profile;
use lab::named::policy;
use scheduler::policy::{ALL, NamedPolicy};
use serde::Serialize;
use simulator::streaming::trial::{Asked, Laid, Scanning, Trial, Tried, Truth};

use crate::output::{Exit, print};

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The drive: a name from `headtime drives`, or a profile file
    #[arg(long, value_name = "NAME|FILE", default_value = "modern-20tb")]
    drive: String,
    /// Virtual hours of each run
    #[arg(long, value_name = "H", default_value_t = 24.0)]
    hours: f64,
    /// Virtual hours of the same load without streams, of which the responses stand beside
    #[arg(long, value_name = "H", default_value_t = 0.2)]
    alone_hours: f64,
    /// The policies, or `all`
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "all"
    )]
    policy: Vec<String>,
    /// Memory of each stream beyond its application's own part, in megabytes
    #[arg(
        long,
        value_name = "MB,...",
        value_delimiter = ',',
        default_value = "2,4,8"
    )]
    memory: Vec<f64>,
    /// Shares of head time that are promised to the load
    #[arg(
        long,
        value_name = "SHARE,...",
        value_delimiter = ',',
        default_value = "0,0.3,0.5"
    )]
    promised: Vec<f64>,
    /// Megabytes a second of each stream
    #[arg(long, value_name = "MB", default_value_t = 1.0)]
    rate: f64,
    /// Recorders; the others are readers
    #[arg(long, value_name = "N", default_value_t = 0)]
    recorders: usize,
    /// Readers, if not as many as are granted
    #[arg(long, value_name = "N")]
    readers: Option<usize>,
    /// Tasks of the load: each always has a request waiting
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    tasks: u32,
    /// Kilobytes of each of their requests
    #[arg(long, value_name = "KIB", default_value_t = 128, value_parser = clap::value_parser!(u64).range(4..))]
    kib: u64,
    /// The share of them that read
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    read_fraction: f64,
    /// The share of its memory that an application does not have: to see what is late then
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    missing: f64,
    /// No noise but that of seeks within their skew, no recalibration, no retries
    #[arg(long)]
    quiet: bool,
    /// Files lie over the whole zone where sweeps take the longest, and all are played at once
    #[arg(long)]
    hostile: bool,
    /// The seed of the load, of the noise, and of where files begin
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print a line of JSON for each run
    #[arg(long)]
    json: bool,
}

/// One line of the result.
#[derive(Debug, Serialize)]
struct Line {
    policy: String,
    memory_mb: f64,
    promised: f64,
    hours: f64,
    streams: usize,
    accesses: u64,
    /// Those that did not find their memory.
    waited: u64,
    longest_wait_ms: f64,
    /// Batches.
    batches: u64,
    /// Those that came after their deadline.
    late: u64,
    latest_ms: f64,
    /// Guarantees that lapsed.
    lapsed: u64,
    /// Of the head's time, what streams took.
    head_share: f64,
    /// The load's requests in a second.
    load_per_second: f64,
    load_p99_ms: f64,
    /// The same without streams.
    alone_per_second: f64,
    alone_p99_ms: f64,
    /// Of the scan, in gaps.
    scan_mb_per_second: f64,
}

/// Runs the command.
///
/// # Errors
/// If the arguments make no sense, the streams that were asked for are refused, or the output cannot
/// be written.
pub fn run(arguments: &Arguments) -> Result<(), Exit> {
    let drive = Arc::new(lab::named::drive(&arguments.drive)?);
    let policies = arguments.policies()?;
    arguments.check()?;
    if !arguments.json {
        print(&format!("{}\n{}", arguments.about(&drive), heading()))?;
    }
    for policy in policies {
        let alone = arguments.alone(policy, &drive).play();
        let alone = alone.map_err(Exit::failed)?;
        for &memory_mb in &arguments.memory {
            for &promised in &arguments.promised {
                let trial = arguments.trial(policy, &drive, memory_mb, promised);
                let tried = trial.play().map_err(Exit::input)?;
                let line = Line {
                    policy: policy.name(),
                    memory_mb,
                    promised,
                    ..arguments.line(&tried, &alone, drive.block_bytes)
                };
                print(&arguments.text(&line)?)?;
            }
        }
    }
    Ok(())
}

impl Arguments {
    fn policies(&self) -> Result<Vec<NamedPolicy>, Exit> {
        match self.policy.as_slice() {
            [all] if all == "all" => Ok(ALL.iter().map(NamedPolicy::from).collect()),
            names => names
                .iter()
                .map(|name| policy(name).map_err(Exit::from))
                .collect(),
        }
    }

    fn check(&self) -> Result<(), Exit> {
        let shares = self
            .promised
            .iter()
            .chain([&self.missing, &self.read_fraction]);
        for share in shares {
            if !(0.0..=1.0).contains(share) {
                let problem = format!("a share of {share}: expected 0 to 1");
                return Err(Exit::input(problem));
            }
        }
        let amounts = self.memory.iter().chain([&self.rate]);
        for amount in amounts {
            if !(1e-6..=1e6).contains(amount) {
                let problem = format!("{amount} MB: expected a millionth to a million");
                return Err(Exit::input(problem));
            }
        }
        for hours in [self.hours, self.alone_hours] {
            if !(LEAST_HOURS..=MOST_HOURS).contains(&hours) {
                let problem =
                    format!("{hours} hours: expected {LEAST_HOURS} to {MOST_HOURS}, a year");
                return Err(Exit::input(problem));
            }
        }
        Ok(())
    }

    /// The load alone.
    fn alone(&self, policy: NamedPolicy, drive: &Arc<Profile>) -> Trial {
        Trial {
            belief: Arc::clone(drive),
            drive: Arc::clone(drive),
            truth: match self.quiet {
                true => Truth::quiet(),
                false => Truth::noisy(),
            },
            laid: match self.hostile {
                true => Laid::Hostile,
                false => Laid::Anywhere,
            },
            policy,
            preemption: None,
            streams: None,
            tasks: self.tasks,
            read_fraction: self.read_fraction,
            bytes: self.kib * 1024,
            scan: Scanning::Whole,
            from: Instant::ZERO,
            until: after(self.alone_hours),
            seed: self.seed,
        }
    }

    fn trial(
        &self,
        policy: NamedPolicy,
        drive: &Arc<Profile>,
        memory_mb: f64,
        promised: f64,
    ) -> Trial {
        let memory = (memory_mb * 1e6) as u64;
        Trial {
            streams: Some(Asked {
                rate: (self.rate * 1e6) as u64,
                memory,
                readers: self.readers,
                recorders: self.recorders,
                missing: (memory as f64 * self.missing) as u64,
                foreground_permille: (promised * 1e3).round() as u32,
            }),
            from: Instant::ZERO + FILLING,
            until: after(self.hours),
            ..self.alone(policy, drive)
        }
    }

    fn line(&self, tried: &Tried, alone: &Tried, block_bytes: u32) -> Line {
        let kept = &tried.kept;
        let [load_per_second, load_p99_ms] = figures(tried);
        let [alone_per_second, alone_p99_ms] = figures(alone);
        let scan = tried.played.scan.as_ref();
        Line {
            policy: String::new(),
            memory_mb: 0.0,
            promised: 0.0,
            hours: self.hours,
            streams: kept.streams,
            accesses: kept.accesses,
            waited: kept.waited + kept.refused + kept.failed + kept.elsewhere,
            longest_wait_ms: millis(kept.longest_wait),
            batches: kept.batches,
            late: kept.late,
            latest_ms: millis(kept.latest),
            lapsed: kept.lapsed,
            head_share: kept.head_share(),
            load_per_second,
            load_p99_ms,
            alone_per_second,
            alone_p99_ms,
            scan_mb_per_second: scan.map_or(0.0, |scan| scan.rates(100, block_bytes).iter().sum()),
        }
    }

    /// What the table is of.
    fn about(&self, drive: &Profile) -> String {
        let noise = match self.quiet {
            true => "seek noise of 6 us",
            false => "seek noise of 60 us, recalibrations, retries, all within what is promised",
        };
        format!(
            "{}, innermost zone; streams of {} MB/s for {} h, as many as are granted with so much \
             memory\nbeyond the application's own part; {} greedy tasks of {} KiB anywhere, {:.0} % \
             reads, and a scan of the\nwhole disk in gaps; {noise}; belief = truth but for that\n",
            drive.name,
            self.rate,
            self.hours,
            self.tasks,
            self.kib,
            self.read_fraction * 100.0,
        )
    }

    fn text(&self, line: &Line) -> Result<String, Exit> {
        if self.json {
            let json = serde_json::to_string(line).map_err(Exit::failed)?;
            return Ok(format!("{json}\n"));
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<14} {:>4} {:>4} {:>7} {:>12} {:>7} {:>9} {:>6} {:>6} {:>6.3} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>6.2}",
            line.policy,
            line.memory_mb,
            line.promised,
            line.streams,
            line.accesses,
            line.waited,
            line.batches,
            line.late,
            line.lapsed,
            line.head_share,
            line.load_per_second,
            line.alone_per_second,
            line.load_p99_ms,
            line.alone_p99_ms,
            line.scan_mb_per_second,
        );
        Ok(text)
    }
}

fn heading() -> String {
    format!(
        "{:<14} {:>4} {:>4} {:>7} {:>12} {:>7} {:>9} {:>6} {:>6} {:>6} {:>8} {:>8} {:>8} {:>8} {:>6}\n\
         {:<14} {:>4} {:>4} {:>7} {:>12} {:>7} {:>9} {:>6} {:>6} {:>6} {:>8} {:>8} {:>8} {:>8} {:>6}\n",
        "policy",
        "MB",
        "f",
        "streams",
        "accesses",
        "waited",
        "batches",
        "late",
        "lapsed",
        "head",
        "load/s",
        "alone/s",
        "p99 ms",
        "alone",
        "scan",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "share",
        "",
        "",
        "",
        "",
        "MB/s",
    )
}

/// Requests in a second, and the 99th percentile of their responses.
fn figures(tried: &Tried) -> [f64; 2] {
    let report = tried.played.ledger.report(&tried.played.ran);
    let p99 = report.all.response.map_or(0.0, |response| response.p99_ms);
    [report.requests_per_second, p99]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn after(hours: f64) -> Instant {
    Instant::ZERO + Duration::from_nanos((hours * 3.6e12) as u64)
}

const EXAMPLES: &str = "Examples:
  headtime bench streams --hours 1 --policy sptf
  headtime bench streams --memory 2 --promised 0.3 --rate 0.5 --recorders 64 --readers 8 --quiet
  headtime bench streams --hours 1 --policy fcfs --memory 2 --promised 0 --missing 0.2 --quiet

It ends with what streams cost: responses of the load with streams beside those of the load alone.";

/// So long nobody competes with the filling of buffers. A choice.
const FILLING: Duration = Duration::from_secs(60);

/// Two minutes: buffers have to be full before something is seen. A choice.
const LEAST_HOURS: f64 = 0.03;
const MOST_HOURS: f64 = 8_766.0;
