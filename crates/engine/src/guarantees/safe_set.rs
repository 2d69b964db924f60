//! What streams leave to others: every command is given only if all batches still end in time after
//! its worst case (`stream::rounds`; Reuther, Pohlack, RTSS 2003).
//!
//! ```text
//!   the drive is free, at worst      the longest command of others
//!   --------------------------|===================================|-- sweeps, at worst --| deadline
//!                              fits: policies, gaps, idle reads choose as ever
//!                              does not: the batch that is next in its sweep goes, or nothing
//! ```
//!
//! Others have commands of at most [`FOREGROUND_BYTES`], and shorter ones where these would take longer
//! than is kept for the longest: where a zone ends, where a serpentine does, where a track comes too
//! early. With a seek over the whole disk before it, a revolution and the electronics, such a command
//! takes no longer than [`HeadTimes::foreground_worst`], wherever it is (`guarantees::pass`). Whatever
//! else they may have (free blocks) is asked for by itself, unless it is as short. A batch that the policy picks out of its turn may go if
//! all others still can.
//!
//! All of that restricts others for the sake of a promise. Where that is broken already, because the
//! drive is slower than it is believed to be or the host sleeps, nothing would ever fit: then one
//! command of others goes after every [`MOST_PASSED`] batches, the oldest first.

use block::{Class, Direction, Durability, Duration, Extent, Instant, Sectors};
use drive::firmware::WriteBack;
use scheduler::PieceId;
use scheduler::freeblock::{GapPlan, Kind};
use stream::HeadTimes;
use stream::rounds::Batch;
use stream::streams::TransferId;

use super::{
    FOREGROUND_BYTES, Guarantees, Leftover, Promised, after_one_more, pass, passing_within,
    worst_from_anywhere,
};
use crate::command::{Draft, Purpose, StageAnswer};
use crate::context::StageContext;

/// What streams demand of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restriction {
    /// Nothing: the next stages are asked.
    None,
    /// Nothing is given before a command has ended.
    Wait,
    /// A flush is given.
    Flush,
    /// This piece is given, chosen already.
    Piece(PieceId),
    /// The next part of the transfer in parts is given.
    NextPart,
}

/// The piece that is given in parts, as `preemption` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartsInProgress {
    pub(crate) under_way: Option<PieceId>,
    /// The piece that stepped aside, while the head is still there.
    pub(crate) aside: Option<PieceId>,
}

impl Guarantees {
    /// Restricts the drive to streams where a command of others would make a batch late.
    pub(crate) fn restrict(
        &mut self,
        cx: &mut StageContext<'_>,
        parts: PartsInProgress,
    ) -> Restriction {
        if self.promised.is_none() {
            return Restriction::None;
        }
        if let Some(buffer) = self.empty_buffer(cx) {
            return buffer;
        }
        if self.is_room_for(cx, self.longest_of_others()) {
            return Restriction::None;
        }
        if self.is_turn_of_others(cx)
            && let Some(others) = self.others(cx)
        {
            return others;
        }
        self.first(cx, parts).unwrap_or(Restriction::Wait)
    }

    /// What the drive has in its buffer from when no stream was guaranteed goes to the medium first.
    fn empty_buffer(&mut self, cx: &mut StageContext<'_>) -> Option<Restriction> {
        match self.leftover {
            Leftover::Maybe if !self.serves_streams() => None,
            Leftover::Maybe if cx.profile().buffer.write_back == WriteBack::None => {
                self.leftover = Leftover::None;
                self.emptied = cx.now;
                cx.dispatch.wakeup = None;
                None
            }
            // They may leave more of it in the buffer.
            Leftover::Maybe if cx.dispatch.at_drive() > 0 => Some(Restriction::Wait),
            Leftover::Maybe => {
                self.leftover = Leftover::Flushing(cx.dispatch.next_id());
                cx.dispatch.wakeup = None;
                Some(Restriction::Flush)
            }
            Leftover::Flushing(_) => Some(Restriction::Wait),
            Leftover::None => None,
        }
    }

    /// Checks that all batches are still in time after what is chosen. If not, the choice is given up
    /// for the batch that is next in its sweep.
    pub(crate) fn check_chosen(
        &mut self,
        cx: &mut StageContext<'_>,
        parts: PartsInProgress,
    ) -> Restriction {
        if self.is_chosen_safe(cx) {
            return Restriction::None;
        }
        self.first(cx, parts).unwrap_or(Restriction::None)
    }

    /// Whether others have a turn although their command may make a batch late: one is late already,
    /// and enough of them went since the last command of others.
    fn is_turn_of_others(&self, cx: &StageContext<'_>) -> bool {
        let promised = self.promised.as_deref();
        self.passed >= MOST_PASSED
            && cx.dispatch.at_drive() < IN_ORDER
            && promised.is_some_and(|promised| promised.streams.rounds().is_late(cx.now))
    }

    /// The turn of others: the piece that has waited for longest, at best effort. A flush goes along
    /// with it.
    fn others(&mut self, cx: &mut StageContext<'_>) -> Option<Restriction> {
        give_choice_up(cx);
        let oldest = cx.ordering.oldest(|piece| !self.is_batch(cx, piece));
        if let StageAnswer::Give(Draft::Flush) = cx.intake.flushes.next() {
            if oldest.is_none() {
                self.passed = 0;
            }
            return Some(Restriction::Flush);
        }
        cx.ordering.choose_for(oldest?).map(Restriction::Piece)
    }

    /// The batch that is next in its sweep, or what it waits for; nothing if all of that is at the
    /// drive.
    fn first(&mut self, cx: &mut StageContext<'_>, parts: PartsInProgress) -> Option<Restriction> {
        cx.dispatch.wakeup = None;
        give_choice_up(cx);
        // A drive that has one waiting may take it before or after the one in service, no more.
        if cx.dispatch.at_drive() >= IN_ORDER {
            return None;
        }
        let goes_on = |piece| {
            self.is_batch(cx, piece) || (self.is_awaited(cx, piece) && self.spares_others(cx))
        };
        if parts.under_way.is_some_and(goes_on) {
            return Some(Restriction::NextPart);
        }
        if let Some(piece) = self.next_batch(cx) {
            return Some(Restriction::Piece(piece));
        }
        // The transfer that no batch gets past, if it stands still: it has begun, and batches wait for
        // it behind others that do.
        self.waiting().next()?;
        if cx.dispatch.at_drive() > 0 || !self.spares_others(cx) {
            return None;
        }
        let unfinished = parts.under_way.or(parts.aside);
        unfinished.map(|_| Restriction::NextPart)
    }

    /// Whether a batch waits for a piece that has begun.
    fn is_awaited(&self, cx: &StageContext<'_>, piece: PieceId) -> bool {
        let (_, extent) = cx.ordering.blocks(piece);
        let holds_up = |other: PieceId| cx.ordering.blocks(other).1.overlaps(extent);
        self.waiting().any(holds_up)
    }

    /// Whether a command that a batch waits for may be given: it makes none late that waits for nothing, or
    /// one is late already.
    fn spares_others(&self, cx: &StageContext<'_>) -> bool {
        let promised = self.promised.as_deref();
        let rounds = promised.map(|promised| promised.streams.rounds());
        let (free, longest) = (self.free_at_worst(cx), self.longest_of_others());
        rounds.is_none_or(|rounds| rounds.is_late(cx.now) || rounds.spares_others(free, longest))
    }

    /// Chooses the next batch of the sweep, or what it waits for; if that is at the drive, another one.
    fn next_batch(&mut self, cx: &mut StageContext<'_>) -> Option<PieceId> {
        let (head, free) = (self.arm, self.free_at_worst(cx));
        let promised = self.promised.as_deref()?;
        let rounds = promised.streams.rounds();
        let worst = |batch: Batch| {
            let piece = self.piece_of(batch.key);
            match piece.is_some_and(|piece| cx.ordering.is_eligible(piece)) {
                true => promised.times.seek.longest() + batch.work,
                false => promised.times.foreground_worst(),
            }
        };
        let first = rounds.first(head)?.key;
        let next = rounds.next(cx.now, free, head, worst);
        if next.is_none_or(|next| next.key != first) {
            self.transfers.put_back(cx.now, TransferId(first));
        }
        let chosen = next.and_then(|batch| cx.ordering.choose_for(self.piece_of(batch.key)?));
        if chosen.is_some() {
            return chosen;
        }
        let rounds = self.promised.as_deref()?.streams.rounds();
        let mut others = rounds.waiting_in_time();
        others.find_map(|batch| cx.ordering.choose_for(self.piece_of(batch.key)?))
    }

    /// Whether what is chosen may go: a batch out of its turn. Free reads before it that have become
    /// too long are left out.
    fn is_chosen_safe(&self, cx: &mut StageContext<'_>) -> bool {
        if self.promised.is_none() {
            return true;
        }
        while let Some(extent) = in_gap(cx) {
            if self.leaves_room(cx, extent) {
                break;
            }
            cx.leave_out_first();
        }
        let chosen = cx.dispatch.chosen_piece();
        chosen.is_none_or(|piece| self.may_join(cx, piece))
    }

    /// Whether a piece that was chosen may go, if it is a batch.
    fn may_join(&self, cx: &StageContext<'_>, piece: PieceId) -> bool {
        let Some(promised) = self.promised.as_deref() else {
            return true;
        };
        let name = self.transfers.of_slot(cx.ordering.request_slot(piece));
        let slot = name.and_then(|name| promised.streams.placed(name));
        let rounds = promised.streams.rounds();
        let Some((slot, batch)) = slot.and_then(|slot| Some((slot, rounds.batch(slot)?))) else {
            return true;
        };
        let worst = promised.times.seek.longest() + batch.work;
        rounds.may_join(self.free_at_worst(cx), worst, slot)
    }

    /// Whether others may be given a command over these blocks.
    pub(crate) fn leaves_room(&self, cx: &StageContext<'_>, extent: Extent) -> bool {
        let Some(promised) = self.promised.as_deref() else {
            return true;
        };
        let longest = promised.times.foreground;
        let is_short = || {
            extent.length().0 <= longest_blocks(cx)
                && pass(cx.profile(), promised.promise.beyond, extent) <= longest
        };
        if !self.serves_streams() || is_short() {
            return true;
        }
        self.is_room_for(cx, promised.worst(cx, extent))
    }

    /// Whether the free blocks of `plan` before a piece leave room, of which `own` is given next; with a
    /// batch none are merged, which may fail for their sake.
    pub(crate) fn leaves_room_for(
        &self,
        cx: &StageContext<'_>,
        (piece, own): (PieceId, Extent),
        plan: &GapPlan,
    ) -> bool {
        plan.stops().all(|stop| match stop.kind {
            Kind::Merged => {
                let start = stop.extent.start();
                let blocks = Sectors(own.end().0 - start.0);
                let both = Extent::new(start, blocks).unwrap_or(own);
                !self.is_batch(cx, piece) && self.leaves_room(cx, both)
            }
            Kind::Detour | Kind::Source | Kind::Destination => self.leaves_room(cx, stop.extent),
        })
    }

    /// Whether a command of others that takes at most `worst` may be given to the drive.
    fn is_room_for(&self, cx: &StageContext<'_>, worst: Duration) -> bool {
        let Some(promised) = self.promised.as_deref() else {
            return true;
        };
        let free = self.free_at_worst(cx);
        promised.streams.rounds().safe(free, worst) && self.is_in_time_at_drive(cx, free + worst)
    }

    /// Whether batches that are at the drive are in time even if it serves them last, at `end`. One
    /// that has two commands at most serves them in order.
    fn is_in_time_at_drive(&self, cx: &StageContext<'_>, end: Instant) -> bool {
        if cx.intake.limits.commands_at_drive <= IN_ORDER {
            return true;
        }
        let mut deadlines = cx
            .dispatch
            .pieces()
            .filter_map(|piece| self.deadline(cx, piece));
        deadlines.all(|deadline| end <= deadline)
    }

    /// When the drive has done all that it has, at worst.
    fn free_at_worst(&self, cx: &StageContext<'_>) -> Instant {
        let commands = cx.dispatch.commands();
        commands.fold(self.ended, after_one_more).max(cx.now)
    }

    /// The longest command of others.
    pub(crate) fn longest_of_others(&self) -> Duration {
        let times = self.promised.as_deref().map(|promised| &promised.times);
        times.map_or(Duration::ZERO, HeadTimes::foreground_worst)
    }

    /// The most blocks of what is left of a piece that are given at once: while there are streams, no
    /// more than pass in the time that is kept for the longest command of others; a batch goes as a
    /// whole.
    pub(crate) fn longest_part(&self, cx: &StageContext<'_>, piece: PieceId, left: Extent) -> u64 {
        let Some(promised) = self.promised.as_deref() else {
            return u64::MAX;
        };
        if !self.serves_streams() || self.is_batch(cx, piece) {
            return u64::MAX;
        }
        let blocks = Sectors(left.length().0.min(longest_blocks(cx)));
        let longest = Extent::new(left.start(), blocks).unwrap_or(left);
        let (beyond, most) = (promised.promise.beyond, promised.times.foreground);
        passing_within(cx.profile(), beyond, longest, most)
    }

    /// Whether a piece is a batch under a guarantee.
    pub(crate) fn is_batch(&self, cx: &StageContext<'_>, piece: PieceId) -> bool {
        self.deadline(cx, piece).is_some()
    }

    /// When a batch has to be done.
    fn deadline(&self, cx: &StageContext<'_>, piece: PieceId) -> Option<Instant> {
        let name = self.transfers.of_slot(cx.ordering.request_slot(piece))?;
        match self.transfers.get(name)?.transfer.class {
            Class::RealTime { deadline } => Some(deadline),
            Class::BestEffort(_) | Class::Background => None,
        }
    }

    /// A command over `extent` is given to the drive; the answer is the longest that it takes.
    pub(crate) fn note_given(
        &mut self,
        cx: &StageContext<'_>,
        purpose: &Purpose,
        (direction, extent): (Direction, Extent),
        durability: Durability,
    ) -> Duration {
        let Some(promised) = self.promised.as_deref() else {
            return Duration::ZERO;
        };
        let is_buffered = (direction, durability) == (Direction::Write, Durability::Volatile);
        if is_buffered && self.leftover == Leftover::None {
            self.leftover = Leftover::Maybe;
        }
        let mut worst = promised.worst(cx, extent);
        let arm = cx.profile().geometry.locate(extent.last());
        self.arm = arm.map_or(self.arm, |place| place.cylinder);
        let piece = purpose.piece();
        let passed = match piece {
            // What belongs to no request is no turn of others.
            None => self.passed,
            Some(piece) if self.is_batch(cx, piece) => self.passed.saturating_add(1),
            Some(_) => 0,
        };
        let slot = piece.map(|piece| cx.ordering.request_slot(piece));
        let name = slot.and_then(|slot| self.transfers.of_slot(slot));
        let placed = name.and_then(|name| promised.streams.placed(name));
        if let Some(batch) = placed.and_then(|slot| promised.streams.rounds().batch(slot)) {
            worst = worst.min(promised.times.seek.longest() + batch.work);
        }
        self.passed = passed;
        if let (Some(name), Some(promised)) = (name, self.promised.as_deref_mut()) {
            promised.streams.started(name);
        }
        worst
    }

    fn piece_of(&self, key: u64) -> Option<PieceId> {
        Some(self.transfers.get(TransferId(key))?.piece)
    }

    /// The pieces of the batches that wait.
    fn waiting(&self) -> impl Iterator<Item = PieceId> + '_ {
        let promised = self.promised.as_deref();
        let batches = promised.map(|promised| promised.streams.rounds().waiting());
        let batches = batches.into_iter().flatten();
        batches.filter_map(|(_, batch)| self.piece_of(batch.key))
    }
}

impl Promised {
    /// The longest that a command over `extent` takes, whatever was before it.
    fn worst(&self, cx: &StageContext<'_>, extent: Extent) -> Duration {
        worst_from_anywhere((&self.times, self.promise.beyond), cx.profile(), extent)
    }
}

/// The blocks of what goes next in the gap before the chosen piece, if something does.
fn in_gap(cx: &StageContext<'_>) -> Option<Extent> {
    match cx.dispatch.chosen.front()? {
        Draft::Background(read) => Some(read.extent),
        &Draft::InGap { piece } => Some(cx.ordering.blocks(piece).1),
        _ => None,
    }
}

/// The choice is given up for a batch: what was chosen waits among the others again.
fn give_choice_up(cx: &mut StageContext<'_>) {
    if let Some(piece) = cx.dispatch.chosen_piece() {
        cx.ordering.unchoose(piece);
    }
    cx.clear_chosen();
}

fn longest_blocks(cx: &StageContext<'_>) -> u64 {
    (FOREGROUND_BYTES / u64::from(cx.profile().block_bytes)).max(1)
}

/// Of so many commands the drive serves the first one first: one is in service when the other comes
/// (Lumb et al., FAST 2002, 4.1).
const IN_ORDER: usize = 2;

/// Batches in a row that go before others where a promise is broken: as many as real-time requests
/// that go before one out of patience (`scheduler::ordering`), so that at least a fifth of the
/// commands are those of others. A choice.
const MOST_PASSED: u32 = 4;
