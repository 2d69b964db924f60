//! The speed and the memory of the simulator.
//!
//! Load and drive are those of DiskSim 4.0's figures: 112,000 requests per CPU second under FCFS,
//! 73,000 with the drive's own SPTF queue.

use std::sync::Arc;
use std::time::Duration;

use block::Switch;
use drive::firmware::{Bus, QueueOrder};
use drive::{Imperfections, VirtualDrive, catalog};
use engine::{Engine, Limits, Rules};
use scheduler::freeblock::{ANYTIME_TRACKS, WantedBlocks};
use serde::Serialize;
use simulator::driver::Driver;
use simulator::ledger::Ledger;
use simulator::run::{self, Options};
use simulator::scenario::{Background, Scenario};
use simulator::workload::{BuiltInWorkload, Synthetic};

use super::never_idle;
use crate::{Failure, cpu_time};

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct SimulationBench {
    /// Requests in each round.
    pub requests: u64,
    /// Whether to add a run of ten million requests, for its peak memory.
    pub long: bool,
    /// Whether to add an hour of OLTP on an Atlas 10K with a scan in free blocks.
    pub free_blocks: bool,
}

/// The speed of one case.
#[derive(Debug, Serialize)]
pub struct SimulationSpeed {
    /// The case.
    pub case: &'static str,
    /// The median of the rounds, rounded to whole requests.
    pub requests_per_cpu_second: u64,
    /// The peak memory since the case began; null if the system does not report it.
    pub peak_rss_mb: Option<f64>,
}

/// What is run.
struct SpeedCase {
    name: &'static str,
    policy: &'static str,
    /// The order of the drive's own queue.
    order: QueueOrder,
    /// Commands at the drive.
    commands: usize,
    /// The requests of a round, if fixed.
    requests: Option<u64>,
    rounds: u32,
}

impl SimulationBench {
    /// Measures all cases.
    ///
    /// # Errors
    /// If a case does not run to its end.
    pub fn run(&self) -> Result<Vec<SimulationSpeed>, Failure> {
        let long = self.long.then_some(&LONG);
        let mut measured = CASES
            .iter()
            .chain(long)
            .map(|case| measure(case, case.requests.unwrap_or(self.requests)))
            .collect::<Result<Vec<_>, _>>()?;
        if self.free_blocks {
            for limit in LIMITS {
                measured.push(free_blocks(&limit, HOUR)?);
            }
        }
        Ok(measured)
    }
}

fn measure(case: &SpeedCase, requests: u64) -> Result<SimulationSpeed, Failure> {
    forget_peak();
    let mut times = (0..case.rounds)
        .map(|_| cpu_time_of(case, requests))
        .collect::<Result<Vec<_>, _>>()?;
    times.sort_unstable();
    let median = times[times.len() / 2].as_secs_f64().max(1e-9);
    Ok(SimulationSpeed {
        case: case.name,
        requests_per_cpu_second: (requests as f64 / median).round() as u64,
        peak_rss_mb: peak_rss_mb(),
    })
}

/// Runs a load that is never idle, with free blocks in its gaps, for this virtual time.
fn free_blocks(limit: &Limit, virtual_time: block::Duration) -> Result<SimulationSpeed, Failure> {
    forget_peak();
    let mut rates = (0..ROUNDS)
        .map(|_| rate_with_free_blocks(limit, virtual_time))
        .collect::<Result<Vec<_>, _>>()?;
    rates.sort_unstable();
    Ok(SimulationSpeed {
        case: limit.case,
        requests_per_cpu_second: rates[rates.len() / 2],
        peak_rss_mb: peak_rss_mb(),
    })
}

fn rate_with_free_blocks(limit: &Limit, virtual_time: block::Duration) -> Result<u64, Failure> {
    let entry = catalog::find(FREE_BLOCKS_DRIVE).map_err(Failure::failed)?;
    let profile = entry.profile().map_err(Failure::failed)?;
    let mut profile = profile.switched(Switch::On, Switch::Off);
    profile.bus = FREE_BLOCKS_BUS;
    let profile = Arc::new(profile);
    let mut load = never_idle::load(None, &profile)?;
    let policy = scheduler::policy::find("sptf").map_err(Failure::failed)?;
    let scenario = Scenario {
        belief: Arc::clone(&profile),
        truth: Arc::clone(&profile),
        imperfections: Imperfections::default(),
        seed: 0,
        policy,
        limits: Limits::suited_to(policy, &profile),
        preemption: None,
        background: Some(Background::new(
            Rules {
                tracks: limit.tracks,
                ..Rules::default()
            },
            WantedBlocks::all(&profile.geometry),
        )),
        mirror: None,
    };
    let options = Options {
        until: Some(block::Instant::ZERO + virtual_time),
        ..Options::default()
    };
    let begin = cpu_time();
    let played = scenario.play(&mut load, &options, &mut ());
    let played = played.map_err(Failure::failed)?;
    let report = played.ledger.report(&played.ran);
    let time = cpu_time().saturating_sub(begin).as_secs_f64().max(1e-9);
    Ok((report.all.requests as f64 / time).round() as u64)
}

/// The CPU time of one run, from the first request to the report.
fn cpu_time_of(case: &SpeedCase, requests: u64) -> Result<Duration, Failure> {
    let profile = catalog::find(DRIVE)
        .map_err(Failure::failed)?
        .profile()
        .map_err(Failure::failed)?;
    let profile = Arc::new(profile);
    let capacity = profile.geometry.sectors().0;
    let load = BuiltInWorkload::find(LOAD)
        .ok_or_else(|| Failure::failed(format!("the load {LOAD} is not built in")))?
        .workload()
        .map_err(Failure::failed)?;
    let mut load = Synthetic::new(&load, profile.block_bytes, capacity).map_err(Failure::failed)?;
    let policy = scheduler::policy::find(case.policy).map_err(Failure::failed)?;
    let limits = Limits {
        commands_at_drive: case.commands,
        ..Limits::default()
    };
    let begin = cpu_time();
    let engine = Engine::new(Arc::clone(&profile), &|| policy.make(), limits);
    let drive = VirtualDrive::new(Arc::clone(&profile)).with_queue(OUTSTANDING as u32, case.order);
    let mut ledger = Ledger::new(profile.block_bytes, profile.actuators);
    let options = Options {
        requests: Some(requests),
        ..Options::default()
    };
    let ran = run::run(
        &mut Driver::new(engine, drive),
        &mut load,
        &options,
        &mut ledger,
        &mut (),
    )
    .map_err(Failure::failed)?;
    let report = ledger.report(&ran);
    let time = cpu_time().saturating_sub(begin);
    match report.all.requests == requests {
        true => Ok(time),
        false => Err(Failure::failed(format!(
            "{}: {} of {requests} requests ended",
            case.name, report.all.requests
        ))),
    }
}

/// Resets the peak of the resident memory (proc(5), `clear_refs`). If the system refuses, the
/// reported peak is that of the whole process: too high, never too low.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The peak of the resident memory, in millions of bytes.
fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some((kib * 1024) as f64 / 1e6)
}

/// The drive of DiskSim's figures.
const DRIVE: &str = "seagate-cheetah-9lp";

/// The load of DiskSim's figures: random 7.5 KB, ten outstanding, two reads to one write.
const LOAD: &str = "random";

/// Outstanding requests of that load.
const OUTSTANDING: usize = 10;

/// The cases of every run.
const CASES: [SpeedCase; 2] = [
    SpeedCase {
        name: "cheetah-9lp-fcfs",
        policy: "fcfs",
        order: QueueOrder::Fcfs,
        // The engine's default: one in service, one queued.
        commands: 2,
        requests: None,
        rounds: ROUNDS,
    },
    SpeedCase {
        name: "cheetah-9lp-sptf-in-drive",
        policy: "drive",
        order: QueueOrder::Sptf,
        commands: OUTSTANDING,
        requests: None,
        rounds: ROUNDS,
    },
];

/// The case of `--long`.
const LONG: SpeedCase = SpeedCase {
    name: "cheetah-9lp-fcfs-10m",
    policy: "fcfs",
    order: QueueOrder::Fcfs,
    commands: 2,
    requests: Some(10_000_000),
    rounds: 1,
};

/// The drive of the freeblock paper (Lumb et al., FAST 2002, 5.1).
const FREE_BLOCKS_DRIVE: &str = "quantum-atlas-10k";

/// Ultra2 Wide SCSI, 80 MB/s: the profile's own bus is that of the system on which it was measured.
const FREE_BLOCKS_BUS: Bus = Bus {
    read_block: block::Duration::from_nanos(6_400),
    write_block: block::Duration::from_nanos(6_400),
};

/// A limit of the search for free blocks.
struct Limit {
    case: &'static str,
    tracks: u32,
}

/// The engine's own limit, and a smaller one for fast simulations. The smaller one yields as much
/// in the first half of the scan, and takes a fifth longer for the whole.
const LIMITS: [Limit; 2] = [
    Limit {
        case: "atlas-10k-oltp-hour-free",
        tracks: ANYTIME_TRACKS,
    },
    Limit {
        case: "atlas-10k-oltp-hour-free-48",
        tracks: 48,
    },
];

/// Simulated time of the free-block cases.
const HOUR: block::Duration = block::Duration::from_secs(3_600);

/// Rounds of a case. A choice: the median tolerates one disturbance.
const ROUNDS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_runs_to_its_end() {
        for case in CASES.iter().chain([&LONG]) {
            cpu_time_of(case, 500).expect("all requests end");
        }
        let second = block::Duration::from_secs(1);
        for limit in &LIMITS {
            assert!(rate_with_free_blocks(limit, second).expect("all requests end") > 0);
        }
    }

    #[test]
    fn this_process_takes_memory() {
        if cfg!(target_os = "linux") {
            let peak = peak_rss_mb().expect("Linux tells");
            assert!(peak > 0.5, "{peak} MB");
        }
    }
}
