//! An emulated drive: a model decides when a command ends, and a sparse image has the bytes.
//!
//! ```text
//!   command --> model: ends at T -----------------------------------.
//!          '--> image: [old bytes are kept] the bytes move at once --+--> ended at T, or when moved
//! ```
//!
//! Written bytes are in the image when their command ends, even if the drive's buffer would still hold
//! them. A service that is killed loses nothing. The image is as safe as the page cache of its machine.
//!
//! The drive's power can be cut. Then the bytes that its buffer held are removed from the image again, as
//! the model says: see `volatile`. Sectors that were being written are unreadable until they are written
//! again. Only memory has that state: after a restart of the service they have old or new bytes.

#![allow(
    unsafe_code,
    reason = "passes on memory by address to the image, as its caller promised it"
)]

use std::collections::{BTreeSet, VecDeque};

use block::{
    Action, Command, CommandId, Direction, Durability, Extent, Instant, Lba, Outcome, Sectors,
    Status,
};
use drive::{Lost, VirtualDrive};
use hdrhistogram::Histogram;
use tracing::{error, warn};

use super::file::Image;
use super::pieces::{Pieces, held, in_a_row};
use super::{BackEnd, Ended, Punch, Run, Shape, Span};
use crate::arena::Memory;
use crate::ring::Ring;
use block::operation::OperationError;

mod turns;
mod volatile;

use turns::Turns;
use volatile::Volatile;

/// An emulated drive.
pub struct Emulated {
    drive: VirtualDrive,
    image: Image,
    /// Commands in flight, in the order of their dispatch.
    under_way: Vec<UnderWay>,
    /// The lateness of commands against the model, in nanoseconds of the drive's time.
    late: Histogram<u64>,
    volatile: Volatile,
    /// Blocks that were torn and not written again.
    torn: BTreeSet<u64>,
    /// The losses of a power cut, until the last bytes have moved.
    cut: Option<Lost>,
    /// Commands that arrived since the power cut.
    waiting: VecDeque<DelayedCommand>,
    turns: Turns,
    punches: Vec<PendingPunch>,
    punched: VecDeque<(u32, Result<(), OperationError>)>,
}

/// A command in flight.
struct UnderWay {
    id: CommandId,
    /// Of one that reads or writes.
    turn: Option<u64>,
    bytes: BytesState,
    /// The model's outcome, once the command has ended there.
    outcome: Option<Outcome>,
}

/// The state of a command's bytes.
enum BytesState {
    /// Those of others with common blocks move first.
    Behind { command: Command, memory: Pieces },
    /// The old bytes are being read. Then the new ones are written.
    Saving {
        extent: Extent,
        durability: Durability,
        memory: Pieces,
        old: Vec<u8>,
    },
    /// The bytes are being read from the image or written to it.
    Moving(Extent, Direction),
    /// The bytes have moved, or failed to.
    Moved(Result<(), OperationError>),
}

/// A trim or zeroes that have not ended.
struct PendingPunch {
    turn: u64,
    key: u32,
    what: Punch,
    span: Span,
    has_begun: bool,
}

/// A command that arrived while the power was off.
struct DelayedCommand {
    command: Command,
    memory: Pieces,
}

impl Emulated {
    /// A drive whose bytes are in `image`, which has as many blocks as the drive.
    ///
    /// # Panics
    /// If the image has fewer blocks.
    pub fn new(drive: VirtualDrive, image: Image) -> Self {
        let shape = image.shape();
        let truth = drive.truth();
        assert_eq!(shape.blocks, truth.geometry.sectors().0, "another image");
        assert_eq!(shape.block_bytes, truth.block_bytes, "another block size");
        let volatile = Volatile::of(truth, 0);
        Emulated {
            drive,
            image,
            under_way: Vec::new(),
            // Two digits, up to a minute.
            late: Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("bounds"),
            volatile,
            torn: BTreeSet::new(),
            cut: None,
            waiting: VecDeque::new(),
            turns: Turns::default(),
            punches: Vec::new(),
            punched: VecDeque::new(),
        }
    }

    /// Sets the seed that decides which blocks of an interrupted write are old.
    #[must_use]
    pub fn with_dice(mut self, seed: u64) -> Self {
        self.volatile = Volatile::of(self.drive.truth(), seed);
        self
    }

    fn is_over(under_way: &UnderWay) -> bool {
        matches!(under_way.bytes, BytesState::Moved(_)) && under_way.outcome.is_some()
    }

    fn entry(&mut self, id: CommandId) -> &mut UnderWay {
        let mut entries = self.under_way.iter_mut();
        let entry = entries.find(|entry| entry.id == id);
        entry.expect("ends of commands that are under way only")
    }

    /// # Safety
    /// As for [`BackEnd::start`].
    unsafe fn begin(&mut self, now: Instant, command: &Command, memory: Pieces, ring: &mut Ring) {
        let mut outcome = None;
        if let Err(refused) = self.drive.submit(now, *command) {
            warn!(%refused, "the emulated drive refuses a command");
            outcome = Some(undone(command.id, now));
        }
        let command = *command;
        let blocks = match command.action {
            Action::Read { extent, .. } => Some((extent, Direction::Read)),
            Action::Write { extent, .. } => Some((extent, Direction::Write)),
            _ => None,
        };
        let turn = blocks.map(|(extent, direction)| self.turns.arrive(extent, direction));
        let bytes = match turn.is_none_or(|turn| self.turns.may_move(turn)) {
            false => BytesState::Behind { command, memory },
            // SAFETY: the caller's promise, passed on.
            true => unsafe { self.begin_bytes(now, &command, memory, ring) },
        };
        self.under_way.push(UnderWay {
            id: command.id,
            turn,
            bytes,
            outcome,
        });
    }

    /// Begins with the bytes of what was behind others that have moved.
    fn follow_up(&mut self, now: Instant, ring: &mut Ring) {
        for place in 0..self.under_way.len() {
            let entry = &mut self.under_way[place];
            if !entry.turn.is_some_and(|turn| self.turns.may_move(turn)) {
                continue;
            }
            let bytes = std::mem::replace(&mut entry.bytes, BytesState::Moved(Ok(())));
            self.under_way[place].bytes = match bytes {
                // SAFETY: the command has been started and has not ended.
                BytesState::Behind { command, memory } => unsafe {
                    self.begin_bytes(now, &command, memory, ring)
                },
                begun => begun,
            };
        }
        self.begin_punches(ring);
    }

    /// Begins with punches that may be done now.
    fn begin_punches(&mut self, ring: &mut Ring) {
        for punch in &mut self.punches {
            if !punch.has_begun && self.turns.may_move(punch.turn) {
                punch.has_begun = true;
                self.image.punch(punch.key, punch.what, punch.span, ring);
            }
        }
    }

    /// # Safety
    /// As for [`BackEnd::start`].
    unsafe fn begin_bytes(
        &mut self,
        now: Instant,
        command: &Command,
        memory: Pieces,
        ring: &mut Ring,
    ) -> BytesState {
        // SAFETY: the caller's promise, passed on; old bytes lie in a vector that the entry keeps.
        unsafe {
            match command.action {
                Action::Read { extent, .. } => {
                    self.move_bytes(now, command, &memory, ring);
                    BytesState::Moving(extent, Direction::Read)
                }
                Action::Write { extent, durability } => {
                    let mut old = self.volatile.room(extent);
                    let save = Action::Read {
                        extent,
                        durability: Durability::Volatile,
                    };
                    let room = Memory {
                        at: old.as_mut_ptr(),
                        length: old.len(),
                    };
                    let save = Command::new(command.id, save);
                    self.image.start(now, &save, &[room], ring);
                    BytesState::Saving {
                        extent,
                        durability,
                        memory,
                        old,
                    }
                }
                _ => BytesState::Moved(Ok(())),
            }
        }
    }

    /// # Safety
    /// As for [`BackEnd::start`].
    unsafe fn move_bytes(
        &mut self,
        now: Instant,
        command: &Command,
        memory: &Pieces,
        ring: &mut Ring,
    ) {
        let (pieces, count) = in_a_row(memory);
        // SAFETY: the caller's promise.
        unsafe { self.image.start(now, command, &pieces[..count], ring) };
    }

    /// An operation of the image has ended.
    fn image_ended(&mut self, now: Instant, ended: &Ended, ring: &mut Ring) {
        let entry = self.entry(ended.id);
        let bytes = std::mem::replace(&mut entry.bytes, BytesState::Moved(ended.result));
        match (bytes, ended.result) {
            (
                BytesState::Saving {
                    extent,
                    durability,
                    memory,
                    old,
                },
                Ok(()),
            ) => {
                entry.bytes = BytesState::Moving(extent, Direction::Write);
                self.volatile.remember(ended.id, extent, old);
                let write = Action::Write { extent, durability };
                let command = Command::new(ended.id, write);
                // SAFETY: the memory is the command's, which has not ended.
                unsafe { self.move_bytes(now, &command, &memory, ring) };
            }
            (BytesState::Moving(extent, Direction::Read), Ok(())) => {
                if self
                    .torn
                    .range(extent.start().0..extent.end().0)
                    .next()
                    .is_some()
                {
                    self.entry(ended.id).bytes = BytesState::Moved(Err(OperationError::Io));
                }
            }
            (BytesState::Moving(extent, Direction::Write), Ok(())) => {
                self.torn.retain(|&block| !extent.contains(Lba(block)));
            }
            // It is told with the command's end.
            (_, Err(_)) | (BytesState::Behind { .. } | BytesState::Moved(_), Ok(())) => (),
        }
        let entry = self.entry(ended.id);
        let turn = entry.turn;
        if let (BytesState::Moved(_), Some(turn)) = (&entry.bytes, turn) {
            self.turns.end(turn);
        }
    }

    /// Ends a power cut once no bytes move: removes the lost bytes from the image, and continues.
    fn power_up(&mut self, now: Instant, ring: &mut Ring) {
        let moves = |entry: &UnderWay| !matches!(entry.bytes, BytesState::Moved(_));
        if self.cut.is_none() || self.under_way.iter().any(moves) {
            return;
        }
        let Some(lost) = self.cut.take() else {
            return;
        };
        for (block, old) in self.volatile.resolve(&lost) {
            if let Err(failed) = self.image.put(block, &old) {
                error!(block, "{failed}: the block is taken as torn");
                self.torn.insert(block);
            }
        }
        let blocks = lost.torn.iter();
        self.torn
            .extend(blocks.flat_map(|extent| extent.start().0..extent.end().0));
        while let Some(DelayedCommand { command, memory }) = self.waiting.pop_front() {
            // SAFETY: the commands have been started and have not ended.
            unsafe { self.begin(now, &command, memory, ring) };
        }
    }
}

/// The outcome of a command that the drive does not execute.
fn undone(id: CommandId, at: Instant) -> Outcome {
    Outcome {
        id,
        at,
        status: Status::TimedOut,
        account: None,
    }
}

impl BackEnd for Emulated {
    fn depth(&self) -> u32 {
        self.drive.truth().queue.depth.max(1)
    }

    fn shape(&self) -> Shape {
        Shape {
            zeroes_fast: false,
            rotational: true,
            ..self.image.shape()
        }
    }

    unsafe fn start(
        &mut self,
        now: Instant,
        command: &Command,
        memory: &[Memory],
        ring: &mut Ring,
    ) {
        let pieces = held(memory);
        if self.cut.is_some() {
            self.waiting.push_back(DelayedCommand {
                command: *command,
                memory: pieces,
            });
            return;
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { self.begin(now, command, pieces, ring) };
    }

    fn ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring) {
        self.image.ring_ended(now, key, result, ring);
        while let Some(ended) = self.image.poll(now) {
            self.image_ended(now, &ended, ring);
        }
        while let Some((key, result)) = self.image.poll_punched() {
            let place = self.punches.iter().position(|punch| punch.key == key);
            if let Some(place) = place {
                self.turns.end(self.punches.swap_remove(place).turn);
            }
            self.punched.push_back((key, result));
        }
        self.follow_up(now, ring);
        self.power_up(now, ring);
    }

    fn poll(&mut self, now: Instant) -> Option<Ended> {
        while let Some(outcome) = self.drive.poll(now) {
            self.entry(outcome.id).outcome = Some(outcome);
        }
        let place = self.under_way.iter().position(Self::is_over)?;
        let UnderWay {
            id, bytes, outcome, ..
        } = self.under_way.remove(place);
        let (BytesState::Moved(moved), outcome) = (bytes, outcome?) else {
            return None;
        };
        self.volatile.ended(id);
        self.late
            .saturating_record(now.since(outcome.at).as_nanos());
        let modelled = match outcome.status {
            Status::Good => Ok(()),
            _ => Err(OperationError::Io),
        };
        Some(Ended {
            id,
            result: modelled.and(moved),
            account: outcome.account,
        })
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.drive.next_wakeup()
    }

    fn punch(&mut self, key: u32, what: Punch, span: Span, ring: &mut Ring) {
        let block = u64::from(self.drive.truth().block_bytes);
        let first = span.offset / block;
        let end = (span.offset + span.length).div_ceil(block);
        let Ok(blocks) = Extent::new(Lba(first), Sectors(end - first)) else {
            self.punched.push_back((key, Ok(())));
            return;
        };
        self.punches.push(PendingPunch {
            turn: self.turns.arrive(blocks, Direction::Write),
            key,
            what,
            span,
            has_begun: false,
        });
        self.begin_punches(ring);
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        self.punched.pop_front()
    }

    fn lateness(&self) -> Option<&Histogram<u64>> {
        Some(&self.late)
    }

    fn runs(&mut self, span: Span) -> Vec<Run> {
        self.image.runs(span)
    }

    fn power_cut(&mut self, now: Instant, ring: &mut Ring) -> Option<Lost> {
        if self.cut.is_some() {
            // It is off.
            return Some(Lost::default());
        }
        let lost = self.drive.power_cut(now);
        for command in &lost.commands {
            self.entry(command.id).outcome = Some(undone(command.id, now));
        }
        self.cut = Some(lost.clone());
        self.power_up(now, ring);
        Some(lost)
    }
}
