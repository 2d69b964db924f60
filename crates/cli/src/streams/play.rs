//! `headtime play`: reads a file at a rate, as a media player does, and logs the delay of each
//! read. It does the job of ABISS' `rdrt`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use document::quantity::Unit;
use headtime_client::{Stream, StreamMode, Terms};
use lab::amount::amount;
use rustix::fs::{Advice, OFlags, fadvise};

use super::aligned::{Aligned, PAGE, at};
use super::failure;
use super::lease::{Events, Lease};
use super::pace::PacedRun;
use crate::output::Exit;
use crate::settings::units::{bytes_per_second, in_unit};

/// Read a file at a guaranteed rate, and log the delay of every read.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct PlayArgs {
    /// A file on a file system over a volume of the service
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The rate in bytes per second, such as 1M
    #[arg(long, value_name = "BYTES", value_parser = bytes_per_second)]
    rate: u64,
    /// Distance that the player may read ahead of its playout point; at least one read
    #[arg(long, value_name = "BYTES", value_parser = amount, default_value = "128Ki")]
    buffer: u64,
    /// Size of a read: whole pages of 4096 bytes
    #[arg(long, value_name = "BYTES", value_parser = amount, default_value = "64Ki")]
    read: u64,
    /// The priority of the file, from 0 (highest) to 6, for its buffer and for reads by other
    /// programs. With --best-effort it is the only request to the service
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=6))]
    priority: Option<u8>,
    /// The first byte
    #[arg(long, value_name = "BYTES", value_parser = amount, default_value = "0")]
    start: u64,
    /// Stop after this many seconds [default: at the end of the file]
    #[arg(long, value_name = "S", value_parser = in_unit(Unit::Seconds))]
    seconds: Option<f64>,
    #[command(flatten)]
    lease: Lease,
}

const EXAMPLE: &str = "Examples: a film at 1 MB/s, with the buffer of the ABISS paper
  headtime play /mnt/film.ts --rate 1M --buffer 564k --log delays.csv
  headtime play /mnt/film.ts --rate 1M --best-effort --json
  headtime play /mnt/film.ts --rate 1M --best-effort --priority 1";

/// Interval of looking up the file's extents. A choice: the lookup needs no disk access, and moved
/// blocks lose their guarantee for at most this time.
const LOOK: Duration = Duration::from_secs(1);

/// Runs the command.
///
/// # Errors
/// If the file cannot be read, or the service refuses.
pub fn run(arguments: &PlayArgs) -> Result<(), Exit> {
    check(arguments)?;
    let file = PlaySource::open(&arguments.file)?;
    let length = file
        .file
        .metadata()
        .map_err(|error| at(&arguments.file, &error))?
        .len();
    if arguments.start >= length {
        let path = arguments.file.display();
        return Err(Exit::input(format!(
            "{path}: {length} bytes: expected more than --start"
        )));
    }
    let attached = arguments.lease.attach(
        &file.file,
        Terms {
            name: String::from("play"),
            mode: StreamMode::Play,
            rate: arguments.rate,
            buffer: arguments.buffer,
            memory: None,
            start: arguments.start,
            priority: arguments.priority,
            export: None,
        },
    )?;
    let stream = attached.as_ref().map(|(_, stream)| stream);
    let mut events = Events::begin();
    if let Some(stream) = stream.filter(|_| !arguments.lease.best_effort) {
        events.wait_until_served(stream)?;
    }
    let pace = play(arguments, &file, stream, &mut events)?;
    let mut more = Vec::new();
    if let Some(stream) = stream {
        let granted = serde_json::to_value(stream.granted()).map_err(Exit::failed)?;
        more.push(("granted", granted));
    }
    arguments.lease.report(&pace, "reads", &events, more)
}

fn check(arguments: &PlayArgs) -> Result<(), Exit> {
    let PlayArgs {
        read,
        buffer,
        start,
        ..
    } = *arguments;
    if read == 0 || !read.is_multiple_of(PAGE) || read > MOST_READ {
        return Err(Exit::input(format!(
            "--read {read}: expected whole pages of {PAGE} bytes, {MOST_READ} at most"
        )));
    }
    if !start.is_multiple_of(PAGE) {
        return Err(Exit::input(format!(
            "--start {start}: expected a multiple of {PAGE} bytes"
        )));
    }
    if buffer < read {
        return Err(Exit::input(format!(
            "--buffer {buffer}: smaller than one read of {read} bytes: expected at least as much"
        )));
    }
    if arguments.rate == 0 {
        let problem = "--rate 0: expected at least one byte in a second";
        return Err(Exit::input(problem));
    }
    let seconds = arguments.seconds.unwrap_or(1.0);
    if !arguments.lease.has_limit() || !(0.0..=1e9).contains(&seconds) {
        return Err(Exit::input(
            "--late-ms, --seconds: expected a number from 0 to 1e9",
        ));
    }
    Ok(())
}

/// Limit of one read's memory. A choice.
const MOST_READ: u64 = 1 << 30;

fn play(
    arguments: &PlayArgs,
    file: &PlaySource,
    stream: Option<&Stream>,
    events: &mut Events,
) -> Result<PacedRun, Exit> {
    let mut memory = Aligned::new(arguments.read as usize);
    let mut offset = arguments.start;
    let mut pace = PacedRun::begin(arguments.rate);
    let began = Instant::now();
    let lasts = arguments.seconds.map(Duration::from_secs_f64);
    let mut looked = began;
    while lasts.is_none_or(|lasts| began.elapsed() < lasts) {
        let count = pace
            .access(offset, || file.read(memory.bytes(), offset))
            .map_err(|error| at(&arguments.file, &error))?;
        if count == 0 {
            break;
        }
        offset += count as u64;
        let Some(stream) = stream else { continue };
        stream.position(offset).map_err(|error| failure(&error))?;
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            events.refresh(stream, &file.file);
        }
        events.hear(stream)?;
        // A partial page is the end of the file, and no aligned position follows it.
        if !(count as u64).is_multiple_of(PAGE) {
            break;
        }
    }
    Ok(pace)
}

/// A file that is read past the page cache.
struct PlaySource {
    file: File,
    read_mode: ReadMode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadMode {
    Direct,
    /// Cached pages are dropped before each read: the file system has no direct reads.
    Dropped,
}

impl PlaySource {
    fn open(path: &Path) -> Result<Self, Exit> {
        let direct = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(path);
        let (file, read_mode) = match direct {
            Ok(file) => (file, ReadMode::Direct),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                let file = File::open(path).map_err(|error| at(path, &error))?;
                (file, ReadMode::Dropped)
            }
            Err(error) => return Err(at(path, &error)),
        };
        Ok(PlaySource { file, read_mode })
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.read_mode == ReadMode::Dropped {
            let length = std::num::NonZeroU64::new(bytes.len() as u64);
            fadvise(&self.file, offset, length, Advice::DontNeed)?;
        }
        self.file.read_at(bytes, offset)
    }
}
