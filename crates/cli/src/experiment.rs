//! `headtime experiment`: a sweep from a file, on all cores.
//!
//! ```text
//!   file --parse--> combinations --plan--> setups, one for each seed --rayon--> measures
//!                                                                     |
//!                                             table, JSON, plot <-----'  in the order of the file
//! ```
//!
//! A run is what `headtime simulate` runs with the same flags.

mod measure;
mod plan;
mod report;

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::experiment::{Experiment, SETTINGS};
use lab::plot;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use simulator::run::{Progress, Watch};

use crate::output::{Failure, NewFile, print, read_file};
use measure::{MEASURES, Measured, Point};
use plan::{Plan, Run};

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = examples())]
pub struct Arguments {
    /// The experiment file; there are some in experiments/
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    /// Draw them, a plot for each measure
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// So many runs at once; otherwise as many as there are cores
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// What stands under the help, made from the tables.
fn examples() -> String {
    let mut text = String::from(
        "Examples:
  headtime experiment experiments/queue-depth.toml
  headtime experiment experiments/modern-depth.toml --svg out/modern-depth.svg --json

Settings of a file: one value in their table, or a list of several in [sweep]:\n",
    );
    for setting in SETTINGS {
        let _ = writeln!(text, "  {:22}{}", setting.path(), setting.what);
    }
    text.push_str("\nMeasures for [figure] y:\n");
    for measure in MEASURES {
        let _ = writeln!(text, "  {:22}{}", measure.name, measure.title);
    }
    text.push_str("\nNames of files in an experiment are relative to the current directory.");
    text
}

/// Runs the command.
///
/// # Errors
/// If the file or what it names is wrong, or the output cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let name = arguments.file.display().to_string();
    let experiment = Experiment::parse(&name, &read_file(&arguments.file)?);
    let plan = Plan::new(experiment.map_err(Failure::input)?)?;
    if arguments.svg.is_some() {
        plan.check_drawable()?;
    }
    let svg = arguments.svg.as_deref();
    if svg.is_some_and(|path| same_file(path, &arguments.file)) {
        let problem = format!("--svg {name}: the experiment itself: expected a file of its own");
        return Err(Failure::input(problem));
    }
    let svg = svg.map(NewFile::begin).transpose()?;
    let points = plan.measured(arguments.threads)?;
    if let Some(file) = svg {
        file.write(&plot::page(&report::panels(&plan, &points)))?;
    }
    match arguments.json {
        true => print(&report::json(&plan, &points)?),
        false => print(&report::table(&plan, &points)),
    }
}

fn same_file(one: &std::path::Path, other: &std::path::Path) -> bool {
    let whole = |path: &std::path::Path| path.canonicalize().ok();
    whole(one).is_some_and(|one| whole(other) == Some(one))
}

impl Plan {
    /// Does all runs. How many at once changes nothing of what they measure.
    fn measured(&self, threads: Option<u16>) -> Result<Vec<Point>, Failure> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.map_or(0, usize::from))
            .build()
            .map_err(Failure::failed)?;
        let bar = bar(self.runs.len());
        // All of them in their order first: which error is told does not depend on who was first.
        let done: Vec<Result<Measured, Failure>> = pool.install(|| {
            let runs = self.runs.par_iter();
            runs.map(|run| self.one(run, &bar)).collect()
        });
        bar.finish_and_clear();
        let done = done.into_iter().collect::<Result<Vec<_>, _>>()?;
        let repeat = self.experiment.repeat as usize;
        Ok(done.chunks(repeat).map(Point::new).collect())
    }

    fn one(&self, run: &Run, bar: &ProgressBar) -> Result<Measured, Failure> {
        let mut watch = Share {
            bar,
            requests: run.setup.requests,
            hundredths: run.setup.scan.as_ref().map(|s| s.background().hundredths),
            shown: 0,
        };
        let policy = run.setup.policies[0];
        let ran = run.setup.run(policy, &mut watch);
        bar.inc(UNITS.saturating_sub(watch.shown));
        let ran = ran.map_err(|failure| self.complain(run, failure))?;
        Ok(Measured::new(&ran))
    }
}

/// A run's share of the bar of all.
struct Share<'a> {
    bar: &'a ProgressBar,
    requests: Option<u64>,
    /// At which the load ends.
    hundredths: Option<u32>,
    shown: u64,
}

impl Share<'_> {
    fn show(&mut self, share: f64) {
        let so_far = (share.min(1.0) * UNITS as f64) as u64;
        self.bar.inc(so_far.saturating_sub(self.shown));
        self.shown = self.shown.max(so_far);
    }
}

impl Watch for Share<'_> {
    fn progress(&mut self, progress: Progress) {
        let by_requests = self
            .requests
            .map(|requests| progress.finished as f64 / requests as f64);
        let by_scan = progress.scanned.zip(self.hundredths);
        let by_scan = by_scan.map(|(share, end)| share * 100.0 / f64::from(end));
        if let Some(share) = by_requests.or(by_scan) {
            self.show(share);
        }
    }
}

fn bar(runs: usize) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let bar = ProgressBar::with_draw_target(Some(runs as u64 * UNITS), target);
    let template = "{prefix} {bar:40} {percent:>3} %  {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
    }
    bar.set_prefix(format!("{runs} runs"));
    bar
}

/// What a run is on the bar: finer than its cells.
const UNITS: u64 = 1000;
