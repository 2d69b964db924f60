//! `headtime trace`: statistics and conversion of traces.

use crate::bar::ProgressLines;
use crate::output::width::{self, FittedTable, wrapped};
use crate::output::{UNENDED, note};
use crate::settings::columns::ColumnArguments;
use crate::verbosity::bar_target;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use simulator::trace::{
    ALL, Format, IfExists, LayoutError, OnBad, Quantiles, SkippedLines, Statistics, TraceForm,
    TraceReader, TraceSummary, TraceWriter,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Show the statistics of a trace of block requests, or convert it.
#[derive(Debug, Args)]
#[command(after_help = formats_help())]
pub struct TraceArgs {
    #[command(subcommand)]
    action: TraceAction,
}

#[derive(Debug, Subcommand)]
enum TraceAction {
    /// Print the statistics of a trace: requests, sizes, gaps, footprint, randomness.
    Stat(Stat),
    /// Write a trace in another format, without measured times.
    Convert(Convert),
}

#[derive(Debug, Args)]
#[command(after_help = STAT_EXAMPLES)]
struct Stat {
    /// The trace, plain or zstd; - is standard input.
    file: PathBuf,
    /// Print the statistics as JSON.
    #[arg(long)]
    json: bool,
    /// The format [default: detected from the first lines or the name].
    #[arg(long, value_name = "NAME", value_parser = all_names())]
    format: Option<String>,
    #[command(flatten)]
    bad_lines: BadLines,
    #[command(flatten)]
    columns: ColumnArguments,
}

#[derive(Debug, Args)]
#[command(after_help = CONVERT_EXAMPLES)]
struct Convert {
    /// The trace, plain or zstd; - is standard input.
    input: PathBuf,
    /// The output file. A name ending in .zst is compressed.
    output: PathBuf,
    /// The input's format [default: detected from the first lines or the name].
    #[arg(long, value_name = "NAME", value_parser = all_names())]
    from: Option<String>,
    /// The output's format [default: detected from the name].
    #[arg(long, value_name = "NAME", value_parser = names(Format::is_written))]
    to: Option<String>,
    /// Convert the requests of this device only.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    #[command(flatten)]
    bad_lines: BadLines,
    #[command(flatten)]
    columns: ColumnArguments,
    /// Replace an existing output file.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
struct BadLines {
    /// Skip bad lines, and report their number at the end.
    #[arg(long)]
    skip_bad: bool,
}

impl BadLines {
    fn policy(&self) -> OnBad {
        match self.skip_bad {
            true => OnBad::Skip,
            false => OnBad::Refuse,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// One line with the problem and its place.
pub fn run(trace: &TraceArgs) -> Result<(), Box<dyn Error>> {
    match &trace.action {
        TraceAction::Stat(stat) => run_stat(stat),
        TraceAction::Convert(convert) => run_convert(convert),
    }
}

fn run_stat(stat: &Stat) -> Result<(), Box<dyn Error>> {
    let form = form(&stat.format, &stat.columns)?;
    let mut reader = TraceReader::open(&stat.file, form, stat.bad_lines.policy())?;
    let mut statistics = Statistics::default();
    let progress = TraceProgress::of(&reader);
    while let Some(record) = reader.next() {
        statistics.add(&record?);
        progress.show(&reader);
    }
    progress.end();
    let summary = statistics
        .summary(reader.devices())
        .ok_or("the trace has no request")?;
    let report = if stat.json {
        let mut text =
            serde_json::to_string_pretty(&TraceReport::new(&stat.file, &reader, &summary))?;
        text.push('\n');
        text
    } else {
        table(&stat.file, &reader, &summary, width::of_terminal())?
    };
    io::stdout().lock().write_all(report.as_bytes())?;
    Ok(())
}

fn run_convert(convert: &Convert) -> Result<(), Box<dyn Error>> {
    let to = match &convert.to {
        Some(name) => Format::named(name),
        None => Format::by_extension(&convert.output, Format::is_written),
    };
    let to = to.ok_or_else(|| {
        format!(
            "{}: the name tells no format that is written: use --to with one of {}",
            convert.output.display(),
            names(Format::is_written).join(", ")
        )
    })?;
    let if_exists = if convert.force {
        IfExists::Replace
    } else {
        IfExists::Refuse
    };
    let bad = convert.bad_lines.policy();
    let form = form(&convert.from, &convert.columns)?;
    let mut reader = TraceReader::open(&convert.input, form, bad)?;
    let mut writer = TraceWriter::create(&convert.output, to, if_exists)?;
    let progress = TraceProgress::of(&reader);
    let mut written = 0_u64;
    while let Some(record) = reader.next() {
        let record = record?;
        let name = reader.devices().name(record.device);
        if convert
            .device
            .as_deref()
            .is_none_or(|wanted| wanted == name)
        {
            writer.write(&record, name)?;
            written += 1;
        }
        progress.show(&reader);
    }
    progress.end();
    if let (Some(wanted), 0) = (&convert.device, written) {
        return Err(no_such_device(&convert.input, wanted, &reader).into());
    }
    let remark = writer.finish()?;
    note(&format!(
        "{}: {written} requests in {}\n",
        convert.output.display(),
        to.name
    ));
    let mut doubts = String::new();
    let unended = reader.is_unended().then(|| UNENDED.to_owned());
    let skipped = skipped_line(reader.skipped());
    for line in remark.into_iter().chain(skipped).chain(unended) {
        writeln!(doubts, "{line}")?;
    }
    io::stderr().lock().write_all(doubts.as_bytes())?;
    Ok(())
}

fn no_such_device(file: &Path, wanted: &str, reader: &TraceReader) -> String {
    /// Limit of device names in a message: more do not fit on a line.
    const NAMED: usize = 8;
    let names: Vec<&str> = reader.devices().names().take(NAMED).collect();
    let dots = match reader.devices().names().len() > NAMED {
        true => ", ...",
        false => "",
    };
    format!(
        "{}: no request of device {wanted}: the devices are {}{dots}",
        file.display(),
        names.join(", ")
    )
}

/// The JSON output.
#[derive(Serialize)]
struct TraceReport<'a> {
    file: String,
    format: &'static str,
    #[serde(flatten)]
    summary: &'a TraceSummary,
    passed_over: u64,
    skipped: u64,
    skipped_by_reason: BTreeMap<&'static str, u64>,
    /// The last line has no newline. If the file was cut there, the last number is wrong.
    unended: bool,
}

impl<'a> TraceReport<'a> {
    fn new(file: &Path, reader: &TraceReader, summary: &'a TraceSummary) -> Self {
        TraceReport {
            file: file.display().to_string(),
            format: reader.format().name,
            summary,
            passed_over: reader.passed_over(),
            skipped: reader.skipped().total(),
            skipped_by_reason: reader
                .skipped()
                .by_reason()
                .map(|(reason, count)| (reason.key(), count))
                .collect(),
            unended: reader.is_unended(),
        }
    }
}

/// Limit of devices in the table. The JSON has all.
const SHOWN_DEVICES: usize = 16;

/// The summary as text, in lines of at most so many columns.
fn table(
    file: &Path,
    reader: &TraceReader,
    summary: &TraceSummary,
    width: usize,
) -> Result<String, fmt::Error> {
    let mut out = String::new();
    let megabytes = |bytes: u64| grouped(bytes as f64 / 1e6, 1);
    writeln!(out, "{} ({})", file.display(), reader.format().summary)?;
    writeln!(out)?;
    let reads = format!("{:.1} % reads", summary.read_percent);
    row(
        &mut out,
        "requests",
        &grouped(summary.requests as f64, 0),
        &reads,
    )?;
    let read = format!("MB, {} read", megabytes(summary.read_bytes));
    row(&mut out, "data", &megabytes(summary.bytes), &read)?;
    let pages = "MB in distinct 4 KiB pages";
    row(
        &mut out,
        "footprint",
        &megabytes(summary.footprint_bytes),
        pages,
    )?;
    let end = summary.devices.iter().map(|device| device.end_byte).max();
    let end = end.unwrap_or_default();
    let of_end = match large_enough(end) {
        Some(name) => {
            format!("MB is the last address; the smallest shipped drive with it is {name}")
        }
        None => "MB is the last address; no shipped drive has it".to_owned(),
    };
    row(&mut out, "end", &megabytes(end), &of_end)?;
    row(&mut out, "span", &grouped(summary.span_seconds, 3), "s")?;
    let random = "% do not start where one of the last 32 requests ended";
    row(
        &mut out,
        "random",
        &format!("{:.1}", summary.random_percent),
        random,
    )?;
    writeln!(out)?;
    out.push_str(&spreads(summary).text(width));
    writeln!(out)?;
    out.push_str(&devices(summary).text(width));
    if let Some(further @ 1..) = summary.devices.len().checked_sub(SHOWN_DEVICES) {
        writeln!(out, "and {further} more (--json lists them)")?;
    }
    remarks(&mut out, reader, summary)?;
    Ok(wrapped(&out, width))
}

/// The spreads of sizes and gaps.
fn spreads(summary: &TraceSummary) -> FittedTable {
    let mut table = FittedTable::default();
    let titles = ["mean", "min", "p50", "p90", "p99", "p99.9", "max"];
    table.push(format!("{:<12}", ""), titles.map(cell).to_vec());
    let mut push = |what: &str, spread: &Quantiles, unit: f64| {
        let Quantiles {
            mean,
            min,
            p50,
            p90,
            p99,
            p999,
            max,
        } = *spread;
        let whole = [min, p50, p90, p99, p999, max].map(|figure| figure as f64);
        let figures = [mean].into_iter().chain(whole);
        let cells = figures.map(|figure| cell(&grouped(figure / unit, 3)));
        table.push(format!("{what:<12}"), cells.collect());
    };
    push("size, KiB", &summary.size_bytes, 1024.0);
    if let Some(gaps) = &summary.gap_nanos {
        push("gap, ms", gaps, 1e6);
    }
    table
}

/// The devices, those with the most requests first.
fn devices(summary: &TraceSummary) -> FittedTable {
    let mut table = FittedTable::default();
    let titles = ["requests", "MB", "footprint"];
    table.push(format!("{:<12}", "device"), titles.map(cell).to_vec());
    for device in summary.devices.iter().take(SHOWN_DEVICES) {
        let figures = [
            grouped(device.requests as f64, 0),
            grouped(device.bytes as f64 / 1e6, 1),
            grouped(device.footprint_bytes as f64 / 1e6, 1),
        ];
        let cells = figures.map(|figure| cell(&figure));
        table.push(format!("{:<12}", device.name), cells.to_vec());
    }
    table
}

/// A cell of a table.
fn cell(text: &str) -> String {
    format!(" {text:>12}")
}

/// The smallest shipped drive with so many bytes.
fn large_enough(bytes: u64) -> Option<&'static str> {
    let sized = drive::catalog::ALL.iter().filter_map(|entry| {
        let capacity = entry.profile().ok()?.capacity_bytes();
        (capacity >= bytes).then_some((capacity, entry.name))
    });
    sized.min().map(|(_, name)| name)
}

/// What is to be known of the lines and of the units.
fn remarks(out: &mut String, reader: &TraceReader, summary: &TraceSummary) -> fmt::Result {
    if reader.passed_over() > 0 {
        let lines = match reader.passed_over() {
            1 => "1 line is".to_owned(),
            many => format!("{} lines are", grouped(many as f64, 0)),
        };
        writeln!(out, "\n{lines} no request, such as a header or a comment")?;
    }
    if let Some(line) = skipped_line(reader.skipped()) {
        writeln!(out, "\n{line}")?;
    }
    if reader.is_unended() {
        writeln!(out, "\n{UNENDED}")?;
    }
    for doubt in &summary.doubts {
        writeln!(out, "\nwarning: {doubt}: {REMEDY}")?;
    }
    Ok(())
}

/// What to do if units look wrong.
pub const REMEDY: &str = "name another --format, or state the columns and units with --columns, --block-bytes, --size-unit \
                      and --time-unit";

fn row(out: &mut String, what: &str, figure: &str, rest: &str) -> fmt::Result {
    writeln!(out, "{what:<12} {figure:>12} {rest}")
}

/// A figure with commas between thousands.
fn grouped(figure: f64, decimals: usize) -> String {
    let plain = format!("{figure:.decimals$}");
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let mut text = String::with_capacity(plain.len() + whole.len() / 3);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

fn skipped_line(skipped: &SkippedLines) -> Option<String> {
    (skipped.total() > 0).then(|| skipped.to_string())
}

fn form(name: &Option<String>, columns: &ColumnArguments) -> Result<TraceForm, LayoutError> {
    let format = name.as_deref().and_then(Format::named);
    TraceForm::new(format, &columns.stated())
}

fn names(wanted: impl Fn(&Format) -> bool) -> Vec<&'static str> {
    ALL.iter()
        .filter(|format| wanted(format))
        .map(|format| format.name)
        .collect()
}

fn all_names() -> PossibleValuesParser {
    names(|_| true).into()
}

fn formats_help() -> String {
    let mut text = format!("{STAT_EXAMPLES}\n\nFormats (* also written):\n");
    for format in ALL {
        let star = if format.is_written() { '*' } else { ' ' };
        let endings: Vec<String> = format
            .extensions
            .iter()
            .map(|extension| format!(".{extension}"))
            .collect();
        text += &format!(
            "  {:<9} {star} {} ({})\n              {}\n",
            format.name,
            format.summary,
            endings.join(", "),
            format.shape
        );
    }
    text + "Every format may be compressed with zstd."
}

const STAT_EXAMPLES: &str = "Examples:
  headtime trace stat websearch.csv.zst
  zcat mine.csv.gz | headtime trace stat - --columns time,offset,size,op --time-unit us
  headtime trace stat --format spc --skip-bad --json Financial1.spc";

const CONVERT_EXAMPLES: &str = "Examples:
  headtime trace convert Financial1.spc financial.csv.zst
  headtime trace convert --device 0 --to fio-v3 websearch.csv.zst device0.iolog

The output appears under its name when it is whole. An interrupted command leaves a hidden file
.headtime-*.partial beside it, which can be deleted.";

/// A progress bar over the bytes of the file.
struct TraceProgress {
    bar: ProgressBar,
    _lines: ProgressLines,
}

impl TraceProgress {
    /// Creates the bar, which is hidden if standard error is no terminal.
    fn of(reader: &TraceReader) -> Self {
        let bar = match reader.size() {
            Some(bytes) => ProgressBar::new(bytes),
            None => ProgressBar::no_length(),
        };
        bar.set_draw_target(bar_target(20));
        let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} left");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        let _lines = ProgressLines::of(&bar);
        TraceProgress { bar, _lines }
    }

    fn show(&self, reader: &TraceReader) {
        let position = reader.position();
        if position != self.bar.position() {
            self.bar.set_position(position);
        }
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}
