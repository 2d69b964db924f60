//! The next read of an idle drive.

use block::{Direction, Duration, Extent, Instant, Lba, Sectors};
use drive::geometry::Track;
use drive::{Position, SeekTarget};

use super::Planner;
use crate::freeblock::{Kind, Stop, WantedBlocks};

impl Planner {
    /// The read with the most wanted blocks per head time, of at most `most` blocks, among the
    /// nearest tracks with wanted blocks. `None` only if no block is wanted.
    ///
    /// Remapped blocks are read with their neighbours, which takes longer than predicted.
    pub fn idle(
        &self,
        wanted: &WantedBlocks,
        from: Position,
        leaves: Instant,
        most: Sectors,
    ) -> Option<Stop> {
        let grain = wanted.grain();
        let mut best: Option<(Stop, Duration)> = None;
        let mut left = TRACKS;
        let mut ends = [Some(from.cylinder), from.cylinder.checked_add(1)];
        while left > 0 {
            // The nearest regions with wanted blocks, upwards and downwards.
            let below = ends[0].and_then(|cylinder| {
                let region = wanted.below(grain.region(cylinder), 0)?;
                Some(cylinder.min(grain.cylinders_of(region).end - 1))
            });
            let above = ends[1]
                .filter(|&cylinder| cylinder < grain.cylinders)
                .and_then(|cylinder| {
                    let region = wanted.above(grain.region(cylinder), 0)?;
                    Some(cylinder.max(grain.cylinders_of(region).start))
                });
            ends = [below, above];
            let near = |cylinder: u32| cylinder.abs_diff(from.cylinder);
            let cylinder = match (below, above) {
                (None, None) => break,
                (Some(below), Some(above)) if near(above) < near(below) => above,
                (Some(below), _) => below,
                (None, Some(above)) => above,
            };
            if below == Some(cylinder) {
                ends[0] = cylinder.checked_sub(1);
            } else {
                ends[1] = cylinder.checked_add(1);
            }
            for head in 0..grain.surfaces {
                let place = Position { cylinder, head };
                let Some((stop, time)) = self.of_track(wanted, (from, leaves), place, most) else {
                    continue;
                };
                left = left.saturating_sub(1);
                let better = best.is_none_or(|(best, best_time)| {
                    let rate = |stop: Stop, other: Duration| {
                        u128::from(stop.wanted) * u128::from(other.as_nanos())
                    };
                    rate(stop, best_time) > rate(best, time)
                });
                if better {
                    best = Some((stop, time));
                }
            }
        }
        best.map(|(stop, _)| stop)
    }

    /// The best read of one track, and its head time.
    fn of_track(
        &self,
        wanted: &WantedBlocks,
        (from, leaves): (Position, Instant),
        place: Position,
        most: Sectors,
    ) -> Option<(Stop, Duration)> {
        let profile = &self.profile;
        // Without the track's length: whether the track has wanted slices.
        let any = wanted.slices_at(place, u32::MAX)?;
        if !any.has_any(wanted.grain().stride) {
            return None;
        }
        let track = profile.geometry.track_at(place.cylinder, place.head)?;
        let slices = wanted.slices(&track)?;
        let arrives = leaves + profile.reposition(from, place, Direction::Read);
        let all = 0..slices.count();
        // From the first wanted slice on the track, and from the first to arrive.
        let first = slices.first(all.clone())?;
        let comes = self.next_block(&track, arrives);
        let next = slices.first(slices.inside(comes..u32::MAX).start.min(all.end)..all.end);
        let most = u32::try_from(most.0).unwrap_or(u32::MAX).max(1);
        let reads = [Some(first), next]
            .into_iter()
            .flatten()
            .filter_map(|slice| {
                let start = slices.blocks_of(slice..slice + 1).start;
                let until = slices.inside(start..start.saturating_add(most)).end;
                let last = slices.last(slice..until.max(slice + 1))?;
                let end = slices.blocks_of(last..last + 1).end;
                let extent = Extent::new(
                    Lba(track.first.0 + u64::from(start)),
                    Sectors(u64::from(end - start)),
                )
                .ok()?;
                self.read(extent, (from, leaves), slices.wanted(slice..last + 1))
            });
        reads.min_by(|(a, a_time), (b, b_time)| {
            let a = u128::from(a.wanted) * u128::from(b_time.as_nanos());
            let b = u128::from(b.wanted) * u128::from(a_time.as_nanos());
            b.cmp(&a)
        })
    }

    /// The next block of a track under the head at `arrives`, if the track has no slipped sectors:
    /// the start of the lookup.
    fn next_block(&self, track: &Track, arrives: Instant) -> u32 {
        let gone = self.profile.spindle.angle_at(arrives) - track.start;
        let sector = gone.raw().div_ceil(track.width.raw().max(1));
        sector.min(u64::from(track.sectors)) as u32
    }

    /// The prediction of a read, and its head time.
    fn read(
        &self,
        extent: Extent,
        (from, leaves): (Position, Instant),
        wanted: u32,
    ) -> Option<(Stop, Duration)> {
        let profile = &self.profile;
        let (mut place, mut now) = (from, leaves);
        let mut first = None;
        for run in profile.geometry.runs(extent) {
            let pass = profile.pass(place, now, &run, Direction::Read);
            first = first.or(Some((pass.rotation, now + pass.seek + pass.rotation)));
            place = SeekTarget::from(&run).position;
            now += pass.total();
        }
        let (slack, begins) = first?;
        let stop = Stop {
            kind: Kind::Detour,
            direction: Direction::Read,
            extent,
            wanted,
            slack,
            begins,
            ends: now,
        };
        Some((stop, now.since(leaves)))
    }
}

/// The number of compared tracks with wanted blocks. A choice: about one millisecond's seek around
/// the head if all blocks are wanted, and a few microseconds of CPU time.
const TRACKS: u32 = 16;
