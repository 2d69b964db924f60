//! Assumptions about unknown parts: rather too slow than too fast, so that a scheduler misses
//! opportunities and no sectors.

use block::Duration;
use drive::firmware::{AfterPrevious, Bus, Overheads, QueueOrder, QueueRules};

use crate::confidence::Confidence;
use crate::findings::{ArmTimings, SeekPoint};

/// Additional settling of writes. A choice: more than on the drives that we ship, which need up to
/// 0.65 ms.
pub const WRITE_SETTLE_NANOS: i64 = 1_000_000;

/// A slow arm: 3 ms to the next cylinder, 13 ms over a third, 25 ms over the whole stroke. A
/// choice: slower than the drives that we ship.
pub fn arm(cylinders: u32) -> ArmTimings {
    let point = |distance: u32, millis: u64| SeekPoint {
        distance,
        mean: Duration::from_millis(millis),
        deviation: Duration::ZERO,
        inward: Duration::from_millis(millis),
        outward: Duration::from_millis(millis),
    };
    let mut read = vec![point(1, 3)];
    for (distance, millis) in [(cylinders / 3, 13), (cylinders - 1, 25)] {
        if distance > read[read.len() - 1].distance {
            read.push(point(distance, millis));
        }
    }
    ArmTimings {
        read,
        write: Vec::new(),
        head_switch: Duration::from_millis(3),
        overhead: Duration::ZERO,
        write_settle_nanos: WRITE_SETTLE_NANOS,
        deviation: Duration::ZERO,
        confidence: Confidence::NONE,
    }
}

/// Slow electronics: 4 ms before and 0.5 ms after every command. A choice: slower than the drives
/// that we ship, which need up to 3.6 ms and 0.25 ms.
pub fn overheads() -> Overheads {
    let before = AfterPrevious {
        read: Duration::from_millis(4),
        write: Duration::from_millis(4),
    };
    Overheads {
        read_hit: before,
        read_miss: before,
        write_hit: before,
        write_miss: before,
        read_completion: Duration::from_micros(500),
        write_completion: Duration::from_micros(500),
        read_reselect: Duration::ZERO,
        write_reselect: Duration::ZERO,
    }
}

/// Overheads with the costs of reads for writes.
pub fn as_reads(overheads: Overheads) -> Overheads {
    Overheads {
        write_hit: overheads.read_miss,
        write_miss: overheads.read_miss,
        write_completion: overheads.read_completion,
        write_reselect: overheads.read_reselect,
        ..overheads
    }
}

/// A bus of 3.3 MB/s. A choice: slower than the drives that we ship, the slowest of which transfers
/// 3.4.
pub fn bus(block_bytes: u32) -> Bus {
    let block = Duration::from_nanos(u64::from(block_bytes) * 300);
    Bus {
        read_block: block,
        write_block: block,
    }
}

/// The declared depth, and no reordering.
pub fn queue(depth: u32) -> QueueRules {
    QueueRules {
        depth: depth.max(1),
        order: QueueOrder::Fcfs,
    }
}
