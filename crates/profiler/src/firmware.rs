//! What the electronics do, and what they cost.

use block::Lba;
use drive::firmware::{BufferRules, Bus, Overheads, QueueRules};

use crate::confidence::Confidence;

/// The electronics, as far as they show in the times of commands.
#[derive(Clone, Debug, PartialEq)]
pub struct Firmware {
    /// What commands cost; zero for writes if none were allowed.
    pub overheads: Overheads,
    /// The host bus.
    pub bus: Bus,
    /// The buffer.
    pub buffer: BufferRules,
    /// The drive's own queue.
    pub queue: QueueRules,
    /// How large reads have to be.
    pub chunk: Option<Chunk>,
    /// How far each part can be trusted.
    pub confidence: Parts,
}

/// The confidence of each part: fresh checks that came true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Overheads of reads from the medium.
    pub read_miss: Confidence,
    /// Overheads of writes to the medium.
    pub write_miss: Confidence,
    /// Answers of the buffer: overhead and bus.
    pub hits: Confidence,
    /// Number and size of the segments.
    pub segments: Confidence,
    /// What is read ahead.
    pub look_ahead: Confidence,
    /// Which writes are done early.
    pub write_back: Confidence,
    /// Whether reading begins anywhere on a track.
    pub zero_latency_read: Confidence,
    /// The same for writing.
    pub zero_latency_write: Confidence,
    /// The order of the queue.
    pub queue: Confidence,
    /// The chunk sizes.
    pub chunk: Confidence,
}

/// The sizes of sequential reads that keep the full rate (points a and b of Virtual I/O's Figure 3).
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// Where they were tried.
    pub at: Lba,
    /// Point a: the least size, in blocks, with the full rate.
    pub least: u32,
    /// Point b: the greatest size up to which it stays; `None` if no larger one was slower.
    pub most: Option<u32>,
    /// All that was tried, in the order of size.
    pub curve: Vec<Rate>,
}

/// One size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Blocks of a command.
    pub blocks: u32,
    /// Blocks per second.
    pub rate: f64,
}
