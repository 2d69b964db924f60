//! Streams that play: what their buffers answer, and when they have to be asked anew.

use block::{Duration, StreamMode, Terms};
use headtime_client::wire::{FileChange, Refresh, StreamStatus, StreamUpdate};

use super::*;

const START: u64 = 16 * PAGE;
const LENGTH: u64 = 64 * PAGE;

/// A stream whose buffer is full of ones.
fn playing() -> (ByHand, Receiver<StreamNotice>) {
    let mut by_hand = by_hand();
    fill(&by_hand, START, LENGTH, 1);
    let events = granted(&mut by_hand, 1, terms(32), file(START, LENGTH));
    run_for(&mut by_hand, Duration::from_secs(2));
    (by_hand, events)
}

#[test]
fn what_is_in_the_buffer_is_read_without_the_drive() {
    let (mut by_hand, mut events) = playing();
    assert_eq!(updates(&mut events), [StreamUpdate::Serving]);
    let before = listed(&mut by_hand).remove(0);
    assert_eq!((before.stream, before.user), (1, 1001));
    assert_eq!(before.standing, StreamStatus::Serving);
    assert_eq!(
        before.terms,
        Terms {
            memory: before.terms.memory,
            ..terms(32)
        }
    );
    let memory = before.terms.memory.expect("of its buffer");
    assert!((8 * PAGE..=32 * PAGE).contains(&memory), "{memory}");
    assert_eq!(before.from, 0);
    assert!(before.to > 4 * PAGE && before.to <= memory, "{}", before.to);
    assert_eq!((before.from_memory_total, before.waited_total), (0, 0));
    // The drive has something else by now: it is not asked.
    fill(&by_hand, START, LENGTH, 2);
    for (start, length) in [(START, PAGE), (START + BLOCK, BLOCK), (START + 700, 100)] {
        let found = read(&mut by_hand, start, length);
        assert_eq!(bytes_of(&found), Some(vec![1; length as usize]));
    }
    let beyond = read(&mut by_hand, START - BLOCK, 2 * BLOCK);
    by_hand.run();
    let expected = [[0; BLOCK as usize], [2; BLOCK as usize]].concat();
    assert_eq!(bytes_of(&beyond), Some(expected), "a block before the file");
    let after = listed(&mut by_hand).remove(0);
    assert_eq!((after.from_memory_total, after.waited_total), (3, 0));
    assert_eq!(by_hand.volumes().operations.bytes(), 0);
}

#[test]
fn a_read_of_what_is_in_flight_waits_for_it_and_is_counted() {
    let mut by_hand = by_hand();
    fill(&by_hand, START, LENGTH, 1);
    let mut events = granted(&mut by_hand, 1, terms(32), file(START, LENGTH));
    let first = read(&mut by_hand, START, PAGE);
    let second = read(&mut by_hand, START + PAGE, PAGE);
    assert!(bytes_of(&first).is_none());
    run_for(&mut by_hand, Duration::from_millis(500));
    assert_eq!(bytes_of(&first), Some(vec![1; PAGE as usize]));
    assert_eq!(bytes_of(&second), Some(vec![1; PAGE as usize]));
    let one = listed(&mut by_hand).remove(0);
    assert_eq!((one.from_memory_total, one.waited_total), (0, 2));
    assert_eq!(updates(&mut events), [StreamUpdate::Serving]);
}

/// Whatever is written to the drive by others is what the buffer has.
#[test]
fn a_buffer_has_what_others_have_written_meanwhile() {
    let (mut by_hand, _events) = playing();
    let whole = write(&mut by_hand, START + PAGE, 2 * BLOCK, 3);
    let part = write(&mut by_hand, START + 3 * PAGE + 10, 20, 4);
    let zero = Ask::Zero {
        durability: Durability::Volatile,
        space: block::operation::Space::Kept,
        pace: block::operation::ZeroingPace::Any,
    };
    let zeroes = by_hand.post(0, zero, (START + 4 * PAGE, BLOCK), Vec::new());
    let trim = Ask::Trim {
        durability: Durability::Volatile,
    };
    let trimmed = by_hand.post(0, trim, (START + 5 * PAGE, BLOCK), Vec::new());
    let failed = write(&mut by_hand, START + 6 * PAGE, BLOCK, 9);
    let start = (OFFSET + START + 6 * PAGE) / BLOCK;
    while let Some(action) = by_hand.commands().first() {
        let is_of_it = action
            .extent()
            .is_some_and(|extent| extent.start().0 == start);
        by_hand.end(
            0,
            if is_of_it {
                Err(block::operation::OperationError::Io)
            } else {
                Ok(())
            },
        );
    }
    by_hand.run();
    assert!(is_done(&whole) && is_done(&part) && is_done(&zeroes) && is_done(&trimmed));
    assert!(matches!(failed.take(), Some(Err(_))));
    let found = read(&mut by_hand, START, 7 * PAGE);
    by_hand.run();
    let found = bytes_of(&found).expect("it has ended");
    let start = (OFFSET + START) as usize;
    assert!(
        found == by_hand.bytes()[start..start + found.len()],
        "as on the drive"
    );
    let at = |bytes: u64| found[bytes as usize];
    assert_eq!(
        [
            at(PAGE),
            at(3 * PAGE + 10),
            at(4 * PAGE),
            at(5 * PAGE),
            at(6 * PAGE)
        ],
        [3, 4, 0, 0, 1]
    );
}

/// A drive that has lost its power may have older bytes.
#[test]
fn a_reader_forgets_what_it_has_if_the_drive_has_lost_its_power() {
    let (mut by_hand, _events) = playing();
    fill(&by_hand, START, LENGTH, 2);
    by_hand.volumes().forget();
    let found = read(&mut by_hand, START, PAGE);
    run_for(&mut by_hand, Duration::from_secs(1));
    assert_eq!(bytes_of(&found), Some(vec![2; PAGE as usize]));
}

/// The buffer keeps what lies where it was, and nothing else.
#[test]
fn a_file_that_changes_its_place_is_read_from_there() {
    let (mut by_hand, _events) = playing();
    let refresh = |by_hand: &mut ByHand, stream: u64, places: Places| {
        let (volumes, disk) = by_hand.parts();
        let exports = &volumes.operations.exports;
        let refresh = Refresh { stream, places };
        let changed = volumes.streams.refresh(disk, exports, &refresh);
        volumes.poll_streams(disk);
        by_hand.work();
        changed
    };
    let problem = refresh(&mut by_hand, 2, file(START, LENGTH)).expect_err("no such stream");
    assert_eq!(problem.reason, "no stream 2");
    assert!(
        refresh(&mut by_hand, 1, file(BYTES, PAGE)).is_err(),
        "outside the volume"
    );
    assert_eq!(
        refresh(&mut by_hand, 1, file(START, LENGTH)),
        Ok(FileChange::Same)
    );
    assert_eq!(
        refresh(&mut by_hand, 1, file(START, LENGTH + PAGE)),
        Ok(FileChange::Grown)
    );
    assert_eq!(
        refresh(&mut by_hand, 1, file(START, LENGTH)),
        Ok(FileChange::Shrunk)
    );
    fill(&by_hand, START, LENGTH, 2);
    assert_eq!(
        bytes_of(&read(&mut by_hand, START, PAGE)),
        Some(vec![1; PAGE as usize])
    );
    // From page 2 on it lies elsewhere.
    let moved = pieces(
        LENGTH,
        &[
            (0, START, 2 * PAGE),
            (2 * PAGE, 128 * PAGE, LENGTH - 2 * PAGE),
        ],
    );
    fill(&by_hand, 128 * PAGE, LENGTH, 5);
    assert_eq!(
        refresh(&mut by_hand, 1, moved),
        Ok(FileChange::Moved(2 * PAGE))
    );
    assert_eq!(
        bytes_of(&read(&mut by_hand, START, PAGE)),
        Some(vec![1; PAGE as usize])
    );
    let old = read(&mut by_hand, START + 2 * PAGE, PAGE);
    let new = read(&mut by_hand, 128 * PAGE, PAGE);
    run_for(&mut by_hand, Duration::from_secs(1));
    assert_eq!(
        bytes_of(&old),
        Some(vec![2; PAGE as usize]),
        "another file's by now"
    );
    assert_eq!(bytes_of(&new), Some(vec![5; PAGE as usize]));
    let hole = pieces(LENGTH, &[(0, START, PAGE)]);
    assert_eq!(
        refresh(&mut by_hand, 1, hole),
        Ok(FileChange::Punched(PAGE))
    );
}

#[test]
fn an_application_that_leaves_the_buffer_lapses() {
    let (mut by_hand, mut events) = playing();
    updates(&mut events);
    position(&mut by_hand, 1, 60 * PAGE);
    assert_eq!(updates(&mut events), [StreamUpdate::Lapsed]);
    let one = listed(&mut by_hand).remove(0);
    assert_eq!((one.lapsed_total, one.late_total), (1, 0));
    let (volumes, disk) = by_hand.parts();
    let totals = volumes.streams.summary(disk);
    assert_eq!((totals.lapsed_total, totals.late_total), (1, 0));
    run_for(&mut by_hand, Duration::from_secs(2));
    assert_eq!(updates(&mut events), [StreamUpdate::Serving]);
    fill(&by_hand, START, LENGTH, 2);
    let found = read(&mut by_hand, START + 60 * PAGE, PAGE);
    assert_eq!(bytes_of(&found), Some(vec![1; PAGE as usize]));
}

/// A batch that comes a second after its round is late: it is counted, and its client is told how late.
#[test]
fn a_drive_that_does_not_keep_its_promise_is_late() {
    let (mut by_hand, mut events) = playing();
    updates(&mut events);
    let mut at = 0;
    for _ in 0..200 {
        at += PAGE / 4;
        position(&mut by_hand, 1, at);
        let until = by_hand.disk().now + Duration::from_millis(20);
        by_hand.pass(until);
        if !by_hand.commands().is_empty() {
            break;
        }
    }
    assert!(!by_hand.commands().is_empty(), "a batch is at the drive");
    by_hand.disk().now += Duration::from_secs(3);
    by_hand.run();
    run_for(&mut by_hand, Duration::from_millis(100));
    let late: Vec<u64> = updates(&mut events)
        .into_iter()
        .filter_map(|update| match update {
            StreamUpdate::Late { us, .. } => Some(us),
            _ => None,
        })
        .collect();
    assert!(
        !late.is_empty() && late.iter().all(|us| (1_000..4_000_000).contains(us)),
        "{late:?}"
    );
    let one = listed(&mut by_hand).remove(0);
    assert_eq!(one.late_total, late.len() as u64);
    let (volumes, disk) = by_hand.parts();
    assert_eq!(volumes.streams.summary(disk).late_total, late.len() as u64);
}

#[test]
fn streams_are_summed_up() {
    let mut by_hand = by_hand();
    let summary = |by_hand: &mut ByHand| {
        let (volumes, disk) = by_hand.parts();
        volumes.streams.summary(disk)
    };
    let nothing = summary(&mut by_hand);
    assert_eq!(
        (nothing.now, nothing.memory_bytes, nothing.head_ppm),
        (0, 0, 0)
    );
    assert_eq!(nothing.left_ppm, 1_000_000 - 1_000 * u64::from(FOREGROUND));
    let one = granted(&mut by_hand, 1, terms(32), file(START, LENGTH));
    let other = granted(&mut by_hand, 2, terms(24), file(128 * PAGE, LENGTH));
    refused(&mut by_hand, terms(1 << 20), file(START, LENGTH));
    let some = summary(&mut by_hand);
    assert_eq!(
        (some.now, some.granted_total, some.refused_total),
        (2, 2, 1)
    );
    let memory: u64 = listed(&mut by_hand)
        .iter()
        .filter_map(|one| one.terms.memory)
        .sum();
    assert_eq!(some.memory_bytes, memory);
    assert!(memory > 16 * PAGE && memory <= 56 * PAGE, "{memory}");
    assert!(
        some.head_ppm > 10_000 && some.head_ppm < 900_000,
        "{}",
        some.head_ppm
    );
    assert_eq!(some.left_ppm, nothing.left_ppm - some.head_ppm);
    assert!(!some.strained);
    close(&mut by_hand, 1);
    run_for(&mut by_hand, Duration::from_secs(1));
    let less = summary(&mut by_hand);
    assert_eq!((less.now, less.granted_total), (1, 2));
    assert!(less.head_ppm < some.head_ppm && less.memory_bytes < some.memory_bytes);
    assert!(!by_hand.volumes().is_idle(), "one is left");
    drop((one, other));
}

#[test]
fn a_stream_ends_with_the_service_and_says_so() {
    let (mut by_hand, mut events) = playing();
    updates(&mut events);
    by_hand.event_loop.stop();
    let reason = "the service is stopping".to_owned();
    assert_eq!(
        updates(&mut events),
        [StreamUpdate::Ended {
            reason: reason.clone()
        }]
    );
    run_for(&mut by_hand, Duration::from_secs(1));
    assert!(listed(&mut by_hand).is_empty());
    assert!(by_hand.volumes().is_idle());
    assert_eq!(
        refused(&mut by_hand, terms(24), file(START, LENGTH)),
        reason
    );
    assert_eq!(terms(1).mode, StreamMode::Play);
}

/// What the engine wants in the buffer is waited for; the rest of the file is read from the drive at once.
#[test]
fn reads_outside_the_window_do_not_wait_for_the_stream() {
    let (mut by_hand, mut events) = playing();
    position(&mut by_hand, 1, 8 * PAGE);
    run_for(&mut by_hand, Duration::from_secs(2));
    let one = listed(&mut by_hand).remove(0);
    assert!(
        one.from > PAGE && one.to < LENGTH - 8 * PAGE,
        "{}..{}",
        one.from,
        one.to
    );
    updates(&mut events);
    fill(&by_hand, START, LENGTH, 2);
    for page in [0, LENGTH / PAGE - 1] {
        let outside = read(&mut by_hand, START + page * PAGE, PAGE);
        let extents: Vec<u64> = by_hand
            .commands()
            .iter()
            .filter_map(|action| action.extent())
            .map(|extent| extent.start().0)
            .collect();
        assert_eq!(extents, [(OFFSET + START) / BLOCK + page * PAGE / BLOCK]);
        by_hand.run();
        assert_eq!(bytes_of(&outside), Some(vec![2; PAGE as usize]));
    }
    assert!(updates(&mut events).is_empty());
    let after = listed(&mut by_hand).remove(0);
    assert_eq!((after.from_memory_total, after.waited_total), (0, 0));
    // Within the window, and not there since the drive has lost its power.
    by_hand.volumes().forget();
    let within = read(&mut by_hand, START + one.to - PAGE, PAGE);
    run_for(&mut by_hand, Duration::from_secs(1));
    assert_eq!(bytes_of(&within), Some(vec![2; PAGE as usize]));
}

/// The client is told that the stream cannot serve it.
#[test]
fn a_read_that_is_larger_than_the_buffer_goes_to_the_drive() {
    let (mut by_hand, mut events) = playing();
    updates(&mut events);
    let memory = listed(&mut by_hand)[0].terms.memory.expect("its buffer");
    let large = read(&mut by_hand, START, memory + BLOCK);
    let told = updates(&mut events);
    assert!(
        matches!(&told[..], [StreamUpdate::Aside { reason }] if reason.contains("of a buffer of")),
        "{told:?}"
    );
    by_hand.run();
    assert_eq!(bytes_of(&large), Some(vec![1; (memory + BLOCK) as usize]));
    let fits = read(&mut by_hand, START, memory);
    by_hand.run();
    assert_eq!(bytes_of(&fits), Some(vec![1; memory as usize]));
    assert!(
        updates(&mut events).is_empty(),
        "not all of it is wanted now"
    );
}

/// Nothing was promised yet.
#[test]
fn an_application_that_moves_while_the_buffer_fills_does_not_lapse() {
    let mut by_hand = by_hand();
    let mut events = granted(&mut by_hand, 1, terms(32), file(START, LENGTH));
    position(&mut by_hand, 1, 50 * PAGE);
    position(&mut by_hand, 1, 20 * PAGE);
    let one = listed(&mut by_hand).remove(0);
    assert_eq!((one.standing, one.lapsed_total), (StreamStatus::Filling, 0));
    run_for(&mut by_hand, Duration::from_secs(2));
    assert_eq!(updates(&mut events), [StreamUpdate::Serving]);
    assert_eq!(listed(&mut by_hand)[0].lapsed_total, 0);
}

/// The last page of the window comes last, and no request of its own reads it.
#[test]
fn a_read_that_waits_is_served_by_the_stream_alone() {
    let mut by_hand = by_hand();
    fill(&by_hand, START, LENGTH, 1);
    let _events = granted(&mut by_hand, 1, terms(32), file(START, LENGTH));
    let last = listed(&mut by_hand)[0].to - PAGE;
    let waits = read(&mut by_hand, START + last, PAGE);
    let until = by_hand.disk().now + Duration::from_secs(2);
    let mut found = None;
    while found.is_none() && by_hand.disk().now < until {
        assert!(by_hand.requests().is_empty(), "a request beside the stream");
        match by_hand.commands().is_empty() {
            true => by_hand.pass(until),
            false => by_hand.end(0, Ok(())),
        }
        found = bytes_of(&waits);
    }
    assert_eq!(found, Some(vec![1; PAGE as usize]));
}
