//! A drive that is profiled while it serves. Probes run when the drive has been idle for some time,
//! or within a granted fraction of the time.
//!
//! ```text
//!   engine ---- commands ----> [ backlog ] ---.
//!                                              >---> drive
//!   profiler -- probes, when they may go -----'
//! ```
//!
//! A run sees one device. A foreground command waits for at most one probe, the one in service.

use std::collections::VecDeque;

use block::{Command, CommandId, Duration, Instant, Outcome, Refused};
use drive::VirtualDrive;
use profiler::{Findings, NextProbe, Profiler};

use crate::driver::SimulatedDrive;

/// The conditions under which probes are dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeSchedule {
    /// The time without foreground commands after which probes may start.
    pub calm: Duration,
    /// The fraction of the time that probes may take in addition, in parts per million. These
    /// probes run one at a time between foreground commands.
    pub granted_ppm: u32,
    /// No probe is dispatched after this time.
    pub until: Instant,
    /// Interval between two recorded progress points.
    pub note_every: Duration,
}

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
    profiler: Profiler,
    turns: ProbeSchedule,
    /// Foreground commands that the drive has no room for while it executes a probe.
    backlog: VecDeque<Command>,
    /// Number of foreground commands at the drive.
    foreground: usize,
    /// The end of the last foreground command.
    calm_since: Instant,
    /// Number of probes at the drive, and the start of the one in service.
    probes: usize,
    probing_since: Instant,
    /// The time at which a pausing profiler continues.
    wakeup: Option<Instant>,
    finished: Option<Instant>,
    /// No more probes are dispatched.
    is_over: bool,
    /// Granted time that probes have used.
    spent: Duration,
    ended: u64,
    took: Duration,
    known: Vec<ProfilingProgress>,
}

/// Command ids with this bit are probes.
const PROBES: u64 = 1 << 62;

impl ProfiledDrive {
    /// Couples a drive and a profiler that was made for it.
    pub fn new(drive: VirtualDrive, profiler: Profiler, turns: ProbeSchedule) -> Self {
        ProfiledDrive {
            drive,
            profiler,
            turns,
            backlog: VecDeque::new(),
            foreground: 0,
            calm_since: Instant::ZERO,
            probes: 0,
            probing_since: Instant::ZERO,
            wakeup: None,
            finished: None,
            is_over: false,
            spent: Duration::ZERO,
            ended: 0,
            took: Duration::ZERO,
            known: Vec::new(),
        }
    }

    /// The findings so far.
    pub fn findings(&self) -> Findings {
        self.profiler.findings()
    }

    /// The time at which the profiler finished; `None` before that.
    pub fn finished(&self) -> Option<Instant> {
        self.finished
    }

    /// The recorded progress: one point at each [`ProbeSchedule::note_every`], and one at the end
    /// of profiling.
    pub fn known(&self) -> &[ProfilingProgress] {
        &self.known
    }

    /// The progress at `now`.
    pub fn known_at(&self, now: Instant) -> ProfilingProgress {
        ProfilingProgress {
            at: now,
            blocks: self.profiler.findings().map.known(),
            probes: self.ended,
            took: self.took,
        }
    }

    /// The earliest time of the next probe if no other event happens.
    fn opens(&self) -> Option<Instant> {
        if self.is_over || self.finished.is_some() || !self.backlog.is_empty() {
            return None;
        }
        let calm = (self.foreground == 0).then(|| self.calm_since + self.turns.calm);
        let granted = (self.turns.granted_ppm > 0 && self.probes == 0).then(|| {
            let earned = u128::from(self.spent.as_nanos()) * 1_000_000;
            let earned = earned / u128::from(self.turns.granted_ppm.max(1));
            Instant::from_nanos(u64::try_from(earned).unwrap_or(u64::MAX))
        });
        let opens = match (calm, granted) {
            (Some(calm), Some(granted)) => calm.min(granted),
            (calm, granted) => calm.or(granted)?,
        };
        (opens <= self.turns.until).then_some(opens)
    }

    /// Dispatches the probes that are due.
    fn probe(&mut self, now: Instant) {
        self.is_over |= now > self.turns.until;
        while !self.is_over && self.opens().is_some_and(|opens| opens <= now) {
            let is_full = self.foreground + self.probes >= self.depth();
            if is_full {
                return;
            }
            self.wakeup = None;
            match self.profiler.next_probe(now) {
                NextProbe::Probe(mut command) => {
                    command.id = CommandId(command.id.0 | PROBES);
                    let taken = self.drive.submit(now, command);
                    taken.expect("a probe of the drive's own blocks, and room for it");
                    if self.probes == 0 {
                        self.probing_since = now;
                    }
                    self.probes += 1;
                }
                NextProbe::Wait => return,
                NextProbe::WaitUntil(at) => {
                    self.wakeup = Some(at);
                    return;
                }
                NextProbe::Finished => {
                    self.finished = Some(now);
                    self.known.push(self.known_at(now));
                }
            }
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
            self.profiler.interrupted();
            self.foreground += 1;
            self.backlog.pop_front();
        }
    }

    fn observe(&mut self, now: Instant, mut outcome: Outcome) {
        outcome.id = CommandId(outcome.id.0 & !PROBES);
        self.profiler.observe(now, outcome);
        self.probes -= 1;
        self.ended += 1;
        let took = now.since(self.probing_since);
        self.probing_since = now;
        self.took += took;
        if self.foreground > 0 || now.since(self.calm_since) < self.turns.calm {
            self.spent += took;
        }
    }

    /// Records the progress if a point is due.
    fn note(&mut self, now: Instant) {
        let noted = self.known.last().map_or(Instant::ZERO, |known| known.at);
        let is_due = now >= noted + self.turns.note_every;
        if is_due && self.finished.is_none() && now <= self.turns.until {
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
            Err(_) if self.probes > 0 => self.backlog.push_back(command),
            Err(refused) => return Err(refused),
            Ok(()) => {
                self.profiler.interrupted();
                self.foreground += 1;
            }
        }
        Ok(())
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        while let Some(outcome) = self.drive.poll(now) {
            if outcome.id.0 & PROBES == 0 {
                self.foreground -= 1;
                self.calm_since = now;
                return Some(outcome);
            }
            self.observe(now, outcome);
        }
        self.note(now);
        self.flush(now);
        self.probe(now);
        None
    }

    fn next_wakeup(&self) -> Option<Instant> {
        // Nobody is asked before a probe that is waited for has ended.
        let opens = match (self.wakeup, self.opens()) {
            (Some(wakeup), Some(opens)) => Some(wakeup.max(opens)),
            (None, Some(opens)) if self.probes == 0 => Some(opens),
            _ => None,
        };
        let is_full = self.foreground + self.probes >= self.depth();
        let opens = opens.filter(|_| !is_full);
        [self.drive.next_wakeup(), opens]
            .into_iter()
            .flatten()
            .min()
    }
}
