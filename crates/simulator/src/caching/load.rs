//! The requests of clients: at their own times, or as soon as the previous one has ended.

use block::{Direction, Instant, Interval};

use super::setup::BadSetup;

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheArrival {
    /// The time of arrival; ignored in a closed loop.
    pub at: Instant,
    /// The client.
    pub client: u32,
    /// The file, or the volume if there are no files.
    pub file: u64,
    /// The blocks of the disk.
    pub blocks: Interval,
    /// All blocks of the file or the volume.
    pub within: Interval,
    /// Read or write. What becomes of a write is a parameter of the system: [`Writes`](super::Writes).
    pub direction: Direction,
}

/// A source of requests.
pub trait CacheLoad {
    /// The next request: of any client and in order of time in an open loop, of this client in a
    /// closed loop.
    ///
    /// # Errors
    /// If the load stops before its end.
    fn arrival(&mut self, client: u32) -> Result<Option<CacheArrival>, BadSetup>;
}

/// The times of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalTiming {
    /// At their own times, independent of outstanding requests.
    Open,
    /// A client's next request follows the end of its previous one, without think time.
    Closed,
    /// Each client keeps this many requests outstanding; the next follows the end of any.
    Outstanding(u32),
}

impl<I: Iterator<Item = CacheArrival>> CacheLoad for I {
    /// One stream: in a closed loop that of the only client.
    fn arrival(&mut self, _: u32) -> Result<Option<CacheArrival>, BadSetup> {
        Ok(self.next())
    }
}
