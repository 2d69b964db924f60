//! DU, "demote upon use": evicts blocks first that were sent to the cache above (Chen, Zhang, Zhou,
//! Scott, Schiefer, SIGMETRICS 2005, as PFC describes it).
//!
//! ```text
//!   evicts:  [ sent, oldest ... newest ] then [ not sent: oldest ... newest ]
//! ```
//!
//! For a cache below another one. Not without a cache above: every block is evicted after its first
//! use.

use super::{GhostTag, Pattern, Replacement, Touch};
use crate::residency::{FrameId, List, Needs, Residency};
use crate::settings::{AlgorithmSettings, Parameter, Values};

/// The parameters.
pub const PARAMETERS: &[Parameter] = &[Parameter {
    key: "first",
    what: "Which of the sent blocks goes first; a choice, the paper says only that they go.",
    values: Values::Words(&["oldest", "newest"]),
}];

const SENT: u8 = 1;

/// A DU policy: an LRU list, and a list of sent blocks.
#[derive(Debug)]
pub struct Du {
    order: List,
    sent: List,
    first: First,
}

/// The sent block that is evicted first.
#[derive(Clone, Copy, Debug)]
enum First {
    Oldest,
    Newest,
}

impl Du {
    /// An empty policy.
    pub fn new(settings: &AlgorithmSettings) -> Self {
        Self {
            order: List::numbered(0),
            sent: List::numbered(1),
            first: match settings.get("first") {
                0 => First::Oldest,
                _ => First::Newest,
            },
        }
    }

    /// The list of the frame.
    fn list(&mut self, residency: &Residency, frame: FrameId) -> &mut List {
        match residency.marks(frame) {
            SENT => &mut self.sent,
            _ => &mut self.order,
        }
    }
}

impl Replacement for Du {
    fn needs(&self) -> Needs {
        Needs {
            remembered: 0,
            lists: 2,
        }
    }

    #[inline]
    fn touch(&mut self, residency: &mut Residency, frame: FrameId, _: Touch, _: Pattern) {
        self.list(residency, frame).move_to_newest(residency, frame);
    }

    #[inline]
    fn victim(&mut self, residency: &mut Residency, _: GhostTag) -> Option<FrameId> {
        let sent = match self.first {
            First::Oldest => self.sent.oldest_valid(residency),
            First::Newest => self.sent.newest_valid(residency),
        };
        sent.or_else(|| self.order.oldest_valid(residency))
    }

    #[inline]
    fn evict(&mut self, residency: &mut Residency, frame: FrameId) {
        self.withdraw(residency, frame);
    }

    #[inline]
    fn insert(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern, _: GhostTag) {
        self.order.push_newest(residency, frame);
    }

    fn refresh(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern) {
        self.list(residency, frame).remove(residency, frame);
        residency.set_marks(frame, 0);
        self.order.push_newest(residency, frame);
    }

    fn sent(&mut self, residency: &mut Residency, frame: FrameId) {
        self.list(residency, frame).remove(residency, frame);
        residency.set_marks(frame, SENT);
        self.sent.push_newest(residency, frame);
    }

    fn withdraw(&mut self, residency: &mut Residency, frame: FrameId) {
        self.list(residency, frame).remove(residency, frame);
        residency.forget(frame);
    }
}
