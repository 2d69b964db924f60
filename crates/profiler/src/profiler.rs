//! The state machine: gives probes, takes their outcomes, knows a profile.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use block::{Command, Instant, Outcome};

use crate::device::DriveIdentity;
use crate::findings::Findings;
use crate::prober::{ProbeQueue, Prober};

/// What a profiler wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextProbe {
    /// To give this command to the drive now.
    Probe(Command),
    /// To be asked again when one of its commands has ended.
    Wait,
    /// To be asked again then.
    WaitUntil(Instant),
    /// Nothing more: it knows what it can know.
    Finished,
}

/// Finds the profile of a drive.
///
/// In a loop: [`next_probe`](Self::next_probe) until it wants no probe to be given, then
/// [`observe`](Self::observe) what has ended.
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
    /// A profiler that runs a procedure, going on from what was found before.
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

    /// What to do now.
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

    /// Somebody else has given the drive a command.
    pub fn interrupted(&mut self) {
        self.prober.desk().others += 1;
    }

    /// What was found so far.
    pub fn findings(&self) -> Findings {
        self.prober.desk().findings.clone()
    }

    /// How many commands it has given.
    pub fn probes(&self) -> u64 {
        self.prober.desk().probes
    }
}
