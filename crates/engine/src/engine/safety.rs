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

use block::{Class, Command, CommandId, Duration, Extent, Instant, Sectors};
use drive::firmware::WriteBack;

use super::Engine;
use super::guaranteed::{Guaranteed, Leftover};
use crate::background::Decision;
use crate::forecast::Head;
use crate::guarantees::{FOREGROUND_BYTES, pass, passing_within, worst_cost};
use crate::sent::{Planned, Purpose, Step};
use scheduler::freeblock::Kind;
use stream::HeadTimes;

/// To whom the drive is left.
pub(super) enum Leave {
    /// To everybody: policies, gaps, idle reads choose.
    Others,
    /// To streams: this command of theirs, or nothing.
    Streams(Option<Command>),
}

impl Engine {
    /// To whom the drive is left now.
    pub(super) fn leave(&mut self, now: Instant) -> Leave {
        let Some(guaranteed) = self.guaranteed.as_deref() else {
            return Leave::Others;
        };
        match guaranteed.leftover {
            Leftover::Due => return Leave::Streams(self.flush_leftover(now)),
            Leftover::Flushing(_) => return self.leave_nothing(),
            Leftover::Maybe | Leftover::None => {}
        }
        if self.is_room_for(now, self.longest_of_others()) {
            return Leave::Others;
        }
        if self.is_turn_of_others(now)
            && let Some(command) = self.give_others(now)
        {
            return Leave::Streams(Some(command));
        }
        Leave::Streams(self.go_first(now))
    }

    /// Whether others have a turn although their command may make a batch late: one is late already,
    /// and enough of them went since the last command of others.
    fn is_turn_of_others(&self, now: Instant) -> bool {
        let Some(guaranteed) = self.guaranteed.as_deref() else {
            return false;
        };
        guaranteed.passed >= MOST_PASSED
            && self.at_drive.len() < IN_ORDER
            && guaranteed.streams.rounds().is_late(now)
    }

    /// The turn of others: whoever has waited for longest, at best effort. A flush goes along with it.
    fn give_others(&mut self, now: Instant) -> Option<Command> {
        self.give_way();
        let oldest = self.ordering.oldest(|piece| !self.is_batch(piece));
        if let Some(command) = self.poll_flush(now) {
            if let (None, Some(guaranteed)) = (oldest, self.guaranteed.as_deref_mut()) {
                guaranteed.passed = 0;
            }
            return Some(command);
        }
        let piece = self.ordering.choose_for(oldest?)?;
        Some(self.give_at_once(now, piece))
    }

    /// Nothing goes before something ends or a round begins.
    fn leave_nothing(&mut self) -> Leave {
        self.wakeup = None;
        Leave::Streams(None)
    }

    /// What the drive has in its buffer from before there were streams goes to the medium first.
    fn flush_leftover(&mut self, now: Instant) -> Option<Command> {
        let none = self.belief.buffer.write_back == WriteBack::None;
        let command = (!none).then(|| self.give_flush(now));
        if let Some(guaranteed) = self.guaranteed.as_deref_mut() {
            guaranteed.leftover = match &command {
                Some(command) => Leftover::Flushing(command.id),
                None => Leftover::None,
            };
        }
        self.wakeup = None;
        command.or_else(|| self.poll(now))
    }

    /// The batch that is next in its sweep, or what it waits for; nothing if all of that is at the
    /// drive.
    fn go_first(&mut self, now: Instant) -> Option<Command> {
        self.wakeup = None;
        self.give_way();
        // A drive that has one waiting may take it before or after the one in service, no more.
        if self.at_drive.len() >= IN_ORDER {
            return None;
        }
        if let Some(piece) = self.unfinished_of_streams() {
            let most = u64::MAX;
            return Some(self.give(now, Step::Part { piece, most }));
        }
        if let Some(piece) = self.next_batch() {
            return Some(self.give_at_once(now, piece));
        }
        let piece = self.held_up_by()?;
        let most = u64::MAX;
        Some(self.give(now, Step::Part { piece, most }))
    }

    /// The transfer that no batch gets past, if it stands still: it has begun, and batches wait for it
    /// behind others that do.
    fn held_up_by(&mut self) -> Option<u32> {
        let guaranteed = self.guaranteed.as_deref()?;
        guaranteed.waiting().next()?;
        if !self.at_drive.is_empty() {
            return None;
        }
        let transfers = self.transfers.as_deref_mut()?;
        if transfers.under_way.is_none() {
            transfers.under_way = transfers.aside.take();
        }
        transfers.under_way
    }

    /// A chosen piece is given to the drive, whatever was under way.
    fn give_at_once(&mut self, now: Instant, piece: u32) -> Command {
        if let Some(transfers) = &mut self.transfers
            && transfers.under_way.is_some_and(|other| other != piece)
        {
            transfers.aside = transfers.under_way.take();
        }
        self.aim(piece);
        let step = Step::Request {
            piece,
            planned: Planned::Yes,
            was_held: false,
            merged: None,
            without: None,
        };
        self.give(now, step)
    }

    /// The way is given up for a batch: what was chosen waits among the others again.
    fn give_way(&mut self) {
        if let Some(&Step::Request { piece, .. }) = self.way.back() {
            self.ordering.unchoose(piece);
        }
        self.way.clear();
        self.settled = false;
    }

    /// A piece that has begun, and that a batch is or waits for.
    fn unfinished_of_streams(&self) -> Option<u32> {
        let piece = self.transfers.as_deref()?.under_way?;
        let (_, extent) = self.ordering.blocks(piece);
        let guaranteed = self.guaranteed.as_deref()?;
        let mut waiting = guaranteed.waiting();
        let holds_up = |other: &u32| self.ordering.blocks(*other).1.overlaps(extent);
        let is_wanted = self.is_batch(piece) || waiting.any(|other| holds_up(&other));
        is_wanted.then_some(piece)
    }

    /// Chooses the next batch of the sweep; if that waits for what is at the drive, another one.
    fn next_batch(&mut self) -> Option<u32> {
        let head = self.expected_head().position.cylinder;
        let guaranteed = self.guaranteed.as_deref()?;
        let first = guaranteed.streams.rounds().first(head)?;
        let first = guaranteed.piece_of(first.key);
        if let Some(chosen) = first.and_then(|piece| self.ordering.choose_for(piece)) {
            return Some(chosen);
        }
        let ordering = &mut self.ordering;
        let mut others = guaranteed.waiting();
        others.find_map(|piece| ordering.choose_for(piece))
    }

    /// What is on the way goes to the drive, if all batches are still in time; otherwise the one does
    /// that is next in its sweep.
    pub(super) fn set_out_safely(&mut self, now: Instant) -> Option<Command> {
        match self.is_way_safe(now) {
            true => self.set_out(now),
            false => self.go_first(now),
        }
    }

    /// Whether what is on the way may go there: a batch out of its turn. Free reads before it that
    /// have become too long are left out.
    fn is_way_safe(&mut self, now: Instant) -> bool {
        if self.guaranteed.is_none() {
            return true;
        }
        while let Some(&Step::Read(stop, _)) = self.way.front() {
            if self.leaves_room(now, stop.extent) {
                break;
            }
            self.way.pop_front();
        }
        match self.way.back() {
            Some(&Step::Request { piece, .. }) => self.may_join(now, piece),
            _ => true,
        }
    }

    /// Whether a piece that was chosen may go, if it is a batch.
    fn may_join(&self, now: Instant, piece: u32) -> bool {
        let Some(guaranteed) = self.guaranteed.as_deref() else {
            return true;
        };
        let name = guaranteed.transfer_of(self.ordering.owner(piece));
        let slot = name.and_then(|name| guaranteed.streams.placed(name));
        let rounds = guaranteed.streams.rounds();
        let Some((slot, batch)) = slot.and_then(|slot| Some((slot, rounds.batch(slot)?))) else {
            return true;
        };
        let head = self.expected_head().position.cylinder;
        let seek = guaranteed.times.seek.at(head.abs_diff(batch.cylinder));
        rounds.may_join(self.free_at_worst(now), seek + batch.work, slot)
    }

    /// Whether others may be given a command over these blocks.
    pub(super) fn leaves_room(&self, now: Instant, extent: Extent) -> bool {
        let Some(guaranteed) = self.guaranteed.as_deref() else {
            return true;
        };
        let longest = guaranteed.times.foreground;
        let is_short = || {
            extent.length().0 <= self.longest_blocks()
                && pass(&self.belief, guaranteed.promise.beyond, extent) <= longest
        };
        if !self.serves_streams() || is_short() {
            return true;
        }
        let head = self.expected_head();
        self.is_room_for(now, guaranteed.worst(self, head, extent))
    }

    /// Whether the free blocks before a piece leave room; with a batch none are merged, which may
    /// fail for their sake.
    pub(super) fn leaves_room_for(&self, now: Instant, piece: u32, decision: &Decision) -> bool {
        if !self.serves_streams() {
            return true;
        }
        let (own, _) = self.next_part(piece, u64::MAX);
        decision.plan.stops().all(|stop| match stop.kind {
            Kind::Merged => {
                let start = stop.extent.start();
                let blocks = Sectors(own.end().0 - start.0);
                let both = Extent::new(start, blocks).unwrap_or(own);
                !self.is_batch(piece) && self.leaves_room(now, both)
            }
            Kind::Detour | Kind::Source | Kind::Destination => self.leaves_room(now, stop.extent),
        })
    }

    /// Whether a command of others that takes at most `worst` may be given to the drive.
    fn is_room_for(&self, now: Instant, worst: Duration) -> bool {
        let Some(guaranteed) = self.guaranteed.as_deref() else {
            return true;
        };
        let free = self.free_at_worst(now);
        guaranteed.streams.rounds().safe(free, worst) && self.is_in_time_at_drive(free + worst)
    }

    /// Whether batches that are at the drive are in time even if it serves them last, at `end`. One
    /// that has two commands at most serves them in order.
    fn is_in_time_at_drive(&self, end: Instant) -> bool {
        if self.limits.commands_at_drive <= IN_ORDER {
            return true;
        }
        let pieces = self.at_drive.iter().filter_map(|sent| sent.purpose.piece());
        pieces
            .filter_map(|piece| self.deadline(piece))
            .all(|deadline| end <= deadline)
    }

    /// When the drive has done all that it has, at worst.
    fn free_at_worst(&self, now: Instant) -> Instant {
        let since = self.guaranteed.as_deref().map_or(now, |it| it.ended);
        let ends = |free: Instant, sent: &crate::sent::Sent| free.max(sent.given) + sent.worst;
        self.at_drive.iter().fold(since, ends).max(now)
    }

    /// The longest command of others.
    pub(super) fn longest_of_others(&self) -> Duration {
        let times = self.guaranteed.as_deref().map(|it| &it.times);
        times.map_or(Duration::ZERO, HeadTimes::foreground_worst)
    }

    fn longest_blocks(&self) -> u64 {
        (FOREGROUND_BYTES / u64::from(self.belief.block_bytes)).max(1)
    }

    /// The most blocks of what is left of a piece that are given at once: while there are streams, no
    /// more than pass in the time that is kept for the longest command of others; a batch goes as a
    /// whole.
    pub(super) fn longest_part(&self, piece: u32, left: Extent) -> u64 {
        let Some(guaranteed) = self.guaranteed.as_deref() else {
            return u64::MAX;
        };
        if !self.serves_streams() || self.is_batch(piece) {
            return u64::MAX;
        }
        let blocks = Sectors(left.length().0.min(self.longest_blocks()));
        let longest = Extent::new(left.start(), blocks).unwrap_or(left);
        let (beyond, most) = (guaranteed.promise.beyond, guaranteed.times.foreground);
        passing_within(&self.belief, beyond, longest, most)
    }

    /// Whether streams are here.
    pub(super) fn serves_streams(&self) -> bool {
        self.guaranteed.as_deref().is_some_and(Guaranteed::is_any)
    }

    /// Whether a piece is a batch under a guarantee.
    pub(super) fn is_batch(&self, piece: u32) -> bool {
        self.deadline(piece).is_some()
    }

    /// When a batch has to be done.
    fn deadline(&self, piece: u32) -> Option<Instant> {
        let guaranteed = self.guaranteed.as_deref()?;
        let name = guaranteed.transfer_of(self.ordering.owner(piece))?;
        match guaranteed.under(name)?.transfer.class {
            Class::RealTime { deadline } => Some(deadline),
            Class::BestEffort(_) | Class::Background => None,
        }
    }

    /// The head before the next command, for those who ask for its worst case.
    pub(super) fn expected_head_of_streams(&self) -> Option<Head> {
        self.guaranteed.as_ref().map(|_| self.expected_head())
    }

    /// A command is given to the drive; the answer is the longest that it takes.
    pub(super) fn note_given_beside_streams(
        &mut self,
        purpose: &Purpose,
        extent: Extent,
        head: Option<Head>,
    ) -> Duration {
        let (Some(guaranteed), Some(head)) = (self.guaranteed.as_deref(), head) else {
            return Duration::ZERO;
        };
        let mut worst = guaranteed.worst(self, head, extent);
        let piece = purpose.piece();
        let passed = match piece {
            // What nobody waits for is nobody's turn.
            None => guaranteed.passed,
            Some(piece) if self.is_batch(piece) => guaranteed.passed.saturating_add(1),
            Some(_) => 0,
        };
        let slot = piece.map(|piece| self.ordering.owner(piece));
        let name = slot.and_then(|slot| guaranteed.transfer_of(slot));
        let placed = name.and_then(|name| guaranteed.streams.placed(name));
        if let Some(batch) = placed.and_then(|slot| guaranteed.streams.rounds().batch(slot)) {
            let way = head.position.cylinder.abs_diff(batch.cylinder);
            let seek = match self.limits.commands_at_drive <= IN_ORDER {
                true => guaranteed.times.seek.at(way),
                false => guaranteed.times.seek.longest(),
            };
            worst = worst.min(seek + batch.work);
        }
        if let Some(guaranteed) = self.guaranteed.as_deref_mut() {
            guaranteed.passed = passed;
            if let Some(name) = name {
                guaranteed.streams.started(name);
            }
        }
        worst
    }

    /// A command has ended.
    pub(super) fn note_ended(&mut self, now: Instant, id: CommandId) {
        if let Some(guaranteed) = self.guaranteed.as_deref_mut() {
            guaranteed.ended = now;
            if guaranteed.leftover == Leftover::Flushing(id) {
                guaranteed.leftover = Leftover::None;
            }
        }
    }
}

impl Guaranteed {
    /// The longest that a command over `extent` takes after `head`; after anything, where the drive
    /// may choose the order.
    fn worst(&self, engine: &Engine, head: Head, extent: Extent) -> Duration {
        let times = (&self.times, self.promise.beyond);
        let worst = worst_cost(times, &engine.belief, head.position, extent);
        match engine.limits.commands_at_drive <= IN_ORDER {
            true => worst,
            false => worst + self.times.seek.longest(),
        }
    }

    /// Whether there is a stream, or something of one.
    fn is_any(&self) -> bool {
        self.streams.admission().streams() > 0 || self.transfers() > 0
    }

    fn piece_of(&self, key: u64) -> Option<u32> {
        let name = stream::streams::TransferId(key);
        Some(self.under(name)?.piece)
    }

    /// The pieces of the batches that wait.
    fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        let batches = self.streams.rounds().waiting();
        batches.filter_map(|(_, batch)| self.piece_of(batch.key))
    }
}

/// Of so many commands the drive serves the first one first: one is in service when the other comes
/// (Lumb et al., FAST 2002, 4.1).
const IN_ORDER: usize = 2;

/// Batches in a row that go before others where a promise is broken: as many as real-time requests
/// that go before one out of patience (`scheduler::ordering`), so that at least a fifth of the
/// commands are those of others. A choice.
const MOST_PASSED: u32 = 4;
