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

use crate::output::width::{self, FittedTable};
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
    let titles = [
        "drive", "export", "name", "mode", "bytes/s", "memory", "standing", "at once", "waited",
        "late", "lapsed",
    ];
    let mut table = FittedTable::default();
    table.push(format!("{:>6}", "stream"), cells(titles.map(str::to_owned)));
    for stream in streams {
        let figures = [
            stream.drive.clone(),
            stream.terms.export.clone().unwrap_or_default(),
            stream.terms.name.clone(),
            stream.terms.mode.name().to_owned(),
            grouped(stream.terms.rate),
            grouped(stream.terms.memory.unwrap_or(0)),
            stream.standing.name().to_owned(),
            stream.from_memory_total.to_string(),
            stream.waited_total.to_string(),
            stream.late_total.to_string(),
            stream.lapsed_total.to_string(),
        ];
        table.push(format!("{:>6}", stream.stream), cells(figures));
    }
    table.text(width::of_terminal())
}

/// The cells of a row, each as wide as its column.
fn cells(texts: [String; 11]) -> Vec<String> {
    let [
        drive,
        export,
        name,
        mode,
        rate,
        memory,
        standing,
        at_once,
        waited,
        late,
        lapsed,
    ] = texts;
    vec![
        format!("  {drive:<12}"),
        format!(" {export:<12}"),
        format!(" {name:<16}"),
        format!(" {mode:<11}"),
        format!(" {rate:>12}"),
        format!(" {memory:>12}"),
        format!("  {standing:<8}"),
        format!(" {at_once:>10}"),
        format!(" {waited:>8}"),
        format!(" {late:>6}"),
        format!(" {lapsed:>7}"),
    ]
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
