//! Write-back, write-through, flush, and the switch of the write cache.

use block::{Action, BufferHit, Duration, Instant, Switch};
use drive::firmware::{BufferRules, WriteBack};
use drive::{Profile, VirtualDrive};

use crate::play::Play;
use crate::small::*;

fn fresh(profile: Profile) -> Play {
    Play::new(VirtualDrive::new(arc(profile)))
}

fn write_back(rules: impl FnOnce(&mut BufferRules)) -> Play {
    fresh(buffered(|buffer| {
        buffer.write_back = WriteBack::All;
        rules(buffer);
    }))
}

/// What a power cut at `at` would lose of what counted as done.
fn lost(play: &Play, at: Instant) -> Vec<block::Extent> {
    let mut copy = Play::new(play.drive.clone());
    copy.run_until(at);
    copy.drive.power_cut(at).written
}

#[test]
fn an_early_write_ends_when_the_buffer_has_it_and_is_destaged_later() {
    let mut play = write_back(|_| ());
    let done = play.then(write(500, 4));
    assert_eq!(done.hit(), BufferHit::Full);
    assert_eq!(done.took(), micros(200 + 4 * 100 + 60));
    assert_eq!(done.account().bus, micros(400));
    assert_eq!(lost(&play, play.now), [extent(500, 4)]);
    assert_eq!(lost(&play, play.now + micros(100_000)), []);
}

#[test]
fn a_read_after_an_early_write_hits() {
    let mut play = write_back(|_| ());
    play.then(write(500, 4));
    let done = play.then(read(501, 2));
    assert_eq!(done.hit(), BufferHit::Full);
    assert_eq!(done.took(), micros(120 + 200 + 50));
}

#[test]
fn a_drive_that_does_not_find_written_data_reads_them_after_they_were_written() {
    // Far away, so that the destaging takes longer than the read would.
    let mut play = write_back(|rules| rules.read_written = false);
    play.then(write(1_500, 4));
    let written = medium_end(&play);
    let done = play.then(read(1_501, 2));
    assert_eq!(done.hit(), BufferHit::Miss);
    assert!(done.outcome.at > written, "read before it was written");
}

#[test]
fn dirty_blocks_whose_segment_went_are_read_after_they_were_written() {
    // One segment: the third write takes it, while the second still waits to be destaged.
    let mut play = write_back(|rules| {
        rules.segments = 1;
        rules.write_segments = 3;
    });
    for start in [900, 1_500, 3] {
        play.then(write(start, 4));
    }
    let mut written = play.now;
    while lost(&play, written).contains(&extent(1_500, 4)) {
        written += micros(10);
    }
    let done = play.then(read(1_501, 2));
    assert_eq!(done.hit(), BufferHit::Miss);
    assert!(done.outcome.at > written, "read before it was written");
}

/// When nothing would be lost any more, to 10 us.
fn medium_end(play: &Play) -> Instant {
    let mut at = play.now;
    while !lost(play, at).is_empty() || torn(play, at) {
        at += micros(10);
    }
    at
}

fn torn(play: &Play, at: Instant) -> bool {
    let mut copy = Play::new(play.drive.clone());
    copy.run_until(at);
    let lost = copy.drive.power_cut(at);
    !lost.undecided.is_empty()
}

#[test]
fn a_flush_waits_for_everything() {
    let mut play = write_back(|_| ());
    play.then(write(500, 4));
    play.then(write(1_500, 4));
    let until = medium_end(&play);
    let done = play.then(Action::Flush);
    let off = done.outcome.at.as_nanos().abs_diff(until.as_nanos());
    assert!(
        off <= 10_000,
        "a flush at {:?}, written at {until:?}",
        done.outcome.at
    );
    let account = done.account();
    assert!(!account.seek.is_zero() && !account.transfer.is_zero());
    assert_eq!(account.bus, Duration::ZERO);
}

#[test]
fn a_flush_waits_for_the_destaging_under_way() {
    let mut play = write_back(|_| ());
    play.then(write(500, 4));
    let until = medium_end(&play);
    // The arm is on its way with the last dirty blocks when the flush comes.
    play.run_until(play.now + micros(1_000));
    play.serve(play.now, Action::SetLookAhead(Switch::On));
    let flushed = play.then(Action::Flush);
    assert!(
        flushed.outcome.at + micros(10) >= until,
        "flushed too early"
    );
    // With nothing to do, a flush costs its overhead.
    play.run_until(play.now + micros(50_000));
    let idle = play.then(Action::Flush);
    assert_eq!(idle.took(), idle.account().overhead);
}

#[test]
fn a_durable_write_ends_on_the_medium() {
    let mut play = write_back(|_| ());
    let done = play.then(write_medium(500, 4));
    assert_eq!(done.hit(), BufferHit::Miss);
    assert!(done.account().transfer.as_nanos().abs_diff(4 * SECTOR) <= 16);
    assert_eq!(lost(&play, play.now), []);
}

#[test]
fn a_durable_read_comes_after_the_buffered_write() {
    let mut play = write_back(|_| ());
    play.then(write(500, 4));
    let until = medium_end(&play);
    let done = play.then(read_medium(501, 2));
    assert_eq!(done.hit(), BufferHit::Miss);
    assert!(done.outcome.at > until);
}

#[test]
fn a_write_without_room_waits_until_there_is_some() {
    let mut play = write_back(|rules| rules.write_segments = 2);
    let now = play.now;
    let starts = [500, 1_500, 20, 900, 30];
    let ids: Vec<_> = starts
        .iter()
        .map(|&start| play.submit(now, write(start, 2)))
        .collect();
    play.drain();
    let queues: Vec<bool> = ids
        .iter()
        .map(|&id| play.of(id).took() > micros(4_000))
        .collect();
    // Two have room. The third waits for the first to be destaged, and so on.
    assert_eq!(queues[..2], [false, false]);
    assert_eq!(queues[3..], [true, true]);
    assert!(play.done.iter().all(|done| done.hit() == BufferHit::Full));
}

#[test]
fn what_continues_the_buffered_write_is_appended_and_nothing_else() {
    let append = |rules: &mut BufferRules| {
        rules.write_back = WriteBack::Append;
        rules.write_segments = 1;
    };
    let mut play = fresh(buffered(append));
    assert_eq!(play.then(write(100, 4)).hit(), BufferHit::Full);
    assert_eq!(play.then(write(104, 4)).hit(), BufferHit::Full);
    let third = play.then(write(108, 4));
    assert_eq!(third.hit(), BufferHit::Full);
    assert!(third.took() < micros(2_000), "there is room in the segment");
    assert_eq!(play.then(write(300, 4)).hit(), BufferHit::Miss);
}

#[test]
fn a_write_larger_than_a_segment_goes_through() {
    let mut play = write_back(|_| ());
    assert_eq!(play.then(write(0, 65)).hit(), BufferHit::Miss);
    assert_eq!(play.then(write(0, 64)).hit(), BufferHit::Full);
    assert_eq!(lost(&play, play.now), [extent(0, 64)]);
}

#[test]
fn a_drive_without_room_for_writes_writes_through() {
    let mut play = write_back(|rules| rules.write_segments = 0);
    assert_eq!(play.then(write(0, 4)).hit(), BufferHit::Miss);
    let mut play = write_back(|rules| rules.segments = 0);
    assert_eq!(play.then(write(0, 4)).hit(), BufferHit::Miss);
}

#[test]
fn switching_the_write_cache_off_flushes_it() {
    let mut play = write_back(|_| ());
    play.then(write(500, 4));
    let until = medium_end(&play);
    let off = play.then(Action::SetWriteCache(Switch::Off));
    assert!(off.outcome.at + micros(10) >= until);
    assert_eq!(play.then(write(500, 4)).hit(), BufferHit::Miss);
    play.then(Action::SetWriteCache(Switch::On));
    assert_eq!(play.then(write(500, 4)).hit(), BufferHit::Full);
}

#[test]
fn a_write_makes_what_was_read_old() {
    let mut play = fresh(buffered(|rules| rules.read_written = false));
    play.then(read(0, 10));
    play.then(write(4, 2));
    assert_eq!(play.then(read(0, 10)).hit(), BufferHit::Miss);
}

#[test]
fn an_early_write_leaves_the_arm_where_the_look_ahead_brought_it() {
    // The write takes the segment that the look-ahead fills; the arm has crossed a cylinder.
    let mut play = write_back(|rules| {
        rules.segments = 1;
        rules.look_ahead = drive::firmware::LookAhead::Segment;
    });
    play.then(read(36, 2));
    play.run_until(play.now + micros(6_000));
    play.then(write(42, 1));
    let done = play.then(Action::Flush);
    assert_eq!(done.account().seek, Duration::ZERO, "it was on that track");
}

#[test]
fn zero_latency_writes_a_track_in_a_revolution() {
    let profile = buffered(|rules| rules.zero_latency_write = true);
    for think in (0..10_000).step_by(900) {
        let account = fresh(profile.clone())
            .serve(at(think), write(0, TRACK))
            .account();
        // At worst it waits for all 20 blocks.
        let most = REVOLUTION + SECTOR + 20 * 100_000 + 16;
        assert!(account.rotation.as_nanos() + account.transfer.as_nanos() <= most);
    }
}
