//! What the drive's electronics cost and how they behave: the numbers of a profile.

use block::Duration;

/// A time that depends on the direction of the command before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AfterPrevious {
    /// The command before was a read.
    pub read: Duration,
    /// The command before was a write.
    pub write: Duration,
}

/// The time that the electronics take, by what they do (the DIXtrac set of DiskSim).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overheads {
    /// A read that the buffer answers: before the bus.
    pub read_hit: AfterPrevious,
    /// A read from the medium: before positioning.
    pub read_miss: AfterPrevious,
    /// A write that the buffer takes: before the bus.
    pub write_hit: AfterPrevious,
    /// A write that goes to the medium: before positioning.
    pub write_miss: AfterPrevious,
    /// After the last block of a read.
    pub read_completion: Duration,
    /// After the last block of a write.
    pub write_completion: Duration,
    /// Back to the bus before a read's data, where the drive left it while the arm moved (SCSI
    /// disconnection and reselection).
    pub read_reselect: Duration,
    /// Back to the bus before a write's data, while the arm already moves.
    pub write_reselect: Duration,
}

/// The host bus, seen from the drive: the slower of its two ends counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bus {
    /// One block to the host.
    pub read_block: Duration,
    /// One block from the host.
    pub write_block: Duration,
}

impl BufferRules {
    /// Blocks that all segments hold together.
    pub fn blocks(&self) -> u64 {
        u64::from(self.segments) * u64::from(self.segment_blocks)
    }

    /// Blocks that the segments for writes hold together.
    pub fn write_blocks(&self) -> u64 {
        u64::from(self.write_segments) * u64::from(self.segment_blocks)
    }
}

impl Bus {
    /// A bus of this rate both ways, in megabytes (10^6 bytes) a second, for blocks of so many bytes.
    pub fn at(rate: f64, block_bytes: u32) -> Bus {
        let block = Duration::from_nanos((f64::from(block_bytes) * 1e3 / rate).round() as u64);
        Bus {
            read_block: block,
            write_block: block,
        }
    }
}

/// Until where the drive goes on reading after the last block that was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LookAhead {
    /// It stops.
    #[default]
    None,
    /// Until the segment is full.
    Segment,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// To the end of the track; if the read continued the one before, of the next track.
    TrackIfSequential,
}

/// Which writes count as done once the buffer holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteBack {
    /// None: write-through.
    #[default]
    None,
    /// Those that continue the write that the buffer holds, and those that find it clean.
    Append,
    /// All, while the buffer has room.
    All,
}

/// The drive's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferRules {
    /// Segments; zero means that there is no buffer.
    pub segments: u32,
    /// Blocks in a segment.
    pub segment_blocks: u32,
    /// How many of the segments may hold written data.
    pub write_segments: u32,
    /// Whether reads still find data after it was written.
    pub read_written: bool,
    /// What is read ahead.
    pub look_ahead: LookAhead,
    /// At most how many blocks are read ahead; zero: as many as a segment holds. Where the
    /// look-ahead goes by whole tracks if sequential, it does not count.
    pub look_ahead_blocks: u32,
    /// Whether a full hit makes a look-ahead that had ended go on.
    pub look_ahead_on_hit: bool,
    /// Whether a head that waits for its sector keeps the blocks before it that pass by.
    pub read_on_arrival: bool,
    /// Whether reading begins with whichever sector of the track comes first.
    pub zero_latency_read: bool,
    /// The same for writing.
    pub zero_latency_write: bool,
    /// Which writes are done early.
    pub write_back: WriteBack,
    /// Whether each of them takes a segment of its own; else one that continues the write before
    /// shares its segment.
    pub segment_per_write: bool,
    /// In which order what they wrote goes to the medium.
    pub destage_order: QueueOrder,
    /// Whether all of it is there before the arm serves a later command; else such a command goes
    /// before what the arm has not begun.
    pub destage_first: bool,
    /// Whether a write to the medium that is larger than the segments for writes goes there in
    /// parts as large as these, each of which the drive takes from the host when the one before is
    /// on the medium; else it takes the data as they are wanted.
    pub writes_in_parts: bool,
    /// The share of a read, in 1/1000, that is in the buffer before the bus begins (the buffer full
    /// ratio of SCSI); at most what the buffer holds.
    pub read_watermark: u16,
    /// The share of a write, in 1/1000, that is in the buffer before the medium begins; at most
    /// what the buffer holds.
    pub write_watermark: u16,
}

/// The order in which the drive serves its own queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueOrder {
    /// As they came.
    #[default]
    Fcfs,
    /// Shortest positioning time first.
    Sptf,
    /// The same, less the time that a command has waited, weighed.
    AgedSptf,
}

/// How much of its waiting a command gets off its positioning time in the aged order: 6 ms for
/// each second (Worthington, Ganger, Patt 1994 compare several factors; ours is a choice).
const AGING_DIVISOR: u64 = 1000 / 6;

impl QueueOrder {
    /// What the order minimises, of something that takes so many nanoseconds and has waited.
    pub(crate) fn cost(self, nanos: u64, waited: Duration) -> u64 {
        match self {
            QueueOrder::Fcfs => 0,
            QueueOrder::Sptf => nanos,
            QueueOrder::AgedSptf => {
                // Shifted so that a long wait cannot take it below zero: an hour is 21.6 s.
                const SHIFT: u64 = 1 << 40;
                (nanos + SHIFT).saturating_sub(waited.as_nanos() / AGING_DIVISOR)
            }
        }
    }
}

/// The drive's own queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRules {
    /// Commands that the drive holds at once.
    pub depth: u32,
    /// Which is next.
    pub order: QueueOrder,
}
