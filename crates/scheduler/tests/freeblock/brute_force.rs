//! The best plan of one stop, by trying everything: every track, every first and last block.

use std::collections::BTreeSet;

use block::{Direction, Duration, Extent, Instant, Lba, Sectors};
use drive::geometry::TrackExtent;
use drive::{Position, Profile, SeekTarget};
use scheduler::freeblock::{Gap, PlanRules, SameTrack};

/// Blocks that are wanted in slices: at most so many on each track.
#[derive(Clone, Copy)]
pub struct Sliced<'a> {
    pub blocks: &'a BTreeSet<u64>,
    pub slices: u64,
}

/// How many wanted blocks the best plan of one stop and one range has, for each track on which
/// one has any; the merged one under B's track as well.
pub fn best_of_tracks(
    profile: &Profile,
    wanted: Sliced,
    gap: &Gap,
    rules: &PlanRules,
) -> Vec<(Position, usize)> {
    let geometry = &profile.geometry;
    let mut found = vec![(
        gap.destination.position,
        merged(profile, wanted, gap, rules),
    )];
    for cylinder in 0..geometry.cylinders() {
        for head in 0..geometry.surfaces() {
            let here = Position { cylinder, head };
            let own = here == gap.source || here == gap.destination.position;
            if own && rules.same_track == SameTrack::Never {
                continue;
            }
            let extents = runs_of(profile, here, wanted.blocks).into_iter();
            let in_time = extents.filter(|&e| in_time(profile, gap, rules, here, e));
            let counts = in_time.map(|extent| count(profile, wanted, here, extent));
            found.push((here, counts.max().unwrap_or(0)));
        }
    }
    found.retain(|&(_, count)| count > 0);
    found
}

/// How many wanted blocks the best plan of one stop and one range has.
pub fn best(profile: &Profile, wanted: Sliced, gap: &Gap, rules: &PlanRules) -> usize {
    let geometry = &profile.geometry;
    let mut best = merged(profile, wanted, gap, rules);
    for cylinder in 0..geometry.cylinders() {
        for head in 0..geometry.surfaces() {
            let here = Position { cylinder, head };
            let own = here == gap.source || here == gap.destination.position;
            if own && rules.same_track == SameTrack::Never {
                continue;
            }
            for extent in runs_of(profile, here, wanted.blocks) {
                let count = count(profile, wanted, here, extent);
                if count > best && in_time(profile, gap, rules, here, extent) {
                    best = count;
                }
            }
        }
    }
    best
}

/// Every range of a track's blocks that the head passes in one sweep, if any of them is wanted.
fn runs_of(profile: &Profile, place: Position, wanted: &BTreeSet<u64>) -> Vec<Extent> {
    let geometry = &profile.geometry;
    let Some(track) = geometry.track_at(place.cylinder, place.head) else {
        return Vec::new();
    };
    if wanted.range(track.first.0..=track.last.0).next().is_none() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for first in track.first.0..=track.last.0 {
        for last in first..=track.last.0 {
            let extent = Extent::new(Lba(first), Sectors(last - first + 1)).expect("an extent");
            if let Some(run) = only_run(profile, extent)
                && SeekTarget::from(&run).position == place
            {
                found.push(extent);
            }
        }
    }
    found
}

fn only_run(profile: &Profile, extent: Extent) -> Option<TrackExtent> {
    let mut runs = profile.geometry.runs(extent);
    let run = runs.next()?;
    runs.next().is_none().then_some(run)
}

/// How many wanted blocks of a track are in an extent with all other blocks of their slices.
fn count(profile: &Profile, wanted: Sliced, place: Position, extent: Extent) -> usize {
    let track = profile.geometry.track_at(place.cylinder, place.head);
    let track = track.expect("a track with blocks");
    let blocks = track.last.0 - track.first.0 + 1;
    let slice = blocks.div_ceil(wanted.slices).max(1);
    let counts = |block: &&u64| {
        let begins = track.first.0 + (**block - track.first.0) / slice * slice;
        let ends = (begins + slice).min(track.last.0 + 1);
        extent.start().0 <= begins && ends <= extent.end().0
    };
    let inside = wanted.blocks.range(extent.start().0..extent.end().0);
    inside.filter(counts).count()
}

/// Picoseconds until a head that is at a run's track at `from` has passed the run.
fn passes(profile: &Profile, from: Instant, run: &TrackExtent) -> u128 {
    let wait = (run.start - profile.spindle.angle_at(from)).raw();
    let way = u128::from(wait) + u128::from(run.sweep.raw());
    (way * u128::from(profile.spindle.period_ps())) >> 64
}

fn in_time(
    profile: &Profile,
    gap: &Gap,
    rules: &PlanRules,
    here: Position,
    extent: Extent,
) -> bool {
    let run = only_run(profile, extent).expect("one run");
    let there = profile.reposition(gap.source, here, Direction::Read);
    let back = profile.reposition(here, gap.destination.position, gap.direction);
    let from = gap.leaves + there + rules.guard.to_free;
    let ends = from + Duration::from_nanos((passes(profile, from, &run) as u64).div_ceil(1000));
    ends.max(gap.follows) + back + rules.guard.to_destination <= gap.begins
        && ends + gap.lag <= gap.begins
}

/// The most blocks before B in one command with it.
fn merged(profile: &Profile, wanted: Sliced, gap: &Gap, rules: &PlanRules) -> usize {
    let (geometry, to) = (&profile.geometry, gap.destination.position);
    let first = gap.extent.start().0;
    let track = geometry.track_at(to.cylinder, to.head);
    let Some(track) = track.filter(|_| gap.direction == Direction::Read) else {
        return 0;
    };
    let seek = profile.reposition(gap.source, to, Direction::Read);
    let from = gap.departs + seek + rules.guard.to_free;
    let mut best = 0;
    for start in track.first.0..first {
        let whole = Extent::new(Lba(start), Sectors(first - start + 1)).expect("an extent");
        let Some(run) = only_run(profile, whole) else {
            continue;
        };
        if SeekTarget::from(&run).position != to {
            continue;
        }
        // B's sector after the first free one; a revolution later if the gap allows it.
        let begin = TrackExtent {
            sweep: gap.destination.angle - run.start,
            ..run
        };
        let passed = passes(profile, from, &begin);
        if from < gap.begins && passed <= u128::from(gap.begins.since(from).as_nanos()) * 1000 {
            let free = Extent::new(Lba(start), Sectors(first - start)).expect("an extent");
            best = best.max(count(profile, wanted, to, free));
        }
    }
    best
}
