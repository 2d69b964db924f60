//! Requests that are under way, and the replies to them.

use slab::Slab;

use super::super::request::{Asked, Header, Wanted, check};
use super::super::wire::{self, Fields, chunk};
use super::super::{Descriptor, Style};
use super::coverage::{Coverage, Misfit};
use super::events::{Event, NotSent, ReplyError};
use super::negotiation::Session;
use block::operation::{Ask, OperationError};

/// The requests of one connection.
#[derive(Debug)]
pub struct Requests {
    session: Session,
    limit: usize,
    pending: Slab<Pending>,
    generation: u32,
    within: Within,
}

/// One request.
#[derive(Debug)]
struct Pending {
    header: Header,
    coverage: Coverage,
    failed: Option<OperationError>,
    /// How many chunks of states have come: one for each context.
    states: usize,
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug)]
enum Within {
    Header,
    /// Descriptors of a block status.
    States {
        cookie: u64,
        context: u32,
        left: u64,
        told: u64,
        flags: u16,
    },
    /// Nothing: a chunk was the last one.
    End(u64),
}

/// The header of a chunk.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    flags: u16,
    kind: u16,
    cookie: u64,
    length: u64,
    size: usize,
}

/// How many bytes were used, and what they tell.
type Received = (usize, Option<Event>);

impl Requests {
    /// No request yet, and never more than `limit` at once.
    #[must_use]
    pub const fn new(session: Session, limit: usize) -> Self {
        Self {
            session,
            limit,
            pending: Slab::new(),
            generation: 0,
            within: Within::Header,
        }
    }

    /// What the server has, and how it is used.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// How many requests are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.pending.len()
    }

    /// Appends a request to `out`; answers its cookie. The payload of a write is to follow.
    ///
    /// # Errors
    /// If too many are under way, or the server would refuse it. Nothing is appended.
    pub fn submit(
        &mut self,
        out: &mut Vec<u8>,
        ask: Asked,
        offset: u64,
        length: u64,
    ) -> Result<u64, NotSent> {
        if self.pending.len() >= self.limit {
            return Err(NotSent::Full);
        }
        let style = self.session.agreed.style;
        let place = self.pending.vacant_key() as u64;
        self.generation = self.generation.wrapping_add(1);
        let cookie = u64::from(self.generation) << 32 | place;
        let header = Header::new(ask, style, cookie, offset, length);
        check(&header, &self.session.agreed, &self.session.offer)?;
        if !style.extended() && u32::try_from(length).is_err() {
            return Err(NotSent::Senseless(OperationError::TooLong));
        }
        if matches!(ask, Asked::Disconnect) {
            return Err(NotSent::Senseless(OperationError::Invalid));
        }
        self.pending.insert(Pending {
            header,
            coverage: Coverage::new(offset, length),
            failed: None,
            states: 0,
        });
        header.encode(out, style);
        Ok(cookie)
    }

    /// Appends the end of the session to `out`. There is no reply; the server closes.
    pub fn disconnect(&self, out: &mut Vec<u8>) {
        let style = self.session.agreed.style;
        Header::new(Asked::Disconnect, style, 0, 0, 0).encode(out, style);
    }

    /// Takes bytes of the server: answers how many it used, and what they tell. If it used none
    /// and tells nothing, more are needed; [`BUFFER`] are always enough.
    ///
    /// # Errors
    /// If the server cannot be understood, or lies: close.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Received, ReplyError> {
        match self.within {
            Within::Header => self.reply(bytes),
            Within::States { .. } => self.state(bytes),
            Within::End(cookie) => {
                self.within = Within::Header;
                self.end(0, cookie)
            }
        }
    }

    fn reply(&mut self, bytes: &[u8]) -> Result<Received, ReplyError> {
        let Some(magic) = Fields(bytes).u32() else {
            return Ok((0, None));
        };
        match (magic, self.session.agreed.style) {
            (wire::SIMPLE_REPLY, Style::Simple | Style::Structured) => self.simple(bytes),
            (wire::STRUCTURED_REPLY, Style::Structured)
            | (wire::EXTENDED_REPLY, Style::Extended) => self.chunk(bytes),
            _ => Err(ReplyError::Magic(magic)),
        }
    }

    fn simple(&mut self, bytes: &[u8]) -> Result<Received, ReplyError> {
        let mut fields = Fields(bytes);
        fields.u32();
        let (Some(number), Some(cookie)) = (fields.u32(), fields.u64()) else {
            return Ok((0, None));
        };
        let structured = self.session.agreed.style.structured();
        let pending = self.find(cookie)?;
        let Header {
            ask,
            offset,
            length,
            ..
        } = pending.header;
        let read = ask == Asked::Of(Ask::Read);
        if structured && (read || matches!(ask, Asked::BlockStatus { .. })) {
            return Err(ReplyError::Simple);
        }
        if number != 0 {
            pending.failed = Some(wire::failure(number));
        } else if read {
            // The length is that of our own request.
            pending.coverage = Coverage::new(offset, 0);
            self.within = Within::End(cookie);
            let contents = Event::Contents {
                cookie,
                offset,
                length,
            };
            return Ok((wire::SIMPLE, Some(contents)));
        }
        self.end(wire::SIMPLE, cookie)
    }

    fn chunk(&mut self, bytes: &[u8]) -> Result<Received, ReplyError> {
        let Some((chunk, offset)) = header(bytes, self.session.agreed.style) else {
            return Ok((0, None));
        };
        let pending = self.find(chunk.cookie)?;
        let asked = pending.header;
        if offset.is_some_and(|offset| offset != asked.offset) {
            return Err(ReplyError::Offset(offset.unwrap_or_default()));
        }
        let payload = &bytes[chunk.size..];
        let read = asked.ask == Asked::Of(Ask::Read);
        let status = if self.session.agreed.style.extended() {
            chunk::BLOCK_STATUS_EXT
        } else {
            chunk::BLOCK_STATUS
        };
        match chunk.kind {
            kind if kind & chunk::IS_ERROR != 0 => self.error(chunk, payload),
            chunk::NONE if chunk.flags & chunk::DONE != 0 => {
                chunk.expect(chunk.length == 0)?;
                self.end(chunk.size, chunk.cookie)
            }
            chunk::OFFSET_DATA if read => self.contents(chunk, payload),
            chunk::OFFSET_HOLE if read => self.hole(chunk, payload),
            kind if kind == status && matches!(asked.ask, Asked::BlockStatus { .. }) => {
                self.states(chunk, payload)
            }
            kind => Err(ReplyError::Kind(kind)),
        }
    }

    fn contents(&mut self, chunk: Chunk, payload: &[u8]) -> Result<Received, ReplyError> {
        chunk.expect(chunk.length > 8)?;
        let Some(offset) = Fields(payload).u64() else {
            return Ok((0, None));
        };
        let (cookie, length) = (chunk.cookie, chunk.length - 8);
        self.covered(cookie, offset, length)?;
        self.after(chunk);
        let contents = Event::Contents {
            cookie,
            offset,
            length,
        };
        Ok((chunk.size + 8, Some(contents)))
    }

    fn hole(&mut self, chunk: Chunk, payload: &[u8]) -> Result<Received, ReplyError> {
        chunk.expect(chunk.length == 12)?;
        let mut fields = Fields(payload);
        let (Some(offset), Some(length)) = (fields.u64(), fields.u32()) else {
            return Ok((0, None));
        };
        let (cookie, length) = (chunk.cookie, u64::from(length));
        self.covered(cookie, offset, length)?;
        self.after(chunk);
        let hole = Event::Hole {
            cookie,
            offset,
            length,
        };
        Ok((chunk.size + 12, Some(hole)))
    }

    fn covered(&mut self, cookie: u64, offset: u64, length: u64) -> Result<(), ReplyError> {
        let added = self.find(cookie)?.coverage.add(offset, length);
        added.map_err(|misfit| match misfit {
            Misfit::Outside => ReplyError::Outside,
            Misfit::Overlap => ReplyError::Overlap,
            Misfit::TooMany => ReplyError::Pieces,
        })
    }

    fn error(&mut self, chunk: Chunk, payload: &[u8]) -> Result<Received, ReplyError> {
        let at = chunk.kind == chunk::ERROR_OFFSET;
        let least = if at { 14 } else { 6 };
        chunk.expect(chunk.length >= least && chunk.length <= ERROR as u64)?;
        let Some(whole) = payload.get(..chunk.length as usize) else {
            return Ok((0, None));
        };
        let mut fields = Fields(whole);
        let (number, length) = fields.u32().zip(fields.u16()).ok_or(ReplyError::Error)?;
        let message = fields.take(length.into()).ok_or(ReplyError::Error)?;
        let offset = if at {
            Some(fields.u64().ok_or(ReplyError::Error)?)
        } else {
            None
        };
        let pending = self.find(chunk.cookie)?;
        let Header {
            offset: begin,
            length,
            ..
        } = pending.header;
        let outside = offset.is_some_and(|at| at < begin || at - begin >= length);
        if number == 0 || outside {
            return Err(ReplyError::Error);
        }
        let failed = wire::failure(number);
        pending.failed.get_or_insert(failed);
        self.after(chunk);
        let complaint = Event::Complaint {
            cookie: chunk.cookie,
            failed,
            offset,
            message: String::from_utf8_lossy(message).into_owned(),
        };
        Ok((chunk.size + whole.len(), Some(complaint)))
    }

    /// The front of a block status; its descriptors come one by one.
    fn states(&mut self, chunk: Chunk, payload: &[u8]) -> Result<Received, ReplyError> {
        let (front, each) = self.state_sizes();
        let left = chunk.length.saturating_sub(front);
        let count = left / each;
        chunk.expect(left == count * each && count > 0 && count <= STATES)?;
        let mut fields = Fields(payload);
        let Some(mut fields) = fields.take(front as usize).map(Fields) else {
            return Ok((0, None));
        };
        let context = fields.u32().unwrap_or_default();
        let told = fields.u32();
        let contexts = &self.session.agreed.contexts;
        let known = contexts.iter().any(|(id, _)| *id == context);
        let most = contexts.len();
        let pending = self.find(chunk.cookie)?;
        pending.states += 1;
        if !known || pending.states > most || told.is_some_and(|told| u64::from(told) != count) {
            return Err(ReplyError::State);
        }
        self.within = Within::States {
            cookie: chunk.cookie,
            context,
            left: count,
            told: 0,
            flags: chunk.flags,
        };
        Ok((chunk.size + front as usize, None))
    }

    fn state(&mut self, bytes: &[u8]) -> Result<Received, ReplyError> {
        let Within::States {
            cookie,
            context,
            left,
            told,
            flags,
        } = self.within
        else {
            return Ok((0, None));
        };
        let mut fields = Fields(bytes);
        let pair = if self.session.agreed.style.extended() {
            fields.u64().zip(fields.u64())
        } else {
            let pair = fields.u32().zip(fields.u32());
            pair.map(|(length, state)| (u64::from(length), u64::from(state)))
        };
        let Some((length, state)) = pair else {
            return Ok((0, None));
        };
        let state = u32::try_from(state).map_err(|_| ReplyError::State)?;
        let asked = self.find(cookie)?.header;
        let one = asked.ask
            == Asked::BlockStatus {
                wanted: Wanted::One,
            };
        let too_much = told >= asked.length || one && (left > 1 || length > asked.length);
        if length == 0 || too_much {
            return Err(ReplyError::State);
        }
        self.within = match left - 1 {
            0 if flags & chunk::DONE != 0 => Within::End(cookie),
            0 => Within::Header,
            left => Within::States {
                cookie,
                context,
                left,
                told: told.saturating_add(length),
                flags,
            },
        };
        let event = Event::State {
            cookie,
            context,
            descriptor: Descriptor { length, state },
        };
        Ok((self.state_sizes().1 as usize, Some(event)))
    }

    /// The bytes before the descriptors of a block status, and of each.
    const fn state_sizes(&self) -> (u64, u64) {
        if self.session.agreed.style.extended() {
            (8, 16)
        } else {
            (4, 8)
        }
    }

    /// After the last chunk of a reply comes its end.
    const fn after(&mut self, chunk: Chunk) {
        if chunk.flags & chunk::DONE != 0 {
            self.within = Within::End(chunk.cookie);
        }
    }

    /// The reply has ended.
    fn end(&mut self, used: usize, cookie: u64) -> Result<Received, ReplyError> {
        let contexts = self.session.agreed.contexts.len();
        let pending = self.find(cookie)?;
        let whole = match pending.header.ask {
            Asked::Of(Ask::Read) => pending.coverage.whole(),
            Asked::BlockStatus { .. } => pending.states == contexts,
            _ => true,
        };
        let result = match pending.failed {
            Some(failed) => Err(failed),
            None if whole => Ok(()),
            None => return Err(ReplyError::Incomplete),
        };
        self.pending.remove(place(cookie));
        Ok((used, Some(Event::Finished { cookie, result })))
    }

    fn find(&mut self, cookie: u64) -> Result<&mut Pending, ReplyError> {
        self.pending
            .get_mut(place(cookie))
            .filter(|pending| pending.header.cookie == cookie)
            .ok_or(ReplyError::Cookie(cookie))
    }
}

impl Chunk {
    const fn expect(&self, fits: bool) -> Result<(), ReplyError> {
        if fits {
            Ok(())
        } else {
            Err(ReplyError::Length {
                kind: self.kind,
                length: self.length,
            })
        }
    }
}

/// The header of a chunk, and the offset of its request, if the style has that.
fn header(bytes: &[u8], style: Style) -> Option<(Chunk, Option<u64>)> {
    let mut fields = Fields(bytes);
    fields.u32()?;
    let flags = fields.u16()?;
    let kind = fields.u16()?;
    let cookie = fields.u64()?;
    let (offset, length, size) = if style.extended() {
        (Some(fields.u64()?), fields.u64()?, wire::EXTENDED_HEADER)
    } else {
        (None, u64::from(fields.u32()?), wire::STRUCTURED)
    };
    let chunk = Chunk {
        flags,
        kind,
        cookie,
        length,
        size,
    };
    Some((chunk, offset))
}

/// The place of a cookie among the requests: below their limit, and no two that are under way have
/// the same.
#[must_use]
pub const fn place(cookie: u64) -> usize {
    (cookie & 0xffff_ffff) as usize
}

/// The longest payload of an error: number, length, message, offset.
const ERROR: usize = 14 + wire::STRING;
/// The most descriptors of a block status ("SHOULD NOT send more than 2^20").
const STATES: u64 = 1 << 20;
/// With so many bytes at hand, [`Requests::receive`] always goes on.
pub const BUFFER: usize = wire::EXTENDED_HEADER + ERROR;
