//! What drives do, command by command and sweep by sweep, against the longest that is said of them.

use super::*;
use drive::Position;

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
            drive: drive.with_queue(2, drive::firmware::QueueOrder::Fcfs),
            now: Instant::ZERO,
            number: 0,
            numbers: Numbers(88_172_645_463_325_252),
        }
    }

    /// How long a command takes.
    fn serve(&mut self, direction: Direction, extent: Extent) -> Duration {
        let began = self.now;
        self.submit(direction, extent);
        self.await_one();
        self.now.since(began)
    }

    /// Serves extents in this order, and tells the drive of the next ones while it has fewer than
    /// `at_once` commands.
    fn serve_all(&mut self, direction: Direction, extents: &[Extent], at_once: usize) {
        for (number, &extent) in extents.iter().enumerate() {
            if number >= at_once {
                self.await_one();
            }
            self.submit(direction, extent);
        }
        (0..extents.len().min(at_once)).for_each(|_| self.await_one());
    }

    fn submit(&mut self, direction: Direction, extent: Extent) {
        let durability = block::Durability::Durable;
        let action = match direction {
            Direction::Read => block::Action::Read { extent, durability },
            Direction::Write => block::Action::Write { extent, durability },
        };
        self.number += 1;
        let command = block::Command::new(block::CommandId(self.number), action);
        self.drive.submit(self.now, command).expect("it is free");
    }

    /// Until the next command has ended.
    fn await_one(&mut self) {
        self.now = loop {
            let at = self.drive.next_wakeup().expect("it has a command");
            if let Some(outcome) = self.drive.poll(at) {
                break outcome.at;
            }
        };
    }

    /// A whole track, anywhere.
    fn some_track(&mut self) -> Extent {
        let geometry = Arc::clone(&self.belief.geometry);
        let somewhere = Lba(self.numbers.below(geometry.sectors().0));
        let track = geometry.track_of(somewhere).expect("on the drive");
        Extent::new(track.first, Sectors(track.last.0 + 1 - track.first.0)).expect("blocks")
    }

    /// How long tracks take in the order of a sweep, from a head that is anywhere at some angle, if the
    /// drive has at most so many commands at once.
    fn sweep_over(
        &mut self,
        direction: Direction,
        mut tracks: Vec<Extent>,
        at_once: usize,
    ) -> Duration {
        let belief = Arc::clone(&self.belief);
        let geometry = &belief.geometry;
        let head = Lba(self.numbers.below(geometry.sectors().0));
        let cylinder = |lba| geometry.locate(lba).map_or(0, |it| it.cylinder);
        let way = |track: &Extent| cylinder(track.start()).abs_diff(cylinder(head));
        tracks.sort_unstable_by_key(|track| track.start());
        if way(&tracks[0]) > way(&tracks[tracks.len() - 1]) {
            tracks.reverse();
        }
        self.serve(Direction::Read, Extent::block(head));
        let period = belief.spindle.period().as_nanos();
        self.now += Duration::from_nanos(self.numbers.below(period));
        let began = self.now;
        self.serve_all(direction, &tracks, at_once);
        self.now.since(began)
    }

    /// One command with the head as far away as it can be, at some angle; how long it takes at most, read or
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
            head = SeekTarget::from(&place).position;
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

/// What whole tracks take of a drive that takes them up at any sector, against what admission counts for
/// them in a round: the last one's data are there in time, too, and those of each one where the next
/// command comes only then.
#[test]
fn no_sweep_of_whole_tracks_takes_longer_than_is_counted() {
    let mut drives_of_one_command = 0;
    for belief in all_with_one_arm() {
        let times = head_times(&belief, QUIET).expect("a seek curve");
        // No way back over a serpentine is among them.
        let besides = times.stall.saturating_sub(walk(&belief).turns);
        let at_once = belief.queue.depth.min(2) as usize;
        let mut trial = Trial::new(&belief);
        for round in 0..240 {
            let direction = DIRECTIONS[round % 2];
            let count = 1 + round as u64 / 2 % 6;
            let tracks: Vec<Extent> = (0..count).map(|_| trial.some_track()).collect();
            let zones = tracks
                .iter()
                .map(|&track| slowest_zone(&belief, track, QUIET, direction));
            let zone = zones.reduce(Zone::and).expect("a track");
            let Some(whole) = zone.tracks else {
                continue;
            };
            let each = times.aligned_access(direction, whole.time);
            let counted = times.sweep(count, zone.cylinders, 0) + each * count + besides;
            let took = trial.sweep_over(direction, tracks, at_once);
            let name = &belief.name;
            assert!(
                took <= counted,
                "{name}: {direction:?} {count} tracks took {took} of {counted}"
            );
            drives_of_one_command += usize::from(at_once == 1);
        }
    }
    assert!(drives_of_one_command > 0);
}
