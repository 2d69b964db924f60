//! Linux readahead as PFC and Butt describe it: the engine of Linux 2.4 with at most 32 blocks.
//!
//! ```text
//!    older group   | most recent group |
//!   |--------------|-------------------|
//!   win_start      gs                 ge
//!                  a read here or at ge+1 fetches the next group, twice as large
//! ```
//!
//! Zhang et al., ICDCS 2008; Butt, Gniady, Hu, SIGMETRICS 2005; Linux 2.4 `mm/filemap.c`. Every random
//! read costs three blocks: not for databases.

use super::context::{CONTEXT, ContextState, Contexts};
use super::{Advice, FetchMode, Prefetcher, Seen, following};
use crate::residency::Residency;
use crate::settings::{AlgorithmSettings, Parameter, Values};
use block::Interval;

/// A Linux 2.4 prefetcher: the groups of each file.
#[derive(Clone, Debug)]
pub struct Linux24 {
    least: u64,
    most: u64,
    files: Contexts<Groups>,
}

#[derive(Clone, Copy, Debug)]
struct Groups {
    /// The beginning of the group before the most recent one.
    window: u64,
    /// The most recent group; empty before the first read.
    group: Interval,
    size: u64,
}

/// The parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "min",
        what: "Blocks after a random read; Linux 2.4: vm_min_readahead.",
        values: Values::Number {
            range: 1..=1024,
            default: 3,
        },
    },
    Parameter {
        key: "max",
        what: "The largest group; Zhang et al. and Butt et al.; Linux 2.4: vm_max_readahead + 1.",
        values: Values::Number {
            range: 1..=4096,
            default: 32,
        },
    },
    CONTEXT,
];

impl ContextState for Groups {
    const NEW: Self = Groups {
        window: 0,
        group: Interval::EMPTY,
        size: 0,
    };

    fn continues(&self, blocks: Interval) -> bool {
        self.size > 0
            && self.window <= blocks.first
            && blocks.first <= self.group.last.saturating_add(1)
    }
}

impl Linux24 {
    /// A prefetcher with these settings.
    pub fn new(settings: &AlgorithmSettings) -> Self {
        Linux24 {
            least: settings.get("min"),
            most: settings.get("max"),
            files: Contexts::new(settings),
        }
    }
}

impl Prefetcher for Linux24 {
    fn on_request(&mut self, seen: &Seen, _: &Residency, advice: &mut Advice) {
        let (first, last) = (seen.blocks.first, seen.blocks.last);
        let file = self.files.of(seen);
        if file.continues(seen.blocks) {
            if last < file.group.first {
                // The next group is already in flight.
                return;
            }
            file.size = (2 * file.size).min(self.most);
            file.window = file.group.first;
            file.group = following(file.group.last.max(last), file.size);
            advice.fetch(file.group, seen.mode());
        } else {
            file.size = self.least;
            file.window = first;
            file.group = following(last, file.size);
            advice.fetch(file.group, FetchMode::Sync);
        }
        if file.group.is_empty() {
            // At the end of all block numbers nothing continues.
            *file = ContextState::NEW;
        }
    }

    /// Silently used blocks count as read: the stream continues after them.
    fn on_silent_use(&mut self, seen: &Seen) {
        let file = self.files.of(seen);
        if file.continues(seen.blocks) {
            file.group.last = file.group.last.max(seen.blocks.last);
        }
    }
}
