//! Writes of a cached volume that are in flight.
//!
//! The volume gets their bytes in the order of their submission. Bytes that were read earlier lack them.

use block::{Interval, RequestId};

use super::pages::VolumeBytes;

/// Writes in flight, in the order of their submission.
#[derive(Default)]
pub(super) struct ChangesInFlight(Vec<Change>);

/// A write at the engine.
struct Change {
    id: RequestId,
    bytes: VolumeBytes,
}

impl ChangesInFlight {
    /// Adds a write that is submitted now. Its memory stays unchanged until [`ChangesInFlight::end`].
    pub(super) fn submit(&mut self, id: RequestId, bytes: VolumeBytes) {
        self.0.push(Change { id, bytes });
    }

    /// Removes a write that has ended, and returns its bytes. `None` if no such write is in flight.
    pub(super) fn end(&mut self, id: RequestId) -> Option<VolumeBytes> {
        let place = self.0.iter().position(|change| change.id == id)?;
        Some(self.0.remove(place).bytes)
    }

    /// Copies the writes over bytes that were read, from the oldest to the newest.
    pub(super) fn copy_to(&self, bytes: &VolumeBytes) {
        for change in &self.0 {
            change.bytes.copy_to(bytes);
        }
    }

    /// The blocks of each write.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Interval> {
        self.0.iter().map(|change| change.bytes.blocks())
    }

    /// Whether any of these blocks is being written.
    pub(super) fn have_any(&self, blocks: Interval) -> bool {
        self.blocks().any(|changed| changed.overlaps(blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{Arena, Buffer};
    use crate::cache_setting::PAGE;

    fn filled(arena: &mut Arena, length: u64, value: u8) -> Buffer {
        let mut buffer = arena.allocate(length as usize).expect("memory");
        buffer.bytes_mut().fill(value);
        buffer
    }

    #[test]
    fn bytes_get_the_newest_of_the_writes_in_flight() {
        let mut arena = Arena::map(64 << 10).expect("memory");
        let mut changes = ChangesInFlight::default();
        let read = filled(&mut arena, PAGE, 0);
        let all = VolumeBytes::page(5, read.memory());
        let writes = [(0, 1), (1, 2), (2, 3)].map(|(at, value)| {
            let buffer = filled(&mut arena, 512, value);
            let bytes = VolumeBytes {
                start: 5 * PAGE + at * 256,
                memory: buffer.memory(),
            };
            changes.submit(RequestId(at), bytes);
            buffer
        });
        assert!(changes.have_any(Interval::new(5, 9)));
        assert!(!changes.have_any(Interval::new(6, 9)));
        assert!(changes.end(RequestId(1)).is_some());
        assert!(changes.end(RequestId(1)).is_none(), "it ends once");
        changes.copy_to(&all);
        let found: Vec<u8> = read.bytes().chunks(256).map(|part| part[0]).collect();
        assert_eq!(found[..5], [1, 1, 3, 3, 0]);
        writes.into_iter().for_each(|buffer| arena.free(buffer));
        arena.free(read);
    }
}
