//! Everything that the engine holds has a bound with a name, and so has every wait.

use block::{Class, Duration};
use drive::Profile;
use scheduler::ordering::{Grace, OrderingRules, Phases};
use scheduler::policy::{Depth, NamedPolicy};

/// The bounds of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Limits {
    /// Requests held at once, from acceptance until the client is told of the end. At the bound
    /// `submit` refuses, and the front end stops reading.
    pub requests: usize,
    /// How many of them may only be real-time requests (ABISS 3.6): others are refused when no
    /// more than these are left, so that they cannot keep real-time requests outside.
    pub reserved_for_real_time: usize,
    /// Commands at the drive at once. At the bound the choice waits: with two, one is in service
    /// and one is queued, so that the drive cannot reorder and the bus overlaps positioning
    /// (Lumb et al., FAST 2002, 4.1). With more, the drive may reorder, and the engine's
    /// predictions assume that it does not.
    pub commands_at_drive: usize,
    /// How long a request that is not in the background waits before it goes first, and how long
    /// the drive may keep a command before it is given nothing else.
    pub patience: Duration,
    /// How reads and writes share the drive.
    pub phases: Phases,
    /// When background requests begin; `None`: as soon as no other request waits.
    #[serde(default)]
    pub grace: Option<Grace>,
}

impl Limits {
    /// The limits under which a policy works as it is meant to on a drive.
    pub fn suited_to(policy: NamedPolicy, belief: &Profile) -> Self {
        let depth = (belief.queue.depth as usize).max(1);
        let default = Limits::default();
        Limits {
            requests: default.requests.max(depth + default.reserved_for_real_time),
            commands_at_drive: match policy.depth() {
                Depth::JustInTime => default.commands_at_drive.min(depth),
                Depth::DriveQueue => depth,
            },
            ..default
        }
    }

    /// How many requests may be held when another one of this class is accepted.
    pub fn open_to(&self, class: Class) -> usize {
        let open_to_all = self.requests - self.reserved_for_real_time;
        match class {
            Class::RealTime { .. } => self.requests,
            Class::BestEffort(_) => open_to_all,
            // A choice: half. They wait for gaps, and keep nobody outside meanwhile.
            Class::Background => open_to_all.div_ceil(2),
        }
    }

    /// The rules of the order.
    pub(crate) fn rules(&self) -> OrderingRules {
        OrderingRules {
            phases: self.phases,
            patience: self.patience,
            grace: self.grace,
            pieces: self.requests * PIECES,
        }
    }

    /// Stops the program if nothing could ever be served.
    pub(crate) fn check(&self) {
        assert!(
            self.reserved_for_real_time < self.requests && self.commands_at_drive > 0,
            "{self:?}: expected at least one request that need not be real-time, and one command"
        );
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            // Choice: for all four times what Linux holds per queue (nr_requests, 256), so that a
            // policy sees the backlog that a block layer would show it; and those reserved.
            requests: 1024 + 64,
            // Choice: a sixteenth of what is open to all.
            reserved_for_real_time: 64,
            // Lumb et al., FAST 2002, 4.1.
            commands_at_drive: 2,
            // Choice: what Linux's mq-deadline gives a write (write_expire, 5 s); a sixth of the
            // time after which Linux gives a command of a disk up.
            patience: Duration::from_secs(5),
            phases: Phases::Mixed,
            grace: None,
        }
    }
}

/// Pieces for each request: upgrades divide requests. A choice: each held request could be divided
/// in two.
const PIECES: usize = 2;
