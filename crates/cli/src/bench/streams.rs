//! `headtime bench streams`: the largest number of granted streams, beside a greedy load and a
//! scan, in virtual time.

use std::fmt::Write as _;

use clap::Args;
use document::quantity::Unit;
use drive::Profile;
use lab::bench::streams::{StreamsBench, StreamsFigures};

use crate::output::{Exit, print};
use crate::settings::units::{in_unit, part, whole_in};

/// The arguments of `headtime bench streams`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct StreamsBenchArgs {
    /// The drive: a name from `headtime drives`, or a profile file
    #[arg(long, value_name = "NAME|FILE", default_value = "modern-20tb")]
    drive: String,
    /// Virtual hours of each run
    #[arg(long, value_name = "H", default_value_t = 24.0, value_parser = in_unit(Unit::Hours))]
    hours: f64,
    /// Virtual hours of the baseline: the same load without streams
    #[arg(long, value_name = "H", default_value_t = 0.2, value_parser = in_unit(Unit::Hours))]
    alone_hours: f64,
    /// The policies, separated by commas, or `all`
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "all"
    )]
    policy: Vec<String>,
    /// Memory of each stream beyond the application's own buffer, in megabytes
    #[arg(
        long,
        value_name = "MB,...",
        value_parser = in_unit(Unit::Megabytes),
        value_delimiter = ',',
        default_value = "2,4,8"
    )]
    memory: Vec<f64>,
    /// Shares of head time that admission reserves for the load
    #[arg(
        long,
        value_name = "SHARE,...",
        value_parser = part,
        value_delimiter = ',',
        default_value = "0,0.3,0.5"
    )]
    promised: Vec<f64>,
    /// Rate of each stream, in megabytes per second
    #[arg(long, value_name = "MB_S", default_value_t = 1.0, value_parser = in_unit(Unit::MegabytesPerSecond))]
    rate: f64,
    /// Number of recorders. All other streams are readers
    #[arg(long, value_name = "N", default_value_t = 0)]
    recorders: usize,
    /// Number of readers. Default: as many as admission grants
    #[arg(long, value_name = "N")]
    readers: Option<usize>,
    /// Tasks of the load. Each always has one request outstanding
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    tasks: u32,
    /// Size of each of the load's requests, in KiB
    #[arg(long, value_name = "KIB", default_value_t = 128, value_parser = whole_in::<u64>(Unit::Kibibytes, 4..=MOST_KIB))]
    kib: u64,
    /// Share of reads among the load's requests
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = part)]
    read_fraction: f64,
    /// Withhold this share of each application's buffer, to see what is late then
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = part)]
    missing: f64,
    /// No imperfections but seek noise within the skew: no recalibration, no retries
    #[arg(long)]
    calm: bool,
    /// The worst case: files over the zone with the longest sweeps, all played at once
    #[arg(long)]
    hostile: bool,
    /// The seed of the load, of the noise and of the files' positions
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one line of JSON for each run
    #[arg(long)]
    json: bool,
}

/// A request of a gibibyte: no larger one makes sense. A choice.
const MOST_KIB: u64 = 1 << 20;

/// Runs the command.
///
/// # Errors
/// If the arguments contradict each other, admission refuses the requested streams, or the output
/// cannot be written.
pub fn run(arguments: &StreamsBenchArgs) -> Result<(), Exit> {
    let bench = arguments.settings();
    let drive = bench.drive()?;
    bench.policies()?;
    bench.check()?;
    if !arguments.json {
        print(&format!("{}\n{}", arguments.about(&drive), heading()))?;
    }
    bench.run(|figures| print(&arguments.text(figures)?))
}

impl StreamsBenchArgs {
    fn settings(&self) -> StreamsBench {
        StreamsBench {
            drive: self.drive.clone(),
            hours: self.hours,
            alone_hours: self.alone_hours,
            policy: self.policy.clone(),
            memory: self.memory.clone(),
            promised: self.promised.clone(),
            rate: self.rate,
            recorders: self.recorders,
            readers: self.readers,
            tasks: self.tasks,
            kib: self.kib,
            read_fraction: self.read_fraction,
            missing: self.missing,
            quiet: self.calm,
            hostile: self.hostile,
            seed: self.seed,
        }
    }

    /// The conditions of the table.
    fn about(&self, drive: &Profile) -> String {
        let noise = match self.calm {
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

    fn text(&self, line: &StreamsFigures) -> Result<String, Exit> {
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

const EXAMPLES: &str = "Examples:
  headtime bench streams --hours 1 --policy sptf
  headtime bench streams --memory 2MB --promised 30% --rate 500kB/s --recorders 64 --readers 8 --calm
  headtime bench streams --hours 1 --policy fcfs --memory 2 --promised 0 --missing 0.2 --calm

The last table compares the load's response times with and without streams.";
