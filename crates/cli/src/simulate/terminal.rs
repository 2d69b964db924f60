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

use super::histogram::histograms;
use super::{clients, scan};
use crate::output::width::{FittedTable, wrapped};
use crate::output::{UNENDED, grouped, short};
use crate::why;

/// Selects the requests of a part of the table.
type SideOf = fn(&PolicyRun) -> &RequestFigures;

/// Selects a phase of the mean account.
type PhaseOf = fn(&AccountMeans) -> f64;

/// The report of a comparison, in lines of at most so many columns.
pub fn report(setup: &ComparisonSetup, runs: &[PolicyRun], width: usize) -> String {
    let mut text = heading(setup, runs);
    text.push_str(&table(runs, width));
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
    text.push_str(&accounts(runs, width));
    text.push('\n');
    for run in runs.iter().filter(|run| !run.slow.is_empty()) {
        let _ = writeln!(text, "the slowest under {}\n", run.policy.name());
        for slow in &run.slow {
            text.push_str(&why::text(slow));
            text.push('\n');
        }
    }
    text.push_str(&histograms(runs, name_width(runs), width));
    text.push_str(&remarks(runs));
    if let Some(verdict) = verdict(setup, runs) {
        let _ = writeln!(text, "\n{}", verdict.sentences.join("\n"));
    }
    wrapped(&text, width)
}

/// The bus of the system on which a drive was measured.
fn bus(drive: &drive::profile::Profile) -> String {
    let [read, write] = drive.bus.rates(drive.block_bytes);
    let rates = match read == write {
        true => format!("{read:.1}"),
        false => format!("{read:.1} (reads) and {write:.1} (writes)"),
    };
    match read.is_finite() && write.is_finite() {
        true => {
            format!("  bus     {rates} MB/s, as the drive was measured; --bus-mb-s sets another\n")
        }
        false => String::new(),
    }
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
    if setup.truth.bus_mb_s().is_none() {
        text.push_str(&bus(drive));
    }
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

fn table(runs: &[PolicyRun], width: usize) -> String {
    let names = name_width(runs);
    let titles = [
        "requests", "mean ms", "p50", "p90", "p99", "p99.9", "max", "req/s", "MB/s",
    ];
    let mut table = FittedTable::default();
    let titles = titles.map(|title| format!("{title:>10}"));
    table.push(format!("  {:7} {:names$}", "", ""), titles.to_vec());
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
        lines(&mut table, runs, name, side);
    }
    let parts = runs.first().map_or(0, |run| run.report.parts.len());
    for part in 0..parts {
        let name = &runs[0].report.parts[part].name;
        lines(&mut table, runs, name, |run| &run.report.parts[part].side);
    }
    table.text(width)
}

/// Appends a line for each run.
fn lines(
    table: &mut FittedTable,
    runs: &[PolicyRun],
    name: &str,
    side: impl Fn(&PolicyRun) -> &RequestFigures,
) {
    let names = name_width(runs);
    for (row, run) in runs.iter().enumerate() {
        let label = if row == 0 { name } else { "" };
        let label = format!("  {label:7} {:names$}", run.policy.name());
        table.push(label, figures(side(run), run.report.span_ms));
    }
}

fn figures(side: &RequestFigures, span_ms: f64) -> Vec<String> {
    let mut cells = vec![format!("{:>10}", grouped(side.requests))];
    if let Some(response) = &side.response {
        let values = [
            response.mean_ms,
            response.p50_ms,
            response.p90_ms,
            response.p99_ms,
            response.p999_ms,
            response.max_ms,
            side.requests as f64 / span_ms * 1e3,
            side.bytes as f64 / span_ms / 1e3,
        ];
        cells.extend(values.map(|value| format!("{:>10}", short(value))));
    }
    cells
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
fn accounts(runs: &[PolicyRun], width: usize) -> String {
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
    let mut table = FittedTable::default();
    let titles = phases.iter().map(|(name, _)| format!("{name:>10}"));
    let titles = titles.chain([format!("{:>12}", "buffer hits")]);
    table.push(format!("  {:16}", "of a request, ms"), titles.collect());
    for run in runs {
        let Some(account) = &run.report.all.account else {
            continue;
        };
        let hits = &run.report.all.hits;
        let share = (hits.full + hits.partial) as f64 / run.report.all.requests.max(1) as f64;
        let means = phases
            .iter()
            .map(|(_, of)| format!("{:>10}", short(of(account))));
        let cells = means.chain([format!("{:>10.1} %", share * 100.0)]);
        table.push(format!("  {:16}", run.policy.name()), cells.collect());
    }
    table.text(width)
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

/// A bar's width: it and its legend fit a terminal of 130 columns, and wrap well in one of 80.
const BAR_CELLS: usize = 40;

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
}
