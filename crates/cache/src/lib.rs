//! Caches: replacement, prefetching, levels, and their coordinators. No clock, no I/O, no bytes.
//!
//! The unit is a block of 4 KiB. A cache has `capacity` frames. For each block it knows whether the
//! block is absent, in flight, or valid ([`Residency`]). A replacement policy chooses the block to
//! evict ([`Replacement`]). [`Cache`] keeps both consistent.
//!
//! ```text
//!             requests from above
//!                    |
//!               coordinator          may bypass the cache (silent), or add blocks
//!                    |
//!    prefetcher -- cache ----- replacement
//!                    |    `--- residency
//!             requests to below
//! ```
//!
//! | word | meaning |
//! |---|---|
//! | block | 4 KiB, by number; the caller maps files and devices to numbers |
//! | resident | in flight or valid; the papers say "in cache" |
//! | remembered | evicted, with its number kept by the policy; not resident. The papers say "ghost" |
//! | touch | a demand for a resident block |
//! | silent | read unseen by the policy and the prefetcher |
//! | readmore | blocks that a coordinator adds to a request |
//! | wish | readmore that the owner fetches only when it costs no head time |

pub mod cache;
pub mod coordinator;
pub mod curve;
pub mod level;
mod lru_map;
pub mod numbers;
pub mod prefetch;
pub mod replacement;
pub mod replay;
pub mod residency;
pub mod settings;
pub mod write_back;

pub use cache::{Cache, Evicted};
pub use curve::{HitCurve, StackDistances};
pub use level::{Composition, Level, Stack};
pub use numbers::Numbers;
pub use replacement::{FirstTouch, Pattern, Refusal, Replacement, Verdict};
pub use replay::Replay;
pub use residency::{BlockState, FetchOrigin, FrameId, MAX_BLOCK, Residency};
