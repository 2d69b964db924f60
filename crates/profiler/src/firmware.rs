//! What the electronics do, and what they cost.

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

/// The throughput of reads by their size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk {
    /// (blocks of a read, bytes a second), by ascending size.
    pub rates: Vec<(u32, f64)>,
}
