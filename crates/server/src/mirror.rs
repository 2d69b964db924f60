//! Mirrored volumes: what lies on each leg before its data, and what follows from it at the start.
//!
//! ```text
//!   byte of a leg   0        4096       8192      16384              1 MiB
//!                   | unused | superblock, twice | marks of regions  | data, to the end of the mirror ...
//! ```
//!
//! Both legs have the same data at the same bytes. A superblock says which mirror a leg is of, and what each leg
//! was used for. It is written to the two places in turn, so that one of them is always whole. A mark says that
//! the legs may differ within a region: it is durable before a write goes to a leg, and removed later.

use block::Duration;

pub mod assembly;
pub mod bitmap;
pub mod rebuild;
pub mod regions;
pub mod storage;
pub mod superblock;

/// The first byte of the data on each leg. A choice: partitions begin there, too, so that data are aligned to
/// whatever sectors and stripes a disk has.
pub const DATA_OFFSET: u64 = 1 << 20;

/// Where the superblocks are. A choice: the first page of a disk may have a boot record.
pub const SLOTS: [u64; 2] = [4096, 8192];

/// Where the marks of regions begin. A choice: whole pages behind the superblocks.
pub const MARKS_OFFSET: u64 = 16384;

/// The smallest region in bytes. A choice: a copy of one takes a few milliseconds of a disk.
const LEAST_REGION: u64 = 1 << 20;

/// The most regions of a mirror. A choice: their marks take 133 KiB, and 20 TB have regions of 32 MiB, half of
/// those of Linux md.
const MOST_REGIONS: u64 = 1 << 20;

/// Bytes of a region of a mirror with so many bytes of data.
pub fn region_bytes(data: u64) -> u64 {
    data.div_ceil(MOST_REGIONS)
        .next_power_of_two()
        .max(LEAST_REGION)
}

/// By when a leg should be filled, and what may be paid for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RebuildRule {
    /// The time from its begin.
    pub deadline: Option<Duration>,
    /// The share of the time, in parts per million, that is paid while the deadline would be missed.
    pub paid_ppm: u32,
}
