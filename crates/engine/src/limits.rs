//! Everything that the engine holds has a bound with a name.

use drive::Profile;
use scheduler::policy::{Depth, NamedPolicy};

/// The bounds of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests held at once, from acceptance until the client is told of the end. At the bound
    /// `submit` refuses, and the front end stops reading.
    pub requests: usize,
    /// Commands at the drive at once. At the bound the choice waits: with two, one is in service
    /// and one is queued, so that the drive cannot reorder and the bus overlaps positioning
    /// (Lumb et al., FAST 2002, 4.1). With more, the drive may reorder, and the engine's
    /// predictions assume that it does not.
    pub commands_at_drive: usize,
}

impl Limits {
    /// The limits under which a policy works as it is meant to on a drive.
    pub fn suited_to(policy: NamedPolicy, belief: &Profile) -> Self {
        let depth = (belief.queue.depth as usize).max(1);
        Limits {
            requests: Limits::default().requests.max(depth),
            commands_at_drive: match policy.depth() {
                Depth::JustInTime => Limits::default().commands_at_drive.min(depth),
                Depth::DriveQueue => depth,
            },
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            // Choice: four times what Linux holds per queue (nr_requests, 256), so that a policy
            // sees the backlog that a block layer would show it.
            requests: 1024,
            // Lumb et al., FAST 2002, 4.1.
            commands_at_drive: 2,
        }
    }
}
