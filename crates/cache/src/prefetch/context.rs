//! The state of a prefetcher per file, in a bounded table that evicts the least recently used file.
//!
//! Traces of volumes have no files. All requests of a volume then share one context, as the
//! specification says, or the prefetcher distinguishes streams by their blocks.

use super::Seen;
use crate::lru_map::LruMap;
use crate::settings::{AlgorithmSettings, Parameter, Values};
use block::Interval;

/// The requests that share a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Requests of one client for one file, or for a volume without files.
    File,
    /// All requests.
    One,
    /// Requests that continue each other.
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

/// The state in a context.
pub trait ContextState: Copy {
    /// The state before the first read.
    const NEW: Self;

    /// Whether a request for these blocks continues this context's reads.
    fn continues(&self, blocks: Interval) -> bool;
}

/// The largest number of files; beyond it the least recently read file is dropped. A choice: ten times
/// the open files of a mail or web server.
pub const MOST_FILES: usize = 16_384;

/// The largest number of streams, as in the count of random requests in `shared/traces/README.md`.
pub const MOST_STREAMS: usize = 32;

/// The parameter that selects the requests that share a context.
pub const CONTEXT: Parameter = Parameter {
    key: "context",
    what: "Whose requests share a state; file: kernels keep it in the open file. A volume counts \
           as a file where there are none; stream: the 32 most recent ones, by their blocks.",
    values: Values::Words(&["file", "one", "stream"]),
};

impl<S: ContextState> Contexts<S> {
    /// An empty table with the setting of [`CONTEXT`].
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

    /// The context of a request, created if absent.
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
