//! `headtime record`: writes a file at a rate, as a camera's recorder does.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use headtime_client::{Mode, Terms};
use rustix::fs::{FallocateFlags, OFlags, fallocate};

use super::amount::amount;
use super::pace::Pace;
use super::play::{Aligned, Events, PAGE, at};
use super::{connect, failure};
use crate::output::{Failure, print, write_file};

/// Write a new file at a guaranteed rate, and log the delay of every write.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Arguments {
    /// The file, which is not there yet, on a file system over a volume of the service
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Bytes in a second, such as 500k
    #[arg(long, value_name = "BYTES", value_parser = amount)]
    rate: u64,
    /// For how long
    #[arg(long, value_name = "S")]
    seconds: f64,
    /// How much is written at once at most
    #[arg(long, value_name = "BYTES", value_parser = amount, default_value = "128Ki")]
    buffer: u64,
    /// Memory that the stream may take in the service [default: as much as it takes]
    #[arg(long, value_name = "BYTES", value_parser = amount)]
    memory: Option<u64>,
    /// Bytes of one write, whole pages of 4096
    #[arg(long, value_name = "BYTES", value_parser = amount, default_value = "64Ki")]
    write: u64,
    /// A write ends when it is on the media, not when the service has it
    #[arg(long)]
    sync: bool,
    /// Writes that take longer than so many milliseconds are late
    #[arg(long, value_name = "MS", default_value_t = 8.0)]
    late_ms: f64,
    /// Write the delay of every write to a CSV file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Ask for nothing: write as any other program does, to compare
    #[arg(long)]
    best_effort: bool,
    /// What the stream is called in lists, and by the service's rules
    #[arg(long, value_name = "NAME", default_value = "record")]
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

const EXAMPLE: &str = "Example: a camera of 4 Mbit/s for a minute
  headtime record /mnt/camera-7.ts --rate 500k --seconds 60 --name camera-7";

/// Runs the command.
///
/// # Errors
/// If the file cannot be written, or the service refuses.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let total = check(arguments)?;
    let path = &arguments.file;
    let file = preallocated(arguments, total)?;
    let mut events = Events::default();
    let attached = match arguments.best_effort {
        true => None,
        false => Some(attach(arguments, &file).inspect_err(|_| {
            // Nothing is in it yet, and nobody asked for an empty file.
            let _ = std::fs::remove_file(path);
        })?),
    };
    let stream = attached.as_ref().map(|(_, stream)| stream);
    let mut memory = Aligned::new(arguments.write as usize);
    let mut pace = Pace::begin(arguments.rate);
    let mut offset = 0;
    while offset < total {
        fill(memory.bytes(), offset);
        let written = pace.access(offset, || file.write_at(memory.bytes(), offset));
        offset += written.map_err(|error| at(path, &error))? as u64;
        if let Some(stream) = stream {
            events.hear(stream)?;
        }
    }
    file.sync_all().map_err(|error| at(path, &error))?;
    let granted = stream.map(headtime_client::Stream::granted);
    if let Some((_, stream)) = attached {
        stream.close().map_err(|error| failure(&error))?;
    }
    if let Some(path) = &arguments.log {
        write_file(path, &pace.log())?;
    }
    let summary = pace.summary(Duration::from_secs_f64(arguments.late_ms / 1e3));
    if arguments.json {
        let mut value = serde_json::to_value(&summary).map_err(Failure::failed)?;
        value["events"] = events.said.into();
        value["granted"] = serde_json::to_value(granted).map_err(Failure::failed)?;
        return print(&format!("{value:#}\n"));
    }
    let mut text = summary.describe("writes");
    for said in &events.said {
        text += &format!("  {said}\n");
    }
    print(&text)
}

/// How many bytes there will be: whole writes.
fn check(arguments: &Arguments) -> Result<u64, Failure> {
    let Arguments {
        write,
        buffer,
        rate,
        seconds,
        late_ms,
        ..
    } = *arguments;
    if write == 0 || !write.is_multiple_of(PAGE) || write > 1 << 30 {
        return Err(Failure::input(format!(
            "--write {write}: expected whole pages of {PAGE} bytes, 1 GiB at most"
        )));
    }
    if buffer < write {
        return Err(Failure::input(format!(
            "--buffer {buffer}: smaller than one write of {write} bytes: expected at least as much"
        )));
    }
    if rate == 0 {
        let problem = "--rate 0: expected at least one byte in a second";
        return Err(Failure::input(problem));
    }
    let total = seconds * rate as f64;
    if !(0.0..=1e9).contains(&late_ms) || !(1.0..1e18).contains(&total) {
        let problem = "--seconds, --late-ms: expected numbers from 0 on, and something to write";
        return Err(Failure::input(problem));
    }
    Ok((total as u64).next_multiple_of(write))
}

fn preallocated(arguments: &Arguments, total: u64) -> Result<File, Failure> {
    let path = &arguments.file;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(path)
        .map_err(|error| at(path, &error))?;
    let made = fallocate(&file, FallocateFlags::empty(), 0, total);
    let made = made
        .map_err(std::io::Error::from)
        .and_then(|()| file.sync_all());
    made.map_err(|error| {
        let _ = std::fs::remove_file(path);
        Failure::input(format!(
            "{}: {error}: expected a file system that preallocates, with {total} bytes left",
            path.display()
        ))
    })?;
    Ok(file)
}

fn attach(
    arguments: &Arguments,
    file: &File,
) -> Result<(headtime_client::Client, headtime_client::Stream), Failure> {
    let client = connect(arguments.socket.as_deref())?;
    let terms = Terms {
        name: arguments.name.clone(),
        mode: match arguments.sync {
            true => Mode::RecordSync,
            false => Mode::Record,
        },
        rate: arguments.rate,
        buffer: arguments.buffer,
        memory: arguments.memory,
        start: 0,
        export: arguments.export.clone(),
    };
    let stream = client
        .attach_file(file, &terms)
        .map_err(|error| failure(&error))?;
    Ok((client, stream))
}

/// Bytes that tell where they belong: the offset of each eight.
fn fill(bytes: &mut [u8], offset: u64) {
    for (word, at) in bytes.chunks_exact_mut(8).zip((offset..).step_by(8)) {
        word.copy_from_slice(&at.to_le_bytes());
    }
}
