//! The Cheetah 15K.5 against the address map that was read out of the real drive.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor};

use block::Lba;
use drive::catalog;

use crate::shared;

/// One line: `lbn L --> cyl C, head H, sect S, count N`.
fn parse(line: &str) -> Option<[u64; 5]> {
    let numbers: Vec<u64> = line
        .strip_prefix("lbn ")?
        .split([' ', ','])
        .filter_map(|word| word.parse().ok())
        .collect();
    numbers.try_into().ok()
}

#[test]
fn every_extent_of_the_raw_map_agrees() {
    let Some(shared) = shared::directory("the raw address map of the Cheetah 15K.5") else {
        return;
    };
    let path = shared.join("drives/seagate_st3146855fc_cheetah15k5/layout.mappings.xz");
    let mut file = BufReader::new(File::open(path).expect("the map"));
    let mut text = Vec::new();
    lzma_rs::xz_decompress(&mut file, &mut text).expect("an xz file");
    let entry = catalog::find("seagate-cheetah-15k5").expect("a shipped drive");
    let profile = entry.profile().expect("a shipped profile");
    let geometry = &profile.geometry;
    let (mut extents, mut wrong) = (0, Vec::new());
    for line in Cursor::new(text).lines() {
        let line = line.expect("text");
        let Some([lbn, cylinder, head, sector, count]) = parse(&line) else {
            continue;
        };
        extents += 1;
        let at = |lbn| {
            geometry.locate(Lba(lbn)).map(|p| {
                (
                    u64::from(p.cylinder),
                    u64::from(p.head),
                    u64::from(p.sector),
                )
            })
        };
        let ends = [at(lbn), at(lbn + count - 1)];
        if ends
            != [
                Some((cylinder, head, sector)),
                Some((cylinder, head, sector + count - 1)),
            ]
        {
            wrong.push(format!("{line}: {ends:?}"));
        }
    }
    assert_eq!(extents, 291_604);
    assert!(
        wrong.is_empty(),
        "{} wrong: {:#?} ... {:#?}",
        wrong.len(),
        &wrong[..20.min(wrong.len())],
        &wrong[wrong.len().saturating_sub(10)..]
    );
}
