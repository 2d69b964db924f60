//! The command line of Headtime.

mod bench;
mod demo;
mod output;
mod simulate;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use output::Failure;

/// Hard-disk I/O scheduling that knows where the head is
#[derive(Debug, Parser)]
#[command(name = "headtime", version, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a load on a drive under one policy or several, in virtual time
    Simulate(Box<simulate::Arguments>),
    /// A load, and a real trace if there is one, on a validated drive under three policies
    Demo(demo::Arguments),
    /// How fast the simulator is
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let ended = match CommandLine::parse().command {
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => Failure::report(&failure),
    }
}
