//! `headtime bench caches`: two cache levels with and without a coordinator, live and simulated
//! under the same load.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use lab::bench::caches::{
    Above, CacheFigures, CachesBench, CachesReport, CoordinatorFigures, GOAL, LiveFigures,
    LiveGain, SimulatedDisk, Verdict,
};
use server::cache_setting::Readmore;

use crate::bar::Bar;
use crate::output::{Exit, json, print};

/// The arguments of `headtime bench caches`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CachesBenchArgs {
    /// The coordinators of the lower level, separated by `;`. Each is compared with no coordination
    #[arg(
        long,
        value_name = "NAME;...",
        value_delimiter = ';',
        default_value = "pfc;adaptive"
    )]
    coordinator: Vec<String>,
    /// The prefetcher of both levels
    #[arg(long, value_name = "NAME", default_value = "linux-6")]
    prefetch: String,
    /// The replacement of both levels
    #[arg(long, value_name = "NAME", default_value = "lru")]
    replacement: String,
    /// The size of each reader's cache, in blocks of 4 KiB. Default: 5 % of the reader's footprint
    /// (Zhang et al.)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    upper: Option<u64>,
    /// The size of the shared cache, in blocks of 4 KiB. Default: twice that of a reader
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    lower: Option<u64>,
    /// The footprint of each reader, in blocks of 4 KiB
    #[arg(long, value_name = "N", default_value_t = 16_384, value_parser = clap::value_parser!(u64).range(64..=1 << 20))]
    footprint: u64,
    /// Requests of the mixed reader. The sequential reader issues three times as many
    #[arg(long, value_name = "N", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    requests: u32,
    /// Slow-down of the emulated drive: 4 is four times slower than real time
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = scale)]
    time_scale: f64,
    /// Live runs of each configuration, in turns
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// The seed of the mixed reader
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The emulated drive
    #[arg(long, value_name = "NAME", default_value = "seagate-cheetah-9lp")]
    drive: String,
    /// How readmore is fetched: with the request (`ordinary`), or from free blocks (`free`)
    #[arg(long, value_name = "ordinary|free", default_value = "ordinary", value_parser = readmore)]
    readmore: Readmore,
    /// What dispatches to the simulated disk: our engine, as in the service, or the elevator of the
    /// paper's model. With the elevator the live drive takes one command at a time, too
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = DiskWord::Engine)]
    simulated_disk: DiskWord,
    /// The engine's policy. Default: sptf-sw, as in a service; with the elevator c-look
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// What the upper level is live. With the page cache the readers are programs of their own, and
    /// their share of it is bounded by control groups (root)
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = AboveWord::Service)]
    above: AboveWord,
    /// Print the simulated figures only
    #[arg(long)]
    only_simulated: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench caches
  headtime bench caches --prefetch linux-2.4 --coordinator 'pfc;adaptive' --rounds 5
  headtime bench caches --readmore free --rounds 5
  headtime bench caches --above page-cache --footprint 131072 --rounds 10
  headtime bench caches --only-simulated --simulated-disk elevator --lower 82

A gain is the reduction of the mean response time by the coordinator, round by round, with its 95 %
confidence interval (Student's t). Goal: the live gain has the sign of the simulated one, and at
least half of its size.";

/// The names of [`SimulatedDisk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DiskWord {
    /// The one-way elevator of Zhang et al., one command at a time
    Elevator,
    /// Our engine, whose belief equals the truth
    Engine,
}

impl From<DiskWord> for SimulatedDisk {
    fn from(word: DiskWord) -> Self {
        match word {
            DiskWord::Elevator => SimulatedDisk::Elevator,
            DiskWord::Engine => SimulatedDisk::Engine,
        }
    }
}

/// The names of [`Above`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AboveWord {
    /// A service with a cache for each reader
    Service,
    /// The kernel's page cache over an ext4 on the volume (FUSE and a loop device)
    PageCache,
}

impl From<AboveWord> for Above {
    fn from(word: AboveWord) -> Self {
        match word {
            AboveWord::Service => Above::Service,
            AboveWord::PageCache => Above::PageCache,
        }
    }
}

fn scale(text: &str) -> Result<f64, String> {
    let scale: Option<f64> = text.parse().ok();
    let is_possible = |scale: &f64| (0.001..=1000.0).contains(scale);
    scale
        .filter(is_possible)
        .ok_or_else(|| format!("{text}: expected 0.001 to 1000"))
}

fn readmore(text: &str) -> Result<Readmore, String> {
    let mut all = Readmore::NAMES.into_iter();
    let found = all.find_map(|(name, readmore)| (name == text).then_some(readmore));
    found.ok_or_else(|| format!("{text}: expected ordinary or free"))
}

/// Runs the command.
///
/// # Errors
/// If a setting is invalid, or a service does not run.
pub fn run(arguments: &CachesBenchArgs) -> Result<(), Exit> {
    let bench = arguments.settings();
    // A separate thread draws the bar, so that the measured readers do not wait.
    let bar = Bar::new("{msg:9} {bar:40} {percent:>3} %  {eta} left").ticking();
    let report = bench.run(&bar)?;
    bar.finish();
    print(&match arguments.json {
        true => json(&report)?,
        false => table(&bench, &report),
    })
}

impl CachesBenchArgs {
    fn settings(&self) -> CachesBench {
        CachesBench {
            coordinator: self.coordinator.clone(),
            prefetch: self.prefetch.clone(),
            replacement: self.replacement.clone(),
            upper: self.upper,
            lower: self.lower,
            footprint: self.footprint,
            requests: self.requests,
            time_scale: self.time_scale,
            rounds: self.rounds,
            seed: self.seed,
            drive: self.drive.clone(),
            readmore: self.readmore,
            simulated_disk: self.simulated_disk.into(),
            policy: self.policy.clone(),
            above: self.above.into(),
            only_simulated: self.only_simulated,
        }
    }
}

/// The report as text.
fn table(settings: &CachesBench, report: &CachesReport) -> String {
    let (upper, lower) = settings.sizes();
    let policy = settings.policy();
    let disk = match settings.simulated_disk {
        SimulatedDisk::Engine => {
            format!("{policy}, in the simulator, too: our engine, belief = truth (in-firmware)")
        }
        SimulatedDisk::Elevator => {
            format!("{policy}; the simulator has a one-way elevator; one command at a time")
        }
    };
    let levels = match settings.above {
        Above::Service => "both levels",
        Above::PageCache => "both levels (live, L1 is the kernel's page cache)",
    };
    let mut text = format!(
        "{} at {levels}, L1 {upper} blocks for each reader, L2 {lower}, readmore {}\n\
         {}, {disk}\ntimes are the drive's\n\n\
         {:<14} {:>10} {:>12} {:>17} {:>13} {:>10} {:>9} {:>12} {:>10} {:>11}\n",
        settings.prefetch,
        settings.readmore.name(),
        settings.drive,
        "coordinator",
        "",
        "response ms",
        "rounds",
        "gain %",
        "L2 hits %",
        "ahead MB",
        "bypassed MB",
        "wished MB",
        "granted MB"
    );
    for figures in &report.cases {
        let gain = figures.simulated_gain_percent;
        let gain = gain.map_or_else(String::new, |gain| format!("{gain:.1}"));
        line(
            &mut text,
            (&figures.coordinator, "simulated"),
            &figures.simulated,
            ("", &gain),
        );
        if let Some(live) = &figures.live {
            let gain = live.gain.as_ref().map_or_else(String::new, shown);
            line(
                &mut text,
                ("", "live"),
                &live.middle,
                (&spread(live), &gain),
            );
        }
    }
    for figures in &report.cases {
        if let Some(verdict) = verdict(figures) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{}: {verdict}", figures.coordinator);
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn line(
    text: &mut String,
    (name, what): (&str, &str),
    of: &CacheFigures,
    (rounds, gain): (&str, &str),
) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{name:<14} {what:>10} {:>12.3} {rounds:>17} {gain:>13} {:>10.1} {:>9.1} {:>12.1} {:>10.1} {:>11.1}",
        of.mean_ms,
        of.lower_hits_percent,
        of.lower_ahead_mb,
        of.lower_bypassed_mb,
        of.lower_wished_mb,
        of.lower_granted_mb
    );
}

/// The range from the slowest to the fastest round.
fn spread(live: &LiveFigures) -> String {
    let fastest = live.rounds_ms.iter().copied().fold(f64::MAX, f64::min);
    let slowest = live.rounds_ms.iter().copied().fold(f64::MIN, f64::max);
    format!("{fastest:.3}-{slowest:.3}")
}

fn shown(gain: &LiveGain) -> String {
    match gain.uncertainty_percent {
        Some(uncertainty) => format!("{:.1} +- {uncertainty:.1}", gain.percent),
        None => format!("{:.1}", gain.percent),
    }
}

/// The verdict on a live gain.
fn verdict(figures: &CoordinatorFigures) -> Option<String> {
    let simulated = figures.simulated_gain_percent?;
    let live = figures.live.as_ref()?;
    let gain = live.gain.as_ref()?;
    let said = match gain.verdict {
        Verdict::Holds => "holds: it has the simulator's sign, and at least half of its size",
        Verdict::Misses => "misses: it has less than half of the size, or another sign",
        Verdict::TooWide => "the spread of rounds is too wide to tell",
        Verdict::NothingSimulated => {
            return Some(format!(
                "live gain {} %, simulated none: there is no sign to compare it with",
                shown(gain)
            ));
        }
        Verdict::OneRound => "one round does not tell: expected --rounds 3 or more",
    };
    Some(format!(
        "live gain {} %, simulated {simulated:.1}, so {:.2} of it (goal: {GOAL} or more): {said}",
        shown(gain),
        gain.percent / simulated
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_from_the_fastest_round_to_the_slowest() {
        let live = LiveFigures {
            middle: CacheFigures::default(),
            rounds_ms: vec![18.0, 27.0, 36.0],
            gain: None,
        };
        assert_eq!(spread(&live), "18.000-36.000");
    }
}
