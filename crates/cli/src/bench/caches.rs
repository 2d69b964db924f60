//! `headtime bench caches`: caches in two levels, live, with and without the coordinator between them,
//! beside what the simulator says of the same load.
//!
//! ```text
//!   sequential reader -> L1 (headtime serve, a cache) -.
//!                                                       +-> L2 (headtime serve, coordinator, cache)
//!   mixed reader      -> L1 (headtime serve, a cache) -'         `-> emulated drive
//! ```
//!
//! Each reader waits for its answer and asks at once for what is next. Both live and in the simulator
//! they ask for the same blocks in the same order. The messages between the levels cost the simulator
//! nothing, and the service what they do on this machine. In the simulator our engine stands before the
//! disk, too, or the elevator of the paper's model: then both drives take one command at a time. All
//! times are the drive's.

use std::time::Duration;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use server::volume::cached::Readmore;

use crate::output::{Exit, print};
use told::Case;

mod live;
mod readers;
mod simulated;
mod told;

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The coordinators in front of the lower level; each is compared with none
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
    /// The cache of each reader, in blocks of 4 KiB. Without it, 5 % of what it reads of (Zhang et al.)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    upper: Option<u64>,
    /// The cache that they share. Without it, twice that of a reader
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    lower: Option<u64>,
    /// Blocks that each reader reads of
    #[arg(long, value_name = "N", default_value_t = 16_384, value_parser = clap::value_parser!(u64).range(64..=1 << 20))]
    footprint: u64,
    /// Requests of the mixed reader; the sequential one has three times as many
    #[arg(long, value_name = "N", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    requests: u32,
    /// How many times as slow as the drive everything is
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = scale)]
    time_scale: f64,
    /// How often each is run live, one after the other in turns
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// The dice of the mixed reader
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The emulated drive
    #[arg(long, value_name = "NAME", default_value = "seagate-cheetah-9lp")]
    drive: String,
    /// What becomes of what a coordinator reads more: fetched with the request, or read on free blocks
    #[arg(long, value_name = "ordinary|free", default_value = "ordinary", value_parser = readmore)]
    readmore: Readmore,
    /// What stands before the simulated disk: our engine, as in the service; or the elevator of the paper's
    /// model, and then the live drive takes one command at a time, too
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = SimulatedDisk::Engine)]
    simulated_disk: SimulatedDisk,
    /// The policy of the engine. Without it, sptf-sw as in a service; beside the elevator c-look, whose order
    /// that is
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Only what the simulator says
    #[arg(long)]
    only_simulated: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench caches
  headtime bench caches --prefetch linux-2.4 --coordinator 'pfc;adaptive' --rounds 5
  headtime bench caches --readmore free --rounds 5
  headtime bench caches --only-simulated --simulated-disk elevator --lower 82

The gain is by how much shorter the mean response is than without a coordinator, round by round; beside it
stands by how much the mean of so many rounds may be off (Student's t, 95 %). The goal: live it has the
simulator's sign, and at least half of its size.";

/// What stands before the simulated disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum SimulatedDisk {
    /// The one-way elevator of Zhang et al., one command at a time
    Elevator,
    /// Our engine, which believes of the drive what is true
    Engine,
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

/// The coordinator with which the others are compared.
const NONE: &str = "none";

impl Arguments {
    /// Blocks of each reader's cache, and of the one that they share (Zhang et al., 4.2: 5 %; twice that
    /// is the largest of theirs).
    fn sizes(&self) -> (u64, u64) {
        let upper = self.upper.unwrap_or(self.footprint / 20);
        (upper, self.lower.unwrap_or(2 * upper))
    }

    fn policy(&self) -> &str {
        match (&self.policy, self.simulated_disk) {
            (Some(policy), _) => policy,
            (None, SimulatedDisk::Engine) => "sptf-sw",
            (None, SimulatedDisk::Elevator) => "c-look",
        }
    }

    /// What coordinators are run: none, and those that were named.
    fn coordinators(&self) -> Vec<&str> {
        let named = self.coordinator.iter().map(String::as_str);
        std::iter::once(NONE).chain(named).collect()
    }

    fn rounds(&self) -> u32 {
        match self.only_simulated {
            true => 0,
            false => self.rounds,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// If a setting cannot be, or a service does not run.
pub fn run(arguments: &Arguments) -> Result<(), Exit> {
    if arguments.readmore == Readmore::Free && arguments.simulated_disk == SimulatedDisk::Elevator {
        return Err(Exit::input(
            "--readmore free with --simulated-disk elevator: expected engine, the elevator has no free blocks",
        ));
    }
    let coordinators = arguments.coordinators();
    let bar = bar(arguments, coordinators.len());
    let mut cases = Vec::with_capacity(coordinators.len());
    for coordinator in &coordinators {
        let simulated = simulated::simulated(arguments, coordinator, &bar)?;
        cases.push(Case::new(coordinator, simulated));
    }
    bar.set_prefix("live");
    for which in turns(arguments.rounds(), coordinators.len()) {
        let round = live::once(arguments, coordinators[which], &bar)?;
        cases[which].rounds.push(round);
    }
    bar.finish_and_clear();
    let told = told::compare(cases);
    print(&match arguments.json {
        true => told::json(arguments, &told)?,
        false => told::table(arguments, &told),
    })
}

/// Whose turn it is, time after time: all of a round before the next one, so that what the machine does
/// meanwhile meets all of them.
fn turns(rounds: u32, coordinators: usize) -> impl Iterator<Item = usize> {
    (0..rounds).flat_map(move |_| 0..coordinators)
}

/// One that goes by requests. A thread of its own draws it: whoever is measured does not wait.
fn bar(arguments: &Arguments, coordinators: usize) -> ProgressBar {
    let runs = coordinators as u64 * u64::from(1 + arguments.rounds());
    let all = readers::Reader::both(arguments).map(|reader| u64::from(reader.left));
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let bar = ProgressBar::with_draw_target(Some(runs * all.iter().sum::<u64>()), target);
    let template = "{prefix:9} {bar:40} {percent:>3} %  {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
    }
    bar.set_prefix("simulated");
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_compared_takes_turns() {
        let all: Vec<usize> = turns(2, 3).collect();
        assert_eq!(all, [0, 1, 2, 0, 1, 2]);
        assert_eq!(turns(0, 3).count(), 0);
    }
}
