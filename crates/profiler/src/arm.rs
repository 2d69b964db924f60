//! How long the arm takes over which distance, and the head from surface to surface.

pub mod reposition;
mod threshold;

pub use reposition::{Spread, reposition};
