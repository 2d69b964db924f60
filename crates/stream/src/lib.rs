//! Guaranteed rates: a stream gets its rate and its buffer, or is refused at the door.
//!
//! Words of this crate, besides those of `block`:
//!
//! | word | meaning |
//! |---|---|
//! | playout point | the application's: before it nothing is needed any more; the scheduler's follows it |
//! | playout buffer | what is kept in memory from the scheduler's playout point on |
//! | credit | bytes by which the scheduler's playout point may move: it accrues at the stream's rate |
//! | batch | what a stream is due in one round |
//! | round | the time from one freezing of all batches to the next |
//! | sweep | the batches of a round in the order of their cylinders |
//! | admission | whether the sum of all streams' worst head times fits |

pub mod admission;
pub mod credit;
pub mod head_times;
pub mod location;
pub mod memory;
pub mod playout;
pub mod quota;
pub mod rate;
pub mod rounds;
pub mod streams;

pub use head_times::{AccessTimes, Cylinders, HeadTimes, SeekBound, Tracks, WholeTracks, Zone};
pub use location::{LocationMap, Piece};
pub use rate::Rate;
pub use rounds::Rounds;
pub use streams::Streams;
