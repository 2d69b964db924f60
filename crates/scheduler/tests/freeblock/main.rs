//! Free blocks: the set of wanted blocks, and the planner, on small random drives.

mod brute_force;
mod drives;
mod execution;
mod idle;
mod memory;
mod planner;
mod wanted;
