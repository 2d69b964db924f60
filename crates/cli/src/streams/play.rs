//! `headtime play`: reads a file at a rate, as a player does, and tells how long each read took. It is
//! the job of ABISS' `rdrt`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use headtime_client::{Client, Event, Mode, Stream, Terms};
use rustix::fs::{Advice, OFlags, fadvise};

use super::amount::amount;
use super::pace::Pace;
use super::{connect, failure};
use crate::output::{Failure, print, write_file};

/// Read a file at a guaranteed rate, and log the delay of every read.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Arguments {
    /// A file on a file system over a volume of the service
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Bytes in a second, such as 1M
    #[arg(long, value_name = "BYTES", value_parser = amount)]
    rate: u64,
    /// How far beyond its playout point the player may read; at least one read
    #[arg(long, value_name = "BYTES", value_parser = amount, default_value = "128Ki")]
    buffer: u64,
    /// Memory that the stream may take in the service [default: as much as it takes]
    #[arg(long, value_name = "BYTES", value_parser = amount)]
    memory: Option<u64>,
    /// Bytes of one read, whole pages of 4096
    #[arg(long, value_name = "BYTES", value_parser = amount, default_value = "64Ki")]
    read: u64,
    /// The first byte
    #[arg(long, value_name = "BYTES", value_parser = amount, default_value = "0")]
    start: u64,
    /// Stop after so many seconds; else at the end of the file
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Reads that take longer than so many milliseconds are late
    #[arg(long, value_name = "MS", default_value_t = 8.0)]
    late_ms: f64,
    /// Write the delay of every read to a CSV file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Ask for nothing: read as any other program does, to compare
    #[arg(long)]
    best_effort: bool,
    /// What the stream is called in lists, and by the service's rules
    #[arg(long, value_name = "NAME", default_value = "play")]
    name: String,
    /// The export whose volume the file system is on, where the kernel does not know it
    #[arg(long, value_name = "EXPORT")]
    export: Option<String>,
    /// Print what came of it as JSON
    #[arg(long)]
    json: bool,
    /// The service's control socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

const EXAMPLE: &str = "Example: a film at 1 MB/s, as the paper's player read it
  headtime play /mnt/film.ts --rate 1M --buffer 564k --log delays.csv
  headtime play /mnt/film.ts --rate 1M --best-effort --json";

/// Reads past the page cache begin and end at multiples of it.
pub(super) const PAGE: u64 = 4096;

/// How long a buffer may take to fill. A choice: 256 MB at the rate of a slow disk.
const FILLING: Duration = Duration::from_secs(60);

/// How often it is looked where the file is. A choice: no disk is asked, and what has moved is not
/// guaranteed for as long at most.
const LOOK: Duration = Duration::from_secs(1);

/// Runs the command.
///
/// # Errors
/// If the file cannot be read, or the service refuses.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    check(arguments)?;
    let file = Source::open(&arguments.file)?;
    let length = file
        .file
        .metadata()
        .map_err(|error| at(&arguments.file, &error))?
        .len();
    if arguments.start >= length {
        let path = arguments.file.display();
        return Err(Failure::input(format!(
            "{path}: {length} bytes: expected more than --start"
        )));
    }
    let attached = match arguments.best_effort {
        true => None,
        false => Some(attach(arguments, &file.file)?),
    };
    let stream = attached.as_ref().map(|(_, stream)| stream);
    let mut events = Events::default();
    if let Some(stream) = stream {
        events.wait_until_served(stream)?;
    }
    let pace = play(arguments, &file, stream, &mut events)?;
    if let Some(path) = &arguments.log {
        write_file(path, &pace.log())?;
    }
    let late = Duration::from_secs_f64(arguments.late_ms / 1e3);
    let summary = pace.summary(late);
    if arguments.json {
        let mut value = serde_json::to_value(&summary).map_err(Failure::failed)?;
        value["lapsed"] = events.lapsed.into();
        value["events"] = events.said.into();
        if let Some(stream) = stream {
            value["granted"] = serde_json::to_value(stream.granted()).map_err(Failure::failed)?;
        }
        return print(&format!("{value:#}\n"));
    }
    let mut text = summary.describe("reads");
    for said in &events.said {
        text += &format!("  {said}\n");
    }
    print(&text)
}

fn check(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments {
        read,
        buffer,
        start,
        late_ms,
        ..
    } = *arguments;
    if read == 0 || !read.is_multiple_of(PAGE) || read > MOST_READ {
        return Err(Failure::input(format!(
            "--read {read}: expected whole pages of {PAGE} bytes, {MOST_READ} at most"
        )));
    }
    if !start.is_multiple_of(PAGE) {
        return Err(Failure::input(format!(
            "--start {start}: expected a multiple of {PAGE} bytes"
        )));
    }
    if buffer < read {
        return Err(Failure::input(format!(
            "--buffer {buffer}: smaller than one read of {read} bytes: expected at least as much"
        )));
    }
    if arguments.rate == 0 {
        let problem = "--rate 0: expected at least one byte in a second";
        return Err(Failure::input(problem));
    }
    let seconds = arguments.seconds.unwrap_or(1.0);
    let is_time = |number: f64| (0.0..=1e9).contains(&number);
    if !is_time(late_ms) || !is_time(seconds) {
        return Err(Failure::input(
            "--late-ms, --seconds: expected a number from 0 to 1e9",
        ));
    }
    Ok(())
}

/// A choice: what a program has in memory for one read.
const MOST_READ: u64 = 1 << 30;

fn attach(arguments: &Arguments, file: &File) -> Result<(Client, Stream), Failure> {
    let client = connect(arguments.socket.as_deref())?;
    let terms = Terms {
        name: arguments.name.clone(),
        mode: Mode::Play,
        rate: arguments.rate,
        buffer: arguments.buffer,
        memory: arguments.memory,
        start: arguments.start,
        export: arguments.export.clone(),
    };
    let stream = client
        .attach_file(file, &terms)
        .map_err(|error| failure(&error))?;
    Ok((client, stream))
}

fn play(
    arguments: &Arguments,
    file: &Source,
    stream: Option<&Stream>,
    events: &mut Events,
) -> Result<Pace, Failure> {
    let mut memory = Aligned::new(arguments.read as usize);
    let mut offset = arguments.start;
    let mut pace = Pace::begin(arguments.rate);
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
        // The end of a file in the middle of a page is no multiple any more.
        if count as u64 % PAGE != 0 {
            break;
        }
    }
    Ok(pace)
}

/// What the stream was told.
#[derive(Default)]
pub(super) struct Events {
    pub(super) lapsed: u64,
    pub(super) said: Vec<String>,
}

/// Lines about what happened at most; a choice.
const SAID: usize = 100;

impl Events {
    /// Waits until the buffer is full.
    fn wait_until_served(&mut self, stream: &Stream) -> Result<(), Failure> {
        let until = Instant::now() + FILLING;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            match stream.wait_event(left) {
                Some(Event::Serving) => return Ok(()),
                Some(event) => self.note(event)?,
                None => break,
            }
        }
        Err(Failure::failed(format!(
            "its buffer was not full after {} seconds",
            FILLING.as_secs()
        )))
    }

    /// Takes what there is.
    pub(super) fn hear(&mut self, stream: &Stream) -> Result<(), Failure> {
        while let Some(event) = stream.next_event() {
            self.note(event)?;
        }
        Ok(())
    }

    fn refresh(&mut self, stream: &Stream, file: &File) {
        match stream.refresh(file) {
            Ok(headtime_client::Change::Same) => (),
            Ok(change) => self.say(format!("the file has changed: {change:?}")),
            Err(error) => self.say(format!("it is not known where the file is now: {error}")),
        }
    }

    fn note(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Serving => self.say(String::from("guaranteed from here on")),
            Event::Lapsed => {
                self.lapsed += 1;
                self.say(String::from(
                    "the guarantee lapsed, and the buffer fills again",
                ));
            }
            Event::Behind => self.say(String::from("written faster than the rate")),
            Event::Late { us } => self.say(format!("a batch came {us} us too late")),
            Event::WriteFailed { from, to } => {
                self.say(format!("bytes {from} to {to} could not be written"));
            }
            Event::Unguaranteed(refused) => {
                self.say(format!(
                    "where the file is now it is not guaranteed: {refused}"
                ));
            }
            Event::Aside { reason } => self.say(format!("served as any other: {reason}")),
            Event::Ended { reason } => return Err(Failure::failed(reason)),
        }
        Ok(())
    }

    fn say(&mut self, text: String) {
        if self.said.len() < SAID && self.said.last() != Some(&text) {
            self.said.push(text);
        }
    }
}

/// A file that is read past the page cache.
struct Source {
    file: File,
    way: Way,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    /// The file system has no such reads: what was cached is dropped before each.
    Dropped,
}

impl Source {
    fn open(path: &Path) -> Result<Self, Failure> {
        let direct = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(path);
        let (file, way) = match direct {
            Ok(file) => (file, Way::Direct),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                let file = File::open(path).map_err(|error| at(path, &error))?;
                (file, Way::Dropped)
            }
            Err(error) => return Err(at(path, &error)),
        };
        Ok(Source { file, way })
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.way == Way::Dropped {
            let length = std::num::NonZeroU64::new(bytes.len() as u64);
            fadvise(&self.file, offset, length, Advice::DontNeed)?;
        }
        self.file.read_at(bytes, offset)
    }
}

/// Memory for input and output past the page cache.
pub(super) struct Aligned {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    pub(super) fn new(length: usize) -> Self {
        let memory = vec![0; length + PAGE as usize];
        let start = memory.as_ptr().align_offset(PAGE as usize);
        Aligned {
            memory,
            start,
            length,
        }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

pub(super) fn at(path: &Path, error: &io::Error) -> Failure {
    Failure::input(format!("{}: {error}", path.display()))
}
