//! The set of wanted blocks of the largest drive: what it takes, and its slices.

use block::Lba;
use drive::catalog;
use drive::geometry::Geometry;
use scheduler::freeblock::WantedBlocks;

use crate::drives::extent;

fn shipped(name: &str) -> (Geometry, u64) {
    let entry = catalog::find(name).expect("a shipped drive");
    let profile = entry.profile().expect("a valid profile");
    (Geometry::clone(&profile.geometry), profile.capacity_bytes())
}

/// The goal: 4 MiB for each TB at 20 TB, with bits for every region.
#[test]
fn twenty_terabytes_take_four_mebibytes_each() {
    let (geometry, capacity) = shipped("modern-20tb");
    let mut set = WantedBlocks::none(&geometry);
    // One block in each region: a region is at most 12 cylinders of one surface's 315.
    let mut regions = 0;
    for cylinder in (0..geometry.cylinders()).step_by(12) {
        let track = geometry.track_at(cylinder, 0).expect("a track");
        set.add(extent(track.first.0, 1)).expect("on the drive");
        regions += 1;
    }
    assert!(regions > 45_000);
    let limit = (4 << 20) * (capacity / 1_000_000) / 1_000_000;
    assert!((set.bytes() as u64) < limit, "{} of {limit}", set.bytes());
    assert!((set.bytes() as u64) > limit / 2, "no bits were written");
}

/// Everything and nothing are said in a moment, and cost next to nothing.
#[test]
fn the_largest_drive_is_filled_at_once() {
    let (geometry, _) = shipped("modern-20tb");
    let mut set = WantedBlocks::all(&geometry);
    assert_eq!(set.left(), geometry.sectors().0);
    assert_eq!(set.extents().count(), 1);
    assert!(set.bytes() < 4 << 20);
    // Slices of 11 blocks outside: what is removed is rounded down, what is added up.
    assert_eq!(set.remove(extent(0, 32)), 22);
    assert!(set.contains(Lba(22)) && !set.contains(Lba(21)));
    assert_eq!(set.add(extent(5, 1)).expect("on the drive"), 11);
    // The last slice of a track of 586 blocks has 3.
    assert_eq!(set.remove(extent(583, 3)), 3);
    let extents: Vec<_> = set.extents().take(2).collect();
    assert_eq!(extents, [extent(0, 11), extent(22, 561)]);
}

#[test]
fn small_drives_are_exact() {
    for name in ["quantum-atlas-10k", "seagate-cheetah-9lp", "hp-c2247a"] {
        let (geometry, _) = shipped(name);
        let mut set = WantedBlocks::all(&geometry);
        for block in [0, 1, geometry.sectors().0 / 2, geometry.sectors().0 - 1] {
            assert_eq!(set.remove(extent(block, 1)), 1, "{name}");
        }
    }
}

/// The planner takes the most sectors of a track from the table of zones.
#[test]
fn the_zones_tell_the_densest_track() {
    for entry in catalog::ALL {
        let profile = entry.profile().expect("a valid profile");
        let geometry = &profile.geometry;
        let zones = geometry.zones().into_iter();
        let most = zones.map(|zone| zone.sectors_per_track).max();
        // Every track of small drives, one in many of large ones.
        let step = (geometry.cylinders() / 2_000).max(1) as usize;
        let places = (0..geometry.cylinders())
            .step_by(step)
            .flat_map(|cylinder| (0..geometry.surfaces()).map(move |head| (cylinder, head)));
        let tracks = places.filter_map(|(cylinder, head)| geometry.track_at(cylinder, head));
        assert_eq!(
            tracks.map(|track| track.sectors).max(),
            most,
            "{}",
            entry.name
        );
    }
}
