//! `headtime ctl`: inspects and controls a running service.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use document::quantity::Unit;
use headtime_client::{Listed, default_socket};
use server::control::Changes;
use server::control::protocol::{Ask, BegunDrain, DriveTasks};
use server::diagnosis::{of_status, too_late_to_judge};
use server::status::{self, HeadKind, Status};
use server::tasks::Steer;

use crate::output::{self, Exit, grouped, micros};
use crate::service::{asked, understood};
use crate::settings::units::in_unit;
use crate::streams;

mod checkpoint;
mod learn;
mod mirrors;
pub(crate) mod progress;
mod scrubs;
mod task;
mod watch;

use checkpoint::{BitmapArgs, CheckpointArgs};
use learn::LearnArgs;
use mirrors::describe_mirror;
use scrubs::describe_scrub;
use task::TaskArgs;

/// Inspect and control a running service
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct CtlArgs {
    /// The service's control socket [default: control.sock in $XDG_RUNTIME_DIR/headtime or
    /// /tmp/headtime-UID, else that of the only systemd service]
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: CtlAction,
}

const EXAMPLE: &str = "Examples:
  headtime ctl status
  headtime ctl promote 3 --priority 0
  headtime ctl impact disk 0.5
  headtime ctl --socket /run/headtime/control.sock --json tasks | jq '.[].tasks[].done_bytes'";

#[derive(Debug, Subcommand)]
enum CtlAction {
    /// Drives, rates, latencies, head time and connections
    #[command(
        after_help = "Examples:\n  headtime ctl status\n  headtime ctl status --watch=5 --json | jq .drives[0].mode"
    )]
    Status {
        /// Print it again every so many seconds, until Ctrl-C or the end of the service. With --json, a line each time
        #[arg(
            long,
            value_name = "S",
            num_args = 0..=1,
            require_equals = true,
            default_missing_value = "1",
            value_parser = watch::seconds
        )]
        watch: Option<f64>,
    },
    /// Background tasks and their progress
    #[command(after_help = "Example:\n  headtime ctl tasks --json")]
    Tasks,
    /// Begin a task over a declared set of blocks
    Task(TaskArgs),
    /// Checkpoints: moments of volumes, readable over NBD
    Checkpoint(CheckpointArgs),
    /// Dirty bitmaps: what was changed since a checkpoint
    Bitmap(BitmapArgs),
    /// Guaranteed streams and their status
    #[command(after_help = "Example:\n  headtime ctl streams")]
    Streams,
    /// Suspend a task. Blocks that clients read still count as done
    #[command(after_help = "Example:\n  headtime ctl suspend 3")]
    Suspend {
        /// The task's number
        task: u64,
    },
    /// Resume a suspended task
    #[command(after_help = "Example:\n  headtime ctl resume 3")]
    Resume {
        /// The task's number
        task: u64,
    },
    /// Abort a task
    #[command(after_help = "Example:\n  headtime ctl abort 3")]
    Abort {
        /// The task's number
        task: u64,
    },
    /// Change the priority of a task, or let its reads take turns with the foreground
    #[command(
        after_help = "Examples:\n  headtime ctl promote 3 --priority 0\n  headtime ctl promote 3 --foreground"
    )]
    Promote {
        /// The task's number
        task: u64,
        /// The priority. Tasks of priority 0 are served first
        #[arg(long, value_name = "N", default_value_t = 0)]
        priority: u8,
        /// A client waits for the task: a read of it after each command of the foreground, at a cost that `impact` does not count
        #[arg(long, conflicts_with = "priority")]
        foreground: bool,
    },
    /// Set the impact budget of background tasks, until a restart or a reload with another value
    #[command(after_help = "Example:\n  headtime ctl impact disk 0.5")]
    Impact {
        /// The drive's name in the configuration
        drive: String,
        /// The permitted increase of the mean response time, in percent, 0 to 100
        #[arg(value_parser = in_unit(Unit::Percent))]
        percent: f64,
    },
    /// Profile a drive without a belief while it serves: in idle time, and in a granted share of the time; then
    /// follow the profile, without a restart. It is
    /// only read
    Profile(LearnArgs),
    /// Reload the configuration. Clients stay connected
    #[command(after_help = "Example:\n  headtime ctl reload")]
    Reload,
    /// Refuse new connections, finish outstanding requests, and stop
    #[command(after_help = "Example:\n  headtime ctl drain")]
    Drain,
    /// Stop at once
    #[command(after_help = "Example:\n  headtime ctl stop")]
    Stop,
}

impl CtlAction {
    fn ask(&self) -> Result<Ask, Exit> {
        let steer = |task, action| Ask::Steer { task, action };
        Ok(match *self {
            CtlAction::Status { .. } => Ask::Status,
            CtlAction::Tasks => Ask::Tasks,
            CtlAction::Streams => Ask::Streams,
            CtlAction::Checkpoint(ref checkpoint) => checkpoint.ask(),
            CtlAction::Bitmap(ref bitmap) => bitmap.ask(),
            CtlAction::Suspend { task } => steer(task, Steer::Suspend),
            CtlAction::Resume { task } => steer(task, Steer::Resume),
            CtlAction::Abort { task } => steer(task, Steer::Abort),
            CtlAction::Task(ref task) => task.ask()?,
            CtlAction::Promote {
                task,
                foreground: true,
                ..
            } => steer(task, Steer::Hasten),
            CtlAction::Promote { task, priority, .. } => steer(task, Steer::Promote { priority }),
            CtlAction::Impact { ref drive, percent } => Ask::Impact {
                drive: drive.clone(),
                impact_ppm: parts_per_million(percent)?,
            },
            CtlAction::Profile(ref learn) => learn.ask()?,
            CtlAction::Reload => Ask::Reload,
            CtlAction::Drain => Ask::Drain,
            CtlAction::Stop => Ask::Stop,
        })
    }
}

fn parts_per_million(percent: f64) -> Result<u32, Exit> {
    match percent {
        0.0..=100.0 => Ok((percent * 1e4).round() as u32),
        _ => Err(Exit::input(format!(
            "an impact of {percent} %: expected 0 to 100"
        ))),
    }
}

/// Sends the command, and prints the answer.
///
/// # Errors
/// If no service listens on the socket, or the service refuses.
pub fn run(arguments: &CtlArgs) -> Result<(), Exit> {
    let socket = arguments.socket.clone().unwrap_or_else(default_socket);
    let format = match arguments.json {
        true => Format::Json,
        false => Format::Text,
    };
    if let CtlAction::Profile(learn) = &arguments.action {
        return learn.run(&socket, format);
    }
    if let CtlAction::Status {
        watch: Some(seconds),
    } = arguments.action
    {
        return watch::run(&socket, seconds, format);
    }
    let outcome = asked(&socket, &arguments.action.ask()?)?;
    if arguments.json {
        return output::print_answer(&format!("{outcome:#}\n"));
    }
    let text = match &arguments.action {
        CtlAction::Checkpoint(checkpoint) => checkpoint.describe(&socket, outcome)?,
        CtlAction::Bitmap(bitmap) => bitmap.describe(&socket, outcome)?,
        CtlAction::Status { .. } => describe(&understood::<Status>(&socket, outcome)?),
        CtlAction::Tasks => {
            let tasks: Vec<DriveTasks> = understood(&socket, outcome)?;
            progress::list(&tasks, &understood(&socket, asked(&socket, &Ask::Status)?)?)
        }
        CtlAction::Streams => streams::table(&understood::<Vec<Listed>>(&socket, outcome)?),
        CtlAction::Task(_) => task::begun(&outcome),
        CtlAction::Reload => report(&understood::<Changes>(&socket, outcome)?),
        CtlAction::Drain => drained(&understood(&socket, outcome)?),
        CtlAction::Stop => String::from("stopping\n"),
        CtlAction::Impact { drive, percent } => {
            let status: Status = understood(&socket, asked(&socket, &Ask::Status)?)?;
            let named = status.drives.iter().find(|one| one.name == *drive);
            format!(
                "{drive}: background tasks may lengthen the foreground by {percent} %, until a restart or a reload{}\n",
                named.map_or_else(String::new, not_judged)
            )
        }
        CtlAction::Suspend { task } => {
            format!("task {task} is suspended: `headtime ctl resume {task}` goes on with it\n")
        }
        CtlAction::Resume { task } => format!("task {task} goes on\n"),
        CtlAction::Abort { task } => format!("task {task} is aborted\n"),
        CtlAction::Promote {
            task,
            foreground: true,
            ..
        } => format!("task {task} takes turns with the foreground\n"),
        CtlAction::Promote { task, priority, .. } => {
            format!("task {task} has priority {priority}\n")
        }
        CtlAction::Profile(_) => String::new(),
    };
    output::print_fitted(&text)
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// What a drain waits for.
fn drained(begun: &BegunDrain) -> String {
    let waits = begun.waits_for.iter().map(|device| {
        format!("it waits for {device}: `umount` it first; `headtime ctl stop` loses what is in its page cache\n")
    });
    let text = String::from("draining: it stops when what was begun has ended\n");
    waits.fold(text, |text, line| text + &line)
}

fn describe(status: &Status) -> String {
    let state = match status.state {
        status::ServiceState::Starting => "starting",
        status::ServiceState::Serving => "serving",
        status::ServiceState::Draining => "draining",
        status::ServiceState::Stopping => "stopping",
    };
    let mut text = format!(
        "{state} for {:.0} s, version {}, {} connected\n",
        status.uptime_s,
        status.version,
        status.connections.len()
    );
    let mut findings = of_status(status);
    findings.sort_by_key(|finding| finding.severity);
    for finding in &findings {
        text += &format!(
            "{}: {}: {}; {} (headtime doctor)\n",
            finding.severity, finding.about, finding.what, finding.action
        );
    }
    for drive in &status.drives {
        text += &describe_drive(drive);
    }
    if !status.scrubs.is_empty() {
        text += "\nchecksums:\n";
        text += &status.scrubs.iter().map(describe_scrub).collect::<String>();
    }
    for client in &status.connections {
        text += &format!(
            "\nconnection {}: {} from {} to {} ({}), {} in flight, {} requests\n",
            client.id,
            client.front,
            client.peer,
            client.export,
            client.class.name(),
            client.in_flight,
            grouped(client.requests_total),
        );
    }
    text
}

fn describe_drive(drive: &status::DriveStatus) -> String {
    let model = drive
        .model
        .as_deref()
        .map_or_else(String::new, |model| format!(" {model}"));
    let scale = drive
        .time_scale
        .map_or_else(String::new, |scale| format!(" at time scale {scale}"));
    let mut text = format!(
        "\n{}: {}{model}{scale}, {}\n",
        drive.name, drive.back_end, drive.policy
    );
    text += &format!(
        "  mode         {}: {}\n",
        drive.mode.title(),
        drive.mode_reason
    );
    text += &format!(
        "  queue        {} waiting, {} at the drive\n",
        drive.queue.waiting, drive.queue.at_drive
    );
    text += &drive
        .traffic
        .iter()
        .map(describe_traffic)
        .collect::<String>();
    text += &drive
        .mirror
        .as_ref()
        .map_or_else(String::new, describe_mirror);
    let second = &drive.head_time.second_us;
    let all: u64 = HeadKind::ALL.iter().map(|kind| second.of(*kind)).sum();
    let share = |kind: &HeadKind| {
        let percent = second.of(*kind) as f64 * 100.0 / all.max(1) as f64;
        format!("{} {percent:.1} %", kind.name())
    };
    let shares: Vec<String> = HeadKind::ALL.iter().map(share).collect();
    text += &format!("  head time    {}\n", shares.join(", "));
    text += &describe_impact(drive);
    if let Some(late) = drive.lateness {
        text += &format!(
            "  lateness     p50 {}, p99 {}, at most {}\n",
            micros(late.p50_us),
            micros(late.p99_us),
            micros(late.max_us)
        );
    }
    text += &(describe_errors(drive.errors) + &describe_heads(drive.heads.as_ref()));
    text += &describe_streams(&drive.streams);
    text += &drive
        .classified
        .iter()
        .map(describe_classified)
        .collect::<String>();
    text += &drive
        .standing
        .iter()
        .map(describe_standing)
        .collect::<String>();
    let tasks = drive.tasks.iter();
    let tasks = tasks.map(|task| format!("  {}", progress::described(task)));
    text + &tasks.collect::<String>()
}

fn describe_impact(drive: &status::DriveStatus) -> String {
    let impact = match drive.impact.measured_percent {
        Some(percent) => format!("{percent:.2} %"),
        None => String::from("not measured"),
    };
    format!(
        "  impact       {impact} of {:.2} %, over about the last 5,000 requests{}\n",
        drive.impact.budget_percent,
        not_judged(drive)
    )
}

/// That an impact cannot be judged, if so.
fn not_judged(drive: &status::DriveStatus) -> String {
    let late = too_late_to_judge(drive);
    late.map_or_else(String::new, |late| {
        format!("; this machine is too late to judge it: {late}")
    })
}

fn describe_traffic(traffic: &status::Traffic) -> String {
    let mut text = format!(
        "  {:<12} read {:.1} MB/s {:.0}/s, write {:.1} MB/s {:.0}/s",
        traffic.class.name(),
        traffic.read.mb_per_s,
        traffic.read.requests_per_s,
        traffic.write.mb_per_s,
        traffic.write.requests_per_s,
    );
    if let Some(latency) = traffic.latency {
        let ms = |us: f64| us / 1000.0;
        text += &format!(
            "; p50 {:.2} p95 {:.2} p99 {:.2} p99.9 {:.2} ms",
            ms(latency.p50_us),
            ms(latency.p95_us),
            ms(latency.p99_us),
            ms(latency.p999_us),
        );
    }
    text + "\n"
}

fn describe_errors(errors: status::Errors) -> String {
    format!(
        "  errors       {} reads, {} writes, {} flushes\n",
        errors.reads_total, errors.writes_total, errors.flushes_total
    )
}

fn describe_heads(heads: Option<&status::HeadComparison>) -> String {
    let Some(heads) = heads.filter(|heads| heads.compared_total > 0) else {
        return String::new();
    };
    let slow = heads.slow.iter().map(|slow| {
        let longer = slow.slower_percent;
        format!(
            "; head {} is slow: its reads take {longer:.1} % longer",
            slow.head
        )
    });
    format!(
        "  heads        {} of {} compared reads late, which took {:.2} % more time{}\n",
        grouped(heads.late_total),
        grouped(heads.compared_total),
        heads.lost_percent,
        slow.collect::<String>()
    )
}

fn describe_streams(streams: &status::StreamTotals) -> String {
    if streams.granted_total + streams.refused_total == 0 {
        return String::new();
    }
    let strained = match streams.strained {
        true => "; the drive is slower than when these were granted: no others",
        false => "",
    };
    let percent = |ppm: u64| ppm as f64 / 1e4;
    format!(
        "  streams      {} now, {} granted, {} refused, {} late, {} lapsed; at worst they take {:.1} % of the head time, and \
         {:.1} % are left for more{strained}\n",
        streams.now,
        streams.granted_total,
        streams.refused_total,
        streams.late_total,
        streams.lapsed_total,
        percent(streams.head_ppm),
        percent(streams.left_ppm)
    )
}

fn describe_classified(export: &status::Classified) -> String {
    let devices = match &export.problem {
        Some(problem) => problem.clone(),
        None => export.devices.join(", "),
    };
    format!(
        "  classified   {} over {devices}: {} by priority, {} unmatched, {} lost events\n",
        export.export,
        grouped(export.requests_total),
        grouped(export.unmatched_total),
        grouped(export.lost_events_total)
    )
}

fn describe_standing(task: &status::Standing) -> String {
    let failed = match task.failed_bytes_total {
        0 => String::new(),
        bytes => format!(", {} could not be read", grouped(bytes)),
    };
    format!(
        "  {:<12} {} bytes wanted, {} read in free time, {} in idle time{failed}; {} satisfied, {} dropped\n",
        task.name,
        grouped(task.wanted_bytes),
        grouped(task.free_bytes_total),
        grouped(task.idle_bytes_total),
        grouped(task.satisfied_bytes_total),
        grouped(task.dropped_bytes_total)
    )
}

fn report(changes: &Changes) -> String {
    let mut text = String::new();
    for change in &changes.applied {
        text += &format!("now: {change}\n");
    }
    for change in &changes.after_restart {
        text += &format!("after a restart: {change}\n");
    }
    match text.is_empty() {
        true => String::from("nothing has changed\n"),
        false => text,
    }
}
