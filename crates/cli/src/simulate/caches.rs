//! `headtime simulate --cache`: a trace on caches over a drive.

use std::fmt::Write as _;

use lab::cached_drive::{CachedFigures, CachedSettings};
use lab::system::SystemFile;

use super::SimulateArgs;
use crate::bar::Bar;
use crate::output::width::{self, FittedTable, wrapped};
use crate::output::{Exit, NewTable, grouped, json, print, warn};

/// The options of `--cache`.
pub const FLAGS: [&str; 16] = [
    "trace_events",
    "commands_out",
    "belief",
    "ScanArguments",
    "TruthArguments",
    "PreemptArguments",
    "phases",
    "mirror",
    "depth",
    "seconds",
    "requests_out",
    "why",
    "svg",
    "tasks",
    "rate",
    "seed",
];

/// Runs the trace, and prints what each cache did.
///
/// # Errors
/// If the input is invalid, or the output cannot be written.
pub fn run(arguments: &SimulateArgs) -> Result<(), Exit> {
    let [policy] = &arguments.policy[..] else {
        return Err(Exit::input("--cache with several policies: expected one"));
    };
    let settings = CachedSettings {
        drive: arguments.drive.clone(),
        profile: None,
        load: arguments.load.settings(),
        caches: arguments.cache.clone(),
        link: arguments.link.clone(),
        policy: policy.clone(),
        requests: arguments.requests,
    };
    show(arguments, &settings)
}

/// Runs a system whose clients or volumes have caches.
///
/// # Errors
/// As [`run`]; if the system or the flags ask for what caches do not do.
pub fn run_system(arguments: &SimulateArgs, system: &SystemFile) -> Result<(), Exit> {
    let given = [
        ("--policy", !arguments.policy.is_empty()),
        ("--trace-events", arguments.trace_events.is_some()),
        ("--commands-out", arguments.commands_out.is_some()),
        ("--depth", arguments.depth.is_some()),
        ("--seconds", arguments.seconds.is_some()),
        ("--requests-out", arguments.requests_out.is_some()),
        ("--why", arguments.why.is_some()),
        ("--svg", arguments.svg.is_some()),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given) {
        let file = &system.file;
        return Err(Exit::input(format!(
            "{file}: caches, with {flag}: expected none"
        )));
    }
    show(arguments, &system.cached(arguments.requests)?)
}

/// Runs the settings, and prints the figures.
fn show(arguments: &SimulateArgs, settings: &CachedSettings) -> Result<(), Exit> {
    let out = NewTable::begin(arguments.out.as_deref())?;
    let bar = Bar::new("{msg}: {percent} %, {eta} left {wide_bar}").ticking();
    let figures = settings.run(&bar);
    bar.finish();
    let figures = figures?;
    if figures.bad_lines > 0 {
        warn(&format!("{} bad lines skipped", grouped(figures.bad_lines)));
    }
    if let Some(file) = out {
        file.write(&figures.table())?;
    }
    match arguments.json {
        true => print(&json(&figures)?),
        false => print(&report(&figures, &settings.policy, width::of_terminal())),
    }
}

/// The report, in lines of at most so many columns.
fn report(figures: &CachedFigures, policy: &str, width: usize) -> String {
    let mut text = format!(
        "{} requests, {} under {policy} ({}): mean {:.3} ms, p50 {:.3}, p99 {:.3}\n\n",
        grouped(figures.requests),
        figures.drive,
        figures.mode,
        figures.mean_ms,
        figures.p50_ms,
        figures.p99_ms
    );
    let names = figures.levels.iter().map(|level| level.cache.len()).max();
    let names = names.unwrap_or_default();
    let mut table = FittedTable::default();
    let cell = |text: &str| format!(" {text:>12}");
    let titles = ["hits", "misses", "prefetched", "readmore", "unused"].map(cell);
    let titles = [format!(" {:>7}", "hits")].into_iter().chain(titles);
    table.push(format!("{:names$}", "cache"), titles.collect());
    for level in &figures.levels {
        let counts = [
            level.hits,
            level.misses,
            level.prefetched,
            level.readmore,
            level.unused,
        ];
        let counts = counts.map(|count| cell(&grouped(count)));
        let ratio = format!(" {:>6.1}%", 100.0 * level.hit_ratio);
        let cells = [ratio].into_iter().chain(counts);
        table.push(format!("{:names$}", level.cache), cells.collect());
    }
    text.push_str(&table.text(width));
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\ndisk: {} commands, {} blocks of 4 KiB, busy {:.1} %",
        grouped(figures.disk_commands),
        grouped(figures.disk_blocks),
        figures.disk_busy_percent
    );
    let _ = writeln!(text, "\n{}", figures.verdict.join("\n"));
    wrapped(&text, width)
}
