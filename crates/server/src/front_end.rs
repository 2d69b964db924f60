//! Ways in for clients that are not on a socket.

pub mod ublk;
