//! Where requests come from, and when: at their own times, or as soon as the last one is answered.

use block::{Direction, Instant, Interval};

use super::setup::BadSetup;

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheArrival {
    /// When; not looked at in a closed loop.
    pub at: Instant,
    /// Who.
    pub client: u32,
    /// Which file, or which volume where there are no files.
    pub file: u64,
    /// Which blocks of the disk.
    pub blocks: Interval,
    /// All blocks of the file, or of the volume.
    pub within: Interval,
    /// Which way the bytes go. Caches and the disk take a write for a read of its blocks, as earlier simulators
    /// did (`shared/specs/cache-and-pfc.md`, 9); coordinators may see it.
    pub direction: Direction,
}

/// Hands out requests.
pub trait CacheLoad {
    /// The next request: in an open loop that of any client, in the order of their times, and
    /// otherwise that of this one.
    ///
    /// # Errors
    /// Whatever makes the load end before its end.
    fn arrival(&mut self, client: u32) -> Result<Option<CacheArrival>, BadSetup>;
}

/// When requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalTiming {
    /// At their times, whatever is under way.
    Open,
    /// Each client's next one as soon as its last one is answered: no think time.
    Closed,
}

impl<I: Iterator<Item = CacheArrival>> CacheLoad for I {
    /// One stream: in a closed loop that of the only client.
    fn arrival(&mut self, _: u32) -> Result<Option<CacheArrival>, BadSetup> {
        Ok(self.next())
    }
}
