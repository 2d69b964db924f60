//! The processor that copies data from memory to applications: the host's limit in Table 1 of
//! ABISS.

use std::collections::VecDeque;

use block::{Duration, Instant};
use stream::Rate;

use super::PAGE;

/// The recipient of a copied page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyTarget {
    /// The player with this number.
    Player(usize),
    /// The background reader.
    Reader,
}

/// Copies one page at a time: the reads of players in order, then those of the background reader.
#[derive(Debug)]
pub(super) struct Copier {
    page: Duration,
    reads: VecDeque<(usize, u64)>,
    current: Option<(CopyTarget, Instant)>,
}

impl Copier {
    /// A copier with this rate; instantaneous without one.
    pub(super) fn new(rate: Option<Rate>) -> Copier {
        Copier {
            page: rate.map_or(Duration::ZERO, |rate| rate.at_most(PAGE)),
            reads: VecDeque::new(),
            current: None,
        }
    }

    /// Queues a player's read, which is in memory.
    pub(super) fn read(&mut self, player: usize, bytes: u64) {
        self.reads.push_back((player, bytes.div_ceil(PAGE)));
    }

    /// The recipient of a page whose copy has ended by `now`.
    pub(super) fn copied(&mut self, now: Instant) -> Option<CopyTarget> {
        let (whose, _) = self.current.take_if(|(_, ends)| *ends <= now)?;
        Some(whose)
    }

    /// Counts a copied page of the first player's read. Returns whether it was the last.
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

    /// Starts the copy of the next page if the copier is idle. Returns whether it started one.
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

    /// The end of the current copy.
    pub(super) fn next_event(&self) -> Option<Instant> {
        self.current.map(|(_, ends)| ends)
    }
}

/// The state of the background reader's next page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    /// The page is in memory.
    Page,
    /// The reader waits for the disk, or there is no reader.
    Nothing,
}
