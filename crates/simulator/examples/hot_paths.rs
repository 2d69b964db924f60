//! The hot paths whose instructions `cargo xtask counts` counts, each by its name and a number of units.
//!
//! Without arguments, the names and the units of a short run. The count of a unit is the difference of a
//! run of twice the units and of a short one, so that what precedes the path does not count.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use block::{
    Action, Command, CommandId, Direction, Durability, Duration, Extent, Instant, Interval, Lba,
    RequestId, Sectors,
};
use cache::coordinator::{Purpose, UpperRequest};
use cache::level::{Composition, Ending};
use cache::{Level, Stack};
use drive::firmware::{Bus, QueueOrder};
use drive::{Imperfections, Profile, VirtualDrive, catalog};
use engine::{Engine, Limits, Rules};
use scheduler::freeblock::WantedBlocks;
use scheduler::policy::{NamedPolicy, find};
use simulator::caching::{
    self, ArrivalTiming, CacheArrival, CacheSpec, CachingSetup, FileEnds, Link, LowerLevel,
    Scheduler, System, Writes,
};
use simulator::driver::Driver;
use simulator::ledger::Ledger;
use simulator::run::{Options, run};
use simulator::scenario::{Background, Scenario};
use simulator::workload::{BuiltInWorkload, Overrides, Synthetic};

/// One path.
struct HotPath {
    name: &'static str,
    /// The units of a short run. A choice: Callgrind takes a second for twice as many.
    units: u64,
    /// Executes so many units, and answers how many were executed.
    execute: fn(u64) -> u64,
}

const ALL: &[HotPath] = &[
    HotPath {
        name: "request-fcfs",
        units: 1_000,
        execute: |requests| simulate("fcfs", requests),
    },
    HotPath {
        name: "request-sptf-in-firmware",
        units: 1_000,
        execute: |requests| simulate("sptf", requests),
    },
    HotPath {
        name: "request-sptf-in-the-drive",
        units: 1_000,
        execute: sptf_in_the_drive,
    },
    HotPath {
        name: "request-beside-a-scan",
        units: 600,
        execute: |requests| scan(profile("quantum-atlas-10k"), requests),
    },
    HotPath {
        name: "request-beside-a-scan-on-a-fast-bus",
        units: 600,
        execute: scan_on_a_fast_bus,
    },
    HotPath {
        name: "drive-command",
        units: 2_000,
        execute: drive_alone,
    },
    HotPath {
        name: "cache-request",
        units: 4_000,
        execute: look_up,
    },
    HotPath {
        name: "request-of-two-levels-mixed",
        units: 10_000,
        execute: |requests| two_levels(requests, "ra", mixed(requests)),
    },
    HotPath {
        name: "request-of-two-levels-sequential",
        units: 10_000,
        execute: |requests| two_levels(requests, "linux-2.4", sequential(requests)),
    },
    HotPath {
        name: "request-of-two-levels-skewed",
        units: 10_000,
        execute: |requests| two_levels(requests, "none", skewed(requests)),
    },
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, units] = &words[..] else {
        let lines = ALL
            .iter()
            .map(|path| format!("{} {}\n", path.name, path.units));
        let lines: String = lines.collect();
        return match std::io::stdout().write_all(lines.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    };
    let path = ALL.iter().find(|path| path.name == name);
    let Some((path, units)) = path.zip(units.parse().ok()) else {
        return ExitCode::from(2);
    };
    match (path.execute)(units) == units {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The drive of `headtime bench simulate`.
const DRIVE: &str = "seagate-cheetah-9lp";

/// Commands that its load keeps outstanding.
const OUTSTANDING: u32 = 10;

fn profile(name: &str) -> Arc<Profile> {
    let entry = catalog::find(name).expect("a shipped drive");
    Arc::new(entry.profile().expect("a valid profile"))
}

fn policy(name: &str) -> NamedPolicy {
    find(name).expect("a policy of the table")
}

fn load(name: &str, profile: &Profile, overrides: &Overrides) -> Synthetic {
    let load = BuiltInWorkload::find(name).expect("a built-in load");
    let load = load.workload().and_then(|load| load.with(overrides));
    let blocks = profile.geometry.sectors().0;
    let load = Synthetic::new(&load.expect("a valid load"), profile.block_bytes, blocks);
    load.expect("it fits on the drive")
}

/// A policy outside of the drive, whose belief is the truth.
fn simulate(name: &str, requests: u64) -> u64 {
    serve(name, 2, QueueOrder::Fcfs, requests)
}

/// The drive chooses among all commands of the load.
fn sptf_in_the_drive(requests: u64) -> u64 {
    serve("drive", OUTSTANDING, QueueOrder::Sptf, requests)
}

/// Load, engine, drive and ledger, with so many commands at the drive.
fn serve(name: &str, commands: u32, order: QueueOrder, requests: u64) -> u64 {
    let profile = profile(DRIVE);
    let policy = policy(name);
    let limits = Limits {
        commands_at_drive: commands as usize,
        ..Limits::default()
    };
    let engine = Engine::new(Arc::clone(&profile), &|| policy.make(), limits);
    let drive = VirtualDrive::new(Arc::clone(&profile)).with_queue(commands, order);
    let mut ledger = Ledger::new(profile.block_bytes, profile.actuators);
    let options = Options {
        requests: Some(requests),
        ..Options::default()
    };
    let ran = run(
        &mut Driver::new(engine, drive),
        &mut load("random", &profile, &Overrides::default()),
        &options,
        &mut ledger,
        &mut (),
    );
    ledger.report(&ran.expect("a good load")).all.requests
}

/// The bus of `headtime bench simulate --free-blocks`: Ultra2 Wide SCSI, 80 MB/s, faster than the medium.
fn scan_on_a_fast_bus(requests: u64) -> u64 {
    let mut profile = Arc::unwrap_or_clone(profile("quantum-atlas-10k"));
    let block = Duration::from_nanos(6_400);
    profile.bus = Bus {
        read_block: block,
        write_block: block,
    };
    scan(Arc::new(profile), requests)
}

/// Ten requests always active beside a scan in free blocks, as in the freeblock paper (Lumb et al., FAST
/// 2002, 5.1).
fn scan(profile: Arc<Profile>, requests: u64) -> u64 {
    let always_active = Overrides {
        think_ms: Some(0.0),
        ..Overrides::default()
    };
    let policy = policy("sptf");
    let scenario = Scenario {
        belief: Arc::clone(&profile),
        truth: Arc::clone(&profile),
        imperfections: Imperfections::default(),
        seed: 0,
        policy,
        limits: Limits::suited_to(policy, &profile),
        preemption: None,
        background: Some(Background::new(
            Rules::default(),
            WantedBlocks::all(&profile.geometry),
        )),
        mirror: None,
    };
    let options = Options {
        requests: Some(requests),
        ..Options::default()
    };
    let mut load = load("oltp", &profile, &always_active);
    let played = scenario.play(&mut load, &options, &mut ());
    played.expect("a good load").ran.requests
}

/// Commands of two reads to a write on a drive that chooses among ten, without an engine.
fn drive_alone(commands: u64) -> u64 {
    let profile = profile(DRIVE);
    let mut drive =
        VirtualDrive::new(Arc::clone(&profile)).with_queue(OUTSTANDING, QueueOrder::Sptf);
    let (mut now, mut submitted, mut ended) = (Instant::ZERO, 0, 0);
    loop {
        while submitted < commands && drive.held() < OUTSTANDING as usize {
            let taken = drive.submit(now, command(submitted, &profile));
            taken.expect("there is room");
            submitted += 1;
        }
        match drive.poll(now) {
            Some(_) => ended += 1,
            None => match drive.next_wakeup() {
                Some(wakeup) => now = wakeup,
                None => return ended,
            },
        }
    }
}

fn command(id: u64, profile: &Profile) -> Command {
    let blocks = 15;
    let places = profile.geometry.sectors().0 - blocks;
    let extent = Extent::new(Lba(spread(id) % places), Sectors(blocks)).expect("on the drive");
    let durability = Durability::Volatile;
    let action = match id % 3 {
        0 => Action::Write { extent, durability },
        _ => Action::Read { extent, durability },
    };
    Command::new(CommandId(id), action)
}

/// Requests of four blocks to a cache of 4,096: two thirds are of a half of it, and found; the others go past.
fn look_up(requests: u64) -> u64 {
    const LENGTH: u64 = 4;
    const CAPACITY: u64 = 4_096;
    const BLOCKS: u64 = 1 << 20;
    let composition = Composition {
        capacity: CAPACITY,
        replacement: "lru",
        prefetch: "none",
        coordinator: "none",
        requests: 1 << 4,
    };
    let mut stack = Stack::new(vec![Level::new(&composition).expect("lines of the tables")]);
    let mut ended = 0;
    for number in 0..requests {
        let within = match number % 3 {
            0 => BLOCKS / LENGTH,
            _ => CAPACITY / LENGTH / 2,
        };
        let asked = UpperRequest {
            client: 0,
            file: 0,
            blocks: Interval::of(spread(number) % within * LENGTH, LENGTH),
            within: Interval::new(0, BLOCKS - 1),
            purpose: Purpose::Demand,
            direction: Direction::Read,
        };
        let submitted = stack.submit(Instant::ZERO, RequestId(number), asked);
        submitted.expect("one request at a time");
        while let Some(fetch) = stack.poll() {
            stack.complete(Instant::ZERO, fetch.id, Ending::Done);
        }
        ended += u64::from(stack.poll_finished().is_some());
    }
    ended
}

/// Blocks of the loads of two levels: 529 MB, the footprint of the OLTP trace of Zhang et al., 2008.
const FOOTPRINT: u64 = 135_000;

/// Most requests continue one of eight streams, one in nine jumps.
fn mixed(requests: u64) -> Vec<(u64, Interval)> {
    let mut streams = [0; 8];
    let each = (0..requests).map(|number| {
        let dice = spread(number);
        let (stream, count) = (dice as usize % 8, 1 + dice / 8 % 4);
        let first = match dice / 32 % 9 {
            0 => dice / 512 % (FOOTPRINT - 8),
            _ => streams[stream] % (FOOTPRINT - 8),
        };
        streams[stream] = first + count;
        (stream as u64, Interval::of(first, count))
    });
    each.collect()
}

/// One reader of four blocks at a time.
fn sequential(requests: u64) -> Vec<(u64, Interval)> {
    let first = |number| number * 4 % (FOOTPRINT - 4);
    let each = (0..requests).map(|number| (0, Interval::of(first(number), 4)));
    each.collect()
}

/// One or two blocks, two thirds of the requests in a hundredth of the footprint.
fn skewed(requests: u64) -> Vec<(u64, Interval)> {
    let each = (0..requests).map(|number| {
        let dice = spread(number);
        let within = match dice % 3 {
            0 => FOOTPRINT - 2,
            _ => FOOTPRINT / 100,
        };
        let first = dice / 6 % within;
        (first / 1_000, Interval::of(first, 1 + dice / 3 % 2))
    });
    each.collect()
}

/// Two levels of a twentieth of the footprint with a prefetcher, PFC, messages, scheduler and drive.
fn two_levels(requests: u64, prefetcher: &str, load: Vec<(u64, Interval)>) -> u64 {
    let frames = FOOTPRINT / 20;
    let setup = CachingSetup {
        clients: vec![CacheSpec::new(frames, "lru", prefetcher)],
        lower: vec![LowerLevel {
            level: CacheSpec::new(frames, "lru", prefetcher),
            coordinator: "pfc".to_owned(),
            link: Link::LAN,
        }],
        drive: profile(DRIVE),
        scheduler: Scheduler::Elevator,
        file_ends: FileEnds::AllLevels,
        writes: Writes::AsReads,
    };
    let mut system = System::new(&setup).expect("lines of the tables");
    let mut arrivals = load.into_iter().map(|(file, blocks)| CacheArrival {
        at: Instant::ZERO,
        client: 0,
        file,
        blocks,
        within: Interval::new(0, FOOTPRINT),
        direction: Direction::Read,
    });
    let report = caching::run(&mut system, &mut arrivals, ArrivalTiming::Closed);
    assert!(report.is_ok_and(|report| report.requests == requests));
    requests
}

/// Numbers that are spread evenly: Knuth's multiplicative hashing.
fn spread(number: u64) -> u64 {
    (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16
}
