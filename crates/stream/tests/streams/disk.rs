//! A made-up disk.

use block::{Duration, Lba};
use stream::admission::Rules;
use stream::{AccessTimes, Cylinders, HeadTimes, Rate, SeekBound, Tracks, WholeTracks, Zone};

pub const BLOCK: u64 = 4096;

/// How late the host may notice anything.
pub const LATENCY: Duration = Duration::from_millis(10);

/// Tracks of 200 blocks, ten to a cylinder.
#[derive(Debug)]
pub struct Flat;

impl Tracks for Flat {
    fn cylinder(&self, lba: Lba) -> u32 {
        (lba.0 / 2_000) as u32
    }

    fn track_start(&self, lba: Lba) -> Lba {
        Lba(lba.0 - lba.0 % 200)
    }

    fn track_end(&self, lba: Lba) -> Lba {
        Lba(lba.0 - lba.0 % 200 + 200)
    }
}

pub fn times() -> HeadTimes {
    let millis = Duration::from_millis;
    let points = [(0, millis(1)), (1_000, millis(4)), (100_000, millis(15))];
    let access = AccessTimes {
        overhead: Duration::from_micros(100),
        settle: millis(1),
    };
    HeadTimes {
        revolution: millis(8),
        read: access,
        write: access,
        seek: SeekBound::over(points).expect("there are points"),
        cylinders: 100_001,
        wander: 0,
        change: Duration::ZERO,
        foreground: millis(1),
        stall: Duration::ZERO,
    }
}

/// 819,200 bytes in 8 ms, and a millisecond to the next track.
pub fn zone() -> Zone {
    let rate = |bytes| Rate::new(bytes).expect("not zero");
    Zone {
        sustained: rate(91_000_000),
        tracks: Some(WholeTracks {
            bytes: 200 * BLOCK,
            time: Duration::from_millis(9),
            sustained: rate(91_000_000),
        }),
        cylinders: Cylinders {
            low: 0,
            high: 100_000,
        },
        stride: rate(200 * BLOCK),
    }
}

pub fn rules() -> Rules {
    Rules {
        foreground_permille: 0,
        latency: LATENCY,
        longest_round: Duration::from_secs(10),
        streams: 64,
    }
}
