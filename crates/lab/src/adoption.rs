//! Adopts a disk that nobody has described: what it is, its profile, a check, and what Headtime would
//! bring on it. The path is only read. Cache switches of a SCSI disk are off while it is profiled.
//!
//! ```text
//!   path --> facts --> samples --> verdict: no disk
//!                                     | a disk
//!                                     v
//!            profiler --> fresh pairs --> forecast --> Adoption --> files of the command line
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use block::{Duration, Instant};
use drive::Profile;
use profiler::belief::kebab;
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, procedure};
use rustix::fs::OFlags;
use server::config::Remote;
use server::disk::back_end::scsi::probed::ProbedDrive;

pub mod cpus;
pub mod device;
mod event;
pub mod export;
pub mod facts;
pub mod forecast;
pub mod fresh_pairs;
pub mod initial_settings;
pub mod link;
pub mod look;
pub mod report;
pub mod sampling;
pub mod settings_file;
pub mod suitability;
pub mod verdict;

use cpus::WakeUps;
use facts::{PathFacts, PathKind};
use forecast::Forecast;
use fresh_pairs::PairCheck;
use link::{CommandLink, FailedReads, LinkEnd};
use sampling::PathSamples;
use verdict::PathVerdict;

use crate::Failure;
use crate::profiling::control::{self, ClaimedDrive};
use crate::profiling::found::{FoundDrive, ProfilingEnd};

/// A path that is open for reading, and what is known of it.
pub struct OpenPath {
    /// What is known of it without timing.
    pub facts: PathFacts,
    /// A name for its profile, in kebab case.
    pub name: String,
    /// The path or URI with which a service finds it again.
    pub target: String,
    /// What was said and done to its switches when it was opened.
    pub said: Vec<String>,
    link: CommandLink,
    /// The switches of a SCSI disk.
    drive: Option<ProbedDrive>,
}

/// All that is known of a path at the end.
pub struct Adoption {
    /// What is known without timing.
    pub facts: PathFacts,
    /// The path or URI with which a service finds it again.
    pub target: String,
    /// The samples of the path.
    pub samples: PathSamples,
    /// The judgement of the samples.
    pub verdict: PathVerdict,
    /// The findings, unless the path is no disk.
    pub found: Option<FoundDrive>,
    /// The check on fresh pairs, if the profile predicts at all.
    pub check: Option<PairCheck>,
    /// What Headtime would bring, if the profile predicts at all.
    pub forecast: Option<Forecast>,
    /// The reason for which a service cannot use the findings.
    pub unusable: Option<String>,
    /// Reads that failed.
    pub failed: FailedReads,
    /// What sleeping CPUs add to the times of the path.
    pub wake_ups: WakeUps,
    /// The time that all of this took.
    pub seconds: f64,
}

/// An observer of an adoption.
pub trait AdoptionObserver {
    /// A stage starts.
    fn stage(&self, name: &str) {
        let _ = name;
    }

    /// The findings so far.
    fn show(&self, at: Instant, device: &DriveIdentity, findings: &Findings) {
        let _ = (at, device, findings);
    }

    /// A sentence about the disk or its switches.
    fn say(&self, sentence: &str) {
        let _ = sentence;
    }

    /// The flag that stops it.
    fn stop(&self) -> Option<Arc<AtomicBool>> {
        None
    }
}

/// Ignores everything.
impl AdoptionObserver for () {}

/// The time of the check on fresh pairs.
const CHECK: Duration = Duration::from_secs(20);

/// The longest time of the samples: they end by themselves before.
const SAMPLES: Duration = Duration::from_secs(60);

/// The longest time of reads that tell how late the path answers: five times that of a drive without a buffer.
const ANSWERS: Duration = Duration::from_secs(12);

/// Smallest drive. A choice: the smallest shipped one is a thousand times larger.
const LEAST_BYTES: u64 = 1 << 20;

/// The share of fresh pairs below which a profile predicts nothing: that of a belief's parts.
const LEAST_SHARE: f64 = 0.5;

impl OpenPath {
    /// Opens a device, a file or an NBD export. Nothing is written, and nothing is claimed.
    ///
    /// # Errors
    /// If there is no such path, it may not be read, or it is too small.
    pub fn open(path: &str) -> Result<Self, Failure> {
        let opened = match path.contains("://") {
            true => export_path(path)?,
            false => local_path(Path::new(path))?,
        };
        let facts = &opened.facts;
        if ![512, 4096].contains(&facts.logical_block) || facts.capacity_bytes < LEAST_BYTES {
            return Err(Failure::input(format!(
                "{path}: {} bytes in blocks of {}: expected at least {LEAST_BYTES}, in blocks of 512 or 4096",
                facts.capacity_bytes, facts.logical_block
            )));
        }
        Ok(opened)
    }

    /// What is known of the drive without timing.
    pub fn device(&self) -> DriveIdentity {
        self.link.device()
    }

    /// Finds out all that the path tells, in `budget` at most, from earlier findings on. The CPUs of this
    /// machine are kept awake meanwhile. Its switches are as before afterwards, also after an error.
    ///
    /// # Errors
    /// If the path is gone, or more reads fail than a healthy disk has, or the observer stops it.
    pub fn adopt(
        mut self,
        budget: Duration,
        resumed: Findings,
        observer: &dyn AdoptionObserver,
    ) -> Result<Adoption, Failure> {
        self.link.stop_at(observer.stop());
        let adopted = self.adopt_while_switched(budget, resumed, observer);
        for report in self.link.release() {
            observer.say(&report.to_string());
        }
        adopted
    }

    fn adopt_while_switched(
        &mut self,
        budget: Duration,
        resumed: Findings,
        observer: &dyn AdoptionObserver,
    ) -> Result<Adoption, Failure> {
        let begun = self.link.now();
        observer.stage("is it a disk?");
        let asleep_us = self.late_us()?;
        let awake = cpus::keep_awake(&|line| observer.say(line));
        let wake_ups = WakeUps {
            asleep_us,
            awake_us: match &awake {
                Some(_) => self.late_us()?,
                None => None,
            },
        };
        let samples = match &self.facts.no_disk {
            Some(_) => PathSamples::default(),
            None => self.sample()?,
        };
        let mut verdict = verdict::judge(&samples);
        if self.facts.no_disk.is_some() {
            verdict.no_disk.clone_from(&self.facts.no_disk);
        }
        let mut adoption = Adoption {
            facts: self.facts.clone(),
            target: self.target.clone(),
            samples,
            verdict,
            found: None,
            check: None,
            forecast: None,
            unusable: None,
            failed: FailedReads::default(),
            wake_ups,
            seconds: 0.0,
        };
        if adoption.verdict.no_disk.is_none() {
            if let Some(drive) = self.drive.take() {
                let say = |line: &str| observer.say(line);
                self.link.take_control(drive, &say);
            }
            let spent = self.link.now().since(begun);
            let left = budget.saturating_sub(spent).saturating_sub(CHECK);
            let found = self.profile(left, resumed, observer)?;
            self.judge(&mut adoption, &found, observer)?;
            adoption.found = Some(found);
        }
        adoption.failed = self.link.failed().clone();
        adoption.seconds = self.link.now().since(begun).as_secs_f64();
        Ok(adoption)
    }

    /// Runs a procedure of the profiler's kind on the path, for at most `budget`.
    ///
    /// # Errors
    /// If the path is gone, or more reads fail than a healthy disk has.
    pub fn carry_out(
        &mut self,
        profiler: &mut Profiler,
        budget: Duration,
    ) -> Result<LinkEnd, Failure> {
        self.link.run(profiler, budget, &|_, _, _| ())
    }

    /// How late the path answers, as [`cpus::late_us`] has it; `None` if it is known as no disk.
    fn late_us(&mut self) -> Result<Option<f64>, Failure> {
        if self.facts.no_disk.is_some() {
            return Ok(None);
        }
        let times = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&times);
        let device = self.link.device();
        let mut profiler = Profiler::new(device, Findings::default(), |prober| {
            sampling::answers(prober, theirs)
        });
        self.carry_out(&mut profiler, ANSWERS)?;
        let times = times.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(cpus::late_us(times.clone()))
    }

    fn sample(&mut self) -> Result<PathSamples, Failure> {
        let samples = Arc::new(Mutex::new(PathSamples::default()));
        let theirs = Arc::clone(&samples);
        let device = self.link.device();
        let mut profiler = Profiler::new(device, Findings::default(), |prober| {
            sampling::sample(prober, theirs)
        });
        self.carry_out(&mut profiler, SAMPLES)?;
        let samples = samples.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(samples.clone())
    }

    fn profile(
        &mut self,
        budget: Duration,
        resumed: Findings,
        observer: &dyn AdoptionObserver,
    ) -> Result<FoundDrive, Failure> {
        let device = self.link.device();
        let begun = self.link.now();
        let probes_end = budget;
        observer.stage("its profile");
        let mut profiler = Profiler::new(device, resumed, move |prober| {
            procedure::complete(prober, probes_end)
        });
        let show = |at: Instant, device: &DriveIdentity, findings: &Findings| {
            observer.show(at, device, findings);
        };
        let ended = self.link.run(&mut profiler, budget, &show)?;
        Ok(FoundDrive {
            name: self.name.clone(),
            device,
            findings: profiler.findings(),
            truth: None,
            at: Instant::ZERO + self.link.now().since(begun),
            probes: profiler.probes(),
            ended: match ended {
                LinkEnd::Finished => ProfilingEnd::Finished,
                LinkEnd::OutOfTime => ProfilingEnd::OutOfTime,
            },
        })
    }

    /// Checks what was found, and predicts what it brings.
    fn judge(
        &mut self,
        adoption: &mut Adoption,
        found: &FoundDrive,
        observer: &dyn AdoptionObserver,
    ) -> Result<(), Failure> {
        let profile = match predicting(found) {
            Ok(profile) => profile,
            Err(doubt) => {
                adoption.unusable = Some(doubt);
                return Ok(());
            }
        };
        observer.stage("fresh probes");
        let checked = Arc::new(Mutex::new(PairCheck::default()));
        let (theirs, known) = (Arc::clone(&checked), profile.clone());
        let findings = found.findings.clone();
        let mut profiler = Profiler::new(self.link.device(), findings, |prober| {
            fresh_pairs::check(prober, known, theirs)
        });
        self.link.run(&mut profiler, CHECK, &|_, _, _| ())?;
        let checked = *checked.lock().unwrap_or_else(PoisonError::into_inner);
        adoption.check = Some(checked);
        if checked.share() < LEAST_SHARE {
            adoption.unusable = Some(format!(
                "only {} of {} fresh probes ended as the profile predicts: expected at least half",
                checked.as_predicted, checked.pairs
            ));
            return Ok(());
        }
        observer.stage("what it brings");
        adoption.forecast = Some(Forecast::of(&Arc::new(profile)));
        Ok(())
    }
}

/// The profile, if it predicts the head; or why it does not.
fn predicting(found: &FoundDrive) -> Result<Profile, String> {
    let failed = found.findings.progress.failed.iter();
    let reasons: String = failed
        .map(|(stage, why)| format!("; {}: {why}", stage.name()))
        .collect();
    if found.findings.clock.is_none() {
        return Err(format!("no period was found{reasons}"));
    }
    let profile = found.profile().map_err(|failure| failure.to_string())?;
    let doubt = profile
        .confidence
        .as_ref()
        .and_then(|confidence| confidence.doubt());
    match doubt {
        None => Ok(profile),
        Some(doubt) => Err(format!("{doubt}{reasons}")),
    }
}

/// The identity for the profiler of a path that offers reads alone.
fn identity(facts: &PathFacts) -> DriveIdentity {
    DriveIdentity {
        blocks: facts.capacity_bytes / u64::from(facts.logical_block.max(512)),
        block_bytes: facts.logical_block,
        physical_block_bytes: match facts.physical_block {
            Some(4096) => 4096,
            _ => facts.logical_block,
        },
        depth: event::DEPTH,
        offers: Offers::Nothing,
        writes: WritePermission::Forbidden,
    }
}

fn export_path(uri: &str) -> Result<OpenPath, Failure> {
    let remote = Remote::of_uri(uri).ok_or_else(|| {
        Failure::input(format!(
            "{uri}: expected \"nbd://HOST[:PORT]/NAME\" or \"nbd+unix:///NAME?socket=PATH\", without TLS"
        ))
    })?;
    let (connection, events) = export::connect(&remote)?;
    let facts = PathFacts::of_offer(connection.offer());
    let device = identity(&facts);
    let name = match remote.export.as_str() {
        "" => "disk".to_owned(),
        export => kebab(export),
    };
    Ok(OpenPath {
        link: CommandLink::of_export(connection, events, device, uri),
        facts,
        name,
        target: uri.to_owned(),
        said: Vec::new(),
        drive: None,
    })
}

fn local_path(path: &Path) -> Result<OpenPath, Failure> {
    let wrong = |error: io::Error| Failure::input(format!("{}: {error}", path.display()));
    let real = path.canonicalize().map_err(wrong)?;
    let real = control::disk_of(&real)?;
    let kind = real.metadata().map_err(wrong)?.file_type();
    if !kind.is_block_device() && !kind.is_file() {
        return Err(Failure::input(format!(
            "{}: expected a block device, a file, or the URI of an NBD export",
            path.display()
        )));
    }
    let (mut file, direct) = open_direct(&real).map_err(wrong)?;
    let bytes = file.seek(SeekFrom::End(0)).map_err(wrong)?;
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    let mut facts = match kind.is_block_device() {
        true => {
            let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
            PathFacts::of_device(&name, bytes, Path::new("/sys"), &mounts)
        }
        false => PathFacts::of_file(&real, bytes),
    };
    if kind.is_block_device() && facts.users.is_empty() && is_claimed(&real) {
        facts.users.push("open exclusively by a program".to_owned());
    }
    if direct == ReadPath::PageCache {
        facts
            .notes
            .push("it cannot be read past the host's page cache".to_owned());
    }
    let claimed = match facts.kind {
        PathKind::Device => control::claim(&real, bytes, WritePermission::Forbidden)?,
        _ => None,
    };
    let ClaimedDrive { drive, said } = claimed.unwrap_or_default();
    let device = identity(&facts);
    Ok(OpenPath {
        link: CommandLink::of_file(file, device, &path.display().to_string()),
        name: kebab(&name),
        target: real.display().to_string(),
        said,
        facts,
        drive,
    })
}

/// How a file is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadPath {
    Direct,
    PageCache,
}

/// Opens a file past the page cache, if the file system permits that.
fn open_direct(path: &Path) -> io::Result<(File, ReadPath)> {
    let open = |flags: OFlags| {
        OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(path)
    };
    match open(OFlags::DIRECT) {
        Ok(file) => Ok((file, ReadPath::Direct)),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Ok((open(OFlags::empty())?, ReadPath::PageCache))
        }
        Err(error) => Err(error),
    }
}

/// Whether a program has the block device open exclusively, as mounts do (open(2), `O_EXCL`).
fn is_claimed(path: &Path) -> bool {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::EXCL | OFlags::NONBLOCK).bits() as i32)
        .open(path);
    opened.is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy)
}

#[cfg(test)]
mod tests;
