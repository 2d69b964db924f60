//! A drive that is easy to calculate with: 10 ms a revolution, 20 sectors of 0.5 ms on a track.
//!
//! ```text
//!   blocks 0..20    cylinder 0, surface 0    skew 3 sectors to the next surface (switch 1 ms)
//!   blocks 20..40   cylinder 0, surface 1    skew 5 sectors to the next cylinder (seek 2 ms)
//!   blocks 40..60   cylinder 1, surface 0    ...
//! ```

use std::sync::Arc;

use block::{Action, Durability, Duration, Extent, Instant, Lba, Sectors};
use drive::Profile;
use drive::firmware::BufferRules;

/// One revolution.
pub const REVOLUTION: u64 = 10_000_000;
/// One sector under the head.
pub const SECTOR: u64 = 500_000;
/// Blocks on a track.
pub const TRACK: u64 = 20;
/// Surfaces.
pub const SURFACES: u64 = 2;
/// Cylinders.
pub const CYLINDERS: u64 = 40;
/// All blocks.
pub const BLOCKS: u64 = TRACK * SURFACES * CYLINDERS;

/// The drive without a buffer.
const SMALL: &str = r#"name = "small"
model = "Small"
year = 1990
provenance = "invented"
origin = "made up for these tests"
block_bytes = 512
physical_block_bytes = 512
blocks = 1600
actuators = 1

[spindle]
origin = "made up"
rpm = 6000

[seek]
origin = "made up"
head_switch_ms = 1.0
write_settle_ms = 0.2
read_points = [[1, 2.0], [39, 9.6]]

[overhead]
origin = "made up"
read_hit_after_read_ms = 0.1
read_hit_after_write_ms = 0.12
read_miss_after_read_ms = 0.3
read_miss_after_write_ms = 0.34
write_hit_after_read_ms = 0.2
write_hit_after_write_ms = 0.25
write_miss_after_read_ms = 0.4
write_miss_after_write_ms = 0.46
read_completion_ms = 0.05
write_completion_ms = 0.06
read_reselect_ms = 0
write_reselect_ms = 0

[bus]
origin = "made up"
read_block_ms = 0.1
write_block_ms = 0.1

[buffer]
origin = "made up"
segments = 0
segment_blocks = 0
write_segments = 0
read_written = false
look_ahead = "none"
look_ahead_blocks = 0
look_ahead_on_hit = false
read_on_arrival = false
zero_latency_read = false
zero_latency_write = false
write_back = "none"
read_watermark_permille = 0
write_watermark_permille = 0

[queue]
origin = "made up"
depth = 16
order = "fcfs"

[layout]
origin = "made up"
kind = "zoned"
surfaces = 2
cylinders = 40
head_order = "ascending"
sparing = "zone-end"

[[layout.zone]]
first_cylinder = 0
last_cylinder = 39
sectors_per_track = 20
start_sectors = 0
track_skew_sectors = 3
cylinder_skew_sectors = 5
"#;

/// The drive as it is above.
pub fn bare() -> Profile {
    parse(SMALL)
}

/// The same with some of its lines replaced.
pub fn with_lines(lines: &[(&str, &str)]) -> Profile {
    let mut text = SMALL.to_owned();
    for (old, new) in lines {
        assert!(text.contains(old), "no line \"{old}\"");
        text = text.replace(old, new);
    }
    parse(&text)
}

/// The same with a buffer of four segments of 64 blocks, changed as `rules` says.
pub fn buffered(rules: impl FnOnce(&mut BufferRules)) -> Profile {
    let mut profile = bare();
    profile.buffer.segments = 4;
    profile.buffer.segment_blocks = 64;
    profile.buffer.write_segments = 2;
    profile.buffer.read_written = true;
    rules(&mut profile.buffer);
    profile
}

fn parse(text: &str) -> Profile {
    Profile::parse(text, "small.toml").expect("a valid profile")
}

/// Shares a profile.
pub fn arc(profile: Profile) -> Arc<Profile> {
    Arc::new(profile)
}

pub fn extent(start: u64, blocks: u64) -> Extent {
    Extent::new(Lba(start), Sectors(blocks)).expect("a valid extent")
}

pub fn read(start: u64, blocks: u64) -> Action {
    Action::Read {
        extent: extent(start, blocks),
        durability: Durability::Volatile,
    }
}

pub fn read_medium(start: u64, blocks: u64) -> Action {
    Action::Read {
        extent: extent(start, blocks),
        durability: Durability::Durable,
    }
}

pub fn write(start: u64, blocks: u64) -> Action {
    Action::Write {
        extent: extent(start, blocks),
        durability: Durability::Volatile,
    }
}

pub fn write_medium(start: u64, blocks: u64) -> Action {
    Action::Write {
        extent: extent(start, blocks),
        durability: Durability::Durable,
    }
}

pub fn seek(to: u64) -> Action {
    Action::Seek { to: Lba(to) }
}

pub fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// The moment so many microseconds after the beginning.
pub fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}
