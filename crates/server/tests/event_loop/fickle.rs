//! A drive that fails what a test wants to fail.

#![allow(unsafe_code, reason = "a back end is given memory by address")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use block::operation::OperationError;
use block::{Action, Command, Duration, Instant};
use drive::Lost;
use server::arena::Memory;
use server::disk::back_end::{BackEnd, Ended, Punch, Shape, Span};
use server::ring::Ring;

/// What fails from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fails {
    #[default]
    Nothing,
    Reads,
    Writes,
    Flushes,
    Everything,
    /// Nothing fails, and nothing ends.
    Hangs,
    /// Nothing fails, and each command ends later than the platter says.
    Strays,
}

/// What a test and its drive share.
pub type Mood = Arc<Mutex<Fails>>;

/// The drive.
pub struct Fickle {
    inner: Box<dyn BackEnd>,
    mood: Mood,
    /// How many commands have failed.
    count: Arc<AtomicUsize>,
    failed: VecDeque<Ended>,
    /// Ends that are told later, and when.
    late: Vec<(Instant, Ended)>,
    /// Ends that were late so far.
    strayed: u64,
    /// The last time that it was asked.
    now: Instant,
}

/// How often a drive that hangs is asked.
const ASKED: Duration = Duration::from_millis(1);

/// By how much an end is late at most, in nanoseconds. A choice: more than a revolution of any drive.
const LATEST_NS: u64 = 20_000_000;

impl Fickle {
    /// A drive that counts there what it fails.
    pub fn new(inner: Box<dyn BackEnd>, mood: Mood, count: Arc<AtomicUsize>) -> Self {
        Fickle {
            inner,
            mood,
            count,
            failed: VecDeque::new(),
            late: Vec::new(),
            strayed: 0,
            now: Instant::ZERO,
        }
    }

    fn mood(&self) -> Fails {
        *self.mood.lock().expect("a mood")
    }

    fn hangs(&self) -> bool {
        self.mood() == Fails::Hangs
    }

    /// What the drive has ended, and is told later: by times far from each other, as the golden section spreads them.
    fn put_off(&mut self, now: Instant) {
        while let Some(ended) = self.inner.poll(now) {
            self.strayed += 1;
            let part = self.strayed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let nanos = (u128::from(part) * u128::from(LATEST_NS)) >> 64;
            let at = now + Duration::from_nanos(nanos as u64);
            self.late.push((at, ended));
        }
    }

    /// A late end that is due.
    fn poll_late(&mut self, now: Instant) -> Option<Ended> {
        let due = self.late.iter().position(|&(at, _)| at <= now)?;
        Some(self.late.remove(due).1)
    }
}

impl BackEnd for Fickle {
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
        let fails = self.mood();
        let is_failed = match command.action {
            _ if fails == Fails::Everything => true,
            Action::Read { .. } => fails == Fails::Reads,
            Action::Write { .. } => fails == Fails::Writes,
            Action::Flush => fails == Fails::Flushes,
            _ => false,
        };
        if is_failed {
            self.failed.push_back(Ended {
                id: command.id,
                result: Err(OperationError::Io),
                account: None,
            });
            return;
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { self.inner.start(now, command, memory, ring) };
    }

    fn ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring) {
        self.inner.ring_ended(now, key, result, ring);
    }

    fn advance(&mut self, now: Instant, ring: &mut Ring) {
        self.inner.advance(now, ring);
    }

    fn is_busy(&self) -> bool {
        !self.failed.is_empty() || !self.late.is_empty() || self.inner.is_busy()
    }

    fn depth(&self) -> u32 {
        self.inner.depth()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        match self.hangs() {
            true => Some(self.now + ASKED),
            false => {
                let late = self.late.iter().map(|&(at, _)| at);
                late.chain(self.inner.next_wakeup()).min()
            }
        }
    }

    fn power_cut(&mut self, now: Instant, ring: &mut Ring) -> Option<Lost> {
        self.inner.power_cut(now, ring)
    }

    fn poll(&mut self, now: Instant) -> Option<Ended> {
        self.now = now;
        if self.hangs() {
            return None;
        }
        match self.failed.pop_front() {
            Some(failed) => {
                self.count.fetch_add(1, Ordering::Relaxed);
                Some(failed)
            }
            None => {
                if self.mood() == Fails::Strays {
                    self.put_off(now);
                }
                self.poll_late(now).or_else(|| self.inner.poll(now))
            }
        }
    }

    fn punch(&mut self, key: u32, what: Punch, span: Span, ring: &mut Ring) {
        self.inner.punch(key, what, span, ring);
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        if self.hangs() {
            return None;
        }
        self.inner.poll_punched()
    }
}
