//! Every shipped drive: it loads, its map can be inverted, its runs are those of the oracle.

use std::sync::LazyLock;

use block::{Lba, Sectors};
use drive::geometry::Turn;
use drive::{Angle, Profile, Provenance, catalog};
use proptest::prelude::*;

use crate::oracle;

/// All of them, read once.
pub static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    let entries = catalog::ALL.iter();
    entries
        .map(|entry| match entry.profile() {
            Ok(profile) => profile,
            Err(error) => panic!("{error}"),
        })
        .collect()
});

#[test]
fn every_shipped_drive_loads_under_its_name() {
    for (entry, profile) in catalog::ALL.iter().zip(PROFILES.iter()) {
        assert_eq!(profile.name, entry.name);
        assert!(profile.origins.len() >= 8, "{}", entry.name);
        let geometry = &profile.geometry;
        assert!(
            geometry.tracks() >= u64::from(geometry.cylinders()),
            "{}",
            entry.name
        );
        assert_eq!(geometry.locate(Lba(geometry.sectors().0)), None);
        assert_eq!(geometry.lba_at(geometry.cylinders(), 0, 0), None);
        assert_eq!(geometry.lba_at(0, geometry.surfaces(), 0), None);
        let seek = |distance| profile.seek.read().time(distance);
        assert!(seek(1) < seek(geometry.cylinders() - 1), "{}", entry.name);
    }
    let names: Vec<_> = catalog::ALL.iter().map(|entry| entry.name).collect();
    assert!(names.is_sorted());
}

#[test]
fn an_unknown_drive_is_refused_with_a_near_name() {
    for (name, near) in [
        ("quantum-atlas-10", Some("quantum-atlas-10k")),
        ("seagate-cheeta-9lp", Some("seagate-cheetah-9lp")),
        ("c3323a", Some("hp-c3323a")),
        ("floppy", None),
    ] {
        let error = catalog::find(name).expect_err("not a drive");
        assert_eq!(error.near, near, "{name}");
        assert!(error.to_string().contains(name));
    }
}

#[test]
fn boundaries_of_zones_are_like_any_other_block() {
    for profile in PROFILES.iter() {
        let geometry = &profile.geometry;
        let Sectors(blocks) = geometry.sectors();
        let mut edges: Vec<u64> = geometry.zones().iter().map(|zone| zone.first.0).collect();
        assert!(edges.is_sorted() && edges[0] == 0, "{}", profile.name);
        edges.push(blocks);
        for edge in edges {
            for lba in edge.saturating_sub(3)..(edge + 3).min(blocks) {
                oracle::check_block(geometry, lba, 17);
            }
        }
    }
}

#[test]
fn a_turn_moves_the_blocks_of_its_run_and_no_others() {
    for profile in PROFILES.iter() {
        let geometry = &profile.geometry;
        let Sectors(blocks) = geometry.sectors();
        let middle = Lba(blocks / 2);
        for (level, at) in geometry
            .path_of(middle)
            .expect("a block")
            .into_iter()
            .enumerate()
        {
            let (start, step) = (Angle::fraction(1, 7), Angle::fraction(1, 1009));
            let turn = Turn {
                group: at.group,
                run: at.run,
                start,
                step,
            };
            let turned = geometry.turned(&[turn]);
            for lba in [Lba(0), Lba(1), middle, Lba(blocks / 3), Lba(blocks - 1)] {
                let before = geometry.locate(lba).expect("a block");
                let after = turned.locate(lba).expect("a block");
                let steps = geometry.path_of(lba).expect("a block");
                let same = steps
                    .iter()
                    .filter(|s| (s.group, s.run) == (at.group, at.run));
                let added = same.fold(Angle::ZERO, |sum, s| sum + start + step.times(s.repetition));
                assert_eq!(
                    after.angle,
                    before.angle + added,
                    "{} level {level}",
                    profile.name
                );
                assert_eq!((after.cylinder, after.head), (before.cylinder, before.head));
            }
            oracle::check_block(&turned, middle.0, 300);
            let back = Turn {
                start: Angle::ZERO - start,
                step: Angle::ZERO - step,
                ..turn
            };
            assert_eq!(
                turned.turned(&[back]).turns(),
                geometry.turns(),
                "turned there and back"
            );
        }
    }
}

/// The drives whose numbers were put together by hand.
fn by_hand() -> impl Iterator<Item = &'static Profile> {
    let hand = [Provenance::Approximate, Provenance::Extrapolated];
    let profiles = PROFILES.iter();
    profiles.filter(move |profile| hand.contains(&profile.provenance) && profile.source.is_none())
}

#[test]
fn drives_put_together_by_hand_have_the_published_size() {
    let expected = [
        ("hitachi-travelstar-80gn", 20_003_880_960, 68_060),
        ("modern-18tb-dual", 18_000_207_937_536, 9_899_820),
        ("modern-20tb", 20_000_588_955_648, 10_999_800),
        ("seagate-cheetah-18lp", 9_105_018_880, 60_276),
        ("seagate-st318437lw", 18_351_959_040, 60_386),
        ("toshiba-x300-5tb", 5_000_981_078_016, 3_279_150),
        ("wd-caviar-wd400bb", 40_020_664_320, 132_700),
    ];
    let sizes: Vec<_> = by_hand()
        .map(|profile| {
            let tracks = profile.geometry.tracks();
            (profile.name.as_str(), profile.capacity_bytes(), tracks)
        })
        .collect();
    assert_eq!(sizes, expected);
}

/// Sequential reading crosses from track to track without losing a revolution: the skew covers
/// the way of the arm or the switch of heads, and not much more.
#[test]
fn drives_put_together_by_hand_lose_no_revolution_between_tracks() {
    for profile in by_hand() {
        let geometry = &profile.geometry;
        let Sectors(blocks) = geometry.sectors();
        for part in 0..40 {
            let mut track = geometry.track_of(Lba(blocks / 40 * part)).expect("a track");
            for _ in 0..400 {
                let Some(next) = geometry.track_of(Lba(track.last.0 + 1)) else {
                    break;
                };
                let zone = next.sectors != track.sectors;
                let distance = next.cylinder.abs_diff(track.cylinder);
                let switch = profile.seek.write().time(distance).max(profile.head_switch);
                let gap = profile.spindle.time_of(next.start - track.start);
                // Between zones and between actuators a revolution may be lost.
                assert!(
                    zone || distance > 1000 || (gap >= switch && gap < switch * 5),
                    "{}: {gap} for {switch} from {track:?} to {next:?}",
                    profile.name
                );
                track = next;
            }
        }
    }
}

#[test]
fn each_actuator_has_half_of_the_blocks_and_of_the_surfaces() {
    let dual = PROFILES
        .iter()
        .find(|profile| profile.actuators == 2)
        .expect("a drive");
    let Sectors(blocks) = dual.geometry.sectors();
    for share in 0..1000 {
        for (first, heads) in [(0, 0..9), (blocks / 2, 9..18)] {
            let lba = first + blocks / 2 * share / 1000;
            let place = dual.geometry.locate(Lba(lba)).expect("a block");
            assert!(heads.contains(&place.head), "{lba}: {place:?}");
        }
    }
    let last = dual.geometry.locate(Lba(blocks / 2 - 1)).expect("a block");
    assert!(last.head < 9);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_block_of_any_drive(shares in proptest::collection::vec(any::<u64>(), 32), length in 1u64..6000) {
        for profile in PROFILES.iter() {
            let Sectors(blocks) = profile.geometry.sectors();
            for (index, share) in shares.iter().enumerate() {
                let length = if index == 0 { length } else { 1 + length % 20 };
                oracle::check_block(&profile.geometry, share % blocks, length);
            }
        }
    }
}
