//! A simulated drive that is profiled while it serves.
//!
//! ```text
//!   engine ---- commands ----> [ backlog ] ---.
//!                                              >---> drive
//!   profiler -- probes, when they may go -----'
//! ```
//!
//! A run sees one device.

use std::collections::VecDeque;

use block::{Command, Duration, Instant, Outcome, Refused};
use drive::VirtualDrive;
use profiler::Findings;
use profiler::behind::ProfilerBehindLoad;

use crate::driver::SimulatedDrive;

/// The progress of profiling at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfilingProgress {
    /// The time.
    pub at: Instant,
    /// Number of blocks whose tracks were known.
    pub blocks: u64,
    /// Number of probes that had ended.
    pub probes: u64,
    /// The total time for which probes had occupied the drive.
    pub took: Duration,
}

/// A virtual drive with a profiler behind its load.
#[derive(Debug)]
pub struct ProfiledDrive {
    drive: VirtualDrive,
    profiler: ProfilerBehindLoad,
    /// Interval between two recorded progress points.
    note_every: Duration,
    /// Foreground commands that the drive has no room for while it executes a probe.
    backlog: VecDeque<Command>,
    known: Vec<ProfilingProgress>,
}

impl ProfiledDrive {
    /// Couples a drive and a profiler that was made for it. Its progress is recorded at every
    /// `note_every`.
    pub fn new(drive: VirtualDrive, profiler: ProfilerBehindLoad, note_every: Duration) -> Self {
        ProfiledDrive {
            drive,
            profiler,
            note_every,
            backlog: VecDeque::new(),
            known: Vec::new(),
        }
    }

    /// The findings so far.
    pub fn findings(&self) -> Findings {
        self.profiler.findings()
    }

    /// The time at which the profiler finished; `None` before that.
    pub fn finished(&self) -> Option<Instant> {
        self.profiler.finished()
    }

    /// The recorded progress: one point at each interval, and one at the end of profiling.
    pub fn known(&self) -> &[ProfilingProgress] {
        &self.known
    }

    /// The progress at `now`.
    pub fn known_at(&self, now: Instant) -> ProfilingProgress {
        ProfilingProgress {
            at: now,
            blocks: self.profiler.findings().map.known(),
            probes: self.profiler.probes(),
            took: self.profiler.took(),
        }
    }

    /// Dispatches the probes that are due.
    fn probe(&mut self, now: Instant) {
        if !self.backlog.is_empty() || self.profiler.finished().is_some() {
            return;
        }
        while let Some(command) = self.profiler.next(now, self.depth()) {
            let taken = self.drive.submit(now, command);
            taken.expect("a probe of the drive's own blocks, and room for it");
        }
        if self.profiler.finished().is_some() {
            self.known.push(self.known_at(now));
        }
    }

    fn depth(&self) -> usize {
        (self.drive.truth().queue.depth as usize).max(1)
    }

    /// Dispatches foreground commands that waited for room.
    fn flush(&mut self, now: Instant) {
        while let Some(&command) = self.backlog.front() {
            if self.drive.submit(now, command).is_err() {
                return;
            }
            self.profiler.began();
            self.backlog.pop_front();
        }
    }

    /// Records the progress if a point is due.
    fn note(&mut self, now: Instant) {
        let noted = self.known.last().map_or(Instant::ZERO, |known| known.at);
        if now >= noted + self.note_every && !self.profiler.is_over(now) {
            self.known.push(self.known_at(now));
        }
    }
}

impl SimulatedDrive for ProfiledDrive {
    fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        if !self.backlog.is_empty() {
            self.backlog.push_back(command);
            return Ok(());
        }
        match self.drive.submit(now, command) {
            Err(_) if self.profiler.probing() > 0 => self.backlog.push_back(command),
            Err(refused) => return Err(refused),
            Ok(()) => self.profiler.began(),
        }
        Ok(())
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        while let Some(outcome) = self.drive.poll(now) {
            if !ProfilerBehindLoad::is_probe(outcome.id) {
                self.profiler.ended(now);
                return Some(outcome);
            }
            self.profiler.observe(now, outcome);
        }
        self.note(now);
        self.flush(now);
        self.probe(now);
        None
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let has_room = self.backlog.is_empty() && self.profiler.at_drive() < self.depth();
        let probe = self.profiler.next_wakeup().filter(|_| has_room);
        [self.drive.next_wakeup(), probe]
            .into_iter()
            .flatten()
            .min()
    }
}
