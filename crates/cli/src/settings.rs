//! Flags that several commands have, and the settings of the lab that they mean.

pub mod load;
pub mod preempt;
pub mod scan;
pub mod truth;
