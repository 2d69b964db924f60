//! Files of bitmaps: refusals, damage, and what a crash leaves.

use proptest::prelude::*;

use super::super::marks::tests::{Disk, LENGTH, identity};
use super::*;

fn created() -> BitmapFile<Disk> {
    let file = BitmapFile::create(
        Disk::default(),
        identity(),
        ("daily".to_owned(), LENGTH),
        77,
    );
    file.expect("memory")
}

fn reopened(medium: Disk) -> Result<Opened, String> {
    let opened = BitmapFile::open(medium, &identity(), LENGTH);
    opened
        .map(|(_, opened)| opened)
        .map_err(|error| error.to_string())
}

#[test]
fn a_file_tells_its_bitmap_and_marks() {
    let mut file = created();
    let last = LENGTH / CHUNK;
    file.mark(&[0, 5, 4063, 4064, last]).expect("memory");
    let (file, opened) = BitmapFile::open(file.medium, &identity(), LENGTH).expect("its own");
    assert_eq!((file.name(), file.number(), file.base()), ("daily", 77, 0));
    let chunks: Vec<u64> = opened.dirty.iter().collect();
    assert_eq!(chunks, [0, 5, 4063, 4064, last]);
    assert_eq!(opened.assumed, 0);
}

#[test]
fn what_is_no_bitmap_of_this_volume_is_refused() {
    for (bytes, problem) in [
        (Vec::new(), "could not be kept"),
        (vec![7; 4096], "no dirty bitmap"),
        (vec![0; 4096], "no dirty bitmap"),
    ] {
        let refused = reopened(Disk::of(bytes)).expect_err("refused");
        assert!(
            refused.contains(problem) && refused.contains("remove the file"),
            "{refused}"
        );
    }
    let mut file = created();
    file.header.identity.offset += 512;
    file.write_header().expect("memory");
    assert!(
        reopened(file.medium)
            .expect_err("refused")
            .contains("expected volume")
    );
    let mut file = created();
    file.medium.set_length(1024).expect("memory");
    assert!(
        reopened(file.medium)
            .expect_err("refused")
            .contains("cut off")
    );
}

#[test]
fn a_damaged_sector_stands_for_changes_of_its_chunks() {
    let mut file = created();
    file.mark(&[5, 4064]).expect("memory");
    let at = place(0, 0) * SECTOR as u64;
    file.medium.write(&[9], at + 3).expect("memory");
    let opened = reopened(file.medium).expect("its own");
    assert_eq!(opened.assumed, PER_SECTOR);
    assert_eq!(opened.dirty.count(), PER_SECTOR + 1);
}

proptest! {
    /// The parser of headers takes what it has written, and nothing that is damaged.
    #[test]
    fn headers_are_read_or_refused(at in 0..SECTOR, bit in 0..8_u32) {
        let whole = encode(&created().header);
        prop_assert_eq!(decode(&whole), Ok(created().header));
        let mut damaged = whole;
        damaged[at] ^= 1_u8 << bit;
        prop_assert!(decode(&damaged).is_err());
    }

    #[test]
    fn arbitrary_headers_are_survived(bytes in prop::collection::vec(any::<u8>(), 512)) {
        let mut medium = Disk::of(bytes);
        medium.write(MAGIC, 0).expect("memory");
        prop_assert!(reopened(medium).is_err());
    }
}
