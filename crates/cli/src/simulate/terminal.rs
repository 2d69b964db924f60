//! A comparison as text.
//!
//! ```text
//!   oltp on seagate-cheetah-9lp
//!   ...
//!                   requests    mean     p50  ...   requests/s    MB/s
//!   all     fcfs      10,000   31.20   30.11  ...       320.12    2.62
//!           sptf      10,000   18.94   16.40  ...       527.80    4.32
//!
//!   fcfs   ██████████████▓▓▓▓▓▓▓▓▓▒▒░  seek 61.2 %  rotation 30.0 %  ...
//!   ...
//! ```

use std::fmt::Write;

use lab::comparison::ComparisonSetup;
use lab::comparison::figures::{IDLE, OTHER, PolicyRun, verdict};
use lab::comparison::load::LoadSource;
use scheduler::ordering::Phases;
use scheduler::policy::Depth;
use simulator::ledger::{AccountMeans, RequestFigures};

use super::{clients, scan};
use crate::output::{UNENDED, grouped, short};
use crate::why;

/// Selects the requests of a part of the table.
type SideOf = fn(&PolicyRun) -> &RequestFigures;

/// Selects a phase of the mean account.
type PhaseOf = fn(&AccountMeans) -> f64;

/// The report of a comparison.
pub fn report(setup: &ComparisonSetup, runs: &[PolicyRun]) -> String {
    let mut text = heading(setup, runs);
    text.push_str(&table(runs));
    text.push('\n');
    text.push_str(&head_time(runs));
    text.push_str(&commands(runs));
    text.push_str(&tracking(runs));
    text.push_str(&preempted(runs));
    text.push('\n');
    for run in runs {
        if let Some(scan) = &run.scan {
            let _ = writeln!(text, "  in the background of {}", run.policy.name());
            text.push_str(&scan::text(scan));
            text.push('\n');
        }
    }
    for run in runs {
        if let Some(figures) = &run.streams {
            text.push_str(&clients::streams(&run.name, figures));
        }
    }
    text.push_str(&accounts(runs));
    text.push('\n');
    for run in runs.iter().filter(|run| !run.slow.is_empty()) {
        let _ = writeln!(text, "the slowest under {}\n", run.policy.name());
        for slow in &run.slow {
            text.push_str(&why::text(slow));
            text.push('\n');
        }
    }
    text.push_str(&histograms(runs));
    text.push_str(&remarks(runs));
    if let Some(verdict) = verdict(setup, runs) {
        let _ = writeln!(text, "\n{}", verdict.sentences.join("\n"));
    }
    text
}

fn heading(setup: &ComparisonSetup, runs: &[PolicyRun]) -> String {
    let drive = &setup.drive;
    let mut text = format!("{} on {}\n", setup.source.name(), drive.name);
    match &setup.source {
        LoadSource::Synthetic(workload) => {
            let _ = writeln!(text, "  load    {workload}; seed {}", workload.seed);
        }
        LoadSource::Mixture(mixture) => {
            for (place, part) in mixture.parts.iter().enumerate() {
                let label = if place == 0 { "load" } else { "" };
                let _ = writeln!(text, "  {label:7} {}: {part}", part.name);
            }
            let _ = writeln!(text, "          seed {}", mixture.seed);
        }
        LoadSource::Trace(_) => {}
        LoadSource::Placed(loads) => text.push_str(&clients::heading(loads)),
    }
    let _ = writeln!(
        text,
        "  drive   {}, {:.1} GB, {:.0} rpm, {}",
        drive.model,
        drive.capacity_bytes() as f64 / 1e9,
        drive.rpm(),
        drive.provenance.name()
    );
    if let Some(switches) = setup.truth.switches() {
        let _ = writeln!(text, "          {switches}");
    }
    if let Some(rule) = setup.mirror {
        let _ = writeln!(text, "  mirror  of two such drives, reads {}", rule.what());
    }
    let _ = writeln!(text, "  mode    {}", setup.truth.label());
    if let Phases::Alternate { read, write } = setup.phases {
        let (read, write) = (read.as_millis_f64(), write.as_millis_f64());
        let _ = writeln!(text, "  phases  reads for {read} ms, writes for {write} ms");
    }
    let width = name_width(runs);
    for run in runs {
        let depth = run.limits.commands_at_drive;
        let by = match run.policy.depth() {
            Depth::JustInTime => format!("{depth} at the drive; {}", run.policy.entry.what),
            Depth::DriveQueue => format!("{depth} at the drive, which chooses itself"),
        };
        let _ = writeln!(text, "  {:width$}{by}", run.policy.name());
    }
    text.push('\n');
    text
}

/// The width of the column of names: the longest and a blank, at least 8.
fn name_width(runs: &[PolicyRun]) -> usize {
    let longest = runs.iter().map(|run| run.policy.name().len()).max();
    longest.map_or(8, |longest| (longest + 1).max(8))
}

fn table(runs: &[PolicyRun]) -> String {
    let width = name_width(runs);
    let mut text = format!("  {:7} {:width$}", "", "");
    for title in [
        "requests", "mean ms", "p50", "p90", "p99", "p99.9", "max", "req/s", "MB/s",
    ] {
        let _ = write!(text, "{title:>10}");
    }
    text.push('\n');
    let sides: [(&str, SideOf); 3] = [
        ("all", |run| &run.report.all),
        ("reads", |run| &run.report.reads),
        ("writes", |run| &run.report.writes),
    ];
    for (name, side) in sides {
        let counts = |run: &PolicyRun| (side(run).requests, run.report.all.requests);
        let says_nothing = |(part, all): (u64, u64)| part == 0 || part == all;
        if name != "all" && runs.iter().map(counts).all(says_nothing) {
            continue;
        }
        text.push_str(&lines(runs, name, side));
    }
    let parts = runs.first().map_or(0, |run| run.report.parts.len());
    for part in 0..parts {
        let name = &runs[0].report.parts[part].name;
        text.push_str(&lines(runs, name, |run| &run.report.parts[part].side));
    }
    text
}

/// A line for each run.
fn lines(runs: &[PolicyRun], name: &str, side: impl Fn(&PolicyRun) -> &RequestFigures) -> String {
    let width = name_width(runs);
    let mut text = String::new();
    for (row, run) in runs.iter().enumerate() {
        let label = if row == 0 { name } else { "" };
        let _ = write!(text, "  {label:7} {:width$}", run.policy.name());
        text.push_str(&figures(side(run), run.report.span_ms));
        text.push('\n');
    }
    text
}

fn figures(side: &RequestFigures, span_ms: f64) -> String {
    let mut text = format!("{:>10}", grouped(side.requests));
    let Some(response) = &side.response else {
        return text;
    };
    for value in [
        response.mean_ms,
        response.p50_ms,
        response.p90_ms,
        response.p99_ms,
        response.p999_ms,
        response.max_ms,
        side.requests as f64 / span_ms * 1e3,
        side.bytes as f64 / span_ms / 1e3,
    ] {
        let _ = write!(text, "{:>10}", short(value));
    }
    text
}

/// Agreement of the drive with the belief, where the two differ.
fn tracking(runs: &[PolicyRun]) -> String {
    let width = name_width(runs);
    let mut text = String::new();
    for run in runs {
        let Some(tracking) = &run.tracking else {
            continue;
        };
        let medium = tracking.as_believed + tracking.late + tracking.elsewhere;
        let percent = |count: u64| count as f64 * 100.0 / medium.max(1) as f64;
        let _ = writeln!(
            text,
            "  {:width$}  mode {} ({} changes): {:.1} % as believed, {:.1} % revolutions later, {:.1} % \
             elsewhere; {} answered by the buffer, {} say nothing; {} refinements of the seek tables, {} \
             calibration reads in {:.0} ms",
            run.policy.name(),
            tracking.mode,
            tracking.changes,
            percent(tracking.as_believed),
            percent(tracking.late),
            percent(tracking.elsewhere),
            grouped(tracking.buffered),
            grouped(tracking.silent),
            grouped(tracking.refinements),
            grouped(tracking.calibrations),
            tracking.calibration_ms,
        );
    }
    match text.is_empty() {
        true => text,
        false => format!("  commands against the belief\n{text}"),
    }
}

/// A bar for each run: the head's time by activity.
fn head_time(runs: &[PolicyRun]) -> String {
    let width = name_width(runs);
    let mut text = String::from("  head time\n");
    for run in runs {
        let head = &run.report.head;
        let parts = [
            ("seek", head.seek, '█'),
            ("rotation", head.rotation, '▓'),
            ("transfer", head.transfer, '▒'),
            (OTHER, head.other, '░'),
            (IDLE, head.idle, '·'),
        ];
        let _ = write!(text, "  {:width$}", run.policy.name());
        text.push_str(&bar(&parts.map(|(_, share, glyph)| (share, glyph))));
        for (name, share, glyph) in parts {
            let _ = write!(text, "  {glyph} {name} {:.1} %", share * 100.0);
        }
        text.push('\n');
    }
    text
}

/// The head time of commands, and the residual wait of a request that arrives at a random moment.
fn commands(runs: &[PolicyRun]) -> String {
    let width = name_width(runs);
    let mut text = String::from("  commands\n");
    for run in runs {
        let Some(commands) = &run.report.commands else {
            continue;
        };
        let _ = writeln!(
            text,
            "  {:width$}{} held the head for {} ms on average, p99 {}, at most {}; 3 to 16 ms {:.1} %; \
             an arrival waits {} ms for the one that has it",
            run.policy.name(),
            grouped(commands.commands),
            short(commands.mean_ms),
            short(commands.p99_ms),
            short(commands.max_ms),
            commands.share_3_to_16_ms * 100.0,
            short(commands.expected_wait_ms),
        );
    }
    text
}

/// A bar with the cells of each share. Cumulative shares are rounded, so that the bar is full.
fn bar(parts: &[(f64, char)]) -> String {
    let total: f64 = parts.iter().map(|part| part.0).sum();
    let (mut so_far, mut cells, mut text) = (0.0, 0, String::new());
    for &(share, glyph) in parts {
        so_far += share;
        let upto = match total {
            t if t > 0.0 => (so_far / t * BAR_CELLS as f64).round() as usize,
            _ => 0,
        };
        text.extend(std::iter::repeat_n(glyph, upto.saturating_sub(cells)));
        cells = cells.max(upto);
    }
    text
}

/// The mean account of a request.
fn accounts(runs: &[PolicyRun]) -> String {
    let phases: [(&str, PhaseOf); 8] = [
        ("waited", |a| a.waited_ms),
        ("queue", |a| a.queue_ms),
        ("overhead", |a| a.overhead_ms),
        ("seek", |a| a.seek_ms),
        ("rotation", |a| a.rotation_ms),
        ("transfer", |a| a.transfer_ms),
        ("bus", |a| a.bus_ms),
        ("other", |a| a.unclaimed_ms),
    ];
    let mut text = format!("  {:16}", "of a request, ms");
    for (name, _) in phases {
        let _ = write!(text, "{name:>10}");
    }
    let _ = writeln!(text, "{:>12}", "buffer hits");
    for run in runs {
        let Some(account) = &run.report.all.account else {
            continue;
        };
        let _ = write!(text, "  {:16}", run.policy.name());
        for (_, of) in phases {
            let _ = write!(text, "{:>10}", short(of(account)));
        }
        let hits = &run.report.all.hits;
        let share = (hits.full + hits.partial) as f64 / run.report.all.requests.max(1) as f64;
        let _ = writeln!(text, "{:>10.1} %", share * 100.0);
    }
    text
}

/// Histograms of response times, all runs over one axis.
fn histograms(runs: &[PolicyRun]) -> String {
    let end = runs
        .iter()
        .map(|run| run.quantile(SHOWN_SHARE).as_millis_f64())
        .fold(0.0, f64::max);
    let end = rounded_up(end);
    let width = name_width(runs);
    let mut text = String::from("  response times\n");
    let rows = if runs.len() == 1 { 6 } else { 3 };
    for run in runs {
        let (cells, beyond) = cells(run, end);
        let highest = cells.iter().copied().max().unwrap_or(0).max(1);
        for row in (0..rows).rev() {
            let name = match row {
                0 => run.policy.name(),
                _ => String::new(),
            };
            let _ = write!(text, "  {name:width$}");
            text.extend(cells.iter().map(|&count| glyph(count, highest, row, rows)));
            if row == 0 && beyond > 0 {
                let share = beyond as f64 / run.report.all.requests as f64;
                let _ = write!(text, "  {:.2} % beyond", share * 100.0);
            }
            let trimmed = text.trim_end_matches(' ').len();
            text.truncate(trimmed);
            text.push('\n');
        }
    }
    let _ = write!(text, "  {:width$}", "");
    let quarter = HISTOGRAM_CELLS / 4;
    for mark in 0..4 {
        let value = short(end * f64::from(mark) / 4.0);
        let _ = write!(text, "{:quarter$}", format!("╵{value}"));
    }
    let _ = writeln!(text, "╵{} ms", short(end));
    text
}

/// Requests in each cell of the axis, and requests beyond its end.
fn cells(run: &PolicyRun, end: f64) -> (Vec<u64>, u64) {
    let mut cells = vec![0; HISTOGRAM_CELLS];
    let mut beyond = 0;
    for &(within, count) in &run.distribution {
        let place = within.as_millis_f64() / end * HISTOGRAM_CELLS as f64;
        match cells.get_mut(place as usize) {
            Some(cell) => *cell += count,
            None => beyond += count,
        }
    }
    (cells, beyond)
}

/// The part of a column that lies in one row of `rows`, counted from below.
fn glyph(count: u64, highest: u64, row: u64, rows: u64) -> char {
    // Any request is at least an eighth of a row.
    let eighths = (count * rows * 8).div_ceil(highest);
    let here = eighths.saturating_sub(row * 8).min(8);
    [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][here as usize]
}

/// Remarks on the circumstances: once, if they are the same for all runs.
fn remarks(runs: &[PolicyRun]) -> String {
    let width = name_width(runs);
    let mut text = String::new();
    let each: Vec<String> = runs.iter().map(remarks_on).collect();
    let same = each.iter().all(|remarks| *remarks == each[0]);
    for (run, remarks) in runs.iter().zip(each) {
        if !remarks.is_empty() {
            let name = match same {
                true => "note".to_owned(),
                false => run.policy.name(),
            };
            let _ = write!(text, "\n  {name:width$}{remarks}");
        }
        if same {
            break;
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn remarks_on(run: &PolicyRun) -> String {
    let report = &run.report;
    let mut remarks = Vec::new();
    let mut say = |count: u64, what: &str| {
        if count > 0 {
            remarks.push(format!("{} {what}", grouped(count)));
        }
    };
    say(report.all.errors, "requests ended with an error");
    say(report.held_back, "waited outside, the engine being full");
    say(report.skipped, "left out, past the end of the drive");
    say(report.overruled, "choices of the policy overruled");
    if let Some(trace) = &run.trace {
        say(trace.bad_lines, "bad lines left out");
        let replayed = trace.replayed;
        say(replayed.of_other_devices, "of other devices left out");
        say(replayed.rounded, "rounded outward to whole blocks");
        say(replayed.moved, "moved to fit the drive");
        say(
            trace.scaled_from_blocks.unwrap_or(0),
            "blocks shrunk onto the drive",
        );
        if trace.unended {
            remarks.push(UNENDED.to_owned());
        }
    }
    remarks.join("; ")
}

/// The next of 1, 2, 4, 8 and 10 times a power of ten, whose quarters are round.
fn rounded_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 6.0, 8.0, 10.0]
        .map(|multiple| multiple * power)
        .into_iter()
        .find(|&end| end >= value)
        .unwrap_or(10.0 * power)
}

/// A bar's width: it and its legend fit a terminal of 130 columns, and wrap well in one of 80.
const BAR_CELLS: usize = 40;

/// A histogram's width. Four of its quarters are whole cells.
const HISTOGRAM_CELLS: usize = 64;

/// Share of requests within the histogram's axis, so that a few stragglers do not squeeze the rest.
const SHOWN_SHARE: f64 = 0.995;

/// The counts of preemption under each policy.
fn preempted(runs: &[PolicyRun]) -> String {
    let mut text = String::new();
    for run in runs {
        if let Some(stepped) = &run.preempted {
            text.push_str(&format!("  {}  {stepped}\n", run.policy.name()));
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("  requests in parts\n{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_uses_all_its_cells() {
        let text = bar(&[(0.333, 'a'), (0.333, 'b'), (0.334, 'c')]);
        assert_eq!(text.chars().count(), BAR_CELLS);
        assert_eq!(bar(&[(0.0, 'a'), (1.0, 'b')]), "b".repeat(BAR_CELLS));
        assert_eq!(bar(&[(0.0, 'a')]), "");
    }

    #[test]
    fn columns_fill_from_below_and_nothing_is_nothing() {
        assert_eq!(glyph(0, 100, 0, 3), ' ');
        assert_eq!(glyph(1, 100, 0, 3), '▁');
        assert_eq!(glyph(100, 100, 2, 3), '█');
        assert_eq!(glyph(50, 100, 1, 3), '▄');
        assert_eq!(glyph(50, 100, 2, 3), ' ');
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, end) in [
            (0.0, 1.0),
            (0.3, 0.32),
            (37.0, 40.0),
            (101.0, 120.0),
            (99.0, 100.0),
        ] {
            assert!((rounded_up(value) - end).abs() < 1e-9, "{value}");
        }
    }
}
