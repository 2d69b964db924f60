//! Intents: which pages are to be named before a write, and how far ahead of a sequential one.
//!
//! ```text
//!   a run   |=== written ===|---- write ----|- - - ahead, as long as the run - - -|
//!                                                   ^ asked for again when a write comes half as far
//! ```

use std::collections::VecDeque;
use std::ops::Range;

use block::Instant;

use super::{Dirty, Keeper, Readiness};
use crate::checksums::intent::covering;
use crate::checksums::orders::Order;
use crate::checksums::{ALL_PAGES, CHUNK, PAGE};

/// The largest number of bytes that have intents ahead of a sequential write. A choice: an intent is made durable every
/// 8 MiB, and 16 MiB are doubted after a crash.
const AHEAD: u64 = 16 << 20;
/// The largest number of sequential writes that are told apart. A choice: more do not leave a disk sequential.
const MOST_RUNS: usize = 16;

/// The ends of the last writes, and how many bytes came before them in a row.
#[derive(Default)]
pub(super) struct Runs {
    ends: VecDeque<(u64, u64)>,
}

impl Runs {
    /// Bytes that were written in a row up to a place.
    fn before(&self, place: u64) -> u64 {
        let run = self.ends.iter().find(|(end, _)| *end == place);
        run.map_or(0, |(_, bytes)| *bytes)
    }

    /// Adds a write.
    pub(super) fn add(&mut self, range: &Range<u64>) {
        let bytes = self.before(range.start) + range.end - range.start;
        (self.ends).retain(|(end, _)| *end != range.start && *end != range.end);
        self.ends.push_back((range.end, bytes));
        if self.ends.len() > MOST_RUNS {
            self.ends.pop_front();
        }
    }
}

/// Intents.
impl Keeper {
    /// Whether a write of some bytes may go to the drive. Otherwise its intents have been asked for.
    pub fn readiness(&mut self, range: &Range<u64>) -> Readiness {
        let ahead = self.runs.before(range.start).min(AHEAD);
        let until = |ahead: u64| (range.end + ahead).min(self.length).max(range.end);
        let is_ready = pages_of(range)
            .all(|(chunk, pages)| pages & !self.intended.get(&chunk).copied().unwrap_or(0) == 0);
        // A run does not wait for its intents if they are asked for early.
        let last = until(ahead / 2) - 1;
        let (chunk, page) = (last / CHUNK, last % CHUNK / PAGE);
        let is_enough = is_ready && (ahead == 0 || self.named(chunk) >> page & 1 == 1);
        if !is_enough {
            self.ask(range.start..until(ahead));
        }
        match is_ready {
            true => Readiness::Ready,
            false => Readiness::Waiting,
        }
    }

    /// Asks for the intents of some bytes that were not asked for.
    fn ask(&mut self, range: Range<u64>) {
        let mut new = Vec::new();
        for (chunk, pages) in pages_of(&range) {
            let named = self.named(chunk);
            if pages & !named != 0 {
                let all = covering(named | pages);
                self.asked.insert(chunk, all);
                new.push((chunk, all));
            }
        }
        if !new.is_empty() {
            self.orders.push_back(Order::Intend(new));
        }
    }

    /// The pages of a chunk that have an intent or will have one.
    fn named(&self, chunk: u64) -> u16 {
        let of = |intents: &std::collections::BTreeMap<u64, u16>| {
            intents.get(&chunk).copied().unwrap_or(0)
        };
        of(&self.intended) | of(&self.asked)
    }

    /// These intents are durable.
    pub(super) fn are_intended(&mut self, now: Instant, intents: &[(u64, u16)]) {
        for &(chunk, pages) in intents {
            // It may have been asked for with more pages since.
            if self.asked.get(&chunk) == Some(&pages) {
                self.asked.remove(&chunk);
            }
            *self.intended.entry(chunk).or_default() |= pages;
            // One that is never used is removed again.
            self.dirty.entry(chunk).or_insert(Dirty::NEW).at = now;
        }
    }
}

/// The chunks of some bytes, and their pages in each.
fn pages_of(range: &Range<u64>) -> impl Iterator<Item = (u64, u16)> {
    let Range { start, end } = *range;
    super::chunks(range).map(move |chunk| {
        let place = |byte: u64| byte.clamp(chunk * CHUNK, (chunk + 1) * CHUNK) - chunk * CHUNK;
        let (first, until) = (place(start) / PAGE, place(end).div_ceil(PAGE));
        let low = ALL_PAGES.checked_shl(first as u32).unwrap_or(0);
        let high = ALL_PAGES.checked_shl(until as u32).unwrap_or(0);
        (chunk, low & !high)
    })
}
