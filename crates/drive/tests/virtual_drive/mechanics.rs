//! Positioning by formula: overhead, seek, rotation, transfer; crossings; zero-latency access.

use block::{Action, BufferHit, Direction, Duration, Instant, Lba};
use drive::mechanics::SeekTarget;
use drive::{Position, Profile, VirtualDrive};

use crate::play::{Done, Play};
use crate::small::*;

fn fresh(profile: Profile) -> Play {
    Play::new(VirtualDrive::new(arc(profile)))
}

/// Equal but for the rounding of angles to nanoseconds.
#[track_caller]
fn assert_close(found: Duration, expected: u64, what: &str) {
    let off = found.as_nanos().abs_diff(expected);
    assert!(off <= 16, "{what}: {found:?}, expected {expected}");
}

/// How long from `now` until a block's sector begins.
fn until(profile: &Profile, now: Instant, lba: u64) -> u64 {
    let place = profile.geometry.locate(Lba(lba)).expect("on the drive");
    let begins = (place.angle.revolutions() * REVOLUTION as f64).round() as u64;
    (begins + REVOLUTION - now.as_nanos() % REVOLUTION) % REVOLUTION
}

#[test]
fn a_random_read_is_overhead_seek_rotation_transfer() {
    let profile = bare();
    for (from, to, blocks) in [(0, 40, 5), (5, 1_590, 10), (1_599, 3, 1), (700, 723, 17)] {
        for think in [0, 1_234_567, 7_000_001] {
            let mut play = fresh(profile.clone());
            play.then(seek(from));
            let now = play.now + Duration::from_nanos(think);
            let done = play.serve(now, read(to, blocks));
            let account = done.account();
            let track = |lba| (lba / TRACK / SURFACES, lba / TRACK % SURFACES);
            let seek = match track(from).0.abs_diff(track(to).0) {
                0 if track(from) == track(to) => 0,
                0 => 1_000_000,
                distance => 2_000_000 + (distance - 1) * 200_000,
            };
            let on_track = now + micros(300) + Duration::from_nanos(seek);
            assert_eq!(account.queue, Duration::ZERO);
            assert_eq!(account.overhead, micros(300 + 50));
            assert_eq!(account.seek.as_nanos(), seek);
            assert_close(account.rotation, until(&profile, on_track, to), "rotation");
            assert_close(account.transfer, blocks * SECTOR, "transfer");
            assert_eq!(
                account.bus,
                micros(100),
                "the last block's way over the bus"
            );
            assert_eq!(done.hit(), BufferHit::Miss);
        }
    }
}

#[test]
fn a_seek_moves_the_arm_and_nothing_else() {
    let mut play = fresh(bare());
    let done = play.serve(at(123), seek(40 * 20 + 5));
    assert_eq!(done.took(), micros(300 + 2_000 + 19 * 200));
    assert_eq!(done.account().seek, micros(2_000 + 19 * 200));
    let there = play.then(seek(40 * 20 + 19));
    assert_eq!(there.account().seek, Duration::ZERO);
    assert_eq!(play.then(read(40 * 20, 1)).account().seek, Duration::ZERO);
}

/// The time that the medium takes from the first sector to the last.
fn on_medium(done: &Done) -> Duration {
    let account = done.account();
    account.head() + account.bus
}

#[test]
fn a_crossing_loses_a_revolution_exactly_if_the_skew_is_too_short() {
    for (skew, lost) in [(3, 0), (2, 0), (1, 1), (0, 1)] {
        let line = format!("track_skew_sectors = {skew}");
        let profile = with_lines(&[("track_skew_sectors = 3", &line)]);
        let mut play = fresh(profile.clone());
        let now = play.now;
        let done = play.serve(now, read(10, 20));
        let first = until(&profile, now + micros(300), 10);
        let crossing = skew * SECTOR + lost * REVOLUTION;
        let expected = first + 20 * SECTOR + crossing + 100_000;
        assert_close(on_medium(&done), expected, "a read over two surfaces");
        assert_eq!(done.account().seek, micros(1_000));
    }
    for (skew, lost) in [(5, 0), (4, 0), (3, 1)] {
        let line = format!("cylinder_skew_sectors = {skew}");
        let profile = with_lines(&[("cylinder_skew_sectors = 5", &line)]);
        let mut play = fresh(profile.clone());
        play.then(seek(30));
        let now = play.now;
        let done = play.serve(now, read(30, 20));
        let first = until(&profile, now + micros(300), 30);
        let crossing = skew * SECTOR + lost * REVOLUTION;
        let expected = first + 20 * SECTOR + crossing + 100_000;
        assert_close(on_medium(&done), expected, "a read over two cylinders");
        assert_eq!(done.account().seek, micros(2_000));
    }
}

#[test]
fn a_write_settles_at_each_crossing() {
    for (settle, lost) in [("0.2", 0), ("0.5", 0), ("0.6", 1), ("-0.3", 0)] {
        let line = format!("write_settle_ms = {settle}");
        let mut play = fresh(with_lines(&[("write_settle_ms = 0.2", &line)]));
        let alone = fresh(bare()).then(write(10, 10));
        let done = play.then(write(10, 20));
        let expected = alone.took().as_nanos() + 10 * SECTOR + 3 * SECTOR + lost * REVOLUTION;
        assert_close(done.took(), expected, "a write over two surfaces");
    }
}

#[test]
fn zero_latency_reads_a_track_in_one_revolution_from_wherever_it_arrives() {
    let profile = buffered(|rules| rules.zero_latency_read = true);
    for think in (0..REVOLUTION).step_by(333_333) {
        let mut play = fresh(profile.clone());
        let now = Instant::from_nanos(think);
        let account = play.serve(now, read(0, TRACK)).account();
        let into_sector = (think + 300_000) % SECTOR;
        let boundary = (SECTOR - into_sector) % SECTOR;
        assert_close(account.rotation, boundary, "to the next sector");
        assert_close(account.transfer, REVOLUTION, "one revolution");
    }
    // A run that is not the whole track: inside it a revolution, outside it the wait for it.
    let mut play = fresh(profile.clone());
    let account = play.serve(at(5_000 - 300), read(8, 8)).account();
    assert_close(account.rotation + account.transfer, REVOLUTION, "inside");
    let mut play = fresh(profile);
    let account = play.serve(at(9_000 - 300), read(8, 8)).account();
    assert_close(account.rotation, 5_000_000, "outside");
    assert_close(account.transfer, 8 * SECTOR, "outside");
}

#[test]
fn zero_latency_data_leave_in_order() {
    // The head arrives at sector 10 of a track that is wanted as a whole: block 0 is there after
    // the last ten sectors and itself, and only then the bus begins.
    let mut profile = buffered(|rules| rules.zero_latency_read = true);
    profile.bus.read_block = micros(500);
    let done = fresh(profile).serve(at(5_000 - 300), read(0, TRACK));
    let first_block = 5_000 + 500;
    let expected = 300 + first_block + 20 * 500 + 50;
    assert_close(done.took(), expected * 1_000, "in order");
}

#[test]
fn zero_latency_waits_for_written_data_that_are_late() {
    // Blocks come every 2 ms, sectors every 0.5 ms: the last block is over the bus 40 ms after
    // the first could begin, and its sector passes within a revolution of that.
    let mut profile = buffered(|rules| rules.zero_latency_write = true);
    profile.bus.write_block = micros(2_000);
    for think in (0..10_000).step_by(700) {
        let done = fresh(profile.clone()).serve(at(think), write(0, TRACK));
        let over_the_bus = micros(400 + 20 * 2_000);
        assert!(done.took() >= over_the_bus, "written before it came");
        let most = over_the_bus + Duration::from_nanos(REVOLUTION + SECTOR) + micros(60);
        assert!(done.took() <= most, "{:?} is too late", done.took());
    }
}

#[test]
fn zero_latency_goes_on_where_it_is_without_losing_a_revolution() {
    let mut profile = bare();
    profile.buffer.zero_latency_read = true;
    profile.overheads = drive::firmware::Overheads::default();
    profile.bus = drive::firmware::Bus::default();
    let mut play = fresh(profile);
    play.then(read(3, 1));
    for next in 4..16 {
        assert_close(play.then(read(next, 1)).took(), SECTOR, "the next sector");
    }
}

#[test]
fn rounding_does_not_add_up_over_many_tracks() {
    // 10,045 revolutions a minute are no whole number of nanoseconds each, and nothing waits
    // between the tracks: every rounding would be added to the next.
    let profile = with_lines(&[
        ("rpm = 6000", "rpm = 10045"),
        ("head_switch_ms = 1.0", "head_switch_ms = 0"),
        ("[[1, 2.0], [39, 9.6]]", "[[1, 0], [39, 0]]"),
        ("track_skew_sectors = 3", "track_skew_sectors = 0"),
        ("cylinder_skew_sectors = 5", "cylinder_skew_sectors = 0"),
    ]);
    let period = profile.spindle.period_ps();
    let account = fresh(profile).then(read(0, BLOCKS)).account();
    let tracks = SURFACES * CYLINDERS;
    assert_close(account.transfer, tracks * period / 1_000, "all tracks");
    assert!(account.rotation.as_nanos() < period / 1_000 + 100);
}

#[test]
fn positioning_is_what_a_policy_is_told() {
    // What a scheduler computes from the same profile is what the drive does.
    let profile = bare();
    let mut play = fresh(profile.clone());
    play.then(seek(0));
    for (lba, action) in [
        (777, read(777, 1)),
        (30, write(30, 1)),
        (1_500, read(1_500, 1)),
    ] {
        let from = position(&profile, play.done.last().map_or(0, first_block));
        let place = profile.geometry.locate(Lba(lba)).expect("on the drive");
        let (direction, overhead) = match (action, play.done.len()) {
            (Action::Write { .. }, _) => (Direction::Write, 400),
            (_, 3) => (Direction::Read, 340),
            _ => (Direction::Read, 300),
        };
        let ready = play.now + micros(overhead);
        let way = profile.positioning(from, ready, &SeekTarget::from(&place), direction);
        let account = play.then(action).account();
        assert_eq!((account.seek, account.rotation), (way.seek, way.rotation));
    }
}

fn first_block(done: &Done) -> u64 {
    done.command
        .action
        .extent()
        .map_or(0, |extent| extent.start().0)
}

fn position(profile: &Profile, lba: u64) -> Position {
    let place = profile.geometry.locate(Lba(lba)).expect("on the drive");
    SeekTarget::from(&place).position
}
