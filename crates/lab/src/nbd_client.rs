//! An NBD client over a unix socket, as a load of a service.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nbd::client::{
    ClientNegotiation, ClientOptions, ClientPhase, ClientSecurity, Event, Requests, Session,
};
use nbd::offer::Text;
use nbd::request::Asked;
use nbd::{Context, Style};

/// A connection to the default export.
pub struct LoadClient {
    stream: UnixStream,
    requests: Requests,
    /// Received bytes that are not processed yet.
    received: Vec<u8>,
    /// Bytes of contents that are still to be received and dropped.
    passed_over: u64,
    out: Vec<u8>,
}

/// Time-out of a reply. A choice, far beyond the requests of the slowest time scale.
const HANGS: Duration = Duration::from_secs(600);

impl LoadClient {
    /// Connects and negotiates, for up to `pending` outstanding requests.
    pub fn connect(socket: &Path, pending: usize) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(HANGS))?;
        stream.set_write_timeout(Some(HANGS))?;
        let (session, received) = negotiate(&mut &stream, Text::default(), Vec::new())?;
        Ok(LoadClient {
            stream,
            requests: Requests::new(session, pending),
            received,
            passed_over: 0,
            out: Vec::new(),
        })
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
        loop {
            if self.passed_over > 0 {
                let here = self.passed_over.min(self.received.len() as u64);
                self.received.drain(..here as usize);
                self.passed_over -= here;
                if self.passed_over > 0 {
                    more(&mut &self.stream, &mut self.received)?;
                    continue;
                }
            }
            let parsed = self.requests.receive(&self.received);
            let (used, event) = parsed.map_err(io::Error::other)?;
            self.received.drain(..used);
            match event {
                None if used == 0 => more(&mut &self.stream, &mut self.received)?,
                Some(Event::Contents { length, .. }) => self.passed_over = length,
                Some(Event::Finished {
                    cookie,
                    result: Ok(()),
                }) => return Ok(cookie),
                Some(Event::Finished {
                    result: Err(failed),
                    ..
                }) => return Err(io::Error::other(failed)),
                None | Some(Event::Hole { .. } | Event::State { .. } | Event::Complaint { .. }) => {
                }
            }
        }
    }
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
