//! The rarer rules of the write cache, the seek command, and what they do to later commands.

use block::{Action, Duration, Instant, Switch};
use drive::VirtualDrive;
use drive::firmware::{BufferRules, QueueOrder, WriteBack};

use crate::play::Play;
use crate::small::*;

/// The small drive with a write cache of three segments.
fn cached(rules: impl FnOnce(&mut BufferRules)) -> Play {
    let profile = buffered(|buffer| {
        buffer.write_back = WriteBack::All;
        buffer.write_segments = 3;
        rules(buffer);
    });
    Play::new(VirtualDrive::new(arc(profile)))
}

/// Whether a power cut at `at` would lose the write that began at a block.
fn is_lost(play: &Play, at: Instant, start: u64) -> bool {
    let mut copy = Play::new(play.drive.clone());
    copy.run_until(at);
    let lost = copy.drive.power_cut(at);
    let mut written = lost.written.iter().chain(&lost.undecided);
    written.any(|extent| extent.start().0 == start)
}

/// When a write is on the medium if nothing else comes, to 10 us.
fn on_medium(play: &Play, start: u64) -> Instant {
    let mut at = play.now;
    while is_lost(play, at, start) {
        at += micros(10);
    }
    at
}

#[test]
fn where_written_data_go_first_a_later_command_waits_for_all_of_them() {
    for first in [true, false] {
        for later in [read(20, 2), write_medium(20, 2), seek(20)] {
            let mut play = cached(|rules| rules.destage_first = first);
            play.then(write(500, 4));
            play.then(write(1_500, 4));
            let done = play.then(later);
            let left = is_lost(&play, done.outcome.at, 1_500);
            assert_eq!(!left, first, "{later:?}");
        }
    }
}

#[test]
fn what_the_buffer_answers_does_not_wait_for_the_data_that_go_first() {
    let mut play = cached(|rules| rules.destage_first = true);
    play.then(write(500, 4));
    play.then(write(1_500, 4));
    let hit = play.then(read(1_501, 2));
    assert_eq!(hit.took(), micros(120 + 200 + 50));
}

#[test]
fn written_data_go_in_the_order_of_their_coming_or_of_their_place() {
    for (order, near_first) in [
        (QueueOrder::Fcfs, false),
        (QueueOrder::Sptf, true),
        (QueueOrder::AgedSptf, true),
    ] {
        let mut play = cached(|rules| rules.destage_order = order);
        // The arm is on its way with the first when the others come.
        for start in [500, 1_500, 504] {
            play.then(write(start, 4));
        }
        let (far, near) = (on_medium(&play, 1_500), on_medium(&play, 504));
        assert_eq!(near < far, near_first, "{order:?}");
    }
}

#[test]
fn what_overlaps_older_data_goes_after_them_in_every_order() {
    // The arm leaves at all angles, with the newer data now behind the older ones, now before.
    for first in (500..520).step_by(3) {
        for newer in [1_481, 1_487, 1_493, 1_499, 1_503] {
            let mut play = cached(|rules| rules.destage_order = QueueOrder::Sptf);
            for (start, blocks) in [(first, 4), (1_500, 8), (newer, 21)] {
                play.then(write(start, blocks));
            }
            let (old, new) = (on_medium(&play, 1_500), on_medium(&play, newer));
            assert!(old <= new, "{first}, {newer}");
        }
    }
}

#[test]
fn a_write_that_continues_another_takes_a_segment_of_its_own_where_each_does() {
    for own in [true, false] {
        let mut play = cached(|rules| rules.segment_per_write = own);
        // The first is on its way to the medium, the next three fill the segments.
        for start in [1_000, 1_004, 1_008, 1_012] {
            assert!(play.then(write(start, 4)).took() < micros(2_000));
        }
        let waited = play.then(write(1_016, 4)).account().queue;
        assert_eq!(waited > micros(2_000), own, "{waited:?}");
    }
}

#[test]
fn a_write_in_parts_loses_a_revolution_at_each() {
    let took = |parts, blocks| {
        let profile = buffered(|buffer| buffer.writes_in_parts = parts);
        let mut play = Play::new(VirtualDrive::new(arc(profile)));
        play.serve(at(0), write(0, blocks)).took().as_nanos()
    };
    // Two segments of 64 blocks. Block 128 is not the first of its track; block 256 neither.
    for (blocks, lost) in [(128, 0), (129, 1), (140, 1), (256, 1), (257, 2)] {
        let more = took(true, blocks) - took(false, blocks);
        let off = more.abs_diff(lost * REVOLUTION);
        assert!(off <= 64, "{blocks} blocks: {more} ns more");
    }
}

#[test]
fn no_more_waits_for_the_bus_or_the_medium_than_the_buffer_holds() {
    // 44 blocks after the 256 that fill the buffer: 22 ms, a head switch, a seek.
    let rest = 44 * SECTOR + 3 * SECTOR + 5 * SECTOR;
    for (segment, left) in [(64, 30_000_000 - rest), (75, 30_000_000)] {
        let profile = buffered(|buffer| {
            buffer.segment_blocks = segment;
            buffer.read_watermark = 1_000;
        });
        let mut play = Play::new(VirtualDrive::new(arc(profile)));
        let bus = play.serve(at(0), read(0, 300)).account().bus.as_nanos();
        assert!(bus.abs_diff(left) <= 64, "{segment}: {bus} ns");
    }
    let took = |segment| {
        let profile = buffered(|buffer| {
            buffer.segment_blocks = segment;
            buffer.write_watermark = 1_000;
        });
        let mut play = Play::new(VirtualDrive::new(arc(profile)));
        play.serve(at(0), write(0, 300)).took()
    };
    // The bus takes 10 ms for 100 blocks: a revolution.
    let sooner = took(75).as_nanos() - took(50).as_nanos();
    assert!(sooner.abs_diff(REVOLUTION) <= 64, "{sooner} ns");
}

#[test]
fn a_drive_without_a_seek_command_ends_it_at_once_and_moves_nothing() {
    let mut profile = bare();
    profile.seek_command = Switch::Off;
    let mut play = Play::new(VirtualDrive::new(arc(profile)));
    let done = play.serve(at(0), seek(1_500));
    assert_eq!(done.took(), micros(100));
    assert_eq!(done.account().seek, Duration::ZERO);
    assert_eq!(play.then(read(0, 1)).account().seek, Duration::ZERO);
    // It does not wait for what is being destaged either.
    let mut profile = buffered(|rules| rules.write_back = WriteBack::All);
    profile.seek_command = Switch::Off;
    let mut play = Play::new(VirtualDrive::new(arc(profile)));
    play.then(write(1_500, 4));
    assert_eq!(play.then(seek(0)).took(), micros(120));
}

#[test]
fn a_command_that_needs_the_arm_ends_the_look_ahead_at_once() {
    // Far from a track's end: the arm goes as soon as the command is decoded.
    for (later, overhead) in [(seek(1_000), 300), (read(1_000, 1), 300)] {
        let mut play = Play::new(VirtualDrive::new(arc(buffered(|rules| {
            rules.look_ahead = drive::firmware::LookAhead::Segment;
        }))));
        play.then(read(0, 4));
        play.run_until(play.now + micros(2_100));
        let account = play.then(later).account();
        assert_eq!(account.queue, Duration::ZERO, "{later:?}");
        assert_eq!(account.overhead.as_nanos() / 1_000 / 100, overhead / 100);
        assert_eq!(account.seek, micros(2_000 + 24 * 200), "{later:?}");
    }
}

#[test]
fn a_flush_ends_what_every_order_left() {
    let mut play = cached(|rules| rules.destage_order = QueueOrder::Sptf);
    for start in [500, 1_500, 504] {
        play.then(write(start, 4));
    }
    play.then(Action::Flush);
    for start in [500, 1_500, 504] {
        assert!(!is_lost(&play, play.now, start));
    }
}
