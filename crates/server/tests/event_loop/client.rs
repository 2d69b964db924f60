//! A client that waits: for tests.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nbd::client::{ClientNegotiation, ClientOptions, ClientPhase, ClientSecurity};
use nbd::negotiation::Sizes;
use nbd::offer::Text;
use nbd::request::Asked;
use nbd::{Context, Style};

#[path = "conversation.rs"]
mod conversation;

use conversation::Conversation;
pub use conversation::End;

/// One connection.
pub struct Client {
    stream: UnixStream,
    conversation: Conversation,
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
                        conversation: Conversation::new(session, LIMIT, received),
                    };
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Sends a request.
    pub fn submit(&mut self, ask: Asked, offset: u64, length: u64, payload: &[u8]) -> u64 {
        let mut out = Vec::new();
        let cookie = self.conversation.submit(&mut out, ask, offset, length);
        out.extend_from_slice(payload);
        self.stream.write_all(&out).expect("the server receives");
        cookie
    }

    pub fn under_way(&self) -> usize {
        self.conversation.under_way()
    }

    /// Waits for the next end; `None` if the server has closed.
    pub fn end(&mut self) -> Option<End> {
        loop {
            if let Some(end) = self.conversation.next_end() {
                return Some(end);
            }
            more(&self.stream, self.conversation.received())?;
        }
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
        self.conversation.submit(&mut out, ask, offset, length);
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
        let received = self.conversation.received();
        while received.len() < count {
            more(&self.stream, received).expect("the server answers");
        }
        received.drain(..count).collect()
    }

    /// Says that nothing more will come, in the protocol's way.
    pub fn say_goodbye(&mut self) {
        let mut out = Vec::new();
        self.conversation.disconnect(&mut out);
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
