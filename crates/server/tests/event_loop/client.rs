//! A client that waits: for tests.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use block::operation::OperationError;
use nbd::client::{ClientNegotiation, ClientOptions, ClientPhase, ClientSecurity, Event, Requests};
use nbd::negotiation::Sizes;
use nbd::offer::Text;
use nbd::request::Asked;
use nbd::{Context, Descriptor, Style};

/// One connection.
pub struct Client {
    stream: UnixStream,
    requests: Requests,
    received: Vec<u8>,
    /// What has come of requests that have not ended.
    parts: Vec<Part>,
}

/// What has come of one request.
struct Part {
    cookie: u64,
    offset: u64,
    bytes: Vec<u8>,
    states: Vec<Descriptor>,
}

/// How a request ended.
#[derive(Debug)]
pub struct End {
    pub cookie: u64,
    pub result: Result<(), OperationError>,
    /// What was read.
    pub bytes: Vec<u8>,
    /// What a block status told.
    pub states: Vec<Descriptor>,
}

/// So many requests may be under way.
pub const LIMIT: usize = 256;

/// A service that takes longer hangs. Nothing is measured by it.
const HANGS: Duration = Duration::from_secs(120);

impl Client {
    /// Agrees on the default export.
    pub fn connect(socket: &Path, style: Style) -> Client {
        Client::agree(socket, "", style, Sizes::Asked)
    }

    /// The same, of an export with a name.
    pub fn connect_to(socket: &Path, export: &str, style: Style) -> Client {
        Client::agree(socket, export, style, Sizes::Asked)
    }

    /// The same without asking for block sizes, so that any bytes can be asked for.
    pub fn connect_unaware(socket: &Path, style: Style) -> Client {
        Client::agree(socket, "", style, Sizes::NotAsked)
    }

    fn agree(socket: &Path, export: &str, style: Style, sizes: Sizes) -> Client {
        let stream = UnixStream::connect(socket).expect("somebody listens");
        stream.set_read_timeout(Some(HANGS)).expect("a socket");
        stream.set_write_timeout(Some(HANGS)).expect("a socket");
        let mut negotiation = ClientNegotiation::new(ClientOptions {
            export: Text::new(export).expect("a name"),
            style,
            contexts: match style {
                Style::Simple => vec![],
                _ => vec![Context::Allocation],
            },
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
            if sizes == Sizes::NotAsked {
                ask_for_no_sizes(negotiation.output());
            }
            (&stream)
                .write_all(negotiation.output())
                .expect("the server listens");
            negotiation.output().clear();
            match negotiation.step() {
                ClientPhase::More => more(&stream, &mut received).expect("the server answers"),
                ClientPhase::Agreed(mut session) => {
                    session.agreed.sizes = sizes;
                    return Client {
                        stream,
                        requests: Requests::new(session, LIMIT),
                        received,
                        parts: Vec::new(),
                    };
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Sends a request.
    pub fn submit(&mut self, ask: Asked, offset: u64, length: u64, payload: &[u8]) -> u64 {
        let mut out = Vec::new();
        let cookie = self
            .requests
            .submit(&mut out, ask, offset, length)
            .expect("a request that the server takes");
        let is_read = ask == Asked::Of(block::operation::Ask::Read);
        self.parts.push(Part {
            cookie,
            offset,
            bytes: match is_read {
                true => vec![0xEE; length as usize],
                false => Vec::new(),
            },
            states: Vec::new(),
        });
        out.extend_from_slice(payload);
        self.stream.write_all(&out).expect("the server receives");
        cookie
    }

    pub fn under_way(&self) -> usize {
        self.requests.under_way()
    }

    /// Waits for the next end; `None` if the server has closed.
    pub fn end(&mut self) -> Option<End> {
        loop {
            let told = self.requests.receive(&self.received);
            let (used, event) = told.expect("an honest server");
            self.received.drain(..used);
            match event {
                None if used == 0 => more(&self.stream, &mut self.received)?,
                None | Some(Event::Complaint { .. }) => (),
                Some(Event::Contents {
                    cookie,
                    offset,
                    length,
                }) => {
                    while (self.received.len() as u64) < length {
                        more(&self.stream, &mut self.received)?;
                    }
                    let bytes: Vec<u8> = self.received.drain(..length as usize).collect();
                    let part = self.part(cookie);
                    let at = (offset - part.offset) as usize;
                    part.bytes[at..at + bytes.len()].copy_from_slice(&bytes);
                }
                Some(Event::Hole {
                    cookie,
                    offset,
                    length,
                }) => {
                    let part = self.part(cookie);
                    let at = (offset - part.offset) as usize;
                    part.bytes[at..at + length as usize].fill(0);
                }
                Some(Event::State {
                    cookie, descriptor, ..
                }) => self.part(cookie).states.push(descriptor),
                Some(Event::Finished { cookie, result }) => {
                    let place = self.parts.iter().position(|part| part.cookie == cookie);
                    let part = self.parts.swap_remove(place.expect("under way"));
                    return Some(End {
                        cookie,
                        result,
                        bytes: part.bytes,
                        states: part.states,
                    });
                }
            }
        }
    }

    fn part(&mut self, cookie: u64) -> &mut Part {
        let mut parts = self.parts.iter_mut();
        parts.find(|part| part.cookie == cookie).expect("under way")
    }

    /// Sends a request and waits for its end; nothing else may be under way.
    pub fn ask(&mut self, ask: Asked, offset: u64, length: u64, payload: &[u8]) -> End {
        let cookie = self.submit(ask, offset, length, payload);
        let end = self.end().expect("the server answers");
        assert_eq!(end.cookie, cookie);
        end
    }

    #[allow(dead_code, reason = "shared with the tests of the command line")]
    /// Writes, and waits for the end. The answer is whether it was written: not if the server has gone.
    pub fn tries(&mut self, ask: Asked, offset: u64, payload: &[u8]) -> bool {
        let mut out = Vec::new();
        let length = payload.len() as u64;
        let submitted = self.requests.submit(&mut out, ask, offset, length);
        let cookie = submitted.expect("a request that the server takes");
        self.parts.push(Part {
            cookie,
            offset,
            bytes: Vec::new(),
            states: Vec::new(),
        });
        out.extend_from_slice(payload);
        self.stream.write_all(&out).is_ok() && self.end().is_some_and(|end| end.result.is_ok())
    }

    /// Bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) {
        // A server that has closed is what some tests are about.
        let _ = self.stream.write_all(bytes);
    }

    /// The next bytes as they are.
    pub fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.received.len() < count {
            more(&self.stream, &mut self.received).expect("the server answers");
        }
        self.received.drain(..count).collect()
    }

    /// Says that nothing more will come, in the protocol's way.
    pub fn say_goodbye(&mut self) {
        let mut out = Vec::new();
        self.requests.disconnect(&mut out);
        self.send(&out);
    }

    /// Says that nothing more will come, in the socket's way.
    pub fn close_half(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    pub fn is_closed_by_server(&mut self) -> bool {
        loop {
            let mut rest = [0; 4096];
            match self.stream.read(&mut rest) {
                Ok(0) => return true,
                Ok(_) => (),
                Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    }
}

/// Our client asks for block sizes last of all; now it asks for the name instead (`NBD_INFO_NAME`).
fn ask_for_no_sizes(out: &mut [u8]) {
    const GO: &[u8] = b"IHAVEOPT\0\0\0\x07";
    if out.windows(GO.len()).any(|option| option == GO)
        && let [.., 0, number @ 3] = out
    {
        *number = 1;
    }
}

/// Receives what there is; `None` if the server has closed.
fn more(mut stream: &UnixStream, to: &mut Vec<u8>) -> Option<()> {
    let mut chunk = vec![0; 64 << 10];
    match stream.read(&mut chunk) {
        Ok(0) => None,
        Ok(count) => {
            to.extend_from_slice(&chunk[..count]);
            Some(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
        Err(error) => panic!("the service hangs: {error}"),
    }
}
