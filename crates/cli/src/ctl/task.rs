//! `headtime ctl task start`: begins a task over a declared set of a volume's bytes.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use document::quantity::Unit;
use serde_json::Value;
use server::control::protocol::Ask;
use server::control::{PieceSet, Scan, TaskLifetime};

use crate::output::Exit;
use crate::scan;
use crate::settings::units::{MOST_SECONDS, whole_in};

/// The arguments of `headtime ctl task`.
#[derive(Clone, Debug, Args)]
pub struct TaskArgs {
    #[command(subcommand)]
    action: TaskAction,
}

#[derive(Clone, Debug, Subcommand)]
enum TaskAction {
    /// Begin to read a declared set of a volume's bytes, in any order, in gaps and idle time
    Start(Box<StartArgs>),
}

/// The arguments of `headtime ctl task start`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
struct StartArgs {
    /// The volume's name in the service's configuration
    #[arg(value_name = "VOLUME")]
    volume: String,
    /// A file with one piece of the volume a line: its first byte and its length in bytes, both in
    /// multiples of the drive's blocks. `-` is standard input
    #[arg(long, value_name = "FILE", required_unless_present = "blocks")]
    extents: Option<PathBuf>,
    /// Pieces of equal size by number, such as 7,9,100..200: piece N begins at byte N times
    /// --block-bytes
    #[arg(long, value_name = "LIST", conflicts_with = "extents")]
    blocks: Option<String>,
    /// The size of these pieces
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 4096,
        requires = "blocks"
    )]
    block_bytes: u64,
    /// Any so many of the pieces will do [default: all]
    #[arg(long, value_name = "K")]
    any: Option<u64>,
    /// The priority among tasks. Tasks of priority 0 are served first
    #[arg(long, value_name = "N", default_value_t = 0)]
    priority: u8,
    /// Seconds until the task should be done
    #[arg(long, value_name = "S", value_parser = whole_in::<u64>(Unit::Seconds, 0..=MOST_SECONDS))]
    deadline: Option<u64>,
    /// The most that the task takes, in MB/s
    #[arg(long, value_name = "MB/S", value_parser = scan::pace())]
    pace: Option<f64>,
    /// The service stores the progress in this file. After a stop or a crash the same command
    /// continues. The service deletes the file at the end
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Shortest time between two writes of that file, in seconds
    #[arg(long, value_name = "S", default_value_t = 10, requires = "state", value_parser = whole_in::<u64>(Unit::Seconds, 0..=MOST_SECONDS))]
    save_every: u64,
    /// A program that receives the blocks, as of `headtime scan`, instead of a checksum
    #[arg(long, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true)]
    command: Vec<String>,
    /// A file that receives the pieces instead, one behind the other in their order, and behind them a bit for each block
    /// that has come. A file in /dev/shm is a buffer that another program maps
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    into: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  headtime ctl task start db --extents changed.txt --command ./copy-blocks /backup/db.img
  headtime ctl task start db --blocks 0..1000 --block-bytes 65536 --any 500
  headtime ctl task start db --blocks 0..1000 --block-bytes 65536 --into /dev/shm/pieces
  headtime ctl tasks; headtime ctl promote 3 --foreground

Declare early, and declare much: a set that is scattered over a busy disk is read many times as fast as a
short range of it. Tasks whose sets overlap share their reads.";

impl TaskArgs {
    /// The request that begins the task.
    pub(super) fn ask(&self) -> Result<Ask, Exit> {
        let TaskAction::Start(start) = &self.action;
        Ok(Ask::Scan(start.order()?))
    }
}

/// The answer for people.
pub(super) fn begun(answer: &Value) -> String {
    match answer["task"].as_u64() {
        Some(number) => format!("task {number}\n"),
        None => String::from("begun\n"),
    }
}

impl StartArgs {
    fn order(&self) -> Result<Scan, Exit> {
        let pieces = match (&self.extents, &self.blocks) {
            (Some(file), _) => extents(file)?,
            (None, list) => blocks(list.as_deref().unwrap_or_default(), self.block_bytes)?,
        };
        Ok(Scan {
            volume: self.volume.clone(),
            set: Some(PieceSet {
                pieces,
                any: self.any,
            }),
            priority: self.priority,
            deadline_s: self.deadline,
            pace_bytes_s: scan::bytes_s(self.pace),
            sink: scan::sink(&self.command, self.into.as_deref())?,
            state: scan::state(self.state.as_deref(), self.save_every)?,
            lifetime: TaskLifetime::Detached,
        })
    }
}

/// The pieces of a file, one a line.
fn extents(file: &Path) -> Result<Vec<(u64, u64)>, Exit> {
    let name = file.display();
    let mut text = String::new();
    let read = match file == Path::new("-") {
        true => std::io::stdin().read_to_string(&mut text),
        false => std::fs::File::open(file).and_then(|mut file| file.read_to_string(&mut text)),
    };
    read.map_err(|error| Exit::input(format!("{name}: {error}")))?;
    let lines = text.lines().zip(1..);
    let given = lines.filter(|(line, _)| !line.trim().is_empty() && !line.starts_with('#'));
    let pieces = given.map(|(line, number)| {
        two_numbers(line).ok_or_else(|| {
            Exit::input(format!(
                "{name}:{number}: {line:?}: expected the first byte of a piece and its length"
            ))
        })
    });
    pieces.collect()
}

fn two_numbers(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_whitespace();
    let numbers = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next().is_none().then_some(numbers)
}

/// The pieces of a list of numbers and ranges.
fn blocks(list: &str, bytes: u64) -> Result<Vec<(u64, u64)>, Exit> {
    let mut pieces = Vec::new();
    for part in list.split(',') {
        let range = match part.trim().split_once("..") {
            None => part
                .trim()
                .parse()
                .ok()
                .map(|number: u64| number..number.saturating_add(1)),
            Some((first, end)) => first.parse().ok().zip(end.parse().ok()).map(|(a, b)| a..b),
        };
        let Some(range) = range.filter(|range| range.start < range.end) else {
            return Err(Exit::input(format!(
                "--blocks {part}: expected a number, or FIRST..END, the second larger"
            )));
        };
        for number in range {
            let first = number.checked_mul(bytes).ok_or_else(|| {
                Exit::input(format!("--blocks {number}: expected a block of the volume"))
            })?;
            pieces.push((first, bytes));
            if pieces.len() > MOST_PIECES {
                return Err(Exit::input(format!(
                    "--blocks: more than {MOST_PIECES} pieces: expected fewer, or larger ones"
                )));
            }
        }
    }
    Ok(pieces)
}

/// The largest number of pieces of a task, which the service checks, too.
const MOST_PIECES: usize = headtime_client::wire::PIECES;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_from_lists_and_files() {
        let some = blocks("7,9..11", 4096).expect("pieces");
        assert_eq!(some, [(28_672, 4096), (36_864, 4096), (40_960, 4096)]);
        for wrong in ["", "x", "5..5", "6..5", "1,,2", "0..99999999"] {
            assert!(blocks(wrong, 4096).is_err(), "{wrong}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("e");
        std::fs::write(&file, "# changed\n0 4096\n\n 8192\t512 \n").expect("a file");
        assert_eq!(extents(&file).expect("pieces"), [(0, 4096), (8192, 512)]);
        std::fs::write(&file, "0 4096\n1 2 3\n").expect("a file");
        let problem = format!("{:?}", extents(&file).expect_err("three numbers"));
        assert!(problem.contains("e:2:"), "{problem}");
    }
}
