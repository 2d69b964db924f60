//! Where the requests of a trace come to stand.

use block::{Direction, Instant};

use super::{BLOCK, arrivals};
use crate::caching::BadSetup;
use crate::trace::{ByteRange, OnBad, Record, TraceReader};

fn records(text: &'static str) -> Vec<Record> {
    let reader = TraceReader::new("t.csv", text.as_bytes(), None, OnBad::Refuse).expect("a trace");
    reader.map(|record| record.expect("a record")).collect()
}

#[test]
fn volumes_stand_one_after_the_other_and_times_are_stretched() {
    let records = records("0.0,a,R,8192,8192\n0.5,b,W,4095,2\n1.0,a,R,268435456,1\n");
    let found = arrivals(&records, 1 << 20, 3).expect("they fit");
    let firsts: Vec<u64> = found.iter().map(|arrival| arrival.blocks.first).collect();
    // Regions of 256 MiB are 2^16 blocks: two of a, then b's.
    assert_eq!(firsts, [2, 2 << 16, 1 << 16]);
    assert_eq!(found[0].blocks.len(), 2);
    assert_eq!(found[1].blocks.len(), 2);
    assert_eq!(found[1].file, 1);
    assert_eq!(found[0].within.last, (2 << 16) - 1);
    assert_eq!(found[1].at, Instant::from_nanos(1_500_000_000));
}

#[test]
fn what_nobody_touches_is_left_out_where_the_disk_is_small() {
    let record = |block: u64, blocks: u64| Record {
        at: Instant::ZERO,
        device: records("0.0,a,R,0,1\n")[0].device,
        direction: Direction::Read,
        bytes: ByteRange::new(block * BLOCK, blocks * BLOCK).expect("bytes"),
        owner: block::Owner::NOBODY,
        measured: None,
    };
    let far = [record(0, 4), record(1 << 30, 2), record((1 << 30) + 2, 30)];
    let found = arrivals(&far, 100, 1).expect("they fit");
    assert!(found.iter().all(|arrival| arrival.blocks.last < 100));
    // What follows each other does so still.
    assert_eq!(found[1].blocks.last + 1, found[2].blocks.first);
    assert_eq!(
        arrivals(&far, 35, 1),
        Err(BadSetup::TooLarge {
            blocks: 36,
            disk: 35
        })
    );
}
