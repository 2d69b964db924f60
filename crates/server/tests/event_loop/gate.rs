//! Memory as a drive of coarse blocks that keeps back what it has done until a test wants it to tell.

#![allow(unsafe_code, reason = "a back end is given memory by address")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use block::operation::OperationError;
use block::{Action, Command, CommandId, Extent, Instant, Lba, Sectors};
use server::arena::Memory;
use server::disk::back_end::memory::Ram;
use server::disk::back_end::{BackEnd, Ended, Punch, Shape, Span};
use server::ring::Ring;

use crate::station::BLOCK;

/// Commands over these blocks do not end, if there are some, and no flushes: what a test and its drive share.
pub type Closed = Arc<Mutex<Option<Extent>>>;

/// Blocks of the model's in one of these.
pub const COARSE: u64 = 8;

/// The drive.
pub struct Gate {
    inner: Ram,
    closed: Closed,
    /// Of commands under way, those that are to be kept back.
    behind: Vec<CommandId>,
    kept: VecDeque<Ended>,
}

impl Gate {
    pub fn new(blocks: u64, closed: Closed) -> Self {
        Gate {
            inner: Ram::new(blocks * COARSE * BLOCK).expect("memory"),
            closed,
            behind: Vec::new(),
            kept: VecDeque::new(),
        }
    }

    fn closed(&self) -> Option<Extent> {
        *self.closed.lock().expect("a gate")
    }
}

impl BackEnd for Gate {
    fn shape(&self) -> Shape {
        let Shape { blocks, .. } = self.inner.shape();
        Shape {
            block_bytes: (COARSE * BLOCK) as u32,
            blocks: blocks / COARSE,
            trims: false,
            zeroes_fast: false,
            rotational: true,
        }
    }

    unsafe fn start(
        &mut self,
        now: Instant,
        command: &Command,
        memory: &[Memory],
        ring: &mut Ring,
    ) {
        let closed = self.closed();
        let fine = |extent: Extent| {
            let (start, count) = (extent.start().0 * COARSE, extent.length().0 * COARSE);
            Extent::new(Lba(start), Sectors(count)).expect("blocks")
        };
        let mut command = *command;
        if let Action::Read { extent, .. } | Action::Write { extent, .. } = &mut command.action {
            if closed.is_some_and(|closed| closed.overlaps(*extent)) {
                self.behind.push(command.id);
            }
            *extent = fine(*extent);
        }
        if command.action == Action::Flush && closed.is_some() {
            self.behind.push(command.id);
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { self.inner.start(now, &command, memory, ring) };
    }

    fn ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring) {
        self.inner.ring_ended(now, key, result, ring);
    }

    fn poll(&mut self, now: Instant) -> Option<Ended> {
        if self.closed().is_none() {
            self.behind.clear();
            if let Some(ended) = self.kept.pop_front() {
                return Some(ended);
            }
        }
        while let Some(ended) = self.inner.poll(now) {
            if !self.behind.contains(&ended.id) {
                return Some(ended);
            }
            self.kept.push_back(ended);
        }
        None
    }

    fn punch(&mut self, key: u32, what: Punch, span: Span, ring: &mut Ring) {
        self.inner.punch(key, what, span, ring);
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        self.inner.poll_punched()
    }
}
