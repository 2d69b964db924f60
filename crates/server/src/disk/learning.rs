//! A profiler behind the load of a drive in service. It only reads, and the drive offers it no cache control.
//!
//! ```text
//!   engine -- commands --> [ back end ] <-- probes -- Learning
//!          <-------------- ends -----------> took
//! ```
//!
//! Probes read into memory of their own, and nobody sees their bytes.

use std::io;

use block::{Command, CommandId, Duration, Instant, Outcome, Status};
use profiler::behind::{ProbeSchedule, ProfilerBehindLoad};
use profiler::{DriveIdentity, Findings, Profiler, procedure};

use super::back_end::Ended;
use crate::arena::{Arena, Buffer, Memory};

/// The time that a profiler may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearningGrant {
    /// The end of profiling, from its beginning.
    pub budget: Duration,
    /// The share of the time for probes between foreground commands, in parts per million. Idle time is
    /// used besides.
    pub granted_ppm: u32,
}

/// Idle time before probes. A choice, as in the simulator: longer than the pauses of one busy client.
const CALM: Duration = Duration::from_millis(10);

/// Bytes of memory for probes. A choice: the longest read of the profiler is a few MiB, and memory that is not
/// read into is not there.
const MEMORY: usize = 64 << 20;

/// A profiler and the memory of its probes.
pub(crate) struct Learning {
    profiler: ProfilerBehindLoad,
    identity: DriveIdentity,
    since: Instant,
    memory: Arena,
    /// The memory of probes at the back end.
    buffers: Vec<(CommandId, Buffer)>,
    /// A probe that waits for memory.
    held: Option<Command>,
}

/// The findings of a profiler behind a load.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The drive as it was described to the profiler.
    pub identity: DriveIdentity,
    /// The findings so far.
    pub findings: Findings,
    /// Whether more may be found: time is left, and questions.
    pub is_active: bool,
    /// The time since the beginning, in the drive's time.
    pub since: Duration,
    /// Probes that have ended.
    pub probes: u64,
    /// The time for which probes have occupied the drive.
    pub took: Duration,
}

impl Learning {
    /// Begins with the tracks that were found before, and this number of foreground commands at the drive.
    ///
    /// # Errors
    /// If the kernel has no memory for the probes.
    pub(crate) fn begin(
        now: Instant,
        identity: DriveIdentity,
        grant: &LearningGrant,
        earlier: Findings,
        in_flight: usize,
    ) -> io::Result<Self> {
        let budget = grant.budget;
        let complete = move |prober| procedure::complete(prober, budget);
        let earlier = Findings {
            map: earlier.map,
            ..Findings::default()
        };
        let profiler = Profiler::new(identity, earlier, complete);
        let schedule = ProbeSchedule {
            calm: CALM,
            granted_ppm: grant.granted_ppm,
            from: now,
            until: now + budget,
        };
        let mut profiler = ProfilerBehindLoad::new(profiler, schedule);
        for _ in 0..in_flight {
            profiler.began();
        }
        Ok(Learning {
            profiler,
            identity,
            since: now,
            memory: Arena::map(MEMORY)?,
            buffers: Vec::new(),
            held: None,
        })
    }

    /// The drive has received a foreground command.
    pub(crate) fn began(&mut self) {
        self.profiler.began();
    }

    /// Notes the end of a command. The answer is whether it was a probe.
    pub(crate) fn took(&mut self, now: Instant, ended: &Ended) -> bool {
        if !ProfilerBehindLoad::is_probe(ended.id) {
            self.profiler.ended(now);
            return false;
        }
        if let Some(place) = self.buffers.iter().position(|(id, _)| *id == ended.id) {
            let (_, buffer) = self.buffers.swap_remove(place);
            self.memory.free(buffer);
        }
        let status = match ended.result {
            Ok(()) => Status::Good,
            Err(_) => Status::TimedOut,
        };
        self.observe(now, ended.id, status);
        true
    }

    fn observe(&mut self, now: Instant, id: CommandId, status: Status) {
        let outcome = Outcome {
            id,
            at: now,
            status,
            account: None,
        };
        self.profiler.observe(now, outcome);
    }

    /// The next probe that may go to the drive now, and its memory.
    pub(crate) fn next(&mut self, now: Instant) -> Option<(Command, Memory)> {
        loop {
            let depth = self.identity.depth as usize;
            let held = self.held.take();
            let command = held.or_else(|| self.profiler.next(now, depth))?;
            let blocks = command.action.extent().map_or(0, |read| read.length().0);
            let bytes = blocks as usize * self.identity.block_bytes as usize;
            if bytes > self.memory.length() {
                self.observe(now, command.id, Status::TimedOut);
                continue;
            }
            let Some(buffer) = self.memory.allocate(bytes) else {
                self.held = Some(command);
                return None;
            };
            let memory = buffer.memory();
            self.buffers.push((command.id, buffer));
            return Some((command, memory));
        }
    }

    /// The time of the next probe, if nothing ends before.
    pub(crate) fn next_wakeup(&self) -> Option<Instant> {
        let has_room = self.profiler.at_drive() < self.identity.depth as usize;
        self.profiler.next_wakeup().filter(|_| has_room)
    }

    /// Dispatches no more probes.
    pub(crate) fn stop(&mut self) {
        self.profiler.stop();
    }

    /// Whether a probe is at the back end.
    pub(crate) fn is_probing(&self) -> bool {
        !self.buffers.is_empty()
    }

    /// Whether a probe is under way or may follow.
    pub(crate) fn is_active(&self, now: Instant) -> bool {
        self.is_probing() || !self.profiler.is_over(now)
    }

    /// A line for people about what is known.
    pub(crate) fn described(&self) -> String {
        let findings = self.profiler.progress();
        let known = findings.known as f64 * 100.0 / self.identity.blocks.max(1) as f64;
        format!(
            "profiling behind the load: now {}, tracks of {known:.1} % of the blocks, {} reads",
            findings.stage.name(),
            self.profiler.probes()
        )
    }

    /// What is known.
    pub(crate) fn learned(&self, now: Instant) -> Learned {
        Learned {
            identity: self.identity,
            findings: self.profiler.findings(),
            is_active: self.is_active(now),
            since: self.profiler.finished().unwrap_or(now).since(self.since),
            probes: self.profiler.probes(),
            took: self.profiler.took(),
        }
    }
}
