//! What is kept, what is fetched ahead, levels and their coordinator. No clock, no I/O, no bytes.
//!
//! The unit is a block of 4 KiB. A cache of `capacity` frames knows of each block whether it is
//! absent, in flight, or valid ([`Residency`]); a replacement policy says which block goes when a
//! frame is needed ([`Replacement`]); [`Cache`] keeps both in step.
//!
//! ```text
//!             requests from above
//!                    |
//!               coordinator          may take blocks unseen (silent), or ask for more
//!                    |
//!    prefetcher -- cache ----- replacement
//!                    |    `--- residency
//!             requests to below
//! ```
//!
//! | word | meaning |
//! |---|---|
//! | block | 4 KiB, by number; a file's or device's place among the numbers is the caller's affair |
//! | resident | in flight or valid; what the papers call "in cache" |
//! | remembered | evicted, its number kept by the policy; not resident. Papers call it a ghost |
//! | touch | a demand for a resident block |
//! | silent | read without the policy and the prefetcher being told |

pub mod cache;
pub mod coordinator;
pub mod level;
mod lru_map;
pub mod prefetch;
pub mod replacement;
pub mod residency;
pub mod settings;
pub mod write_back;

pub use cache::{Cache, Evicted};
pub use level::{Composition, Level, Stack};
pub use replacement::{FirstTouch, Pattern, Refusal, Replacement, Verdict};
pub use residency::{BlockState, FetchOrigin, FrameId, MAX_BLOCK, Residency};
