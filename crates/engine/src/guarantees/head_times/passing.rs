//! What one command takes at worst, run by run.

use block::{Direction, Duration, Extent};
use drive::firmware::LookAhead;
use drive::geometry::TrackExtent;
use drive::{Position, Profile, SeekTarget};
use stream::HeadTimes;

use super::{Beyond, Crossing, DIRECTIONS, change};

/// The longest that a command takes of a head that is at `head`, whatever the angle: what
/// `stream::Rounds::safe` is asked about. Of a drive with two actuators, it is that of the one
/// which has the extent.
pub fn worst_cost(
    (times, beyond): (&HeadTimes, Beyond),
    belief: &Profile,
    head: Position,
    extent: Extent,
) -> Duration {
    let first = belief.geometry.runs(extent).next();
    let way = first.map_or(0, |run| head.cylinder.abs_diff(run.cylinder));
    after_seek((times, beyond), belief, times.seek.at(way), extent)
}

/// The longest that a command takes wherever the arm is. The buffer may have answered the command before, so
/// that the arm has not moved, or look-ahead has moved it on.
pub fn worst_from_anywhere(
    (times, beyond): (&HeadTimes, Beyond),
    belief: &Profile,
    extent: Extent,
) -> Duration {
    let seek = times.seek.longest();
    after_seek((times, beyond), belief, seek, extent) + look_ahead(belief, times)
}

fn after_seek(
    (times, beyond): (&HeadTimes, Beyond),
    belief: &Profile,
    seek: Duration,
    extent: Extent,
) -> Duration {
    seek.max(data(belief, extent.length().0))
        + times.revolution
        + times.read.overhead.max(times.write.overhead)
        + pass(belief, beyond, extent)
}

/// What a command waits for look-ahead that is moving to another track when it comes: the arm settles there.
pub(super) fn look_ahead(belief: &Profile, times: &HeadTimes) -> Duration {
    match belief.buffer.look_ahead {
        LookAhead::None | LookAhead::Track => Duration::ZERO,
        LookAhead::Segment | LookAhead::Cylinder | LookAhead::TrackIfSequential => times.seek.at(1),
    }
}

/// What a drive waits for before the first sector of a write, besides the seek: where it may begin at
/// any sector of a track, for the data of all of them.
pub(super) fn data(belief: &Profile, blocks: u64) -> Duration {
    match belief.buffer.zero_latency_write {
        true => belief.bus.write_block * blocks,
        false => Duration::ZERO,
    }
}

/// The longest that a command takes from its first sector on, read or written, changes of track
/// included, when a write's data are there where they have to be.
pub fn pass(belief: &Profile, beyond: Beyond, extent: Extent) -> Duration {
    let parts = lost_in_parts(belief, extent.length().0);
    let runs = Stretches::of(belief, beyond, extent);
    runs.fold(parts, |sum, it| sum + it.way + it.block * it.blocks)
}

/// How many of the first blocks of an extent pass in so much time, whatever else is between them: the
/// end of a zone, a way back over a serpentine, a track that comes too early. One at least.
pub fn passing_within(belief: &Profile, beyond: Beyond, extent: Extent, most: Duration) -> u64 {
    // Fewer parts are not counted as fewer.
    let mut left = most.saturating_sub(lost_in_parts(belief, extent.length().0));
    let mut blocks = 0;
    for it in Stretches::of(belief, beyond, extent) {
        left = left.saturating_sub(it.way);
        let fit = left.as_nanos() / it.block.as_nanos().max(1);
        if fit < it.blocks {
            return (blocks + fit).max(1);
        }
        left = left.saturating_sub(it.block * it.blocks);
        blocks += it.blocks;
    }
    blocks.max(1)
}

/// What is read or written of one track, and the way to it.
struct Stretch {
    /// From the track before, if there is one.
    way: Duration,
    blocks: u64,
    /// What each of them takes at most, rounded up.
    block: Duration,
}

/// The tracks of an extent.
struct Stretches<'a, R> {
    belief: &'a Profile,
    beyond: Beyond,
    runs: R,
    last: Option<TrackExtent>,
}

impl<'a> Stretches<'a, ()> {
    fn of(
        belief: &'a Profile,
        beyond: Beyond,
        extent: Extent,
    ) -> Stretches<'a, impl Iterator<Item = TrackExtent> + 'a> {
        Stretches {
            belief,
            beyond,
            runs: belief.geometry.runs(extent),
            last: None,
        }
    }
}

impl<R: Iterator<Item = TrackExtent>> Iterator for Stretches<'_, R> {
    type Item = Stretch;

    fn next(&mut self) -> Option<Stretch> {
        let belief = self.belief;
        let run = self.runs.next()?;
        let way = self.last.replace(run).map_or(Duration::ZERO, |last| {
            let ends = last.start + last.sweep;
            let crossing = Crossing {
                skew: belief.spindle.time_of(run.start - ends),
                change: change(
                    belief,
                    SeekTarget::from(&last),
                    SeekTarget::from(&run),
                    DIRECTIONS,
                ),
            };
            crossing.skew + crossing.lost(belief, self.beyond)
        });
        let blocks = u64::from(run.blocks);
        let sweep = belief.spindle.time_of(run.sweep).as_nanos();
        let width = Duration::from_nanos(sweep.div_ceil(blocks));
        let lags = DIRECTIONS.map(|direction| lag(belief, width, direction));
        Some(Stretch {
            way,
            blocks,
            block: width + lags[0].max(lags[1]),
        })
    }
}

/// What a block of a command takes longer than it passes the head, because of the bus.
///
/// ```text
///   read    medium  |--------------------------|        n blocks of m each
///           bus          w n |-------------------------| n blocks of b each
/// ```
///
/// A drive that sends when a share w of a command is there (its watermark) ends n b after that, when
/// (1 - w) n blocks were still to pass: n (b - (1 - w) m) later than the medium, and one block if that
/// is negative, which is in the overhead. Where a track is taken up at any sector, the first block may be
/// the last to come: then all of it has passed in the revolution that is counted before the n m of
/// the medium, and the bus has these and the n (b - m) for its n b. A write begins when w of it has
/// come, w n b after its beginning, or so late that no block is missing when its sector comes,
/// n (b - m); for one that may begin at any sector see [`data`].
pub(super) fn lag(belief: &Profile, width: Duration, direction: Direction) -> Duration {
    let share = |time: Duration, permille: u16| {
        let nanos = time.as_nanos() * u64::from(permille);
        Duration::from_nanos(nanos.div_ceil(1000))
    };
    let buffer = &belief.buffer;
    match direction {
        Direction::Read => {
            let block = belief.bus.read_block;
            let hidden = share(width, buffer.read_watermark);
            (block + hidden).saturating_sub(width)
        }
        Direction::Write => {
            let block = belief.bus.write_block;
            share(block, buffer.write_watermark).max(block.saturating_sub(width))
        }
    }
}

/// A long write may lose a revolution at each of its parts.
pub(super) fn lost_in_parts(belief: &Profile, blocks: u64) -> Duration {
    let parts = match (belief.buffer.writes_in_parts, belief.buffer.write_blocks()) {
        (true, part @ 1..) => blocks.div_ceil(part).saturating_sub(1),
        _ => 0,
    };
    belief.spindle.period() * parts
}
