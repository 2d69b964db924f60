//! The export of a checkpoint as a client sees it: extents, and reads of several at a time.

use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use block::operation::Ask;
use lab::nbd_client::{negotiate, unix_address};
use nbd::client::{Event, Requests};
use nbd::offer::Text;
use nbd::request::{Asked, Wanted};
use nbd::{Context, DIRTY, Descriptor, ZERO};

use crate::output::Exit;

/// A connection to the export of a checkpoint.
pub struct Moment {
    stream: UnixStream,
    requests: Requests,
    received: Vec<u8>,
    /// Reads under way.
    parts: Vec<Part>,
    /// Bytes of the volume.
    length: u64,
    /// The longest read.
    longest: u64,
}

/// A read under way, or at its end.
pub struct Part {
    cookie: u64,
    /// The first byte in the volume.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Reads at a time. A choice: one is at the drive while others wait for their gaps.
pub const DEPTH: usize = 8;

/// The longest read in bytes. A choice: a mebibyte holds the head for a few milliseconds.
const LONGEST: u64 = 1 << 20;

/// The longest wait for an answer. A choice: a read in the gaps of a busy drive takes seconds.
const PATIENCE: Duration = Duration::from_secs(600);

impl Moment {
    /// Connects to an export that a service has named.
    ///
    /// # Errors
    /// If the address is none of a unix socket, or the service does not answer.
    pub fn connect(uri: &str, bitmap: Option<&str>) -> Result<Self, Exit> {
        let (export, socket) = unix_address(uri)
            .ok_or_else(|| Exit::failed(format!("{uri}: expected an address of a unix socket")))?;
        let connected = || {
            let mut stream = UnixStream::connect(socket)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            let export = Text::new(export).map_err(io::Error::other)?;
            let contexts = match bitmap {
                Some(name) => vec![Context::Allocation, Context::dirty_bitmap(name)],
                None => vec![Context::Allocation],
            };
            let (session, received) = negotiate(&mut stream, export, contexts)?;
            let (length, longest) = (session.offer.size, session.offer.block.max());
            Ok::<_, io::Error>(Moment {
                stream,
                requests: Requests::new(session, DEPTH),
                received,
                parts: Vec::new(),
                length,
                longest: LONGEST.min(u64::from(longest)),
            })
        };
        connected().map_err(|error| Exit::failed(format!("{socket}: {error}")))
    }

    /// The longest read in bytes.
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// The reads under way.
    pub fn under_way(&self) -> usize {
        self.parts.len()
    }

    /// The extents that are not known to be zeroes.
    ///
    /// # Errors
    /// If the service does not answer.
    pub fn allocated(&mut self) -> Result<Vec<Range<u64>>, Exit> {
        let is_data = |state: u32| state & ZERO == 0;
        self.extents(|context| context.bitmap().is_none(), is_data)
    }

    /// The extents that were changed since the last backup.
    ///
    /// # Errors
    /// If the service does not answer, or the export has no such bitmap.
    pub fn dirty(&mut self) -> Result<Vec<Range<u64>>, Exit> {
        let is_dirty = |state: u32| state & DIRTY != 0;
        self.extents(|context| context.bitmap().is_some(), is_dirty)
    }

    fn extents(
        &mut self,
        is_asked: impl Fn(&Context) -> bool,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Result<Vec<Range<u64>>, Exit> {
        let contexts = &self.requests.session().agreed.contexts;
        let mut contexts = contexts.iter();
        let found = contexts.find(|(_, context)| is_asked(context));
        let Some((id, _)) = found.cloned() else {
            return Err(Exit::failed(
                "the export does not tell which bytes are needed: expected a service of this version",
            ));
        };
        let (mut at, mut extents) = (0, Vec::<Range<u64>>::new());
        while at < self.length {
            let states = self.states(id, at..self.length).map_err(Exit::failed)?;
            let before = at;
            for Descriptor { length, state } in states {
                let end = (at + length).min(self.length);
                match extents.last_mut() {
                    _ if !is_wanted(state) => (),
                    Some(last) if last.end == at => last.end = end,
                    _ => extents.push(at..end),
                }
                at = end;
            }
            if at == before {
                return Err(Exit::failed("the service tells nothing of some bytes"));
            }
        }
        Ok(extents)
    }

    /// The states of the first of some bytes in a context.
    fn states(&mut self, context: u32, bytes: Range<u64>) -> io::Result<Vec<Descriptor>> {
        let block = u64::from(self.requests.session().offer.block.min());
        let most = u64::from(u32::MAX) / block * block;
        let length = (bytes.end - bytes.start).min(most);
        let ask = Asked::BlockStatus {
            wanted: Wanted::Many,
        };
        let asked = self.submit(ask, bytes.start, length)?;
        let mut states = Vec::new();
        loop {
            match self.event()? {
                Event::State {
                    context: of,
                    descriptor,
                    ..
                } if of == context => states.push(descriptor),
                Event::Finished { cookie, result } if cookie == asked => {
                    return result.map(|()| states).map_err(io::Error::other);
                }
                _ => (),
            }
        }
    }

    /// Begins to read.
    ///
    /// # Errors
    /// If the connection breaks.
    pub fn read(&mut self, offset: u64, length: u64) -> io::Result<()> {
        let cookie = self.submit(Asked::Of(Ask::Read), offset, length)?;
        self.parts.push(Part {
            cookie,
            offset,
            bytes: vec![0; length as usize],
        });
        Ok(())
    }

    fn submit(&mut self, ask: Asked, offset: u64, length: u64) -> io::Result<u64> {
        let mut out = Vec::new();
        let cookie =
            (self.requests.submit(&mut out, ask, offset, length)).map_err(io::Error::other)?;
        self.stream.write_all(&out)?;
        Ok(cookie)
    }

    /// Waits for the end of a read.
    ///
    /// # Errors
    /// If the connection breaks, or the moment is lost.
    pub fn next_end(&mut self) -> io::Result<Part> {
        loop {
            match self.event()? {
                Event::Contents {
                    cookie,
                    offset,
                    length,
                } => self.contents(cookie, offset, length)?,
                Event::Finished { cookie, result } => {
                    result.map_err(io::Error::other)?;
                    let place = self.parts.iter().position(|part| part.cookie == cookie);
                    let place = place.ok_or_else(|| io::Error::other("an answer to nothing"))?;
                    return Ok(self.parts.swap_remove(place));
                }
                // Bytes of a part are zeroes already.
                Event::Hole { .. } | Event::State { .. } | Event::Complaint { .. } => (),
            }
        }
    }

    fn contents(&mut self, cookie: u64, offset: u64, length: u64) -> io::Result<()> {
        let mut parts = self.parts.iter_mut();
        let part = parts.find(|part| part.cookie == cookie);
        let part = part.ok_or_else(|| io::Error::other("an answer to nothing"))?;
        let at = (offset - part.offset) as usize;
        let to = &mut part.bytes[at..at + length as usize];
        let here = self.received.len().min(to.len());
        to[..here].copy_from_slice(&self.received[..here]);
        self.received.drain(..here);
        self.stream.read_exact(&mut to[here..])
    }

    fn event(&mut self) -> io::Result<Event> {
        loop {
            let told = self.requests.receive(&self.received);
            let (used, event) = told.map_err(io::Error::other)?;
            self.received.drain(..used);
            match event {
                Some(event) => return Ok(event),
                None if used == 0 => {
                    let mut chunk = [0; 64 << 10];
                    match self.stream.read(&mut chunk)? {
                        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                        count => self.received.extend_from_slice(&chunk[..count]),
                    }
                }
                None => (),
            }
        }
    }
}
