//! The streams of a disk as one state machine, in a world of virtual time.

mod definition;
mod disk;
mod edges;
mod world;
mod worst;
