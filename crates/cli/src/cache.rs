//! `headtime cache`: miss-ratio curves of a trace.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use lab::amount::amount;
use lab::cache_curve::{
    BLOCK_BYTES, CurveSettings, CurveSummary, MissCurves, PrefetchFigures, Sampling,
};

use crate::bar::Bar;
use crate::output::{DrawingFile, Exit, NewTable, grouped, json, print, warn};
use crate::settings::units::part;

/// The arguments of `headtime cache`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CacheArgs {
    /// The trace: a format of `headtime trace`, or one of libCacheSim's
    #[arg(long, value_name = "FILE")]
    pub trace: PathBuf,
    /// The trace's format: one of `headtime trace`, oracle-general or csv [default: detected]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// The columns of a csv trace, in libCacheSim's words: "obj-id-col=5, delimiter=;"
    #[arg(long, value_name = "WORDS")]
    pub columns: Option<String>,
    /// The replacement policies [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub replacement: Vec<String>,
    /// Add what a prefetcher saves and fetches in vain, beside the named policies [default: lru]; repeat it
    #[arg(long, value_name = "NAME")]
    pub prefetch: Vec<String>,
    /// The sizes of the cache: 64MiB, 1GiB [default: the trace's footprint, halved 11 times]
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = amount)]
    pub size: Vec<u64>,
    /// Sample this share of the blocks, 0 to 1: faster, and less exact
    #[arg(long, value_name = "SHARE", value_parser = part)]
    pub sample: Option<f64>,
    /// Skip and count bad lines
    #[arg(long)]
    pub skip_bad: bool,
    /// Write the rows to this file: .parquet or .arrow; docs/reference/file-formats.md has the columns
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Draw the curves to this file: .svg, or .png
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime cache --trace web.csv
  headtime cache --trace web.csv --replacement lru,arc,s3-fifo --size 64MiB,1GiB --svg curves.svg
  headtime cache --trace web.csv --out curves.parquet
  headtime cache --trace web.csv --size 256MiB --prefetch \"ra(p=8)\" --prefetch linux-6
  headtime cache --trace big.oracleGeneral.zst --sample 0.01
  headtime cache --trace blocks.csv --columns \"time-col=2, obj-id-col=5, has-header=true\"

A cell is the miss ratio: the share of demanded blocks of 4 KiB that the cache does not have. Reads
and writes count alike. In a trace of objects each object is one block. lru needs one pass for all
sizes, the other policies one for each. With --sample, a hash chooses the blocks, and the caches
shrink by the same share (SHARDS, FAST 2015). Prefetches of --prefetch are complete at once, so that
their hits are an upper bound; `headtime simulate --cache` has the drive's times.";

/// What to do if units look wrong.
const REMEDY: &str =
    "name another --format, or state the units with `headtime trace convert` and take its trace";

/// Runs the command.
///
/// # Errors
/// If the input is invalid, or the output cannot be written.
pub fn run(arguments: &CacheArgs) -> Result<(), Exit> {
    let settings = arguments.settings()?;
    for doubt in settings.doubts() {
        warn(&format!("{doubt}: {REMEDY}"));
    }
    let svg = arguments
        .svg
        .as_deref()
        .map(DrawingFile::begin)
        .transpose()?;
    let out = NewTable::begin(arguments.out.as_deref())?;
    let bar = Bar::new("{msg}: {percent} %, {eta} left {wide_bar}").ticking();
    let curves = settings.run(&bar);
    bar.finish();
    let curves = curves?;
    if curves.bad_lines > 0 {
        warn(&format!("{} bad lines skipped", grouped(curves.bad_lines)));
    }
    if let Some(file) = svg {
        file.write(&curves.svg())?;
    }
    if let Some(file) = out {
        file.write(&curves.table())?;
    }
    match arguments.json {
        true => print(&json(&curves)?),
        false => print(&(table(&curves) + &sentences(&curves) + &prefetched(&curves))),
    }
}

impl CacheArgs {
    fn settings(&self) -> Result<CurveSettings, Exit> {
        let blocks = |&bytes: &u64| match bytes / BLOCK_BYTES {
            0 => Err(Exit::input(format!(
                "--size {bytes}: expected at least {BLOCK_BYTES} bytes"
            ))),
            blocks => Ok(blocks),
        };
        Ok(CurveSettings {
            trace: self.trace.clone(),
            format: self.format.clone(),
            columns: self.columns.clone(),
            skip_bad: self.skip_bad,
            replacement: self.replacement.clone(),
            prefetch: self.prefetch.clone(),
            sizes: self.size.iter().map(blocks).collect::<Result<_, _>>()?,
            sampling: match self.sample {
                Some(share) => Sampling::of(share)?,
                None => Sampling::WHOLE,
            },
        })
    }
}

/// What each prefetcher saves and fetches in vain.
fn prefetched(curves: &MissCurves) -> String {
    if curves.prefetched.is_empty() {
        return String::new();
    }
    let name = |line: &PrefetchFigures| format!("{},{}", line.replacement, line.prefetcher);
    let width = curves.prefetched.iter().map(|line| name(line).len()).max();
    let width = width.unwrap_or_default();
    let mut text = format!(
        "\n{:>10} {:width$} {:>9} {:>14} {:>9}\n",
        "size", "", "misses", "fetched ahead", "in vain"
    );
    for line in &curves.prefetched {
        let vain = 100.0 * line.unused as f64 / line.prefetched.max(1) as f64;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>10} {:width$} {:>9.4} {:>14} {vain:>8.1}%",
            bytes(line.blocks),
            name(line),
            line.miss_ratio,
            grouped(line.prefetched)
        );
    }
    text
}

/// A row for each size, a column for each policy.
fn table(curves: &MissCurves) -> String {
    let mut text = format!("{:>10}", "size");
    // Writing to a string cannot fail.
    for name in &curves.replacements {
        let _ = write!(text, " {name:>WIDTH$}");
    }
    text.push('\n');
    for (row, &size) in curves.sizes.iter().enumerate() {
        let _ = write!(text, "{:>10}", bytes(size));
        for column in 0..curves.replacements.len() {
            let point = &curves.ratios[column * curves.sizes.len() + row];
            let _ = write!(text, " {:>WIDTH$.4}", point.miss_ratio);
        }
        text.push('\n');
    }
    text
}

/// The width of a column: the longest name of a policy.
const WIDTH: usize = 9;

/// What the curves say.
fn sentences(curves: &MissCurves) -> String {
    let CurveSummary {
        first_demands,
        memory,
        better,
    } = curves.worth();
    let mut text = format!(
        "\n{} demands for {} blocks ({}). {:.1} % are the first for their block: no cache without prefetching \
         hits them.\n",
        grouped(curves.demands),
        grouped(curves.distinct),
        bytes(curves.distinct),
        100.0 * first_demands
    );
    if first_demands < 1.0 {
        let each = memory.iter().map(|worth| {
            let share = 100.0 * worth.share;
            format!("{} for {share:.0} %", bytes(worth.blocks))
        });
        let each: Vec<String> = each.collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "Memory for what can be hit under lru: {}.",
            each.join(", ")
        );
    }
    let _ = match better {
        Some(better) => writeln!(
            text,
            "At {}, {} misses {:.1} % and lru {:.1} %. lru needs {} for that.",
            bytes(better.best.blocks),
            better.best.replacement,
            100.0 * better.best.miss_ratio,
            100.0 * better.lru,
            bytes(better.lru_blocks)
        ),
        None => writeln!(
            text,
            "No policy misses half a point less than lru at any of these sizes."
        ),
    };
    if let Some(below) = curves.coarse_below() {
        let _ = writeln!(
            text,
            "Below {} the caches of the sample have fewer than 1,000 blocks: their miss ratios may be some hundredths off.",
            bytes(below)
        );
    }
    text
}

/// So many blocks, in the largest unit that keeps three digits.
fn bytes(blocks: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut amount = (blocks * (BLOCK_BYTES / 1024)) as f64;
    let mut unit = 0;
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    match amount < 10.0 && unit > 0 {
        true => format!("{amount:.2} {}", UNITS[unit]),
        false => format!("{amount:.0} {}", UNITS[unit]),
    }
}
