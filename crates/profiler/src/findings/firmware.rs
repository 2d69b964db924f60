//! The electronics: costs of commands, buffer, queue, and the confidence of each part.

use block::{Duration, Lba, Switch};
use drive::Spindle;
use drive::firmware::{BufferRules, Bus, Overheads, QueueRules};

use crate::clock::PlatterClock;
use crate::confidence::Confidence;

/// The findings about the electronics.
#[derive(Clone, Debug, PartialEq)]
pub struct Firmware {
    /// Overheads of commands; the module describes how sums are split. Zero for writes without
    /// write permission.
    pub overheads: Overheads,
    /// The time between blocks of one track that was measured with the arm, and is in the overheads of reads: by reads alone.
    pub of_arm: Option<Duration>,
    /// The bus.
    pub bus: Bus,
    /// The buffer. The write watermark is only measured on drives without early writes.
    pub buffer: BufferRules,
    /// Whether the number of segments is exact.
    pub segments: CountBound,
    /// The write buffer, if writes are permitted.
    pub write_buffer: Option<WriteBuffer>,
    /// The queue.
    pub queue: QueueRules,
    /// Whether a seek without transfer moves the arm, if that was tested.
    pub seek_command: Option<Switch>,
    /// The chunk sizes of sequential reads at full rate.
    pub chunk: Option<ChunkSizes>,
    /// The confidence of each part.
    pub confidence: FirmwareConfidence,
    /// Whether all parts were looked for: times of commands and bus come first, and predict the head.
    pub is_whole: bool,
}

impl Firmware {
    /// The arm was measured again, with such a time between blocks of one track: what seeks are shorter by, overheads are longer
    /// by.
    pub(crate) fn follow_arm(&mut self, overhead: Duration) {
        let Some(before) = self.of_arm else {
            return;
        };
        self.of_arm = Some(overhead);
        let longer = overhead.as_nanos() as i64 - before.as_nanos() as i64;
        let miss = &mut self.overheads.read_miss;
        for time in [&mut miss.read, &mut miss.write] {
            *time = time.adjusted(longer);
        }
    }
}

/// The times at which written data reach the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBuffer {
    /// Whether durable writes reach the medium.
    pub durable: Honesty,
    /// The time at which early writes are destaged.
    pub destage: Destage,
}

/// Whether a write with FUA ends when its blocks are on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Honesty {
    /// It ends a constant time after its block has passed under the head.
    Honest,
    /// It ends when its data are in the buffer.
    Lies,
    /// Neither fits.
    Unknown,
}

/// The time at which the write buffer is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destage {
    /// As soon as the arm is idle.
    Idle,
    /// Later than that.
    Later,
    /// There is nothing to destage.
    None,
}

/// The confidence of each part, from fresh checks.
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
    /// Amount of look-ahead.
    pub look_ahead: Confidence,
    /// Kinds of early writes.
    pub write_back: Confidence,
    /// Whether reading starts anywhere on a track; `None` if the bus hides it.
    pub zero_latency_read: Option<Confidence>,
    /// Whether writing starts anywhere on a track.
    pub zero_latency_write: Confidence,
    /// The order of the queue.
    pub queue: Confidence,
    /// The chunk sizes.
    pub chunk: Confidence,
}

/// The range of chunk sizes with the full rate.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkSizes {
    /// The position of the measurement.
    pub at: Lba,
    /// Point a: the smallest size with the full rate, in blocks.
    pub least: u32,
    /// Point b: the largest size with the full rate; `None` if no larger one was slower.
    pub most: Option<u32>,
    /// All measurements, in order of size.
    pub curve: Vec<ChunkRate>,
}

/// The rate of one chunk size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChunkRate {
    /// Blocks per command.
    pub blocks: u32,
    /// Blocks per second.
    pub rate: f64,
}

/// Whether a measured number is exact or a lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountBound {
    /// The number is exact.
    Exactly,
    /// The number is a lower bound.
    AtLeast,
}

impl Firmware {
    /// Time from the end of a block under the head to the end of its one-block read.
    pub fn lag(&self) -> Duration {
        self.bus.read_block + self.overheads.read_reselect + self.overheads.read_completion
    }

    /// The spindle of a believed profile: its angles are those under the heads, not those of blocks
    /// whose reads end.
    pub fn spindle(&self, clock: &PlatterClock) -> Spindle {
        let seen = clock.spindle();
        let at = clock.anchored_at();
        let turning = Spindle::from_period_ps(seen.period_ps());
        turning.with_phase(seen.angle_at(at + self.lag()) - turning.angle_at(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::belief::defaults;

    #[test]
    fn an_arm_that_is_measured_again_leaves_the_times_of_whole_commands_as_they_are() {
        let micros = Duration::from_micros;
        let mut firmware = Firmware {
            overheads: defaults::overheads(),
            of_arm: Some(micros(900)),
            bus: Bus::default(),
            buffer: BufferRules::default(),
            segments: CountBound::Exactly,
            write_buffer: None,
            queue: defaults::queue(1),
            seek_command: None,
            chunk: None,
            confidence: FirmwareConfidence::default(),
            is_whole: true,
        };
        firmware.overheads.read_miss.read = micros(700);
        for (overhead, is) in [(900, 700), (400, 200), (450, 250)] {
            firmware.follow_arm(micros(overhead));
            assert_eq!(firmware.overheads.read_miss.read, micros(is));
        }
        // With cache control they are measured without the arm.
        firmware.of_arm = None;
        firmware.follow_arm(micros(900));
        assert_eq!(firmware.overheads.read_miss.read, micros(250));
    }
}
