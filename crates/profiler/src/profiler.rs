//! The state machine of a profiler: issues probes, receives their outcomes, and holds the findings.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use block::{Command, Instant, Outcome};

use crate::device::DriveIdentity;
use crate::findings::{Findings, ProfilingStage};
use crate::prober::{ProbeQueue, Prober};

/// The next action of a profiler's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextProbe {
    /// Submit this command to the drive now.
    Probe(Command),
    /// Call again when one of the profiler's commands has ended.
    Wait,
    /// Call again at this time.
    WaitUntil(Instant),
    /// Nothing: the profile is complete.
    Finished,
}

/// A summary of the findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownSoFar {
    /// The current stage of the procedure.
    pub stage: ProfilingStage,
    /// Number of blocks whose tracks are known.
    pub known: u64,
}

/// Determines the profile of a drive.
///
/// The owner calls [`next_probe`](Self::next_probe) until it returns no probe, then
/// [`observe`](Self::observe) for each command that has ended, in a loop.
pub struct Profiler {
    prober: Prober,
    procedure: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl fmt::Debug for Profiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profiler").finish_non_exhaustive()
    }
}

impl Profiler {
    /// A profiler that runs a procedure, continuing from earlier findings.
    pub fn new<P, F>(device: DriveIdentity, found: Findings, procedure: P) -> Self
    where
        P: FnOnce(Prober) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        let prober = Prober::new(Arc::new(Mutex::new(ProbeQueue::new(device, found))));
        let procedure = Box::pin(procedure(prober.clone()));
        Profiler {
            prober,
            procedure: Some(procedure),
        }
    }

    /// The next action at `now`.
    pub fn next_probe(&mut self, now: Instant) -> NextProbe {
        self.prober.desk().now = now;
        if let Some(command) = self.prober.desk().send() {
            return NextProbe::Probe(command);
        }
        if let Some(procedure) = &mut self.procedure {
            let mut context = Context::from_waker(Waker::noop());
            if procedure.as_mut().poll(&mut context) == Poll::Ready(()) {
                self.procedure = None;
            }
        }
        let mut desk = self.prober.desk();
        if let Some(command) = desk.send() {
            return NextProbe::Probe(command);
        }
        match desk.wakeup {
            _ if self.procedure.is_none() && desk.pending() == 0 => NextProbe::Finished,
            Some(at) => NextProbe::WaitUntil(at),
            None => NextProbe::Wait,
        }
    }

    /// One of the profiler's commands has ended.
    pub fn observe(&mut self, now: Instant, outcome: Outcome) {
        let mut desk = self.prober.desk();
        desk.now = now;
        desk.answer(outcome);
    }

    /// The drive received a command from another client.
    pub fn interrupted(&mut self) {
        self.prober.desk().others += 1;
    }

    /// The findings so far.
    pub fn findings(&self) -> Findings {
        self.prober.desk().findings.clone()
    }

    /// The stage of the procedure, and the number of blocks whose tracks are known. Cheaper than
    /// [`findings`](Self::findings).
    pub fn progress(&self) -> KnownSoFar {
        let desk = self.prober.desk();
        KnownSoFar {
            stage: desk.findings.progress.step,
            known: desk.findings.map.known(),
        }
    }

    /// Number of issued commands.
    pub fn probes(&self) -> u64 {
        self.prober.desk().probes
    }
}
