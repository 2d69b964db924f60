//! The sections of `headtime top`: a title with the names of the columns, and a line for each thing.

use headtime_client::Listed;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use server::status::{Connection, DriveStatus, HeadKind, Mode, Status, Task, TaskState};
use server::why::Slow;

use super::Picture;
use super::keys::{Selection, tasks};
use crate::ctl::progress::cost;
use crate::output::{bytes, time_left};
use crate::why::most_of;

/// A section.
pub(super) struct Section {
    /// The names of the columns.
    pub(super) title: String,
    pub(super) rows: Vec<Line<'static>>,
}

/// The width from which there is room for more columns. A choice: a line of a drive with all of them has 118.
const WIDE: usize = 120;

/// The sections in their order. Those without rows are left out, but for the drives.
pub(super) fn all(picture: &Picture, selection: &Selection, width: usize) -> Vec<Section> {
    let status = &picture.status;
    let sections = vec![
        drives(status, selection, width),
        background(status, selection, width),
        clients(&status.connections, width),
        streams(&picture.streams, width),
        caches(status, width),
        slowest(&picture.slow, width),
    ];
    let mut sections = sections.into_iter();
    let first = sections.next();
    first
        .into_iter()
        .chain(sections.filter(|section| !section.rows.is_empty()))
        .collect()
}

/// The colour of a use of head time, and its letter for those who see no colours.
pub(super) fn look(kind: HeadKind) -> (Color, char) {
    match kind {
        HeadKind::Foreground => (Color::Blue, 'F'),
        HeadKind::RealTime => (Color::Magenta, 'R'),
        HeadKind::Free => (Color::Green, 'f'),
        HeadKind::Idle => (Color::Cyan, 'i'),
        HeadKind::Calibration => (Color::Yellow, 'c'),
        HeadKind::Lost => (Color::Red, 'x'),
        HeadKind::Unused => (Color::DarkGray, '.'),
    }
}

/// Three lines a drive: its figures, the strip of its head time, and the shares of that.
fn drives(status: &Status, selection: &Selection, width: usize) -> Section {
    let wide = width >= WIDE;
    let mut title = format!(
        "{:<12}{:<10}{:>6}{:>9}{:>9}{:>9}{:>9}{:>14}",
        "DRIVE", "MODE", "QUEUE", "READ/s", "WRITE/s", "p50 ms", "p99 ms", "IMPACT %"
    );
    if wide {
        title += &format!("{:>12}{:>10}  {:<16}", "LATE p99 us", "ERRORS", "POLICY");
    }
    let mut rows = Vec::new();
    for (place, drive) in status.drives.iter().enumerate() {
        let mut line = figures(drive, wide);
        if place == selection.drive && status.drives.len() > 1 {
            line = line.style(Style::new().add_modifier(Modifier::BOLD));
        }
        rows.push(line);
        rows.push(strip(drive, width));
        rows.push(shares(drive, wide));
    }
    Section { title, rows }
}

fn figures(drive: &DriveStatus, wide: bool) -> Line<'static> {
    let sum = |of: fn(&server::status::Traffic) -> f64| drive.traffic.iter().map(of).sum::<f64>();
    let foreground = drive.traffic.first().and_then(|traffic| traffic.latency);
    let ms = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| format!("{:.2}", us / 1e3));
    let impact = match drive.impact.measured_percent {
        Some(percent) => format!("{percent:.2} of {}", drive.impact.budget_percent),
        None => format!("- of {}", drive.impact.budget_percent),
    };
    let mut rest = format!(
        "{:>6}{:>9}{:>9}{:>9}{:>9}{:>14}",
        drive.queue.waiting + drive.queue.at_drive,
        bytes((sum(|traffic| traffic.read.mb_per_s) * 1e6) as u64),
        bytes((sum(|traffic| traffic.write.mb_per_s) * 1e6) as u64),
        ms(foreground.map(|latency| latency.p50_us)),
        ms(foreground.map(|latency| latency.p99_us)),
        impact,
    );
    if wide {
        let late = drive.lateness.map(|late| format!("{:.0}", late.p99_us));
        let errors = drive.errors;
        rest += &format!(
            "{:>12}{:>10}  {:<16}",
            late.unwrap_or_else(|| "-".to_owned()),
            errors.reads_total + errors.writes_total + errors.flushes_total,
            cut(&drive.policy, 16)
        );
    }
    let colour = match drive.mode {
        Mode::Following => Color::Green,
        Mode::Learning => Color::Yellow,
        Mode::Safe => Color::Red,
        Mode::Plain => Color::Reset,
    };
    Line::from(vec![
        Span::raw(format!("{:<12}", cut(&drive.name, 11))),
        Span::styled(
            format!("{:<10}", drive.mode.title()),
            Style::new().fg(colour),
        ),
        Span::raw(rest),
    ])
}

/// The last second of head time, each character the main use of its part.
fn strip(drive: &DriveStatus, width: usize) -> Line<'static> {
    let timeline = &drive.head_time.timeline;
    let room = width.saturating_sub(INDENT);
    let mut spans = vec![Span::raw(" ".repeat(INDENT))];
    for column in 0..room {
        let place = column * timeline.len() / room.max(1);
        let Some(&kind) = timeline.get(place) else {
            break;
        };
        let (colour, letter) = look(kind);
        spans.push(Span::styled(letter.to_string(), Style::new().fg(colour)));
    }
    Line::from(spans)
}

/// Blanks before what belongs to the line above.
const INDENT: usize = 2;

/// The smallest shares that are shown, in per cent: what is not written as zero.
const LEAST: f64 = 1.0;
const LEAST_WIDE: f64 = 0.05;

/// The shares of the last second, without those that would be zero.
fn shares(drive: &DriveStatus, wide: bool) -> Line<'static> {
    let second = &drive.head_time.second_us;
    let all: u64 = HeadKind::ALL.iter().map(|&kind| second.of(kind)).sum();
    let mut spans = vec![Span::raw(" ".repeat(INDENT))];
    for kind in HeadKind::ALL {
        let percent = second.of(kind) as f64 * 100.0 / all.max(1) as f64;
        let least = if wide { LEAST_WIDE } else { LEAST };
        if percent < least {
            continue;
        }
        let (colour, letter) = look(kind);
        let text = match wide {
            true => format!("{letter} {} {percent:.1} %  ", kind.name()),
            false => format!("{} {percent:.0}%  ", kind.name()),
        };
        spans.push(Span::styled(text, Style::new().fg(colour)));
    }
    Line::from(spans)
}

fn background(status: &Status, selection: &Selection, width: usize) -> Section {
    let wide = width >= WIDE;
    let mut title = format!(
        "  {:<5}{:<21}{:<11}{:>7}{:>9}  {:<14}{:>9}",
        "TASK", "NAME", "STATE", "DONE", "MB/s", "LEFT", "ms/MB"
    );
    if wide {
        title += &format!(
            "{:>8}{:>8}{:>10}  {:<12}",
            "GAPS %", "IDLE %", "GRANTED %", "DRIVE"
        );
    }
    let rows = tasks(status).enumerate().map(|(place, (drive, task))| {
        let is_chosen = place == selection.task;
        let mark = if is_chosen { '>' } else { ' ' };
        let style = match task.state {
            _ if is_chosen => Style::new().add_modifier(Modifier::BOLD),
            TaskState::Active => Style::new(),
            _ => Style::new().fg(Color::DarkGray),
        };
        Line::styled(format!("{mark} {}", of_task(drive, task, wide)), style)
    });
    let rows = rows.collect();
    Section { title, rows }
}

fn of_task(drive: &str, task: &Task, wide: bool) -> String {
    let percent = task.done_bytes as f64 * 100.0 / task.asked_bytes.max(1) as f64;
    let left = match (task.eta_s, task.state) {
        (Some(seconds), TaskState::Active) => time_left(seconds),
        (None, TaskState::Active) => "unknown".to_owned(),
        _ => String::new(),
    };
    let cost = cost(task).map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"));
    let mut text = format!(
        "{:<5}{:<21}{:<11}{:>6.1}%{:>9.2}  {:<14}{:>9}",
        task.id,
        cut(&task.name, 20),
        task.state.name(),
        percent,
        task.mb_per_s,
        cut(&left, 14),
        cost
    );
    if wide {
        let all = (task.free_bytes + task.idle_bytes + task.paid_bytes).max(1);
        let share = |bytes: u64| bytes as f64 * 100.0 / all as f64;
        text += &format!(
            "{:>8.1}{:>8.1}{:>10.1}  {:<12}",
            share(task.free_bytes),
            share(task.idle_bytes),
            share(task.paid_bytes),
            cut(drive, 12)
        );
    }
    text
}

/// The clients by their exports, those with most in flight first.
fn clients(connections: &[Connection], width: usize) -> Section {
    let wide = width >= WIDE;
    let mut title = format!(
        "{:<14}{:<13}{:<24}{:<6}{:>10}{:>12}",
        "EXPORT", "CLASS", "CLIENT", "FRONT", "IN FLIGHT", "REQUESTS"
    );
    if wide {
        title += &format!("{:>12}{:>16}", "DATA", "CONNECTED");
    }
    let mut sorted: Vec<&Connection> = connections.iter().collect();
    sorted.sort_by(|a, b| (&a.export, b.in_flight, a.id).cmp(&(&b.export, a.in_flight, b.id)));
    let rows = sorted.into_iter().map(|client| {
        let mut text = format!(
            "{:<14}{:<13}{:<24}{:<6}{:>10}{:>12}",
            cut(&client.export, 13),
            client.class.name(),
            cut(&client.peer, 23),
            client.front,
            client.in_flight,
            client.requests_total
        );
        if wide {
            let connected = time_left(client.connected_s);
            text += &format!("{:>12}{:>16}", bytes(client.bytes_total), connected);
        }
        Line::raw(text)
    });
    let rows = rows.collect();
    Section { title, rows }
}

fn streams(streams: &[Listed], width: usize) -> Section {
    let wide = width >= WIDE;
    let mut title = format!(
        "{:<8}{:<20}{:<12}{:>10}{:>10}  {:<12}{:>6}",
        "STREAM", "NAME", "MODE", "RATE/s", "MEMORY", "STANDING", "LATE"
    );
    if wide {
        title += &format!(
            "{:>8}{:>12}{:>10}  {:<12}",
            "LAPSED", "AT ONCE", "WAITED", "DRIVE"
        );
    }
    let rows = streams.iter().map(|stream| {
        let mut text = format!(
            "{:<8}{:<20}{:<12}{:>10}{:>10}  {:<12}{:>6}",
            stream.stream,
            cut(&stream.terms.name, 19),
            stream.terms.mode.name(),
            bytes(stream.terms.rate),
            bytes(stream.terms.memory.unwrap_or(0)),
            stream.standing.name(),
            stream.late_total
        );
        if wide {
            text += &format!(
                "{:>8}{:>12}{:>10}  {:<12}",
                stream.lapsed_total,
                stream.from_memory_total,
                stream.waited_total,
                cut(&stream.drive, 12)
            );
        }
        Line::raw(text)
    });
    let rows = rows.collect();
    Section { title, rows }
}

fn caches(status: &Status, width: usize) -> Section {
    let wide = width >= WIDE;
    let mut title = format!(
        "{:<14}{:>20}{:>9}{:>9}{:>10}  {:<12}",
        "CACHE", "USED", "HITS %", "LATE %", "UNWRITTEN", "REPLACEMENT"
    );
    if wide {
        title += &format!(
            "{:<14}{:<14}{:>12}",
            "PREFETCH", "COORDINATOR", "PREFETCHED"
        );
    }
    let drives = status.drives.iter();
    let rows = drives.flat_map(|drive| &drive.caches).map(|cache| {
        let asked = cache.asked_bytes_total.max(1) as f64;
        let used = format!("{} of {}", bytes(cache.used_bytes), bytes(cache.size_bytes));
        let mut text = format!(
            "{:<14}{:>20}{:>9.1}{:>9.1}{:>10}  {:<12}",
            cut(&cache.volume, 13),
            used,
            cache.hit_bytes_total as f64 * 100.0 / asked,
            cache.late_bytes_total as f64 * 100.0 / asked,
            bytes(cache.unwritten_bytes),
            cut(&cache.replacement, 12)
        );
        if wide {
            text += &format!(
                "{:<14}{:<14}{:>12}",
                cut(&cache.prefetch, 13),
                cut(&cache.coordinator, 13),
                bytes(cache.prefetched_bytes_total)
            );
        }
        Line::raw(text)
    });
    let rows = rows.collect();
    Section { title, rows }
}

fn slowest(slow: &[Slow], width: usize) -> Section {
    let title = format!(
        "{:>10}  {:<14}{:<8}{:<}",
        "SLOWEST ms", "EXPORT", "REQUEST", "MOST OF IT"
    );
    let rows = slow.iter().map(|slow| {
        let most = most_of(slow).unwrap_or_default();
        let text = format!(
            "{:>10.2}  {:<14}{:<8}{most}",
            slow.response_us / 1e3,
            cut(&slow.export, 13),
            slow.request
        );
        Line::raw(cut(&text, width).to_owned())
    });
    let rows = rows.collect();
    Section { title, rows }
}

/// The first characters of a text, as many as fit.
pub(super) fn cut(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
