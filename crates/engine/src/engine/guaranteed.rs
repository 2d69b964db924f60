//! The streams of an engine: they ask, their transfers become pieces as those of requests, and what
//! ends is theirs again.

use std::collections::VecDeque;
use std::sync::Arc;

use block::{Class, CommandId, Extent, Instant, Lba, Request, RequestId, Status, Switch};
use scheduler::Preemption;
use scheduler::ordering::{Level, Newcomer};
use scheduler::preemption::{LastChunk, When};
use stream::HeadTimes;
use stream::head_times::NoPoints;
use stream::streams::{Order, Streams, Transfer, TransferId};

use super::{Engine, keep, target};
use crate::forecast::Route;
use crate::guarantees::{BelievedTracks, head_times};
use crate::streams::{Promise, StreamEvent, StreamTransfer};

/// The side of an engine that keeps promises.
pub(super) struct Guaranteed {
    pub(super) streams: Streams<BelievedTracks>,
    pub(super) times: HeadTimes,
    pub(super) promise: Promise,
    pub(super) place: Extent,
    /// By name: what was ordered and has not ended.
    under: Vec<Under>,
    /// The names of transfers by the slots of their requests.
    of_slot: Vec<Option<TransferId>>,
    pub(super) moved: VecDeque<StreamEvent>,
    /// When a command last ended, whatever it was.
    pub(super) ended: Instant,
    /// Batches that were given since a command of others was.
    pub(super) passed: u32,
    /// The next freezing as it was when somebody was last asked.
    coming: Option<Instant>,
    /// When somebody has to look again, whatever the policy waits for: batches wait.
    look_again: Option<Instant>,
    /// What the drive's buffer held before the first stream came.
    pub(super) leftover: Leftover,
}

/// A transfer that was ordered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Under {
    pub(super) transfer: Transfer,
    slot: u32,
    pub(super) piece: u32,
}

/// Whether the drive's buffer may hold blocks that are still to be written, from before there were
/// streams: while there are, every write goes to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leftover {
    Maybe,
    /// Streams are here, and it is to be flushed.
    Due,
    /// This command flushes it.
    Flushing(CommandId),
    None,
}

impl Engine {
    /// The engine, with guarantees for streams. Its larger requests are given to the drive in parts
    /// of at most [`FOREGROUND_BYTES`](crate::guarantees::FOREGROUND_BYTES) while there are streams, as [`Engine::with_preemption`] does
    /// it, which may be called besides.
    ///
    /// # Errors
    /// If the belief has no seek curve.
    ///
    /// # Panics
    /// If requests are already here.
    pub fn with_guarantees(mut self, promise: Promise) -> Result<Self, NoPoints> {
        let whole = Extent::new(Lba(0), self.capacity);
        let place = promise
            .place
            .or(whole.ok())
            .unwrap_or(Extent::block(Lba(0)));
        let times = head_times(&self.belief, promise.beyond)?;
        let streams = Streams::new(
            times.clone(),
            promise.rules,
            promise.quotas.clone(),
            promise.settings,
            BelievedTracks(Arc::clone(&self.belief)),
        );
        if self.preemption().is_none() {
            self = self.with_preemption(WHOLE);
        }
        self.guaranteed = Some(Box::new(Guaranteed {
            streams,
            times,
            promise,
            place,
            under: Vec::new(),
            of_slot: Vec::new(),
            moved: VecDeque::new(),
            ended: self.now,
            passed: 0,
            coming: None,
            look_again: None,
            leftover: Leftover::Maybe,
        }));
        Ok(self)
    }

    /// Whether it was made with guarantees.
    pub fn has_guarantees(&self) -> bool {
        self.guaranteed.is_some()
    }

    /// Rounds that are due are frozen, and what was ordered since waits among the requests.
    pub(super) fn hear_streams(&mut self, now: Instant) {
        while let Some(order) = self.next_order(now) {
            self.settled = false;
            match order {
                Order::Transfer(transfer) => self.enter_transfer(now, transfer),
                Order::Raise { id, class } => self.raise_transfer(now, id, class),
            }
        }
        if let Some(guaranteed) = self.guaranteed.as_deref_mut() {
            let rounds = guaranteed.streams.rounds();
            // While there is room for the longest command of others, so long may pass without one.
            let longest = guaranteed.times.foreground_worst();
            guaranteed.look_again = (!rounds.is_idle()).then(|| now + longest);
            let coming = rounds.next_freezing();
            if std::mem::replace(&mut guaranteed.coming, coming) != coming {
                self.settled = false;
            }
        }
    }

    fn next_order(&mut self, now: Instant) -> Option<Order> {
        self.guaranteed.as_deref_mut()?.streams.poll(now)
    }

    fn enter_transfer(&mut self, now: Instant, transfer: Transfer) {
        let Transfer {
            id,
            direction,
            extent,
            class,
            durability,
            ..
        } = transfer;
        let Some(route) = Route::new(&self.belief, extent, direction) else {
            // The belief does not know where they are, and the drive has them: nobody can promise.
            let status = Status::MediumError { at: extent.start() };
            self.tell_streams(now, transfer, status);
            return;
        };
        let request = Request {
            // No client's: those count from below.
            id: RequestId(u64::MAX - id.0),
            direction,
            extent,
            class,
            durability,
        };
        let slot = self.slots.accept(now, request);
        let newcomer = Newcomer {
            owner: slot,
            direction,
            extent,
            level: level_of(class),
            target: target(Some(&route)),
        };
        let piece = self.ordering.enter(now, newcomer);
        keep(&mut self.routes, piece, Some(route));
        if let Some(guaranteed) = self.guaranteed.as_deref_mut() {
            guaranteed.note(Under {
                transfer,
                slot,
                piece,
            });
        }
    }

    /// What somebody waits for goes before other best effort; what has become a batch is one.
    fn raise_transfer(&mut self, now: Instant, id: TransferId, class: Class) {
        let Some(guaranteed) = self.guaranteed.as_deref_mut() else {
            return;
        };
        let Some(under) = guaranteed.under_mut(id) else {
            return;
        };
        under.transfer.class = class;
        let piece = under.piece;
        self.ordering.raise(now, piece, level_of(class));
        let is_given = self
            .at_drive
            .iter()
            .any(|sent| sent.purpose.piece() == Some(piece));
        if let (true, Some(guaranteed)) = (is_given, self.guaranteed.as_deref_mut()) {
            guaranteed.streams.started(id);
        }
    }

    /// A request has ended in all of its pieces: a stream's goes back to it.
    pub(super) fn end_request(&mut self, now: Instant, slot: u32) {
        let Some(under) = self
            .guaranteed
            .as_deref_mut()
            .and_then(|it| it.forget(slot))
        else {
            self.ended.push_back(slot);
            return;
        };
        let status = self.slots.give_back(slot).end.status;
        self.tell_streams(now, under.transfer, status);
    }

    fn tell_streams(&mut self, now: Instant, transfer: Transfer, status: Status) {
        let Some(guaranteed) = self.guaranteed.as_deref_mut() else {
            return;
        };
        guaranteed.moved.push_back(StreamEvent::Moved {
            transfer: StreamTransfer {
                stream: transfer.stream,
                direction: transfer.direction,
                extent: transfer.extent,
                offset: transfer.offset,
            },
            status,
            at: now,
        });
        guaranteed.streams.complete(now, transfer.id, status);
    }

    /// Whether a request is a stream's transfer.
    pub(crate) fn is_of_stream(&self, slot: u32) -> bool {
        let guaranteed = self.guaranteed.as_deref();
        guaranteed.is_some_and(|guaranteed| guaranteed.transfer_of(slot).is_some())
    }

    /// Transfers of streams that have not ended.
    pub(super) fn transfers_held(&self) -> usize {
        self.guaranteed.as_deref().map_or(0, Guaranteed::transfers)
    }
}

impl Guaranteed {
    /// When the engine has to be asked next for the sake of streams.
    pub(super) fn next_wakeup(&self) -> Option<Instant> {
        let rounds = self.streams.next_wakeup();
        [rounds, self.look_again].into_iter().flatten().min()
    }

    /// Transfers that were ordered and have not ended.
    pub(super) fn transfers(&self) -> usize {
        self.under.len()
    }

    fn place_of(&self, id: TransferId) -> Result<usize, usize> {
        self.under
            .binary_search_by_key(&id, |under| under.transfer.id)
    }

    pub(super) fn under(&self, id: TransferId) -> Option<&Under> {
        self.under.get(self.place_of(id).ok()?)
    }

    fn under_mut(&mut self, id: TransferId) -> Option<&mut Under> {
        let place = self.place_of(id).ok()?;
        self.under.get_mut(place)
    }

    pub(super) fn transfer_of(&self, slot: u32) -> Option<TransferId> {
        *self.of_slot.get(slot as usize)?
    }

    fn note(&mut self, under: Under) {
        let index = under.slot as usize;
        if self.of_slot.len() <= index {
            self.of_slot.resize(index + 1, None);
        }
        self.of_slot[index] = Some(under.transfer.id);
        if let Err(place) = self.place_of(under.transfer.id) {
            self.under.insert(place, under);
        }
    }

    fn forget(&mut self, slot: u32) -> Option<Under> {
        let id = self.of_slot.get_mut(slot as usize)?.take()?;
        let place = self.place_of(id).ok()?;
        Some(self.under.remove(place))
    }
}

/// The level of a transfer: batches wait among what is most urgent at best effort, so that the
/// policy may take them where they suit it. When they must go they do, whatever it says.
fn level_of(class: Class) -> Level {
    match class {
        Class::RealTime { .. } => JOINING,
        other => Level::of(other).unwrap_or(Level::BACKGROUND),
    }
}

/// The level at which the policy finds batches.
const JOINING: Level = match Level::of(Class::BestEffort(0)) {
    Some(level) => level,
    None => panic!("there is a most urgent priority"),
};

/// Requests are given in parts only because streams have to get their turn.
const WHOLE: Preemption = Preemption {
    chunk: None,
    just_in_time: None,
    split: None,
    free_prefetch: Switch::Off,
    last_chunk: LastChunk::Buffered,
    aside: None,
    when: When::Always,
};
