//! The specification's figures on the 20 TB drive, and every shipped drive's worst times.

use super::*;
use block::{Instant, Sectors};
use drive::{Position, catalog};
use stream::admission::{Admission, Demand, Reason, Rules};

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
        application: 0,
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
    assert_eq!(table, [[55, 45, 34], [101, 72, 51], [115, 81, 57]]);
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
    assert_eq!(table, [[73, 60, 46], [112, 79, 57], [119, 83, 59]]);
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
        application: 0,
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
    let error = times.stall.as_nanos().abs_diff(longer.as_nanos() * TURNS);
    assert!(error < 1_000, "{} for {TURNS} of {longer}", times.stall);
}

/// Numbers that are below what is asked for, always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A drive that does one command after the other.
struct Trial {
    belief: Arc<Profile>,
    drive: drive::VirtualDrive,
    now: Instant,
    number: u64,
    numbers: Numbers,
}

impl Trial {
    fn new(belief: &Arc<Profile>) -> Self {
        let noisy = drive::Imperfections {
            // Drawn up to six deviations: within QUIET.
            seek_noise: Duration::from_micros(3),
            ..drive::Imperfections::default()
        };
        let drive = drive::VirtualDrive::imperfect(Arc::clone(belief), noisy, 1);
        Trial {
            belief: Arc::clone(belief),
            drive: drive.with_queue(1, drive::firmware::QueueOrder::Fcfs),
            now: Instant::ZERO,
            number: 0,
            numbers: Numbers(88_172_645_463_325_252),
        }
    }

    /// How long a command takes.
    fn serve(&mut self, direction: Direction, extent: Extent) -> Duration {
        let durability = block::Durability::Durable;
        let action = match direction {
            Direction::Read => block::Action::Read { extent, durability },
            Direction::Write => block::Action::Write { extent, durability },
        };
        self.number += 1;
        let command = block::Command::new(block::CommandId(self.number), action);
        self.drive.submit(self.now, command).expect("it is free");
        let outcome = loop {
            let at = self.drive.next_wakeup().expect("it has a command");
            if let Some(outcome) = self.drive.poll(at) {
                break outcome;
            }
        };
        let took = outcome.at.since(self.now);
        self.now = outcome.at;
        took
    }

    /// The same with the head as far away as it can be, at some angle; how long it takes at most, read or
    /// written, of some angles.
    fn serve_from_afar(&mut self, extent: Extent) -> Duration {
        let geometry = &self.belief.geometry;
        let blocks = geometry.sectors().0;
        let cylinder = geometry.locate(extent.start()).map_or(0, |it| it.cylinder);
        let far = match cylinder < geometry.cylinders() / 2 {
            true => Extent::block(Lba(blocks - 1)),
            false => Extent::block(Lba(0)),
        };
        let mut longest = Duration::ZERO;
        for direction in DIRECTIONS {
            for _ in 0..2 {
                self.serve(Direction::Read, far);
                let period = self.belief.spindle.period().as_nanos();
                self.now += Duration::from_nanos(self.numbers.below(period));
                longest = longest.max(self.serve(direction, extent));
            }
        }
        longest
    }
}

fn all_with_one_arm() -> impl Iterator<Item = Arc<Profile>> {
    let beliefs = catalog::ALL
        .iter()
        .map(|entry| Arc::new(belief(entry.name)));
    beliefs.filter(|belief| belief.actuators == 1)
}

/// Blocks after which the way to the next one is long: ends of zones, and of the first tracks those from
/// which it is the longest.
fn long_ways(belief: &Profile) -> Vec<Lba> {
    let geometry = &belief.geometry;
    let zones = geometry.zones();
    let mut at = 0;
    let tracks = std::iter::from_fn(|| {
        let track = geometry.track_of(Lba(at))?;
        at = track.last.0 + 1;
        let crossing = Crossing::at(belief, track.last, Direction::Write)?;
        Some((crossing.skew + crossing.lost(belief, QUIET), track.last))
    });
    let mut tracks: Vec<(Duration, Lba)> = tracks.take(WALK).collect();
    tracks.sort_unstable_by_key(|&(way, last)| (std::cmp::Reverse(way), last));
    let ends = zones.iter().skip(1).map(|zone| Lba(zone.first.0 - 1));
    let longest = tracks.iter().take(60).map(|&(_, last)| last);
    ends.chain(longest).collect()
}

/// An extent of so many blocks that has this one in it, and the next.
fn across(belief: &Profile, last: Lba, blocks: u64, numbers: &mut Numbers) -> Extent {
    let all = belief.geometry.sectors().0;
    let before = 1 + numbers.below((blocks - 1).max(1));
    let start = (last.0 + 1).saturating_sub(before).min(all - blocks);
    Extent::new(Lba(start), Sectors(blocks)).expect("blocks")
}

/// What every shipped drive with one arm does, command by command, against the longest that it may
/// take: anywhere, and where it is farthest from a track to the next one.
#[test]
fn no_command_takes_longer_than_its_worst() {
    for belief in all_with_one_arm() {
        let blocks = belief.geometry.sectors().0;
        let times = head_times(&belief, QUIET).expect("a seek curve");
        let mut trial = Trial::new(&belief);
        let long_ways = long_ways(&belief);
        let mut head = Position::default();
        for number in 0..600 {
            let numbers = &mut trial.numbers;
            let length = 2 + numbers.below(FOREGROUND_BYTES * 8 / u64::from(belief.block_bytes));
            let extent = match long_ways.get(number) {
                Some(&last) => across(&belief, last, length, numbers),
                None => {
                    let start = Lba(numbers.below(blocks - length));
                    Extent::new(start, Sectors(length)).expect("blocks")
                }
            };
            let direction = DIRECTIONS[numbers.below(2) as usize];
            let worst = worst_cost((&times, QUIET), &belief, head, extent);
            let took = trial.serve(direction, extent);
            assert!(
                took <= worst,
                "{}: {direction:?} {extent:?} took {took} of {worst}",
                belief.name
            );
            let place = belief.geometry.locate(extent.last()).expect("on the drive");
            head = Target::from(&place).position;
        }
    }
}

/// What is kept for the longest command of others is not less than it takes: where it would be, it is cut.
#[test]
fn no_command_of_others_takes_longer_than_what_is_kept_for_the_longest() {
    let mut uncut = Vec::new();
    for belief in all_with_one_arm() {
        let times = head_times(&belief, QUIET).expect("a seek curve");
        let kept = times.foreground_worst();
        let longest = (FOREGROUND_BYTES / u64::from(belief.block_bytes)).max(1);
        let all = belief.geometry.sectors().0;
        let mut trial = Trial::new(&belief);
        let mut extents: Vec<Extent> = Vec::new();
        for last in long_ways(&belief) {
            extents.push(across(&belief, last, longest, &mut trial.numbers));
        }
        for _ in 0..100 {
            let start = Lba(trial.numbers.below(all - longest));
            extents.push(Extent::new(start, Sectors(longest)).expect("blocks"));
        }
        let (mut parts, mut is_too_long) = (0, false);
        for whole in &extents {
            is_too_long |= pass(&belief, QUIET, *whole) > times.foreground
                && trial.serve_from_afar(*whole) > kept;
            let mut rest = Some(*whole);
            while let Some(left) = rest {
                let most = passing_within(&belief, QUIET, left, times.foreground);
                let part = Extent::new(left.start(), Sectors(most)).expect("blocks");
                assert!(part.end() <= left.end());
                assert!(pass(&belief, QUIET, part) <= times.foreground);
                let took = trial.serve_from_afar(part);
                let name = &belief.name;
                assert!(took <= kept, "{name}: {part:?} took {took} of {kept}");
                parts += 1;
                rest = Extent::new(part.end(), Sectors(left.length().0 - most)).ok();
            }
        }
        // They are cut once where the way is long, and hardly anywhere else.
        let (name, count) = (&belief.name, extents.len());
        assert!(parts <= 2 * count, "{name}: {parts} parts of {count}");
        uncut.extend(is_too_long.then(|| belief.name.clone()));
    }
    // There are drives on which it matters.
    assert!(!uncut.is_empty());
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
