//! `headtime record`: writes a file at a rate, as a camera's recorder does.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use clap::Args;
use document::quantity::Unit;
use headtime_client::{StreamMode, Terms};
use lab::amount::amount;
use rustix::fs::{FallocateFlags, OFlags, fallocate};

use super::aligned::{Aligned, PAGE, at};
use super::failure;
use super::lease::{Events, Lease};
use super::pace::PacedRun;
use crate::output::Exit;
use crate::settings::units::{bytes_per_second, in_unit};

/// Write a test pattern to a new file at a guaranteed rate, and log the delay of every write.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct RecordArgs {
    /// The new file, on a file system over a volume of the service
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The rate in bytes per second, such as 500k
    #[arg(long, value_name = "BYTES", value_parser = bytes_per_second)]
    rate: u64,
    /// The length of the recording, in seconds
    #[arg(long, value_name = "S", value_parser = in_unit(Unit::Seconds))]
    seconds: f64,
    /// Largest amount that is written at once
    #[arg(long, value_name = "BYTES", value_parser = amount, default_value = "128Ki")]
    buffer: u64,
    /// Size of a write: whole pages of 4096 bytes
    #[arg(long, value_name = "BYTES", value_parser = amount, default_value = "64Ki")]
    write: u64,
    /// Wait for each write until the media has it, not only the service
    #[arg(long)]
    sync: bool,
    #[command(flatten)]
    lease: Lease,
}

const EXAMPLE: &str = "Example: a camera of 4 Mbit/s for a minute
  headtime record /mnt/camera-7.ts --rate 500k --seconds 60 --name camera-7

Each eight bytes of the pattern are their own offset, little-endian. A program that records something else
attaches its file by the libraries for Rust, C and Python.";

/// Runs the command.
///
/// # Errors
/// If the file cannot be written, or the service refuses.
pub fn run(arguments: &RecordArgs) -> Result<(), Exit> {
    let total = check(arguments)?;
    let path = &arguments.file;
    let file = preallocated(arguments, total)?;
    let mut events = Events::begin();
    let terms = Terms {
        name: String::from("record"),
        mode: match arguments.sync {
            true => StreamMode::RecordSync,
            false => StreamMode::Record,
        },
        rate: arguments.rate,
        buffer: arguments.buffer,
        memory: None,
        start: 0,
        priority: None,
        export: None,
    };
    let attached = arguments.lease.attach(&file, terms).inspect_err(|_| {
        // The refused recording leaves no empty file.
        let _ = std::fs::remove_file(path);
    })?;
    let stream = attached.as_ref().map(|(_, stream)| stream);
    let mut memory = Aligned::new(arguments.write as usize);
    let mut pace = PacedRun::begin(arguments.rate);
    let mut offset = 0;
    while offset < total {
        // Every eight bytes contain their own offset.
        let words = memory.bytes().chunks_exact_mut(8);
        for (word, at) in words.zip((offset..).step_by(8)) {
            word.copy_from_slice(&at.to_le_bytes());
        }
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
    let granted = serde_json::to_value(granted).map_err(Exit::failed)?;
    let more = vec![("granted", granted)];
    arguments.lease.report(&pace, "writes", &events, more)
}

/// The bytes of the recording: whole writes.
fn check(arguments: &RecordArgs) -> Result<u64, Exit> {
    let RecordArgs {
        write,
        buffer,
        rate,
        seconds,
        ..
    } = *arguments;
    if write == 0 || !write.is_multiple_of(PAGE) || write > 1 << 30 {
        return Err(Exit::input(format!(
            "--write {write}: expected whole pages of {PAGE} bytes, 1 GiB at most"
        )));
    }
    if buffer < write {
        return Err(Exit::input(format!(
            "--buffer {buffer}: smaller than one write of {write} bytes: expected at least as much"
        )));
    }
    if rate == 0 {
        let problem = "--rate 0: expected at least one byte in a second";
        return Err(Exit::input(problem));
    }
    let total = seconds * rate as f64;
    if !arguments.lease.has_limit() || !(1.0..1e18).contains(&total) {
        let problem = "--seconds, --late-ms: expected numbers from 0 on, and something to write";
        return Err(Exit::input(problem));
    }
    Ok((total as u64).next_multiple_of(write))
}

fn preallocated(arguments: &RecordArgs, total: u64) -> Result<File, Exit> {
    let path = &arguments.file;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(path)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Exit::input(format!(
                "{}: there is such a file: expected a new name, or remove it",
                path.display()
            )),
            _ => at(path, &error),
        })?;
    let made = fallocate(&file, FallocateFlags::empty(), 0, total);
    let made = made
        .map_err(std::io::Error::from)
        .and_then(|()| file.sync_all());
    made.map_err(|error| {
        let _ = std::fs::remove_file(path);
        Exit::input(format!(
            "{}: {error}: expected a file system that preallocates, with {total} bytes left",
            path.display()
        ))
    })?;
    Ok(file)
}
