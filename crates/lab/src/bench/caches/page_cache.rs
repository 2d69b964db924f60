//! The live run with the kernel's page cache as the upper level.
//!
//! ```text
//!   fio, sequential reader -> page cache (a control group) -.
//!                                                            +-> ext4 -> /dev/loop -> FUSE -> L2
//!   fio, mixed reader      -> page cache (a control group) -'
//! ```
//!
//! The kernel reads ahead and evicts by its own rules. The size of a reader's cache is what its
//! group may have beyond the memory of the reading program.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use server::cache_setting::PAGE;

use super::CachesBench;
use super::gains::CacheFigures;
use super::live;
use super::readers::CacheReader;
use crate::bench::file_system::{Area, MKFS, MountedFileSystem, filled_file, sparse_image};
use crate::bench::loop_device::{Depth, LOSETUP, LoopDevice};
use crate::bench::memory_group::MemoryGroup;
use crate::bench::rig::{self, FIO, FioLoad};
use crate::{Failure, Progress};

/// An image of the drive with a file for each reader.
pub(super) struct ReadersFiles {
    folder: tempfile::TempDir,
    /// The memory of the reading program itself, in bytes.
    program_bytes: u64,
}

impl ReadersFiles {
    /// Writes the files, without the delays of the drive, and measures the reading program.
    ///
    /// # Errors
    /// If a program is missing, this is not root, or the files do not fit on the drive.
    pub(super) fn create(settings: &CachesBench) -> Result<Self, Failure> {
        rig::need(&[FIO, LOSETUP, MKFS])?;
        let folder = tempfile::tempdir().map_err(Failure::failed)?;
        let entry = drive::catalog::find(&settings.drive).map_err(Failure::input)?;
        let capacity = entry.profile().map_err(Failure::input)?.capacity_bytes();
        let area = area(settings);
        if area.bytes > capacity {
            return Err(Failure::input(format!(
                "--footprint {}: two files of it do not fit on {}, which has {capacity} bytes",
                settings.footprint, settings.drive
            )));
        }
        let image = folder.path().join("drive.img");
        sparse_image(&image, capacity)?;
        area.format(&image)?;
        let mut files = ReadersFiles {
            folder,
            program_bytes: 0,
        };
        let mounted = area.mount(&image, &files.folder.path().join("made"))?;
        for reader in CacheReader::both(settings) {
            filled_file(&mounted.at.join(name(&reader)), settings.footprint * PAGE)?;
        }
        files.program_bytes = program_bytes(settings, &mounted, files.folder.path())?;
        Ok(files)
    }

    /// The image.
    pub(super) fn image(&self) -> PathBuf {
        self.folder.path().join("drive.img")
    }

    /// Runs both readers once, with empty caches.
    ///
    /// # Errors
    /// If the service or a reader does not run.
    pub(super) fn once(
        &self,
        settings: &CachesBench,
        coordinator: &str,
        progress: &dyn Progress,
    ) -> Result<CacheFigures, Failure> {
        let folder = tempfile::tempdir().map_err(Failure::failed)?;
        let mount = folder.path().join("volume");
        fs::create_dir(&mount).map_err(Failure::failed)?;
        let lower = live::lower(settings, coordinator, folder.path(), &self.image())?;
        let device = LoopDevice::attach(&mount.join("disk"))?;
        device.schedule("none", Depth::Loop)?;
        let mounted =
            MountedFileSystem::at(&folder.path().join("mounted"), &device.path, "ro,noload")?;
        let (upper, _) = settings.sizes();
        let bound = self.program_bytes + upper * PAGE;
        let read = thread::scope(|scope| {
            let readers = CacheReader::both(settings).into_iter();
            let begun: Vec<_> = readers
                .map(|reader| {
                    let own = folder.path().join(name(&reader));
                    let file = mounted.at.join(name(&reader));
                    scope.spawn(move || read(reader, &file, &own, Some(bound), progress))
                })
                .collect();
            let ended = begun.into_iter().map(|thread| match thread.join() {
                Ok(read) => read,
                Err(_) => Err(Failure::failed("a reader has failed")),
            });
            ended.collect::<Result<Vec<_>, _>>()
        })?;
        let cache = live::lower_cache(&lower)?;
        drop(mounted);
        drop(device);
        drop(lower);
        let requests: u64 = read.iter().map(|read| read.load.requests).sum();
        let waited = read
            .iter()
            .map(|read| read.load.mean_ms * read.load.requests as f64);
        let mean_ms = waited.sum::<f64>() / requests.max(1) as f64;
        let kept: u64 = read.iter().map(|read| read.page_cache).sum();
        Ok(CacheFigures {
            upper_mb: Some(kept as f64 / 1e6),
            ..live::figures(settings, mean_ms, &cache)
        })
    }
}

/// What one reader did.
struct ReadThrough {
    load: FioLoad,
    /// Its page cache at the end, in bytes.
    page_cache: u64,
}

/// Reads all blocks of a reader in order, through the page cache of a group of its own.
fn read(
    reader: CacheReader,
    file: &Path,
    folder: &Path,
    bound: Option<u64>,
    progress: &dyn Progress,
) -> Result<ReadThrough, Failure> {
    fs::create_dir_all(folder).map_err(Failure::failed)?;
    let log = folder.join("requests.log");
    let requests = u64::from(reader.left);
    fs::write(&log, iolog(reader, file)).map_err(Failure::failed)?;
    let group = MemoryGroup::create()?;
    if let Some(bound) = bound {
        group.limit(bound)?;
    }
    let words = [
        "--name=reader".to_owned(),
        format!("--read_iolog={}", log.display()),
        "--replay_no_stall=1".to_owned(),
        "--ioengine=psync".to_owned(),
        "--direct=0".to_owned(),
        // The kernel decides by what it sees, not by what fio knows.
        "--fadvise_hint=0".to_owned(),
        "--invalidate=0".to_owned(),
    ];
    let ran = rig::fio_by(group.program(FIO.program), &words, folder)?;
    progress.advance(requests);
    let page_cache = group.page_cache()?;
    match ran.into_iter().next() {
        Some((_, load)) if load.requests == requests => Ok(ReadThrough { load, page_cache }),
        Some((_, load)) => Err(Failure::failed(format!(
            "fio read {} requests of {requests}",
            load.requests
        ))),
        None => Err(Failure::failed(
            "fio did not tell of its job: expected fio 3",
        )),
    }
}

/// The requests of a reader as fio reads them (fio(1), "trace file format", version 2).
fn iolog(reader: CacheReader, file: &Path) -> String {
    let first = reader.own_first();
    let file = file.display();
    let mut text = format!("fio version 2 iolog\n{file} add\n{file} open\n");
    for blocks in reader {
        let (offset, bytes) = ((blocks.first - first) * PAGE, blocks.len() * PAGE);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{file} read {offset} {bytes}");
    }
    text + &format!("{file} close\n")
}

/// The memory of the reading program without its page cache, in bytes: the most of it when it
/// reads as many requests as in a run.
fn program_bytes(
    settings: &CachesBench,
    mounted: &MountedFileSystem,
    folder: &Path,
) -> Result<u64, Failure> {
    let [reader, _] = CacheReader::both(settings);
    let file = mounted.at.join(name(&reader));
    let log = folder.join("requests.log");
    fs::write(&log, iolog(reader, &file)).map_err(Failure::failed)?;
    let group = MemoryGroup::create()?;
    let words = [
        "--name=reader".to_owned(),
        format!("--read_iolog={}", log.display()),
        "--ioengine=null".to_owned(),
        "--replay_no_stall=1".to_owned(),
    ];
    rig::fio_by(group.program(FIO.program), &words, folder)?;
    Ok(group.peak()?.saturating_sub(group.page_cache()?))
}

fn name(reader: &CacheReader) -> String {
    format!("reader-{}", reader.client)
}

/// The file system: both files, a quarter more, and its own blocks. The quarter is a choice.
fn area(settings: &CachesBench) -> Area {
    let bytes = 2 * settings.footprint * PAGE;
    Area {
        offset: 0,
        bytes: bytes + bytes / 4 + OWN_BYTES,
    }
}

/// Bytes for the blocks of the file system itself. A choice: a journal of 16 MiB and inodes.
const OWN_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_written_relative_to_the_readers_file() {
        let settings = CachesBench {
            coordinator: Vec::new(),
            prefetch: "linux-6".to_owned(),
            replacement: "lru".to_owned(),
            upper: None,
            lower: None,
            footprint: 64,
            requests: 10,
            time_scale: 1.0,
            rounds: 1,
            seed: 1,
            drive: "seagate-cheetah-9lp".to_owned(),
            readmore: server::cache_setting::Readmore::Ordinary,
            simulated_disk: super::super::SimulatedDisk::Engine,
            above: super::super::Above::PageCache,
            policy: None,
            only_simulated: false,
        };
        let [straight, mixed] = CacheReader::both(&settings);
        let text = iolog(straight, Path::new("/f"));
        let mut lines = text.lines().skip(3);
        assert_eq!(lines.next(), Some("/f read 0 16384"));
        assert_eq!(lines.next(), Some("/f read 16384 16384"));
        let text = iolog(mixed, Path::new("/g"));
        let reads: Vec<_> = text
            .lines()
            .filter(|line| line.contains(" read "))
            .collect();
        assert_eq!(reads.len(), 10);
        for line in reads {
            let numbers: Vec<u64> = line.split(' ').skip(2).flat_map(str::parse).collect();
            assert!(numbers[0] + numbers[1] <= 64 * PAGE, "{line}");
        }
    }
}
