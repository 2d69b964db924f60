//! The figures of a background scan as text.

use std::fmt::Write;

use lab::comparison::scan::ScanFigures;
use lab::comparison::scan::figures::{
    GapFigures, GuardFigures, Moment, RatesByProgress, SECONDS_PER_DAY,
};
use lab::comparison::scan::whole::{CurvePoint, WholeScan};

use crate::output::{grouped, short};

/// The lines of a scan's figures.
pub fn text(figures: &ScanFigures) -> String {
    let read = figures.free_blocks + figures.idle_blocks + figures.paid_blocks;
    let share = read as f64 / figures.wanted_blocks.max(1) as f64 * 100.0;
    let (all, state) = (grouped(figures.wanted_blocks), figures.state);
    let scan = format!(
        "{} of {all} blocks read ({share:.1} %), {state}",
        grouped(read)
    );
    let rates = format!(
        "free {:.2}, idle {:.2}, paid {:.2}",
        figures.free_mb_s, figures.idle_mb_s, figures.paid_mb_s
    );
    let foreground = format!(
        "mean {:.2} ms (without the scan {:.2}: {:+.2} %), p99 {:.1} ms ({:.1}: {:+.2} %)",
        figures.foreground_mean_ms,
        figures.baseline.foreground_mean_ms,
        figures.foreground_loss_percent,
        figures.foreground_p99_ms,
        figures.baseline.foreground_p99_ms,
        figures.foreground_p99_loss_percent
    );
    let head = format!(
        "{:.1} % of it by commands of the scan's own, which the bar above has under \"other\"",
        figures.head_time_percent
    );
    let mut lines = vec![
        ("scan", scan),
        ("MB/s", rates),
        ("free by part", parts(&figures.free_mb_s_by_part)),
        ("foreground", foreground),
        ("head time", head),
        ("guard", guard(&figures.guard)),
        ("gaps", gaps(&figures.gaps)),
    ];
    match &figures.whole {
        Some(whole) => lines.extend(course(whole)),
        None => {
            let shown = figures.progress.iter();
            let shown = shown.filter(|m| SHOWN.contains(&m.percent));
            lines.extend(shown.map(|moment| ("", at(moment))));
        }
    }
    let mut text = String::new();
    for (name, what) in lines.iter().filter(|(_, what)| !what.is_empty()) {
        let _ = writeln!(text, "  {name:16}{what}");
    }
    text
}

/// The time of the whole scan, and its course.
fn course(whole: &WholeScan) -> Vec<(&'static str, String)> {
    let end = whole.end();
    let (unit, length) = unit(end.seconds);
    let time = |point: &CurvePoint| {
        let [seconds, least, most] =
            [point.seconds, point.least_seconds, point.most_seconds].map(|s| short(s / length));
        match least == most {
            true => format!("{seconds} {unit}"),
            false => format!("{seconds} {unit} ({least} to {most})"),
        }
    };
    let how = match whole.estimated {
        true => format!(
            ", estimated from the {} % that were read: the rate so far, falling as in complete scans",
            short(whole.read_percent)
        ),
        false => String::new(),
    };
    let mut lines = vec![("whole scan", format!("{}{how}", time(&end)))];
    let points = whole.curve.iter().map(|point| {
        let text = format!("{:>3} % after {}", point.percent, time(point));
        ("", text)
    });
    lines.extend(points);
    lines
}

/// The unit for times up to this one, and its seconds.
fn unit(seconds: f64) -> (&'static str, f64) {
    match seconds {
        s if s >= SECONDS_PER_DAY => ("days", SECONDS_PER_DAY),
        s if s >= 7_200.0 => ("hours", 3_600.0),
        s if s >= 120.0 => ("minutes", 60.0),
        _ => ("s", 1.0),
    }
}

fn parts(parts: &RatesByProgress) -> String {
    let parts = [
        ("at the start", parts.start),
        ("first half", parts.first_half),
        ("whole", parts.whole),
    ];
    let said = parts
        .iter()
        .filter_map(|(name, rate)| Some(format!("{name} {:.2}", (*rate)?)));
    said.collect::<Vec<_>>().join(", ")
}

fn guard(guard: &GuardFigures) -> String {
    let [short, long, short_write, long_write] = guard.guards_us;
    format!(
        "{}; reads {short:.0} and {long:.0} us after short and long seeks, writes \
             {short_write:.0} and {long_write:.0}",
        guard.rule
    )
}

fn gaps(gaps: &GapFigures) -> String {
    format!(
        "{}, {:.2} ms on average; {} merged, {} detours, {} on the source's track, {} on the \
             destination's; {} near misses, {} not worth it, {} mispredicted",
        grouped(gaps.seen),
        gaps.mean_latency_ms,
        grouped(gaps.merged),
        grouped(gaps.detours),
        grouped(gaps.on_source_track),
        grouped(gaps.on_destination_track),
        grouped(gaps.near_miss),
        grouped(gaps.not_worth_it),
        grouped(gaps.mispredicted)
    )
}

fn at(moment: &Moment) -> String {
    let (percent, seconds) = (moment.percent, moment.seconds);
    let days = seconds / SECONDS_PER_DAY;
    format!("{percent} % after {seconds:.0} s ({days:.3} days)")
}

/// The printed hundredths.
const SHOWN: [u32; 6] = [50, 80, 90, 95, 99, 100];
