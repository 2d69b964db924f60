//! Volumes over a drive whose commands end when a test says so.

mod background;
mod checkpoints;
mod classes;
mod flushes;
mod model;
mod posts;
pub(super) mod random;
mod room;
