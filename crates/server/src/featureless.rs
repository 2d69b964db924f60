//! A belief of a drive without a profile: the number of blocks, and nothing else.
//!
//! Only policies that go by order or by block number make sense with it: see
//! [`Sight`](scheduler::Sight).

use document::DocumentError;
use drive::Profile;
use profiler::belief::kebab;

/// A profile of a device of at least `blocks` blocks.
///
/// # Errors
/// If the device would be too large, or has blocks of neither 512 nor 4096 bytes.
pub fn profile(name: &str, blocks: u64, block_bytes: u32) -> Result<Profile, DocumentError> {
    Profile::parse(&text(name, blocks, block_bytes), "the featureless profile")
}

/// The text of the profile. Its name is that of the drive, in kebab case.
pub fn text(name: &str, blocks: u64, block_bytes: u32) -> String {
    let cylinders = blocks.div_ceil(TRACK).max(1);
    let mut text = TEMPLATE
        .replace("{name}", &kebab(name))
        .replace("{block_bytes}", &block_bytes.to_string())
        .replace("{blocks}", &(cylinders * TRACK).to_string())
        .replace("{cylinders}", &cylinders.to_string());
    for first in (0..cylinders).step_by(ZONE as usize) {
        let last = (first + ZONE).min(cylinders) - 1;
        let zone = ZONE_TEMPLATE
            .replace("{first}", &first.to_string())
            .replace("{last}", &last.to_string())
            .replace("{track}", &TRACK.to_string());
        text.push_str(&zone);
    }
    text
}

/// Blocks of a track, which has no meaning. A choice.
const TRACK: u64 = 4096;

/// Cylinders of a zone: profiles have less than 2^31 blocks in each.
const ZONE: u64 = (1 << 31) / TRACK - 1;

const TEMPLATE: &str = r#"
name = "{name}"
model = "{name}"
provenance = "invented"
origin = "a choice without meaning: nothing is known"
block_bytes = {block_bytes}
physical_block_bytes = {block_bytes}
blocks = {blocks}
actuators = 1

[spindle]
origin = "a choice without meaning"
rpm = 7200

[seek]
origin = "a choice without meaning"
head_switch_ms = 1
write_settle_ms = 0
read_points = [[1, 1], [2, 1]]

[overhead]
origin = "a choice without meaning"
read_hit_after_read_ms = 0
read_hit_after_write_ms = 0
read_miss_after_read_ms = 0
read_miss_after_write_ms = 0
write_hit_after_read_ms = 0
write_hit_after_write_ms = 0
write_miss_after_read_ms = 0
write_miss_after_write_ms = 0
read_completion_ms = 0
write_completion_ms = 0
read_reselect_ms = 0
write_reselect_ms = 0

[bus]
origin = "a choice without meaning"
read_block_ms = 0
write_block_ms = 0

[buffer]
origin = "a choice without meaning"
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
origin = "what Linux gives a disk"
depth = 64
order = "fcfs"

[layout]
origin = "a choice without meaning"
kind = "zoned"
surfaces = 1
cylinders = {cylinders}
head_order = "ascending"
sparing = "none"
"#;

const ZONE_TEMPLATE: &str = r#"
[[layout.zone]]
first_cylinder = {first}
last_cylinder = {last}
sectors_per_track = {track}
start_sectors = 0
track_skew_sectors = 0
cylinder_skew_sectors = 0
"#;

#[cfg(test)]
mod tests {
    use super::profile;

    #[test]
    fn it_has_at_least_the_blocks_that_there_are() {
        for (blocks, block_bytes) in [(1, 512), (4096, 512), (4097, 4096), (1 << 33, 512)] {
            let profile = profile("a-file", blocks, block_bytes).expect("a device");
            let sectors = profile.geometry.sectors().0;
            assert!(
                (blocks..blocks + super::TRACK).contains(&sectors),
                "{sectors}"
            );
            assert_eq!(profile.block_bytes, block_bytes);
        }
    }

    #[test]
    fn every_name_of_a_drive_is_one_of_a_profile() {
        let profile = profile("Disk_1.a", 1, 512).expect("a device");
        assert_eq!(profile.name, "disk-1-a");
    }
}
