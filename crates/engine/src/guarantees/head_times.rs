//! What a drive can guarantee: its worst head times, out of what is believed of it.
//!
//! `stream` knows sums and rounds, and no drives; `drive` knows no streams.

use std::sync::Arc;

use block::{Direction, Duration, Extent, Lba};
use drive::geometry::Track;
use drive::{Profile, SeekTarget};
use stream::head_times::NoPoints;
use stream::{
    AccessTimes, Cylinders, HeadTimes, LocationMap, Rate, SeekBound, Tracks, WholeTracks, Zone,
};

mod passing;

use passing::{data, lag, lost_in_parts};
pub use passing::{pass, passing_within, worst_cost, worst_from_anywhere};

/// The longest command of others that cannot be stopped: 128 KiB, the specification's.
pub const FOREGROUND_BYTES: u64 = 128 * 1024;

/// What a drive does beyond its profile, at worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// What a seek takes longer than its curve says at the percentile that is promised (the
    /// specification's is the 99.9th).
    pub seek: Duration,
    /// What the electronics take longer for a command.
    pub overhead: Duration,
    /// What one round may lose besides: a recalibration, a slice of the media scan, retries.
    pub stall: Duration,
}

/// The worst times of the drive.
///
/// # Errors
/// If the profile's seek curve is empty, which its parser rules out.
pub fn head_times(belief: &Profile, beyond: Beyond) -> Result<HeadTimes, NoPoints> {
    let geometry = &belief.geometry;
    let inner = Extent::block(Lba(geometry.sectors().0 - 1));
    let overheads = belief.overheads;
    let longest = |after: drive::firmware::AfterPrevious| after.read.max(after.write);
    let read = longest(overheads.read_miss) + overheads.read_reselect + overheads.read_completion;
    let write =
        longest(overheads.write_miss) + overheads.write_reselect + overheads.write_completion;
    let seek = seek_bound(belief, beyond)?;
    let access = |electronics, direction| AccessTimes {
        // The last block crosses the bus after it has passed the head; for a write the first does
        // before.
        overhead: electronics
            + bus_block(belief)
            + beyond.overhead
            + longer(belief, beyond, &seek, direction),
        settle: settle(belief, beyond, direction),
    };
    let (read, write) = (
        access(read, Direction::Read),
        access(write, Direction::Write),
    );
    let passes = DIRECTIONS.map(|direction| {
        let zone = slowest_zone(belief, inner, beyond, direction);
        zone.sustained.at_most(FOREGROUND_BYTES)
    });
    let longest = FOREGROUND_BYTES / u64::from(belief.block_bytes);
    let waits = data(belief, longest).saturating_sub(seek.longest());
    let parts = lost_in_parts(belief, longest) + waits;
    let walk = walk(belief);
    Ok(HeadTimes {
        revolution: belief.spindle.period(),
        foreground: (passes[0] + read.settle).max(passes[1] + write.settle) + parts,
        read,
        write,
        seek,
        cylinders: geometry.cylinders(),
        wander: walk.wander,
        change: least_change(belief, beyond),
        stall: beyond.stall + walk.turns + last_sent(belief),
    })
}

/// The slowest zone that an extent touches, read or written.
pub fn slowest_zone(
    belief: &Profile,
    extent: Extent,
    beyond: Beyond,
    direction: Direction,
) -> Zone {
    let ends = [extent.start(), extent.last()];
    let zones = belief.geometry.zones();
    let inside = zones.iter().map(|zone| zone.first);
    let inside = inside.filter(|&first| extent.contains(first));
    let places = ends.into_iter().chain(inside);
    let zones = places.filter_map(|lba| zone_at(belief, lba, beyond, direction));
    let slowest = zones.reduce(Zone::and);
    slowest.unwrap_or(Zone {
        // No block of it is on the drive: nothing passes.
        sustained: Rate::MIN,
        tracks: None,
        cylinders: Cylinders { low: 0, high: 0 },
        stride: Rate::MIN,
    })
}

/// The slowest zone of the pieces of a file.
pub fn zone_over(
    belief: &Profile,
    map: &LocationMap,
    beyond: Beyond,
    direction: Direction,
) -> Zone {
    let zones = belief.geometry.zones();
    let number = |lba: Lba| zones.partition_point(|zone| zone.first <= lba);
    let mut slowest: Option<Zone> = None;
    // Pieces in the same zones as the one before are as fast.
    let mut last = None;
    for piece in map.pieces() {
        let extent = piece.extent;
        let zones = (number(extent.start()), number(extent.last()));
        slowest = match (slowest, last.replace(zones) == Some(zones)) {
            (Some(slowest), true) => Some(Zone {
                cylinders: slowest.cylinders.and(cylinders_of(belief, extent)),
                ..slowest
            }),
            (slowest, _) => {
                let here = slowest_zone(belief, extent, beyond, direction);
                Some(slowest.map_or(here, |slowest| slowest.and(here)))
            }
        };
    }
    // A file without blocks needs no head time.
    slowest.unwrap_or_else(|| slowest_zone(belief, Extent::block(Lba(0)), beyond, direction))
}

/// One block over the bus.
fn bus_block(belief: &Profile) -> Duration {
    belief.bus.read_block.max(belief.bus.write_block)
}

/// The belief as rounds see it.
#[derive(Clone, Debug)]
pub struct BelievedTracks(pub Arc<Profile>);

impl Tracks for BelievedTracks {
    fn cylinder(&self, lba: Lba) -> u32 {
        self.0
            .geometry
            .locate(lba)
            .map_or(0, |place| place.cylinder)
    }

    fn track_start(&self, lba: Lba) -> Lba {
        let track = self.0.geometry.track_of(lba);
        track.map_or(lba, |track| track.first.min(lba))
    }

    fn track_end(&self, lba: Lba) -> Lba {
        let track = self.0.geometry.track_of(lba);
        Lba(track.map_or(lba.0, |track| track.last.0).max(lba.0) + 1)
    }
}

/// Both ways, in the order of their names.
const DIRECTIONS: [Direction; 2] = [Direction::Read, Direction::Write];

/// The cylinders of an extent's ends.
pub fn cylinders_of(belief: &Profile, extent: Extent) -> Cylinders {
    let ends = [extent.start(), extent.last()];
    let [first, last] = ends.map(|lba| {
        let place = belief.geometry.locate(lba);
        place.map_or(0, |place| place.cylinder)
    });
    Cylinders {
        low: first.min(last),
        high: first.max(last),
    }
}

/// Every seek and change of heads of a direction, and what comes on top.
fn seeks(
    belief: &Profile,
    beyond: Beyond,
    direction: Direction,
) -> impl Iterator<Item = (u32, Duration)> + '_ {
    let (table, settling) = match direction {
        Direction::Read => (belief.seek.read(), Duration::ZERO),
        Direction::Write => {
            let settling = Duration::ZERO.adjusted(belief.write_settle_nanos.max(0));
            (belief.seek.write(), settling)
        }
    };
    let cylinders = belief.seek.read().cylinders();
    let measured = table.points().filter(move |point| point.0 < cylinders);
    let ends = [1, cylinders - 1].map(|distance| (distance, table.time(distance)));
    let switch = (0, belief.head_switch);
    let all = measured.chain(ends).chain([switch]);
    all.map(move |(distance, time)| {
        let time = time.max(belief.head_switch) + settling + beyond.seek;
        (distance, time)
    })
}

fn seek_bound(belief: &Profile, beyond: Beyond) -> Result<SeekBound, NoPoints> {
    SeekBound::over(seeks(belief, beyond, Direction::Read))
}

/// What the arm takes longer for a direction than a bound says, at most: at a point of its table,
/// because between two points the table is straight and the bound is concave.
fn longer(belief: &Profile, beyond: Beyond, bound: &SeekBound, direction: Direction) -> Duration {
    let over = |(distance, time): (u32, Duration)| time.saturating_sub(bound.at(distance));
    let all = seeks(belief, beyond, direction);
    all.map(over).max().unwrap_or_default()
}

/// What an access costs besides: one skew more than its rate contains, because n tracks and a bit
/// may lie on n + 2; and, if a change of track may come too late for its skew, the revolution that
/// the last part of a track then waits.
fn settle(belief: &Profile, beyond: Beyond, direction: Direction) -> Duration {
    let zones = belief.geometry.zones();
    let crossings = zones
        .iter()
        .flat_map(|zone| cylinder(belief, zone.first, direction));
    let worst = crossings.map(|(_, crossing)| crossing.skew + crossing.lost(belief, beyond));
    worst.max().unwrap_or_default()
}

/// The least change of tracks that the time of a whole track contains, of any zone.
fn least_change(belief: &Profile, beyond: Beyond) -> Duration {
    let zones = belief.geometry.zones();
    let changes = zones.iter().flat_map(|zone| {
        DIRECTIONS.map(|direction| longest_change(belief, zone.first, beyond, direction))
    });
    changes.min().unwrap_or_default()
}

/// The longest change of tracks among those from a block on: it is in the time of each of them.
fn longest_change(belief: &Profile, first: Lba, beyond: Beyond, direction: Direction) -> Duration {
    let changes = cylinder(belief, first, direction);
    let changes = changes.map(|(_, crossing)| crossing.taken_up(beyond));
    changes.max().unwrap_or_default()
}

/// The tracks from that of a block on, and the ways from them to the next ones: those of two
/// cylinders, so that changes of head and of cylinder are among them.
fn cylinder(
    belief: &Profile,
    first: Lba,
    direction: Direction,
) -> impl Iterator<Item = (Track, Crossing)> + '_ {
    let geometry = &belief.geometry;
    let mut at = first;
    let walk = std::iter::from_fn(move || {
        let track = geometry.track_of(at)?;
        let crossing = Crossing::at(belief, at, direction)?;
        at = Lba(track.last.0 + 1);
        Some((track, crossing))
    });
    walk.take(2 * geometry.surfaces() as usize)
}

/// What a walk along the tracks finds.
struct Walk {
    /// What longer ways to the next track cost a round: a serpentine ends, a zone does.
    turns: Duration,
    /// By how many cylinders later blocks are below earlier ones.
    wander: u32,
}

fn walk(belief: &Profile) -> Walk {
    let geometry = &belief.geometry;
    let mut at = Some(Lba(0));
    let walk = std::iter::from_fn(|| {
        let track = geometry.track_of(at?)?;
        let crossing = Crossing::at(belief, at?, Direction::Read)?;
        at = Some(Lba(track.last.0 + 1));
        Some((track.cylinder, crossing.skew))
    });
    let mut usual: Option<Duration> = None;
    let mut longest = Duration::ZERO;
    let (mut highest, mut wander) = (0, 0);
    for (cylinder, skew) in walk.take(WALK) {
        usual = Some(usual.map_or(skew, |usual| usual.min(skew)));
        longest = longest.max(skew);
        highest = cylinder.max(highest);
        wander = wander.max(highest - cylinder);
    }
    Walk {
        turns: longest.saturating_sub(usual.unwrap_or_default()) * TURNS,
        wander,
    }
}

/// Tracks among which the longest way to the next one is looked for: twice those of a serpentine
/// over 20 surfaces of 315 tracks. A choice.
const WALK: usize = 12_600;

/// How many of the longest ways a round may meet: on the 20 TB drive one crossing in 6,300 is such,
/// and of the 300 of a full round more than five are once in 10^11 rounds.
const TURNS: u64 = 5;

/// From one track to the next in a transfer.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    /// From the end of one to the beginning of the next.
    skew: Duration,
    /// The arm and the heads, by the profile.
    change: Duration,
}

impl Crossing {
    /// The one at the end of the track of a block; none at the end of the drive.
    fn at(belief: &Profile, lba: Lba, direction: Direction) -> Option<Crossing> {
        let geometry = &belief.geometry;
        let track = geometry.track_of(lba)?;
        let last = geometry.locate(track.last)?;
        let next = geometry.locate(Lba(track.last.0 + 1))?;
        let way = next.angle - (last.angle + last.width);
        Some(Crossing {
            skew: belief.spindle.time_of(way),
            change: change(
                belief,
                SeekTarget::from(&last),
                SeekTarget::from(&next),
                [direction],
            ),
        })
    }

    /// Until the next track is under the head, if it is taken up at any sector: nothing waits for a
    /// skew that was missed.
    fn taken_up(self, beyond: Beyond) -> Duration {
        self.skew.max(self.change + beyond.seek)
    }

    /// A revolution, if the change may take longer than the skew.
    fn lost(self, belief: &Profile, beyond: Beyond) -> Duration {
        if self.change + beyond.seek <= self.skew {
            return Duration::ZERO;
        }
        belief.spindle.period()
    }
}

/// The arm and the heads from one track to another, at the longest of these directions.
fn change<const N: usize>(
    belief: &Profile,
    from: SeekTarget,
    to: SeekTarget,
    directions: [Direction; N],
) -> Duration {
    let way = |direction| belief.reposition(from.position, to.position, direction);
    directions.map(way).into_iter().max().unwrap_or_default()
}

/// What a track's data take over the bus after the last of them passed the head, besides what is late for
/// each block: where a track is taken up at any sector its first block may be the last to come, and the
/// data leave in their order.
fn still_to_send(belief: &Profile, blocks: u64, late: Duration, direction: Direction) -> Duration {
    match (direction, belief.buffer.zero_latency_read) {
        (Direction::Read, true) => (belief.bus.read_block * blocks).saturating_sub(late * blocks),
        _ => Duration::ZERO,
    }
}

/// What a round's last track is sent after its head time. Before it each track's data leave while the head
/// is on its way to the next ones, if the drive has their commands.
fn last_sent(belief: &Profile) -> Duration {
    let zones = belief.geometry.zones().into_iter();
    let tracks = zones.filter_map(|zone| belief.geometry.track_of(zone.first));
    let largest = tracks.map(|track| track.last.0 + 1 - track.first.0).max();
    match has_one_command(belief) {
        true => Duration::ZERO,
        false => still_to_send(
            belief,
            largest.unwrap_or(0),
            Duration::ZERO,
            Direction::Read,
        ),
    }
}

/// Whether the drive seeks to nothing while it sends data: it has one command at a time. Of others the engine
/// lets it have two (`Limits::suited_to`).
fn has_one_command(belief: &Profile) -> bool {
    belief.queue.depth <= 1
}

/// The zone of a block; none past the end of the drive.
fn zone_at(belief: &Profile, lba: Lba, beyond: Beyond, direction: Direction) -> Option<Zone> {
    let geometry = &belief.geometry;
    let here = geometry.locate(lba)?.cylinder;
    let mut track = geometry.track_of(lba)?;
    // The last track may be full only in part, and leads nowhere: it is like the one before it.
    if track.last.0 + 1 == geometry.sectors().0
        && let Some(before) = track.first.0.checked_sub(1)
    {
        track = geometry.track_of(Lba(before))?;
    }
    let place = geometry.locate(track.first)?;
    let period = belief.spindle.period();
    let zero_latency = match direction {
        Direction::Read => belief.buffer.zero_latency_read,
        Direction::Write => belief.buffer.zero_latency_write,
    };
    let block = u64::from(belief.block_bytes);
    let (mut blocks, mut largest, mut least) = (0, 0, u64::MAX);
    let mut longest = Duration::ZERO;
    let mut passed = Duration::ZERO;
    for (track, crossing) in cylinder(belief, track.first, direction) {
        let count = track.last.0 - track.first.0 + 1;
        let late = crossing.taken_up(beyond);
        blocks += count;
        largest = largest.max(count);
        least = least.min(count);
        longest = longest.max(late);
        passed += period
            + match zero_latency {
                true => late,
                false => crossing.skew + crossing.lost(belief, beyond),
            };
    }
    // A bus that is slower than the medium goes on when that has ended, and one that begins late, too.
    let width = belief.spindle.time_of(place.width);
    let late = match bus_block(belief) > width {
        true => bus_block(belief),
        false => lag(belief, width, direction),
    };
    passed += late * blocks;
    // Taken up at any sector: up to one of them passes first.
    let sent = match has_one_command(belief) {
        true => still_to_send(belief, largest, late, direction),
        false => Duration::ZERO,
    };
    let whole = period + width + longest + late * largest + sent;
    let bytes = largest * block;
    let rate = |bytes: u64, time: Duration| {
        let rate = u128::from(bytes) * 1_000_000_000 / u128::from(time.as_nanos().max(1));
        Rate::new(rate as u64)
    };
    Some(Zone {
        sustained: rate(blocks * block, passed)?,
        tracks: match (zero_latency, rate(least.saturating_mul(block), whole)) {
            (true, Some(sustained)) => Some(WholeTracks {
                bytes,
                time: whole,
                sustained,
            }),
            _ => None,
        },
        cylinders: Cylinders {
            low: here,
            high: here,
        },
        stride: Rate::new(least.saturating_mul(block))?,
    })
}

#[cfg(test)]
mod tests;
