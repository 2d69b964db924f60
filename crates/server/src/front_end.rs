//! What speaks with the kernel in a protocol other than NBD, each on threads of its own.

pub mod fuse;
pub mod ublk;
