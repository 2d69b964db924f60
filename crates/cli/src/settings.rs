//! The flags that several commands share, and their settings of the lab.

pub mod columns;
pub mod load;
pub mod preempt;
pub mod scan;
pub mod store;
pub mod truth;
pub mod units;
