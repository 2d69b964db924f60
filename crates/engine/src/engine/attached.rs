//! What clients do with streams: they attach, move, read, write, leave, and are told.

use block::{CommandId, Direction, Instant};
use stream::admission::{Plan, Promises, Refusal};
use stream::location::{Change, Piece};
use stream::playout::{AccessId, NotTaken, Standing};
use stream::quota::Taken;
use stream::streams::{Answer, Attach, Attached, Listed, Notice, StreamId, Streams};
use stream::{LocationMap, Zone};

use super::Engine;
use super::guaranteed::{Leftover, Under};
use crate::guarantees::{BelievedTracks, head_times, zone_over};
use crate::streams::{NotGranted, StreamEvent, StreamTransfer};

impl Engine {
    /// Grants a stream, or says why not.
    ///
    /// # Errors
    /// The reason, and what would be granted instead.
    pub fn attach(&mut self, now: Instant, attach: Attach) -> Result<Attached, NotGranted> {
        self.reach(now);
        let zone = self.zone_of(&attach.map, attach.terms.mode.direction())?;
        let guaranteed = self
            .guaranteed
            .as_deref_mut()
            .ok_or(NotGranted::NoPromise)?;
        let attached = guaranteed.streams.attach(now, attach, zone)?;
        if guaranteed.leftover == Leftover::Maybe {
            guaranteed.leftover = Leftover::Due;
        }
        self.settled = false;
        Ok(attached)
    }

    /// Whether a user may have something of that name without a rate: the priority of a file.
    ///
    /// # Errors
    /// If nothing is promised here, or a rule is against it.
    pub fn claim(&mut self, user: u32, name: &str) -> Result<Taken, NotGranted> {
        let guaranteed = self.guaranteed.as_deref_mut();
        let guaranteed = guaranteed.ok_or(NotGranted::NoPromise)?;
        let taken = guaranteed.streams.claim(user, name);
        taken.map_err(|exceeded| {
            NotGranted::Refused(Refusal {
                reason: exceeded.into(),
                largest_rate: None,
                least_memory: None,
            })
        })
    }

    /// What was claimed is not needed any more.
    pub fn give_back(&mut self, taken: Taken) {
        if let Some(guaranteed) = self.guaranteed.as_deref_mut() {
            guaranteed.streams.give_back(taken);
        }
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
        let streams = self
            .guaranteed
            .as_ref()
            .map(|guaranteed| &guaranteed.streams);
        let direction = streams.and_then(|streams| streams.direction(stream));
        let direction = direction.ok_or(NotGranted::NoStream(stream))?;
        let zone = self.zone_of(&map, direction)?;
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

    /// Whether what streams were promised fits what is known of the drive now; none if nothing is
    /// promised at all.
    pub fn promises(&self) -> Option<Promises> {
        Some(self.guaranteed.as_ref()?.streams.admission().promises())
    }

    /// The belief is another one: whatever was reckoned with it is reckoned again. The promises stand.
    pub(super) fn relearn_head_times(&mut self) {
        let Some(guaranteed) = self.guaranteed.as_deref_mut() else {
            return;
        };
        let beyond = guaranteed.promise.beyond;
        // A belief that was refined has a seek curve as it had.
        let Ok(times) = head_times(&self.belief, beyond) else {
            return;
        };
        if times == guaranteed.times {
            return;
        }
        guaranteed.times = times.clone();
        let belief = &self.belief;
        let zone = |map: &LocationMap, direction| zone_over(belief, map, beyond, direction);
        guaranteed.streams.relearn(self.now, times, zone);
        self.settled = false;
    }

    /// When the next round begins, if one will.
    pub fn next_round(&self) -> Option<Instant> {
        self.guaranteed.as_ref()?.streams.rounds().next_freezing()
    }

    /// Batches that came too late so far.
    pub fn late(&self) -> u64 {
        let guaranteed = self.guaranteed.as_ref();
        guaranteed.map_or(0, |guaranteed| guaranteed.streams.late())
    }

    /// The streams that were granted and have not ended, in the order of their attachments.
    pub fn streams(&self) -> impl Iterator<Item = Listed<'_>> {
        let guaranteed = self.guaranteed.as_deref();
        guaranteed
            .into_iter()
            .flat_map(|guaranteed| guaranteed.streams.list())
    }

    /// The next thing that streams, or the owner of their bytes, are to be told.
    pub fn poll_stream(&mut self) -> Option<StreamEvent> {
        let guaranteed = self.guaranteed.as_deref_mut()?;
        if let Some(moved) = guaranteed.moved.pop_front() {
            return Some(moved);
        }
        let answer = guaranteed.streams.poll_answer()?;
        if let Answer::Notice {
            notice: Notice::Closed,
            ..
        } = &answer
            && guaranteed.streams.is_empty()
            && guaranteed.leftover == Leftover::None
        {
            guaranteed.leftover = Leftover::Maybe;
        }
        Some(StreamEvent::Answer(answer))
    }

    /// The bytes of a stream that a command at the drive moves; none if it is not a stream's.
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn stream_of(&self, id: CommandId) -> Option<StreamTransfer> {
        let guaranteed = self.guaranteed.as_deref()?;
        let sent = self.at_drive.iter().find(|sent| sent.id == id);
        let sent = sent.unwrap_or_else(|| panic!("{id:?} is not at the drive"));
        let slot = self.ordering.owner(sent.purpose.piece()?);
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
    fn zone_of(&self, map: &LocationMap, direction: Direction) -> Result<Zone, NotGranted> {
        let guaranteed = self.guaranteed.as_deref().ok_or(NotGranted::NoPromise)?;
        let expected = u64::from(self.belief.block_bytes);
        if map.block() != expected {
            let block = map.block();
            return Err(NotGranted::Block { block, expected });
        }
        let place = guaranteed.place;
        let outside = |piece: &&Piece| {
            let extent = piece.extent;
            extent.start() < place.start() || extent.end() > place.end()
        };
        if let Some(&Piece { extent, .. }) = map.pieces().iter().find(outside) {
            return Err(NotGranted::Outside { extent, place });
        }
        let beyond = guaranteed.promise.beyond;
        Ok(zone_over(&self.belief, map, beyond, direction))
    }
}
