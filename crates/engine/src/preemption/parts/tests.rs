//! What the next part of a request is, beside what urgent requests win and lose by it.

use block::Class;
use drive::firmware::WriteBack;
use scheduler::ordering::PriorityLevel;
use scheduler::preemption::Preemption;
use scheduler::preemption::worth::{FORESEEN, WEIGHT};

use super::*;
use crate::context::tests::{StageBench, blocks, profile};

const CHUNK: u64 = 64;

const RULES: Preemption = Preemption {
    chunk: Some(Sectors(CHUNK)),
    when: When::Worth,
    ..Transfers::WHOLE
};

/// Where the buffer goes on by itself, and where it does not.
fn buffered(look_ahead: LookAhead, write_back: WriteBack) -> Profile {
    let mut belief = profile();
    belief.buffer.look_ahead = look_ahead;
    belief.buffer.write_back = write_back;
    belief
}

/// What a command that holds the drive for so long costs `rate` more urgent requests in a second.
fn cost(rate: u64, held: Duration) -> f64 {
    let held = held.as_nanos() as f64;
    WEIGHT as f64 * rate as f64 / 1e9 * held * held / 2.0
}

#[test]
fn a_request_is_cut_if_urgent_ones_win_more_than_its_commands_cost() {
    let (mut cuts, mut wholes) = (0, 0);
    let urgent = PriorityLevel::of(Class::BestEffort(0)).expect("a level");
    for look_ahead in [LookAhead::None, LookAhead::Segment] {
        for (rate, at_drive) in [(0, 1), (60, 1), (500, 1), (0, 2), (60, 2)] {
            for chunks in 1..130 {
                for more in [0, 1] {
                    let belief = buffered(look_ahead, WriteBack::None);
                    let mut bench = StageBench::of(belief);
                    let transfers = Transfers::by(RULES, bench.belief.profile(), bench.now);
                    let mut transfers = transfers;
                    (0..8 * rate).for_each(|_| transfers.worth.arrived(bench.now, urgent));
                    bench.intake.limits.commands_at_drive = at_drive;
                    let left = chunks * CHUNK + more;
                    let class = Class::BestEffort(3);
                    let extent = blocks(2_000_000, left);
                    let piece = bench.submit(Direction::Read, extent, class);
                    let cx = bench.cx();
                    let belief = cx.profile();
                    let sector = belief.spindle.time_of(cx.route(piece).width());
                    let thirds = belief.geometry.cylinders() / 3;
                    let seek = belief.seek.read().time(thirds);
                    let rate = rate.max(FORESEEN);
                    let commands = left.div_ceil(CHUNK);
                    let cut = cost(rate, seek + sector * CHUNK)
                        + cost(rate, sector * CHUNK) * (commands - 1) as f64;
                    let won = cost(rate, seek + sector * left) - cut;
                    let each = match look_ahead == LookAhead::None && at_drive == 1 {
                        true => belief.spindle.period(),
                        false => COMMAND,
                    };
                    let lost = (each * commands).as_nanos() as f64;
                    let is_cut = commands > 1 && won > lost;
                    let guarantees = Guarantees::none();
                    let (part, role) = transfers.next_part(&cx, &guarantees, piece, u64::MAX);
                    let small = (4096 / u64::from(belief.block_bytes)).max(1);
                    let expected = match (is_cut, look_ahead) {
                        (false, _) => left,
                        // The first part holds the drive for longest, and the drive goes on by itself.
                        (true, LookAhead::Segment) => small.min(CHUNK),
                        (true, _) => CHUNK,
                    };
                    let what = format!("{left} blocks, {rate}/s: {won} won, {lost} lost");
                    assert_eq!(
                        (part.start(), part.length().0),
                        (extent.start(), expected),
                        "{what}"
                    );
                    assert_eq!(role == ChunkRole::Last, expected == left);
                    cuts += u32::from(is_cut);
                    wholes += u32::from(!is_cut);
                }
            }
        }
    }
    assert!(cuts > 30 && wholes > 30, "{cuts} and {wholes}");
}

/// No part is longer than what it may be at most.
#[test]
fn a_part_is_as_long_as_it_may_be() {
    let rules = Preemption {
        when: When::Always,
        ..RULES
    };
    let mut bench = StageBench::new();
    let transfers = Transfers::by(rules, bench.belief.profile(), bench.now);
    let class = Class::BestEffort(3);
    let piece = bench.submit(Direction::Read, blocks(8, 3 * CHUNK), class);
    let guarantees = Guarantees::none();
    for (most, length) in [
        (0, 1),
        (1, 1),
        (CHUNK - 1, CHUNK - 1),
        (CHUNK, CHUNK),
        (CHUNK + 1, CHUNK),
    ] {
        let (part, role) = transfers.next_part(&bench.cx(), &guarantees, piece, most);
        assert_eq!((part, role), (blocks(8, length), ChunkRole::Inner));
    }
}

#[test]
fn parts_are_hidden_where_the_buffer_reads_ahead_or_takes_writes_that_are_not_forced() {
    use LookAhead::{Cylinder, Segment, Track};
    let guarantees = Guarantees::none();
    let transfers = |last_chunk| {
        let rules = Preemption {
            last_chunk,
            ..RULES
        };
        Transfers::by(rules, &profile(), block::Instant::ZERO)
    };
    let of_writes = transfers(LastChunk::Buffered);
    for (look_ahead, is_hidden, reads_on_track_ends) in [
        (LookAhead::None, false, false),
        (Track, true, false),
        (Segment, true, true),
        (Cylinder, true, true),
    ] {
        let mut belief = buffered(look_ahead, WriteBack::None);
        let read = Direction::Read;
        assert_eq!(of_writes.is_hidden(&belief, &guarantees, read), is_hidden);
        assert_eq!(
            reads_on(&belief, read),
            reads_on_track_ends,
            "{look_ahead:?}"
        );
        assert!(reads_on(&belief, Direction::Write));
        assert!(!of_writes.is_hidden(&belief, &guarantees, Direction::Write));
        belief.buffer.segments = 0;
        assert!(!of_writes.is_hidden(&belief, &guarantees, read));
    }
    let mut belief = buffered(LookAhead::None, WriteBack::All);
    for (last_chunk, is_hidden) in [
        (LastChunk::Buffered, true),
        (LastChunk::Forced, true),
        (LastChunk::Every(2), true),
        (LastChunk::Every(1), false),
    ] {
        let transfers = transfers(last_chunk);
        assert_eq!(
            transfers.is_hidden(&belief, &guarantees, Direction::Write),
            is_hidden
        );
    }
    belief.buffer.segments = 0;
    assert!(!of_writes.is_hidden(&belief, &guarantees, Direction::Write));
}

#[test]
fn what_follows_a_read_may_be_in_the_buffer_and_a_write_that_is_not_forced_goes_there() {
    let guarantees = Guarantees::none();
    for (look_ahead, write_back) in [
        (LookAhead::Segment, WriteBack::All),
        (LookAhead::None, WriteBack::None),
    ] {
        let is_there = look_ahead == LookAhead::Segment;
        for last_chunk in [LastChunk::Buffered, LastChunk::Forced] {
            let mut bench = StageBench::of(buffered(look_ahead, write_back));
            let ahead = u64::from(bench.belief.profile().buffer.segment_blocks);
            let rules = Preemption {
                last_chunk,
                ..RULES
            };
            let mut transfers = Transfers::by(rules, bench.belief.profile(), bench.now);
            let read = Draft::ReadAhead(blocks(800, 8));
            transfers.note_given(&mut bench.cx(), &guarantees, &read);
            let mut is_likely = |direction, start| {
                let piece = bench.submit(direction, blocks(start, 8), Class::default());
                transfers.is_likely_buffered(&bench.cx(), &guarantees, piece)
            };
            for (start, is_behind) in [
                (807, false),
                (808, true),
                (807 + ahead, true),
                (808 + ahead, false),
            ] {
                assert_eq!(
                    is_likely(Direction::Read, start),
                    is_there && is_behind,
                    "{start}"
                );
            }
            let is_taken = is_there && last_chunk == LastChunk::Buffered;
            assert_eq!(is_likely(Direction::Write, 5_000), is_taken);
        }
    }
    // Without rules nothing is known of the buffer.
    let mut bench = StageBench::of(buffered(LookAhead::Segment, WriteBack::All));
    let piece = bench.submit(Direction::Write, blocks(0, 8), Class::default());
    assert!(!Transfers::none().is_likely_buffered(&bench.cx(), &guarantees, piece));
}

#[test]
fn the_head_goes_on_to_hidden_parts_and_seeks_to_all_else() {
    let guarantees = Guarantees::none();
    for (look_ahead, seek_command) in [
        (LookAhead::Segment, Switch::On),
        (LookAhead::None, Switch::Off),
    ] {
        let mut belief = buffered(look_ahead, WriteBack::None);
        belief.seek_command = seek_command;
        let mut bench = StageBench::of(belief);
        let transfers = Transfers::by(RULES, bench.belief.profile(), bench.now);
        let piece = bench.submit(Direction::Read, blocks(0, 8), Class::default());
        let cx = bench.cx();
        let approach = |draft| transfers.approach_of(&cx, &guarantees, &draft);
        let (goes_on, hops) = match look_ahead {
            LookAhead::None => (Approach::Seek, Approach::Seek),
            _ => (Approach::Continue, Approach::SeekOnly),
        };
        assert_eq!(approach(Draft::part(piece)), goes_on);
        assert_eq!(approach(Draft::ReadAhead(blocks(0, 8))), goes_on);
        assert_eq!(approach(Draft::Hop(blocks(0, 1))), hops);
        let request = Draft::request(piece, crate::command::Planned::Yes);
        assert_eq!(approach(request), Approach::Seek);
    }
}

/// Only a read that the drive goes on with by itself begins with a small part, and only if that is worth it.
#[test]
fn other_first_parts_are_whole_chunks() {
    let guarantees = Guarantees::none();
    for (when, direction, look_ahead, length) in [
        (When::Worth, Direction::Read, LookAhead::Segment, 1),
        (When::Always, Direction::Read, LookAhead::Segment, CHUNK),
        (When::Worth, Direction::Write, LookAhead::Segment, CHUNK),
        (When::Worth, Direction::Read, LookAhead::Track, CHUNK),
    ] {
        let mut bench = StageBench::of(buffered(look_ahead, WriteBack::All));
        let rules = Preemption { when, ..RULES };
        let transfers = Transfers::by(rules, bench.belief.profile(), bench.now);
        let extent = blocks(2_000_000, 200 * CHUNK);
        let piece = bench.submit(direction, extent, Class::BestEffort(3));
        let (part, _) = transfers.next_part(&bench.cx(), &guarantees, piece, u64::MAX);
        assert_eq!(
            part.length().0,
            length,
            "{when:?}, {direction:?}, {look_ahead:?}"
        );
    }
    let mut belief = profile();
    for (bytes, least) in [(512, 8), (1_024, 4), (4_096, 1), (8_192, 1)] {
        belief.block_bytes = bytes;
        assert_eq!(least_part(&belief), least);
    }
}

/// What has begun in parts goes on so, however little is left of it.
#[test]
fn the_rest_of_a_request_is_cut_as_its_beginning_was() {
    let mut bench = StageBench::of(buffered(LookAhead::None, WriteBack::None));
    let mut transfers = Transfers::by(RULES, bench.belief.profile(), bench.now);
    let guarantees = Guarantees::none();
    let class = Class::BestEffort(3);
    let chunks = 120;
    let piece = bench.submit(Direction::Read, blocks(2_000_000, chunks * CHUNK), class);
    let mut cx = bench.cx();
    cx.ordering.choose_for(piece).expect("it waits");
    cx.ordering.give(cx.now, piece);
    let mut draft = Draft::request(piece, crate::command::Planned::Yes);
    for n in 0..chunks {
        let (part, _) = transfers.note_given(&mut cx, &guarantees, &draft);
        assert_eq!(part, Some(blocks(2_000_000 + n * CHUNK, CHUNK)));
        draft = Draft::part(piece);
    }
}
