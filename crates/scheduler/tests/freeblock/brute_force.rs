//! The best plan of one stop, by trying everything: every track, every first and last block.

use std::collections::BTreeSet;

use block::{Direction, Duration, Extent, Instant, Lba, Sectors};
use drive::geometry::Run;
use drive::{Position, Profile, Target};
use scheduler::freeblock::{Gap, Reach, SameTrack};

/// How many wanted blocks the best plan of one stop and one range has.
pub fn best(profile: &Profile, wanted: &BTreeSet<u64>, gap: &Gap, reach: &Reach) -> usize {
    let geometry = &profile.geometry;
    let mut best = merged(profile, wanted, gap, reach);
    for cylinder in 0..geometry.cylinders() {
        for head in 0..geometry.surfaces() {
            let here = Position { cylinder, head };
            let own = here == gap.source || here == gap.destination.position;
            if own && reach.same_track == SameTrack::Never {
                continue;
            }
            for extent in runs_of(profile, here) {
                let count = count(wanted, extent);
                if count > best && in_time(profile, gap, reach, here, extent) {
                    best = count;
                }
            }
        }
    }
    best
}

/// Every range of a track's blocks that the head passes in one sweep.
fn runs_of(profile: &Profile, place: Position) -> Vec<Extent> {
    let geometry = &profile.geometry;
    let Some(track) = geometry.track_at(place.cylinder, place.head) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for first in track.first.0..=track.last.0 {
        for last in first..=track.last.0 {
            let extent = Extent::new(Lba(first), Sectors(last - first + 1)).expect("an extent");
            if let Some(run) = only_run(profile, extent)
                && Target::from(&run).position == place
            {
                found.push(extent);
            }
        }
    }
    found
}

fn only_run(profile: &Profile, extent: Extent) -> Option<Run> {
    let mut runs = profile.geometry.runs(extent);
    let run = runs.next()?;
    runs.next().is_none().then_some(run)
}

fn count(wanted: &BTreeSet<u64>, extent: Extent) -> usize {
    wanted.range(extent.start().0..extent.end().0).count()
}

/// Picoseconds until a head that is at a run's track at `from` has passed the run.
fn passes(profile: &Profile, from: Instant, run: &Run) -> u128 {
    let wait = (run.start - profile.spindle.angle_at(from)).raw();
    let way = u128::from(wait) + u128::from(run.sweep.raw());
    (way * u128::from(profile.spindle.period_ps())) >> 64
}

fn in_time(profile: &Profile, gap: &Gap, reach: &Reach, here: Position, extent: Extent) -> bool {
    let run = only_run(profile, extent).expect("one run");
    let there = profile.reposition(gap.source, here, Direction::Read);
    let back = profile.reposition(here, gap.destination.position, gap.direction);
    let from = gap.leaves + there + reach.guard.to_free;
    let ends = from + Duration::from_nanos((passes(profile, from, &run) as u64).div_ceil(1000));
    ends.max(gap.follows) + back + reach.guard.to_destination <= gap.begins
}

/// The most blocks before B in one command with it.
fn merged(profile: &Profile, wanted: &BTreeSet<u64>, gap: &Gap, reach: &Reach) -> usize {
    let (geometry, to) = (&profile.geometry, gap.destination.position);
    let first = gap.extent.start().0;
    let track = geometry.track_at(to.cylinder, to.head);
    let Some(track) = track.filter(|_| gap.direction == Direction::Read) else {
        return 0;
    };
    let seek = profile.reposition(gap.source, to, Direction::Read);
    let from = gap.departs + seek + reach.guard.to_free;
    let mut best = 0;
    for start in track.first.0..first {
        let whole = Extent::new(Lba(start), Sectors(first - start + 1)).expect("an extent");
        let Some(run) = only_run(profile, whole) else {
            continue;
        };
        if Target::from(&run).position != to {
            continue;
        }
        // B's sector after the first free one; a revolution later if the gap allows it.
        let begin = Run {
            sweep: gap.destination.angle - run.start,
            ..run
        };
        let passed = passes(profile, from, &begin);
        if from < gap.begins && passed <= u128::from(gap.begins.since(from).as_nanos()) * 1000 {
            let free = Extent::new(Lba(start), Sectors(first - start)).expect("an extent");
            best = best.max(count(wanted, free));
        }
    }
    best
}
