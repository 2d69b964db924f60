//! Commands to a path and their outcomes, in real time. The path is only read, unless writes are allowed.
//!
//! ```text
//!   Profiler --command--> CommandLink --> threads with the file, or the SCSI disk | NBD connection
//!            <--outcome--             <--
//! ```

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time;

use block::{Action, Command, Duration, Instant, Lba, Outcome, Status};
use profiler::{DriveIdentity, Findings, NextProbe, Offers, Profiler, WritePermission};
use server::disk::back_end::scsi::probed::ProbedDrive;
use server::disk::back_end::scsi::switched::SwitchReport;

use super::event::{LinkEvent, outcome, since};
use super::export::ExportConnection;
use crate::Failure;
use crate::profiling::control;
use crate::profiling::probe_path::{ProbeBuffer, ProbePath};

/// Commands to a path, and their outcomes.
pub struct CommandLink {
    begun: time::Instant,
    carrier: Carrier,
    events: Receiver<LinkEvent>,
    device: DriveIdentity,
    name: String,
    in_flight: usize,
    failed: FailedReads,
    limits: FailureLimits,
    first_error: Option<String>,
    /// Set from outside, to stop.
    stop: Option<Arc<AtomicBool>>,
}

enum Carrier {
    /// Threads that send commands to a path.
    Threads(Sender<Command>, Arc<ProbePath>),
    /// A connection to an NBD server.
    Export(ExportConnection),
}

/// Reads that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedReads {
    /// How many reads ended.
    pub reads: u64,
    /// How many of them failed.
    pub failed: u64,
    /// The least and the greatest first block of those.
    pub between: Option<(Lba, Lba)>,
    /// Failures since the last success.
    in_a_row: u64,
}

/// The end of a procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// It had no more questions.
    Finished,
    /// Its time was up.
    OutOfTime,
}

/// The failed reads after which a path is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureLimits {
    /// Failures in a row, with no success in between: the path is gone.
    pub in_a_row: u64,
    /// All failures.
    pub all: u64,
}

/// The limits of an adoption. A choice: a healthy disk fails none, and each try strains a disk that fails.
const LIMITS: FailureLimits = FailureLimits {
    in_a_row: 4,
    all: 8,
};

/// The longest wait for an outcome, so that the progress continues.
const LONGEST_WAIT: time::Duration = time::Duration::from_millis(500);

/// The longest wait that does not sleep: a sleep of the kernel's ends 50 us later (`PR_SET_TIMERSLACK`),
/// and a seek is told from the time at which a command is given. A sixteenth of a revolution is the
/// profiler's longest such wait.
const SHORT_WAIT: time::Duration = time::Duration::from_micros(700);

/// The longest wait for outstanding commands at the end. A choice: the kernel's time-out of a command.
const DRAIN: time::Duration = time::Duration::from_secs(30);

/// Interval of progress reports.
const SHOW: Duration = Duration::from_millis(500);

impl CommandLink {
    /// A link to an open file or block device.
    pub fn of_file(file: File, device: DriveIdentity, name: &str) -> Self {
        CommandLink::of_range(file, device, 0, name)
    }

    /// A link to the blocks from `first` on, as many as `device` has: a drive of their own.
    pub fn of_range(file: File, device: DriveIdentity, first: u64, name: &str) -> Self {
        let begun = time::Instant::now();
        let (commands, waiting) = channel::<Command>();
        let (ended, events) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let path = Arc::new(ProbePath::of_file(file, device, first));
        for _ in 0..device.depth {
            let (waiting, ended) = (Arc::clone(&waiting), ended.clone());
            let path = Arc::clone(&path);
            thread::spawn(move || carry_out_commands(&path, &waiting, &ended, begun));
        }
        CommandLink::new(
            begun,
            Carrier::Threads(commands, path),
            events,
            device,
            name,
        )
    }

    /// A link to an NBD export.
    pub(super) fn of_export(
        export: ExportConnection,
        events: Receiver<LinkEvent>,
        device: DriveIdentity,
        name: &str,
    ) -> Self {
        let begun = export.begun();
        CommandLink::new(begun, Carrier::Export(export), events, device, name)
    }

    fn new(
        begun: time::Instant,
        carrier: Carrier,
        events: Receiver<LinkEvent>,
        device: DriveIdentity,
        name: &str,
    ) -> Self {
        CommandLink {
            begun,
            carrier,
            events,
            device,
            name: name.to_owned(),
            in_flight: 0,
            failed: FailedReads::default(),
            limits: LIMITS,
            first_error: None,
            stop: None,
        }
    }

    /// The link with other limits of failed reads.
    #[must_use]
    pub fn with_limits(mut self, limits: FailureLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Stops as soon as the flag is set.
    pub fn stop_at(&mut self, stop: Option<Arc<AtomicBool>>) {
        self.stop = stop;
    }

    /// Sends the commands to the drive itself from now on, and turns its switches off, if it offers enough.
    /// `say` gets sentences about it.
    pub fn take_control(&mut self, drive: ProbedDrive, say: &dyn Fn(&str)) {
        let Carrier::Threads(_, path) = &self.carrier else {
            return;
        };
        let begun = self.begun;
        let (offers, said) = control::begin(&drive, self.device.writes, &|| since(begun));
        said.iter().for_each(|line| say(line));
        self.device.offers = offers;
        if offers == Offers::CacheControl {
            path.use_drive(Arc::new(drive));
        }
    }

    /// Turns the drive's switches back, and reports them.
    pub fn release(&mut self) -> Vec<SwitchReport> {
        match &self.carrier {
            Carrier::Threads(_, path) => path.drive().map(ProbedDrive::restore).unwrap_or_default(),
            Carrier::Export(_) => Vec::new(),
        }
    }

    /// The error of the first read that failed.
    pub fn first_error(&self) -> Option<&str> {
        self.first_error.as_deref()
    }

    /// What is known of the drive without timing.
    pub fn device(&self) -> DriveIdentity {
        self.device
    }

    /// The time since the link was made.
    pub fn now(&self) -> Instant {
        since(self.begun)
    }

    /// The reads that failed so far.
    pub fn failed(&self) -> &FailedReads {
        &self.failed
    }

    /// Runs a profiler until it has finished, or `budget` is spent. All of its commands have ended then.
    ///
    /// # Errors
    /// If the path is gone, or more reads fail than a healthy disk has.
    pub fn run(
        &mut self,
        profiler: &mut Profiler,
        budget: Duration,
        show: &dyn Fn(Instant, &DriveIdentity, &Findings),
    ) -> Result<LinkEnd, Failure> {
        let end = self.now() + budget;
        let mut shown = self.now();
        let ended = loop {
            let now = self.now();
            if now >= end {
                break LinkEnd::OutOfTime;
            }
            self.go_on()?;
            if now >= shown + SHOW {
                show(now, &self.device, &profiler.findings());
                shown = now;
            }
            let until = match profiler.next_probe(now) {
                NextProbe::Probe(command) => {
                    self.submit(command, profiler)?;
                    continue;
                }
                NextProbe::Finished => break LinkEnd::Finished,
                NextProbe::Wait => end,
                NextProbe::WaitUntil(at) => at.min(end),
            };
            let wait = time::Duration::from_nanos(until.since(now).as_nanos());
            if self.in_flight == 0 && wait <= SHORT_WAIT {
                std::hint::spin_loop();
                continue;
            }
            self.receive(wait.min(LONGEST_WAIT), Some(profiler))?;
        };
        self.drain()?;
        Ok(ended)
    }

    /// Goes on, unless it was stopped from outside.
    fn go_on(&mut self) -> Result<(), Failure> {
        let stop = self.stop.as_ref();
        if !stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Ok(());
        }
        self.drain()?;
        Err(Failure::failed(format!(
            "{}: stopped by a signal; no profile is written",
            self.name
        )))
    }

    /// Whether the path has a command.
    fn has(&self, action: Action) -> bool {
        match action {
            Action::Read { .. } => true,
            Action::Write { .. } | Action::Flush => self.device.writes == WritePermission::Allowed,
            Action::Seek { .. } | Action::SetLookAhead(_) | Action::SetWriteCache(_) => {
                self.device.offers == Offers::CacheControl
            }
        }
    }

    fn submit(&mut self, command: Command, profiler: &mut Profiler) -> Result<(), Failure> {
        if !self.has(command.action) {
            let status = match command.action {
                Action::Write { extent, .. } => Status::MediumError { at: extent.start() },
                _ => Status::Good,
            };
            let at = self.now();
            profiler.observe(at, outcome(command.id, at, status));
            return Ok(());
        }
        self.in_flight += 1;
        match &mut self.carrier {
            // The threads live as long as the queues.
            Carrier::Threads(commands, _) => {
                let _ = commands.send(command);
            }
            Carrier::Export(export) => export.submit(command).map_err(|error| {
                Failure::failed(format!("{}: {error}: the path is gone", self.name))
            })?,
        }
        Ok(())
    }

    /// Receives an outcome, if one comes in time.
    fn receive(
        &mut self,
        wait: time::Duration,
        profiler: Option<&mut Profiler>,
    ) -> Result<(), Failure> {
        match self.events.recv_timeout(wait) {
            Ok(LinkEvent::Ended(outcome, error)) => {
                self.in_flight -= 1;
                if let Some(profiler) = profiler {
                    profiler.observe(self.now(), outcome);
                }
                self.failed.count(&outcome);
                if self.first_error.is_none() {
                    self.first_error = error.as_ref().map(io::Error::to_string);
                }
                self.judge(error.filter(|_| outcome.status != Status::Aborted))
            }
            Ok(LinkEvent::Gone(why)) => Err(Failure::failed(format!(
                "{}: {why}: the path is gone; nothing is written",
                self.name
            ))),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    /// Gives a failing path up.
    fn judge(&self, error: Option<io::Error>) -> Result<(), Failure> {
        let Some(error) = error else {
            return Ok(());
        };
        let FailedReads {
            reads,
            failed,
            in_a_row,
            between,
        } = &self.failed;
        if *in_a_row >= self.limits.in_a_row {
            return Err(Failure::failed(format!(
                "{}: {in_a_row} reads in a row failed ({error}): the path is gone or cannot be read; \
                 nothing is written",
                self.name
            )));
        }
        if *failed < self.limits.all {
            return Ok(());
        }
        let (first, last) = between.unwrap_or_default();
        Err(Failure::failed(format!(
            "{}: {failed} of {reads} reads failed, between blocks {} and {} ({error}): save what is on the \
             disk first; nothing is written",
            self.name, first.0, last.0
        )))
    }

    /// Awaits the ends of outstanding commands.
    fn drain(&mut self) -> Result<(), Failure> {
        let until = time::Instant::now() + DRAIN;
        while self.in_flight > 0 {
            if time::Instant::now() >= until {
                return Err(Failure::failed(format!(
                    "{}: {} reads have no answer after {} s: the path hangs",
                    self.name,
                    self.in_flight,
                    DRAIN.as_secs()
                )));
            }
            self.receive(LONGEST_WAIT, None)?;
        }
        Ok(())
    }
}

impl FailedReads {
    fn count(&mut self, outcome: &Outcome) {
        self.reads += 1;
        match outcome.status {
            Status::MediumError { at } => {
                self.failed += 1;
                self.in_a_row += 1;
                let (first, last) = self.between.unwrap_or((at, at));
                self.between = Some((first.min(at), last.max(at)));
            }
            _ => self.in_a_row = 0,
        }
    }
}

/// The switches are as before, however the link ends. The threads may have the drive for longer.
impl Drop for CommandLink {
    fn drop(&mut self) {
        self.release();
    }
}

/// Serves commands until there are no more.
fn carry_out_commands(
    path: &ProbePath,
    waiting: &Mutex<Receiver<Command>>,
    ended: &Sender<LinkEvent>,
    begun: time::Instant,
) {
    let mut buffer = ProbeBuffer::default();
    loop {
        let next = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(command) = next else { return };
        let done = path.carry_out(command.action, &mut buffer);
        let status = match (&done, command.action) {
            (Ok(()), _) => Status::Good,
            (Err(_), Action::Read { extent, .. } | Action::Write { extent, .. }) => {
                Status::MediumError { at: extent.start() }
            }
            // The drive does not have the command.
            (Err(_), _) => Status::Aborted,
        };
        let outcome = outcome(command.id, since(begun), status);
        if ended.send(LinkEvent::Ended(outcome, done.err())).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;
    use block::Extent;

    const DEVICE: DriveIdentity = DriveIdentity {
        blocks: 1000,
        block_bytes: 4096,
        physical_block_bytes: 4096,
        depth: 2,
        offers: Offers::Nothing,
        writes: WritePermission::Forbidden,
    };

    /// Reads blocks of a file that has fewer than its device is said to have: the rest fails.
    fn read(blocks: impl Iterator<Item = u64> + Send + 'static) -> (FailedReads, Option<String>) {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(500 * 4096).expect("a length");
        let mut link = CommandLink::of_file(file, DEVICE, "disk");
        let blocks: Vec<u64> = blocks.collect();
        let mut profiler = Profiler::new(DEVICE, Findings::default(), |prober| async move {
            for block in blocks {
                prober.read(Extent::block(Lba(block))).await;
            }
        });
        let ran = link.run(&mut profiler, Duration::from_secs(60), &|_, _, _| ());
        (
            link.failed().clone(),
            ran.err().map(|failure| failure.to_string()),
        )
    }

    #[test]
    fn a_region_that_fails_ends_the_measurement_with_its_blocks() {
        let (failed, ended) = read((0..100).map(|number| number * 37 % 520));
        assert_eq!(ended, None, "few blocks fail: {failed:?}");
        assert!(failed.failed > 0 && failed.reads == 100, "{failed:?}");
        let (failed, ended) = read((0..1000).map(|number| number * 37 % 620));
        let said = ended.expect("a failure");
        assert_eq!(failed.failed, LIMITS.all);
        let (first, last) = failed.between.expect("blocks");
        assert!(first.0 >= 500 && last.0 < 620, "{failed:?}");
        let blocks = format!("between blocks {} and {}", first.0, last.0);
        assert!(
            said.contains(&blocks) && said.contains("nothing is written"),
            "{said}"
        );
    }

    #[test]
    fn a_path_that_is_gone_ends_the_measurement_at_once() {
        let (failed, ended) = read((0..50).chain(600..700));
        assert_eq!(failed.in_a_row, LIMITS.in_a_row);
        let said = ended.expect("a failure");
        assert!(said.contains("4 reads in a row failed"), "{said}");
    }

    /// A stop from outside ends the measurement, after the reads in flight.
    #[test]
    fn a_stop_from_outside_ends_the_measurement() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(1000 * 4096).expect("a length");
        let stop = Arc::new(AtomicBool::new(false));
        let mut link = CommandLink::of_file(file, DEVICE, "disk");
        link.stop_at(Some(Arc::clone(&stop)));
        let mut profiler = Profiler::new(DEVICE, Findings::default(), |prober| async move {
            prober.read(Extent::block(Lba(1))).await;
            stop.store(true, Ordering::Relaxed);
            loop {
                prober.read(Extent::block(Lba(2))).await;
            }
        });
        let ended = link.run(&mut profiler, Duration::from_secs(60), &|_, _, _| ());
        let said = ended.expect_err("a stop").to_string();
        assert!(said.contains("stopped by a signal"), "{said}");
        assert_eq!(link.in_flight, 0);
    }

    #[test]
    fn commands_other_than_reads_never_reach_the_path() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(500 * 4096).expect("a length");
        let check = file.try_clone().expect("the same file");
        let mut link = CommandLink::of_file(file, DEVICE, "disk");
        let mut profiler = Profiler::new(DEVICE, Findings::default(), |prober| async move {
            let write = prober
                .ask(Action::Write {
                    extent: Extent::block(Lba(3)),
                    durability: block::Durability::Durable,
                })
                .await;
            assert!(write.status != Status::Good);
            let flush = prober.ask(Action::Flush).await;
            assert_eq!(flush.status, Status::Good);
        });
        let ended = link.run(&mut profiler, Duration::from_secs(60), &|_, _, _| ());
        assert_eq!(ended, Ok(LinkEnd::Finished));
        let mut byte = [1];
        check.read_exact_at(&mut byte, 3 * 4096).expect("a byte");
        assert_eq!((byte, link.failed().reads), ([0], 0));
    }
}
