//! What the next command of a request is: all of it, or the next part, and how the head comes to it.

use block::{Direction, Durability, Duration, Extent, Sectors, Switch};
use drive::Profile;
use drive::firmware::{LookAhead, WriteBack};
use scheduler::PieceId;
use scheduler::preemption::{ChunkRole, LastChunk, When};

use super::Transfers;
use crate::command::{Approach, Draft};
use crate::context::StageContext;
use crate::guarantees::Guarantees;

impl Transfers {
    /// Whether parts of a request that is under way come back to back, although they are given one by
    /// one: the drive reads ahead, or takes what it is to write before it writes it.
    pub(crate) fn is_hidden(
        &self,
        belief: &Profile,
        guarantees: &Guarantees,
        direction: Direction,
    ) -> bool {
        let buffer = &belief.buffer;
        match direction {
            Direction::Read => buffer.segments > 0 && buffer.look_ahead != LookAhead::None,
            Direction::Write => {
                buffer.segments > 0
                    && buffer.write_back != WriteBack::None
                    && !guarantees.serves_streams()
                    && self.rules().map(|rules| rules.last_chunk) != Some(LastChunk::Every(1))
            }
        }
    }

    /// Whether the drive may answer a command from its buffer, or take it there, without positioning.
    pub(crate) fn is_likely_buffered(
        &self,
        cx: &StageContext<'_>,
        guarantees: &Guarantees,
        piece: PieceId,
    ) -> bool {
        let (direction, extent) = cx.ordering.blocks(piece);
        let Some(rules) = &self.rules else {
            return false;
        };
        if !self.is_hidden(cx.profile(), guarantees, direction) {
            return false;
        }
        match direction {
            // What is forced in the end is on its way to the medium from the beginning.
            Direction::Write => {
                cx.request(piece).durability == Durability::Volatile
                    && rules.last_chunk == LastChunk::Buffered
            }
            Direction::Read => {
                let start = self.progress(piece).map_or(extent.start(), |it| it.next);
                let ahead = u64::from(cx.profile().buffer.segment_blocks);
                self.reads.may_hold(start, ahead)
            }
        }
    }

    /// The blocks of the next part of a piece, at most so many, and where it stands in it.
    pub(crate) fn next_part(
        &self,
        cx: &StageContext<'_>,
        guarantees: &Guarantees,
        piece: PieceId,
        most: u64,
    ) -> (Extent, ChunkRole) {
        let (_, extent) = cx.ordering.blocks(piece);
        let Some(rules) = &self.rules else {
            return (extent, ChunkRole::Last);
        };
        let start = self.progress(piece).map_or(extent.start(), |it| it.next);
        let left = extent.end().0 - start.0;
        let mut undone = self.undone.iter().filter(|(other, _)| *other == piece);
        if let Some(&(_, part)) = undone.next() {
            let place = match left == 0 && undone.next().is_none() {
                true => ChunkRole::Last,
                false => ChunkRole::Inner,
            };
            return (part, place);
        }
        let chunk = match rules.chunk {
            Some(chunk) if self.begins_small(cx, guarantees, piece) => {
                chunk.0.min(least_part(cx.profile()))
            }
            Some(chunk) => chunk.0,
            None => left,
        };
        let rest = Extent::new(start, Sectors(left));
        let longest = rest.map_or(u64::MAX, |rest| guarantees.longest_part(cx, piece, rest));
        let chunk = chunk.min(longest);
        let length = match left > longest || self.is_cut(cx, guarantees, piece, left) {
            true => chunk.min(left).min(most.max(1)),
            false => left,
        };
        let place = match length == left {
            true => ChunkRole::Last,
            false => ChunkRole::Inner,
        };
        let part = Extent::new(start, Sectors(length));
        (part.expect("something is left of a piece"), place)
    }

    /// How long a drive takes to take up a command that it was given while it had nothing else: of two
    /// that come together it takes which it likes, and a part that its buffer holds may look far away
    /// to it. `None` where nothing is given in parts.
    pub(crate) fn taking_up(&self) -> Option<Duration> {
        self.rules.as_ref().map(|_| TAKEN_UP)
    }

    /// Whether a piece's next part is the one behind its way, which holds the drive for longest, and
    /// may be small: the drive reads on while the second is on its way to it.
    fn begins_small(&self, cx: &StageContext<'_>, guarantees: &Guarantees, piece: PieceId) -> bool {
        let (direction, _) = cx.ordering.blocks(piece);
        let is_there = self.under_way == Some(piece) || self.aside == Some(piece);
        self.rules.is_some_and(|rules| rules.when == When::Worth)
            && direction == Direction::Read
            && !is_there
            && self.is_hidden(cx.profile(), guarantees, direction)
            && reads_on(cx.profile(), direction)
    }

    /// Whether something more urgent than a piece comes, or is reckoned with.
    pub(crate) fn may_be_outranked(&self, cx: &StageContext<'_>, piece: PieceId) -> bool {
        self.rules.is_some() && self.worth.rate(cx.ordering.level(piece)) > 0
    }

    /// Whether so many blocks are given in chunks for the sake of what is more urgent.
    fn is_cut(
        &self,
        cx: &StageContext<'_>,
        guarantees: &Guarantees,
        piece: PieceId,
        left: u64,
    ) -> bool {
        let Some(rules) = &self.rules else {
            return false;
        };
        if guarantees.is_batch(cx, piece) {
            return false;
        }
        let Some(chunk) = rules.chunk.filter(|chunk| chunk.0 < left) else {
            return false;
        };
        if !self.may_be_outranked(cx, piece) {
            return false;
        }
        if self.has_begun(piece) || rules.when == When::Always {
            return true;
        }
        let (direction, _) = cx.ordering.blocks(piece);
        let level = cx.ordering.level(piece);
        let spindle = &cx.profile().spindle;
        let sector = spindle.time_of(cx.route(piece).width());
        let chunks = left.div_ceil(chunk.0);
        let chunk = sector * chunk.0;
        // The first of them, or all in one, is held up by its way.
        let whole = self.worth.cost(level, self.seek + sector * left);
        let first = self.worth.cost(level, self.seek + chunk);
        let others = self.worth.cost(level, chunk).saturating_mul(chunks - 1);
        let cut = first + others;
        let is_hidden = self.is_hidden(cx.profile(), guarantees, direction);
        let each = match is_hidden || cx.intake.limits.commands_at_drive > 1 {
            true => COMMAND,
            // Each begins a revolution after the one before.
            false => spindle.period(),
        };
        whole.saturating_sub(cut) > (each * chunks).as_nanos()
    }

    /// A chosen piece's next command covers its next part alone: so does its route.
    pub(crate) fn route_next_part(
        &self,
        cx: &mut StageContext<'_>,
        guarantees: &Guarantees,
        piece: PieceId,
    ) {
        if self.rules.is_none() {
            return;
        }
        let (direction, whole) = cx.ordering.blocks(piece);
        let (part, _) = self.next_part(cx, guarantees, piece, u64::MAX);
        if part != whole
            && let Some(route) = cx.belief.route_of(part, direction)
        {
            cx.belief.reroute(piece, route);
        }
    }

    /// How the head comes to what a draft reads or writes.
    pub(crate) fn approach_of(
        &self,
        cx: &StageContext<'_>,
        guarantees: &Guarantees,
        draft: &Draft,
    ) -> Approach {
        let direction = match *draft {
            Draft::Part { piece, .. } => cx.ordering.blocks(piece).0,
            Draft::ReadAhead(_) => Direction::Read,
            Draft::Hop(_) if cx.profile().seek_command == Switch::On => return Approach::SeekOnly,
            Draft::Request { .. }
            | Draft::InGap { .. }
            | Draft::Background(..)
            | Draft::Calibration(_)
            | Draft::Flush
            | Draft::Hop(_) => return Approach::Seek,
        };
        match self.is_hidden(cx.profile(), guarantees, direction) {
            true => Approach::Continue,
            false => Approach::Seek,
        }
    }
}

/// Whether the drive goes on behind the end of a track before it is told to; where it does not, the
/// next part has to be there before.
pub(super) fn reads_on(belief: &Profile, direction: Direction) -> bool {
    direction == Direction::Write
        || matches!(
            belief.buffer.look_ahead,
            LookAhead::Segment | LookAhead::Cylinder
        )
}

/// The smallest part, in blocks.
pub(crate) fn least_part(belief: &Profile) -> u64 {
    (LEAST_PART / u64::from(belief.block_bytes)).max(1)
}

/// How long a drive takes at most to take up a command when it has no other. A choice: a fraction of
/// what its electronics take for it, which is tenths of a millisecond.
const TAKEN_UP: Duration = Duration::from_micros(20);

/// The size of the first part of a read that the drive goes on with by itself, in bytes. A choice: one
/// page of a host, and one block of a drive of today.
const LEAST_PART: u64 = 4096;

/// What another command costs a host, in head time. A choice: some microseconds of one core.
const COMMAND: Duration = Duration::from_micros(2);

#[cfg(test)]
mod tests;
