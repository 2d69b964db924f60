//! The specification's figures on the 20 TB drive, and every shipped drive's worst times.

use super::*;
use block::{Instant, Sectors};
use drive::catalog;
use stream::Piece;
use stream::admission::{Admission, Demand, Reason, Rules};

mod trial;

fn belief(name: &str) -> Profile {
    let entry = catalog::find(name).expect("a shipped drive");
    entry.profile().expect("a valid profile")
}

fn whole(belief: &Profile) -> Extent {
    Extent::new(Lba(0), belief.geometry.sectors()).expect("blocks")
}

fn innermost(belief: &Profile) -> Extent {
    Extent::block(Lba(belief.geometry.sectors().0 - 1))
}

/// The blocks of the innermost zone.
fn inner_zone(belief: &Profile) -> Extent {
    let blocks = belief.geometry.sectors().0;
    let first = belief.geometry.zones().last().expect("a zone").first.0;
    Extent::new(Lba(first), Sectors(blocks - first)).expect("blocks")
}

/// How many streams of `rate` with `memory` are granted on the 20 TB drive, all of them as fast as in
/// the innermost zone, and anywhere between the edges of the disk.
fn granted(beyond: Beyond, foreground_permille: u32, rate: u64, memory: u64) -> usize {
    let belief = belief("modern-20tb");
    let everywhere = cylinders_of(&belief, whole(&belief));
    granted_in(everywhere, beyond, foreground_permille, rate, memory)
}

/// The same between these cylinders.
fn granted_in(
    cylinders: Cylinders,
    beyond: Beyond,
    foreground_permille: u32,
    rate: u64,
    memory: u64,
) -> usize {
    let belief = belief("modern-20tb");
    let times = head_times(&belief, beyond).expect("a seek curve");
    let zone = slowest_zone(&belief, innermost(&belief), beyond, Direction::Read);
    let rules = Rules {
        foreground_permille,
        latency: Duration::ZERO,
        longest_round: Duration::from_secs(10),
        streams: 10_000,
    };
    let demand = Demand {
        direction: Direction::Read,
        rate: Rate::new(rate).expect("not zero"),
        buffer: 0,
        memory,
        zone: Zone { cylinders, ..zone },
        extents: 1,
        page: 4096,
    };
    let mut admission = Admission::new(times, rules);
    while admission.admit(&demand).is_ok() {}
    admission.streams()
}

/// Seek noise that a change of track can take without missing its skew: the 99.9th percentile of
/// a deviation of 6 us.
const QUIET: Beyond = Beyond {
    seek: Duration::from_micros(19),
    overhead: Duration::ZERO,
    stall: Duration::ZERO,
};

#[test]
fn the_20_tb_drive_admits_what_the_specification_says() {
    let goals = [
        (2_000_000, [49, 37, 27]),
        (4_000_000, [73, 54, 40]),
        (8_000_000, [94, 68, 50]),
    ];
    let mut table = Vec::new();
    for (memory, goals) in goals {
        let granted = [0, 300, 500].map(|permille| granted(QUIET, permille, 1_000_000, memory));
        let reached = std::iter::zip(granted, goals).all(|(granted, goal)| granted >= goal);
        assert!(reached, "{memory} B: {granted:?} of {goals:?}");
        table.push(granted);
    }
    // What the form gives: beyond the goals where batches of whole tracks fit.
    assert_eq!(table, [[54, 44, 33], [100, 72, 51], [115, 80, 57]]);
}

/// Streams that are near each other seek less: those that are in the innermost zone, too.
#[test]
fn the_innermost_zone_admits_more_than_the_whole_disk() {
    let belief = belief("modern-20tb");
    let inside = cylinders_of(&belief, inner_zone(&belief));
    let granted = |memory| {
        [0, 300, 500].map(|permille| granted_in(inside, QUIET, permille, 1_000_000, memory))
    };
    let table = [2_000_000, 4_000_000, 8_000_000].map(granted);
    assert_eq!(table, [[72, 58, 45], [111, 79, 56], [119, 83, 59]]);
}

#[test]
fn the_20_tb_drive_takes_64_cameras_and_8_readers() {
    let granted = granted(QUIET, 300, 500_000, 2_000_000);
    assert!(granted >= 72, "{granted}");
}

#[test]
fn what_a_drive_does_beyond_its_profile_costs_streams() {
    let quiet = granted(QUIET, 0, 1_000_000, 2_000_000);
    let noisy = Beyond {
        seek: Duration::from_micros(300),
        ..QUIET
    };
    assert!(granted(noisy, 0, 1_000_000, 2_000_000) < quiet);
    let stalling = Beyond {
        stall: Duration::from_millis(50),
        ..QUIET
    };
    assert!(granted(stalling, 0, 1_000_000, 2_000_000) < quiet);
}

#[test]
fn the_inner_zone_sustains_its_tracks_and_their_skews() {
    let belief = belief("modern-20tb");
    let zone = slowest_zone(&belief, whole(&belief), QUIET, Direction::Read);
    // 268 blocks of 4096 bytes in 17/16 of a revolution.
    let expected = 268.0 * 4096.0 * 120.0 / 1.0625;
    let error = zone.sustained.bytes() as f64 / expected - 1.0;
    assert!(error.abs() < 1e-6, "{}", zone.sustained);
    // The outermost tracks have 586 blocks: the largest counts, and the slowest.
    let tracks = zone.tracks.expect("zero-latency access");
    assert_eq!(tracks.bytes, 586 * 4096);
    let noisy = Beyond {
        seek: Duration::from_micros(100),
        ..QUIET
    };
    let slower = slowest_zone(&belief, whole(&belief), noisy, Direction::Read);
    assert!(slower.sustained < zone.sustained);
}

#[test]
fn every_shipped_drive_has_head_times() {
    for entry in catalog::ALL {
        let belief = entry.profile().expect("a valid profile");
        let times = head_times(&belief, Beyond::default()).expect("a seek curve");
        for distance in [1, 2, 10, 100, 1_000, 10_000, times.cylinders] {
            let distance = distance.min(belief.geometry.cylinders() - 1);
            let seek = belief.seek.read().time(distance);
            assert!(
                times.seek.at(distance) >= seek,
                "{}: {distance}",
                entry.name
            );
        }
        let zone = slowest_zone(&belief, whole(&belief), Beyond::default(), Direction::Read);
        let slowest = zone.sustained.bytes();
        assert!(
            (500_000..300_000_000).contains(&slowest),
            "{}: {slowest}",
            entry.name
        );
    }
}

#[test]
fn a_narrow_span_costs_the_way_to_it() {
    let belief = belief("modern-20tb");
    let blocks = belief.geometry.sectors().0;
    let times = head_times(&belief, QUIET).expect("a seek curve");
    let sweep = |start, length| {
        let place = Extent::new(Lba(start), Sectors(length)).expect("inside");
        times.sweep(40, cylinders_of(&belief, place), 0)
    };
    let wide = sweep(0, blocks);
    let narrow = sweep(blocks / 2, blocks / 100);
    assert!(narrow < wide);
    // In the middle a head is never far.
    assert!(sweep(blocks - blocks / 100, blocks / 100) > narrow);
}

#[test]
fn the_zone_of_a_file_has_the_cylinders_of_all_its_pieces() {
    let belief = belief("modern-20tb");
    let zone = inner_zone(&belief);
    let (first, last) = (zone.start().0, zone.last().0);
    // Two pieces of one zone, far apart, the second one before and behind the first.
    for places in [[first, last], [last, first]] {
        let block = u64::from(belief.block_bytes);
        let pieces = (0..).zip(places).map(|(index, at)| Piece {
            offset: index * block,
            extent: Extent::block(Lba(at)),
        });
        let map = LocationMap::new(pieces.collect(), block, 2 * block).expect("a map");
        let zone = zone_over(&belief, &map, QUIET, Direction::Read);
        let mut cylinders = places.map(|at| cylinders_of(&belief, Extent::block(Lba(at))));
        cylinders.sort_unstable_by_key(|cylinders| cylinders.low);
        let [one, other] = cylinders;
        assert_ne!(one, other);
        assert_eq!(
            (zone.cylinders.low, zone.cylinders.high),
            (one.low, other.high)
        );
    }
}

#[test]
fn a_rate_above_the_inner_zone_is_refused_by_name() {
    let belief = belief("modern-20tb");
    let times = head_times(&belief, QUIET).expect("a seek curve");
    let rules = Rules {
        foreground_permille: 0,
        latency: Duration::ZERO,
        longest_round: Duration::from_secs(10),
        streams: 1,
    };
    let demand = Demand {
        direction: Direction::Read,
        rate: Rate::new(200_000_000).expect("not zero"),
        buffer: 0,
        memory: 1 << 30,
        zone: slowest_zone(&belief, innermost(&belief), QUIET, Direction::Read),
        extents: 1,
        page: 4096,
    };
    let refusal = Admission::new(times, rules)
        .admit(&demand)
        .expect_err("too fast");
    assert!(
        matches!(refusal.reason, Reason::AboveDisk { .. }),
        "{refusal}"
    );
    let largest = refusal.largest_rate.expect("a gigabyte is enough for less");
    assert!(largest.bytes() > 100_000_000, "{largest}");
}

#[test]
fn tracks_are_those_of_the_belief() {
    let belief = Arc::new(belief("modern-20tb"));
    let tracks = BelievedTracks(belief.clone());
    assert_eq!(tracks.track_end(Lba(0)), Lba(586));
    assert_eq!(tracks.track_end(Lba(585)), Lba(586));
    assert_eq!(tracks.cylinder(Lba(586)), 1);
    let last = Lba(belief.geometry.sectors().0 - 1);
    assert_eq!(tracks.track_end(last), Lba(last.0 + 1));
}

#[test]
fn the_way_back_over_a_serpentine_is_kept_free() {
    let belief = belief("modern-20tb");
    let times = head_times(&belief, QUIET).expect("a seek curve");
    // 20 surfaces of 315 tracks, and then 3/16 of a revolution instead of 1/16.
    let longer = Duration::from_nanos(belief.spindle.period().as_nanos() / 8);
    let turns = times.stall.saturating_sub(last_sent(&belief));
    let error = turns.as_nanos().abs_diff(longer.as_nanos() * TURNS);
    assert!(error < 1_000, "{turns} for {TURNS} of {longer}");
}

#[test]
fn readers_do_not_pay_for_the_settling_of_writes() {
    // Its skew covers a seek of one cylinder, and not the settling of a write after it.
    let belief = belief("hitachi-travelstar-80gn");
    let times = head_times(&belief, Beyond::default()).expect("a seek curve");
    let [read, write] = DIRECTIONS.map(|direction| times.access(direction));
    assert!(read < write, "{read} and {write}");
    let [read, write] = DIRECTIONS.map(|direction| {
        let zone = slowest_zone(&belief, whole(&belief), Beyond::default(), direction);
        zone.sustained
    });
    assert!(read > write, "{read} and {write}");
}
