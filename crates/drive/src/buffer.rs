//! The drive's buffer: which blocks it holds, what it reads ahead, what is still to be written.
//!
//! ```text
//!   segment     [=========================>..............)
//!             start                      end           limit
//!               held, at most a segment's   being read ahead
//! ```
//!
//! The look-ahead is not simulated as it goes: `Ahead` remembers where and when it began a track,
//! and how far it has come is worked out when somebody asks.

use std::collections::VecDeque;

use block::{Extent, Instant, Lba, Sectors, Switch};

use crate::firmware::{BufferRules, LookAhead};
use crate::geometry::Geometry;
use crate::mechanics::Position;

/// What the buffer holds.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    rules: BufferRules,
    segments: Vec<Segment>,
    /// Grows with every use; the smallest stamp is the least recently used.
    stamp: u64,
    pub(crate) ahead: Option<Ahead>,
    /// Written, not yet on the medium; first in, first out.
    pub(crate) dirty: VecDeque<Dirty>,
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

/// A look-ahead under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    /// Whose it is.
    pub(crate) segment: usize,
    /// The first block of the part that begins at `at`.
    pub(crate) next: u64,
    /// The block before which it ends.
    pub(crate) limit: u64,
    /// When the head was free to go on with `next`.
    pub(crate) at: Instant,
    /// Where it was then.
    pub(crate) position: Position,
}

/// Written data that is not on the medium yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dirty {
    /// The blocks.
    pub(crate) extent: Extent,
    /// When the first of them was in the buffer.
    pub(crate) since: Instant,
}

/// What the buffer has of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing of use.
    Nothing,
    /// The blocks before this one; the rest is on the medium.
    Until(Lba),
    /// The blocks before this one; the look-ahead is on its way to the rest.
    Coming(Lba),
    /// All.
    All,
}

impl Buffer {
    /// An empty buffer with its switches on.
    pub(crate) fn new(rules: BufferRules) -> Self {
        Buffer {
            rules,
            segments: vec![Segment::default(); rules.segments as usize],
            stamp: 0,
            ahead: None,
            dirty: VecDeque::new(),
            look_ahead: Switch::On,
            write_cache: Switch::On,
        }
    }

    /// Looks for a read; the look-ahead must have been brought up to now.
    pub(crate) fn find(&self, extent: Extent) -> (Found, usize) {
        let (start, end) = (extent.start().0, extent.end().0);
        let mut best = (Found::Nothing, 0);
        for (index, segment) in self.segments.iter().enumerate() {
            let coming = self.ahead.is_some_and(|ahead| ahead.segment == index);
            if !(segment.start <= start && start < segment.end) {
                continue;
            }
            if end <= segment.end {
                return (Found::All, index);
            }
            if coming {
                best = (Found::Coming(Lba(segment.end)), index);
            } else if !matches!(best.0, Found::Coming(_)) {
                best = (Found::Until(Lba(segment.end)), index);
            }
        }
        best
    }

    /// The least recently used segment, emptied; `None` if there is no buffer.
    pub(crate) fn recycle(&mut self) -> Option<usize> {
        let index = (0..self.segments.len()).min_by_key(|&i| {
            let segment = &self.segments[i];
            (segment.start < segment.end, segment.stamp)
        })?;
        if self.ahead.is_some_and(|ahead| ahead.segment == index) {
            self.ahead = None;
        }
        self.segments[index] = Segment::default();
        Some(index)
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

    /// The look-ahead has come to `end`: the segment slides along.
    pub(crate) fn advance(&mut self, index: usize, end: u64) {
        let segment = &mut self.segments[index];
        if end > segment.end {
            segment.end = end;
            let floor = end.saturating_sub(u64::from(self.rules.segment_blocks));
            segment.start = segment.start.max(floor);
        }
    }

    /// The segment has been read on to `end`, and used.
    pub(crate) fn fill_on(&mut self, index: usize, end: u64) {
        self.advance(index, end);
        self.touch(index);
    }

    /// Forgets what a write makes old.
    pub(crate) fn invalidate(&mut self, extent: Extent) {
        let (start, end) = (extent.start().0, extent.end().0);
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if segment.start < end && start < segment.end {
                *segment = Segment {
                    stamp: segment.stamp,
                    ..Segment::default()
                };
                if self.ahead.is_some_and(|ahead| ahead.segment == index) {
                    self.ahead = None;
                }
            }
        }
    }

    /// Keeps written blocks for later reads, where the drive does.
    pub(crate) fn keep_written(&mut self, extent: Extent) {
        self.invalidate(extent);
        if self.rules.read_written
            && let Some(index) = self.recycle()
        {
            self.fill(index, extent.start().0, extent.end().0);
        }
    }

    /// Begins or prolongs the look-ahead of a segment after a read of `extent`.
    pub(crate) fn look_ahead(
        &mut self,
        geometry: &Geometry,
        index: usize,
        extent: Extent,
        at: Instant,
        position: Position,
    ) {
        if self.look_ahead == Switch::Off {
            return;
        }
        let limit = self.limit(geometry, index, extent);
        match &mut self.ahead {
            Some(ahead) if ahead.segment == index => ahead.limit = ahead.limit.max(limit),
            _ => {
                let next = self.segments[index].end;
                self.ahead = (next < limit).then_some(Ahead {
                    segment: index,
                    next,
                    limit,
                    at,
                    position,
                });
            }
        }
    }

    /// Before which block the look-ahead after a read of `extent` ends.
    fn limit(&self, geometry: &Geometry, index: usize, extent: Extent) -> u64 {
        let end = extent.end();
        let Some(track) = geometry.track_of(end) else {
            return end.0;
        };
        let most = match self.rules.look_ahead_blocks {
            0 => self.rules.segment_blocks,
            most => most,
        };
        let farthest = end.0 + u64::from(most);
        let limit = match self.rules.look_ahead {
            LookAhead::None => end.0,
            LookAhead::Segment => farthest,
            LookAhead::Track => farthest.min(track.last.0 + 1),
            LookAhead::Cylinder => farthest.min(cylinder_end(geometry, end, farthest)),
            LookAhead::TrackIfSequential => {
                // The scheme of DEC's and Quantum's drives: a segment that began on an earlier
                // track shows a sequential reader, who gets the next track as well.
                let next = if self.segments[index].start < track.first.0 {
                    u64::from(track.sectors)
                } else {
                    0
                };
                track.last.0 + 1 + next
            }
        };
        limit.min(geometry.sectors().0)
    }

    /// Whether another write finds room.
    pub(crate) fn has_room(&self) -> bool {
        self.dirty.len() < self.rules.write_segments.max(1) as usize
    }

    /// Forgets everything: the power was cut.
    pub(crate) fn clear(&mut self) {
        self.segments.fill(Segment::default());
        self.ahead = None;
        self.dirty.clear();
    }
}

impl Ahead {
    /// What is left of it, if anything.
    pub(crate) fn rest(&self) -> Option<Extent> {
        let blocks = self.limit.checked_sub(self.next)?;
        Extent::new(Lba(self.next), Sectors(blocks)).ok()
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
