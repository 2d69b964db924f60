//! RA(P), as PFC calls it: after every request, hit or miss, the P blocks that follow it.
//!
//! It has no state, tests for no sequence and knows no trigger distance. Zhang et al., ICDCS 2008, 2.2.
//! Not for random reads: each of them costs P blocks.

use super::{Advice, Prefetcher, Seen, following};
use crate::residency::Residency;

/// Fetches the blocks that follow.
#[derive(Clone, Copy, Debug)]
pub struct ReadAhead {
    degree: u64,
}

/// Zhang et al., ICDCS 2008, 2.2.
pub const DEGREE: u64 = 4;

impl ReadAhead {
    /// So many blocks after every request.
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
