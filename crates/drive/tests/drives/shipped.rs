//! Every shipped drive: it loads, its map can be inverted, its runs are those of the oracle.

use std::sync::LazyLock;

use block::{Lba, Sectors};
use drive::geometry::Turn;
use drive::{Angle, Profile, catalog};
use proptest::prelude::*;

use crate::oracle;

/// All of them, read once.
static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
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
            assert!(
                turned.turned(&[back]).turns().is_empty(),
                "turned there and back"
            );
        }
    }
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
