//! Regions in memory, and their refusals.

use proptest::prelude::*;

use super::*;
use crate::checksums::PAGES;

/// Storage in memory.
#[derive(Clone, Debug, Default)]
struct Bytes(Vec<u8>);

impl Medium for Bytes {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.0.resize(bytes as usize, 0);
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let from = self.0.get(offset as usize..offset as usize + bytes.len());
        bytes.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn identity() -> Identity {
    Identity {
        drive: "disk".to_owned(),
        volume: "data".to_owned(),
        block_bytes: 512,
        offset: 1 << 20,
        capacity: 1 << 40,
    }
}

fn made(length: u64) -> Region<Bytes> {
    Region::create(Bytes::default(), identity(), length, 7).expect("memory")
}

#[test]
fn a_region_has_at_most_a_fiftieth_of_a_percent() {
    for length in [1_u64 << 30, 10 << 30, 20_000_000_000_000] {
        let share = bytes_for(length) as f64 / length as f64;
        assert!(share <= 0.000_2, "{share} of {length} bytes");
    }
    assert_eq!(bytes_for(20_000_000_000_000), 3_955_176_448);
}

#[test]
fn the_region_of_another_volume_is_refused() {
    let Region { medium, .. } = made(1 << 22);
    let opened = |expected: &Identity| {
        let opened = Region::open(medium.clone(), expected, 1 << 22);
        opened.map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(opened(&identity()), Ok(()));
    let others = [
        Identity {
            volume: "other".to_owned(),
            ..identity()
        },
        Identity {
            drive: "other".to_owned(),
            ..identity()
        },
        Identity {
            offset: 0,
            ..identity()
        },
        Identity {
            capacity: 1 << 41,
            ..identity()
        },
        Identity {
            block_bytes: 4096,
            ..identity()
        },
    ];
    for other in others {
        let refused = opened(&other).expect_err("another volume");
        assert!(refused.contains("expected those of volume"), "{refused}");
    }
    let empty = Region::open(Bytes::default(), &identity(), 1 << 22);
    assert!(matches!(empty, Err(RegionError::Magic)));
}

#[test]
fn intents_survive_and_damage_of_the_region_is_no_damage_of_the_volume() {
    let length = 5_000 << 20;
    let mut region = made(length);
    let all = [
        (0, 1 << 3),
        (671, 0b11 << 7),
        (672, ALL_PAGES),
        (64_511, 1),
        (64_512, 2),
        (79_999, ALL_PAGES),
    ];
    region.intend(&all).expect("memory");
    let sums = [5; PAGES];
    for chunk in [0, 41, 42, 64_512, 79_999] {
        let first = region.verify(chunk, &sums, 0).expect("memory");
        assert_eq!(first, Verified::Adopted);
        let again = region.verify(chunk, &sums, 0).expect("memory");
        assert_eq!(again, Verified::Sound);
    }
    let (mut region, intents) = Region::open(region.medium, &identity(), length).expect("its own");
    assert_eq!(intents, all);
    region.clear(&[64_511, 79_999]).expect("memory");
    let other = [6; PAGES];
    assert_eq!(
        region.verify(0, &other, 0).expect("memory"),
        Verified::Damaged(u16::MAX)
    );
    // A flipped bit of the region: its chunks have no checksums.
    region.medium.0[3 * SECTOR + 3] ^= 1;
    assert_eq!(
        region.verify(0, &sums, 0).expect("memory"),
        Verified::Adopted
    );
    assert_eq!(region.damaged_sectors(), 1);
    assert_eq!(
        region.verify(42, &sums, 0).expect("memory"),
        Verified::Sound
    );
    // A damaged sector of codes: all writes of its marked mebibytes may have been interrupted.
    region.medium.0[2 * SECTOR + 9] ^= 1;
    let (mut region, intents) = Region::open(region.medium, &identity(), length).expect("its own");
    let doubted: Vec<u64> = intents.iter().map(|(chunk, _)| *chunk).collect();
    let expected = (0..16).chain(656..673).chain([64_512]);
    assert_eq!(doubted, expected.collect::<Vec<_>>());
    assert_eq!(intents[1], (1, ALL_PAGES));
    // The same while it is in use: no other intent of the sector is lost.
    region.clear(&doubted).expect("memory");
    region.intend(&[(7, 1)]).expect("memory");
    region.medium.0[2 * SECTOR + 9] ^= 1;
    region.intend(&[(8, 1)]).expect("memory");
    let (mut region, intents) = Region::open(region.medium, &identity(), length).expect("its own");
    assert_eq!(intents.len(), 16);
    // A damaged sector of marks: the codes are there.
    region.medium.0[SECTOR + 9] ^= 1;
    region.intend(&[(100, 1)]).expect("memory");
    let (_, intents) = Region::open(region.medium, &identity(), length).expect("its own");
    assert!(intents.contains(&(100, 1)) && intents.contains(&(8, 1)));
}

/// A power cut kept the code of a removed intent and lost its mark: the next intent of the mebibyte does not bring it
/// back.
#[test]
fn a_code_without_its_mark_is_of_no_write() {
    let mut region = made(4 << 20);
    region.intend(&[(3, 1)]).expect("memory");
    let codes = region.medium.0[2 * SECTOR..3 * SECTOR].to_vec();
    region.clear(&[3]).expect("memory");
    region.medium.0[2 * SECTOR..3 * SECTOR].copy_from_slice(&codes);
    region.intend(&[(4, 2), (20, 4)]).expect("memory");
    let (_, intents) = Region::open(region.medium, &identity(), 4 << 20).expect("its own");
    assert_eq!(intents, [(4, 2), (20, 4)]);
}

#[test]
fn a_flip_beside_an_interrupted_page_is_found() {
    let mut region = made(1 << 20);
    let sums: [u32; PAGES] = std::array::from_fn(|page| page as u32 + 7);
    region.verify(0, &sums, 0).expect("memory");
    let (mut torn, mut flipped) = (sums, sums);
    torn[3] = 99;
    flipped[3] = 99;
    flipped[9] = 98;
    let found = region.verify(0, &flipped, 1 << 3).expect("memory");
    assert_eq!(found, Verified::Damaged(1 << 9));
    let adopted = region.verify(0, &torn, 1 << 3).expect("memory");
    assert_eq!(adopted, Verified::AdoptedAfterCrash(1 << 3));
    assert_eq!(region.verify(0, &torn, 0).expect("memory"), Verified::Sound);
    let whole = region.verify(0, &sums, ALL_PAGES).expect("memory");
    assert_eq!(whole, Verified::AdoptedAfterCrash(ALL_PAGES));
}

#[test]
fn pages_beside_unreadable_ones_are_compared_while_the_record_guards_them() {
    let mut region = made(1 << 20);
    let sums: [u32; PAGES] = std::array::from_fn(|page| page as u32 + 7);
    region.verify(0, &sums, 0).expect("memory");
    let mut read = sums;
    let mut compared = |read: &[u32; PAGES], doubted: u16, unreadable: u16| {
        region
            .verify_beside(0, read, (doubted, unreadable))
            .expect("memory")
    };
    (read[2], read[5]) = (0, 0);
    assert_eq!(compared(&read, 0, 0b10_0100), Verified::SoundBeside);
    assert_eq!(compared(&read, 1, 0b10_0100), Verified::SoundBeside);
    assert_eq!(compared(&read, 0, 0b11_0100), Verified::Unverified);
    read[9] = 1;
    let found = compared(&read, 0, 0b10_0100);
    assert!(
        matches!(found, Verified::Damaged(pages) if pages >> 9 & 1 == 1 && pages & 0b10_0100 == 0)
    );
    // Nothing is adopted where a write was interrupted.
    assert_eq!(
        compared(&read, 1 << 9, 1 << 2 | 1 << 5),
        Verified::Unverified
    );
    read[5] = sums[5];
    assert_eq!(compared(&read, 1 << 9, 1 << 2), Verified::SoundBeside);
    assert_eq!(
        compared(&sums, 0, 1 << 2),
        Verified::SoundBeside,
        "the record is the old one"
    );
}

#[test]
fn the_region_of_an_older_version_is_refused() {
    let mut medium = made(1 << 20).medium;
    medium.0[8] = 1;
    let refused = Region::open(medium, &identity(), 1 << 20).err();
    assert_eq!(
        refused.expect("an old one").to_string(),
        "byte 8: version 1 of a region of checksums: expected 2. Remove the file: the next scrub builds new ones"
    );
}

#[test]
fn only_an_empty_file_and_a_header_that_was_never_written_are_unfinished() {
    let is_unfinished = |bytes: Vec<u8>| Region::is_unfinished(&Bytes(bytes)).expect("memory");
    assert!(is_unfinished(Vec::new()) && is_unfinished(vec![0; 512]));
    let mut one = vec![0; 512];
    one[511] = 1;
    // Zeroes may be the begin of an image.
    assert!(!is_unfinished(one) && !is_unfinished(vec![0; 1024]));
    // A crash after the header: what is cut off is empty.
    let mut region = made(1 << 22);
    region.verify(3, &[5; PAGES], 0).expect("memory");
    region.medium.0.truncate(512);
    let (mut region, intents) = Region::open(region.medium, &identity(), 1 << 22).expect("its own");
    assert_eq!(intents, []);
    assert_eq!(region.record(3).expect("memory"), Record::Nothing);
}

#[test]
fn intents_past_a_shorter_end_are_removed_without_an_error() {
    let mut region = made(100 << 20);
    region.intend(&[(3, 1), (1599, 1)]).expect("memory");
    region.resize(10 << 20).expect("memory");
    region.clear(&[3, 1599, 5000]).expect("memory");
    let (_, intents) = Region::open(region.medium, &identity(), 10 << 20).expect("its own");
    assert_eq!(intents, []);
}

#[test]
fn chunks_at_a_changed_end_have_no_checksum() {
    let mut region = made(4 << 20);
    let sums = [5; PAGES];
    for chunk in 0..64 {
        region.verify(chunk, &sums, 0).expect("memory");
    }
    region.resize((2 << 20) + 512).expect("memory");
    assert!(matches!(
        region.record(31).expect("memory"),
        Record::Whole(_)
    ));
    assert_eq!(region.record(32).expect("memory"), Record::Nothing);
    let (mut region, _) = Region::open(region.medium, &identity(), 4 << 20).expect("its own");
    for chunk in 32..64 {
        assert_eq!(region.record(chunk).expect("memory"), Record::Nothing);
    }
    assert!(matches!(
        region.record(31).expect("memory"),
        Record::Whole(_)
    ));
}

proptest! {
    #[test]
    fn any_bytes_are_a_region_or_one_error(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        if let Err(error) = Region::open(Bytes(bytes), &identity(), 1 << 20) {
            prop_assert!(error.to_string().contains("expected"));
        }
    }

    #[test]
    fn a_damaged_header_is_refused(place in 0..CONTENTS, bit in 0..8_u32) {
        let mut medium = made(1 << 20).medium;
        medium.0[place] ^= 1 << bit;
        let refused = Region::open(medium, &identity(), 1 << 20).err();
        prop_assert!(refused.expect("damaged").to_string().contains("expected"));
    }
}
