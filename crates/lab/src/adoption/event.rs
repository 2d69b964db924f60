//! Events of a link: ends of reads, and the loss of the path.

use std::io;
use std::time;

use block::{CommandId, Instant, Outcome, Status};

/// What happened on a link.
#[derive(Debug)]
pub(super) enum LinkEvent {
    /// A command has ended.
    Ended(Outcome, Option<io::Error>),
    /// The path is gone.
    Gone(String),
}

/// Threads, and so commands at the drive. A choice: SATA's queue depth.
pub const DEPTH: u32 = 32;

/// The time since the beginning of a link.
pub(super) fn since(begun: time::Instant) -> Instant {
    Instant::from_nanos(begun.elapsed().as_nanos() as u64)
}

/// An outcome without an account, as a path gives it.
pub(super) fn outcome(id: CommandId, at: Instant, status: Status) -> Outcome {
    Outcome {
        id,
        at,
        status,
        account: None,
    }
}
