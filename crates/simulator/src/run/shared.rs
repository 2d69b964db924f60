//! A drive that is profiled while it serves: the profiler's probes go when no request is there, or
//! when they were granted a share of the time.
//!
//! ```text
//!   engine ---- commands ----> [ backlog ] ---.
//!                                              >---> drive
//!   profiler -- probes, when they may go -----'
//! ```
//!
//! To a run this is one device. A foreground command waits for the probe that is under way, and for no
//! other.

use std::collections::VecDeque;

use block::{Command, CommandId, Duration, Instant, Outcome, Refused};
use drive::VirtualDrive;
use profiler::{Findings, NextProbe, Profiler};

use crate::driver::SimulatedDrive;

/// When probes may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeSchedule {
    /// For how long no foreground command must have been at the drive.
    pub calm: Duration,
    /// The share of the time that probes may take besides, in parts per million, one at a time
    /// between foreground commands.
    pub granted_ppm: u32,
    /// No probe goes after this.
    pub until: Instant,
    /// How often is noted what is known.
    pub note_every: Duration,
}

/// What was known at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfilingProgress {
    /// The moment.
    pub at: Instant,
    /// Blocks whose tracks were known.
    pub blocks: u64,
    /// Probes that had ended.
    pub probes: u64,
    /// For how long they had held the drive.
    pub took: Duration,
}

/// A virtual drive with a profiler behind its load.
#[derive(Debug)]
pub struct ProfiledDrive {
    drive: VirtualDrive,
    profiler: Profiler,
    turns: ProbeSchedule,
    /// Foreground commands that the drive has no room for while a probe is there.
    backlog: VecDeque<Command>,
    /// Foreground commands at the drive.
    foreground: usize,
    /// When the last of them ended.
    calm_since: Instant,
    /// Probes at the drive, and since when there is one.
    probes: usize,
    probing_since: Instant,
    /// When a pausing profiler goes on.
    wakeup: Option<Instant>,
    finished: Option<Instant>,
    /// No more probes go.
    is_over: bool,
    /// What was spent of the grant.
    spent: Duration,
    ended: u64,
    took: Duration,
    known: Vec<ProfilingProgress>,
}

/// Names of commands from here on are probes'.
const PROBES: u64 = 1 << 62;

impl ProfiledDrive {
    /// A drive and a profiler that was made for it.
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

    /// What was found so far.
    pub fn findings(&self) -> Findings {
        self.profiler.findings()
    }

    /// When the profiler had nothing more to ask, if it came to that.
    pub fn finished(&self) -> Option<Instant> {
        self.finished
    }

    /// What was known when: at each [`ProbeSchedule::note_every`], and at the end of the profiler.
    pub fn known(&self) -> &[ProfilingProgress] {
        &self.known
    }

    /// What is known at `now`.
    pub fn known_at(&self, now: Instant) -> ProfilingProgress {
        ProfilingProgress {
            at: now,
            blocks: self.profiler.findings().map.known(),
            probes: self.ended,
            took: self.took,
        }
    }

    /// From when on the next probe may go, if nothing else happens.
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

    /// Gives the drive the probes that may go now.
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

    /// Gives the drive foreground commands that waited for room.
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

    /// Notes what is known, where that is due.
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
