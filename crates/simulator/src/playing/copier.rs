//! The processor that copies from memory to applications: the host's limit in Table 1 of ABISS.

use std::collections::VecDeque;

use block::{Duration, Instant};
use stream::Rate;

use super::PAGE;

/// CopyTarget whom a page is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyTarget {
    /// The player of this number: the last page of its read, or one before.
    Player(usize),
    /// The background reader.
    Reader,
}

/// Copies a page at a time; players' reads one after the other, before the background's.
#[derive(Debug)]
pub(super) struct Copier {
    page: Duration,
    reads: VecDeque<(usize, u64)>,
    current: Option<(CopyTarget, Instant)>,
}

impl Copier {
    /// At a rate; in no time if there is none.
    pub(super) fn new(rate: Option<Rate>) -> Copier {
        Copier {
            page: rate.map_or(Duration::ZERO, |rate| rate.at_most(PAGE)),
            reads: VecDeque::new(),
            current: None,
        }
    }

    /// A player's read is in memory.
    pub(super) fn read(&mut self, player: usize, bytes: u64) {
        self.reads.push_back((player, bytes.div_ceil(PAGE)));
    }

    /// A page that has been copied, if one has.
    pub(super) fn copied(&mut self, now: Instant) -> Option<CopyTarget> {
        let (whose, _) = self.current.take_if(|(_, ends)| *ends <= now)?;
        Some(whose)
    }

    /// Whether this page was the last one of the player's read.
    pub(super) fn is_whole(&mut self) -> bool {
        let Some((_, left)) = self.reads.front_mut() else {
            return false;
        };
        *left = left.saturating_sub(1);
        let is_whole = *left == 0;
        if is_whole {
            self.reads.pop_front();
        }
        is_whole
    }

    /// Begins with the next page, if it copies none; the background reader has one, or it has not.
    /// Whether it has begun.
    pub(super) fn begin(&mut self, now: Instant, reader: Ready) -> bool {
        if self.current.is_some() {
            return false;
        }
        let next = match (self.reads.front(), reader) {
            (Some(&(player, _)), _) => CopyTarget::Player(player),
            (None, Ready::Page) => CopyTarget::Reader,
            (None, Ready::Nothing) => return false,
        };
        self.current = Some((next, now + self.page));
        true
    }

    /// When the page is copied.
    pub(super) fn next_event(&self) -> Option<Instant> {
        self.current.map(|(_, ends)| ends)
    }
}

/// What the background reader could have copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    /// Its next page is in memory.
    Page,
    /// It waits for the disk, or there is none.
    Nothing,
}
