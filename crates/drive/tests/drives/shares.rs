//! The share of an actuator: the same places under numbers of its own.

use block::{Extent, Lba, Sectors};
use drive::Profile;
use proptest::prelude::*;

use crate::oracle;
use crate::shipped::PROFILES;

/// Drives of two actuators: the shipped one, and others as if they had two.
fn duals() -> impl Iterator<Item = Profile> {
    PROFILES.iter().cloned().map(|mut profile| {
        profile.actuators = 2;
        profile
    })
}

#[test]
fn shares_are_all_blocks_in_their_order() {
    for dual in duals() {
        let shares = [0, 1].map(|actuator| dual.share_of(actuator));
        assert_eq!(shares[0].start(), Lba(0));
        assert_eq!(shares[0].end(), shares[1].start());
        assert_eq!(shares[1].end().0, dual.geometry.sectors().0);
        for (actuator, share) in shares.into_iter().enumerate() {
            let ends = [share.start(), share.last()];
            assert_eq!(ends.map(|lba| dual.actuator_of(lba)), [actuator; 2]);
            let alone = dual.of_actuator(actuator);
            assert_eq!(alone.actuators, 1);
            assert_eq!(alone.geometry.sectors(), share.length());
            let zones = alone.geometry.zones();
            assert_eq!(zones[0].first, Lba(0));
            assert!(zones.is_sorted_by(|one, next| one.first < next.first));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_block_of_a_share_lies_where_that_of_the_drive_lies(random in any::<u64>(), length in 1..4_000u64) {
        for dual in duals() {
            for actuator in 0..2 {
                let share = dual.share_of(actuator);
                let alone = dual.of_actuator(actuator).geometry;
                let blocks = share.length().0;
                for lba in [random % blocks, random % 50, blocks - 1 - random % 50] {
                    oracle::check_block(&alone, lba, 1 + length % 30);
                    let of_drive = Lba(share.start().0 + lba);
                    prop_assert_eq!(alone.locate(Lba(lba)), dual.geometry.locate(of_drive));
                }
                prop_assert_eq!(alone.locate(Lba(blocks)), None);
                let first = random % blocks;
                let length = length.min(blocks - first);
                let part = Extent::new(Lba(first), Sectors(length)).expect("blocks");
                let of_drive = Extent::new(Lba(share.start().0 + first), Sectors(length));
                let runs = dual.geometry.runs(of_drive.expect("blocks"));
                let moved = runs.map(|run| drive::geometry::TrackExtent {
                    first: Lba(run.first.0 - share.start().0),
                    ..run
                });
                prop_assert!(alone.runs(part).eq(moved));
            }
        }
    }
}
