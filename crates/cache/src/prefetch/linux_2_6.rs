//! Readahead of Linux 2.6.0 to 2.6.22 (`page_cache_readahead`): a current window, and one ahead of it.
//!
//! ```text
//!   |---- current window ----|------ ahead window ------|
//!   start                    ahead                 a read here makes it the current one
//! ```
//!
//! Linux 2.6.11, `mm/readahead.c`, by the description in `shared/specs/cache-and-pfc.md`, 3. There is no
//! readahead for a read that does not follow the previous one.

use super::context::{CONTEXT, ContextState, Contexts};
use super::{Advice, FetchMode, Prefetcher, Seen};
use crate::residency::Residency;
use crate::settings::{AlgorithmSettings, Parameter, Values};
use block::Interval;

/// A Linux 2.6 prefetcher: the windows of each file.
#[derive(Clone, Debug)]
pub struct Linux26 {
    most: u64,
    files: Contexts<Windows>,
}

#[derive(Clone, Copy, Debug)]
struct Windows {
    /// The current window; empty if readahead is off.
    current: Interval,
    /// The window ahead; empty if there is none.
    ahead: Interval,
    /// The last processed block.
    previous: Option<u64>,
    /// Whether a block of the current window was evicted before its read.
    has_missed: bool,
    /// The number of window blocks without I/O since the last one with it.
    cached: u64,
}

/// The parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "max",
        what: "The largest window; Linux: 128 KiB.",
        values: Values::Number {
            range: 1..=4096,
            default: 32,
        },
    },
    CONTEXT,
];

/// The smallest window: Linux, VM_MIN_READAHEAD, 16 KiB.
const LEAST: u64 = 4;

/// The number of window blocks without I/O that turns readahead off: Linux, VM_MAX_CACHE_HIT.
const CACHED: u64 = 256;

impl ContextState for Windows {
    const NEW: Self = Windows {
        current: Interval::EMPTY,
        ahead: Interval::EMPTY,
        previous: None,
        has_missed: false,
        cached: 0,
    };

    fn continues(&self, blocks: Interval) -> bool {
        let previous = self.previous;
        previous.is_some_and(|at| at == blocks.first || at.checked_add(1) == Some(blocks.first))
    }
}

impl Linux26 {
    /// A prefetcher with these settings.
    pub fn new(settings: &AlgorithmSettings) -> Self {
        Linux26 {
            most: settings.get("max"),
            files: Contexts::new(settings),
        }
    }
}

impl Prefetcher for Linux26 {
    fn on_request(&mut self, seen: &Seen, residency: &Residency, advice: &mut Advice) {
        let most = self.most;
        let file = self.files.of(seen);
        file.note_evicted(seen, residency);
        if file.is_off_for_good() {
            file.previous = Some(seen.blocks.last);
            return;
        }
        // A read larger than the largest window is processed in pieces.
        let mut rest = seen.walk();
        if file.previous == Some(rest.first) && rest.len() > 1 {
            rest.first += 1;
        }
        while !rest.is_empty() {
            let piece = Interval::of(rest.first, rest.len().min(most));
            let mut reading = FileRead {
                seen,
                residency,
                advice: &mut *advice,
            };
            file.read(piece, rest.len(), most, &mut reading);
            match piece.last.checked_add(1) {
                Some(next) => rest.first = next,
                None => break,
            }
        }
    }

    fn on_silent_use(&mut self, seen: &Seen) {
        let file = self.files.of(seen);
        if file.continues(seen.blocks) {
            file.previous = Some(seen.blocks.last);
        }
    }
}

/// A request in progress.
struct FileRead<'a> {
    seen: &'a Seen,
    residency: &'a Residency,
    advice: &'a mut Advice,
}

impl Windows {
    /// Whether readahead has turned itself off without a miss since.
    fn is_off_for_good(&self) -> bool {
        self.cached >= CACHED
    }

    /// `handle_ra_miss`: notes that a fetched block of a window was evicted.
    fn note_evicted(&mut self, seen: &Seen, residency: &Residency) {
        let mut walked = seen.walk().blocks();
        let is_missing = |block| !residency.is_resident(block);
        let (current, is_off) = (self.current, self.is_off_for_good());
        let known = |block| is_off || current.contains(block);
        if walked.any(|block| known(block) && is_missing(block)) {
            self.has_missed = true;
            self.cached = 0;
        }
    }

    /// Processes one piece of a read with `rest` blocks left.
    fn read(&mut self, piece: Interval, rest: u64, most: u64, reading: &mut FileRead) {
        let follows = self.previous.and_then(|at| at.checked_add(1));
        // Before the first read `previous` is -1: block 0 follows it.
        let is_sequential = piece.first == follows.unwrap_or(reading.seen.within.first);
        self.previous = Some(piece.last);
        if !is_sequential {
            self.current = Interval::EMPTY;
            self.ahead = Interval::EMPTY;
            return;
        }
        if self.current.is_empty() {
            self.current = Interval::of(piece.first, initial(piece.len(), most));
            self.submit(self.current, FetchMode::Sync, reading);
            if rest >= most && !self.current.is_empty() {
                self.read_ahead(most, reading);
            }
            return;
        }
        if self.ahead.is_empty() {
            self.read_ahead(most, reading);
        }
        if !self.ahead.is_empty() && piece.last >= self.ahead.first {
            self.current = self.ahead;
            self.read_ahead(most, reading);
        }
    }

    fn read_ahead(&mut self, most: u64, reading: &mut FileRead) {
        let size = self.next(most);
        self.ahead = super::following(self.current.last, size);
        self.submit(self.ahead, reading.seen.mode(), reading);
    }

    /// The size of the window after the current one.
    fn next(&mut self, most: u64) -> u64 {
        let size = self.current.len();
        if std::mem::take(&mut self.has_missed) {
            return size.saturating_sub(2).max(LEAST).min(most);
        }
        let factor = if size < most / 16 { 4 } else { 2 };
        size.saturating_mul(factor).min(most)
    }

    fn submit(&mut self, window: Interval, mode: FetchMode, reading: &mut FileRead) {
        let mut needed = window.intersection(reading.seen.within).blocks();
        if needed.all(|block| reading.residency.is_resident(block)) {
            self.cached = self.cached.saturating_add(window.len());
            if self.is_off_for_good() {
                self.current = Interval::EMPTY;
                self.ahead = Interval::EMPTY;
            }
        } else {
            self.cached = 0;
        }
        reading.advice.fetch(window, mode);
    }
}

/// The size of a first window: with at most 32 blocks, 4 for 1 and 2, 8 for 3 and 4, 16 to 8, 32.
fn initial(blocks: u64, most: u64) -> u64 {
    let power = blocks.max(1).next_power_of_two();
    let size = if power <= most / 32 {
        power * 4
    } else if power <= most / 4 {
        power * 2
    } else {
        most
    };
    size.min(most)
}

#[cfg(test)]
mod tests {
    use super::initial;

    #[test]
    fn a_first_window_is_larger_than_the_read() {
        let sizes = [1, 2, 3, 4, 5, 8, 9, 32].map(|blocks| initial(blocks, 32));
        assert_eq!(sizes, [4, 4, 8, 8, 16, 16, 32, 32]);
        assert_eq!(initial(1, 1), 1);
    }
}
