//! Profiles a real drive in real time: direct reads, one thread for each outstanding command.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time;

use block::{Action, Command, Duration, Extent, Instant, Outcome, Status};
use profiler::{DriveIdentity, Findings, NextProbe, Offers, Profiler, WritePermission, procedure};
use rustix::fs::OFlags;

use super::ProfilingObserver;
use super::found::{FoundDrive, ProfilingEnd, kebab};
use crate::Failure;

/// Largest alignment of direct reads: memory, addresses and lengths.
const ALIGNMENT: usize = 4096;

/// Threads, and so commands at the drive. A choice: SATA's queue depth.
const THREADS: u32 = 32;

/// Profiles a drive.
///
/// # Errors
/// If the path does not exist, is no drive, or cannot be read; or if writes are permitted to
/// another path.
pub fn profile(
    path: &Path,
    may_write: Option<&Path>,
    budget: Duration,
    resumed: Findings,
    progress: &dyn ProfilingObserver,
) -> Result<FoundDrive, Failure> {
    let writes = match may_write {
        None => WritePermission::Forbidden,
        Some(named) if named == path => WritePermission::Allowed,
        Some(named) => {
            return Err(Failure::input(format!(
                "--allow-writes {}: expected the device's path again, {}",
                named.display(),
                path.display()
            )));
        }
    };
    let wrong = |error: io::Error| Failure::input(format!("{}: {error}", path.display()));
    let mut file = open(path, writes).map_err(wrong)?;
    let bytes = file.seek(SeekFrom::End(0)).map_err(wrong)?;
    let device = identify(path, bytes, writes).map_err(Failure::input)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = kebab(&name);
    progress.begin(&name);
    let whole = move |prober| procedure::complete(prober, budget);
    let profiler = Profiler::new(device, resumed, whole);
    let mut threads = DeviceThreads::new(file, device);
    let (profiler, at, ended) = threads.run(profiler, budget, progress);
    match threads.failed.take() {
        Some(error) if profiler.findings().clock.is_none() => Err(wrong(error)),
        _ => Ok(FoundDrive {
            name,
            device,
            findings: profiler.findings(),
            truth: None,
            at,
            probes: profiler.probes(),
            ended,
        }),
    }
}

fn open(path: &Path, writes: WritePermission) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(writes == WritePermission::Allowed)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(path)
}

/// The system's information about a device. Files count as drives with 4 KB blocks, so that their
/// reads are aligned.
fn identify(path: &Path, bytes: u64, writes: WritePermission) -> Result<DriveIdentity, String> {
    let device = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let queue = device.file_name().map(|name| {
        let of_all = Path::new("/sys/class/block").join(name);
        match of_all.join("partition").exists() {
            // A partition has the queue of its drive.
            true => of_all.join("../queue"),
            false => of_all.join("queue"),
        }
    });
    let number = |name: &str| -> Option<u32> {
        let text = std::fs::read_to_string(queue.as_ref()?.join(name)).ok()?;
        text.trim().parse().ok()
    };
    let block_bytes = number("logical_block_size").unwrap_or(4096);
    let physical_block_bytes = number("physical_block_size").unwrap_or(block_bytes);
    if ![512, 4096].contains(&block_bytes) || bytes < LEAST_BYTES {
        return Err(format!(
            "{}: {bytes} bytes in blocks of {block_bytes}: expected at least {LEAST_BYTES}, in \
             blocks of 512 or 4096",
            path.display()
        ));
    }
    Ok(DriveIdentity {
        blocks: bytes / u64::from(block_bytes),
        block_bytes,
        physical_block_bytes: match physical_block_bytes {
            512 => block_bytes,
            _ => 4096,
        },
        depth: THREADS,
        offers: Offers::Nothing,
        writes,
    })
}

/// Smallest drive. A choice: the smallest shipped one is a thousand times larger.
const LEAST_BYTES: u64 = 1 << 20;

/// The queues of commands for the threads and of outcomes for the profiler.
struct DeviceThreads {
    begun: time::Instant,
    commands: Sender<Command>,
    outcomes: Receiver<(Outcome, Option<io::Error>)>,
    failed: Option<io::Error>,
    device: DriveIdentity,
}

impl DeviceThreads {
    fn new(file: File, device: DriveIdentity) -> Self {
        let begun = time::Instant::now();
        let (commands, waiting) = channel::<Command>();
        let (ended, outcomes) = channel();
        let waiting = Arc::new(std::sync::Mutex::new(waiting));
        let file = Arc::new(file);
        for _ in 0..THREADS {
            let (waiting, ended) = (Arc::clone(&waiting), ended.clone());
            let file = Arc::clone(&file);
            thread::spawn(move || {
                let mut memory = ReadBuffer::default();
                loop {
                    let next = waiting.lock().map(|waiting| waiting.recv());
                    let Ok(Ok(command)) = next else { return };
                    let done = memory.serve(&file, command.action, device);
                    let outcome = Outcome {
                        id: command.id,
                        at: since(begun),
                        status: status(&done, command.action),
                        account: None,
                    };
                    if ended.send((outcome, done.err())).is_err() {
                        return;
                    }
                }
            });
        }
        DeviceThreads {
            begun,
            commands,
            outcomes,
            failed: None,
            device,
        }
    }

    /// Runs the profiler until it has finished, or the budget is spent.
    fn run(
        &mut self,
        mut profiler: Profiler,
        budget: Duration,
        progress: &dyn ProfilingObserver,
    ) -> (Profiler, Instant, ProfilingEnd) {
        let end = Instant::ZERO + budget;
        let mut shown = Instant::ZERO;
        loop {
            let now = since(self.begun);
            if now >= end {
                return (profiler, now, ProfilingEnd::OutOfTime);
            }
            if now >= shown + SHOW {
                progress.show(now, &self.device, &profiler.findings());
                shown = now;
            }
            let until = match profiler.next_probe(now) {
                NextProbe::Probe(command) => {
                    // The threads live as long as the queues.
                    let _ = self.commands.send(command);
                    continue;
                }
                NextProbe::Finished => return (profiler, now, ProfilingEnd::Finished),
                NextProbe::Wait => end,
                NextProbe::WaitUntil(at) => at.min(end),
            };
            let wait = time::Duration::from_nanos(until.since(now).as_nanos());
            match self.outcomes.recv_timeout(wait.min(LONGEST_WAIT)) {
                Ok((outcome, error)) => {
                    self.failed = self.failed.take().or(error);
                    profiler.observe(since(self.begun), outcome);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }
}

/// Interval of progress reports: half a second.
const SHOW: Duration = Duration::from_millis(500);

/// Longest wait for an outcome, so that the progress continues.
const LONGEST_WAIT: time::Duration = time::Duration::from_millis(500);

fn since(begun: time::Instant) -> Instant {
    Instant::from_nanos(begun.elapsed().as_nanos() as u64)
}

fn status(done: &io::Result<()>, action: Action) -> Status {
    match (done, action) {
        (Err(_), Action::Read { extent, .. } | Action::Write { extent, .. }) => {
            Status::MediumError { at: extent.start() }
        }
        _ => Status::Good,
    }
}

/// A thread's read buffer, aligned inside a larger allocation.
#[derive(Default)]
struct ReadBuffer {
    bytes: Vec<u8>,
}

impl ReadBuffer {
    fn aligned(&mut self, length: usize) -> &mut [u8] {
        if self.bytes.len() < length + ALIGNMENT {
            self.bytes = vec![0; length + ALIGNMENT];
        }
        let from = self.bytes.as_ptr().align_offset(ALIGNMENT);
        &mut self.bytes[from..from + length]
    }

    /// Carries out a command. Only reads and writes reach a device through its file.
    fn serve(&mut self, file: &File, action: Action, device: DriveIdentity) -> io::Result<()> {
        let place = |extent: Extent| {
            let bytes = u64::from(device.block_bytes);
            (
                extent.start().0 * bytes,
                (extent.length().0 * bytes) as usize,
            )
        };
        match action {
            Action::Read { extent, .. } => {
                let (at, length) = place(extent);
                file.read_exact_at(self.aligned(length), at)
            }
            Action::Write { extent, .. } if device.writes == WritePermission::Allowed => {
                let (at, length) = place(extent);
                let zeros = self.aligned(length);
                zeros.fill(0);
                file.write_all_at(zeros, at)
            }
            Action::Write { .. } => Err(io::ErrorKind::PermissionDenied.into()),
            Action::Flush if device.writes == WritePermission::Allowed => file.sync_data(),
            _ => Ok(()),
        }
    }
}
