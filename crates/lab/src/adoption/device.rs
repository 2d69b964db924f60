//! Profiles a real drive in real time: with cache control where it is a SCSI disk, by reads alone otherwise.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use block::{Duration, Instant};
use profiler::belief::kebab;
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, procedure};
use rustix::fs::OFlags;

use super::cpus;
use super::link::{CommandLink, FailureLimits, LinkEnd};
use crate::Failure;
use crate::profiling::ProfilingObserver;
use crate::profiling::access_ranges;
use crate::profiling::control::{self, ClaimedDrive};
use crate::profiling::found::{FoundDrive, ProfilingEnd, range_name};

/// Threads, and so commands at the drive. A choice: SATA's queue depth.
const THREADS: u32 = 32;

/// Failures that a profile tolerates: the profiler itself avoids blocks that cannot be read. A choice: as
/// many in a row as commands may be in flight when a path goes.
const LIMITS: FailureLimits = FailureLimits {
    in_a_row: THREADS as u64,
    all: u64::MAX,
};

/// Profiles a drive, or the range of each of its two actuators as a drive of its own, with the whole budget
/// for each. The CPUs of this machine are kept awake meanwhile. Its switches are as before afterwards, also after an error.
///
/// # Errors
/// If the path does not exist, is no drive, cannot be read, or is gone; if writes are permitted to
/// another path; or if the observer stops it.
pub fn profile(
    path: &Path,
    may_write: Option<&Path>,
    budget: Duration,
    resumed: Option<Findings>,
    progress: &dyn ProfilingObserver,
) -> Result<Vec<FoundDrive>, Failure> {
    let writes = permission(path, may_write)?;
    let path = control::disk_of(path)?;
    let wrong = |error: io::Error| Failure::input(format!("{}: {error}", path.display()));
    let mut file = open(&path, writes).map_err(wrong)?;
    let bytes = file.seek(SeekFrom::End(0)).map_err(wrong)?;
    let device = identify(&path, bytes, writes).map_err(Failure::input)?;
    drop(file);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = kebab(&name);
    let disk = Disk {
        path: &path,
        bytes,
        writes,
    };
    let ranges = access_ranges::of(&path, device.blocks, device.block_bytes);
    if ranges.len() == 1 {
        let findings = resumed.unwrap_or_default();
        return Ok(vec![disk.profile(
            name,
            device,
            0,
            (budget, findings),
            progress,
        )?]);
    }
    if resumed.is_some() {
        return Err(Failure::input(format!(
            "--resume on {}: its two actuators are profiled as two drives: expected a drive of one",
            path.display()
        )));
    }
    let each = ranges.iter().enumerate().map(|(number, range)| {
        let device = DriveIdentity {
            blocks: range.length().0,
            ..device
        };
        let name = range_name(&name, number);
        disk.profile(
            name,
            device,
            range.start().0,
            (budget, Findings::default()),
            progress,
        )
    });
    each.collect()
}

/// A drive that is profiled, whole or in ranges.
struct Disk<'a> {
    path: &'a Path,
    bytes: u64,
    writes: WritePermission,
}

impl Disk<'_> {
    /// Profiles the blocks from `first` on, as many as `device` has.
    fn profile(
        &self,
        name: String,
        device: DriveIdentity,
        first: u64,
        (budget, resumed): (Duration, Findings),
        progress: &dyn ProfilingObserver,
    ) -> Result<FoundDrive, Failure> {
        let Disk {
            path,
            bytes,
            writes,
        } = *self;
        let file = open(path, writes)
            .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
        progress.begin(&name);
        let claimed = control::claim(path, bytes, writes)?;
        let shown = path.display().to_string();
        let mut link = CommandLink::of_range(file, device, first, &shown).with_limits(LIMITS);
        link.stop_at(progress.stop());
        if let Some(ClaimedDrive { drive, said }) = claimed {
            said.iter().for_each(|line| progress.say(line));
            if let Some(drive) = drive {
                link.take_control(drive, &|line| progress.say(line));
            }
        }
        let mut profiler = Profiler::new(link.device(), resumed, move |prober| {
            procedure::complete(prober, budget)
        });
        let awake = cpus::keep_awake(&|line| progress.say(line));
        let begun = link.now();
        let ended = link.run(&mut profiler, budget, &|at, device, findings| {
            progress.show(at, device, findings);
        });
        drop(awake);
        for report in link.release() {
            progress.say(&report.to_string());
        }
        let ended = ended?;
        if let Some(error) = link.first_error()
            && profiler.findings().clock.is_none()
        {
            let failed = link.failed();
            return Err(Failure::failed(format!(
                "{}: {} of {} reads failed ({error}): the path is gone or cannot be read; no profile is written",
                path.display(),
                failed.failed,
                failed.reads
            )));
        }
        Ok(FoundDrive {
            name,
            device: link.device(),
            findings: profiler.findings(),
            truth: None,
            at: Instant::ZERO + link.now().since(begun),
            probes: profiler.probes(),
            ended: match ended {
                LinkEnd::Finished => ProfilingEnd::Finished,
                LinkEnd::OutOfTime => ProfilingEnd::OutOfTime,
            },
        })
    }
}

/// Whether the drive may be written: only if its path is given twice.
fn permission(path: &Path, may_write: Option<&Path>) -> Result<WritePermission, Failure> {
    match may_write {
        None => Ok(WritePermission::Forbidden),
        Some(named) if named == path => Ok(WritePermission::Allowed),
        Some(named) => Err(Failure::input(format!(
            "--allow-writes {}: expected the device's path again, {}",
            named.display(),
            path.display()
        ))),
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
