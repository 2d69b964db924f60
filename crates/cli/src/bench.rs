//! `headtime bench`: benchmarks of the simulator and of the service.
//!
//! Each benchmark runs all of its candidates on this machine in one run. Quote the ratios.

use clap::{Args, Subcommand};
use lab::{Failure, Progress};

use crate::bar::Bar;
use crate::output::Exit;

mod adopt;
mod caches;
mod care;
mod classify;
mod densities;
mod fail_slow;
mod impact;
mod jitter;
mod partial;
mod peers;
mod players;
mod preemption;
mod priorities;
mod schedulers;
mod serve;
mod sets;
mod simulate;
mod soak;
mod streams;

/// The arguments of `headtime bench`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Free bandwidth of disks that nobody has described: adopted, served and scanned, against their own
    /// profile
    Adopt(adopt::AdoptBenchArgs),
    /// Requests simulated per second of CPU time, and peak memory
    Simulate(simulate::SimulateBenchArgs),
    /// Overhead of the service, compared with nbdkit and qemu-storage-daemon
    Serve(serve::ServeBenchArgs),
    /// Latency of urgent reads beside a greedy reader: with preemption, without, and with the
    /// kernel's schedulers
    Preemption(preemption::PreemptionBenchArgs),
    /// Gain of coordination between two cache levels, live and simulated
    Caches(caches::CachesBenchArgs),
    /// Delays of streams beside a greedy reader, live: guaranteed, and with the kernel's schedulers
    Players(players::PlayersBenchArgs),
    /// Throughput and latency of our policy and the kernel's schedulers on one emulated drive, with
    /// and without a scan
    Schedulers(schedulers::SchedulersBenchArgs),
    /// Largest number of guaranteed streams beside a greedy load and a scan, in virtual time
    Streams(streams::StreamsBenchArgs),
    /// Free blocks and their impact where a part of a drive's tracks is known, in virtual time
    Partial(partial::PartialBenchArgs),
    /// Misses and speed of cache replays beside libCacheSim's
    Peers(peers::PeersBenchArgs),
    /// Profiles of drives whose surfaces differ in density, after some minutes, in virtual time
    Densities(densities::DensitiesBenchArgs),
    /// How soon a head that reads slowly is found, and false alarms of healthy drives, in virtual time
    FailSlow(fail_slow::FailSlowBenchArgs),
    /// Background tasks beside a busy load: shared reads, any k of n pieces, hastened tasks
    Care(care::CareBenchArgs),
    /// Requests that get the class of their program's I/O priority, and the cost of that, live
    Classify(classify::ClassifyBenchArgs),
    /// p99 of a reader beside a scrub, an archiver and a copy of low priority, and with the kernel's
    /// schedulers, live
    Priorities(priorities::PrioritiesBenchArgs),
    /// Cost of a scan to the foreground under truths that no belief has, in virtual time
    Impact(impact::ImpactBenchArgs),
    /// Free bandwidth over the size of a declared set and its scatter, in virtual time
    Sets(sets::SetsBenchArgs),
    /// Delays that this machine adds on the way to an emulated drive, in real time
    Jitter(jitter::JitterBenchArgs),
    /// Growth of memory, descriptors and threads of a service under a mixed load, live
    Soak(soak::SoakBenchArgs),
}

/// Runs the command.
///
/// # Errors
/// If a benchmarked program does not run, or the output cannot be written.
pub fn run(arguments: &BenchArgs) -> Result<(), Exit> {
    let _lines = arguments.what.without_parts().map(Bar::lines);
    match &arguments.what {
        What::Adopt(arguments) => adopt::run(arguments),
        What::Simulate(arguments) => simulate::run(arguments),
        What::Serve(arguments) => serve::run(arguments),
        What::Preemption(arguments) => preemption::run(arguments),
        What::Caches(arguments) => caches::run(arguments),
        What::Players(arguments) => players::run(arguments),
        What::Schedulers(arguments) => schedulers::run(arguments),
        What::Streams(arguments) => streams::run(arguments),
        What::Partial(arguments) => partial::run(arguments),
        What::Peers(arguments) => peers::run(arguments),
        What::Densities(arguments) => densities::run(arguments),
        What::FailSlow(arguments) => fail_slow::run(arguments),
        What::Care(arguments) => care::run(arguments),
        What::Classify(arguments) => classify::run(arguments),
        What::Impact(arguments) => impact::run(arguments),
        What::Priorities(arguments) => priorities::run(arguments),
        What::Sets(arguments) => sets::run(arguments),
        What::Jitter(arguments) => jitter::run(arguments),
        What::Soak(arguments) => soak::run(arguments),
    }
}

impl What {
    /// The name in lines of progress, unless the benchmark tells its parts itself.
    fn without_parts(&self) -> Option<&'static str> {
        match self {
            What::Adopt(_) => Some("bench adopt"),
            What::Simulate(_) => Some("bench simulate"),
            What::Serve(_) => Some("bench serve"),
            What::Preemption(_) => Some("bench preemption"),
            What::Players(_) => Some("bench players"),
            What::Schedulers(_) => Some("bench schedulers"),
            What::Streams(_) => Some("bench streams"),
            What::Densities(_) => Some("bench densities"),
            What::Classify(_) => Some("bench classify"),
            What::Jitter(_) => Some("bench jitter"),
            What::Caches(_)
            | What::Partial(_)
            | What::Peers(_)
            | What::FailSlow(_)
            | What::Care(_)
            | What::Priorities(_)
            | What::Impact(_)
            | What::Sets(_)
            | What::Soak(_) => None,
        }
    }
}

/// Runs a benchmark that tells its parts, below a spinner.
fn observed<T>(
    name: &str,
    run: impl FnOnce(&dyn Progress) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let bar = Bar::spinner().with_prefix(name.to_owned());
    let result = run(&bar);
    bar.finish();
    result
}

const EXAMPLES: &str = "Examples:
  headtime bench simulate
  headtime bench serve --rounds 9
  headtime bench caches --rounds 3
  headtime bench schedulers --seconds 15 --rounds 1
  headtime bench preemption --time-scale 1,4
  headtime bench players --seconds 10 --only-ours
  headtime bench adopt --drive quantum-atlas-10k --via nbd --minutes 3
  headtime bench streams --hours 1 --policy sptf,fcfs --memory 4
  headtime bench partial --seeds 1 --json
  headtime bench peers --libcachesim peers/bin/python
  headtime bench fail-slow --drive-days 100
  headtime bench jitter --via nbd
  headtime bench care --unprofiled
  headtime bench classify --seconds 60 --json
  headtime bench priorities --seconds 15
  headtime bench soak --minutes 60
  headtime bench sets --size-mib 64,1024 --pieces 1,1024
  headtime bench densities --surfaces 4 --seeds 1 --minutes 10";
