//! The parts in a row: the state machine that both worlds drive.
//!
//! ```text
//!   submit(now, request)                                     poll_finished()
//!        |                                                        ^
//!        v        choose               give                       |
//!     waiting -----------> chosen -----------> at the drive --> ended
//!        ^    order, level, policy                 |  ^
//!        '-------- given back by the drive --------'  complete(now, id, outcome)
//!                                       poll(now)
//! ```

pub mod background;
pub mod changes;
pub mod engine;
pub mod forecast;
pub mod lifecycle;
pub mod limits;
mod sent;
mod slots;

pub use crate::background::{Gaps, Rules};
pub use crate::changes::Unchanged;
pub use crate::engine::Engine;
pub use crate::limits::Limits;
