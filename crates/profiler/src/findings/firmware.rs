//! The electronics: costs of commands, buffer, queue, and how far each part can be trusted.

use block::{Duration, Lba, Switch};
use drive::Spindle;
use drive::firmware::{BufferRules, Bus, Overheads, QueueRules};

use crate::clock::PlatterClock;
use crate::confidence::Confidence;

/// The electronics, as found.
#[derive(Clone, Debug, PartialEq)]
pub struct Firmware {
    /// What commands cost; see the module for how sums are split. Zero for writes if none were
    /// allowed.
    pub overheads: Overheads,
    /// The bus.
    pub bus: Bus,
    /// The buffer. The write watermark is only looked for where no writes are done early.
    pub buffer: BufferRules,
    /// Whether there are just so many segments.
    pub segments: CountBound,
    /// What is known of the write buffer, if writes are allowed.
    pub write_buffer: Option<WriteBuffer>,
    /// The queue.
    pub queue: QueueRules,
    /// Whether a seek without transfer moves the arm, if that was tried.
    pub seek_command: Option<Switch>,
    /// The chunk sizes of sequential reads that keep the full rate.
    pub chunk: Option<ChunkSizes>,
    /// How far each part can be trusted.
    pub confidence: FirmwareConfidence,
}

/// When written data are on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBuffer {
    /// Whether writes that must be on the medium are.
    pub durable: Honesty,
    /// When a write that counts as done is destaged.
    pub destage: Destage,
}

/// Whether a write with FUA ends when its blocks are on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Honesty {
    /// It ends a constant time after its block has passed under the head.
    Honest,
    /// It ends whenever the buffer has it.
    Lies,
    /// Neither fits.
    Unknown,
}

/// When the write buffer is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destage {
    /// As soon as the arm is idle.
    Idle,
    /// Later.
    Later,
    /// There is nothing to destage.
    None,
}

/// The confidence of each part: fresh checks that came true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirmwareConfidence {
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
    /// Whether reading begins anywhere on a track; `None` behind a bus that hides it.
    pub zero_latency_read: Option<Confidence>,
    /// The same for writing.
    pub zero_latency_write: Confidence,
    /// The order of the queue.
    pub queue: Confidence,
    /// The chunk sizes.
    pub chunk: Confidence,
}

/// What chunks are good for.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkSizes {
    /// Where they were tried.
    pub at: Lba,
    /// Point a: the least size, in blocks, with the full rate.
    pub least: u32,
    /// Point b: the greatest size up to which it stays; `None` if no larger one was slower.
    pub most: Option<u32>,
    /// All that was tried, in the order of size.
    pub curve: Vec<ChunkRate>,
}

/// One size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChunkRate {
    /// Blocks of a command.
    pub blocks: u32,
    /// Blocks per second.
    pub rate: f64,
}

/// Whether a number was found, or only that it is not smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountBound {
    /// Just so many.
    Exactly,
    /// As many or more.
    AtLeast,
}

impl Firmware {
    /// From a block's end under the head to the end of its one-block read.
    pub fn lag(&self) -> Duration {
        self.bus.read_block + self.overheads.read_reselect + self.overheads.read_completion
    }

    /// The spindle of a believed profile: what is under the heads, not what reads just end.
    pub fn spindle(&self, clock: &PlatterClock) -> Spindle {
        let seen = clock.spindle();
        let at = clock.anchored_at();
        let turning = Spindle::from_period_ps(seen.period_ps());
        turning.with_phase(seen.angle_at(at + self.lag()) - turning.angle_at(at))
    }
}
