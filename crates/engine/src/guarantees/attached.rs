//! What clients do with streams: they attach, move, read, write, leave, and are told.

use block::{Direction, Instant};
use stream::admission::{Plan, Promises, Refusal, Rules};
use stream::location::{Change, Piece};
use stream::playout::{AccessId, NotTaken, Standing};
use stream::quota::Taken;
use stream::streams::{Attach, Attached, Listed, StreamId};
use stream::{LocationMap, Zone};

use super::streams::{NotGranted, StreamEvent, StreamTransfer};
use super::{Guarantees, Overruns, head_times, zone_over};
use crate::belief::DriveBelief;
use crate::command::SentCommand;

/// What a client does with its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum StreamInput {
    /// The application's playout point has moved to this byte.
    Position(u64),
    /// The application reads so many bytes of its file from a byte on; the answer names the access.
    Read(AccessId, (u64, u64)),
    /// The application writes so many bytes of its file from a byte on: whole pages, one after the
    /// other. The owner keeps them until they leave the stream's window.
    Write(AccessId, (u64, u64)),
    /// The stream is over, or its client has died. What a recording has in memory is written in its
    /// rounds; [`stream::streams::Notice::Closed`] is the last that is told of it.
    Detach,
}

impl Guarantees {
    /// How a stream stands; none if there is no such stream.
    pub fn standing(&self, stream: StreamId) -> Option<Standing> {
        self.promised.as_ref()?.streams.standing(stream)
    }

    /// The bytes of a stream's file that are in memory, from here to there: those of a reader as far
    /// as they have come, those of a recorder that are not on the medium.
    pub fn window(&self, stream: StreamId) -> Option<(u64, u64)> {
        self.promised.as_ref()?.streams.window(stream)
    }

    /// How rounds go at present; none without streams.
    pub fn plan(&self) -> Option<Plan> {
        self.promised.as_ref()?.streams.admission().plan()
    }

    /// What holds for all streams; none if nothing is promised.
    pub fn rules(&self) -> Option<&Rules> {
        Some(self.promised.as_ref()?.streams.admission().rules())
    }

    /// Whether what streams were promised fits what is known of the drive now; none if nothing is
    /// promised at all.
    pub fn promises(&self) -> Option<Promises> {
        Some(self.promised.as_ref()?.streams.admission().promises())
    }

    /// When the next round begins, if one will.
    pub fn next_round(&self) -> Option<Instant> {
        self.promised.as_ref()?.streams.rounds().next_freezing()
    }

    /// Batches that came too late so far.
    pub fn late(&self) -> u64 {
        let promised = self.promised.as_ref();
        promised.map_or(0, |promised| promised.streams.late())
    }

    /// Commands that took longer than their worst case so far.
    pub fn overruns(&self) -> Overruns {
        self.overruns
    }

    /// The streams that were granted and have not ended, in the order of their attachments.
    pub fn streams(&self) -> impl Iterator<Item = Listed<'_>> {
        let promised = self.promised.as_deref();
        promised
            .into_iter()
            .flat_map(|promised| promised.streams.list())
    }

    /// Grants a stream, or says why not.
    pub(crate) fn attach(
        &mut self,
        now: Instant,
        belief: &DriveBelief,
        attach: Attach,
    ) -> Result<Attached, NotGranted> {
        let zone = self.zone_of(belief, &attach.map, attach.terms.mode.direction())?;
        let promised = self.promised.as_deref_mut();
        let promised = promised.ok_or(NotGranted::NoPromise)?;
        Ok(promised.streams.attach(now, attach, zone)?)
    }

    /// Whether a user may have something of that name without a rate: the priority of a file.
    ///
    /// # Errors
    /// If nothing is promised here, or a rule is against it.
    pub fn claim(&mut self, user: u32, name: &str) -> Result<Taken, NotGranted> {
        let promised = self.promised.as_deref_mut();
        let promised = promised.ok_or(NotGranted::NoPromise)?;
        let taken = promised.streams.claim(user, name);
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
        if let Some(promised) = self.promised.as_deref_mut() {
            promised.streams.give_back(taken);
        }
    }

    /// A client does something with its stream.
    pub(crate) fn stream(
        &mut self,
        now: Instant,
        stream: StreamId,
        input: StreamInput,
    ) -> Result<(), NotTaken> {
        let promised = self.promised.as_deref_mut().ok_or(NotTaken::NoStream)?;
        let streams = &mut promised.streams;
        match input {
            StreamInput::Position(point) => streams.position(now, stream, point),
            StreamInput::Read(access, range) => streams.read(now, stream, access, range),
            StreamInput::Write(access, range) => streams.write(now, stream, access, range),
            StreamInput::Detach => streams.close(now, stream),
        }
    }

    /// The stream's file has grown, or lies elsewhere.
    pub(crate) fn refresh(
        &mut self,
        now: Instant,
        belief: &DriveBelief,
        stream: StreamId,
        map: LocationMap,
    ) -> Result<Change, NotGranted> {
        let promised = self.promised.as_deref();
        let direction = promised.and_then(|promised| promised.streams.direction(stream));
        let direction = direction.ok_or(NotGranted::NoStream(stream))?;
        let zone = self.zone_of(belief, &map, direction)?;
        let promised = self.promised.as_deref_mut();
        let promised = promised.ok_or(NotGranted::NoPromise)?;
        let change = promised.streams.refresh(now, stream, map, zone);
        change.map_err(|_| NotGranted::NoStream(stream))
    }

    /// The belief is another one: whatever was reckoned with it is reckoned again, and the promises
    /// stand. The answer is whether anything changed.
    pub(crate) fn relearn(&mut self, now: Instant, belief: &DriveBelief) -> bool {
        let Some(promised) = self.promised.as_deref_mut() else {
            return false;
        };
        let beyond = promised.promise.beyond;
        let belief = belief.profile();
        // A belief that was refined has a seek curve as it had.
        let Ok(times) = head_times(belief, beyond) else {
            return false;
        };
        if times == promised.times {
            return false;
        }
        promised.times = times.clone();
        let zone = |map: &LocationMap, direction| zone_over(belief, map, beyond, direction);
        promised.streams.relearn(now, times, zone);
        true
    }

    /// The next thing that streams, or the owner of their bytes, are to be told.
    pub(crate) fn poll(&mut self) -> Option<StreamEvent> {
        if let Some(moved) = self.moved.pop_front() {
            return Some(moved);
        }
        let streams = &mut self.promised.as_deref_mut()?.streams;
        streams.poll_answer().map(StreamEvent::Answer)
    }

    /// The bytes of a stream that a command of the request in `slot` moves, in blocks of `block` bytes;
    /// none if the request is not a stream's.
    pub(crate) fn transfer_of(
        &self,
        slot: u32,
        sent: &SentCommand,
        block: u32,
    ) -> Option<StreamTransfer> {
        let transfer = self.transfers.get(self.transfers.of_slot(slot)?)?.transfer;
        let part = sent.part.unwrap_or(transfer.extent);
        let before = part.start().0 - transfer.extent.start().0;
        Some(StreamTransfer {
            stream: transfer.stream,
            direction: transfer.direction,
            extent: part,
            offset: transfer.offset + before * u64::from(block),
        })
    }

    /// The slowest zone of the pieces of a file, if streams may be there.
    fn zone_of(
        &self,
        belief: &DriveBelief,
        map: &LocationMap,
        direction: Direction,
    ) -> Result<Zone, NotGranted> {
        let promised = self.promised.as_deref().ok_or(NotGranted::NoPromise)?;
        let expected = u64::from(belief.profile().block_bytes);
        if map.block() != expected {
            let block = map.block();
            return Err(NotGranted::Block { block, expected });
        }
        let place = promised.place;
        let outside = |piece: &&Piece| {
            let extent = piece.extent;
            extent.start() < place.start() || extent.end() > place.end()
        };
        if let Some(&Piece { extent, .. }) = map.pieces().iter().find(outside) {
            return Err(NotGranted::Outside { extent, place });
        }
        let beyond = promised.promise.beyond;
        Ok(zone_over(belief.profile(), map, beyond, direction))
    }
}
