//! The accounts of a loop: counts and rates, and where the time of the slowest requests went.

pub mod slowest;
pub mod tally;
