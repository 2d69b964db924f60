//! The reads of one track on a detour from one place to another.

use std::ops::Range;

use block::{Direction, Duration, Extent, Instant, Lba, Sectors as Blocks};
use drive::geometry::{Track, TrackExtent};
use drive::{Angle, Position, Profile};

use super::turning::{Rim, Sectors, Sweep, Turning};
use crate::freeblock::wanted::{Slices, WantedBlocks};
use crate::freeblock::{Kind, Ranges, SlowBus, Stop};

/// A leg from one track to another with time to spare.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    /// The track at the start.
    pub from: Position,
    /// The earliest start.
    pub leaves: Instant,
    /// The earliest start of the seek to `to`.
    pub follows: Instant,
    /// The track at the end.
    pub to: Position,
    /// The direction of the transfer there.
    pub direction: Direction,
    /// The latest arrival of the head.
    pub latest: Instant,
    /// The latest end of the reads on the leg.
    pub done_by: Instant,
    /// The margin between the arrival on a track and its first sector.
    pub to_free: Duration,
    /// The bus before the leg, if it is slower than the medium.
    pub bus: Option<SlowBus>,
}

/// The reads of one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Visit {
    /// The track.
    pub position: Position,
    /// One or two ranges.
    pub stops: [Option<Stop>; 2],
    /// The moment of the first block.
    pub begins: Instant,
    /// The number of wanted blocks.
    pub wanted: u32,
    /// The track as it was.
    pub track: Visited,
}

/// A visited track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Visited {
    /// The number of its sectors.
    pub sectors: u32,
    /// The number of its wanted blocks.
    pub wanted: u32,
}

/// A track none of whose blocks was remapped.
#[derive(Clone, Copy, Debug)]
pub(super) struct WholeTrack {
    pub track: Track,
    /// The sector of the first block if the others are on the following ones, without gaps.
    pub straight: Option<u32>,
}

/// Consecutive blocks of a track, in the order of their sectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectorRun {
    /// The first block, counted from the track's first.
    first: u32,
    blocks: u32,
    /// The sector of the first block.
    sector: u32,
    /// Whether the others are on the following sectors, without gaps.
    order: SectorOrder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SectorOrder {
    Straight,
    Slipped,
}

/// A track and the time span of the visit.
struct Visiting<'a> {
    profile: &'a Profile,
    track: Track,
    /// The sector of the first block, if the others are known to be on the following ones.
    straight: Option<u32>,
    slices: Slices<'a>,
    turning: Turning,
    sectors: Sectors,
    /// The arrival of the head.
    arrives: Instant,
    kind: Kind,
    leg: &'a Leg,
}

/// Wanted slices, from the first to the last, in one sweep.
#[derive(Clone, Copy, Debug)]
struct Swept {
    blocks: (u32, u32),
    wanted: u32,
    /// The raw angles to the first block, and to the end of the last.
    ways: (u128, u128),
}

impl SectorRun {
    /// So many blocks on consecutive sectors, from `sector` on.
    fn straight(blocks: u32, sector: u32) -> Self {
        SectorRun {
            first: 0,
            blocks,
            sector,
            order: SectorOrder::Straight,
        }
    }

    /// The sector of the first block, if the others are on the following ones.
    pub fn straight_from(&self) -> Option<u32> {
        (self.order == SectorOrder::Straight).then_some(self.sector)
    }
}

impl Leg {
    /// The time span on a track between a seek of `there` and one of `back`; `None` if it is empty.
    pub fn turning(
        &self,
        profile: &Profile,
        (there, back): (Duration, Duration),
    ) -> Option<Turning> {
        let until = self.latest.as_nanos().checked_sub(back.as_nanos())?;
        let until = Instant::from_nanos(until);
        if until < self.follows {
            return None;
        }
        let from = self.leaves + there + self.to_free;
        Turning::new(&profile.spindle, from, until.min(self.done_by))
    }
}

impl Visit {
    /// The last read.
    pub fn last(&self) -> Option<&Stop> {
        self.stops.iter().flatten().last()
    }
}

/// The reads with the most wanted blocks of a track on a leg, if they have more than `than`. The
/// geometry is asked for the track unless it is `known`.
pub(super) fn visit(
    (profile, wanted): (&Profile, &WantedBlocks),
    leg: &Leg,
    (position, kind, known): (Position, Kind, Option<WholeTrack>),
    ranges: Ranges,
    than: u32,
) -> Option<Visit> {
    let there = profile.reposition(leg.from, position, Direction::Read);
    let back = profile.reposition(position, leg.to, leg.direction);
    let arrives = leg.leaves + there;
    let turning = leg.turning(profile, (there, back))?;
    let geometry = &profile.geometry;
    let (track, straight) = match known {
        Some(known) => (known.track, known.straight),
        None => (geometry.track_at(position.cylinder, position.head)?, None),
    };
    let visiting = Visiting {
        profile,
        track,
        straight,
        slices: wanted.slices(&track)?,
        turning,
        sectors: turning.sectors(&Rim::of(&track)),
        arrives,
        kind,
        leg,
    };
    visiting.best(ranges, than)
}

impl Visiting<'_> {
    /// The best reads of the whole track. If remapped blocks divide it, the best between them.
    fn best(&self, ranges: Ranges, than: u32) -> Option<Visit> {
        if let Some(sector) = self.straight {
            let blocks = self.slices.blocks();
            return self.of_piece(&SectorRun::straight(blocks, sector), ranges, than);
        }
        let whole = whole(self.profile, &self.track);
        if let Some(whole) = whole {
            let best = self.of_piece(&whole, ranges, than)?;
            let mut stops = best.stops.iter().flatten();
            if stops.all(|stop| self.is_where_expected(&whole, stop.extent)) {
                return Some(best);
            }
        }
        let mut best = None;
        let mut than = than;
        for piece in pieces(self.profile, &self.track) {
            if let Some(found) = self.of_piece(&piece, ranges, than) {
                than = found.wanted;
                best = Some(found);
            }
        }
        best
    }

    /// The best reads of one piece.
    fn of_piece(&self, piece: &SectorRun, ranges: Ranges, than: u32) -> Option<Visit> {
        let sectors = &self.sectors;
        let upper = self.index(piece, sectors.upper);
        let upper_end = self.index(piece, sectors.upper_end).max(upper);
        let lower_end = self.index(piece, sectors.lower_end);
        let bus = self.leg.bus;
        let upper_swept = self.swept(piece, Sweep::Upper, upper..upper_end, bus);
        let lower_swept = self.swept(piece, Sweep::Lower, 0..lower_end, bus);
        let count = |swept: Option<Swept>| swept.map_or(0, |swept| swept.wanted);
        let one = if count(upper_swept) >= count(lower_swept) {
            upper_swept
        } else {
            lower_swept
        };
        if let (Ranges::Two, Some(first)) = (ranges, upper_swept) {
            let pause = self
                .profile
                .spindle
                .angle_at(Instant::ZERO + self.leg.to_free)
                - self.profile.spindle.phase();
            let from = sectors.lower_from(first.ways.1 + u128::from(pause.raw()));
            let end = lower_end.min(first.blocks.0 - piece.first);
            let from = self.index(piece, from).min(end);
            let passes = (self.turning.at(first.ways.0), self.turning.at(first.ways.1));
            let blocks = u64::from(first.blocks.1 - first.blocks.0);
            let bus = bus.map(|bus| bus.after(passes, blocks));
            let second = self.swept(piece, Sweep::Lower, from..end, bus);
            let both = first.wanted + count(second);
            if let (true, Some(second)) = (both > count(one).max(than), second) {
                return Some(self.visit(&[first, second]));
            }
        }
        let one = one.filter(|one| one.wanted > than)?;
        Some(self.visit(&[one]))
    }

    /// The wanted slices among some blocks of a piece (counted from its first). On a slow bus, the
    /// first of them that it transfers in time.
    fn swept(
        &self,
        piece: &SectorRun,
        sweep: Sweep,
        blocks: Range<u32>,
        bus: Option<SlowBus>,
    ) -> Option<Swept> {
        if blocks.is_empty() {
            return None;
        }
        let end = piece.first + blocks.end;
        let inside = self.slices.inside(piece.first + blocks.start..end);
        let first = self.slices.first(inside.clone())?;
        let start = self.slices.blocks_of(first..first + 1).start;
        let begins = self.sector(piece, start);
        let comes = self.turning.at(self.sectors.turned(sweep, begins));
        let width = self.profile.spindle.time_of(self.track.width);
        let carried = bus.map(|bus| bus.room(comes, width));
        let inside = match carried {
            Some(most) if most < u64::from(end - start) => {
                self.slices.inside(start..start + most as u32)
            }
            _ => inside,
        };
        let last = self.slices.last(inside)?;
        let read = self.slices.blocks_of(first..last + 1);
        let ends = self.sector(piece, read.end - 1) + 1;
        Some(Swept {
            blocks: (read.start, read.end),
            wanted: self.slices.wanted(first..last + 1),
            ways: (
                self.sectors.turned(sweep, begins),
                self.sectors.turned(sweep, ends),
            ),
        })
    }

    /// Whether none of the blocks was remapped.
    fn is_where_expected(&self, piece: &SectorRun, extent: Extent) -> bool {
        let block = (extent.start().0 - self.track.first.0) as u32;
        let sector = self.sector(piece, block);
        let start = self.track.start + self.track.width.times(u64::from(sector));
        let last = (extent.last().0 - self.track.first.0) as u32;
        let span = self.sector(piece, last) - sector + 1;
        let sweep = match span == self.track.sectors {
            true => Angle::from_raw(u64::MAX),
            false => self.track.width.times(u64::from(span)),
        };
        only_run(self.profile, extent).is_some_and(|run| {
            (run.start, run.sweep) == (start, sweep)
                && (run.cylinder, run.head) == (self.track.cylinder, self.track.head)
        })
    }

    /// The number of blocks of a piece on sectors below `sector`.
    #[inline]
    fn index(&self, piece: &SectorRun, sector: u32) -> u32 {
        if piece.order == SectorOrder::Straight {
            return sector.saturating_sub(piece.sector).min(piece.blocks);
        }
        let (mut low, mut high) = (0, piece.blocks);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.sector(piece, piece.first + middle) < sector {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The sector of a block of a piece, counted from the track's first block.
    #[inline]
    fn sector(&self, piece: &SectorRun, block: u32) -> u32 {
        if piece.order == SectorOrder::Straight {
            return piece.sector + (block - piece.first);
        }
        let lba = Lba(self.track.first.0 + u64::from(block));
        let place = self.profile.geometry.locate(lba);
        place.map_or(u32::MAX, |place| place.sector)
    }

    /// The ranges as stops.
    fn visit(&self, swept: &[Swept]) -> Visit {
        let mut visit = Visit {
            position: Position {
                cylinder: self.track.cylinder,
                head: self.track.head,
            },
            stops: [None; 2],
            begins: self.turning.at(swept[0].ways.0),
            wanted: 0,
            track: Visited {
                sectors: self.track.sectors,
                wanted: self.slices.wanted(0..self.slices.count()),
            },
        };
        let mut there = self.arrives;
        for (place, swept) in visit.stops.iter_mut().zip(swept) {
            let ends = self.turning.at(swept.ways.1);
            *place = Some(Stop {
                kind: self.kind,
                direction: Direction::Read,
                extent: blocks_of(&self.track, swept.blocks.0..swept.blocks.1),
                wanted: swept.wanted,
                slack: self.turning.at(swept.ways.0).since(there),
                begins: self.turning.at(swept.ways.0),
                ends,
            });
            there = ends;
            visit.wanted += swept.wanted;
        }
        visit
    }
}

/// A range of blocks of a track, counted from its first.
///
/// # Panics
/// If the range is empty.
pub(super) fn blocks_of(track: &Track, blocks: Range<u32>) -> Extent {
    let first = Lba(track.first.0 + u64::from(blocks.start));
    let length = Blocks(u64::from(blocks.end - blocks.start));
    Extent::new(first, length).expect("blocks of a track")
}

/// The blocks as one sweep of the head, if they pass in one.
pub(super) fn only_run(profile: &Profile, extent: Extent) -> Option<TrackExtent> {
    let first = profile.geometry.runs(extent).next()?;
    (u64::from(first.blocks) == extent.length().0).then_some(first)
}

/// All blocks of a track as one piece, unless its first or last one was remapped.
pub(super) fn whole(profile: &Profile, track: &Track) -> Option<SectorRun> {
    let blocks = (track.last.0 - track.first.0 + 1) as u32;
    let mut piece = SectorRun::straight(blocks, 0);
    if blocks == track.sectors {
        return Some(piece);
    }
    let place = |lba| {
        let place = profile.geometry.locate(lba)?;
        (place.cylinder == track.cylinder && place.head == track.head).then_some(place.sector)
    };
    let (first, last) = (place(track.first)?, place(track.last)?);
    piece.sector = first;
    if last.checked_sub(first)? + 1 == blocks {
        return Some(piece);
    }
    // Remapped blocks in the middle are not in the order of their sectors.
    only_run(profile, blocks_of(track, 0..blocks))?;
    piece.order = SectorOrder::Slipped;
    Some(piece)
}

/// The pieces of a track between remapped blocks.
fn pieces(profile: &Profile, track: &Track) -> Vec<SectorRun> {
    let blocks = (track.last.0 - track.first.0 + 1) as u32;
    let runs = profile.geometry.runs(blocks_of(track, 0..blocks));
    let here = runs.filter(|run| run.cylinder == track.cylinder && run.head == track.head);
    here.filter_map(|run| {
        let first = (run.first.0 - track.first.0) as u32;
        let sector = |lba| Some(profile.geometry.locate(Lba(lba))?.sector);
        let (begins, last) = (
            sector(run.first.0)?,
            sector(run.first.0 + u64::from(run.blocks) - 1)?,
        );
        let straight = last - begins + 1 == run.blocks;
        Some(SectorRun {
            first,
            blocks: run.blocks,
            sector: begins,
            order: if straight {
                SectorOrder::Straight
            } else {
                SectorOrder::Slipped
            },
        })
    })
    .collect()
}
