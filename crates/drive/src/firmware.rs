//! The costs and rules of the drive's electronics, as a profile has them.

use block::{Direction, Duration};

/// A time that depends on the direction of the previous command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AfterPrevious {
    /// The time after a read.
    pub read: Duration,
    /// The time after a write.
    pub write: Duration,
}

/// The overheads of the electronics (the DIXtrac set of DiskSim).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overheads {
    /// A read hit: before the bus transfer.
    pub read_hit: AfterPrevious,
    /// A read miss: before positioning.
    pub read_miss: AfterPrevious,
    /// A write into the buffer: before the bus transfer.
    pub write_hit: AfterPrevious,
    /// A write to the medium: before positioning.
    pub write_miss: AfterPrevious,
    /// After the last block of a read.
    pub read_completion: Duration,
    /// After the last block of a write.
    pub write_completion: Duration,
    /// Reconnection to the bus before a read's data, if the drive disconnects while the arm moves
    /// (SCSI).
    pub read_reselect: Duration,
    /// Reconnection to the bus before a write's data, while the arm already moves.
    pub write_reselect: Duration,
}

impl Overheads {
    /// The electronics' time before the arm moves for a command of this direction, after one of the
    /// direction `previous`.
    pub fn before_positioning(&self, direction: Direction, previous: Direction) -> Duration {
        let overhead = match direction {
            Direction::Read => self.read_miss,
            Direction::Write => self.write_miss,
        };
        match previous {
            Direction::Read => overhead.read,
            Direction::Write => overhead.write,
        }
    }

    /// The same electronics, with commands that reach them `delay` nanoseconds later (sooner, if
    /// negative).
    #[must_use]
    pub fn reached_later(self, delay: i64) -> Overheads {
        let later = |overhead: AfterPrevious| AfterPrevious {
            read: overhead.read.adjusted(delay),
            write: overhead.write.adjusted(delay),
        };
        Overheads {
            read_miss: later(self.read_miss),
            write_miss: later(self.write_miss),
            ..self
        }
    }
}

/// The host bus, as the drive sees it: the slower of its two ends counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bus {
    /// The transfer time of one block to the host.
    pub read_block: Duration,
    /// The transfer time of one block from the host.
    pub write_block: Duration,
}

impl BufferRules {
    /// The number of blocks in all segments.
    pub fn blocks(&self) -> u64 {
        u64::from(self.segments) * u64::from(self.segment_blocks)
    }

    /// The number of blocks in the segments for writes.
    pub fn write_blocks(&self) -> u64 {
        u64::from(self.write_segments) * u64::from(self.segment_blocks)
    }
}

impl Bus {
    /// A bus of this rate in both directions, in megabytes (10^6 bytes) a second, for blocks of
    /// `block_bytes` bytes.
    pub fn at(rate: f64, block_bytes: u32) -> Bus {
        let block = Duration::from_nanos((f64::from(block_bytes) * 1e3 / rate).round() as u64);
        Bus {
            read_block: block,
            write_block: block,
        }
    }

    /// The rates of reads and writes in megabytes (10^6 bytes) a second, for blocks of `block_bytes` bytes; infinite
    /// for a bus that takes no time.
    pub fn rates(&self, block_bytes: u32) -> [f64; 2] {
        [self.read_block, self.write_block]
            .map(|block| f64::from(block_bytes) / block.as_secs_f64() / 1e6)
    }
}

/// The end of the drive's look-ahead after a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LookAhead {
    /// No look-ahead.
    #[default]
    None,
    /// The end of the segment.
    Segment,
    /// The end of the track.
    Track,
    /// The end of the cylinder.
    Cylinder,
    /// The end of the track; of the next track if the read continued the previous one.
    TrackIfSequential,
}

/// The writes that count as done once the buffer holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteBack {
    /// None: write-through.
    #[default]
    None,
    /// Writes that continue the buffered write, and writes to a clean buffer.
    Append,
    /// All writes, while the buffer has room.
    All,
}

/// The drive's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferRules {
    /// The number of segments; zero means no buffer.
    pub segments: u32,
    /// Blocks of a segment.
    pub segment_blocks: u32,
    /// The number of segments that may hold written data.
    pub write_segments: u32,
    /// Whether written blocks stay in a segment for later reads.
    pub read_written: bool,
    /// The end of the look-ahead.
    pub look_ahead: LookAhead,
    /// The longest look-ahead in blocks; zero: a segment. It does not limit
    /// [`LookAhead::TrackIfSequential`].
    pub look_ahead_blocks: u32,
    /// Whether a full hit resumes the segment's look-ahead if none is in progress.
    pub look_ahead_on_hit: bool,
    /// Whether a head that waits for its sector buffers the preceding blocks, which pass meanwhile.
    pub read_on_arrival: bool,
    /// Whether a read begins with the first sector of the track to arrive.
    pub zero_latency_read: bool,
    /// Whether a write begins with the first sector of the track to arrive.
    pub zero_latency_write: bool,
    /// The writes that count as done once the buffer holds them.
    pub write_back: WriteBack,
    /// Whether each buffered write occupies its own segment; else consecutive writes share one.
    pub segment_per_write: bool,
    /// The order of destaging.
    pub destage_order: QueueOrder,
    /// Whether an arm destages all its dirty data before it serves a later command at the medium.
    /// Else such a command goes before destaging that has not begun, unless both overlap.
    pub destage_first: bool,
    /// Whether a write to the medium that is larger than the segments for writes is transferred in
    /// parts of their size. Each part leaves the host once the previous one is on the medium. Else
    /// the transfer follows the medium.
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
    /// First come, first served.
    #[default]
    Fcfs,
    /// Shortest positioning time first.
    Sptf,
    /// Shortest positioning time minus a share of the waiting time.
    AgedSptf,
}

/// The positioning time that waiting offsets in the aged order: 6 ms for each second. A choice;
/// Worthington, Ganger, Patt 1994 compare several factors.
const AGING_DIVISOR: u64 = 1000 / 6;

impl QueueOrder {
    /// The cost that the order minimises, from a time in nanoseconds and the waiting time.
    pub(crate) fn cost(self, nanos: u64, waited: Duration) -> u64 {
        match self {
            QueueOrder::Fcfs => 0,
            QueueOrder::Sptf => nanos,
            QueueOrder::AgedSptf => {
                // The shift keeps the cost of a long wait above zero: an hour is 21.6 s.
                const SHIFT: u64 = 1 << 40;
                (nanos + SHIFT).saturating_sub(waited.as_nanos() / AGING_DIVISOR)
            }
        }
    }
}

/// The drive's own queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRules {
    /// The largest number of commands that the drive holds.
    pub depth: u32,
    /// The order of service.
    pub order: QueueOrder,
}
