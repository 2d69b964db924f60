//! Dirty bitmaps of volumes over a drive by hand.

use super::*;
use crate::checkpoint::bitmap::{BitmapFile, Opened as OpenedFile};
use crate::checkpoint::bits::Bits;
use crate::checksums::region::Identity;
use crate::volume::OpenBitmap;

fn bitmap(by_hand: &mut ByHand, name: &str, dirty: &[u64]) {
    let identity = Identity {
        drive: "disk".to_owned(),
        volume: "v0".to_owned(),
        block_bytes: 512,
        offset: OFFSET,
        capacity: BYTES,
    };
    let file = tempfile::tempfile().expect("a file");
    let file = BitmapFile::create(file, identity, (name.to_owned(), BYTES), 5);
    let mut bits = Bits::none(20);
    dirty.iter().for_each(|&chunk| bits.add(chunk..chunk + 1));
    let open = OpenBitmap {
        volume: "v0".to_owned(),
        bytes: OFFSET..OFFSET + BYTES,
        file: file.expect("a bitmap"),
        opened: OpenedFile {
            dirty: bits,
            assumed: 0,
        },
    };
    let (volumes, disk) = by_hand.parts();
    volumes.add_bitmap(disk, open).expect("a thread");
}

fn with_bitmap(chunks: u64, name: &str) -> CheckpointOrder {
    CheckpointOrder {
        bitmap: Some((name.to_owned(), 77)),
        ..order(chunks)
    }
}

#[test]
fn a_bitmap_is_found_by_its_names_and_stays_while_a_checkpoint_uses_it() {
    let mut by_hand = by_hand();
    for name in ["daily", "weekly"] {
        bitmap(&mut by_hand, name, &[]);
    }
    let unknown = begin(&mut by_hand, with_bitmap(20, "hourly"));
    let problem = told(&unknown).expect("at once").expect_err("there is none");
    assert_eq!(
        problem,
        "volume v0 has no bitmap hourly: expected one of daily, weekly"
    );
    let moment = begin(&mut by_hand, with_bitmap(20, "daily"));
    assert_eq!(told(&moment), None, "its bitmap is not frozen yet");
    let held = write(&mut by_hand, 0..1, 1);
    by_hand.listen(|_| told(&moment).is_some());
    assert!(matches!(told(&moment), Some(Ok(_))));
    by_hand.listen(|by_hand| {
        by_hand.run();
        is_done(&held)
    });
    let volumes = by_hand.volumes();
    let problem = volumes.remove_bitmap("v0", "daily").expect_err("in use");
    assert!(
        problem.contains("bitmap daily has a checkpoint"),
        "{problem}"
    );
    let problem = volumes
        .remove_bitmap("v1", "daily")
        .expect_err("another volume");
    assert_eq!(problem, "volume v1 has no bitmap daily: it has none");
    volumes
        .remove_bitmap("v0", "weekly")
        .expect("no checkpoint uses it");
    let names = |by_hand: &mut ByHand| -> Vec<String> {
        let all = by_hand.volumes().checkpoints.bitmaps.statuses();
        all.into_iter().map(|one| one.name).collect()
    };
    assert_eq!(names(&mut by_hand), ["daily"]);
    by_hand
        .volumes()
        .release_checkpoint("v0", Release::Done)
        .expect("there is one");
    by_hand
        .volumes()
        .remove_bitmap("v0", "daily")
        .expect("it is released");
    assert!(names(&mut by_hand).is_empty());
}

/// A change waits for its marks, and is dirty for the next backup and no other.
#[test]
fn dirty_bytes_are_those_of_chunks_that_were_changed_before_the_moment() {
    let mut by_hand = by_hand();
    bitmap(&mut by_hand, "daily", &[0, 7, 8]);
    let change = write(&mut by_hand, 3 * CHUNK - 1..3 * CHUNK + 1, 1);
    assert_eq!(transfers(&by_hand), (0, 0), "it waits for its marks");
    by_hand.listen(|by_hand| {
        by_hand.run();
        is_done(&change)
    });
    let moment = begin(&mut by_hand, with_bitmap(20, "daily"));
    assert_eq!(told(&moment), None, "its bitmap is not frozen yet");
    by_hand.listen(|_| told(&moment).is_some());
    let moment = told(&moment).expect("told").expect("an export");
    let later = write(&mut by_hand, 12 * CHUNK..12 * CHUNK + 1, 1);
    by_hand.listen(|by_hand| {
        by_hand.run();
        is_done(&later)
    });
    let checkpoints = &by_hand.volumes().checkpoints;
    let expected = |bytes: Range<u64>| {
        let is_dirty = |at: u64| [0, 2, 3, 7, 8].contains(&(at / CHUNK));
        let mut runs: Vec<(u64, bool)> = Vec::new();
        for at in bytes {
            match runs.last_mut() {
                Some((length, dirty)) if *dirty == is_dirty(at) => *length += 1,
                _ => runs.push((1, is_dirty(at))),
            }
        }
        runs
    };
    for (offset, length) in [
        (0, BYTES),
        (5, 7),
        (CHUNK + 9, 2 * CHUNK),
        (19 * CHUNK, 1),
        (7, 0),
    ] {
        let found = checkpoints.dirty_runs(moment, "daily", (offset, length));
        assert_eq!(
            found,
            expected(offset..offset + length),
            "{offset}+{length}"
        );
    }
    assert!(
        checkpoints
            .dirty_runs(moment, "weekly", (0, BYTES))
            .is_empty()
    );
    assert!(
        checkpoints.dirty_runs(0, "daily", (0, BYTES)).is_empty(),
        "no moment"
    );
    let dirty = |by_hand: &mut ByHand| {
        let all = by_hand.volumes().checkpoints.bitmaps.statuses();
        all[0].dirty_bytes / CHUNK
    };
    assert_eq!(dirty(&mut by_hand), 1, "since the moment");
    by_hand
        .volumes()
        .release_checkpoint("v0", Release::Abandoned)
        .expect("there is one");
    assert_eq!(dirty(&mut by_hand), 6, "the next backup needs all");
}
