//! `headtime`: the one binary over the simulator and the server.

mod trace;

use clap::{Parser, Subcommand};
use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Block I/O that knows where the head is.
#[derive(Debug, Parser)]
#[command(name = "headtime", version)]
struct Headtime {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Look into a trace of block requests, or convert it.
    Trace(trace::Trace),
}

/// The exit code for bad input, as for a bad command line.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let result = match &Headtime::parse().command {
        Command::Trace(trace) => trace::run(trace),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, the exit code is all that can be said.
            let _unheard = writeln!(io::stderr().lock(), "error: {error}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// Whether the reader of our output, like `head`, has had enough.
fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
