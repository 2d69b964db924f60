//! Recordings: what is in memory only is read, flushed and reported as data.

use std::collections::BTreeSet;

use block::operation::OperationError;
use block::{Action, Duration, Lba, StreamMode, Terms};
use headtime_client::wire::StreamUpdate;

use super::*;
use crate::arena::Region;
use crate::disk::back_end::{Holds, Run};

const START: u64 = 16 * PAGE;
const LENGTH: u64 = 64 * PAGE;

fn recording(mode: StreamMode) -> Terms {
    Terms { mode, ..terms(32) }
}

/// A recording of two pages, none of which the drive has.
fn recorded(mode: StreamMode) -> (ByHand, Receiver<StreamNotice>, [Answer; 2]) {
    let mut by_hand = by_hand();
    let events = granted(&mut by_hand, 1, recording(mode), file(START, LENGTH));
    let pages = [0, 1].map(|page| write(&mut by_hand, START + page * PAGE, PAGE, 7 + page as u8));
    (by_hand, events, pages)
}

fn writes(by_hand: &ByHand) -> usize {
    let commands = by_hand.commands();
    commands
        .iter()
        .filter(|action| matches!(action, Action::Write { .. }))
        .count()
}

fn flush(by_hand: &mut ByHand, export: usize) -> Answer {
    by_hand.post(export, Ask::Flush, (0, 0), Vec::new())
}

fn on_drive(by_hand: &ByHand, start: u64) -> u8 {
    by_hand.bytes()[(OFFSET + start) as usize]
}

#[test]
fn what_is_recorded_is_read_from_memory_and_is_data_in_a_hole() {
    let (mut by_hand, _events, pages) = recorded(StreamMode::Record);
    assert!(pages.iter().all(is_done), "answered from memory");
    assert_eq!(on_drive(&by_hand, START), 0);
    let one = listed(&mut by_hand).remove(0);
    assert_eq!(one.from_memory_total + one.waited_total, 2);
    let found = read(&mut by_hand, START + PAGE - BLOCK, 2 * BLOCK);
    let expected = [[7; BLOCK as usize], [8; BLOCK as usize]].concat();
    assert_eq!(bytes_of(&found), Some(expected));
    let hole = |length| {
        vec![Run {
            length,
            holds: Holds::Hole,
        }]
    };
    by_hand.set_runs(hole(PAGE));
    let mut runs = |export: usize, offset: u64, length: u64| {
        let (volumes, disk) = by_hand.parts();
        let asked = volumes
            .ask_runs(disk, 3, export, (offset, length))
            .expect("at once");
        (asked[0].holds, asked[0].length)
    };
    let data = |length| (Holds::Bytes, length);
    assert_eq!(runs(0, START, PAGE), data(PAGE));
    assert_eq!(runs(0, START - 1, 2), data(2), "the block of the last byte");
    assert_eq!(runs(0, START + 2 * PAGE - 1, 1), data(1));
    // Before and behind it, and in the other volume, the drive says it.
    let of_drive = (Holds::Hole, PAGE);
    assert_eq!(runs(0, START - PAGE, PAGE), of_drive);
    assert_eq!(runs(0, START + 2 * PAGE, PAGE), of_drive);
    assert_eq!(runs(0, START, 0), of_drive);
    assert_eq!(runs(1, START, PAGE), of_drive);
    let (volumes, disk) = by_hand.parts();
    let all = volumes.runs(disk, 0, PAGE);
    assert_eq!(
        (all.len(), all[0].length, all[0].holds),
        (1, BYTES - PAGE, Holds::Bytes)
    );
    assert!(volumes.runs(disk, 0, BYTES).is_empty(), "past the end");
    assert!(volumes.runs(disk, 7, 0).is_empty(), "no export");
}

/// A flush copies what is in memory only, and the next one nothing. The recording writes the same bytes in its
/// rounds again.
#[test]
fn a_flush_makes_durable_what_was_recorded_before_it() {
    let (mut by_hand, _events, pages) = recorded(StreamMode::Record);
    assert!(pages.iter().all(is_done));
    let other = flush(&mut by_hand, 1);
    assert_eq!(
        writes(&by_hand),
        0,
        "nothing is recorded in the other volume"
    );
    by_hand.run();
    assert!(is_done(&other));
    let first = flush(&mut by_hand, 0);
    assert_eq!(writes(&by_hand), 1, "two pages at once");
    let third = write(&mut by_hand, START + 2 * PAGE, PAGE, 9);
    assert!(is_done(&third));
    assert!(!is_done(&first));
    by_hand.run();
    assert!(is_done(&first));
    let medium =
        |by_hand: &ByHand, page: u64| by_hand.medium()[(OFFSET + START + page * PAGE) as usize];
    assert_eq!([0, 1, 2].map(|page| medium(&by_hand, page)), [7, 8, 0]);
    let second = flush(&mut by_hand, 0);
    let extents: Vec<u64> = by_hand
        .commands()
        .iter()
        .filter_map(|action| action.extent())
        .map(|extent| extent.length().0)
        .collect();
    assert_eq!(extents, [PAGE / BLOCK], "the third page only");
    by_hand.run();
    assert!(is_done(&second));
    assert_eq!(medium(&by_hand, 2), 9);
    let nothing = flush(&mut by_hand, 0);
    assert_eq!(writes(&by_hand), 0);
    by_hand.run();
    assert!(is_done(&nothing));
    // The recording ends, and everything is on the drive.
    close(&mut by_hand, 1);
    run_for(&mut by_hand, Duration::from_secs(5));
    assert!(by_hand.volumes().is_idle());
    assert_eq!(
        [0, 1, 2, 3].map(|page| on_drive(&by_hand, START + page * PAGE)),
        [7, 8, 9, 0]
    );
}

/// The client continues elsewhere: what an earlier flush has copied says nothing of the bytes there.
#[test]
fn a_flush_after_a_leap_copies_again() {
    let (mut by_hand, _events, pages) = recorded(StreamMode::Record);
    assert!(pages.iter().all(is_done));
    let first = flush(&mut by_hand, 0);
    by_hand.run();
    assert!(is_done(&first));
    position(&mut by_hand, 1, 0);
    run_for(&mut by_hand, Duration::from_secs(3));
    let again = write(&mut by_hand, START, PAGE, 5);
    run_for(&mut by_hand, Duration::from_millis(1));
    assert!(is_done(&again));
    let second = flush(&mut by_hand, 0);
    by_hand.run();
    assert!(is_done(&second));
    assert_eq!(by_hand.medium()[(OFFSET + START) as usize], 5);
}

#[test]
fn a_flush_fails_if_a_copy_does() {
    let (mut by_hand, _events, pages) = recorded(StreamMode::Record);
    assert!(pages.iter().all(is_done));
    let failed = flush(&mut by_hand, 0);
    assert_eq!(writes(&by_hand), 1);
    by_hand.end(0, Err(OperationError::Io));
    by_hand.run();
    assert_eq!(failed.take(), Some(Err(OperationError::Io)));
    let again = flush(&mut by_hand, 0);
    assert_eq!(writes(&by_hand), 1, "it was not copied");
    by_hand.run();
    assert!(is_done(&again));
}

/// The blocks of a read that no buffer can answer alone are copied first, once.
#[test]
fn a_read_beyond_the_recording_finds_what_was_recorded() {
    let (mut by_hand, _events, pages) = recorded(StreamMode::Record);
    assert!(pages.iter().all(is_done));
    let wide = |by_hand: &mut ByHand| read(by_hand, START - PAGE, 4 * PAGE);
    let first = wide(&mut by_hand);
    by_hand.run();
    let found = bytes_of(&first).expect("it has ended");
    let at = |page: u64| found[(page * PAGE) as usize];
    assert_eq!([0, 1, 2, 3].map(at), [0, 7, 8, 0]);
    let second = wide(&mut by_hand);
    assert_eq!(writes(&by_hand), 0, "nothing has changed since");
    by_hand.run();
    assert_eq!(bytes_of(&second), Some(found));
    let third = write(&mut by_hand, START + 2 * PAGE, PAGE, 9);
    assert!(is_done(&third));
    let again = wide(&mut by_hand);
    assert_eq!(writes(&by_hand), by_hand.commands().len(), "copies first");
    by_hand.run();
    assert_eq!(
        bytes_of(&again).map(|bytes| bytes[3 * PAGE as usize]),
        Some(9)
    );
}

/// A write in whole blocks goes to the buffer only; one in parts of blocks ends the recording.
#[test]
fn a_write_of_a_part_of_a_block_ends_the_recording() {
    let (mut by_hand, mut events, pages) = recorded(StreamMode::Record);
    assert!(pages.iter().all(is_done));
    updates(&mut events);
    let beside = write(&mut by_hand, START - 100, 50, 3);
    run_for(&mut by_hand, Duration::from_millis(10));
    assert!(
        is_done(&beside) && updates(&mut events).is_empty(),
        "a block before it"
    );
    let part = write(&mut by_hand, START + 10, 20, 3);
    let reason = "parts of its blocks are written by somebody else".to_owned();
    assert!(updates(&mut events).contains(&StreamUpdate::Ended { reason }));
    run_for(&mut by_hand, Duration::from_secs(3));
    assert!(is_done(&part) && listed(&mut by_hand).is_empty());
    let found = read(&mut by_hand, START, PAGE);
    by_hand.run();
    let found = bytes_of(&found).expect("it has ended");
    for (at, &byte) in found.iter().enumerate() {
        assert_eq!(byte, if (10..30).contains(&at) { 3 } else { 7 }, "{at}");
    }
}

#[test]
fn zeroes_and_trims_of_what_is_recorded_are_in_the_buffer_too() {
    let (mut by_hand, _events, pages) = recorded(StreamMode::Record);
    assert!(pages.iter().all(is_done));
    let durability = Durability::Volatile;
    let zero = Ask::Zero {
        durability,
        space: block::operation::Space::Kept,
        pace: block::operation::ZeroingPace::Any,
    };
    let zeroes = by_hand.post(0, zero, (START + BLOCK, 2 * BLOCK), Vec::new());
    let trimmed = by_hand.post(
        0,
        Ask::Trim { durability },
        (START + PAGE, BLOCK),
        Vec::new(),
    );
    by_hand.run();
    assert!(is_done(&zeroes) && is_done(&trimmed));
    let found = bytes_of(&read(&mut by_hand, START, 2 * PAGE)).expect("from memory");
    let blocks: Vec<u8> = found.chunks(BLOCK as usize).map(|block| block[0]).collect();
    assert_eq!(blocks, [7, 0, 0, 7, 7, 7, 7, 7, 0, 8, 8, 8, 8, 8, 8, 8]);
    close(&mut by_hand, 1);
    run_for(&mut by_hand, Duration::from_secs(5));
    let start = (OFFSET + START) as usize;
    assert!(
        by_hand.bytes()[start..start + found.len()] == found,
        "and on the drive"
    );
}

#[test]
fn a_drive_without_power_leaves_recordings_what_they_have() {
    let (mut by_hand, _events, pages) = recorded(StreamMode::Record);
    assert!(pages.iter().all(is_done));
    by_hand.volumes().forget();
    let found = bytes_of(&read(&mut by_hand, START, PAGE));
    assert_eq!(found, Some(vec![7; PAGE as usize]));
}

/// Their order would be undefined.
#[test]
fn blocks_are_recorded_by_one_stream() {
    let (mut by_hand, _events, _pages) = recorded(StreamMode::Record);
    let record = || recording(StreamMode::Record);
    let there = "stream 1 records there already";
    assert_eq!(refused(&mut by_hand, record(), file(START, PAGE)), there);
    assert_eq!(
        refused(
            &mut by_hand,
            record(),
            file(START + LENGTH - PAGE, 2 * PAGE)
        ),
        there
    );
    let sync = recording(StreamMode::RecordSync);
    let second = pieces(2 * PAGE, &[(0, 0, PAGE), (PAGE, START + PAGE, PAGE)]);
    assert_eq!(refused(&mut by_hand, sync, second), there);
    granted(&mut by_hand, 2, record(), file(START + LENGTH, PAGE));
    granted(&mut by_hand, 3, terms(24), file(START, PAGE));
}

/// Such a write is durable at its answer, and no flush copies it.
#[test]
fn a_synchronous_recording_is_answered_by_the_drive() {
    let (mut by_hand, _events, pages) = recorded(StreamMode::RecordSync);
    assert!(!pages.iter().any(is_done));
    let flushed = flush(&mut by_hand, 0);
    by_hand.run();
    assert!(is_done(&flushed));
    run_for(&mut by_hand, Duration::from_secs(5));
    assert!(pages.iter().all(is_done));
    let medium = |page: u64| by_hand.medium()[(OFFSET + START + page * PAGE) as usize];
    assert_eq!([0, 1].map(medium), [7, 8]);
}

/// Whoever found them in memory could find the older ones of the drive afterwards, by a read that also wants other blocks.
#[test]
fn a_synchronous_recording_is_read_as_the_drive_has_it_until_its_answer() {
    let (mut by_hand, _events, pages) = recorded(StreamMode::RecordSync);
    let values = |by_hand: &mut ByHand, length: u64| {
        let found = read(by_hand, START, length);
        assert!(!by_hand.commands().is_empty(), "the drive is asked");
        by_hand.run();
        bytes_of(&found).expect("bytes")
    };
    assert_eq!(values(&mut by_hand, PAGE), [0; PAGE as usize]);
    let longer = values(&mut by_hand, LENGTH);
    assert!(longer.iter().all(|&byte| byte == 0), "and no copy was made");
    assert!(!pages.iter().any(is_done));
    run_for(&mut by_hand, Duration::from_secs(5));
    assert!(pages.iter().all(is_done));
    let after = read(&mut by_hand, START, PAGE);
    assert!(by_hand.commands().is_empty(), "from memory");
    assert_eq!(bytes_of(&after), Some(vec![7; PAGE as usize]));
}

/// A background read takes from memory what was acknowledged, and nothing else.
#[test]
fn a_background_read_finds_no_page_that_is_not_acknowledged() {
    for (mode, expected) in [(StreamMode::Record, 7), (StreamMode::RecordSync, 0)] {
        let (mut by_hand, _events, _pages) = recorded(mode);
        let (volumes, disk) = by_hand.parts();
        let found = Region::map(PAGE as usize).expect("memory");
        let start = Lba((OFFSET + START) / BLOCK);
        volumes.streams.put_recorded(disk, start, found.memory());
        assert!(found.bytes().iter().all(|&byte| byte == expected));
    }
}

#[test]
fn a_durable_write_of_a_recording_is_durable_at_its_answer() {
    let (mut by_hand, _events, pages) = recorded(StreamMode::Record);
    assert!(pages.iter().all(is_done));
    let durable = Ask::Write {
        durability: Durability::Durable,
    };
    let bytes = vec![9; PAGE as usize];
    let third = by_hand.post(0, durable, (START + 2 * PAGE, PAGE), bytes);
    assert!(!is_done(&third));
    while !by_hand.commands().is_empty() {
        by_hand.end(0, Ok(()));
    }
    assert!(is_done(&third));
    let medium = |page: u64| by_hand.medium()[(OFFSET + START + page * PAGE) as usize];
    assert_eq!([0, 1, 2].map(medium), [7, 8, 9]);
}

/// The stream does not take it: it goes to the drive, and the client is told why.
#[test]
fn a_write_out_of_order_goes_to_the_drive() {
    let (mut by_hand, mut events, pages) = recorded(StreamMode::Record);
    assert!(pages.iter().all(is_done));
    updates(&mut events);
    let elsewhere = write(&mut by_hand, START + 9 * PAGE, PAGE, 4);
    let told = updates(&mut events);
    assert!(
        matches!(&told[..], [StreamUpdate::Aside { reason }] if reason.contains("expected the next one at 8192")),
        "{told:?}"
    );
    assert!(!by_hand.volumes().is_idle());
    by_hand.run();
    assert!(is_done(&elsewhere));
    assert_eq!(on_drive(&by_hand, START + 9 * PAGE), 4);
    let found = read(&mut by_hand, START + 9 * PAGE, PAGE);
    by_hand.run();
    assert_eq!(bytes_of(&found), Some(vec![4; PAGE as usize]));
}

/// The next flush of the volume fails, and the client is told which bytes of its file are lost.
#[test]
fn what_cannot_be_recorded_fails_the_next_flush_of_its_volume() {
    let (mut by_hand, mut events, pages) = recorded(StreamMode::Record);
    assert!(pages.iter().all(is_done));
    close(&mut by_hand, 1);
    let until = by_hand.disk().now + Duration::from_secs(10);
    let mut told = Vec::new();
    while by_hand.disk().now < until && !listed(&mut by_hand).is_empty() {
        match writes(&by_hand) {
            0 => by_hand.pass(until),
            _ => by_hand.end(0, Err(OperationError::Io)),
        }
        told.extend(updates(&mut events));
    }
    let failed = told.iter().find_map(|update| match update {
        StreamUpdate::WriteFailed { from, to } => Some((*from, *to)),
        _ => None,
    });
    assert!(matches!(failed, Some((0, to)) if to >= PAGE), "{told:?}");
    let other = flush(&mut by_hand, 1);
    by_hand.run();
    assert!(is_done(&other), "another volume");
    let first = flush(&mut by_hand, 0);
    by_hand.run();
    assert_eq!(first.take(), Some(Err(OperationError::Io)));
    let second = flush(&mut by_hand, 0);
    by_hand.run();
    assert!(is_done(&second), "told once");
}

/// An engine without room: the writes that the stream does not take wait, and none is lost.
#[test]
fn what_a_stream_does_not_take_waits_for_room() {
    let mut setup = setup();
    setup.requests = Some(2);
    let mut by_hand = by_hand_of(setup);
    let mut events = granted(
        &mut by_hand,
        1,
        recording(StreamMode::Record),
        file(START, LENGTH),
    );
    let reads: Vec<Answer> = (0..2)
        .map(|page| by_hand.post(1, Ask::Read, (page * PAGE, PAGE), Vec::new()))
        .collect();
    let aside: Vec<Answer> = [9, 20, 30]
        .map(|page| write(&mut by_hand, START + page * PAGE, PAGE, page as u8))
        .into_iter()
        .collect();
    assert_eq!(writes(&by_hand), 0);
    let told = updates(&mut events).into_iter();
    let told = told.filter(|update| matches!(update, StreamUpdate::Aside { .. }));
    assert_eq!(told.count(), 3);
    assert!(!by_hand.volumes().is_idle());
    by_hand.run();
    assert!(reads.iter().chain(&aside).all(is_done));
    let found = [9, 20, 30].map(|page| on_drive(&by_hand, START + page * PAGE));
    assert_eq!(found, [9, 20, 30]);
}

/// Copies are operations like others: none is longer than the longest one.
#[test]
fn copies_are_no_longer_than_the_longest_operation() {
    let mut setup = setup();
    setup.bounds.longest = 2 * PAGE as usize;
    let mut by_hand = by_hand_of(setup);
    let record = recording(StreamMode::Record);
    let _events = granted(&mut by_hand, 1, record, file(START, LENGTH));
    for page in 0..5 {
        let one = write(&mut by_hand, START + page * PAGE, PAGE, 1 + page as u8);
        assert!(is_done(&one));
    }
    let flushed = flush(&mut by_hand, 0);
    let mut extents = BTreeSet::new();
    while let Some(action) = by_hand.commands().first() {
        if let Action::Write { extent, .. } = action {
            extents.insert((extent.start().0, extent.length().0));
        }
        by_hand.end(0, Ok(()));
    }
    let at = |page: u64| (OFFSET + START + page * PAGE) / BLOCK;
    let page = PAGE / BLOCK;
    let expected = [(at(0), 2 * page), (at(2), 2 * page), (at(4), page)];
    assert!(extents.into_iter().eq(expected));
    assert!(is_done(&flushed));
    let found = [0, 1, 2, 3, 4].map(|page| on_drive(&by_hand, START + page * PAGE));
    assert_eq!(found, [1, 2, 3, 4, 5]);
}

/// Nothing was acknowledged, so the write itself fails.
#[test]
fn a_synchronous_write_fails_with_its_command() {
    let (mut by_hand, _events, pages) = recorded(StreamMode::RecordSync);
    let until = by_hand.disk().now + Duration::from_secs(5);
    while by_hand.disk().now < until {
        match writes(&by_hand) {
            0 => by_hand.pass(until),
            _ => by_hand.end(0, Err(OperationError::Io)),
        }
    }
    for page in pages {
        assert_eq!(page.take(), Some(Err(OperationError::Io)));
    }
}

/// A later read of other blocks as well finds the same as one of a page alone.
#[test]
fn what_cannot_be_recorded_is_read_as_the_drive_has_it() {
    let (mut by_hand, _events, pages) = recorded(StreamMode::Record);
    assert!(pages.iter().all(is_done));
    let until = by_hand.disk().now + Duration::from_secs(5);
    while by_hand.disk().now < until {
        match writes(&by_hand) {
            0 => by_hand.pass(until),
            _ => by_hand.end(0, Err(OperationError::Io)),
        }
    }
    for length in [PAGE, LENGTH] {
        let found = read(&mut by_hand, START, length);
        by_hand.run();
        assert_eq!(bytes_of(&found), Some(vec![0; length as usize]));
    }
}
