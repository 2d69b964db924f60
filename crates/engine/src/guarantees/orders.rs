//! What streams order: their transfers become pieces as those of requests, and what ends is theirs
//! again.

use block::{Class, Duration, Instant, Owner, Request, RequestId, Status};
use scheduler::PieceId;
use scheduler::ordering::{NewPiece, PriorityLevel};
use stream::streams::{Order, Transfer, TransferId};

use super::streams::{StreamEvent, StreamTransfer};
use super::{Guarantees, Promised};
use crate::context::StageContext;

/// The transfers that were ordered and have not ended.
#[derive(Clone, Debug, Default)]
pub(super) struct OrderedTransfers {
    /// By name.
    ordered: Vec<OrderedTransfer>,
    /// The names of transfers by the slots of their requests.
    of_slot: Vec<Option<TransferId>>,
}

/// A transfer that was ordered.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderedTransfer {
    pub(super) transfer: Transfer,
    slot: u32,
    pub(super) piece: PieceId,
    /// When it became as urgent as it is.
    since: Instant,
    /// Until when it was put behind other batches because earlier requests had held it up.
    put_back: Instant,
}

impl OrderedTransfers {
    pub(super) fn len(&self) -> usize {
        self.ordered.len()
    }

    fn place_of(&self, id: TransferId) -> Result<usize, usize> {
        self.ordered
            .binary_search_by_key(&id, |ordered| ordered.transfer.id)
    }

    pub(super) fn get(&self, id: TransferId) -> Option<&OrderedTransfer> {
        self.ordered.get(self.place_of(id).ok()?)
    }

    /// The transfer whose request is in a slot.
    #[inline]
    pub(super) fn of_slot(&self, slot: u32) -> Option<TransferId> {
        *self.of_slot.get(slot as usize)?
    }

    /// A batch that was held up is put behind others.
    pub(super) fn put_back(&mut self, now: Instant, id: TransferId) {
        if let Ok(place) = self.place_of(id) {
            self.ordered[place].put_back = now;
        }
    }

    fn add(&mut self, ordered: OrderedTransfer) {
        let index = ordered.slot as usize;
        if self.of_slot.len() <= index {
            self.of_slot.resize(index + 1, None);
        }
        self.of_slot[index] = Some(ordered.transfer.id);
        if let Err(place) = self.place_of(ordered.transfer.id) {
            self.ordered.insert(place, ordered);
        }
    }

    fn remove(&mut self, slot: u32) -> Option<OrderedTransfer> {
        let id = self.of_slot.get_mut(slot as usize)?.take()?;
        let place = self.place_of(id).ok()?;
        Some(self.ordered.remove(place))
    }
}

impl Guarantees {
    /// Rounds that are due are frozen, and what was ordered since waits among the requests.
    pub(crate) fn freeze_rounds(&mut self, cx: &mut StageContext<'_>) {
        let Some(promised) = self.promised.as_deref_mut() else {
            return;
        };
        while let Some(order) = promised.streams.poll(cx.now) {
            cx.dispatch.settled = false;
            match order {
                Order::Transfer(transfer) => match enter(cx, transfer) {
                    Some(ordered) => {
                        self.transfers.add(ordered);
                        note_held_up(promised, cx, &ordered);
                    }
                    None => {
                        // The belief does not know where the blocks are, and the drive has them: no
                        // promise can hold.
                        let at = transfer.extent.start();
                        let status = Status::MediumError { at };
                        self.moved.push_back(moved(cx.now, &transfer, status));
                        let streams = &mut promised.streams;
                        streams.complete(cx.now, transfer.id, status, Duration::ZERO);
                    }
                },
                Order::Raise { id, class } => {
                    raise(promised, &mut self.transfers, cx, id, class);
                }
            }
        }
        let rounds = promised.streams.rounds();
        // While there is room for the longest command of others, so long may pass without one.
        let longest = promised.times.foreground_worst();
        self.look_again = (!rounds.is_idle()).then(|| cx.now + longest);
        let coming = rounds.next_freezing();
        if std::mem::replace(&mut self.coming, coming) != coming {
            cx.dispatch.settled = false;
        }
    }

    /// A request has ended in all of its pieces: a stream's goes back to it, a client's is reported.
    pub(crate) fn end_request(&mut self, cx: &mut StageContext<'_>, slot: u32) {
        let (Some(ordered), Some(promised)) = (self.transfers.remove(slot), &mut self.promised)
        else {
            cx.intake.ended.push_back(slot);
            return;
        };
        let was = cx.intake.slots.give_back(slot);
        let status = was.end.status;
        let free = was.submitted + was.end.waited_order;
        let held_up = free.max(ordered.put_back).since(ordered.since);
        let transfer = &ordered.transfer;
        self.moved.push_back(moved(cx.now, transfer, status));
        let streams = &mut promised.streams;
        streams.complete(cx.now, transfer.id, status, held_up);
    }
}

/// A transfer waits among the requests; `None` if the belief does not know where its blocks are.
fn enter(cx: &mut StageContext<'_>, transfer: Transfer) -> Option<OrderedTransfer> {
    let Transfer {
        id,
        direction,
        extent,
        class,
        durability,
        ..
    } = transfer;
    let route = cx.belief.route_of(extent, direction)?;
    let request = Request {
        // No client's: those count from below.
        id: RequestId(u64::MAX - id.0),
        direction,
        extent,
        class,
        durability,
        owner: Owner::stream(transfer.stream.0),
    };
    let slot = cx.intake.slots.accept(cx.now, request);
    let new_piece = NewPiece {
        request_slot: slot,
        owner: request.owner,
        direction,
        extent,
        level: level_of(class),
        target: route.target(),
    };
    let piece = cx.ordering.enter(cx.now, new_piece);
    cx.belief.keep(piece, Some(&route));
    Some(OrderedTransfer {
        transfer,
        slot,
        piece,
        since: cx.now,
        put_back: cx.now,
    })
}

/// What an access waits for goes before other best effort; what has become a batch is one.
fn raise(
    promised: &mut Promised,
    transfers: &mut OrderedTransfers,
    cx: &mut StageContext<'_>,
    id: TransferId,
    class: Class,
) {
    let Ok(place) = transfers.place_of(id) else {
        return;
    };
    let ordered = &mut transfers.ordered[place];
    ordered.transfer.class = class;
    ordered.since = cx.now;
    let piece = ordered.piece;
    note_held_up(promised, cx, ordered);
    cx.ordering.raise(cx.now, piece, level_of(class));
    if cx.dispatch.pieces().any(|given| given == piece) {
        promised.streams.started(id);
    }
}

/// Earlier requests over the same blocks come before a batch: nothing is promised for it.
fn note_held_up(promised: &mut Promised, cx: &StageContext<'_>, ordered: &OrderedTransfer) {
    let is_batch = matches!(ordered.transfer.class, Class::RealTime { .. });
    if is_batch && !cx.ordering.is_eligible(ordered.piece) {
        promised.streams.held_up(ordered.transfer.id);
    }
}

fn moved(now: Instant, transfer: &Transfer, status: Status) -> StreamEvent {
    StreamEvent::Moved {
        transfer: StreamTransfer {
            stream: transfer.stream,
            direction: transfer.direction,
            extent: transfer.extent,
            offset: transfer.offset,
        },
        status,
        at: now,
    }
}

/// The level of a transfer: batches wait among what is most urgent at best effort, so that the
/// policy may take them where they suit it. When they must go they do, whatever it says.
fn level_of(class: Class) -> PriorityLevel {
    match class {
        Class::RealTime { .. } => JOINING,
        other => PriorityLevel::of(other).unwrap_or(PriorityLevel::BACKGROUND),
    }
}

/// The level at which the policy finds batches.
const JOINING: PriorityLevel = match PriorityLevel::of(Class::BestEffort(0)) {
    Some(level) => level,
    None => panic!("there is a most urgent priority"),
};
