//! The requests and replies of one connection, without its socket.

use block::operation::{Ask, OperationError};
use nbd::Descriptor;
use nbd::client::{Event, Requests, Session};
use nbd::request::Asked;

/// One connection after its handshake.
pub struct Conversation {
    requests: Requests,
    received: Vec<u8>,
    /// What has come of requests that have not ended.
    parts: Vec<Part>,
    /// The contents of which a part has come: the request, the next byte, the bytes to come.
    contents: Option<(u64, u64, u64)>,
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
    #[allow(dead_code, reason = "not all tests ask for it")]
    pub states: Vec<Descriptor>,
}

impl Conversation {
    /// At most `limit` requests may be under way. `received` came after the handshake.
    pub fn new(session: Session, limit: usize, received: Vec<u8>) -> Conversation {
        Conversation {
            requests: Requests::new(session, limit),
            received,
            parts: Vec::new(),
            contents: None,
        }
    }

    /// Appends a request to `out`; the payload of a write is to follow.
    pub fn submit(&mut self, out: &mut Vec<u8>, ask: Asked, offset: u64, length: u64) -> u64 {
        let submitted = self.requests.submit(out, ask, offset, length);
        let cookie = submitted.expect("a request that the server takes");
        self.parts.push(Part {
            cookie,
            offset,
            bytes: match ask {
                Asked::Of(Ask::Read) => vec![0xEE; length as usize],
                _ => Vec::new(),
            },
            states: Vec::new(),
        });
        cookie
    }

    pub fn under_way(&self) -> usize {
        self.requests.under_way()
    }

    /// Appends the end of the session to `out`.
    pub fn disconnect(&self, out: &mut Vec<u8>) {
        self.requests.disconnect(out);
    }

    /// What was received and not looked at: more is appended here.
    pub fn received(&mut self) -> &mut Vec<u8> {
        &mut self.received
    }

    /// The next end. `None` if more has to be received.
    pub fn next_end(&mut self) -> Option<End> {
        loop {
            if let Some((cookie, next, left)) = self.contents {
                let here = left.min(self.received.len() as u64);
                let bytes: Vec<u8> = self.received.drain(..here as usize).collect();
                let part = self.part(cookie);
                let at = (next - part.offset) as usize;
                part.bytes[at..at + bytes.len()].copy_from_slice(&bytes);
                self.contents = (here < left).then_some((cookie, next + here, left - here));
                if self.contents.is_some() {
                    return None;
                }
            }
            let told = self.requests.receive(&self.received);
            let (used, event) = told.expect("an honest server");
            self.received.drain(..used);
            match event {
                None if used == 0 => return None,
                None | Some(Event::Complaint { .. }) => (),
                Some(Event::Contents {
                    cookie,
                    offset,
                    length,
                }) => self.contents = Some((cookie, offset, length)),
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
}
