//! What a prefetcher remembers of each file: at most so many files, the one that was used longest ago
//! is forgotten.
//!
//! Traces of volumes have no files. Then all requests of a volume share one context, as the
//! specification says, or the prefetcher is set to tell streams apart by their blocks.

use super::Seen;
use crate::lru_map::LruMap;
use crate::settings::{AlgorithmSettings, Parameter, Values};
use block::Interval;

/// Whose requests share a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Those of one client for one file; a volume where there are no files.
    File,
    /// All.
    One,
    /// Those that continue one another.
    Stream,
}

/// The contexts of one prefetcher.
#[derive(Clone, Debug)]
pub struct Contexts<S> {
    by: By,
    kept: LruMap<(u32, u64), S>,
    /// The number of the next stream.
    next: u64,
}

/// What can be kept in a context.
pub trait ContextState: Copy {
    /// Before anything was read.
    const NEW: Self;

    /// Whether a request for these blocks continues what was read here.
    fn continues(&self, blocks: Interval) -> bool;
}

/// How many files are remembered; beyond it a file that was not read for long begins anew. A choice:
/// ten times the files that a mail or web server has open at once.
pub const MOST_FILES: usize = 16_384;

/// How many streams are told apart. As many as the share of random requests of
/// `shared/traces/README.md` is counted with.
pub const MOST_STREAMS: usize = 32;

/// How users choose whose requests share a context.
pub const CONTEXT: Parameter = Parameter {
    key: "context",
    what: "Whose requests share a state; file: kernels keep it in the open file. A volume counts \
           as a file where there are none; stream: the 32 most recent ones, by their blocks.",
    values: Values::Words(&["file", "one", "stream"]),
};

impl<S: ContextState> Contexts<S> {
    /// None yet, as the parameter [`CONTEXT`] says.
    pub fn new(settings: &AlgorithmSettings) -> Self {
        let (by, most) = match settings.get(CONTEXT.key) {
            0 => (By::File, MOST_FILES),
            1 => (By::One, 1),
            _ => (By::Stream, MOST_STREAMS),
        };
        Contexts {
            by,
            kept: LruMap::new(most),
            next: 0,
        }
    }

    /// The context of a request, a new one if there is none.
    pub fn of(&mut self, seen: &Seen) -> &mut S {
        let key = match self.by {
            By::File => (seen.client, seen.file),
            By::One => (0, 0),
            By::Stream => {
                let mut kept = self.kept.iter();
                let found = kept.find(|(_, state)| state.continues(seen.blocks));
                found.map_or((0, self.next), |(key, _)| key)
            }
        };
        if self.by == By::Stream && key.1 == self.next {
            self.next += 1;
        }
        self.kept.touch_or(key, || S::NEW)
    }
}
