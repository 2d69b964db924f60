//! The arrival data of the requests that the engine holds, by the number that they have there.

use block::{Instant, RequestId};

use crate::load::LoadPart;

/// The arrival data of the requests in the engine.
#[derive(Default)]
pub(super) struct RequestTable {
    /// Indexed by the id that the request has in the engine.
    known: Vec<Arrived>,
    free: Vec<u32>,
}

/// A request that has arrived.
#[derive(Clone, Copy)]
pub(super) struct Arrived {
    pub(super) number: u64,
    pub(super) at: Instant,
    pub(super) part: LoadPart,
}

impl RequestTable {
    pub(super) fn insert(&mut self, arrived: Arrived) -> RequestId {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.known[slot as usize] = arrived;
                slot
            }
            None => {
                self.known.push(arrived);
                self.known.len() as u32 - 1
            }
        };
        RequestId(u64::from(slot))
    }

    pub(super) fn remove(&mut self, id: RequestId) -> Arrived {
        self.free.push(id.0 as u32);
        self.known[id.0 as usize]
    }
}
