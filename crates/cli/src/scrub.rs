//! `headtime scrub`: verifies the checksums of a live volume in the gaps of its drive.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use document::quantity::Unit;
use headtime_client::default_socket;
use indicatif::{ProgressBar, ProgressStyle};
use server::checksums::report::{FindingKind, ScrubReport, ScrubState};
use server::checksums::schedule::SLICES;
use server::control::protocol::Ask;
use server::control::{ScrubBlocks, ScrubOrder};

use crate::bar::ProgressLines;
use crate::output::{Exit, grouped, note, print_answer};
use crate::service::{asked, understood};
use crate::settings::units::{MOST_SECONDS, whole_in};
use crate::verbosity::bar_target;

/// The arguments of `headtime scrub`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ScrubArgs {
    /// The volume's name in the service's configuration. It has the key `checksums`
    #[arg(value_name = "VOLUME")]
    volume: String,
    /// The priority among tasks. Tasks of priority 0 are served first
    #[arg(long, value_name = "N", default_value_t = 0)]
    priority: u8,
    /// Seconds until the scrub should be done
    #[arg(long, value_name = "S", value_parser = whole_in::<u64>(Unit::Seconds, 0..=MOST_SECONDS))]
    deadline: Option<u64>,
    /// Verify only what the volume's file system uses: ext4, XFS or btrfs from the volume's first byte
    /// on, not mounted
    #[arg(long, conflicts_with = "status")]
    used: bool,
    /// Start the scrub and return
    #[arg(long, conflicts_with = "status")]
    detach: bool,
    /// Start no scrub: print the present or last one since the service began
    #[arg(long)]
    status: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// The service's control socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// If no service listens on the socket, the service refuses, the scrub is given up, or something is damaged.
pub fn run(arguments: &ScrubArgs) -> Result<(), Exit> {
    let socket = arguments.socket.clone().unwrap_or_else(default_socket);
    if !arguments.status {
        let order = ScrubOrder {
            volume: arguments.volume.clone(),
            priority: arguments.priority,
            deadline_s: arguments.deadline,
            blocks: match arguments.used {
                true => ScrubBlocks::Used,
                false => ScrubBlocks::All,
            },
        };
        asked(&socket, &Ask::Scrub(order))?;
    }
    if arguments.detach {
        return match arguments.used {
            true => has_map(&socket, &arguments.volume),
            false => Ok(()),
        };
    }
    if !arguments.status && io::stderr().is_terminal() {
        let volume = &arguments.volume;
        note(&format!(
            "the scrub of {volume} goes on after Ctrl-C: `headtime scrub {volume} --status` shows it, and `headtime ctl \
             abort TASK` ends it (`headtime ctl tasks` has its number)\n"
        ));
    }
    let report = match arguments.status {
        true => looked(&socket, &arguments.volume)?,
        false => followed(&socket, &arguments.volume)?,
    };
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&report).map_err(Exit::failed)? + "\n",
        false => described(&report),
    };
    print_answer(&text)?;
    let present = report.present().count();
    match (&report.problem, present) {
        (Some(problem), _) => Err(Exit::failed(format!("scrub: {problem}"))),
        (None, 0) => Ok(()),
        (None, count) => Err(Exit::failed(format!(
            "{count} places of the volume are damaged"
        ))),
    }
}

/// Waits until a scrub knows which blocks are in use.
///
/// # Errors
/// Why it does not.
fn has_map(socket: &Path, volume: &str) -> Result<(), Exit> {
    loop {
        let report = looked(socket, volume)?;
        if report.used.is_some() || report.state == ScrubState::Finished {
            return Ok(());
        }
        if let Some(problem) = report.problem {
            return Err(Exit::failed(format!("scrub: {problem}")));
        }
        thread::sleep(LOOK_AGAIN);
    }
}

fn looked(socket: &Path, volume: &str) -> Result<ScrubReport, Exit> {
    let answer = asked(socket, &Ask::Scrubs)?;
    let reports: Vec<ScrubReport> = understood(socket, answer)?;
    let mut reports = reports.into_iter();
    let report = reports.find(|report| report.volume == volume);
    report.ok_or_else(|| {
        Exit::input(format!(
            "volume {volume} was not scrubbed since the service began: expected a scrub"
        ))
    })
}

/// Waits for the end of a scrub, and shows its progress.
fn followed(socket: &Path, volume: &str) -> Result<ScrubReport, Exit> {
    let bar = ProgressBar::with_draw_target(Some(1), bar_target(4));
    if let Ok(style) = ProgressStyle::with_template("scrub {bar:30} {bytes} of {total_bytes} {msg}")
    {
        bar.set_style(style);
    }
    let _lines = ProgressLines::of(&bar);
    loop {
        let report = looked(socket, volume)?;
        bar.set_length(report.asked_bytes);
        bar.set_position(report.verified_bytes);
        if report.state != ScrubState::Running {
            bar.finish_and_clear();
            return Ok(report);
        }
        thread::sleep(LOOK_AGAIN);
    }
}

fn described(report: &ScrubReport) -> String {
    let state = match report.state {
        ScrubState::Idle => "none",
        ScrubState::Running => "running",
        ScrubState::Finished => "finished",
        ScrubState::Aborted => "given up",
    };
    let slice = match report.slice {
        Some(slice) => format!(" (slice {} of {SLICES}, scheduled)", slice + 1),
        None => String::new(),
    };
    let mut text = format!(
        "scrub of {}{slice}: {state}, {} of {} bytes verified in {:.1} s\n",
        report.volume,
        grouped(report.verified_bytes),
        grouped(report.asked_bytes),
        report.elapsed_s
    );
    if report.state == ScrubState::Running {
        text += &format!(
            "task {}: `headtime ctl tasks` has its rate and its end. A chunk of 64 KiB counts once all of it was read\n",
            report.task
        );
    }
    if let Some(used) = &report.used {
        text += &format!(
            "used by its {}: {} bytes; {} of its groups are damaged and were verified as a whole\n",
            used.file_system,
            grouped(used.used_bytes),
            used.distrusted_groups
        );
    }
    text += &counted(report);
    if report.late_by_s > 0 {
        text += &format!("late by {} s for its schedule\n", grouped(report.late_by_s));
    }
    let (present, gone): (Vec<_>, Vec<_>) = report
        .findings
        .iter()
        .partition(|finding| finding.gone_s.is_none());
    if !present.is_empty() {
        text +=
            "\n        LBN           offset   length  what        first seen   last seen  scrubs\n";
    }
    for finding in &present {
        let kind = match finding.kind {
            FindingKind::Unreadable => "unreadable",
            FindingKind::Changed => "changed",
        };
        text += &format!(
            "{:>11} {:>16} {:>8}  {kind:<10} {:>11} {:>11} {:>7}\n",
            finding.lbn,
            finding.offset_bytes,
            finding.length_bytes,
            finding.first_seen_s,
            finding.last_seen_s,
            finding.scrubs_total
        );
    }
    text + &format!(
        "{} places are damaged, {} earlier ones are not any more\n",
        present.len(),
        gone.len()
    )
}

/// The bytes that were not simply sound.
fn counted(report: &ScrubReport) -> String {
    let mut text = String::new();
    let lines = [
        (
            report.adopted_bytes,
            "bytes had no checksum and have one now",
        ),
        (
            report.adopted_after_crash_bytes,
            "bytes differed where a write had been interrupted: their new checksum is kept",
        ),
        (
            report.undefined_bytes,
            "bytes are beside trimmed ones and have no checksum",
        ),
        (
            report.skipped_bytes,
            "bytes were not verified as whole chunks: being changed each time, or with unreadable blocks",
        ),
        (
            report.unverified_bytes,
            "bytes of these lie beside unreadable blocks and were compared with nothing",
        ),
        (report.transient_total, "chunks differed once and not again"),
    ];
    for (count, what) in lines.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!("{} {what}\n", grouped(count));
    }
    text
}

/// Interval of status queries. A choice.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

const EXAMPLES: &str = "Examples:
  headtime scrub disk
  headtime scrub disk --detach; headtime scrub disk --status
  headtime scrub disk --json
  headtime scrub disk --used

The volume has a file of checksums: `checksums = \"/var/lib/headtime/disk.sums\"` in its table. The first
scrub builds them for what is on it. A damaged place is read twice before it is reported. Times are seconds
since 1970. The history of damage is beside the file of checksums. The exit code is 1 if a place is damaged
or the scrub was given up.";
