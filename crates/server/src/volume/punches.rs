//! The order of reads beside trims and zeroes that the back end does without the engine.
//!
//! ```text
//!   read     |=======|                  in flight: the punch waits for it
//!   punch        |~~~~~~~~|======|      begun, waits, at the back end
//!   read              |~~~~~~~~~~|==|   begins after the punch has ended
//! ```
//!
//! The engine orders requests that overlap, and knows of no punch. A file system fills a part of a page with
//! zeroes while another thread copies it, so that a read beside a punch would find blocks of which a part is
//! zeroes. Therefore a punch and a read of the same blocks are never at the drive together.

use block::Extent;
use block::operation::Ask;

use super::operation::Operation;
use super::operations::Operations;
use crate::disk::back_end::Punch;

/// The punches of a drive that have not ended.
#[derive(Default)]
pub(super) struct Punches(Vec<PendingPunch>);

/// A trim or zeroes of blocks.
#[derive(Clone, Copy)]
struct PendingPunch {
    /// The key of its operation.
    key: usize,
    what: Punch,
    blocks: Extent,
    /// Whether it waits for reads.
    waits: bool,
}

impl Punches {
    /// Whether an operation is a read of blocks that a punch changes or is going to change.
    pub(super) fn hold_back(&self, operations: &Operations, operation: &Operation) -> bool {
        if self.0.is_empty() || operation.ask != Ask::Read || operation.length == 0 {
            return false;
        }
        let around = operations.exports.around(operation);
        self.0.iter().any(|punch| punch.blocks.overlaps(around))
    }

    /// Adds a punch of an operation. The answer is whether the back end may begin it now; otherwise
    /// [`Punches::next_ready`] says when.
    pub(super) fn begin(
        &mut self,
        operations: &Operations,
        key: usize,
        (what, blocks): (Punch, Extent),
    ) -> bool {
        let waits = is_read(operations, blocks);
        self.0.push(PendingPunch {
            key,
            what,
            blocks,
            waits,
        });
        !waits
    }

    /// The next punch that has waited for reads, which have all ended: the back end may begin it.
    pub(super) fn next_ready(&mut self, operations: &Operations) -> Option<(usize, Punch, Extent)> {
        let mut waiting = self.0.iter_mut().filter(|punch| punch.waits);
        let ready = waiting.find(|punch| !is_read(operations, punch.blocks))?;
        ready.waits = false;
        Some((ready.key, ready.what, ready.blocks))
    }

    /// The punch of an operation has ended.
    pub(super) fn end(&mut self, key: usize) {
        self.0.retain(|punch| punch.key != key);
    }
}

/// Whether a pending operation reads any of these blocks.
fn is_read(operations: &Operations, blocks: Extent) -> bool {
    operations.iter().any(|(_, pending)| {
        let operation = &pending.operation;
        operation.ask == Ask::Read
            && operation.length > 0
            && operations.exports.around(operation).overlaps(blocks)
    })
}

#[cfg(test)]
mod tests {
    use block::operation::{Space, ZeroingPace};
    use block::{Class, Durability, Lba, Owner, Sectors};

    use super::*;
    use crate::arena::{Arena, Bytes};
    use crate::volume::Export;
    use crate::volume::exports::Exports;
    use crate::volume::operation::OperationSource;

    const BLOCK: u64 = 4096;

    fn operations() -> Operations {
        let export = Export {
            name: "all".to_owned(),
            offset: 0,
            length: 1 << 20,
            class: Class::default(),
        };
        let arena = Arena::map(4 << 20).expect("memory");
        Operations::new(Exports::new(vec![export], BLOCK), arena, 1 << 20).expect("operations")
    }

    fn operation(ask: Ask, first: u64, count: u64) -> Operation {
        Operation {
            export: 0,
            ask,
            offset: first * BLOCK,
            length: count * BLOCK,
            owner: Owner::NOBODY,
            class: None,
        }
    }

    fn insert(operations: &mut Operations, operation: Operation) -> usize {
        let source = OperationSource::Posted(Box::new(|_| ()));
        operations.insert(source, operation, Bytes::None)
    }

    fn blocks(first: u64, count: u64) -> Extent {
        Extent::new(Lba(first), Sectors(count)).expect("blocks")
    }

    const ZERO: Ask = Ask::Zero {
        durability: Durability::Volatile,
        space: Space::Kept,
        pace: ZeroingPace::Any,
    };

    #[test]
    fn a_punch_waits_for_reads_of_its_blocks_and_later_reads_wait_for_it() {
        let (mut operations, mut punches) = (operations(), Punches::default());
        let read = |first, count| operation(Ask::Read, first, count);
        assert!(!punches.hold_back(&operations, &read(0, 8)));
        let earlier = insert(&mut operations, read(4, 4));
        insert(&mut operations, read(12, 4));
        let zero = insert(&mut operations, operation(ZERO, 6, 4));
        let what = (Punch::Zero(ZeroingPace::Any), blocks(6, 4));
        assert!(!punches.begin(&operations, zero, what), "6 and 7 are read");
        assert!(punches.next_ready(&operations).is_none());
        for (first, count, is_held) in [(9, 2, true), (10, 2, false), (5, 1, false), (6, 1, true)] {
            let held = punches.hold_back(&operations, &read(first, count));
            assert_eq!(held, is_held, "{first}+{count}");
        }
        operations.remove(earlier);
        assert_eq!(
            punches.next_ready(&operations),
            Some((zero, what.0, what.1))
        );
        assert!(punches.next_ready(&operations).is_none(), "it has begun");
        assert!(
            punches.hold_back(&operations, &read(9, 1)),
            "it has not ended"
        );
        punches.end(zero);
        assert!(!punches.hold_back(&operations, &read(9, 1)));
    }

    #[test]
    fn nothing_else_waits_for_a_punch_nor_a_punch_for_anything_else() {
        let (mut operations, mut punches) = (operations(), Punches::default());
        let durability = Durability::Volatile;
        let others = [
            Ask::Write { durability },
            Ask::Cache,
            Ask::Trim { durability },
        ];
        for ask in others {
            insert(&mut operations, operation(ask, 0, 8));
        }
        insert(&mut operations, operation(Ask::Read, 0, 0));
        let trim = insert(&mut operations, operation(others[2], 0, 8));
        assert!(punches.begin(&operations, trim, (Punch::Trim, blocks(0, 8))));
        for ask in others {
            assert!(!punches.hold_back(&operations, &operation(ask, 0, 8)));
        }
        assert!(!punches.hold_back(&operations, &operation(Ask::Read, 3, 0)));
    }
}
