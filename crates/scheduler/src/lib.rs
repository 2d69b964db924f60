//! The choice of the next command: ordering, priorities, policies, preemption, free blocks.
//!
//! A policy only chooses among eligible requests. Ordering, limits and exactly-once belong to the
//! mechanism. A policy can make the engine slow, never wrong.

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
