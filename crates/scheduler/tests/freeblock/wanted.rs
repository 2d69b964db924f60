//! The set of wanted blocks against a set of numbers.

use std::collections::BTreeSet;

use block::{Extent, Lba, Sectors};
use drive::geometry::Geometry;
use proptest::prelude::*;
use scheduler::freeblock::{DecodeError, WantedBlocks};

use crate::drives::{Moved, blocks, extent, geometry};

/// Something that is done to a set.
#[derive(Clone, Debug)]
enum Step {
    Add(u64, u64),
    Remove(u64, u64),
    Union(BTreeSet<u64>),
    Subtract(BTreeSet<u64>),
    AddAll,
    WriteAndRead,
}

fn steps(blocks_of_drive: u64) -> impl Strategy<Value = Vec<Step>> {
    let start = 0..blocks_of_drive;
    let length = prop_oneof![1u64..30, 1..=blocks_of_drive];
    let step = prop_oneof![
        4 => (start.clone(), length.clone()).prop_map(|(a, b)| Step::Add(a, b)),
        4 => (start, length).prop_map(|(a, b)| Step::Remove(a, b)),
        1 => blocks(blocks_of_drive).prop_map(Step::Union),
        1 => blocks(blocks_of_drive).prop_map(Step::Subtract),
        1 => Just(Step::AddAll),
        1 => Just(Step::WriteAndRead),
    ];
    proptest::collection::vec(step, 1..20)
}

fn case() -> impl Strategy<Value = (Geometry, Vec<Step>)> {
    geometry(Moved::Some).prop_flat_map(|geometry| {
        let steps = steps(geometry.sectors().0);
        (Just(geometry), steps)
    })
}

fn set_of(geometry: &Geometry, blocks: &BTreeSet<u64>) -> WantedBlocks {
    let mut set = WantedBlocks::none(geometry);
    for &block in blocks {
        set.add(extent(block, 1)).expect("a block of the drive");
    }
    set
}

/// The blocks of a set's extents, which must not touch.
fn listed(set: &WantedBlocks) -> BTreeSet<u64> {
    let mut blocks = BTreeSet::new();
    let mut end = None;
    for extent in set.extents() {
        assert!(end.is_none_or(|end| end < extent.start()), "{extent}");
        blocks.extend(extent.start().0..extent.end().0);
        end = Some(extent.end());
    }
    blocks
}

fn round_trip(set: &WantedBlocks) -> WantedBlocks {
    let mut bytes = Vec::new();
    set.encode(&mut bytes).expect("memory takes everything");
    WantedBlocks::decode(set.geometry(), &bytes[..]).expect("what was written")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// On these drives a slice is a block.
    #[test]
    fn a_set_is_a_set((geometry, steps) in case()) {
        let all = geometry.sectors().0;
        let (mut set, mut numbers) = (WantedBlocks::none(&geometry), BTreeSet::new());
        for step in steps {
            let before = numbers.len();
            match step {
                Step::Add(start, length) if start + length > all => {
                    let error = set.add(extent(start, length)).expect_err("past the end");
                    prop_assert_eq!(error.blocks, Sectors(all));
                }
                Step::Add(start, length) => {
                    numbers.extend(start..start + length);
                    let added = set.add(extent(start, length)).expect("on the drive");
                    prop_assert_eq!(added, (numbers.len() - before) as u64);
                }
                Step::Remove(start, length) => {
                    numbers.retain(|block| !(start..start + length).contains(block));
                    let removed = set.remove(extent(start, length));
                    prop_assert_eq!(removed, (before - numbers.len()) as u64);
                }
                Step::Union(other) => {
                    numbers.extend(&other);
                    let added = set.union_with(&set_of(&geometry, &other));
                    prop_assert_eq!(added, (numbers.len() - before) as u64);
                }
                Step::Subtract(other) => {
                    numbers = &numbers - &other;
                    let removed = set.subtract(&set_of(&geometry, &other));
                    prop_assert_eq!(removed, (before - numbers.len()) as u64);
                }
                Step::AddAll => {
                    numbers.extend(0..all);
                    set.union_with(&WantedBlocks::all(&geometry));
                }
                Step::WriteAndRead => set = round_trip(&set),
            }
            prop_assert_eq!(set.left(), numbers.len() as u64);
            for block in 0..all {
                prop_assert_eq!(set.contains(Lba(block)), numbers.contains(&block), "{}", block);
            }
            prop_assert!(!set.contains(Lba(all)));
        }
        prop_assert_eq!(listed(&set), numbers);
    }

    /// With slices of several blocks, too: what is added for an extent is what goes for it.
    #[test]
    fn an_extent_takes_all_slices_with_it_that_it_brought(
        (geometry, steps) in case(),
        bytes in 1_usize..3,
    ) {
        let all = geometry.sectors().0;
        let mut set = WantedBlocks::coarse(&geometry, bytes);
        for step in steps {
            match step {
                Step::Add(start, length) => {
                    let _ = set.add(extent(start, length));
                }
                Step::Remove(start, length) => {
                    let extent = extent(start, length.min(all - start));
                    let mut brought = WantedBlocks::coarse(&geometry, bytes);
                    brought.add(extent).expect("on the drive");
                    let left = &listed(&set) - &listed(&brought);
                    let gone = set.left() - left.len() as u64;
                    prop_assert_eq!(set.remove_touched(extent), gone);
                    prop_assert_eq!(listed(&set), left);
                }
                Step::AddAll => {
                    set.add(extent(0, all)).expect("on the drive");
                }
                Step::Union(_) | Step::Subtract(_) | Step::WriteAndRead => {}
            }
        }
    }

    /// Bytes that are not a set are refused, and never accepted as another set.
    #[test]
    fn changed_bytes_are_refused(
        geometry in geometry(Moved::None),
        seed in blocks(200),
        place in any::<proptest::sample::Index>(),
        bit in 0u32..8,
        cut in any::<bool>(),
    ) {
        let all = geometry.sectors().0;
        let set = set_of(&geometry, &seed.into_iter().filter(|block| *block < all).collect());
        let mut bytes = Vec::new();
        set.encode(&mut bytes).expect("memory takes everything");
        let place = place.index(bytes.len());
        if cut {
            bytes.truncate(place);
        } else {
            bytes[place] ^= 1 << bit;
        }
        prop_assert!(WantedBlocks::decode(&geometry, &bytes[..]).is_err());
    }
}

fn drive(blocks_per_track: u32) -> Geometry {
    use drive::geometry::zoned::{Description, ZoneDescription};
    Geometry::zoned(&Description {
        surfaces: 1,
        cylinders: 3,
        blocks: u64::from(3 * blocks_per_track),
        zones: vec![ZoneDescription {
            last_cylinder: 2,
            sectors_per_track: blocks_per_track,
            ..ZoneDescription::default()
        }],
        ..Description::default()
    })
    .expect("a layout")
}

/// The bytes of a set with these numbers, and a right checksum.
fn bytes_of(version: u32, blocks: u64, numbers: &[u64]) -> Vec<u8> {
    let mut bytes = b"HTWANTED".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(blocks.to_le_bytes());
    for &number in numbers {
        let mut rest = number;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    bytes.extend(sum.to_le_bytes());
    bytes
}

#[test]
fn each_fault_of_the_bytes_has_its_message() {
    let geometry = drive(20);
    let message = |bytes: &[u8]| match WantedBlocks::decode(&geometry, bytes) {
        Ok(set) => format!("{} blocks", set.left()),
        Err(error) => error.to_string(),
    };
    for (bytes, expected) in [
        (bytes_of(1, 60, &[3, 5, 0, 0]), "5 blocks"),
        (bytes_of(1, 60, &[0, 60, 0, 0]), "60 blocks"),
        (
            bytes_of(2, 60, &[0, 0]),
            "byte 8: version 2 of a set of wanted blocks: expected 1",
        ),
        (
            bytes_of(1, 61, &[0, 0]),
            "byte 12: wanted blocks of a drive of 61 blocks: expected one of 60",
        ),
        (
            bytes_of(1, 60, &[3, 58, 0, 0]),
            "byte 20: extent number 1 ends past the end of a drive of 60 blocks: expected it to end on the drive",
        ),
        (
            bytes_of(1, 60, &[3, 2, 4, u64::MAX, 0, 0]),
            "byte 22: extent number 2 ends past the end of a drive of 60 blocks: expected it to end on the drive",
        ),
        (
            bytes_of(1, 60, &[3, 2, 4, 0, 0, 0]),
            "byte 22: extent number 2 is empty: expected extents with something between them",
        ),
        (
            bytes_of(1, 60, &[3, 2, 0, 4, 0, 0]),
            "byte 22: extent number 2 touches the one before: expected extents with something between them",
        ),
    ] {
        assert_eq!(message(&bytes), expected);
    }
    let fine = bytes_of(1, 60, &[3, 5, 0, 0]);
    assert!(message(b"HTWANTER12345678").contains("expected \"HTWANTED\""));
    assert!(message(&fine[..22]).starts_with("byte 22: "));
    let mut wrong = fine.clone();
    *wrong.last_mut().expect("bytes") ^= 1;
    assert!(message(&wrong).starts_with("byte 24: checksum "));
    let mut long = fine[..20].to_vec();
    long.extend([0xff; 11]);
    assert!(matches!(
        WantedBlocks::decode(&geometry, &long[..]),
        Err(DecodeError::Number { at: 20 })
    ));
}

#[test]
fn past_the_end_is_refused_as_a_whole() {
    let geometry = drive(20);
    let mut set = WantedBlocks::none(&geometry);
    let error = set.add(extent(50, 11)).expect_err("past the end");
    assert_eq!(
        error.to_string(),
        "blocks 50..61 of a drive of 60 blocks: expected an extent that ends on the drive"
    );
    assert_eq!(set.left(), 0);
    // What was never there cannot be removed.
    set.add(extent(50, 10)).expect("the last blocks");
    assert_eq!(
        set.remove(Extent::new(Lba(55), Sectors(1 << 40)).expect("an extent")),
        5
    );
}
