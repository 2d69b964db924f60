//! Memory as a drive that tells the ends of commands late and in any order.

#![allow(unsafe_code, reason = "a back end is given memory by address")]

use block::operation::OperationError;
use block::{Command, Duration, Instant};
use server::arena::Memory;
use server::disk::back_end::memory::Ram;
use server::disk::back_end::{BackEnd, Ended, Punch, Shape, Span};
use server::ring::Ring;

/// The drive.
pub struct Shuffled {
    inner: Ram,
    ended: Vec<Ended>,
    punched: Vec<(u32, Result<(), OperationError>)>,
    now: Instant,
    dice: u64,
}

impl Shuffled {
    pub fn new(bytes: u64, seed: u64) -> Self {
        Shuffled {
            inner: Ram::new(bytes).expect("memory"),
            ended: Vec::new(),
            punched: Vec::new(),
            now: Instant::ZERO,
            dice: seed,
        }
    }

    /// One of `count` that is told now, or none: every other time.
    fn choose(&mut self, count: usize) -> Option<usize> {
        // SplitMix64.
        self.dice = self.dice.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.dice ^ self.dice >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let drawn = (mixed >> 32) as usize;
        (count > 0 && drawn.is_multiple_of(2)).then(|| drawn / 2 % count)
    }
}

impl BackEnd for Shuffled {
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
        // SAFETY: the caller's promise, passed on.
        unsafe { self.inner.start(now, command, memory, ring) };
    }

    fn ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring) {
        self.inner.ring_ended(now, key, result, ring);
    }

    fn poll(&mut self, now: Instant) -> Option<Ended> {
        self.now = now;
        self.ended
            .extend(std::iter::from_fn(|| self.inner.poll(now)));
        let place = self.choose(self.ended.len())?;
        Some(self.ended.swap_remove(place))
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let is_any = !self.ended.is_empty() || !self.punched.is_empty();
        is_any.then_some(self.now + Duration::from_micros(1))
    }

    fn punch(&mut self, key: u32, what: Punch, span: Span, ring: &mut Ring) {
        self.inner.punch(key, what, span, ring);
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        self.punched
            .extend(std::iter::from_fn(|| self.inner.poll_punched()));
        let place = self.choose(self.punched.len())?;
        Some(self.punched.swap_remove(place))
    }
}
