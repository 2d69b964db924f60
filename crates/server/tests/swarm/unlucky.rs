//! A drive that is never lucky: each command finds the platters at the angle at which it takes the longest.
//!
//! ```text
//!   a command comes --> the drive's clock goes on by the part of a revolution after which it would take longest
//!                                 '--> the drive itself, on that clock
//! ```
//!
//! What is promised to streams does not depend on angles, and sweeps of tracks are at their worst here. The drive takes
//! one command at a time, so that its clock may go on while it has none.

#![allow(unsafe_code, reason = "a back end is given memory by address")]

use std::sync::Arc;

use block::operation::OperationError;
use block::{Command, Duration, Instant};
use drive::{Profile, VirtualDrive};
use server::arena::Memory;
use server::disk::back_end::{BackEnd, Ended, Punch, Shape, Span};
use server::ring::Ring;

/// The drive.
pub struct Unlucky {
    inner: Box<dyn BackEnd>,
    /// The same drive, of which angles can be tried.
    tried: VirtualDrive,
    /// By how much its clock is ahead.
    ahead: Duration,
    /// Commands at the drive.
    under_way: u64,
}

/// Angles that are tried. A choice: every 45 degrees.
const ANGLES: u64 = 8;

impl Unlucky {
    /// A drive of this truth, which is served by `inner`.
    pub fn new(inner: Box<dyn BackEnd>, truth: Arc<Profile>) -> Unlucky {
        Unlucky {
            inner,
            tried: VirtualDrive::new(truth),
            ahead: Duration::ZERO,
            under_way: 0,
        }
    }

    /// How long the command would take if it came then.
    fn takes(&self, at: Instant, command: &Command) -> Duration {
        let mut tried = self.tried.clone();
        tried.submit(at, *command).expect("the drive is free");
        loop {
            let next = tried.next_wakeup().expect("it has a command");
            if let Some(outcome) = tried.poll(next) {
                return outcome.at.since(at);
            }
        }
    }

    /// The drive's clock goes on to the worst angle for a command.
    fn wait_for_the_worst(&mut self, now: Instant, command: &Command) {
        let revolution = self.tried.truth().spindle.period().as_nanos();
        let waits = (0..ANGLES).map(|angle| Duration::from_nanos(angle * revolution / ANGLES));
        let worst = waits.max_by_key(|&wait| self.takes(now + self.ahead + wait, command));
        self.ahead += worst.unwrap_or_default();
    }
}

impl BackEnd for Unlucky {
    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    unsafe fn start(
        &mut self,
        now: Instant,
        command: &Command,
        memory: &[Memory],
        ring: &mut Ring,
    ) {
        if self.under_way == 0 {
            self.wait_for_the_worst(now, command);
        }
        self.under_way += 1;
        let now = now + self.ahead;
        self.tried
            .submit(now, *command)
            .expect("the drive has room");
        // SAFETY: the caller's promise, passed on.
        unsafe { self.inner.start(now, command, memory, ring) };
    }

    fn ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring) {
        self.inner.ring_ended(now + self.ahead, key, result, ring);
    }

    fn advance(&mut self, now: Instant, ring: &mut Ring) {
        self.inner.advance(now + self.ahead, ring);
    }

    fn is_busy(&self) -> bool {
        self.inner.is_busy()
    }

    fn depth(&self) -> u32 {
        self.inner.depth()
    }

    fn poll(&mut self, now: Instant) -> Option<Ended> {
        let now = now + self.ahead;
        let ended = self.inner.poll(now)?;
        self.under_way -= 1;
        while self.tried.poll(now).is_some() {}
        Some(ended)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let next = self.inner.next_wakeup()?;
        let nanos = next.as_nanos().saturating_sub(self.ahead.as_nanos());
        Some(Instant::from_nanos(nanos))
    }

    fn punch(&mut self, key: u32, what: Punch, span: Span, ring: &mut Ring) {
        self.inner.punch(key, what, span, ring);
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        self.inner.poll_punched()
    }
}
