//! Two actuators: each serves its half of the blocks as if the other were not there.

use block::{Action, BufferHit, Duration};
use drive::firmware::{LookAhead, WriteBack};
use drive::{Profile, VirtualDrive};

use crate::play::Play;
use crate::small::*;

/// The first block of the second arm.
const SECOND: u64 = BLOCKS / 2;

fn two(mut profile: Profile) -> Play {
    profile.actuators = 2;
    Play::new(VirtualDrive::new(arc(profile)))
}

#[test]
fn two_arms_serve_independently() {
    for action in [read as fn(u64, u64) -> Action, write] {
        let alone = two(bare()).serve(at(0), action(700, 4));
        let other_alone = two(bare()).serve(at(0), action(SECOND + 30, 60));
        let mut play = two(bare());
        let long = play.submit(at(0), action(SECOND + 30, 60));
        let short = play.submit(at(0), action(700, 4));
        play.drain();
        assert_eq!(play.of(short).took(), alone.took());
        assert_eq!(play.of(long).took(), other_alone.took());
    }
}

#[test]
fn a_command_for_one_arm_does_not_wait_behind_the_others() {
    let mut play = two(bare());
    let mut last = None;
    for start in [100, 300, 500] {
        last = Some(play.submit(at(0), read(start, 10)));
    }
    let other = play.submit(at(0), read(SECOND + 100, 1));
    play.drain();
    let last = last.expect("three of them");
    assert!(play.of(other).outcome.at < play.of(last).outcome.at);
    assert_eq!(play.of(other).account().queue, Duration::ZERO);
}

#[test]
fn the_look_ahead_of_one_arm_goes_on_while_the_other_works() {
    let ahead = || two(buffered(|rules| rules.look_ahead = LookAhead::Segment));
    let mut play = ahead();
    play.then(read(0, 4));
    play.then(read(SECOND + 100, 4));
    play.then(seek(SECOND + 500));
    play.run_until(play.now + Duration::from_secs(1));
    for (start, hit) in [(4, BufferHit::Full), (30, BufferHit::Full)] {
        assert_eq!(play.then(read(start, 4)).hit(), hit);
    }
    // The second arm is where its seek brought it, not where the first one's look-ahead ended.
    assert_eq!(play.then(seek(SECOND + 500)).account().seek, Duration::ZERO);
    assert_eq!(play.then(read(SECOND + 104, 1)).hit(), BufferHit::Miss);
}

#[test]
fn a_look_ahead_ends_where_the_blocks_of_its_arm_end() {
    let mut play = two(buffered(|rules| rules.look_ahead = LookAhead::Segment));
    play.then(read(SECOND - 6, 2));
    play.run_until(play.now + Duration::from_secs(1));
    assert_eq!(play.then(read(SECOND - 4, 4)).hit(), BufferHit::Full);
    assert_eq!(play.then(read(SECOND, 1)).hit(), BufferHit::Miss);
}

#[test]
fn each_arm_does_its_part_of_an_extent_on_both() {
    for action in [read as fn(u64, u64) -> Action, write] {
        let mut play = two(bare());
        play.then(action(SECOND - 5, 10));
        // Neither has to move to what it has just done, nor did it do the other's part.
        assert_eq!(play.then(seek(SECOND - 5)).account().seek, Duration::ZERO);
        assert_eq!(play.then(seek(SECOND + 4)).account().seek, Duration::ZERO);
        assert_eq!(play.then(seek(SECOND - 1)).account().seek, Duration::ZERO);
    }
}

#[test]
fn each_arm_destages_its_own() {
    let write_back = || two(buffered(|rules| rules.write_back = WriteBack::All));
    let flushed = |starts: &[u64]| {
        let mut play = write_back();
        for start in starts {
            play.submit(at(0), write(*start, 4));
        }
        play.run_until(at(2_500));
        play.then(Action::Flush).outcome.at
    };
    // The two are written at the same time.
    let (first, second) = (flushed(&[500]), flushed(&[SECOND + 500]));
    let both = flushed(&[500, SECOND + 500]);
    let later = both.since(first.max(second));
    assert!(later <= Duration::from_nanos(REVOLUTION), "{later:?} later");
    let one_arm = flushed(&[500, SECOND - 100]);
    assert!(both < one_arm);
}
