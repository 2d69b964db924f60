//! `headtime`: the one binary over the simulator and the server.

mod bench;
mod demo;
mod output;
mod simulate;
mod trace;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use output::Failure;

/// Block I/O that knows where the head is.
#[derive(Debug, Parser)]
#[command(name = "headtime", version, max_term_width = 100)]
struct Headtime {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// How fast the simulator is.
    Bench(bench::Arguments),
    /// A load, and a real trace if there is one, on validated drives under three policies.
    Demo(demo::Arguments),
    /// Run a load or a trace on a drive under one policy or several, in virtual time.
    Simulate(Box<simulate::Arguments>),
    /// Look into a trace of block requests, or convert it.
    Trace(trace::Trace),
}

fn main() -> ExitCode {
    let ended = match Headtime::parse().command {
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments).map_err(Failure::from),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
