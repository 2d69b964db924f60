//! The parts in a row: the state machine that both worlds drive.
//!
//! ```text
//!   submit(now, request)                                     poll_finished()
//!        |                                                        ^
//!        v        choose          gap        give                 |
//!     waiting -----------> chosen -----> on the way --> at the drive --> ended
//!        ^    order, level, policy            |             |  ^
//!        '--- overtaken by real-time ---------'             |  complete(now, id, outcome)
//!        '--- given back by the drive ----------------------'
//! ```

pub mod background;
pub mod changes;
pub mod engine;
pub mod explanation;
pub mod forecast;
pub mod guarantees;
pub mod lifecycle;
pub mod limits;
mod sent;
mod slots;
pub mod streams;

pub use crate::background::{Gaps, Rules};
pub use crate::changes::Unchanged;
pub use crate::engine::{Engine, Flushed, Preempted, Tallies};
pub use crate::limits::Limits;
