//! The streams of an engine: they ask, their transfers become pieces as those of requests, and what
//! ends is theirs again.

use std::collections::VecDeque;
use std::sync::Arc;

use block::{Class, CommandId, Extent, Instant, Lba, Request, RequestId, Status, Switch};
use scheduler::Preemption;
use scheduler::ordering::{Level, Newcomer};
use scheduler::preemption::{LastChunk, When};
use stream::admission::Plan;
use stream::head_times::NoPoints;
use stream::location::Change;
use stream::playout::{AccessId, NotTaken, Standing};
use stream::streams::{
    Answer, Attach, Attached, Notice, Order, StreamId, Streams, Transfer, TransferId,
};
use stream::{HeadTimes, LocationMap, Zone};

use super::{Engine, keep, target};
use crate::forecast::Route;
use crate::guarantees::{BelievedTracks, head_times, slowest_zone};
use crate::streams::{Ask, Listed, NotGranted, Promise, StreamEvent, StreamTransfer};

/// The side of an engine that keeps promises.
pub(super) struct Guaranteed {
    pub(super) streams: Streams<BelievedTracks>,
    pub(super) times: HeadTimes,
    pub(super) promise: Promise,
    place: Extent,
    /// By name: what was ordered and has not ended.
    under: Vec<Under>,
    /// The names of transfers by the slots of their requests.
    of_slot: Vec<Option<TransferId>>,
    moved: VecDeque<StreamEvent>,
    asked: Vec<Asked>,
    /// When a command last ended, whatever it was.
    pub(super) ended: Instant,
    /// The next freezing as it was when somebody was last asked.
    coming: Option<Instant>,
    /// What the drive's buffer held before the first stream came.
    leftover: Leftover,
}

/// A transfer that was ordered.
#[derive(Clone, Copy, Debug)]
struct Under {
    transfer: Transfer,
    slot: u32,
    piece: u32,
}

/// What a stream asked for.
#[derive(Clone, Debug)]
struct Asked {
    stream: StreamId,
    user: u32,
    name: Box<str>,
    direction: block::Direction,
    rate: u64,
    application: u64,
    memory: u64,
}

/// Whether the drive's buffer may hold blocks that are still to be written, from before there were
/// streams: while there are, every write goes to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leftover {
    Maybe,
    /// Streams are here, and it is to be flushed.
    Due,
    None,
}

impl Engine {
    /// The engine, with guarantees for streams. Its larger requests are given to the drive in parts
    /// of at most [`FOREGROUND_BYTES`] while there are streams, as [`Engine::with_preemption`] does
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
        let times = head_times(&self.belief, place, promise.beyond)?;
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
            asked: Vec::new(),
            ended: self.now,
            coming: None,
            leftover: Leftover::Maybe,
        }));
        Ok(self)
    }

    /// Whether it was made with guarantees.
    pub fn has_guarantees(&self) -> bool {
        self.guaranteed.is_some()
    }

    /// Grants a stream, or says why not.
    ///
    /// # Errors
    /// The reason, and what would be granted instead.
    pub fn attach(&mut self, now: Instant, ask: Ask<'_>) -> Result<Attached, NotGranted> {
        self.reach(now);
        let zone = self.zone_of(&ask.map)?;
        let guaranteed = self
            .guaranteed
            .as_deref_mut()
            .ok_or(NotGranted::NoPromise)?;
        let attached = guaranteed.streams.attach(
            now,
            Attach {
                user: ask.user,
                name: ask.name,
                direction: ask.direction,
                rate: ask.rate,
                application: ask.application,
                memory: ask.memory,
                map: ask.map,
                zone,
                start: ask.start,
                answer: ask.answer,
            },
        )?;
        guaranteed.asked.push(Asked {
            stream: attached.stream,
            user: ask.user,
            name: ask.name.into(),
            direction: ask.direction,
            rate: ask.rate,
            application: ask.application,
            memory: attached.memory,
        });
        if guaranteed.leftover == Leftover::Maybe {
            guaranteed.leftover = Leftover::Due;
        }
        self.settled = false;
        Ok(attached)
    }

    /// The application's playout point has moved to this byte.
    ///
    /// # Errors
    /// If there is no such stream; so do the other calls about one.
    pub fn position(&mut self, now: Instant, stream: StreamId, point: u64) -> Result<(), NotTaken> {
        self.streams_now(now)?.position(now, stream, point)
    }

    /// The application reads `length` bytes of its file; the answer names the access.
    ///
    /// # Errors
    /// If the access cannot be taken; it is then not answered.
    pub fn stream_read(
        &mut self,
        now: Instant,
        stream: StreamId,
        access: AccessId,
        (from, length): (u64, u64),
    ) -> Result<(), NotTaken> {
        self.streams_now(now)?
            .read(now, stream, access, (from, length))
    }

    /// The application writes `length` bytes of its file: whole pages, one after the other. The
    /// owner keeps them until they leave the stream's window.
    ///
    /// # Errors
    /// If the access cannot be taken; it is then not answered.
    pub fn stream_write(
        &mut self,
        now: Instant,
        stream: StreamId,
        access: AccessId,
        (from, length): (u64, u64),
    ) -> Result<(), NotTaken> {
        self.streams_now(now)?
            .write(now, stream, access, (from, length))
    }

    /// The stream's file has grown, or lies elsewhere. Where it could not be granted it goes on at
    /// best effort, and is told.
    ///
    /// # Errors
    /// If there is no such stream, or the map is not of blocks where streams may be: it is then
    /// read and written where it was.
    pub fn refresh(
        &mut self,
        now: Instant,
        stream: StreamId,
        map: LocationMap,
    ) -> Result<Change, NotGranted> {
        self.reach(now);
        let zone = self.zone_of(&map)?;
        let guaranteed = self
            .guaranteed
            .as_deref_mut()
            .ok_or(NotGranted::NoPromise)?;
        self.settled = false;
        let change = guaranteed.streams.refresh(now, stream, map, zone);
        change.map_err(|_| NotGranted::NoStream(stream))
    }

    /// The stream is over, or its client has died. What a recording has in memory is written in its
    /// rounds; [`Notice::Closed`] is the last that is told of it.
    ///
    /// # Errors
    /// If there is no such stream.
    pub fn detach(&mut self, now: Instant, stream: StreamId) -> Result<(), NotTaken> {
        self.streams_now(now)?.close(now, stream)
    }

    /// How a stream stands; none if there is no such stream.
    pub fn standing(&self, stream: StreamId) -> Option<Standing> {
        self.guaranteed.as_ref()?.streams.standing(stream)
    }

    /// The bytes of a stream's file that are in memory, from here to there: those of a reader as far
    /// as they have come, those of a recorder that are not on the medium.
    pub fn window(&self, stream: StreamId) -> Option<(u64, u64)> {
        self.guaranteed.as_ref()?.streams.window(stream)
    }

    /// How rounds go at present; none without streams.
    pub fn rounds_plan(&self) -> Option<Plan> {
        self.guaranteed.as_ref()?.streams.admission().plan()
    }

    /// Batches that came too late so far.
    pub fn late(&self) -> u64 {
        let guaranteed = self.guaranteed.as_ref();
        guaranteed.map_or(0, |guaranteed| guaranteed.streams.late())
    }

    /// The streams that were granted and have not ended, in the order of their attachments.
    pub fn streams(&self) -> impl Iterator<Item = Listed<'_>> {
        let guaranteed = self.guaranteed.as_deref();
        let asked = guaranteed.map_or(&[][..], |guaranteed| &guaranteed.asked);
        let streams = guaranteed.map(|guaranteed| &guaranteed.streams);
        asked.iter().filter_map(move |asked| {
            let streams = streams?;
            let plan = streams.admission().plan();
            let plan = plan.filter(|_| streams.is_held(asked.stream));
            Some(Listed {
                stream: asked.stream,
                user: asked.user,
                name: &asked.name,
                direction: asked.direction,
                rate: asked.rate,
                application: asked.application,
                memory: asked.memory,
                batch: plan
                    .zip(stream::Rate::new(asked.rate))
                    .map(|(plan, rate)| rate.bytes_until(plan.round)),
                standing: streams.standing(asked.stream)?,
                window: streams.window(asked.stream)?,
            })
        })
    }

    /// The next thing that streams, or the owner of their bytes, are to be told.
    pub fn poll_stream(&mut self) -> Option<StreamEvent> {
        let guaranteed = self.guaranteed.as_deref_mut()?;
        if let Some(moved) = guaranteed.moved.pop_front() {
            return Some(moved);
        }
        let answer = guaranteed.streams.poll_answer()?;
        if let Answer::Notice {
            stream,
            notice: Notice::Closed,
        } = &answer
        {
            guaranteed.asked.retain(|asked| asked.stream != *stream);
        }
        Some(StreamEvent::Answer(answer))
    }

    /// The bytes of a stream that a command at the drive moves; none if it is not a stream's.
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn stream_of(&self, id: CommandId) -> Option<StreamTransfer> {
        let sent = self.at_drive.iter().find(|sent| sent.id == id);
        let sent = sent.unwrap_or_else(|| panic!("{id:?} is not at the drive"));
        let slot = self.ordering.owner(sent.purpose.piece()?);
        let guaranteed = self.guaranteed.as_deref()?;
        let Under { transfer, .. } = *guaranteed.under(guaranteed.transfer_of(slot)?)?;
        let part = sent.part.unwrap_or(transfer.extent);
        let before = part.start().0 - transfer.extent.start().0;
        Some(StreamTransfer {
            stream: transfer.stream,
            direction: transfer.direction,
            extent: part,
            offset: transfer.offset + before * u64::from(self.belief.block_bytes),
        })
    }

    fn streams_now(&mut self, now: Instant) -> Result<&mut Streams<BelievedTracks>, NotTaken> {
        self.reach(now);
        self.settled = false;
        let guaranteed = self.guaranteed.as_deref_mut();
        let guaranteed = guaranteed.ok_or(NotTaken::NoStream)?;
        Ok(&mut guaranteed.streams)
    }

    /// The slowest zone of the pieces of a file, if streams may be there.
    fn zone_of(&self, map: &LocationMap) -> Result<Zone, NotGranted> {
        let guaranteed = self.guaranteed.as_deref().ok_or(NotGranted::NoPromise)?;
        let expected = u64::from(self.belief.block_bytes);
        if map.block() != expected {
            let block = map.block();
            return Err(NotGranted::Block { block, expected });
        }
        let place = guaranteed.place;
        let zones = self.belief.geometry.zones();
        let number = |lba: Lba| zones.partition_point(|zone| zone.first <= lba);
        let beyond = guaranteed.promise.beyond;
        let mut slowest = None;
        // Pieces in the same zones as the one before are as fast.
        let mut last = None;
        for piece in map.pieces() {
            let extent = piece.extent;
            if extent.start() < place.start() || extent.end() > place.end() {
                return Err(NotGranted::Outside { extent, place });
            }
            let zones = (number(extent.start()), number(extent.last()));
            if last.replace(zones) == Some(zones) {
                continue;
            }
            let here = slowest_zone(&self.belief, extent, beyond);
            slowest = Some(slowest.map_or(here, |slowest: Zone| slowest.and(here)));
        }
        // A file without blocks needs no head time.
        Ok(slowest
            .unwrap_or_else(|| slowest_zone(&self.belief, Extent::block(place.start()), beyond)))
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
            let coming = guaranteed.streams.rounds().next_freezing();
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
        let Under { slot, piece, .. } = *under;
        self.ordering.raise(now, piece, level_of(class));
        let is_given = self
            .at_drive
            .iter()
            .any(|sent| sent.purpose.piece() == Some(piece));
        if let (true, Some(guaranteed)) = (is_given, self.guaranteed.as_deref_mut()) {
            guaranteed.streams.started(id);
        }
        let _ = slot;
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
        self.guaranteed
            .as_deref()
            .map_or(0, |guaranteed| guaranteed.under.len())
    }
}

impl Guaranteed {
    fn place_of(&self, id: TransferId) -> Result<usize, usize> {
        self.under
            .binary_search_by_key(&id, |under| under.transfer.id)
    }

    fn under(&self, id: TransferId) -> Option<&Under> {
        self.under.get(self.place_of(id).ok()?)
    }

    fn under_mut(&mut self, id: TransferId) -> Option<&mut Under> {
        let place = self.place_of(id).ok()?;
        self.under.get_mut(place)
    }

    fn transfer_of(&self, slot: u32) -> Option<TransferId> {
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
