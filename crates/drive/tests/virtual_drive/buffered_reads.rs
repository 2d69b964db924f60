//! Hits, look-ahead and the replacement of segments.

use block::{Action, BufferHit, Duration, Switch};
use drive::firmware::{LookAhead, QueueOrder};
use drive::{Profile, VirtualDrive};

use crate::play::Play;
use crate::small::*;

fn fresh(profile: Profile) -> Play {
    Play::new(VirtualDrive::new(arc(profile)))
}

/// Whether the buffer has a block, asked of a copy of the drive.
fn has(play: &Play, lba: u64) -> bool {
    let mut copy = Play::new(play.drive.clone());
    copy.serve(play.now, read(lba, 1)).hit() == BufferHit::Full
}

/// The blocks of a range that the buffer has.
fn held(play: &Play, range: std::ops::Range<u64>) -> Vec<u64> {
    range.filter(|&lba| has(play, lba)).collect()
}

fn wait(play: &mut Play, length: Duration) {
    play.run_until(play.now + length);
}

#[test]
fn a_full_hit_costs_overhead_and_bus() {
    let mut play = fresh(buffered(|_| ()));
    play.then(read(3, 10));
    let done = play.then(read(5, 4));
    assert_eq!(done.hit(), BufferHit::Full);
    assert_eq!(done.took(), micros(100 + 4 * 100 + 50));
    assert_eq!(done.account().overhead, micros(150));
    assert_eq!(done.account().bus, micros(400));
}

#[test]
fn a_partial_hit_fetches_only_the_rest() {
    let mut play = fresh(buffered(|_| ()));
    play.then(read(3, 10));
    let done = play.then(read(5, 12));
    assert_eq!(done.hit(), BufferHit::Partial);
    let transfer = done.account().transfer.as_nanos();
    assert!(
        transfer.abs_diff(4 * SECTOR) <= 16,
        "only 13..17 from the medium"
    );
    // Afterwards it is all there.
    assert_eq!(held(&play, 0..30), (3..17).collect::<Vec<_>>());
}

#[test]
fn what_the_look_ahead_is_about_to_read_comes_without_positioning() {
    let mut play = fresh(buffered(|rules| rules.look_ahead = LookAhead::Segment));
    play.then(read(0, 4));
    let medium_was_at = play.now.as_nanos() - 50_000 - 100_000;
    let done = play.then(read(4, 6));
    assert_eq!(done.hit(), BufferHit::Partial);
    let expected = medium_was_at + 6 * SECTOR + 100_000 + 50_000;
    assert!(done.outcome.at.as_nanos().abs_diff(expected) <= 32);
    let account = done.account();
    assert_eq!(
        (account.seek, account.rotation),
        (Duration::ZERO, Duration::ZERO)
    );
}

#[test]
fn waiting_for_the_look_ahead_is_split_into_its_phases() {
    // Blocks 18..22 are on both sides of a head switch, which comes while the command waits.
    let mut play = fresh(buffered(|rules| rules.look_ahead = LookAhead::Segment));
    play.then(read(14, 4));
    let done = play.then(read(18, 4));
    let account = done.account();
    assert_eq!(done.hit(), BufferHit::Partial);
    assert_eq!(account.seek, micros(1_000), "the head switch");
    let rotation = account.rotation.as_nanos();
    assert!(
        rotation.abs_diff(3 * SECTOR - 1_000_000) <= 32,
        "the rest of the skew"
    );
}

#[test]
fn sequential_reads_reach_the_media_rate_with_look_ahead() {
    let took = |ahead| {
        let mut play = fresh(buffered(|rules| rules.look_ahead = ahead));
        play.keep(1, (0..BLOCKS / 8).map(|n| read(n * 8, 8)));
        play.now.as_nanos()
    };
    // 80 tracks of a revolution each, 40 switches of 3 sectors and 39 of 5.
    let medium = 80 * REVOLUTION + (40 * 3 + 39 * 5) * SECTOR;
    let with = took(LookAhead::Segment);
    assert!(with >= medium, "faster than the medium");
    assert!(
        with < medium + medium / 50,
        "{with}, the medium takes {medium}"
    );
    assert!(
        took(LookAhead::None) > 2 * medium,
        "a revolution for each command"
    );
}

#[test]
fn each_look_ahead_ends_where_it_says() {
    for (ahead, blocks, end) in [
        (LookAhead::None, 0, 8),
        (LookAhead::Track, 0, 20),
        (LookAhead::Track, 7, 15),
        (LookAhead::Cylinder, 0, 40),
        (LookAhead::Cylinder, 20, 28),
        (LookAhead::TrackIfSequential, 0, 20),
        (LookAhead::Segment, 0, 72),
        (LookAhead::Segment, 33, 41),
    ] {
        let mut play = fresh(buffered(|rules| {
            rules.look_ahead = ahead;
            rules.look_ahead_blocks = blocks;
        }));
        play.then(read(5, 3));
        wait(&mut play, Duration::from_secs(1));
        // The segment of 64 blocks slides along.
        let start = u64::max(5, end - u64::min(end, 64));
        assert_eq!(
            held(&play, 0..100),
            (start..end).collect::<Vec<_>>(),
            "{ahead:?}"
        );
    }
}

#[test]
fn the_next_track_is_read_ahead_for_who_came_from_the_track_before() {
    let mut play = fresh(buffered(|rules| {
        rules.look_ahead = LookAhead::TrackIfSequential
    }));
    play.then(read(16, 4));
    play.then(read(20, 4));
    wait(&mut play, Duration::from_secs(1));
    assert!(has(&play, 59) && !has(&play, 60));
}

#[test]
fn the_last_block_of_the_drive_ends_a_look_ahead() {
    for ahead in [
        LookAhead::Segment,
        LookAhead::Track,
        LookAhead::TrackIfSequential,
    ] {
        let mut play = fresh(buffered(|rules| rules.look_ahead = ahead));
        play.then(read(BLOCKS - 10, 4));
        wait(&mut play, Duration::from_secs(1));
        assert!(has(&play, BLOCKS - 1));
        assert_eq!(play.then(read(BLOCKS - 1, 1)).hit(), BufferHit::Full);
    }
}

#[test]
fn the_look_ahead_goes_at_the_speed_of_the_medium_and_another_command_stops_it() {
    let mut play = fresh(buffered(|rules| rules.look_ahead = LookAhead::Segment));
    play.then(read(0, 4));
    // The medium was past block 4 when the bus began with it: 0.15 ms ago. 2.1 ms later it is in
    // the middle of the ninth block.
    wait(&mut play, micros(2_100));
    assert_eq!(held(&play, 0..30), (0..8).collect::<Vec<_>>());
    play.then(seek(1_000));
    wait(&mut play, Duration::from_secs(1));
    assert_eq!(held(&play, 0..30), (0..8).collect::<Vec<_>>());
}

#[test]
fn a_read_past_the_end_of_the_look_ahead_goes_on() {
    for pause in [0, 3_000, 1_000_000] {
        let mut play = fresh(buffered(|rules| {
            rules.look_ahead = LookAhead::Segment;
            rules.look_ahead_blocks = 6;
        }));
        play.then(read(0, 4));
        wait(&mut play, micros(pause));
        let done = play.then(read(4, 12));
        assert_eq!(done.hit(), BufferHit::Partial, "after {pause} us");
        assert!(has(&play, 15));
    }
}

#[test]
fn the_least_recently_used_segment_goes() {
    let mut play = fresh(buffered(|_| ()));
    for start in [0, 100, 200, 300] {
        play.then(read(start, 4));
    }
    // Used again: 0 is now the most recent, 100 the least.
    assert_eq!(play.then(read(2, 2)).hit(), BufferHit::Full);
    play.then(read(400, 4));
    let kept: Vec<bool> = [0, 100, 200, 300, 400]
        .iter()
        .map(|&lba| has(&play, lba))
        .collect();
    assert_eq!(kept, [true, false, true, true, true]);
}

#[test]
fn a_long_read_leaves_its_last_blocks_in_the_segment() {
    let mut play = fresh(buffered(|_| ()));
    play.then(read(0, 100));
    assert_eq!(held(&play, 0..120), (36..100).collect::<Vec<_>>());
}

#[test]
fn a_head_that_waits_keeps_what_passes_by() {
    for (on_arrival, first) in [(true, 6), (false, 10)] {
        let mut play = fresh(buffered(|rules| rules.read_on_arrival = on_arrival));
        // Taken up at 2.5 ms, on the track at 2.8 ms: sector 5 is half past, 6 is the first whole.
        play.serve(at(2_500), read(10, 2));
        assert_eq!(held(&play, 0..20), (first..12).collect::<Vec<_>>());
    }
}

#[test]
fn a_full_hit_starts_the_look_ahead_again_where_the_drive_does() {
    for (on_hit, more) in [(true, true), (false, false)] {
        let mut play = fresh(buffered(|rules| {
            rules.look_ahead = LookAhead::Segment;
            rules.look_ahead_blocks = 8;
            rules.look_ahead_on_hit = on_hit;
        }));
        play.then(read(0, 4));
        wait(&mut play, Duration::from_secs(1));
        assert_eq!(play.then(read(4, 8)).hit(), BufferHit::Full);
        wait(&mut play, Duration::from_secs(1));
        assert_eq!(has(&play, 15), more);
    }
}

#[test]
fn look_ahead_is_switched_off_and_on() {
    let mut play = fresh(buffered(|rules| rules.look_ahead = LookAhead::Track));
    play.then(read(0, 4));
    let off = play.then(Action::SetLookAhead(Switch::Off));
    assert_eq!(off.took(), micros(100));
    wait(&mut play, Duration::from_secs(1));
    assert!(has(&play, 3) && !has(&play, 6), "it stops at once");
    play.then(read(100, 4));
    wait(&mut play, Duration::from_secs(1));
    assert!(!has(&play, 104));
    play.then(Action::SetLookAhead(Switch::On));
    play.then(read(200, 4));
    wait(&mut play, Duration::from_secs(1));
    assert!(has(&play, 204));
}

#[test]
fn the_arm_is_where_the_look_ahead_was_when_it_was_switched_off() {
    let mut play = fresh(buffered(|rules| rules.look_ahead = LookAhead::Segment));
    play.then(read(36, 2));
    // Past the cylinder's end and onto the next one.
    wait(&mut play, micros(6_000));
    play.then(Action::SetLookAhead(Switch::Off));
    assert_eq!(play.then(read(58, 1)).account().seek, Duration::ZERO);
}

#[test]
fn a_durable_read_comes_from_the_medium() {
    let mut play = fresh(buffered(|rules| rules.look_ahead = LookAhead::Track));
    play.then(read(0, 10));
    let done = play.then(read_medium(2, 4));
    assert_eq!(done.hit(), BufferHit::Miss);
    assert!(done.account().transfer.as_nanos().abs_diff(4 * SECTOR) <= 16);
}

#[test]
fn a_hit_behind_a_busy_arm_waits_its_turn() {
    let profile = buffered(|_| ());
    for order in [QueueOrder::Fcfs, QueueOrder::Sptf] {
        let drive = VirtualDrive::new(arc(profile.clone())).with_queue(4, order);
        let mut play = Play::new(drive);
        play.then(read(0, 4));
        let now = play.now;
        let far = play.submit(now, read(1_000, 4));
        let hit = play.submit(now, read(0, 4));
        let switch = play.submit(now, Action::SetLookAhead(Switch::Off));
        play.drain();
        assert!(play.of(far).outcome.at < play.of(hit).outcome.at);
        assert!(play.of(far).outcome.at < play.of(switch).outcome.at + micros(1_000));
        assert_eq!(play.of(hit).hit(), BufferHit::Full);
    }
}
