//! `headtime bench`: how fast it is, and beside what.
//!
//! Everything here is measured on this machine, in this run: the figures to quote are ratios.

use clap::{Args, Subcommand};

use crate::output::Exit;

mod caches;
mod players;
mod preemption;
mod schedulers;
mod serve;
mod simulate;
mod streams;

/// What to measure.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Requests simulated per second of CPU time, and peak memory
    Simulate(simulate::Arguments),
    /// What the service itself costs, beside nbdkit and qemu-storage-daemon
    Serve(serve::Arguments),
    /// Urgent reads beside a greedy reader, with and without preemption, beside the kernel's schedulers
    Preemption(preemption::Arguments),
    /// Caches in two levels, with and without a coordinator, beside what the simulator says
    Caches(caches::Arguments),
    /// Streams beside a greedy reader, live: our guarantees, and the kernel's schedulers
    Players(players::Arguments),
    /// Our order beside the kernel's schedulers, on the same emulated drive; without and with a scan
    Schedulers(schedulers::Arguments),
    /// Streams at the limit of what is granted, beside a greedy load and a scan, in virtual time
    Streams(streams::Arguments),
}

/// Runs the command.
///
/// # Errors
/// If something that it measures does not run, or the output cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Exit> {
    match &arguments.what {
        What::Simulate(arguments) => simulate::run(arguments),
        What::Serve(arguments) => serve::run(arguments),
        What::Preemption(arguments) => preemption::run(arguments),
        What::Caches(arguments) => caches::run(arguments),
        What::Players(arguments) => players::run(arguments),
        What::Schedulers(arguments) => schedulers::run(arguments),
        What::Streams(arguments) => streams::run(arguments),
    }
}

const EXAMPLES: &str = "Examples:
  headtime bench simulate
  headtime bench serve --rounds 9
  headtime bench caches --rounds 3
  headtime bench schedulers --seconds 15 --rounds 1
  headtime bench preemption --time-scale 1,4
  headtime bench players --seconds 10 --only-ours
  headtime bench streams --hours 1 --policy sptf,fcfs --memory 4";
