//! Reads that wait for the cache, and their answers.

use std::collections::VecDeque;

use cache::level::{Answered, Ending};

use super::pages::VolumeBytes;

/// Reads from their begin to their answer.
#[derive(Default)]
pub(super) struct Readers {
    waiting: Vec<PendingRead>,
    served: VecDeque<ServedRead>,
}

/// A read that waits.
struct PendingRead {
    key: usize,
    /// The memory of the bytes, empty for a prefetch.
    bytes: VolumeBytes,
}

/// The end of a read. A failed read has to be repeated without the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedRead {
    /// The key of the operation.
    pub key: usize,
    /// The result.
    pub ending: Ending,
}

impl Readers {
    /// Adds a read of an operation.
    pub(super) fn begin(&mut self, key: usize, bytes: VolumeBytes) {
        self.waiting.push(PendingRead { key, bytes });
    }

    /// Copies fetched bytes to every read that waits for any of them.
    pub(super) fn deliver(&self, fetched: &VolumeBytes) {
        for reader in &self.waiting {
            fetched.copy_to(&reader.bytes);
        }
    }

    /// The level has answered a read.
    ///
    /// # Panics
    /// If no such read waits: each is answered once.
    pub(super) fn end(&mut self, answered: Answered) {
        let key = answered.id.0 as usize;
        let place = self.waiting.iter().position(|reader| reader.key == key);
        self.waiting.swap_remove(place.expect("it reads"));
        let ending = answered.ending;
        self.served.push_back(ServedRead { key, ending });
    }

    /// The next answer, in order.
    pub(super) fn poll(&mut self) -> Option<ServedRead> {
        self.served.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use block::RequestId;

    use super::*;
    use crate::arena::Arena;
    use crate::cache_setting::PAGE;

    #[test]
    fn each_read_gets_its_bytes_and_one_answer_in_order() {
        let mut arena = Arena::map(64 << 10).expect("memory");
        let mut buffer = || arena.allocate(PAGE as usize).expect("memory");
        let (mut fetched, one, other) = (buffer(), buffer(), buffer());
        let mut readers = Readers::default();
        readers.begin(4, VolumeBytes::page(1, one.memory()));
        readers.begin(7, VolumeBytes::page(2, other.memory()));
        fetched.bytes_mut().fill(9);
        readers.deliver(&VolumeBytes::page(2, fetched.memory()));
        assert_eq!((one.bytes()[0], other.bytes()[0]), (0, 9));
        for (key, ending) in [(7, Ending::Done), (4, Ending::Failed)] {
            let id = RequestId(key);
            readers.end(Answered { id, ending });
        }
        let keys = std::iter::from_fn(|| readers.poll()).map(|served| (served.key, served.ending));
        let keys: Vec<_> = keys.collect();
        assert_eq!(keys, [(7, Ending::Done), (4, Ending::Failed)]);
        [fetched, one, other]
            .into_iter()
            .for_each(|buffer| arena.free(buffer));
    }
}
