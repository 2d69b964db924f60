//! The findings about the drives of a running service.

use super::Finding;
use crate::status::scrub::ENDED;
use crate::status::{DriveStatus, Mode, ScrubStatus, Task, TaskState};

/// Largest lateness of an emulated drive's commands that does not upset plans, at time scale 1. A choice: about the guard
/// under the noise of `headtime demo`, which says the same of its own drive.
const LATE_US: f64 = 300.0;

/// The findings about one drive.
pub(super) fn of_drive(drive: &DriveStatus) -> Vec<Finding> {
    let about = format!("drive {}", drive.name);
    let parts = [
        of_mode(drive, &about),
        of_impact(drive, &about),
        of_lateness(drive, &about),
        of_errors(drive, &about),
        of_strain(drive, &about),
        of_lost_pages(drive, &about),
    ];
    let mut findings: Vec<Finding> = parts.into_iter().flatten().collect();
    findings.extend(of_slow_heads(drive, &about));
    findings.extend(of_legs(drive, &about));
    findings.extend(drive.tasks.iter().flat_map(|task| of_task(task, drive)));
    findings
}

fn of_mode(drive: &DriveStatus, about: &str) -> Option<Finding> {
    let (name, reason) = (&drive.name, &drive.mode_reason);
    match drive.mode {
        Mode::Following => None,
        Mode::Safe => Some(Finding::wrong(
            "safe-mode",
            about,
            format!("safe mode: {reason}"),
            "the drive does not behave as its profile says: requests go in block order, and scans, scrubs and backups \
             get idle time only",
            safe_mode_remedy(drive),
        )),
        Mode::Learning => Some(
            Finding::wrong(
                "learning",
                about,
                format!("still learning: {reason}"),
                "gaps stay unused until then, so that scans, scrubs and backups are slow",
                "wait: each command of a client brings it further. A drive without any load learns nothing",
            )
            .noticed(),
        ),
        Mode::Plain if drive.model.is_none() => Some(
            Finding::wrong(
                "no-profile",
                about,
                format!("no profile is followed: {reason}"),
                "without a profile nothing is read in gaps, and no stream is guaranteed",
                format!(
                    "learn one: `headtime ctl profile {name}` while it serves, or `headtime adopt` before, and name its \
                     file as `belief`"
                ),
            )
            .noticed(),
        ),
        // It is being drained.
        Mode::Plain if reason.is_empty() => None,
        Mode::Plain => Some(
            Finding::wrong(
                "not-followed",
                about,
                format!("its profile is not followed: {reason}"),
                "nothing is read in gaps, and no stream is guaranteed",
                "choose a policy that orders by position, such as policy = \"sptf-sw60\"",
            )
            .noticed(),
        ),
    }
}

/// What to do in safe mode. An emulated drive does what its profile says, unless the machine is late.
fn safe_mode_remedy(drive: &DriveStatus) -> String {
    match drive.back_end.as_str() {
        "emulated" => format!(
            "end other programs, or slow the drive down (time_scale in [drive.back_end], now {}): an emulated drive \
             misses its profile if this machine is too busy for its timing",
            drive.time_scale.unwrap_or(1.0)
        ),
        _ => format!(
            "wait a minute: it ends by itself if a load of the host was the cause. Otherwise learn the drive again: \
             `headtime adopt`, or `headtime ctl profile {}` of a service without `belief`. See `headtime why` for commands \
             that ended late",
            drive.name
        ),
    }
}

fn of_slow_heads(drive: &DriveStatus, about: &str) -> Vec<Finding> {
    let slow = drive.heads.iter().flat_map(|heads| &heads.slow);
    slow.map(|slow| {
        let arm = match &drive.mirror {
            Some(_) => format!(" of leg {}", slow.arm),
            None if slow.arm > 0 => " of the second actuator".to_owned(),
            None => String::new(),
        };
        let place = match (slow.first_cylinder, slow.last_cylinder) {
            (Some(first), Some(last)) => format!(" on cylinders {first} to {last} only"),
            _ => String::new(),
        };
        let before = match slow.before_percent {
            Some(before) => format!("; {before:.1} % before"),
            None => String::new(),
        };
        Finding::wrong(
            "slow-head",
            about,
            format!(
                "reads by head {}{arm} take {:.0} % longer than those of its other heads{place}{before}",
                slow.head, slow.slower_percent
            ),
            "the head or its surface may be failing: the drive reads sectors again, and each attempt costs a revolution",
            "save what is on the drive; see `smartctl -a` for pending sectors and read errors, and replace the drive if it \
             stays so. docs/how-to/watch-a-fleet.md says what is compared",
        )
    })
    .collect()
}

/// Drives that lose far more revolutions than before, and than the other drives of the service.
pub(super) fn of_slow_drives(drives: &[DriveStatus]) -> Vec<Finding> {
    let recent = |drive: &DriveStatus| drive.heads.as_ref()?.recent_percent;
    let one = |(place, drive): (usize, &DriveStatus)| {
        let (mine, past) = (recent(drive)?, drive.heads.as_ref()?.past_percent?);
        let others = drives
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != place);
        let others: Vec<f64> = others.filter_map(|(_, other)| recent(other)).collect();
        let most = others.iter().copied().fold(past, f64::max);
        let is_slow = others.len() >= FEWEST_PEERS && mine >= LOST && mine >= most * FAR_MORE;
        is_slow.then(|| {
            Finding::wrong(
                "slow-drive",
                format!("drive {}", drive.name),
                format!(
                    "its last reads lost {mine:.0} % of their time to revolutions that were not foreseen: {past:.1} % before, \
                     and at most {:.1} % on the other drives",
                    others.iter().copied().fold(0.0, f64::max)
                ),
                "the drive may be failing, or shaken; or its load has changed: writes from its cache make reads late, too",
                "see `smartctl -a`, its place in the rack and its fans; `headtime why` has its slow requests",
            )
            .noticed()
        })
    };
    drives.iter().enumerate().filter_map(one).collect()
}

/// The other drives without which a drive is not compared. A choice: of two drives, either may be the odd one.
const FEWEST_PEERS: usize = 2;

/// The percent of head time that a slow drive loses at least. A choice: half of what one head of issue 26 loses.
const LOST: f64 = 10.0;

/// How many times more than before and than its peers a slow drive loses. A choice.
const FAR_MORE: f64 = 4.0;

fn of_impact(drive: &DriveStatus, about: &str) -> Option<Finding> {
    let (name, budget) = (&drive.name, drive.impact.budget_percent);
    let measured = drive.impact.measured_percent?;
    (measured > budget * TOLERATED).then(|| {
        Finding::wrong(
            "over-budget",
            about,
            format!(
                "background reads lengthen the requests of the foreground by {measured:.2} %: the budget is {budget:.2} %"
            ),
            "clients wait longer than was agreed",
            format!(
                "wait a minute: background reads are held back until the mean is within the budget. If it stays so: \
                 `headtime ctl suspend TASK`, or allow more: `headtime ctl impact {name} {}`",
                measured.ceil()
            ),
        )
    })
}

/// Times the budget from which the cost is too high. A choice: the engine plans up to the budget, so that what it measures
/// lies about it.
const TOLERATED: f64 = 1.25;

/// In words that times of an emulated drive are those of its machine, because that is too late to keep the drive's; `None`
/// if it is in time.
pub fn too_late_to_judge(drive: &DriveStatus) -> Option<String> {
    let late = drive.lateness?;
    let scale = drive.time_scale.unwrap_or(1.0);
    (late.p99_us > LATE_US * scale).then(|| {
        format!(
            "the emulated drive ends one command in a hundred {:.1} ms late or more, the latest by {:.1} ms",
            late.p99_us / 1e3,
            late.max_us / 1e3
        )
    })
}

fn of_lateness(drive: &DriveStatus, about: &str) -> Option<Finding> {
    let scale = drive.time_scale.unwrap_or(1.0);
    too_late_to_judge(drive).map(|late| {
        Finding::wrong(
            "emulation-late",
            about,
            late,
            "this machine is too busy for the drive's timing: measured times are those of the machine",
            format!(
                "end other programs, or slow the drive down: time_scale = {} in [drive.back_end]",
                (scale * 4.0).max(1.0)
            ),
        )
    })
}

fn of_errors(drive: &DriveStatus, about: &str) -> Option<Finding> {
    let errors = drive.errors;
    let all = errors.reads_total + errors.writes_total + errors.flushes_total;
    (all > 0).then(|| {
        Finding::wrong(
            "failed-commands",
            about,
            format!(
                "commands have failed: {} reads, {} writes, {} flushes",
                errors.reads_total, errors.writes_total, errors.flushes_total
            ),
            "data may be lost: the disk, its cable or its power may be failing",
            "save what is on it; then see the log, `dmesg` and `smartctl -a`",
        )
    })
}

fn of_strain(drive: &DriveStatus, about: &str) -> Option<Finding> {
    let streams = &drive.streams;
    let broken = streams.late_total + streams.lapsed_total;
    (streams.strained || broken > 0).then(|| {
        let now = match streams.strained {
            true => "; it is slower now than when these were granted, and refuses others",
            false => "",
        };
        Finding::wrong(
            "late-streams",
            about,
            format!(
                "guaranteed streams: {} batches were late, and {} guarantees have lapsed; {} commands took longer than their \
                 worst case, by up to {:.1} ms{now}",
                streams.late_total,
                streams.lapsed_total,
                streams.overruns_total,
                streams.longest_overrun_us as f64 / 1e3
            ),
            "players stutter, and recorders lose what does not fit into their buffers",
            "see `headtime streams` for the streams, and `headtime why` for what was before them; larger margins in \
             [drive.streams] help, or a new profile",
        )
    })
}

fn of_lost_pages(drive: &DriveStatus, about: &str) -> Option<Finding> {
    let lost: u64 = drive
        .caches
        .iter()
        .map(|cache| cache.lost_bytes_total)
        .sum();
    (lost > 0).then(|| {
        Finding::wrong(
            "lost-writes",
            about,
            format!("{lost} bytes that a cache had acknowledged could not be written"),
            "they are lost, unless their client writes them again",
            "check the file system on it; save what is on the disk, and see the log and `dmesg`",
        )
    })
}

fn of_legs(drive: &DriveStatus, about: &str) -> Vec<Finding> {
    let Some(mirror) = &drive.mirror else {
        return Vec::new();
    };
    let bad = mirror.legs.iter().filter(|leg| !leg.is_in_sync());
    bad.map(|leg| {
        let finding = Finding::wrong(
            "leg-not-in-sync",
            about,
            format!("leg {} is {}", leg.path, leg.state),
            "until it is in sync, the other leg has the only complete copy",
            "see `headtime mirror status` and docs/how-to/mirror-two-disks.md; a leg that is out needs \
             `headtime mirror attach`, or a new disk and `headtime mirror replace`",
        );
        match leg.state == "being filled" {
            true => finding.noticed(),
            false => finding,
        }
    })
    .collect()
}

/// A task that cannot read, or does not get on.
fn of_task(task: &Task, drive: &DriveStatus) -> Vec<Finding> {
    let about = format!("task {} ({}) on drive {}", task.id, task.name, drive.name);
    let mut findings = Vec::new();
    if task.failed_bytes > 0 {
        findings.push(Finding::wrong(
            "unreadable",
            about.clone(),
            format!("{} bytes could not be read", task.failed_bytes),
            "they are lost, unless there is a copy",
            "save what is on the disk; see the log, `dmesg` and `smartctl -a`",
        ));
    }
    if let Some(problem) = &task.problem {
        findings.push(Finding::wrong(
            "task-failed",
            about.clone(),
            format!("its program or file failed: {problem}"),
            "its result is incomplete",
            "mend that, and begin it again",
        ));
    }
    if let Some(reason) = why_stuck(task, drive) {
        findings.push(Finding::wrong(
            "no-progress",
            about,
            format!("it reads 0.00 MB/s: {reason}"),
            "it never ends like this",
            format!(
                "allow more: `headtime ctl impact {} PERCENT`; or let it take turns with the foreground: `headtime ctl \
                 promote {} --foreground`",
                drive.name, task.id
            ),
        ));
    }
    findings
}

/// Why a task reads nothing, if it has read nothing for a while.
pub fn why_stuck(task: &Task, drive: &DriveStatus) -> Option<&'static str> {
    let is_stuck =
        task.state == TaskState::Active && task.mb_per_s == 0.0 && task.elapsed_s > STUCK_S;
    is_stuck.then_some(match drive.mode {
        Mode::Following if drive.impact.budget_percent == 0.0 => "the impact budget is 0",
        Mode::Following if drive.impact.is_used_up() => {
            "the impact budget is used up, and there is no idle time"
        }
        Mode::Following => {
            "no gap is expected to reach its blocks without delaying the foreground, and there is no idle time"
        }
        Mode::Learning => {
            "gaps stay unused while the drive is still learned, and there is no idle time"
        }
        Mode::Safe | Mode::Plain => {
            "gaps stay unused without a profile that fits, and there is no idle time"
        }
    })
}

/// A task that has read nothing is given so long before that is said. A choice: rates are of the last ten seconds.
const STUCK_S: f64 = 20.0;

/// The findings about the scrub of a volume.
pub(super) fn of_scrub(scrub: &ScrubStatus) -> Vec<Finding> {
    let about = format!("volume {}", scrub.volume);
    let mut findings = Vec::new();
    if scrub.changed + scrub.unreadable > 0 {
        findings.push(Finding::wrong(
            "damaged",
            about.clone(),
            format!(
                "checksums: {} places differ from what was written, and {} cannot be read",
                scrub.changed, scrub.unreadable
            ),
            "these bytes are wrong or lost",
            format!(
                "`headtime scrub {} --status` lists the places; write them again from a backup",
                scrub.volume
            ),
        ));
    }
    if let Some(problem) = &scrub.problem
        && ENDED.contains(&problem.as_str())
    {
        findings.push(
            Finding::wrong(
                "scrub-ended",
                about.clone(),
                format!("its scrub was ended before its end: {problem}"),
                "the rest of the volume was not verified",
                "begin it again if it is to be: `headtime scrub`",
            )
            .noticed(),
        );
    } else if let Some(problem) = &scrub.problem {
        findings.push(Finding::wrong(
            "scrub-failed",
            about.clone(),
            format!("its scrub was given up: {problem}"),
            "the rest of the volume was not verified",
            "mend that, and begin it again: `headtime scrub`",
        ));
    }
    if scrub.late_by_s > 0 {
        let finding = Finding::wrong(
            "scrub-late",
            about,
            format!("its scrubs are {} s behind their schedule", scrub.late_by_s),
            "damage is found later than was wanted",
            "allow a larger impact (`headtime ctl impact`), or a longer `every`; docs/how-to/plan-a-scrub.md computes both",
        );
        findings.push(finding.noticed());
    }
    findings
}
