//! The engine: a state machine between clients and one drive, which both worlds drive.
//!
//! ```text
//!   submit(now, request)                                     poll_finished()
//!        |                                                        ^
//!        v        choose          gap        give                 |
//!     waiting -----------> chosen -----> drafts --> at the drive --> ended
//!        ^    order, level, policy          |             |  ^
//!        '--- overtaken by real-time -------'             |  complete(now, id, outcome)
//!        '--- given back by the drive --------------------'
//! ```
//!
//! [`Engine`] has an [`ArmEngine`](engine::ArmEngine) for each actuator of its drive, and divides requests
//! between them. An [`ArmEngine`](engine::ArmEngine) is a row of stages. Each owns its state, and answers
//! give, wait until, or pass:
//!
//! | stage | owns |
//! |---|---|
//! | [`intake`] | requests and flushes: accepted, divided, refused, ended |
//! | [`guarantees`] | streams, and what may be given without breaking a promise |
//! | [`preemption`] | requests in parts, which step aside |
//! | [`gap`] | what comes before a request, and what goes by itself |
//! | [`dispatch`] | what is chosen, and what is at the drive |
//! | [`belief`] | where the head is, and what was learned |

pub mod belief;
mod command;
mod context;
pub mod dispatch;
pub mod engine;
pub mod forecast;
pub mod gap;
pub mod guarantees;
mod input;
pub mod intake;
pub mod preemption;
pub mod ranges;
#[cfg(any(test, feature = "trial"))]
pub mod trial;

pub use crate::belief::{Tallies, explanation};
pub use crate::gap::{Gaps, Rules, TaskChange};
pub use crate::guarantees::{StreamInput, streams};
pub use crate::input::{EncodedOrder, Impossible, Input, Reply};
pub use crate::intake::Unchanged;
pub use crate::intake::flushes::{Flushed, OWN_FLUSH};
pub use crate::intake::limits::Limits;
pub use crate::intake::{lifecycle, limits};
pub use crate::preemption::Preempted;
pub use crate::ranges::mirror::NotMirrored;
pub use crate::ranges::{
    Engine, LegFailure, LegKept, LegState, LegWork, ReadRule, Side, WrittenLegs,
};
