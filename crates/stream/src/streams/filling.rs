//! Buffers that fill at best effort, and those of recordings without a guarantee that are drained so,
//! in turn.

use std::ops::Bound;

use block::{Class, Extent, Instant, StreamMode};

use super::{Life, Order, StreamState, Streams, Transfer, TransferId, durability};
use crate::head_times::Tracks;
use crate::location::Piece;
use crate::playout::{Contract, InFlight, Relevance, Urgency};

impl<T: Tracks> Streams<T> {
    /// A best-effort transfer for the next buffer in turn that wants one.
    pub(super) fn fill(&mut self, now: Instant) -> Option<Order> {
        let after = (Bound::Excluded(self.filled), Bound::Unbounded);
        let later = self.filling.range(after);
        let earlier = self.filling.range(..=self.filled);
        for &stream in later.chain(earlier) {
            let Some(entry) = self.table.get_mut(&stream) else {
                continue;
            };
            let Some((piece, from, to)) = entry.next_at_best_effort() else {
                if entry.is_over() {
                    // What was left of it had no blocks.
                    self.settle(now, stream);
                    return self.fill(now);
                }
                continue;
            };
            self.filled = stream;
            self.named += 1;
            let id = TransferId(self.named);
            entry.playout.in_flight.push(InFlight {
                key: id.0,
                extent: piece.extent,
                from,
                to,
                urgency: Urgency::Filling,
                relevance: Relevance::Wanted,
            });
            let contract = entry.playout.contract;
            let priority = self.priority_of(&contract, piece.extent);
            self.transfers.insert(id, stream);
            self.raise(stream);
            return Some(Order::Transfer(Transfer {
                id,
                stream,
                direction: contract.direction(),
                extent: piece.extent,
                offset: piece.offset,
                class: Class::BestEffort(priority),
                durability: durability(contract.mode),
            }));
        }
        None
    }

    /// The priority of a stream's blocks: its own, or a higher one of somebody else who reads them.
    fn priority_of(&self, own: &Contract, extent: Extent) -> u8 {
        let others = self.table.values().map(|stream| &stream.playout);
        let higher = others.filter(|other| {
            let contract = &other.contract;
            contract.priority < own.priority && contract.mode == StreamMode::Play
        });
        let shared = higher.filter(|other| {
            let mut pieces = other.map.pieces().iter();
            pieces.any(|piece| piece.extent.overlaps(extent))
        });
        let highest = shared.map(|other| other.contract.priority).min();
        highest.unwrap_or(own.priority)
    }
}

impl StreamState {
    /// Whether it was closed, and nothing of it is left.
    pub(super) fn is_over(&self) -> bool {
        let is_empty = self.playout.in_flight.is_empty() && self.playout.is_drained();
        self.life == Life::Closing && is_empty
    }

    fn next_at_best_effort(&mut self) -> Option<(Piece, u64, u64)> {
        let fill = self.playout.next_fill();
        fill.or_else(|| match self.held {
            // It is drained in its rounds.
            Some(_) => None,
            None => self.playout.next_drain(),
        })
    }
}
