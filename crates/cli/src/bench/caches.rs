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
//! nothing, and the service what they do on this machine. Both drives take one command at a time. All
//! times are the drive's.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use block::Direction;
use cache::Interval;
use clap::Args;
use serde::Serialize;
use server::nbd::request::Asked;
use server::operation::Ask;
use server::status::Cache;
use simulator::caching::{
    Arrival, BadSetup, Level, Link, Load, Lower, Pace, Scheduler, Setup, System, run as simulate,
};

use super::rig::{Service, median};
use crate::demo::client::Client;
use crate::output::{Failure, print};

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The coordinators in front of the lower level; each is compared with none
    #[arg(
        long,
        value_name = "NAME;...",
        value_delimiter = ';',
        default_value = "pfc;ours"
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
    /// How often each is run live
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// The dice of the mixed reader
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The emulated drive
    #[arg(long, value_name = "NAME", default_value = "seagate-cheetah-9lp")]
    drive: String,
    /// The policy of the emulated drive. The simulator's order is c-look's, one command at a time
    #[arg(long, value_name = "NAME", default_value = "c-look")]
    policy: String,
    /// Only what the simulator says
    #[arg(long)]
    only_simulated: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench caches
  headtime bench caches --prefetch linux-2.4 --coordinator 'pfc;ours' --rounds 3
  headtime bench caches --only-simulated --lower 82

The gain is by how much shorter the mean response is than without a coordinator. The goal: live it has
the simulator's sign, and at least half of its size.";

fn scale(text: &str) -> Result<f64, String> {
    let scale: Option<f64> = text.parse().ok();
    let is_possible = |scale: &f64| (0.001..=1000.0).contains(scale);
    scale
        .filter(is_possible)
        .ok_or_else(|| format!("{text}: expected 0.001 to 1000"))
}

impl Arguments {
    /// Blocks of each reader's cache, and of the one that they share (Zhang et al., 4.2: 5 %; twice that
    /// is the largest of theirs).
    fn sizes(&self) -> (u64, u64) {
        let upper = self.upper.unwrap_or(self.footprint / 20);
        (upper, self.lower.unwrap_or(2 * upper))
    }
}

/// With one coordinator, or none.
#[derive(Clone, Debug, Default, Serialize)]
struct Figures {
    mean_ms: f64,
    /// By how much shorter that is than without, if this is with.
    gain_percent: Option<f64>,
    /// Of what the lower level was asked for, what it had.
    lower_hits_percent: f64,
    /// What the lower level fetched ahead, and let past its cache.
    lower_ahead_mb: f64,
    lower_bypassed_mb: f64,
}

/// Both for one coordinator.
#[derive(Clone, Debug, Serialize)]
struct Case {
    coordinator: String,
    simulated: Figures,
    live: Option<Figures>,
}

/// Runs the command.
///
/// # Errors
/// If a setting cannot be, or a service does not run.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut cases: Vec<Case> = Vec::new();
    for coordinator in std::iter::once("none").chain(arguments.coordinator.iter().map(|c| &**c)) {
        let simulated = simulated(arguments, coordinator)?;
        let live = match arguments.only_simulated {
            true => None,
            false => Some(live(arguments, coordinator)?),
        };
        cases.push(Case {
            coordinator: coordinator.to_owned(),
            simulated,
            live,
        });
    }
    compare(&mut cases);
    print(&match arguments.json {
        true => serde_json::to_string_pretty(&cases).map_err(Failure::failed)? + "\n",
        false => table(arguments, &cases),
    })
}

/// What the coordinators gain, against the first case.
fn compare(cases: &mut [Case]) {
    let Some((first, rest)) = cases.split_first_mut() else {
        return;
    };
    let gain = |without: f64, with: f64| Some((1.0 - with / without) * 100.0);
    for case in rest {
        case.simulated.gain_percent = gain(first.simulated.mean_ms, case.simulated.mean_ms);
        if let (Some(without), Some(with)) = (&first.live, &mut case.live) {
            with.gain_percent = gain(without.mean_ms, with.mean_ms);
        }
    }
}

/// What a reader asks for, one after the other.
#[derive(Clone, Debug)]
struct Reader {
    client: u32,
    /// Its blocks.
    own: Interval,
    left: u32,
    /// Where the next request begins that goes on with the last.
    next: u64,
    /// Requests that go on.
    run: u64,
    dice: Option<u64>,
}

/// A sequential reader asks for so many blocks at once. A choice: what a copying program reads.
const SEQUENTIAL: u64 = 4;

impl Reader {
    fn both(arguments: &Arguments) -> [Reader; 2] {
        let reader = |client: u32, left: u32, dice| {
            let own = Interval::of(u64::from(client) * arguments.footprint, arguments.footprint);
            Reader {
                client,
                own,
                left,
                next: own.first,
                run: 0,
                dice,
            }
        };
        [
            reader(0, arguments.requests * 3, None),
            reader(1, arguments.requests, Some(arguments.seed)),
        ]
    }

    /// SplitMix64.
    fn roll(dice: &mut u64, sides: u64) -> u64 {
        *dice = dice.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = *dice;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }
}

impl Iterator for Reader {
    type Item = Interval;

    /// The mixed one reads at a random place, half of the time on from there: up to sixteen requests of
    /// one to eight blocks.
    fn next(&mut self) -> Option<Interval> {
        self.left = self.left.checked_sub(1)?;
        let mut count = SEQUENTIAL;
        if let Some(dice) = &mut self.dice {
            count = 1 + Self::roll(dice, 8);
            match self.run.checked_sub(1) {
                Some(run) => self.run = run,
                None => {
                    self.next = self.own.first + Self::roll(dice, self.own.len());
                    self.run = Self::roll(dice, 2) * Self::roll(dice, 16);
                }
            }
        }
        if self.next + count - 1 > self.own.last {
            self.next = self.own.first;
        }
        let blocks = Interval::of(self.next, count);
        self.next = blocks.last + 1;
        Some(blocks)
    }
}

/// Both, for the simulator.
struct Both([Reader; 2], Interval);

impl Load for Both {
    fn arrival(&mut self, client: u32) -> Result<Option<Arrival>, BadSetup> {
        let reader = &mut self.0[client as usize];
        let (client, within) = (reader.client, self.1);
        Ok(reader.next().map(|blocks| Arrival {
            at: 0,
            client,
            file: 0,
            blocks,
            within,
            direction: Direction::Read,
        }))
    }
}

fn simulated(arguments: &Arguments, coordinator: &str) -> Result<Figures, Failure> {
    let (upper, lower) = arguments.sizes();
    let level = |frames| Level::new(frames, &arguments.replacement, &arguments.prefetch);
    let entry = drive::catalog::find(&arguments.drive).map_err(Failure::input)?;
    let profile = entry.profile().map_err(Failure::input)?;
    let blocks = profile.capacity_bytes() / PAGE;
    let setup = Setup {
        clients: vec![level(upper); 2],
        lower: vec![Lower {
            level: level(lower),
            coordinator: coordinator.to_owned(),
            link: Link { start: 0, page: 0 },
        }],
        drive: Arc::new(profile),
        scheduler: Scheduler::Elevator,
    };
    let mut system = System::new(&setup).map_err(Failure::input)?;
    let mut load = Both(Reader::both(arguments), Interval::of(0, blocks));
    let report = simulate(&mut system, &mut load, Pace::Closed).map_err(Failure::input)?;
    let lower = &report.levels[1];
    let mb = |blocks: u64| (blocks * PAGE) as f64 / 1e6;
    Ok(Figures {
        mean_ms: report.response.mean_ms(),
        gain_percent: None,
        lower_hits_percent: lower.hit_ratio() * 100.0,
        lower_ahead_mb: mb(lower.fetched_ahead()),
        lower_bypassed_mb: mb(lower.bypassed),
    })
}

const PAGE: u64 = server::cached::PAGE;

fn live(arguments: &Arguments, coordinator: &str) -> Result<Figures, Failure> {
    let rounds = (0..arguments.rounds).map(|_| once(arguments, coordinator));
    let rounds: Vec<Figures> = rounds.collect::<Result<_, _>>()?;
    let middle = median(rounds.iter().map(|figures| figures.mean_ms).collect());
    let round = rounds.iter().find(|figures| figures.mean_ms == middle);
    Ok(round.cloned().unwrap_or_default())
}

/// One run, with empty caches.
fn once(arguments: &Arguments, coordinator: &str) -> Result<Figures, Failure> {
    let folder = tempfile::tempdir().map_err(Failure::failed)?;
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("drive.toml"), one_at_a_time(&arguments.drive)?)
        .map_err(Failure::failed)?;
    let back_end = format!(
        "{{ kind = \"emulated\", drive = \"{}\", image = \"{}\", time_scale = {} }}",
        path("drive.toml").display(),
        path("image").display(),
        arguments.time_scale
    );
    let (upper, lower) = arguments.sizes();
    let lower = (lower, coordinator);
    let lower = start(arguments, "lower", &back_end, lower, folder.path())?;
    let back_end = format!(
        "{{ kind = \"nbd\", uri = \"nbd+unix:///?socket={}\" }}",
        path("lower").display()
    );
    let upper = (upper, "none");
    let first = start(arguments, "upper-0", &back_end, upper, folder.path())?;
    let second = start(arguments, "upper-1", &back_end, upper, folder.path())?;
    let readers = Reader::both(arguments);
    let times = thread::scope(|scope| {
        let begun: Vec<_> = readers
            .into_iter()
            .map(|reader| {
                let socket = path(&format!("upper-{}", reader.client));
                scope.spawn(move || read(reader, &socket))
            })
            .collect();
        let ended = begun.into_iter().map(|thread| match thread.join() {
            Ok(times) => times.map_err(Failure::failed),
            Err(_) => Err(Failure::failed("a reader has failed")),
        });
        ended.collect::<Result<Vec<_>, _>>()
    })?;
    let status = lower.status()?;
    let told = status.drives.first().and_then(|drive| drive.caches.first());
    let told: Cache = told.cloned().unwrap_or_default();
    drop((first, second, lower));
    let times: Vec<f64> = times.into_iter().flatten().collect();
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let had = told.hit_bytes_total + told.late_bytes_total;
    Ok(Figures {
        mean_ms: times.iter().sum::<f64>() / times.len() as f64 * 1e3 / arguments.time_scale,
        gain_percent: None,
        lower_hits_percent: had as f64 / told.asked_bytes_total.max(1) as f64 * 100.0,
        lower_ahead_mb: mb(told.prefetched_bytes_total + told.readmore_bytes_total),
        lower_bypassed_mb: mb(told.bypassed_bytes_total),
    })
}

/// The profile of a drive that takes one command at a time, as the simulator's does.
fn one_at_a_time(drive: &str) -> Result<String, Failure> {
    let entry = drive::catalog::find(drive).map_err(Failure::input)?;
    let lines = entry.text.lines().map(|line| match line.split(' ').next() {
        Some("depth") => "depth = 1",
        _ => line,
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let profile = drive::Profile::parse(&text, drive).map_err(Failure::failed)?;
    match profile.queue.depth {
        1 => Ok(text),
        other => Err(Failure::failed(format!(
            "{drive}: a queue of {other}: expected a line \"depth = \" in its profile"
        ))),
    }
}

/// A service with one volume and its cache.
fn start(
    arguments: &Arguments,
    name: &str,
    back_end: &str,
    (blocks, coordinator): (u64, &str),
    folder: &Path,
) -> Result<Service, Failure> {
    let path = |name: &str| -> PathBuf { folder.join(name) };
    let config = format!(
        r#"
[[drive]]
name = "disk"
policy = "{policy}"
back_end = {back_end}
export = [{{ name = "disk", volume = "disk" }}]

[[drive.volume]]
name = "disk"
[drive.volume.cache]
size = {size}
replacement = "{replacement}"
prefetch = "{prefetch}"
coordinator = "{coordinator}"
# The simulator's scheduler knows of no urgency.
ahead_class = "foreground"

[[nbd]]
unix = "{socket}"

[control]
socket = "{control}"
"#,
        policy = arguments.policy,
        size = blocks * PAGE,
        replacement = arguments.replacement,
        prefetch = arguments.prefetch,
        socket = path(name).display(),
        control = path(&format!("{name}.control")).display(),
    );
    Service::start(name, &config, folder)
}

/// Reads all, one after the other; how long each took, in seconds.
fn read(reader: Reader, socket: &Path) -> std::io::Result<Vec<f64>> {
    let mut client = Client::connect(socket, 1)?;
    let mut times = Vec::with_capacity(reader.left as usize);
    for blocks in reader {
        let begun = Instant::now();
        let ask = Asked::Of(Ask::Read);
        client.submit(ask, blocks.first * PAGE, blocks.len() * PAGE, &[])?;
        client.end()?;
        times.push(begun.elapsed().as_secs_f64());
    }
    Ok(times)
}

fn table(arguments: &Arguments, cases: &[Case]) -> String {
    let mut text = format!(
        "{} at both levels, L1 {} blocks for each reader, L2 {}, {}; times are the drive's\n\n\
         {:<14} {:>10} {:>12} {:>8} {:>10} {:>10} {:>12}\n",
        arguments.prefetch,
        arguments.sizes().0,
        arguments.sizes().1,
        arguments.drive,
        "coordinator",
        "",
        "response ms",
        "gain %",
        "L2 hits %",
        "ahead MB",
        "bypassed MB"
    );
    for case in cases {
        let mut line = |name: &str, what: &str, figures: &Figures| {
            let gain = figures.gain_percent;
            let gain = gain.map_or_else(String::new, |gain| format!("{gain:.1}"));
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{name:<14} {what:>10} {:>12.3} {gain:>8} {:>10.1} {:>10.1} {:>12.1}",
                figures.mean_ms,
                figures.lower_hits_percent,
                figures.lower_ahead_mb,
                figures.lower_bypassed_mb
            );
        };
        line(&case.coordinator, "simulated", &case.simulated);
        if let Some(live) = &case.live {
            line("", "live", live);
        }
    }
    for case in cases {
        let live = case.live.as_ref().and_then(|live| live.gain_percent);
        if let (Some(simulated), Some(live)) = (case.simulated.gain_percent, live) {
            let _ = writeln!(
                text,
                "\n{}: live / simulated gain {:.2} (goal: 0.5 or more)",
                case.coordinator,
                live / simulated
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drive_takes_one_command_at_a_time() {
        for entry in drive::catalog::ALL {
            assert!(one_at_a_time(entry.name).is_ok(), "{}", entry.name);
        }
    }

    #[test]
    fn gains_are_against_the_first() {
        let figures = |mean_ms| Figures {
            mean_ms,
            ..Figures::default()
        };
        let case = |mean_ms, live| Case {
            coordinator: "x".to_owned(),
            simulated: figures(mean_ms),
            live: Some(figures(live)),
        };
        let mut cases = [case(10.0, 20.0), case(8.0, 18.0)];
        compare(&mut cases);
        assert_eq!(cases[0].simulated.gain_percent, None);
        let gain = |figures: &Figures| figures.gain_percent.map(|gain| gain.round());
        assert_eq!(gain(&cases[1].simulated), Some(20.0));
        assert_eq!(cases[1].live.as_ref().and_then(gain), Some(10.0));
    }

    #[test]
    fn readers_stay_within_their_blocks_and_one_of_them_goes_straight_on() {
        let own = Interval::new(100, 163);
        let reader = |dice| Reader {
            client: 0,
            own,
            left: 1000,
            next: own.first,
            run: 0,
            dice,
        };
        let sequential: Vec<Interval> = reader(None).collect();
        assert_eq!(
            sequential[..2],
            [Interval::of(100, 4), Interval::of(104, 4)]
        );
        assert_eq!(
            sequential[16],
            Interval::of(100, 4),
            "and from the beginning"
        );
        let mixed: Vec<Interval> = reader(Some(7)).collect();
        assert_eq!((sequential.len(), mixed.len()), (1000, 1000));
        assert!(
            mixed
                .iter()
                .all(|blocks| own.contains(blocks.first) && own.contains(blocks.last))
        );
        let goes_on = mixed
            .windows(2)
            .filter(|pair| pair[0].last + 1 == pair[1].first);
        let share = goes_on.count() as f64 / 1000.0;
        assert!((0.3..0.95).contains(&share), "{share}");
    }
}
