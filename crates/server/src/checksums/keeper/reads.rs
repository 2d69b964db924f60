//! Reads of a scrub: which of them count, and when a chunk is complete.

use std::ops::Range;

use super::{Keeper, bytes_of, overlap};
use crate::checksums::CHUNK;
use crate::checksums::cover::Piece;
use crate::checksums::orders::Order;
use crate::checksums::pass::Pass;

/// Reads of a scrub.
impl Keeper {
    /// Begins a pass over all chunks, in place of an earlier one.
    pub fn begin_pass(&mut self) {
        self.passes += 1;
        self.pass = Some(Pass::new(self.length));
    }

    /// Begins a pass over a slice of the chunks, in place of an earlier one.
    pub fn begin_slice(&mut self, slice: usize) {
        self.passes += 1;
        self.pass = Some(Pass::of_slice(self.length, slice));
    }

    /// The number of passes that were begun.
    pub fn passes(&self) -> u64 {
        self.passes
    }

    /// The present or last pass.
    pub fn pass(&self) -> Option<&Pass> {
        self.pass.as_ref()
    }

    /// The present or last pass, for its controller.
    pub fn pass_mut(&mut self) -> Option<&mut Pass> {
        self.pass.as_mut()
    }

    /// Compares the pages that were read beside unreadable ones.
    pub fn compare_beside(&mut self) {
        let all = self.pass.as_mut().map(Pass::read_beside);
        for (chunk, sums, unreadable) in all.into_iter().flatten() {
            let doubted = self.doubts.get(&chunk).copied().unwrap_or(0);
            self.orders.push_back(Order::Verify {
                chunk,
                sums,
                doubted,
                unreadable,
            });
        }
    }

    /// Whether reads are to be shown to the keeper.
    pub fn wants_reads(&self) -> bool {
        self.pass.as_ref().is_some_and(Pass::is_active)
    }

    /// Whether a pass needs a flush before its reads count.
    pub fn waits_for_flush(&self) -> bool {
        !self.has_flushed && self.wants_reads()
    }

    /// A read begins.
    pub fn read_begun(&mut self, key: u64) {
        if self.wants_reads() && self.has_flushed {
            let changes = self.in_flight.values();
            let ranges = changes.map(|change| change.range.clone()).collect();
            self.reads.insert(key, ranges);
        }
    }

    /// A read has ended, and nobody wants it.
    pub fn read_dropped(&mut self, key: u64) {
        self.reads.remove(&key);
    }

    /// A read of these bytes has ended with these pieces, or has failed.
    pub fn read_ended(
        &mut self,
        key: u64,
        range: &Range<u64>,
        pieces: Option<impl Iterator<Item = (u64, Piece)>>,
    ) {
        let (Some(spoiled), true) = (self.reads.remove(&key), self.wants_reads()) else {
            return;
        };
        let Some(pieces) = pieces else {
            return self.pass.iter_mut().for_each(|pass| pass.failed(range));
        };
        self.pass.iter_mut().for_each(|pass| pass.readable(range));
        for (chunk, piece) in pieces {
            if self.is_unsettled(chunk) || spoils(&spoiled, chunk) {
                continue;
            }
            let Keeper {
                pass: Some(pass),
                orders,
                doubts,
                length,
                ..
            } = self
            else {
                return;
            };
            let of_chunk = bytes_of(chunk, *length);
            if let Some(sums) = pass.put(chunk, piece, of_chunk) {
                let doubted = doubts.get(&chunk).copied().unwrap_or(0);
                orders.push_back(Order::Verify {
                    chunk,
                    sums,
                    doubted,
                    unreadable: 0,
                });
            }
        }
    }

    /// Whether a chunk has changes without a record, or changes that may not be on the medium yet.
    fn is_unsettled(&self, chunk: u64) -> bool {
        let dirty = self.dirty.get(&chunk);
        self.active.contains_key(&chunk)
            || dirty.is_some_and(|dirty| dirty.is_crowded_out)
            || (self.trims.iter()).any(|(chunks, _)| chunks.contains(&chunk))
    }
}

/// Whether one of these changes was of a chunk.
fn spoils(changes: &[Range<u64>], chunk: u64) -> bool {
    let bytes = chunk * CHUNK..(chunk + 1) * CHUNK;
    changes.iter().any(|range| overlap(range, &bytes))
}
