//! RA(P), as PFC calls it: after every request, hit or miss, the next P blocks.
//!
//! The prefetcher has no state, detects no sequences and has no trigger distance. Zhang et al.,
//! ICDCS 2008, 2.2. Not for random reads: each of them costs P blocks.

use super::{Advice, Prefetcher, Seen, following};
use crate::residency::Residency;

/// Fetches the blocks after a request.
#[derive(Clone, Copy, Debug)]
pub struct ReadAhead {
    degree: u64,
}

/// Zhang et al., ICDCS 2008, 2.2.
pub const DEGREE: u64 = 4;

impl ReadAhead {
    /// A prefetcher of `degree` blocks.
    pub const fn new(degree: u64) -> Self {
        ReadAhead { degree }
    }
}

impl Prefetcher for ReadAhead {
    fn on_request(&mut self, seen: &Seen, _: &Residency, advice: &mut Advice) {
        let ahead = following(seen.blocks.last, self.degree);
        advice.fetch(ahead, seen.mode());
    }
}
