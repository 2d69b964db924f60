//! Guaranteed streams from the command line: `headtime streams`, `headtime play`, `headtime record`.

mod aligned;
mod lease;
pub mod pace;
pub mod plan;
pub mod play;
pub mod record;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use headtime_client::{Client, Error, Listed, default_socket};

use crate::output::{Exit, grouped, print_answer};

/// List the streams of a running service: terms, status, late batches
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE, args_conflicts_with_subcommands = true)]
pub struct StreamsArgs {
    #[command(subcommand)]
    command: Option<StreamsCommand>,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
    /// The service's control socket [default: control.sock in $XDG_RUNTIME_DIR/headtime or
    /// /tmp/headtime-UID, else that of the only systemd service]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum StreamsCommand {
    /// May these recorders and players share a disk? With which buffers, and what is left?
    Plan(plan::PlanArgs),
}

const EXAMPLE: &str = "Example:
  headtime streams
  headtime streams plan --drive modern-20tb --record 64x500k,memory=3M --play 4x500k,memory=3M
  headtime streams --json | jq '.[] | select(.standing != \"serving\")'";

/// Runs the command.
///
/// # Errors
/// If no service listens on the socket, or a plan is refused.
pub fn run(arguments: &StreamsArgs) -> Result<(), Exit> {
    if let Some(StreamsCommand::Plan(arguments)) = &arguments.command {
        return plan::run(arguments);
    }
    let client = connect(arguments.socket.as_deref())?;
    let streams = client.streams().map_err(|error| failure(&error))?;
    if arguments.json {
        let text = serde_json::to_string_pretty(&streams).map_err(Exit::failed)?;
        return print_answer(&(text + "\n"));
    }
    print_answer(&table(&streams))
}

/// The streams as a table.
pub fn table(streams: &[Listed]) -> String {
    if streams.is_empty() {
        return String::from("no streams\n");
    }
    let mut text = format!(
        "{:>6}  {:<12} {:<12} {:<16} {:<11} {:>12} {:>12}  {:<8} {:>10} {:>8} {:>6} {:>7}\n",
        "stream",
        "drive",
        "export",
        "name",
        "mode",
        "bytes/s",
        "memory",
        "standing",
        "at once",
        "waited",
        "late",
        "lapsed"
    );
    for stream in streams {
        text += &format!(
            "{:>6}  {:<12} {:<12} {:<16} {:<11} {:>12} {:>12}  {:<8} {:>10} {:>8} {:>6} {:>7}\n",
            stream.stream,
            stream.drive,
            stream.terms.export.as_deref().unwrap_or_default(),
            stream.terms.name,
            stream.terms.mode.name(),
            grouped(stream.terms.rate),
            grouped(stream.terms.memory.unwrap_or(0)),
            stream.standing.name(),
            stream.from_memory_total,
            stream.waited_total,
            stream.late_total,
            stream.lapsed_total,
        );
    }
    text
}

/// Connects to the service at a socket; without one, to the default socket.
fn connect(socket: Option<&Path>) -> Result<Client, Exit> {
    let socket = socket.map_or_else(default_socket, Path::to_owned);
    Client::connect(&socket).map_err(|error| failure(&error))
}

/// Refusals are errors of the input; all others are failures.
fn failure(error: &Error) -> Exit {
    match error {
        Error::Refused(_) | Error::NotLocated(_) => Exit::input(error),
        _ => Exit::failed(error),
    }
}
