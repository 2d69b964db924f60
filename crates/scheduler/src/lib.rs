//! Which command next: the policies, and what fills the gaps.
//!
//! A policy only chooses among requests that may be served. Order, limits and exactly-once are
//! the engine's business: a policy can make it slow, never wrong.

pub mod background;
pub mod freeblock;
pub mod ordering;
pub mod policy;
pub mod preemption;

pub use ordering::Ordering;
pub use policy::{
    Choice, EligibleRequest, NamedPolicy, PieceId, Policy, PolicyEntry, Sight, UnknownPolicy, View,
};
pub use preemption::Preemption;
