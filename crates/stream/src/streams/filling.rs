//! Buffers that fill at best effort, in turn.

use std::ops::Bound;

use block::{Class, Direction, Durability};

use super::{Order, Streams, Transfer, TransferId};
use crate::head_times::Tracks;
use crate::playout::{Under, Urgency, Use};

impl<T: Tracks> Streams<T> {
    /// A best-effort read for the next buffer in turn that fills.
    pub(super) fn fill(&mut self) -> Option<Order> {
        let after = (Bound::Excluded(self.filled), Bound::Unbounded);
        let later = self.filling.range(after);
        let earlier = self.filling.range(..=self.filled);
        for &stream in later.chain(earlier) {
            let Some(entry) = self.table.get_mut(&stream) else {
                continue;
            };
            let Some((piece, from, to)) = entry.playout.next_fill() else {
                continue;
            };
            self.filled = stream;
            self.named += 1;
            let id = TransferId(self.named);
            entry.playout.under.push(Under {
                key: id.0,
                extent: piece.extent,
                from,
                to,
                urgency: Urgency::Filling,
                use_: Use::Wanted,
            });
            self.transfers.insert(id, stream);
            self.raise(stream);
            return Some(Order::Transfer(Transfer {
                id,
                stream,
                direction: Direction::Read,
                extent: piece.extent,
                offset: piece.offset,
                class: Class::BestEffort(self.settings.priority),
                durability: Durability::Volatile,
            }));
        }
        None
    }
}
