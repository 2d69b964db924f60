//! `headtime experiment`: runs a sweep from a file, on all cores.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use lab::experiment::{
    Experiment, ExperimentPlan, Grid, MEASURES, Mean, Results, SETTINGS, Shard, ShardResults,
    merged,
};
use lab::{plot, text_file};

use crate::bar::Bar;
use crate::output::width::{self, FittedTable, wrapped};
use crate::output::{DrawingFile, Exit, NewFile, NewTable, json, print, short};

/// The arguments of `headtime experiment`.
#[derive(Debug, Args)]
#[command(after_help = examples())]
pub struct ExperimentArgs {
    /// The experiment file. The folder experiments/ has examples
    #[arg(
        value_name = "FILE",
        required_unless_present = "merge",
        conflicts_with = "merge"
    )]
    file: Option<PathBuf>,
    /// Run only shard I of N of the runs, and write a file for --merge into the folder of --out
    #[arg(long, value_name = "I/N", requires = "out", conflicts_with_all = ["merge", "json", "svg"])]
    shard: Option<Shard>,
    /// Merge the shards of a folder: the same results as of one run of the whole file
    #[arg(long, value_name = "DIR")]
    merge: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    /// Write a row for each run to this file: .parquet or .arrow; docs/reference/file-formats.md has the columns
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Draw the measures to this file: .svg, or .png
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Number of runs in parallel [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// The text below the help, made from the tables.
fn examples() -> String {
    let mut text = String::from(
        "Examples:
  headtime experiment experiments/queue-depth.toml
  headtime experiment experiments/modern-depth.toml --svg out/modern-depth.svg --json
  headtime experiment experiments/queue-depth.toml --out runs.parquet
  headtime experiment experiments/queue-depth.toml --shard 3/16 --out shards
  headtime experiment --merge shards --json

Settings of a file: one value in their table, or a list of several in [sweep]:\n",
    );
    for setting in SETTINGS {
        let _ = writeln!(text, "  {:27} {}", setting.path(), setting.what);
    }
    text.push_str("\nMeasures for [figure] y:\n");
    for measure in MEASURES {
        let _ = writeln!(text, "  {:27} {}", measure.name, measure.title);
    }
    text.push_str("\nNames of files in an experiment are relative to the current directory.");
    text
}

/// Runs the command.
///
/// # Errors
/// If the file or a file that it names is invalid, or the output cannot be written.
pub fn run(arguments: &ExperimentArgs) -> Result<(), Exit> {
    let Some(file) = &arguments.file else {
        let folder = arguments.merge.as_deref().unwrap_or(Path::new("."));
        let results = merged(&shards(folder)?)?;
        let files = OutputFiles::begin(arguments)?;
        return files.show(arguments, &results);
    };
    let name = file.display().to_string();
    let text = text_file::read(file)?;
    let experiment = Experiment::parse(&name, &text).map_err(Exit::input)?;
    let plan = ExperimentPlan::new(experiment)?;
    if arguments
        .svg
        .as_deref()
        .is_some_and(|path| same_file(path, file))
    {
        let problem = format!("--svg {name}: the experiment itself: expected a file of its own");
        return Err(Exit::input(problem));
    }
    let bar = Bar::new("{prefix} {bar:40} {percent:>3} %  {eta} left");
    if let (Some(shard), Some(folder)) = (arguments.shard, &arguments.out) {
        let file = NewFile::begin(&folder.join(shard.file_name()))?;
        let bar = bar.with_prefix(format!("shard {shard}"));
        let measured = plan.measure_shard((&name, &text), shard, arguments.threads, &bar)?;
        bar.finish();
        return file.write(&measured.text()?);
    }
    let files = OutputFiles::begin(arguments)?;
    let bar = bar.with_prefix(format!("{} runs", plan.runs.len()));
    let results = plan.measure(arguments.threads, &bar)?;
    bar.finish();
    files.show(arguments, &results)
}

/// The files of the results, opened before the runs.
struct OutputFiles {
    svg: Option<DrawingFile>,
    out: Option<NewTable>,
}

impl OutputFiles {
    fn begin(arguments: &ExperimentArgs) -> Result<Self, Exit> {
        Ok(OutputFiles {
            svg: arguments
                .svg
                .as_deref()
                .map(DrawingFile::begin)
                .transpose()?,
            out: NewTable::begin(arguments.out.as_deref())?,
        })
    }

    fn show(self, arguments: &ExperimentArgs, results: &Results) -> Result<(), Exit> {
        if let Some(file) = self.svg {
            file.write(&plot::page(&results.panels()))?;
        }
        if let Some(file) = self.out {
            file.write(&results.table())?;
        }
        match arguments.json {
            true => print(&json(results)?),
            false => print(&table(results, width::of_terminal())),
        }
    }
}

/// The shards of a folder, in the order of their names.
fn shards(folder: &Path) -> Result<Vec<(String, ShardResults)>, Exit> {
    let unreadable = |error| Exit::input(format!("{}: {error}", folder.display()));
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("shard-") && name.ends_with(".jsonl") {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    let each = paths.iter().map(|path| {
        let name = path.display().to_string();
        let shard = ShardResults::parse(&name, &text_file::read(path)?)?;
        Ok((name, shard))
    });
    each.collect()
}

fn same_file(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().ok();
    whole(one).is_some_and(|one| whole(other) == Some(one))
}

/// The results as tables, in lines of at most so many columns.
fn table(results: &Results, width: usize) -> String {
    let experiment = results.experiment();
    let mut text = format!("{}: {}\n", experiment.name, experiment.summary);
    for (setting, value) in &experiment.fixed {
        let _ = writeln!(text, "  {:22}{value}", setting.path());
    }
    if experiment.repeat > 1 {
        let seeds = experiment.repeat;
        let _ = writeln!(text, "  {:22}{seeds}: means ± standard deviation", "seeds");
    }
    let _ = writeln!(text, "  {:22}{}", "mode", results.label());
    for grid in results.grids() {
        let _ = write!(text, "\n  {}\n", grid.title);
        text.push_str(&rows(&grid, width));
    }
    wrapped(&text, width)
}

/// The rows of a grid in lines of at most so many columns.
fn rows(grid: &Grid, width: usize) -> String {
    let cell = |mean: &Option<Mean>| match *mean {
        None => "–".to_owned(),
        Some(Mean {
            mean,
            deviation: None,
        }) => short(mean),
        Some(Mean {
            mean,
            deviation: Some(deviation),
        }) => format!("{} ±{}", short(mean), short(deviation)),
    };
    let mut lines = vec![vec![grid.axis.to_owned()]];
    lines[0].extend(grid.columns.iter().cloned());
    for (value, means) in &grid.rows {
        let mut line = vec![value.to_string()];
        line.extend(means.iter().map(cell));
        lines.push(line);
    }
    let length = |text: &String| text.chars().count();
    let widths: Vec<usize> = (0..lines[0].len())
        .map(|at| {
            lines
                .iter()
                .map(|line| length(&line[at]))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut table = FittedTable::default();
    for line in lines {
        let mut cells = line.iter().zip(&widths);
        let label = cells
            .next()
            .map(|(word, &width)| format!("  {word:width$}"));
        let cells = cells.map(|(word, &width)| format!("   {word:>width$}"));
        table.push(label.unwrap_or_default(), cells.collect());
    }
    table.text(width)
}
