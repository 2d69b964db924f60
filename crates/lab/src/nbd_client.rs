//! An NBD client over a unix socket, as a load of a service.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use block::operation::OperationError;
use nbd::client::{
    ClientNegotiation, ClientOptions, ClientPhase, ClientSecurity, Event, Requests, Session,
};
use nbd::offer::Text;
use nbd::request::Asked;
use nbd::{Context, Style};

/// A connection to an export.
pub struct LoadClient {
    stream: UnixStream,
    requests: Requests,
    /// Received bytes that are not processed yet.
    received: Vec<u8>,
    /// The contents that are being received.
    contents: Contents,
    out: Vec<u8>,
}

/// Contents that are being received: the request, the place of the next byte, and the bytes to come.
#[derive(Clone, Copy, Debug, Default)]
struct Contents {
    cookie: u64,
    offset: u64,
    left: u64,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedRequest {
    /// Its cookie.
    pub cookie: u64,
    /// Its result.
    pub result: Result<(), OperationError>,
}

/// Time-out of a reply. A choice, far beyond the requests of the slowest time scale.
const HANGS: Duration = Duration::from_secs(600);

impl LoadClient {
    /// Connects and negotiates, for up to `pending` outstanding requests.
    pub fn connect(socket: &Path, pending: usize) -> io::Result<Self> {
        LoadClient::with_export(socket, Text::default(), pending)
    }

    /// Connects to an export at an address `nbd+unix:///EXPORT?socket=PATH`, as a service names it.
    ///
    /// # Errors
    /// If the address is another one, the connection breaks, or the server does not agree.
    pub fn connect_to(uri: &str, pending: usize) -> io::Result<Self> {
        let (export, socket) = unix_address(uri)
            .ok_or_else(|| io::Error::other("expected an address of a unix socket"))?;
        let export = Text::new(export).map_err(io::Error::other)?;
        LoadClient::with_export(Path::new(socket), export, pending)
    }

    fn with_export(socket: &Path, export: Text, pending: usize) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(HANGS))?;
        stream.set_write_timeout(Some(HANGS))?;
        let (session, received) = negotiate(&mut &stream, export, Vec::new())?;
        Ok(LoadClient {
            stream,
            requests: Requests::new(session, pending),
            received,
            contents: Contents::default(),
            out: Vec::new(),
        })
    }

    /// The export, as the server offers it.
    pub fn session(&self) -> &Session {
        self.requests.session()
    }

    /// Sends a request; returns its cookie.
    pub fn submit(
        &mut self,
        ask: Asked,
        offset: u64,
        length: u64,
        payload: &[u8],
    ) -> io::Result<u64> {
        self.out.clear();
        let cookie = self
            .requests
            .submit(&mut self.out, ask, offset, length)
            .map_err(io::Error::other)?;
        self.out.extend_from_slice(payload);
        self.stream.write_all(&self.out)?;
        Ok(cookie)
    }

    /// Waits for the next completion; returns its cookie.
    pub fn end(&mut self) -> io::Result<u64> {
        let ended = self.end_with(&mut |_, _, _| {})?;
        ended.result.map_err(io::Error::other)?;
        Ok(ended.cookie)
    }

    /// Waits for the next completion. `take` gets the bytes of reads in parts: the cookie, the place in the
    /// export, and the bytes.
    pub fn end_with(&mut self, take: &mut dyn FnMut(u64, u64, &[u8])) -> io::Result<EndedRequest> {
        loop {
            if self.contents.left > 0 {
                let here = self.contents.left.min(self.received.len() as u64);
                let Contents { cookie, offset, .. } = self.contents;
                take(cookie, offset, &self.received[..here as usize]);
                self.received.drain(..here as usize);
                self.contents.left -= here;
                self.contents.offset += here;
                if self.contents.left > 0 {
                    more(&mut &self.stream, &mut self.received)?;
                    continue;
                }
            }
            let parsed = self.requests.receive(&self.received);
            let (used, event) = parsed.map_err(io::Error::other)?;
            self.received.drain(..used);
            match event {
                None if used == 0 => more(&mut &self.stream, &mut self.received)?,
                Some(Event::Contents {
                    cookie,
                    offset,
                    length,
                }) => {
                    self.contents = Contents {
                        cookie,
                        offset,
                        left: length,
                    };
                }
                Some(Event::Hole {
                    cookie,
                    offset,
                    length,
                }) => take(cookie, offset, &vec![0; length as usize]),
                Some(Event::Finished { cookie, result }) => {
                    return Ok(EndedRequest { cookie, result });
                }
                None | Some(Event::State { .. } | Event::Complaint { .. }) => {}
            }
        }
    }
}

/// The export and the socket of an address `nbd+unix:///EXPORT?socket=PATH`, as a service names it.
pub fn unix_address(uri: &str) -> Option<(&str, &str)> {
    uri.strip_prefix("nbd+unix:///")?.split_once("?socket=")
}

/// Does the handshake for an export and the contexts of its block status, without TLS. Returns the session, and the bytes received after it.
///
/// # Errors
/// If the connection breaks, or the server does not agree.
pub fn negotiate(
    stream: &mut (impl io::Read + io::Write),
    export: Text,
    contexts: Vec<Context>,
) -> io::Result<(Session, Vec<u8>)> {
    let mut negotiation = ClientNegotiation::new(ClientOptions {
        export,
        style: Style::Structured,
        contexts,
        security: ClientSecurity::Plain,
    });
    let mut received = Vec::new();
    loop {
        while !received.is_empty() {
            match negotiation.receive(&received) {
                0 => break,
                taken => drop(received.drain(..taken)),
            }
        }
        stream.write_all(negotiation.output())?;
        negotiation.output().clear();
        match negotiation.step() {
            ClientPhase::More => more(stream, &mut received)?,
            ClientPhase::Agreed(session) => return Ok((session, received)),
            ClientPhase::Closed(reason) => return Err(io::Error::other(reason)),
            ClientPhase::StartTls => return Err(io::Error::other("the server requires TLS")),
        }
    }
}

/// Receives the available bytes.
fn more(stream: &mut impl io::Read, to: &mut Vec<u8>) -> io::Result<()> {
    let mut chunk = [0; 64 << 10];
    match stream.read(&mut chunk)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => {
            to.extend_from_slice(&chunk[..count]);
            Ok(())
        }
    }
}
