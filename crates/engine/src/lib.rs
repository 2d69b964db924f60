//! The parts in a row: the state machine that both worlds drive.
//!
//! ```text
//!   submit(now, request)                                     poll_finished()
//!        |                                                        ^
//!        v                                                        |
//!     waiting --- policy chooses ---> at the drive ---------> ended
//!                        |                  ^
//!                   poll(now)        complete(now, id, outcome)
//! ```

pub mod background;
pub mod engine;
pub mod forecast;
pub mod lifecycle;
pub mod limits;
mod sent;
mod slots;

pub use crate::background::{Gaps, Rules};
pub use crate::engine::Engine;
pub use crate::limits::Limits;
