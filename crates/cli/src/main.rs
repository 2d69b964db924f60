//! The command line: `headtime drives`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod drives;

/// Block I/O that knows where the head is.
#[derive(Debug, Parser)]
#[command(name = "headtime", version)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Drives(drives::DrivesArgs),
}

/// Bad input of any kind.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let line = Line::parse();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let result = match &line.command {
        Command::Drives(args) => drives::run(args, &mut out),
    };
    let result = result.and_then(|()| Ok(out.flush()?));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever closed the pipe has seen enough.
        Err(drives::DrivesError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(BAD_INPUT)
        }
    }
}
