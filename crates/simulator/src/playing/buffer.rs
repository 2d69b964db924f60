//! The playout buffer of ABISS: each stream refills on its own as soon as a batch is due, before
//! all other requests.
//!
//! ```text
//!   file  .......[=====|===========================]........
//!              base   point                       edge
//!              the scheduler's, the application's
//! ```
//!
//! The scheduler's playout point follows the application's by credit that accrues at the stream's
//! rate. A due batch of pages is read at once (2.2, 3.3). Pages that become due during a batch join
//! the next one, as they would be merged in the elevator's queue.

use block::{Duration, Instant};
use stream::Rate;
use stream::rate::SECOND;

use super::{COMMAND, PAGE};

/// The playout buffer of one stream.
#[derive(Debug)]
pub(super) struct PlayoutBuffer {
    rate: Rate,
    /// Bytes per batch.
    batch: u64,
    /// The end of the file, in bytes.
    end: u64,
    base: u64,
    point: u64,
    edge: u64,
    /// The first byte of each outstanding read.
    under: Vec<u64>,
    /// Credit in billionths of a byte.
    credit: u128,
    accrued: Instant,
}

impl PlayoutBuffer {
    /// An empty buffer for a file that ends at byte `end`.
    pub(super) fn new(rate: Rate, batch: u64, end: u64) -> PlayoutBuffer {
        PlayoutBuffer {
            rate,
            batch,
            end,
            base: 0,
            point: 0,
            edge: 0,
            under: Vec::new(),
            credit: 0,
            accrued: Instant::ZERO,
        }
    }

    /// The byte range of the initial fill.
    pub(super) fn fill(&mut self, memory: u64) -> (u64, u64) {
        let to = memory.min(self.end);
        self.edge = to;
        (0, to)
    }

    /// Records an outstanding read that starts at byte `from`.
    pub(super) fn asked(&mut self, from: u64) {
        self.under.push(from);
    }

    /// Records the end of the read that starts at byte `from`.
    pub(super) fn came(&mut self, from: u64) {
        self.under.retain(|&under| under != from);
    }

    /// Whether no read is outstanding.
    pub(super) fn is_quiet(&self) -> bool {
        self.under.is_empty()
    }

    /// Whether all bytes from `from` to `to` are in memory.
    pub(super) fn has(&self, from: u64, to: u64) -> bool {
        let is_missing = |&under: &u64| under < to && from < under + COMMAND;
        self.base <= from && to <= self.edge && !self.under.iter().any(is_missing)
    }

    /// Sets the playout point of the application.
    pub(super) fn position(&mut self, point: u64) {
        self.point = point;
    }

    /// The byte range of the due batch, if there is one. The caller must read all of it.
    pub(super) fn due(&mut self, now: Instant) -> Option<(u64, u64)> {
        self.accrue(now);
        let credit = (self.credit / u128::from(SECOND)) as u64;
        let due = credit.min(self.point - self.base);
        let due = due - due % PAGE;
        if due < self.batch || !self.is_quiet() || self.edge >= self.end {
            return None;
        }
        self.base += due;
        self.credit -= u128::from(due) * u128::from(SECOND);
        let from = self.edge;
        self.edge = (from + due).min(self.end);
        Some((from, self.edge))
    }

    /// The time at which the next batch is due, if that depends on time only.
    pub(super) fn next_event(&self) -> Option<Instant> {
        let is_behind = self.point - self.base < self.batch;
        if is_behind || !self.is_quiet() || self.edge >= self.end {
            return None;
        }
        let missing = (u128::from(self.batch) * u128::from(SECOND)).saturating_sub(self.credit);
        let nanos = missing.div_ceil(u128::from(self.rate.bytes()));
        Some(self.accrued + Duration::from_nanos(nanos as u64))
    }

    /// Accrues credit, at most one batch and the reaction time of the host (3.3).
    fn accrue(&mut self, now: Instant) {
        let rate = u128::from(self.rate.bytes());
        let passed = u128::from(now.since(self.accrued).as_nanos());
        let most = u128::from(self.batch) * u128::from(SECOND) + rate * u128::from(LATE.as_nanos());
        self.credit = (self.credit + rate * passed).min(most);
        self.accrued = now;
    }
}

/// Timer slack and the worst dispatch delay: a tick of Linux 2.4 and of many later configurations,
/// a choice.
const LATE: Duration = Duration::from_millis(10);
