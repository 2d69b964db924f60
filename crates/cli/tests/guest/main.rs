//! The service in a kernel of its own (see the crate `guest`).

mod adopting;
mod device;
mod probing;
mod ublk;
