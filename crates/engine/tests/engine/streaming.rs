//! Streams inside the engine, at their edges and under policies that mean harm.

mod edges;
mod held_up;
mod joining;
mod others;
mod policies;
mod random;
mod starving;
mod world;
mod worst;
