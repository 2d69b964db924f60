//! Profile files of random drives are the drives that were drawn.

use block::{Lba, Sectors};

use super::*;
use crate::Profile;

/// What is compared of a profile besides the places of blocks.
fn numbers(profile: &Profile) -> String {
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        profile.spindle,
        profile.seek,
        profile.head_switch,
        profile.write_settle_nanos,
        profile.overheads,
        profile.bus,
        profile.buffer,
        profile.queue,
    )
}

#[test]
fn a_file_is_the_drive_that_was_drawn() {
    let mut kinds = [0; 2];
    for seed in 0..60 {
        let drive = RandomDrive::draw(seed);
        let drawn = drive.profile().expect("a drive");
        let text = drive.text(seed).expect("a drive");
        let read = Profile::parse(&text, "random.toml").expect("a profile");
        assert_eq!(read.name, format!("random-{seed}"));
        assert_eq!(numbers(&read), numbers(&drawn), "seed {seed}");
        let Sectors(blocks) = drawn.geometry.sectors();
        assert_eq!(read.geometry.sectors(), drawn.geometry.sectors());
        for lba in (0..500).map(|part| Lba(blocks / 500 * part)) {
            let places = [&read, &drawn].map(|profile| profile.geometry.locate(lba).expect("one"));
            let [read, drawn] = places;
            assert_eq!(
                (read.cylinder, read.head, read.sector),
                (drawn.cylinder, drawn.head, drawn.sector)
            );
            let off = (read.angle - drawn.angle).revolutions();
            assert!(off.min(1.0 - off) < 1e-9, "seed {seed}, {lba:?}: {off}");
        }
        kinds[usize::from(matches!(drive.layout.order, TrackOrder::Bands(..)))] += 1;
    }
    assert!(kinds.iter().all(|count| *count > 10), "{kinds:?}");
}

#[test]
fn a_seed_is_always_the_same_drive_and_others_are_not() {
    let text = |seed| RandomDrive::draw(seed).text(1).expect("a drive");
    assert_eq!(text(7), text(7));
    assert_ne!(text(7), text(8));
}
