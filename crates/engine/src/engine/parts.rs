//! What the next command of a request is: all of it, or the next part, and how the head comes to it.

use block::{Direction, Durability, Duration, Extent, Instant, Sectors, Switch};
use drive::firmware::{LookAhead, WriteBack};
use scheduler::preemption::{LastChunk, Place, When};

use super::Engine;
use crate::forecast::Route;
use crate::sent::{Manner, Step};

impl Engine {
    /// Whether parts of a request that is under way come back to back, although they are given one by
    /// one: the drive reads ahead, or takes what it is to write before it writes it.
    pub(super) fn is_hidden(&self, direction: Direction) -> bool {
        let buffer = &self.belief.buffer;
        match direction {
            Direction::Read => buffer.segments > 0 && buffer.look_ahead != LookAhead::None,
            Direction::Write => {
                buffer.segments > 0
                    && buffer.write_back != WriteBack::None
                    && !self.serves_streams()
                    && self.preemption().map(|rules| rules.last_chunk) != Some(LastChunk::Every(1))
            }
        }
    }

    /// Whether the drive goes on behind the end of a track before it is told to; where it does not, the
    /// next part has to be there before.
    pub(super) fn reads_on(&self, direction: Direction) -> bool {
        direction == Direction::Write
            || matches!(
                self.belief.buffer.look_ahead,
                LookAhead::Segment | LookAhead::Cylinder
            )
    }

    /// Whether the drive may answer a command from its buffer, or take it there, without positioning.
    pub(super) fn is_likely_buffered(&self, piece: u32) -> bool {
        let (direction, extent) = self.ordering.blocks(piece);
        if !self.is_hidden(direction) {
            return false;
        }
        let Some(transfers) = &self.transfers else {
            return false;
        };
        match direction {
            // What is forced in the end is on its way to the medium from the beginning.
            Direction::Write => {
                let slot = self.slots.get(self.ordering.owner(piece));
                slot.request.durability == Durability::Volatile
                    && transfers.rules.last_chunk == LastChunk::Buffered
            }
            Direction::Read => {
                let start = self.transfer(piece).map_or(extent.start(), |it| it.next).0;
                let ahead = u64::from(self.belief.buffer.segment_blocks);
                let mut ends = transfers.ends.iter();
                ends.any(|&end| (end..end.saturating_add(ahead)).contains(&start))
            }
        }
    }

    /// The blocks of the next part of a piece, at most so many, and where it stands in it.
    pub(super) fn next_part(&self, piece: u32, most: u64) -> (Extent, Place) {
        let (_, extent) = self.ordering.blocks(piece);
        let Some(transfers) = &self.transfers else {
            return (extent, Place::Last);
        };
        let start = self.transfer(piece).map_or(extent.start(), |it| it.next);
        let left = extent.end().0 - start.0;
        let undone = transfers.undone_of(piece);
        if let Some(&(_, part)) = undone.clone().next() {
            let place = match left == 0 && undone.count() == 1 {
                true => Place::Last,
                false => Place::Inner,
            };
            return (part, place);
        }
        let chunk = match transfers.rules.chunk {
            Some(chunk) if self.begins_small(piece) => chunk.0.min(self.least_part()),
            Some(chunk) => chunk.0,
            None => left,
        };
        let rest = Extent::new(start, Sectors(left));
        let longest = rest.map_or(u64::MAX, |rest| self.longest_part(piece, rest));
        let chunk = chunk.min(longest);
        let length = match left > longest || self.is_cut(piece, left) {
            true => chunk.min(left).min(most.max(1)),
            false => left,
        };
        let place = match length == left {
            true => Place::Last,
            false => Place::Inner,
        };
        let part = Extent::new(start, Sectors(length));
        (part.expect("something is left of a piece"), place)
    }

    /// When the drive will have taken up what it was given while it had nothing else, if that is later
    /// than `now`: of two that come together it takes which it likes, and a part that its buffer holds
    /// may look far away to it.
    pub(super) fn taken_up(&self, now: Instant) -> Option<Instant> {
        self.transfers.as_ref()?;
        let first = self.at_drive.front().filter(|_| self.at_drive.len() == 1)?;
        Some(first.given + TAKEN_UP).filter(|&then| then > now)
    }

    /// Whether a piece's next part is the one behind its way, which holds the drive for longest, and
    /// may be small: the drive reads on while the second is on its way to it.
    fn begins_small(&self, piece: u32) -> bool {
        let (direction, _) = self.ordering.blocks(piece);
        let transfers = self.transfers.as_deref();
        transfers.is_some_and(|transfers| {
            transfers.rules.when == When::Worth
                && direction == Direction::Read
                && !transfers.is_there(piece)
                && self.is_hidden(direction)
                && self.reads_on(direction)
        })
    }

    /// The smallest part, in blocks.
    pub(super) fn least_part(&self) -> u64 {
        (LEAST_PART / u64::from(self.belief.block_bytes)).max(1)
    }

    /// Whether something more urgent than a piece comes, or is reckoned with.
    pub(super) fn may_be_outranked(&self, piece: u32) -> bool {
        let level = self.ordering.level(piece);
        let transfers = self.transfers.as_deref();
        transfers.is_some_and(|transfers| transfers.worth.rate(level) > 0)
    }

    /// Whether so many blocks are given in chunks for the sake of what is more urgent.
    fn is_cut(&self, piece: u32, left: u64) -> bool {
        let Some(transfers) = &self.transfers else {
            return false;
        };
        if self.is_batch(piece) {
            return false;
        }
        let Some(chunk) = transfers.rules.chunk.filter(|chunk| chunk.0 < left) else {
            return false;
        };
        if !self.may_be_outranked(piece) {
            return false;
        }
        let has_begun = self.transfer(piece).is_some();
        if has_begun || transfers.rules.when == When::Always {
            return true;
        }
        let (direction, _) = self.ordering.blocks(piece);
        let level = self.ordering.level(piece);
        let sector = self
            .belief
            .spindle
            .time_of(self.routes[piece as usize].width());
        let chunks = left.div_ceil(chunk.0);
        let chunk = sector * chunk.0;
        // The first of them, or all in one, is held up by its way.
        let whole = transfers.worth.cost(level, transfers.way + sector * left);
        let first = transfers.worth.cost(level, transfers.way + chunk);
        let others = transfers
            .worth
            .cost(level, chunk)
            .saturating_mul(chunks - 1);
        let cut = first + others;
        let each = match self.is_hidden(direction) || self.limits.commands_at_drive > 1 {
            true => COMMAND,
            // Each begins a revolution after the one before.
            false => self.belief.spindle.period(),
        };
        whole.saturating_sub(cut) > (each * chunks).as_nanos()
    }

    /// A chosen piece's next command covers its next part alone.
    pub(super) fn aim(&mut self, piece: u32) {
        if self.transfers.is_none() {
            return;
        }
        let (direction, whole) = self.ordering.blocks(piece);
        let (part, _) = self.next_part(piece, u64::MAX);
        if part != whole
            && let Some(route) = Route::new(&self.belief, part, direction)
        {
            self.routes[piece as usize] = route;
        }
    }

    /// How the head comes to what a step reads or writes.
    pub(super) fn manner_of(&self, step: &Step) -> Manner {
        let direction = match *step {
            Step::Part { piece, .. } => self.ordering.blocks(piece).0,
            Step::Ahead(_) => Direction::Read,
            Step::Hop(_) if self.belief.seek_command == Switch::On => return Manner::Only,
            Step::Request { .. } | Step::Read(..) | Step::Calibration(_) | Step::Hop(_) => {
                return Manner::There;
            }
        };
        match self.is_hidden(direction) {
            true => Manner::On,
            false => Manner::There,
        }
    }
}

/// How long a drive takes at most to take up a command when it has no other. A choice: a fraction of
/// what its electronics take for it, which is tenths of a millisecond.
const TAKEN_UP: Duration = Duration::from_micros(20);

/// The size of the first part of a read that the drive goes on with by itself, in bytes. A choice: one
/// page of a host, and one block of a drive of today.
const LEAST_PART: u64 = 4096;

/// What another command costs a host, in head time. A choice: some microseconds of one core.
const COMMAND: Duration = Duration::from_micros(2);
