//! `headtime scan`: reads every block of a live volume in the gaps of its drive, for a program or a
//! checksum.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use document::quantity::Unit;
use headtime_client::default_socket;
use indicatif::{ProgressBar, ProgressStyle};
use server::control::protocol::{Ask, DriveTasks};
use server::control::{Conversation, Scan, ScanState, Sink, TaskLifetime};
use server::diagnosis::{of_status, why_stuck};
use server::status::{DriveStatus, Foreground, Status, Task, TaskState};
use server::tasks::Steer;

use crate::bar::ProgressLines;
use crate::interrupt::StopSignal;
use crate::output::{Exit, grouped, note, print_answer, time_left};
use crate::service::{failure, understood};
use crate::settings::units::{MOST_SECONDS, whole_in, within};
use crate::verbosity::bar_target;

/// The arguments of `headtime scan`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ScanArgs {
    /// The volume's name in the service's configuration
    #[arg(value_name = "VOLUME")]
    volume: String,
    /// The priority among scans. Scans of priority 0 are served first
    #[arg(long, value_name = "N", default_value_t = 0)]
    priority: u8,
    /// Seconds until the scan should be done
    #[arg(long, value_name = "S", value_parser = whole_in::<u64>(Unit::Seconds, 0..=MOST_SECONDS))]
    deadline: Option<u64>,
    /// The most that the scan takes, in MB/s
    #[arg(long, value_name = "MB/S", value_parser = pace())]
    pace: Option<f64>,
    /// The service stores the progress in this file. After a stop or a crash the same command
    /// continues. The service deletes the file at the end
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Shortest time between two writes of that file, in seconds. Blocks read since are read again
    /// after a crash
    #[arg(long, value_name = "S", default_value_t = 10, requires = "state", value_parser = whole_in::<u64>(Unit::Seconds, 0..=MOST_SECONDS))]
    save_every: u64,
    /// Start the scan and return; `headtime ctl tasks` shows it. Otherwise the scan ends with this
    /// command
    #[arg(long)]
    detach: bool,
    /// Print the finished task as JSON
    #[arg(long)]
    json: bool,
    /// The service's control socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// A program that receives the blocks in the order of their reads, instead of a checksum. Each
    /// block has a header line with offset and length in bytes, then the bytes. With --state the
    /// program confirms a processed block by printing its header line
    #[arg(long, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true)]
    command: Vec<String>,
    /// A file that receives the volume instead: its bytes, and behind them a bit for each block that has come
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    into: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// If no service listens on the socket, the service refuses, or the scan is aborted.
pub fn run(arguments: &ScanArgs) -> Result<(), Exit> {
    let socket = arguments.socket.clone().unwrap_or_else(default_socket);
    let mut service = Conversation::begin(&socket).map_err(failure)?;
    let begun = service
        .ask(&Ask::Scan(order(arguments)?))
        .map_err(failure)?;
    let number = begun["task"].as_u64().ok_or_else(|| {
        Exit::failed("an answer without a task: expected a service of this version")
    })?;
    if arguments.detach {
        return print_answer(&format!("task {number}\n"));
    }
    if !arguments.json {
        note(&states(&socket, &mut service, number)?);
    }
    let stop = StopSignal::on_signals()?;
    let task = followed((&mut service, &socket), number, &stop)?;
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&task).map_err(Exit::failed)? + "\n",
        false => report(&task),
    };
    print_answer(&text)?;
    match (&task.problem, task.state) {
        // That its program was ended with it is no problem of an interrupted scan.
        (Some(_), TaskState::Aborted) if stop.is_asked() => Err(given_up(arguments, &task, &stop)),
        (Some(problem), _) => Err(Exit::failed(format!("scan: {problem}"))),
        (None, TaskState::Aborted) => Err(given_up(arguments, &task, &stop)),
        (None, _) => Ok(()),
    }
}

/// What a scan says that somebody has ended: by a signal here, or by `headtime ctl abort`.
fn given_up(arguments: &ScanArgs, task: &Task, stop: &StopSignal) -> Exit {
    let percent = task.done_bytes as f64 * 100.0 / task.asked_bytes.max(1) as f64;
    let next = match &arguments.state {
        Some(file) => format!(
            "the same command goes on from there ({} has what was read)",
            file.display()
        ),
        None => String::from(
            "the same command begins again; with --state FILE it would go on from there, and with --detach the \
             service goes on without this command",
        ),
    };
    match stop.is_asked() {
        true => Exit::verdict(
            stop.exit_code(),
            format!("the scan was interrupted at {percent:.1} %: {next}"),
        ),
        false => Exit::failed(format!("the scan was given up at {percent:.1} %: {next}")),
    }
}

fn order(arguments: &ScanArgs) -> Result<Scan, Exit> {
    Ok(Scan {
        volume: arguments.volume.clone(),
        set: None,
        priority: arguments.priority,
        deadline_s: arguments.deadline,
        pace_bytes_s: bytes_s(arguments.pace),
        sink: sink(&arguments.command, arguments.into.as_deref())?,
        state: state(arguments.state.as_deref(), arguments.save_every)?,
        lifetime: match arguments.detach {
            true => TaskLifetime::Detached,
            false => TaskLifetime::Connection,
        },
    })
}

/// The argument of `--pace`, in megabytes a second: from a megabyte in a quarter of an hour to more than any drive reads.
pub fn pace() -> impl Fn(&str) -> Result<f64, String> + Clone {
    within(Unit::MegabytesPerSecond, 0.001..=100_000.0)
}

/// Bytes a second of a pace.
pub fn bytes_s(pace: Option<f64>) -> Option<u64> {
    pace.map(|megabytes| (megabytes * 1e6) as u64)
}

/// The receiver of a task's blocks: a checksum without a program or a file.
///
/// # Errors
/// If the path is empty.
pub fn sink(command: &[String], into: Option<&Path>) -> Result<Sink, Exit> {
    match (command.is_empty(), into) {
        (true, None) => Ok(Sink::Checksum),
        (false, _) => Ok(Sink::Command(command.to_vec())),
        (true, Some(file)) => whole_path(file).map(Sink::Buffer),
    }
}

/// # Errors
/// If the path is empty.
fn whole_path(file: &Path) -> Result<PathBuf, Exit> {
    std::path::absolute(file).map_err(|error| Exit::input(format!("{}: {error}", file.display())))
}

/// The state file of a task, by its whole path.
///
/// # Errors
/// If the path is empty.
pub fn state(file: Option<&Path>, every_s: u64) -> Result<Option<ScanState>, Exit> {
    let file = file.map(whole_path).transpose()?;
    Ok(file.map(|file| ScanState { file, every_s }))
}

/// Waits for a task's end, and shows its progress. A signal aborts the task, and the end comes soon.
fn followed(
    (service, socket): (&mut Conversation, &Path),
    number: u64,
    stop: &StopSignal,
) -> Result<Task, Exit> {
    let mut is_aborted = false;
    let target = bar_target(4);
    let bar = ProgressBar::with_draw_target(Some(1), target);
    let template = "{prefix} {bar:30} {bytes} of {total_bytes} {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let _lines = ProgressLines::of(&bar);
    loop {
        if stop.is_asked() && !is_aborted {
            let abort = Ask::Steer {
                task: number,
                action: Steer::Abort,
            };
            // One that has ended in this moment is no longer under way.
            drop(service.ask(&abort));
            is_aborted = true;
        }
        let tasks = service.ask(&Ask::Tasks).map_err(failure)?;
        let drives: Vec<DriveTasks> = understood(socket, tasks)?;
        let mut tasks = drives.into_iter().flat_map(|drive| drive.tasks);
        let Some(task) = tasks.find(|task| task.id == number) else {
            return Err(Exit::failed(format!("task {number} is gone")));
        };
        bar.set_prefix(task.name.clone());
        bar.set_length(task.asked_bytes);
        bar.set_position(task.done_bytes);
        let eta = task.eta_s.map(|eta| format!(", {} left", time_left(eta)));
        let eta = eta.unwrap_or_default();
        let stuck = match task.mb_per_s == 0.0 {
            true => stuck(service, socket, number)?,
            false => String::new(),
        };
        bar.set_message(format!("at {:.2} MB/s{eta}{stuck}", task.mb_per_s));
        if task.outcome.is_some() || task.problem.is_some() {
            bar.finish_and_clear();
            return Ok(task);
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// What is to be known of the task's drive before its rate is understood: safe mode, learning, over budget, late.
fn states(socket: &Path, service: &mut Conversation, number: u64) -> Result<String, Exit> {
    let status: Status = understood(socket, service.ask(&Ask::Status).map_err(failure)?)?;
    let Some((drive, _)) = task_of(&status, number) else {
        return Ok(String::new());
    };
    let about = format!("drive {}", drive.name);
    let findings = of_status(&status).into_iter();
    let lines = findings
        .filter(|finding| finding.about == about)
        .map(|finding| {
            format!(
                "{}: {about}: {}; {}\n",
                finding.severity, finding.what, finding.action
            )
        });
    Ok(lines.collect())
}

/// Why a task reads nothing, if it has read nothing for a while.
fn stuck(service: &mut Conversation, socket: &Path, number: u64) -> Result<String, Exit> {
    let status: Status = understood(socket, service.ask(&Ask::Status).map_err(failure)?)?;
    let reason = task_of(&status, number).and_then(|(drive, task)| why_stuck(task, drive));
    Ok(reason.map_or_else(String::new, |reason| format!(": {reason}")))
}

/// A task, and its drive.
fn task_of(status: &Status, number: u64) -> Option<(&DriveStatus, &Task)> {
    let mut drives = status.drives.iter();
    drives.find_map(|drive| {
        let task = drive.tasks.iter().find(|task| task.id == number)?;
        Some((drive, task))
    })
}

fn report(task: &Task) -> String {
    let here = task.done_bytes.saturating_sub(task.resumed_bytes);
    let mut text = format!(
        "{}: {} of {} bytes read, {} in gaps, {} in idle time\n",
        task.name,
        grouped(task.done_bytes),
        grouped(task.asked_bytes),
        grouped(task.free_bytes),
        grouped(task.idle_bytes)
    );
    if task.resumed_bytes > 0 {
        text += &format!("{} of them before\n", grouped(task.resumed_bytes));
    }
    if task.elapsed_s > 0.0 {
        let rate = here as f64 / 1e6 / task.elapsed_s;
        text += &format!("{rate:.2} MB/s over {:.1} s\n", task.elapsed_s);
    }
    if task.failed_bytes > 0 {
        text += &format!(
            "{} bytes lie in reads that failed\n",
            grouped(task.failed_bytes)
        );
    }
    text += &foreground(task);
    match (&task.outcome, task.state) {
        (Some(outcome), TaskState::Aborted) => text += &format!("up to there: {outcome}\n"),
        (Some(outcome), _) => text += &format!("{outcome}\n"),
        (None, _) => (),
    }
    text
}

/// The effect of the scan on the foreground.
fn foreground(task: &Task) -> String {
    let Some(beside) = &task.impact.beside else {
        return "no foreground request came meanwhile\n".to_owned();
    };
    let described = |which: &str, of: &Foreground| {
        format!(
            "foreground {which}: mean {:.2} ms, p99 {:.2} ms, {} requests\n",
            of.mean_us / 1e3,
            of.p99_us / 1e3,
            grouped(of.requests)
        )
    };
    let mut text = described("beside it", beside);
    match &task.impact.alone {
        Some(alone) => text += &described("in the minutes before", alone),
        None => text += "no foreground request came in the minutes before\n",
    }
    if let Some(percent) = task.impact.measured_percent {
        text += &format!(
            "of its time since the scan began {percent:.2} % are owed to background reads, as measured\n"
        );
    }
    text
}

/// Interval of status queries. A choice.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

const EXAMPLES: &str = "Examples:
  headtime scan disk
  headtime scan disk --detach; headtime ctl tasks; headtime ctl impact disk 0.5
  headtime scan disk --state disk.scan
  headtime scan disk --command ./copy-blocks /backup/disk.img

The same command with the same --state continues a scan that was stopped. The program receives each
block once, except after a crash: blocks since the last write of the file come again. A program that
exits with 0 has processed all of its blocks. A scan is no snapshot: it reads each block once, and
later writes do not change that. Unreadable blocks stay in the file for the next attempt. Ctrl-C ends
the scan and prints what it has read.";
