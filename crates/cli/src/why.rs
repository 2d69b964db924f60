//! `headtime why`: the time of a service's slow requests, by cause.
//!
//! `headtime simulate --why` prints the same report.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use headtime_client::default_socket;
use server::control::protocol::Ask;
use server::diagnosis::too_late_to_judge;
use server::status::Status;
use server::why::{Command, How, InDrive, Query, Slow};

use crate::output::{Exit, grouped, print_answer};
use crate::service::{asked, understood};

/// The arguments of `headtime why`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WhyArgs {
    /// The number of a request [default: the slowest of the last minutes]
    #[arg(value_name = "REQUEST")]
    request: Option<u64>,
    /// Only requests of this export
    #[arg(long, value_name = "NAME")]
    export: Option<String>,
    /// Number of requests, the slowest first
    #[arg(long, value_name = "N", default_value_t = 3, conflicts_with = "request", value_parser = clap::value_parser!(u32).range(1..))]
    slowest: u32,
    /// The service's control socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime why
  headtime why --export db --slowest 10
  headtime why 1841 --json

The service keeps the 16 slowest requests of each export for 5 to 10 minutes. Times are the drive's:
with a time scale of 4, one second of the drive takes four. They begin when the service accepts the
request, and exclude the connection. The phases inside the drive follow the belief. Only dispatch
and completion times are measured, on emulated drives too.";

/// Queries the service, and prints the answer.
///
/// # Errors
/// If no service listens on the socket, or it holds none of these requests.
pub fn run(arguments: &WhyArgs) -> Result<(), Exit> {
    let socket = arguments.socket.clone().unwrap_or_else(default_socket);
    let query = Query {
        export: arguments.export.clone(),
        slowest: arguments.request.is_none().then_some(arguments.slowest),
        request: arguments.request,
    };
    let outcome = asked(&socket, &Ask::Why(query))?;
    if arguments.json {
        return print_answer(&format!("{outcome:#}\n"));
    }
    let all: Vec<Slow> = understood(&socket, outcome)?;
    let mut texts: Vec<String> = all.iter().map(text).collect();
    let status: Status = understood(&socket, asked(&socket, &Ask::Status)?)?;
    texts.extend(late(&all, &status));
    print_answer(&texts.join("\n"))
}

/// Which drives of these requests were too late for their times to be judged.
fn late(all: &[Slow], status: &Status) -> Vec<String> {
    let drives = status.drives.iter();
    let drives = drives.filter(|drive| all.iter().any(|slow| slow.drive == drive.name));
    let late = drives.filter_map(|drive| {
        let late = too_late_to_judge(drive)?;
        let name = &drive.name;
        Some(format!(
            "drive {name}: this machine is too late to judge these times: {late}\n"
        ))
    });
    late.collect()
}

/// The report of one request.
pub fn text(slow: &Slow) -> String {
    let mut text = heading(slow);
    let parts = parts(slow);
    let most = parts
        .iter()
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .filter(|(us, _)| *us > 0.0);
    let _ = write!(text, "  {} ms in all", ms(slow.response_us));
    if let Some((us, what)) = most {
        let percent = us * 100.0 / slow.response_us.max(1e-3);
        let _ = write!(text, "; most of it, {percent:.0} %, it {what}");
    }
    text.push('\n');
    for (us, what) in &parts {
        if *us > 0.0 {
            let _ = writeln!(text, "  {:>10} ms  it {what}", ms(*us));
        }
    }
    in_drive(&mut text, &slow.in_drive);
    for (place, command) in slow.before.iter().enumerate() {
        let head = match place {
            0 => "first before it",
            1 => "and of the others",
            _ => "",
        };
        let _ = writeln!(text, "  {head:<18}{}", before(command));
    }
    text
}

fn heading(slow: &Slow) -> String {
    let mut text = format!("request {}", slow.request);
    if !slow.export.is_empty() {
        let _ = write!(text, " of export {} on {}", slow.export, slow.drive);
    }
    let size = size(slow.blocks * u64::from(slow.block_bytes));
    let _ = write!(
        text,
        ": {} of {size} at block {}, {}",
        slow.direction,
        grouped(slow.block),
        slow.class
    );
    let _ = match slow.ended_s_ago {
        Some(ago) => write!(text, ", ended {ago:.1} s ago"),
        None => write!(text, ", ended at {:.6} s", slow.at_s),
    };
    text += match slow.good {
        true => "\n",
        false => ", in failure\n",
    };
    text
}

/// The largest part of a request's time, and its share: `62 %: waited for priority: ...`.
pub fn most_of(slow: &Slow) -> Option<String> {
    let parts = parts(slow);
    let (us, what) = parts.iter().max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    let percent = us * 100.0 / slow.response_us.max(1e-3);
    Some(format!("{percent:.0} %: {what}"))
}

/// All waits with their time in us.
fn parts(slow: &Slow) -> Vec<(f64, String)> {
    let of = |how: How| slow.others.iter().find(|others| others.how == how);
    let mut parts = vec![
        (
            slow.outside_us,
            "waited outside: as many requests were held as may be".to_owned(),
        ),
        (
            slow.order_us,
            "waited for order: behind earlier requests with common blocks, or a barrier".to_owned(),
        ),
    ];
    let ways = [
        (How::MoreUrgent, "priority", "more urgent"),
        (How::AtDrive, HEAD_TIME, "at the drive when it came"),
        (How::AsUrgent, HEAD_TIME, "as urgent and chosen before"),
        (
            How::LessUrgent,
            HEAD_TIME,
            "less urgent: chosen before it came, under way, or out of patience",
        ),
        (How::Task, HEAD_TIME, "of background tasks"),
        (
            How::Upkeep,
            HEAD_TIME,
            "a flush, a read ahead, a stop of the arm, or to see where the platter is",
        ),
    ];
    for (how, what, which) in ways {
        if let Some(others) = of(how) {
            let many = commands(others.commands);
            parts.push((others.us, format!("waited for {what}: {many}, {which}")));
        }
    }
    parts.push((
        slow.held_back_us,
        "was held back on purpose: the drive had nothing to do".to_owned(),
    ));
    parts.push((
        slow.forgotten_us,
        "waited so long ago that nobody remembers what for".to_owned(),
    ));
    let many = commands(slow.in_drive.commands);
    parts.push((
        slow.in_drive.us,
        format!("was served by the drive, in {many}"),
    ));
    parts
}

const HEAD_TIME: &str = "others' head time";

fn commands(count: u32) -> String {
    match count {
        1 => "1 command".to_owned(),
        _ => format!("{count} commands"),
    }
}

fn in_drive(text: &mut String, drive: &InDrive) {
    if drive.unknown_us < drive.us {
        let _ = writeln!(
            text,
            "                 believed: electronics {}, seek {}, rotation {}, transfer {}, bus {} ms",
            ms(drive.believed_electronics_us),
            ms(drive.believed_seek_us),
            ms(drive.believed_rotation_us),
            ms(drive.believed_transfer_us),
            ms(drive.believed_bus_us),
        );
        let (late, word) = match drive.mispredicted_us < 0.0 {
            true => (-drive.mispredicted_us, "earlier"),
            false => (drive.mispredicted_us, "later"),
        };
        let _ = write!(
            text,
            "                 it ended {} ms {word} than believed",
            ms(late)
        );
        if drive.buffered > 0 {
            let _ = write!(text, "; the drive's buffer answered {}", drive.buffered);
        }
        text.push('\n');
    }
    if drive.unknown_us > 0.0 {
        let unknown = ms(drive.unknown_us);
        let _ = writeln!(text, "                 of {unknown} ms nothing is believed");
    }
}

/// A command that preceded the request.
fn before(command: &Command) -> String {
    let time = ms(command.us);
    let mut text = format!("{time:>10} ms  ");
    text += &match (command.whose.as_str(), command.blocks, command.block) {
        ("request", Some(blocks), Some(block)) => {
            let direction = command.direction.as_deref().unwrap_or("command");
            let at = grouped(block);
            format!("{direction} of {} blocks at {at}", grouped(blocks))
        }
        ("task", ..) => "a background task's read".to_owned(),
        ("read-ahead", ..) => "a read of what follows another".to_owned(),
        ("hop", ..) => "a stop of the arm on its way".to_owned(),
        ("calibration", ..) => "a read that told where the platter is".to_owned(),
        ("flush", ..) => "a flush".to_owned(),
        (other, ..) => other.to_owned(),
    };
    if let Some(export) = &command.export {
        let _ = write!(text, " of export {export}");
    }
    if let Some(class) = &command.class {
        let _ = write!(text, " ({class})");
    }
    let given = ms(command.given_us.abs());
    let _ = match command.given_us < 0.0 {
        true => write!(text, ", given to the drive {given} ms before it came"),
        false => write!(text, ", given to the drive {given} ms after it had come"),
    };
    text
}

fn ms(us: f64) -> String {
    format!("{:.3}", us / 1e3)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        _ if bytes.is_multiple_of(1024) => format!("{} KiB", grouped(bytes / 1024)),
        _ => format!("{} bytes", grouped(bytes)),
    }
}
