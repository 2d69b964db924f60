//! `headtime scan`: reads every block of a live volume in the gaps of its drive, and hands them to a
//! program or a checksum.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use server::config::Places;
use server::control::protocol::{Ask, DriveTasks};
use server::control::{self, AskError, Scan, Sink};
use server::status::{Task, TaskState};

use crate::output::{Failure, grouped, print};

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The volume, as the service's configuration calls it
    #[arg(value_name = "VOLUME")]
    volume: String,
    /// Among scans, 0 is looked for first
    #[arg(long, value_name = "N", default_value_t = 0)]
    priority: u8,
    /// In how many seconds it should be done
    #[arg(long, value_name = "S")]
    deadline: Option<u64>,
    /// Begin it and do not wait for its end; `headtime ctl tasks` shows it
    #[arg(long)]
    detach: bool,
    /// Print the task as JSON when it has ended
    #[arg(long)]
    json: bool,
    /// The service's control socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// A program that gets the blocks, in the order in which they are read: a line with offset and
    /// length in bytes, then the bytes, again and again; without it a checksum is made
    #[arg(long, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true)]
    command: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// If nobody answers, the service refuses, or the scan is given up.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let usual = || Places::of_this_user(Path::new("")).control_socket();
    let socket = arguments.socket.clone().unwrap_or_else(usual);
    let order = Scan {
        volume: arguments.volume.clone(),
        priority: arguments.priority,
        deadline_s: arguments.deadline,
        sink: match arguments.command.is_empty() {
            true => Sink::Checksum,
            false => Sink::Command(arguments.command.clone()),
        },
    };
    let begun = ask(&socket, &Ask::Scan(order))?;
    let number = begun["task"].as_u64().ok_or_else(|| {
        Failure::failed("an answer without a task: expected a service of this version")
    })?;
    if arguments.detach {
        return print(&format!("task {number}\n"));
    }
    let task = followed(&socket, number)?;
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&task).map_err(Failure::failed)? + "\n",
        false => report(&task),
    };
    print(&text)?;
    match task.state {
        TaskState::Aborted => Err(Failure::failed("the scan was given up")),
        _ => Ok(()),
    }
}

fn ask(socket: &Path, ask: &Ask) -> Result<serde_json::Value, Failure> {
    control::ask(socket, ask).map_err(|error| match error {
        AskError::Refused(_) => Failure::input(error),
        _ => Failure::failed(error),
    })
}

/// Waits for a task's end, showing how far it is.
fn followed(socket: &Path, number: u64) -> Result<Task, Failure> {
    let target = ProgressDrawTarget::stderr_with_hz(4);
    let bar = ProgressBar::with_draw_target(Some(1), target);
    let template = "{prefix} {bar:30} {bytes} of {total_bytes} {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    loop {
        let tasks = ask(socket, &Ask::Tasks)?;
        let drives: Vec<DriveTasks> = serde_json::from_value(tasks).map_err(Failure::failed)?;
        let mut tasks = drives.into_iter().flat_map(|drive| drive.tasks);
        let Some(task) = tasks.find(|task| task.id == number) else {
            return Err(Failure::failed(format!("task {number} is gone")));
        };
        bar.set_prefix(task.name.clone());
        bar.set_length(task.asked_bytes);
        bar.set_position(task.done_bytes);
        bar.set_message(format!("at {:.2} MB/s", task.mb_per_s));
        if task.outcome.is_some() {
            bar.finish_and_clear();
            return Ok(task);
        }
        thread::sleep(LOOK_AGAIN);
    }
}

fn report(task: &Task) -> String {
    let mut text = format!(
        "{}: {} of {} bytes read, {} in gaps, {} in idle time\n",
        task.name,
        grouped(task.done_bytes),
        grouped(task.asked_bytes),
        grouped(task.free_bytes),
        grouped(task.idle_bytes)
    );
    if task.failed_bytes > 0 {
        text += &format!(
            "{} bytes lie in reads that failed\n",
            grouped(task.failed_bytes)
        );
    }
    if let Some(outcome) = &task.outcome {
        text += &format!("{outcome}\n");
    }
    text
}

/// How often the service is asked. A choice.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

const EXAMPLES: &str = "Examples:
  headtime scan disk
  headtime scan disk --detach; headtime ctl tasks
  headtime scan disk --command ./copy-blocks /backup/disk.img";
