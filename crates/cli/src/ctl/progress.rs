//! `headtime ctl tasks`: the progress of background tasks, their ends, and what they cost.

use server::control::protocol::DriveTasks;
use server::diagnosis::why_stuck;
use server::status::{Status, Task};

use crate::output::{grouped, time_left};

/// The tasks of all drives. The status says why one reads nothing.
pub(super) fn list(drives: &[DriveTasks], status: &Status) -> String {
    let mut text = String::new();
    for drive in drives {
        let at = status.drives.iter().find(|one| one.name == drive.drive);
        for task in &drive.tasks {
            text += &format!("{}: {}", drive.drive, described(task));
            if let Some(reason) = at.and_then(|at| why_stuck(task, at)) {
                text += &format!("    it reads nothing: {reason}\n");
            }
        }
    }
    match text.is_empty() {
        true => String::from("no background tasks\n"),
        false => text,
    }
}

/// A task: a line, and another one for its means and its cost once anything was read.
pub(super) fn described(task: &Task) -> String {
    let percent = task.done_bytes as f64 * 100.0 / task.asked_bytes.max(1) as f64;
    let mut text = format!(
        "task {}: {}, {}, {percent:.1} % of {} bytes at {:.2} MB/s",
        task.id,
        task.name,
        task.state.name(),
        grouped(task.asked_bytes),
        task.mb_per_s
    );
    text += &end(task).unwrap_or_default();
    if task.pieces > 1 {
        text += &format!(
            ", {} of {} pieces",
            grouped(task.pieces_done),
            grouped(task.pieces_needed)
        );
    }
    if task.hastened {
        text += ", in turn with the foreground";
    }
    if task.failed_bytes > 0 {
        text += &format!(", {} bytes could not be read", grouped(task.failed_bytes));
    }
    text + "\n" + &means(task).unwrap_or_default()
}

/// The time until the end: at the recent rate, and at that since the task began, where that is another one.
fn end(task: &Task) -> Option<String> {
    let recently = task.eta_s?;
    let left = recently * task.mb_per_s;
    let mean = mb_read(task) / task.elapsed_s;
    let on_average = Some(left / mean).filter(|time| time.is_finite() && *time >= 0.0);
    let both = [recently, on_average.unwrap_or(recently)];
    let [least, most] = [both[0].min(both[1]), both[0].max(both[1])].map(time_left);
    Some(match least == most {
        true => format!(", {least} left"),
        false => format!(", {least} to {most} left"),
    })
}

/// The megabytes that were read since the service began.
fn mb_read(task: &Task) -> f64 {
    task.done_bytes.saturating_sub(task.resumed_bytes) as f64 / 1e6
}

/// By which means the bytes were read, and for how long the foreground waited for it.
fn means(task: &Task) -> Option<String> {
    let all = task.free_bytes + task.idle_bytes + task.paid_bytes;
    let share = |bytes: u64| bytes as f64 * 100.0 / all as f64;
    let cost = cost(task).map_or_else(String::new, |milliseconds| {
        format!("; since it began, the foreground waited at most {milliseconds:.2} ms for a MB")
    });
    (all > 0).then(|| {
        format!(
            "    {:.1} % in gaps, {:.1} % in idle time, {:.1} % in granted time{cost}\n",
            share(task.free_bytes),
            share(task.idle_bytes),
            share(task.paid_bytes)
        )
    })
}

/// The milliseconds for which the foreground waited for a megabyte of the task, if all background reads beside it
/// were its own.
pub(crate) fn cost(task: &Task) -> Option<f64> {
    let beside = task.impact.beside?;
    let share = task.impact.measured_percent? / 100.0;
    let waited_ms = share * beside.mean_us / 1e3 * beside.requests as f64;
    Some(waited_ms / mb_read(task)).filter(|cost| cost.is_finite() && *cost >= 0.0)
}

#[cfg(test)]
mod tests {
    use server::status::{Foreground, TaskImpact};

    use super::*;

    /// 100 MB of 400 MB were read in 50 s, and the last of them at 4 MB/s.
    fn task() -> Task {
        Task {
            asked_bytes: 500_000_000,
            done_bytes: 200_000_000,
            resumed_bytes: 100_000_000,
            free_bytes: 150_000_000,
            paid_bytes: 50_000_000,
            elapsed_s: 50.0,
            mb_per_s: 4.0,
            eta_s: Some(75.0),
            ..Task::default()
        }
    }

    #[test]
    fn the_end_lies_between_the_recent_rate_and_the_mean_one() {
        assert_eq!(
            end(&task()),
            Some(String::from(", 75 seconds to 3 minutes left"))
        );
        let steady = Task {
            mb_per_s: 2.0,
            eta_s: Some(150.0),
            ..task()
        };
        assert_eq!(end(&steady), Some(String::from(", 3 minutes left")));
        let just_begun = Task {
            elapsed_s: 0.0,
            ..task()
        };
        assert!(end(&just_begun).is_some());
        let resumed = Task {
            done_bytes: 100_000_000,
            ..task()
        };
        assert_eq!(end(&resumed), Some(String::from(", 75 seconds left")));
        let stopped = Task {
            eta_s: None,
            ..task()
        };
        assert_eq!(end(&stopped), None);
    }

    #[test]
    fn the_cost_is_what_the_foreground_waited_over_what_was_read() {
        let shares = "    75.0 % in gaps, 0.0 % in idle time, 25.0 % in granted time";
        assert_eq!(means(&task()), Some(format!("{shares}\n")));
        let beside = Foreground {
            requests: 10_000,
            mean_us: 20_000.0,
            ..Foreground::default()
        };
        let costly = Task {
            impact: TaskImpact {
                measured_percent: Some(1.5),
                beside: Some(beside),
                ..TaskImpact::default()
            },
            ..task()
        };
        // 1.5 % of 200 s, for 100 MB.
        let cost = "; since it began, the foreground waited at most 30.00 ms for a MB";
        assert_eq!(means(&costly), Some(format!("{shares}{cost}\n")));
        assert_eq!(means(&Task::default()), None);
    }
}
