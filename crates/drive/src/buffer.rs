//! The drive's buffer: the blocks that it holds, the look-ahead, and dirty data.
//!
//! ```text
//!   segment     [=========================>..............)
//!             start                      end           limit
//!               held, at most a segment's   being read ahead
//! ```
//!
//! The look-ahead is not simulated step by step. `OngoingLookAhead` stores the start of a track,
//! and its progress is computed on demand. Each arm has its own.

use std::ops::Range;

use block::{Extent, Instant, Lba, Sectors, Switch};

use crate::firmware::{BufferRules, LookAhead};
use crate::geometry::{Geometry, TrackExtent};
use crate::mechanics::Position;

/// The drive's buffer: segments, look-aheads and dirty data.
#[derive(Clone, Debug)]
pub(crate) struct SegmentBuffer {
    rules: BufferRules,
    segments: Vec<Segment>,
    /// Grows with every use; the smallest stamp is the least recently used.
    stamp: u64,
    /// By arm.
    pub(crate) aheads: Vec<Option<OngoingLookAhead>>,
    /// Written data that is not on the medium, oldest first.
    pub(crate) dirty: Vec<Dirty>,
    pub(crate) look_ahead: Switch,
    pub(crate) write_cache: Switch,
}

/// Blocks `start..end`; empty if equal.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    start: u64,
    end: u64,
    stamp: u64,
}

impl Segment {
    /// What orders segments for reuse: the empty ones first, then the least recently used.
    #[inline]
    fn turn(&self) -> u64 {
        match self.start < self.end {
            true => FILLED | self.stamp,
            false => self.stamp,
        }
    }
}

/// More than any stamp.
const FILLED: u64 = 1 << 63;

/// A look-ahead in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OngoingLookAhead {
    /// Its segment.
    pub(crate) segment: usize,
    /// The first block of the part that begins at `at`.
    pub(crate) next: u64,
    /// The block before which it ends.
    pub(crate) limit: u64,
    /// The moment at which the head was free for `next`.
    pub(crate) at: Instant,
    /// The head's position at that moment.
    pub(crate) position: Position,
    /// The start of the first sector of `next`; `None` until it is computed.
    pub(crate) begins: Option<Instant>,
    /// The part that begins with `next`, and its end; `None` until they are computed.
    pub(crate) part: Option<(TrackExtent, Instant)>,
}

/// Written data that is not on the medium yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dirty {
    /// The blocks.
    pub(crate) extent: Extent,
    /// The arrival of the first block in the buffer.
    pub(crate) since: Instant,
    /// The completion of the write.
    pub(crate) done: Instant,
}

/// The result of a lookup in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferLookup {
    /// The first block is absent.
    Nothing,
    /// The blocks before this one; the rest is on the medium.
    Until(Lba),
    /// The blocks before this one; the look-ahead continues with the rest.
    Coming(Lba),
    /// All blocks.
    All,
}

impl SegmentBuffer {
    /// An empty buffer with its switches on.
    pub(crate) fn new(rules: BufferRules, arms: usize) -> Self {
        SegmentBuffer {
            rules,
            segments: vec![Segment::default(); rules.segments as usize],
            stamp: 0,
            aheads: vec![None; arms],
            dirty: Vec::new(),
            look_ahead: Switch::On,
            write_cache: Switch::On,
        }
    }

    /// Looks up a read that `arm` would serve. The look-ahead must be up to date.
    pub(crate) fn find(&self, arm: usize, extent: Extent) -> (BufferLookup, usize) {
        let (start, end) = (extent.start().0, extent.end().0);
        let growing = self.aheads[arm].map(|ahead| ahead.segment);
        let mut best = (BufferLookup::Nothing, 0);
        for (index, segment) in self.segments.iter().enumerate() {
            let grows = growing == Some(index);
            // The look-ahead will read the continuation of a growing segment.
            let reach = segment.end + u64::from(grows);
            // One comparison: which of two places is first is not predictable.
            if start.wrapping_sub(segment.start) >= reach - segment.start {
                continue;
            }
            if end <= segment.end {
                return (BufferLookup::All, index);
            }
            if grows {
                best = (BufferLookup::Coming(Lba(segment.end)), index);
            } else if !matches!(best.0, BufferLookup::Coming(_)) {
                best = (BufferLookup::Until(Lba(segment.end)), index);
            }
        }
        best
    }

    /// The least recently used segment; `None` if there is no buffer.
    pub(crate) fn oldest(&self) -> Option<usize> {
        let segments = self.segments.iter().enumerate();
        let oldest = segments.min_by_key(|(_, segment)| segment.turn());
        oldest.map(|(index, _)| index)
    }

    /// The arm whose look-ahead fills a segment.
    pub(crate) fn arm_filling(&self, index: usize) -> Option<usize> {
        let fills =
            |ahead: &Option<OngoingLookAhead>| ahead.is_some_and(|ahead| ahead.segment == index);
        self.aheads.iter().position(fills)
    }

    /// A segment with blocks of the extent.
    pub(crate) fn overlapping(&self, extent: Extent) -> Option<usize> {
        let (start, end) = (extent.start().0, extent.end().0);
        let mut segments = self.segments.iter();
        segments.position(|segment| {
            // One comparison: which of two places is first is not predictable.
            segment.start.max(start) < segment.end.min(end)
        })
    }

    /// Empties a segment.
    pub(crate) fn empty(&mut self, index: usize) {
        let stamp = self.segments[index].stamp;
        self.segments[index] = Segment {
            stamp,
            ..Segment::default()
        };
    }

    /// Puts blocks into a segment (the last ones that fit) and marks it used.
    pub(crate) fn fill(&mut self, index: usize, start: u64, end: u64) {
        self.stamp += 1;
        let floor = end.saturating_sub(u64::from(self.rules.segment_blocks));
        self.segments[index] = Segment {
            start: start.max(floor),
            end,
            stamp: self.stamp,
        };
    }

    /// Marks a segment used.
    pub(crate) fn touch(&mut self, index: usize) {
        self.stamp += 1;
        self.segments[index].stamp = self.stamp;
    }

    /// Extends a segment to the look-ahead's progress `end`, and drops its oldest blocks.
    pub(crate) fn advance(&mut self, index: usize, end: u64) {
        let segment = &mut self.segments[index];
        if end > segment.end {
            segment.end = end;
            let floor = end.saturating_sub(u64::from(self.rules.segment_blocks));
            segment.start = segment.start.max(floor);
        }
    }

    /// Extends a segment to `end`, and marks it used.
    pub(crate) fn fill_on(&mut self, index: usize, end: u64) {
        self.advance(index, end);
        self.touch(index);
    }

    /// Begins or extends the look-ahead of a segment after a read of `extent`, up to the block
    /// `bound`. `arm` is free at `at`. The blocks of the track behind it may be known already.
    pub(crate) fn look_ahead(
        &mut self,
        known: (&Geometry, Range<u64>),
        (arm, index): (usize, usize),
        (extent, bound): (Extent, u64),
        (at, position): (Instant, Position),
    ) {
        if self.look_ahead == Switch::Off {
            return;
        }
        let limit = self.limit(known, index, extent).min(bound);
        match &mut self.aheads[arm] {
            Some(ahead) if ahead.segment == index => {
                // The current part grows, and keeps its start.
                if limit > ahead.limit {
                    ahead.limit = limit;
                    ahead.part = None;
                }
            }
            ahead => {
                let next = self.segments[index].end;
                *ahead = (next < limit).then_some(OngoingLookAhead {
                    segment: index,
                    next,
                    limit,
                    at,
                    position,
                    begins: None,
                    part: None,
                });
            }
        }
    }

    /// The block before which the look-ahead after a read of `extent` ends.
    fn limit(
        &self,
        (geometry, track): (&Geometry, Range<u64>),
        index: usize,
        extent: Extent,
    ) -> u64 {
        let end = extent.end();
        if self.rules.look_ahead == LookAhead::None {
            return end.0;
        }
        let (first, after, sectors) = match track.contains(&end.0) {
            true => (track.start, track.end, track.end - track.start),
            false => match geometry.track_of(end) {
                None => return end.0,
                Some(track) => (track.first.0, track.last.0 + 1, u64::from(track.sectors)),
            },
        };
        if !(first..after).contains(&end.0) {
            // A remapped block: the next blocks are on another track.
            return end.0;
        }
        let most = match self.rules.look_ahead_blocks {
            0 => self.rules.segment_blocks,
            most => most,
        };
        let farthest = end.0 + u64::from(most);
        let limit = match self.rules.look_ahead {
            LookAhead::None => end.0,
            LookAhead::Segment => farthest,
            LookAhead::Track => farthest.min(after),
            LookAhead::Cylinder => farthest.min(cylinder_end(geometry, end, farthest)),
            LookAhead::TrackIfSequential => {
                // The scheme of DEC's and Quantum's drives: a segment that began on an earlier
                // track indicates sequential reads, for which the next track is read as well. The
                // look-ahead covers whole tracks even if a segment is smaller (the Atlas III's
                // holds a third of one, and its measured times need this).
                let next = if self.segments[index].start < first {
                    sectors
                } else {
                    0
                };
                after + next
            }
        };
        limit.min(geometry.sectors().0)
    }

    /// Whether the buffer accepts a write of `blocks` blocks.
    pub(crate) fn takes_writes(&self, blocks: u64) -> bool {
        self.rules.segments > 0
            && self.rules.write_segments > 0
            && blocks <= u64::from(self.rules.segment_blocks)
    }

    /// Whether the buffer has room for another write. A consecutive write shares a segment unless
    /// each write has its own.
    pub(crate) fn has_room(&self, extent: Extent) -> bool {
        if self.dirty.len() < self.rules.write_segments as usize {
            return true;
        }
        if self.rules.segment_per_write {
            return false;
        }
        let mut segments = 0;
        let (mut end, mut blocks) = (None, 0);
        for next in self.dirty.iter().map(|dirty| dirty.extent).chain([extent]) {
            blocks += next.length().0;
            if end != Some(next.start()) || blocks > u64::from(self.rules.segment_blocks) {
                segments += 1;
                blocks = next.length().0;
            }
            end = Some(next.end());
        }
        segments <= self.rules.write_segments
    }

    /// Empties the buffer after a power cut. The switches are as after power-up.
    pub(crate) fn clear(&mut self) {
        self.segments.fill(Segment::default());
        self.aheads.fill(None);
        self.dirty.clear();
        self.look_ahead = Switch::On;
        self.write_cache = Switch::On;
    }
}

impl OngoingLookAhead {
    /// The rest of the look-ahead, if any.
    pub(crate) fn rest(&self) -> Option<Extent> {
        let blocks = self.limit.checked_sub(self.next)?;
        Extent::new(Lba(self.next), Sectors(blocks)).ok()
    }

    /// Moves the start to `next`, with the head at `position` from `at` on.
    pub(crate) fn reach(&mut self, next: u64, at: Instant, position: Position) {
        *self = OngoingLookAhead {
            next,
            at,
            position,
            begins: None,
            part: None,
            ..*self
        };
    }
}

/// The block after the last one of `from`'s cylinder, or `farthest` if that comes first.
fn cylinder_end(geometry: &Geometry, from: Lba, farthest: u64) -> u64 {
    let Ok(extent) = Extent::new(from, Sectors(farthest.saturating_sub(from.0))) else {
        return from.0;
    };
    let mut runs = geometry.runs(extent);
    let Some(first) = runs.next() else {
        return from.0;
    };
    let mut end = first.first.0 + u64::from(first.blocks);
    for run in runs {
        if run.cylinder != first.cylinder {
            break;
        }
        end = run.first.0 + u64::from(run.blocks);
    }
    end
}
