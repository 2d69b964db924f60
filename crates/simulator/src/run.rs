//! Runs an engine and a virtual drive in virtual time.

pub mod load;

pub use load::{Arrival, Demand, Load, LoadError};
