//! The service in a kernel of its own (see the crate `guest`).

mod device;
mod probing;
mod ublk;
