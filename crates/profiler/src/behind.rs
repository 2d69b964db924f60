//! A profiler behind a load: its probes run when the drive has been idle for some time, or within a granted
//! share of the time.
//!
//! ```text
//!   began, ended: foreground commands ---.
//!                                         >--- next: a probe that may go now
//!   observe: ends of probes -------------'
//! ```
//!
//! A foreground command waits for at most one granted probe, the one in service.

use block::{Command, CommandId, Duration, Instant, Outcome, Status};

use crate::findings::Findings;
use crate::profiler::{KnownSoFar, NextProbe, Profiler};

/// The conditions under which probes are dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeSchedule {
    /// The time without foreground commands after which probes may start.
    pub calm: Duration,
    /// The fraction of the time that probes may take in addition, in parts per million. These
    /// probes run one at a time between foreground commands.
    pub granted_ppm: u32,
    /// The beginning of the time of which the fraction is granted.
    pub from: Instant,
    /// No probe is dispatched after this time.
    pub until: Instant,
}

/// A profiler whose probes share a drive with foreground commands.
#[derive(Debug)]
pub struct ProfilerBehindLoad {
    profiler: Profiler,
    schedule: ProbeSchedule,
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
    /// Probes that failed since the last one that did not, and when the next one may go for that.
    failed: u32,
    resumes: Instant,
}

/// Failed probes in a row after which the next one waits. A choice: a bad place of a disk fails fewer.
const FEW_FAILED: u32 = 8;
/// The first and the longest pause after a failed probe; each is twice the one before. A choice: a disk that was
/// unplugged fails at once, and is asked again each second.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Command ids with this bit are probes.
const PROBES: u64 = 1 << 62;

impl ProfilerBehindLoad {
    /// A profiler with these conditions for its probes.
    pub fn new(profiler: Profiler, schedule: ProbeSchedule) -> Self {
        ProfilerBehindLoad {
            profiler,
            schedule,
            foreground: 0,
            calm_since: schedule.from,
            probes: 0,
            probing_since: schedule.from,
            wakeup: None,
            finished: None,
            is_over: false,
            spent: Duration::ZERO,
            ended: 0,
            took: Duration::ZERO,
            failed: 0,
            resumes: schedule.from,
        }
    }

    /// Whether a command of the drive is a probe.
    pub fn is_probe(id: CommandId) -> bool {
        id.0 & PROBES != 0
    }

    /// The drive has received a foreground command.
    pub fn began(&mut self) {
        self.profiler.interrupted();
        self.foreground += 1;
    }

    /// A foreground command has ended.
    pub fn ended(&mut self, now: Instant) {
        self.foreground = self.foreground.saturating_sub(1);
        self.calm_since = now;
    }

    /// The next probe that may go to the drive now, if a drive of this depth has room for it.
    pub fn next(&mut self, now: Instant, depth: usize) -> Option<Command> {
        self.is_over |= now > self.schedule.until;
        let is_open = self.opens().is_some_and(|opens| opens <= now);
        if !is_open || self.at_drive() >= depth {
            return None;
        }
        self.wakeup = None;
        match self.profiler.next_probe(now) {
            NextProbe::Probe(mut command) => {
                command.id = CommandId(command.id.0 | PROBES);
                if self.probes == 0 {
                    self.probing_since = now;
                }
                self.probes += 1;
                return Some(command);
            }
            NextProbe::Wait => (),
            NextProbe::WaitUntil(at) => self.wakeup = Some(at),
            NextProbe::Finished => self.finished = Some(now),
        }
        None
    }

    /// A probe has ended.
    pub fn observe(&mut self, now: Instant, mut outcome: Outcome) {
        outcome.id = CommandId(outcome.id.0 & !PROBES);
        self.pause(now, outcome.status);
        self.profiler.observe(now, outcome);
        self.probes -= 1;
        self.ended += 1;
        let took = now.since(self.probing_since);
        self.probing_since = now;
        self.took += took;
        if self.foreground > 0 || now.since(self.calm_since) < self.schedule.calm {
            self.spent += took;
        }
    }

    /// The next probe waits if many have failed in a row.
    fn pause(&mut self, now: Instant, status: Status) {
        self.failed = match status {
            Status::Good => 0,
            _ => self.failed.saturating_add(1),
        };
        if self.failed > FEW_FAILED {
            let doubled = (self.failed - FEW_FAILED - 1).min(16);
            self.resumes = now + (SHORTEST_PAUSE * (1 << doubled)).min(LONGEST_PAUSE);
        }
    }

    /// Dispatches no more probes.
    pub fn stop(&mut self) {
        self.is_over = true;
    }

    /// The earliest time of the next probe, if no other event happens.
    pub fn next_wakeup(&self) -> Option<Instant> {
        // Nobody is asked before a probe that is waited for has ended.
        match (self.wakeup, self.opens()) {
            (Some(wakeup), Some(opens)) => Some(wakeup.max(opens)),
            (None, Some(opens)) if self.probes == 0 => Some(opens),
            _ => None,
        }
    }

    /// The earliest time at which the schedule allows a probe.
    fn opens(&self) -> Option<Instant> {
        if self.is_over || self.finished.is_some() {
            return None;
        }
        let schedule = &self.schedule;
        let calm = (self.foreground == 0).then(|| self.calm_since + schedule.calm);
        let granted = (schedule.granted_ppm > 0 && self.probes == 0).then(|| {
            let earned = u128::from(self.spent.as_nanos()) * 1_000_000;
            let earned = earned / u128::from(schedule.granted_ppm.max(1));
            schedule.from + Duration::from_nanos(u64::try_from(earned).unwrap_or(u64::MAX))
        });
        let opens = match (calm, granted) {
            (Some(calm), Some(granted)) => calm.min(granted),
            (calm, granted) => calm.or(granted)?,
        };
        let opens = opens.max(self.resumes);
        (opens <= schedule.until).then_some(opens)
    }

    /// Foreground commands and probes at the drive.
    pub fn at_drive(&self) -> usize {
        self.foreground + self.probes
    }

    /// Probes at the drive.
    pub fn probing(&self) -> usize {
        self.probes
    }

    /// Probes that have ended.
    pub fn probes(&self) -> u64 {
        self.ended
    }

    /// The total time for which probes have occupied the drive.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// The time at which the profiler finished; `None` before that.
    pub fn finished(&self) -> Option<Instant> {
        self.finished
    }

    /// Whether no probe will be dispatched any more: the profiler has finished, or the time is over.
    pub fn is_over(&self, now: Instant) -> bool {
        self.is_over || self.finished.is_some() || now > self.schedule.until
    }

    /// A summary of the findings so far.
    pub fn progress(&self) -> KnownSoFar {
        self.profiler.progress()
    }

    /// The findings so far.
    pub fn findings(&self) -> Findings {
        self.profiler.findings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DriveIdentity, Offers, WritePermission, procedure};

    /// A disk that was unplugged fails each read at once.
    #[test]
    fn a_disk_that_fails_all_reads_is_asked_ever_less() {
        let identity = DriveIdentity {
            blocks: 1 << 24,
            block_bytes: 512,
            physical_block_bytes: 512,
            depth: 1,
            offers: Offers::Nothing,
            writes: WritePermission::Forbidden,
        };
        let budget = Duration::from_secs(60);
        let complete = move |prober| procedure::complete(prober, budget);
        let profiler = Profiler::new(identity, Findings::default(), complete);
        let schedule = ProbeSchedule {
            calm: Duration::ZERO,
            granted_ppm: 0,
            from: Instant::ZERO,
            until: Instant::ZERO + budget,
        };
        let mut profiler = ProfilerBehindLoad::new(profiler, schedule);
        let mut now = Instant::ZERO;
        while !profiler.is_over(now) && profiler.probes() < 1000 {
            match profiler.next(now, 1) {
                Some(command) => profiler.observe(
                    now,
                    Outcome {
                        id: command.id,
                        at: now,
                        status: Status::TimedOut,
                        account: None,
                    },
                ),
                None => match profiler.next_wakeup() {
                    Some(at) => now = now.max(at) + Duration::from_nanos(1),
                    None => break,
                },
            }
        }
        let probes = profiler.probes();
        assert!((20..100).contains(&probes), "{probes} reads in a minute");
    }
}
