//! `headtime streams plan`: may these recorders and players share a disk?

use std::fmt::Write as _;
use std::path::PathBuf;

use block::StreamMode;
use clap::Args;
use lab::amount::amount;
use lab::stream_plan::{NearestSets, StreamGroup, StreamPlan, StreamSet, group};
use lab::text_file;
use server::clock::TimeScale;
use server::config::StreamsConfig;

use crate::output::{Exit, NewTable, grouped, json, print};

/// The arguments of `headtime streams plan`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PlanArgs {
    /// The set: a TOML file
    #[arg(value_name = "FILE", required_unless_present_any = ["drive", "service"], conflicts_with_all = ["drive", "service", "play", "record"])]
    file: Option<PathBuf>,
    /// The drive: a name from `headtime drives`, or a profile file. With --service the name of its drive
    #[arg(long, value_name = "NAME|FILE")]
    drive: Option<String>,
    /// The configuration of a service, whose drive, time scale and promise to streams count
    #[arg(long, value_name = "FILE")]
    service: Option<PathBuf>,
    /// Players: COUNTxRATE, then buffer=SIZE, memory=SIZE, blocks=FIRST..END; repeat it
    #[arg(long, value_name = "STREAMS", value_parser = players)]
    play: Vec<StreamGroup>,
    /// Recorders, in the same words; they come before the players
    #[arg(long, value_name = "STREAMS", value_parser = recorders)]
    record: Vec<StreamGroup>,
    /// Memory of all buffers [default: 256 MiB]
    #[arg(long, value_name = "SIZE", value_parser = amount)]
    memory: Option<u64>,
    /// Head time for all other requests [default: 30]
    #[arg(long, value_name = "PERCENT")]
    foreground: Option<f64>,
    /// Write a row for each group to this file: .parquet or .arrow
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the plan as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime streams plan --drive modern-20tb --record 64x500k,memory=3M --play 4x500k,memory=3M
  headtime streams plan --service disk.toml --record 4x1MB/s
  headtime streams plan cameras.toml --json

A file has the same words, and the keys of [drive.streams] in a table [streams]:
  drive = \"modern-20tb\"
  [streams]
  foreground_percent = 30
  [[stream]]
  name = \"camera\"
  mode = \"record\"              # or play, record-sync
  count = 64
  rate = \"500 kB\"              # a second
  memory = \"3 MB\"              # of the service for each; buffer, memory and blocks are optional

The service's own admission answers; the profile counts as the truth. Files lie anywhere among the blocks, each in
one piece. A service knows where they are, and may grant more. The exit code is 3 if a stream is refused.";

/// The exit code of a refusal.
const REFUSED: u8 = 3;

fn players(text: &str) -> Result<StreamGroup, String> {
    group("player", StreamMode::Play, text)
}

fn recorders(text: &str) -> Result<StreamGroup, String> {
    group("recorder", StreamMode::Record, text)
}

/// Runs the command.
///
/// # Errors
/// If the set is invalid; with an exit code of its own if a stream is refused.
pub fn run(arguments: &PlanArgs) -> Result<(), Exit> {
    let out = NewTable::begin(arguments.out.as_deref())?;
    let plan = arguments.set()?.plan()?;
    if let Some(file) = out {
        file.write(&plan.table())?;
    }
    print(&match arguments.json {
        true => json(&plan)?,
        false => report(&plan),
    })?;
    match &plan.refusal {
        None => Ok(()),
        Some(refusal) => Err(Exit::verdict(
            REFUSED,
            format!(
                "{} {} is refused: {}",
                refusal.name, refusal.number, refusal.reason
            ),
        )),
    }
}

impl PlanArgs {
    fn set(&self) -> Result<StreamSet, Exit> {
        let mut set = match (&self.file, &self.service) {
            (Some(file), _) => {
                let text = text_file::read(file)?;
                StreamSet::parse(&file.display().to_string(), &text).map_err(Exit::input)?
            }
            (None, Some(service)) => StreamSet {
                groups: [&self.record[..], &self.play].concat(),
                ..StreamSet::of_service(service, self.drive.as_deref())?
            },
            (None, None) => StreamSet {
                drive: self.drive.clone().unwrap_or_default(),
                time_scale: TimeScale::REAL,
                promise: StreamsConfig::default(),
                groups: [&self.record[..], &self.play].concat(),
            },
        };
        if set.groups.is_empty() {
            return Err(Exit::input("no streams: expected --play or --record"));
        }
        if let Some(memory) = self.memory {
            set.promise.memory = memory;
        }
        if let Some(percent) = self.foreground {
            if !(0.0..=99.0).contains(&percent) {
                let problem = format!("--foreground {percent}: expected 0 to 99 percent");
                return Err(Exit::input(problem));
            }
            set.promise.foreground_permille = (percent * 10.0).round() as u32;
        }
        Ok(set)
    }
}

fn report(plan: &StreamPlan) -> String {
    let asked: u32 = plan.groups.iter().map(|group| group.count).sum();
    let granted: u32 = plan.groups.iter().map(|group| group.granted).sum();
    let mut text = match plan.fits {
        true => format!("{}: all {asked} streams are granted\n\n", plan.drive),
        false => format!(
            "{}: {granted} of {asked} streams are granted\n\n",
            plan.drive
        ),
    };
    let name = plan.groups.iter().map(|group| group.name.len()).max();
    let width = name.unwrap_or_default().max("stream".len());
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{:width$} {:<11} {:>6} {:>7} {:>12} {:>12} {:>12} {:>12} {:>6}",
        "stream", "mode", "asked", "granted", "bytes/s", "buffer", "memory", "batch", "more"
    );
    for group in &plan.groups {
        let _ = writeln!(
            text,
            "{:width$} {:<11} {:>6} {:>7} {:>12} {:>12} {:>12} {:>12} {:>6}",
            group.name,
            group.mode,
            group.count,
            group.granted,
            grouped(group.rate),
            grouped(group.buffer),
            grouped(group.memory),
            grouped(group.batch),
            group
                .more
                .map_or_else(|| "-".to_owned(), |more| more.to_string())
        );
    }
    let _ = writeln!(
        text,
        "\nhead time: {:.1} % for streams at worst, in rounds of {:.0} ms; {:.1} % are left, of which {:.1} % are \
         promised to others\nmemory: {} bytes for buffers, {} are left",
        plan.head_percent,
        plan.round_ms,
        plan.left_percent,
        plan.promised_percent,
        grouped(plan.memory),
        grouped(plan.memory_left)
    );
    if let Some(nearest) = &plan.nearest {
        text += &near(plan, nearest);
    }
    text
}

fn near(plan: &StreamPlan, nearest: &NearestSets) -> String {
    let fewer = nearest.fewer.iter();
    let fewer: Vec<String> = fewer
        .map(|group| format!("{} {}", group.count, group.name))
        .collect();
    let mut text = format!(
        "\nnearest sets that are granted:\n  fewer streams  {}\n",
        fewer.join(", ")
    );
    let listed = |bytes: &[u64]| {
        let each = plan.groups.iter().zip(bytes);
        let each = each.map(|(group, bytes)| format!("{} {}", group.name, grouped(*bytes)));
        each.collect::<Vec<_>>().join(", ")
    };
    // Writing to a string cannot fail.
    if let Some(larger) = &nearest.larger_buffers {
        let (memory, total) = (listed(&larger.memory), grouped(larger.total));
        let _ = writeln!(text, "  named memory   {memory} bytes each, {total} in all");
    }
    if let Some(slower) = &nearest.slower {
        let (rates, memory) = (listed(&slower.rates), listed(&slower.memory));
        let percent = slower.percent;
        let _ = writeln!(
            text,
            "  lower rates    {percent} %: {rates} bytes a second, with {memory} bytes of memory each"
        );
    }
    text
}
