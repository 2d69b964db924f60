//! Runs a profiler on a virtual drive.

mod range;

use block::{Command, Duration, Instant, Outcome, Refused};
use drive::VirtualDrive;

pub use range::RangeDrive;

use crate::profiler::{NextProbe, Profiler};

/// The end of a rehearsal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rehearsed {
    /// The profiler had nothing more to ask.
    Finished(Instant),
    /// The drive's time was up.
    OutOfTime(Instant),
}

impl Rehearsed {
    /// The time of the end.
    pub fn at(self) -> Instant {
        match self {
            Rehearsed::Finished(at) | Rehearsed::OutOfTime(at) => at,
        }
    }
}

/// A drive in virtual time, or a part of one.
pub trait RehearsalDrive {
    /// Gives the drive a command.
    ///
    /// # Errors
    /// If the drive refuses it: its queue is full, or the extent is not on it.
    fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused>;

    /// The next outcome that has arrived at `now` or before.
    fn poll(&mut self, now: Instant) -> Option<Outcome>;

    /// The next instant at which something happens.
    fn next_wakeup(&self) -> Option<Instant>;
}

impl RehearsalDrive for VirtualDrive {
    fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        VirtualDrive::submit(self, now, command)
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        VirtualDrive::poll(self, now)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        VirtualDrive::next_wakeup(self)
    }
}

/// Runs a profiler on a virtual drive, from `now` on, for at most `budget` of the drive's time.
///
/// # Panics
/// If the profiler waits for an idle drive.
pub fn rehearse(
    profiler: &mut Profiler,
    drive: &mut impl RehearsalDrive,
    mut now: Instant,
    budget: Duration,
) -> Rehearsed {
    let end = now + budget;
    loop {
        let wakeup = loop {
            match profiler.next_probe(now) {
                NextProbe::Probe(command) => drive
                    .submit(now, command)
                    .expect("a probe of the drive's own blocks"),
                NextProbe::Wait => break None,
                NextProbe::WaitUntil(at) => break Some(at),
                NextProbe::Finished => return Rehearsed::Finished(now),
            }
        };
        // A drive that has taken a command up may say so without a command having ended.
        let mut ended = 0;
        while ended == 0 {
            let next = [wakeup, drive.next_wakeup()].into_iter().flatten().min();
            now = next.expect("somebody has something to do").max(now);
            if now > end {
                return Rehearsed::OutOfTime(end);
            }
            while let Some(outcome) = drive.poll(now) {
                profiler.observe(now, outcome);
                ended += 1;
            }
            if wakeup.is_some_and(|at| at <= now) {
                break;
            }
        }
    }
}
