//! Why a stream is refused, and what would be granted instead.

use block::Duration;

use crate::quota::Exceeded;
use crate::rate::Rate;

/// A stream is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}{}", at_rate(*.largest_rate), at_buffer(*.least_memory))]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The largest rate that would be granted now, with the same memory.
    pub largest_rate: Option<Rate>,
    /// The least memory in bytes with which the rate would be granted now.
    pub least_memory: Option<u64>,
}

/// Why a stream is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// No rate.
    #[error("a rate of 0: expected at least one byte in a second")]
    ZeroRate,
    /// There is no such priority.
    #[error("priority {priority}: expected 0, the highest, to 6")]
    Priority {
        /// What was asked for.
        priority: u8,
    },
    /// Faster than the medium, or than what is left of it besides the foreground's share.
    #[error("{rate} where the disk does {sustained}, of which {left_permille}/1000 are left")]
    AboveDisk {
        /// What was asked for.
        rate: Rate,
        /// What the zone sustains.
        sustained: Rate,
        /// What neither streams nor the foreground were promised.
        left_permille: u64,
    },
    /// Not even its own part fits.
    #[error("{memory} bytes of memory: the application's part and whole pages are {least}")]
    BufferTooSmall {
        /// What may be had.
        memory: u64,
        /// More than this is needed.
        least: u64,
    },
    /// The head would be late.
    #[error("a full buffer would last {lasts}, and rounds of {extents} extents need {needed}")]
    HeadTime {
        /// D: of the stream whose buffer is the shortest.
        lasts: Duration,
        /// What D would have to be.
        needed: Duration,
        /// Extents in a round, with it.
        extents: u64,
    },
    /// The present streams would not all be granted now.
    #[error(
        "the drive was found to take longer than when the present streams were granted: no others \
         before some of them end"
    )]
    Strained,
    /// A named limit is reached.
    #[error("{limit} streams may be held at once; wait for one to end")]
    Full {
        /// The limit.
        limit: usize,
    },
    /// Its user or its name has had all that it may.
    #[error("not allowed: {0}")]
    Quota(#[from] Exceeded),
}

fn at_rate(rate: Option<Rate>) -> String {
    rate.map_or_else(
        || String::from("; no rate would be granted now with this memory"),
        |rate| format!("; {rate} would be granted now"),
    )
}

fn at_buffer(memory: Option<u64>) -> String {
    memory.map_or_else(String::new, |bytes| {
        format!("; so would the rate with {bytes} bytes of memory")
    })
}
