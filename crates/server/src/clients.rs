//! The clients of a drive over NBD: connections, fairness between them, and their shares of memory.
//!
//! ```text
//!   listener --Accepted--> [ connection ] --operation--> volumes
//!   socket   --bytes-----> [ inbox      ]
//!            <--replies--- [ outbox     ] <--answer-----
//! ```
//!
//! An operation without room waits in its connection, and the loop receives nothing more from that client.
//! Waiting connections are served first come, first served.

use std::collections::VecDeque;

use block::Instant;
use slab::Slab;
use tracing::{info, warn};

use crate::disk::Disk;
use crate::status;
use crate::volume::{Export, Volumes};
use nbd::request::Header;

mod bounds;
mod connection;
mod inbox;
mod leaving;
mod reading;
mod replying;
mod seats;
mod sharing;

pub use bounds::Bounds;
pub use connection::Accepted;
use connection::Connection;
pub use seats::{Seat, Seats};
pub(crate) use sharing::Awaited;

/// All connections of a drive.
pub(crate) struct Clients {
    connections: Slab<Box<Connection>>,
    /// Block status requests that the back end has not answered.
    questions: Slab<(usize, Header)>,
    /// Connections that wait for room, by the kind of room.
    stalled: [VecDeque<usize>; 2],
    /// The connection that is the next to get common memory.
    first_in_line: Option<usize>,
    /// Bytes of common memory in use.
    common: usize,
    /// Connections with replies to send.
    answered: Vec<usize>,
    /// The time of the next check for clients that read no replies.
    patrol: Instant,
    bounds: Bounds,
    is_closed: bool,
    /// The number of passes in which connections and posted operations took turns.
    passes: u64,
    counts: Counts,
}

/// The number of connections since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accepted connections.
    pub accepted: u64,
    /// Connections that were refused, or closed because they violated the protocol or a limit.
    pub turned_away: u64,
}

impl Clients {
    /// No connections.
    pub(crate) fn new(bounds: Bounds) -> Self {
        Clients {
            connections: Slab::new(),
            questions: Slab::new(),
            stalled: [VecDeque::new(), VecDeque::new()],
            first_in_line: None,
            common: 0,
            answered: Vec::new(),
            patrol: Instant::ZERO,
            bounds,
            is_closed: false,
            passes: 0,
            counts: Counts::default(),
        }
    }

    /// Adds a connection, and starts to receive from it.
    pub(crate) fn accept(&mut self, volumes: &mut Volumes, disk: &mut Disk, accepted: Accepted) {
        if self.connections.len() >= self.bounds.connections || self.is_closed {
            warn!(
                most = self.bounds.connections,
                "a connection is refused: too many, or going down"
            );
            self.counts.turned_away += 1;
            return;
        }
        let export = &volumes.operations.exports.all()[accepted.export];
        if accepted.offer.size > export.length {
            warn!("a connection is refused: its volume has become smaller since it was told of it");
            return;
        }
        info!(export = export.name, style = ?accepted.agreed.style, "a client");
        self.counts.accepted += 1;
        let connection = Box::new(Connection::new(accepted, disk.now));
        let place = self.connections.insert(connection);
        self.read_on(volumes, disk, place);
    }

    /// Refuses new connections, and closes each of the others when its operations have ended.
    pub(crate) fn close(&mut self, volumes: &mut Volumes, disk: &mut Disk) {
        self.is_closed = true;
        for place in self.places() {
            self.end(volumes, disk, place);
        }
    }

    /// Drops all connections.
    pub(crate) fn cut_all(&mut self, volumes: &mut Volumes, disk: &mut Disk) {
        for place in self.places() {
            self.cut_off(volumes, disk, place);
        }
    }

    /// Drops the connections of an export.
    pub(crate) fn cut_export(&mut self, volumes: &mut Volumes, disk: &mut Disk, export: usize) {
        for place in self.places() {
            if self.connections[place].export == export {
                self.cut_off(volumes, disk, place);
            }
        }
    }

    fn places(&self) -> Vec<usize> {
        self.connections.iter().map(|(place, _)| place).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.connections.len()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// The number of connections whose export matches.
    pub(crate) fn using(&self, volumes: &Volumes, is_so: impl Fn(&Export) -> bool) -> usize {
        let exports = volumes.operations.exports.all();
        let connections = self.connections.iter();
        connections
            .filter(|(_, connection)| is_so(&exports[connection.export]))
            .count()
    }

    /// The time of the next [`Clients::patrol`].
    pub(crate) fn next_wakeup(&self) -> Option<Instant> {
        (!self.connections.is_empty()).then_some(self.patrol)
    }

    /// The connections in the status.
    pub(crate) fn listed(&self, volumes: &Volumes, disk: &Disk) -> Vec<status::Connection> {
        let each = self.connections.iter();
        each.map(|(_, connection)| {
            let export = &volumes.operations.exports.all()[connection.export];
            let age = disk.now.since(connection.since);
            status::Connection {
                export: export.name.clone(),
                class: export.class.into(),
                connected_s: disk.clock.scale().real(age).as_secs_f64(),
                ..connection.described()
            }
        })
        .collect()
    }
}

#[cfg(test)]
#[allow(unsafe_code, reason = "hands the memory of operations to the back end")]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use block::Class;
    use block::operation::Ask;
    use nbd::Style;
    use nbd::negotiation::{Agreed, Sizes};
    use nbd::offer::{BlockSizes, Features, Offer, Text};
    use nbd::request::Asked;

    use super::*;
    use crate::arena::Arena;
    use crate::disk::tests::plain;
    use crate::ring::Owner;
    use crate::volume::ZEROES;
    use crate::volume::exports::Exports;

    const MIB: u64 = 1 << 20;

    /// The owners of a loop that clients need.
    struct Scene {
        clients: Clients,
        volumes: Volumes,
        disk: Disk,
        seats: Seats,
    }

    impl Scene {
        fn new(bounds: Bounds) -> Self {
            let disk = plain();
            let export = Export {
                name: "all".to_owned(),
                offset: 0,
                length: MIB,
                class: Class::default(),
            };
            let exports = Exports::new(vec![export], disk.block());
            let arena = Arena::map(ZEROES + bounds.memory).expect("memory");
            Scene {
                clients: Clients::new(bounds),
                volumes: Volumes::new(exports, arena, bounds.longest).expect("room"),
                disk,
                seats: Seats::new(bounds.connections),
            }
        }

        /// A client after its handshake, for which the export had `size` bytes.
        fn connect(&mut self, number: u64, size: u64) -> UnixStream {
            let (client, server) = UnixStream::pair().expect("sockets");
            let timeout = Some(Duration::from_secs(20));
            client.set_read_timeout(timeout).expect("a socket");
            let accepted = Accepted {
                number,
                peer: "a test".to_owned(),
                socket: server.into(),
                session: None,
                agreed: Agreed {
                    export: 0,
                    style: Style::Simple,
                    contexts: Vec::new(),
                    sizes: Sizes::Asked,
                },
                export: 0,
                offer: offer(size),
                received: Vec::new(),
                seat: self.seats.take().unwrap_or_else(|| {
                    let more = Seats::new(1);
                    more.take().expect("a seat")
                }),
            };
            self.clients
                .accept(&mut self.volumes, &mut self.disk, accepted);
            client
        }

        /// Turns of a loop until `is_over`.
        fn turn_until(&mut self, mut is_over: impl FnMut(&Clients) -> bool) {
            let Scene {
                clients,
                volumes,
                disk,
                ..
            } = self;
            for _ in 0..10_000 {
                while let Some(command) = disk.engine.poll(disk.now) {
                    let pieces = volumes.lay_out(disk, &command);
                    let pieces: Vec<_> = pieces.into_iter().flatten().collect();
                    // SAFETY: the memory is that of operations, which are pending.
                    unsafe { disk.start(&command, &pieces) };
                    let ended = disk.poll_ended().expect("memory is quick");
                    disk.complete(ended.id, block::Status::Good, ended.account);
                    disk.take_in_flight(ended.id);
                }
                while let Some(finished) = disk.engine.poll_finished() {
                    volumes.finished(disk, &finished);
                }
                clients.take_answers(volumes);
                clients.take_turns(volumes, disk);
                clients.resume(volumes, disk, Awaited::Memory);
                clients.send_all(volumes, disk);
                if is_over(clients) {
                    return;
                }
                let until = std::time::Instant::now() + Duration::from_millis(1);
                let waited = disk.ring.submit_and_wait(Duration::ZERO, Some(until));
                waited.expect("a ring");
                while let Some((ticket, result)) = disk.ring.next_end() {
                    let place = ticket.key as usize;
                    match ticket.owner {
                        Owner::Receive => clients.received(volumes, disk, place, result),
                        Owner::Send => clients.sent(volumes, disk, place, result),
                        Owner::BackEnd | Owner::SecondLeg | Owner::Mailbox | Owner::Marks => {
                            panic!("there is none")
                        }
                    }
                }
            }
            panic!("it is never over");
        }

        /// Turns until so many requests were answered and the replies were sent.
        fn answer(&mut self, requests: u64) {
            self.turn_until(|clients| {
                let each = clients.connections.iter();
                let served = each
                    .clone()
                    .map(|(_, connection)| connection.served.requests);
                let mut outboxes = each.map(|(_, connection)| &connection.outbox);
                served.sum::<u64>() == requests && outboxes.all(|outbox| outbox.is_empty())
            });
        }
    }

    fn offer(size: u64) -> Offer {
        Offer {
            name: Text::new("all").expect("a name"),
            description: Text::default(),
            size,
            block: BlockSizes::new(512, 4096, 1 << 20).expect("sizes"),
            features: Features {
                read_only: false,
                flush: true,
                fua: true,
                trim: true,
                write_zeroes: true,
                fast_zero: true,
                multi_conn: true,
                cache: true,
                rotational: false,
                df: false,
            },
            contexts: Vec::new(),
        }
    }

    fn request(ask: Ask, cookie: u64, length: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let header = Header::new(Asked::Of(ask), Style::Simple, cookie, 4096, length);
        header.encode(&mut bytes, Style::Simple);
        if let Ask::Write { .. } = ask {
            bytes.resize(bytes.len() + length as usize, cookie as u8);
        }
        bytes
    }

    /// The cookie of the next reply, which says that all went well, and so many bytes behind it.
    fn reply(client: &mut UnixStream, length: usize) -> (u64, Vec<u8>) {
        let mut head = [0; 16];
        client.read_exact(&mut head).expect("a reply");
        // The magic of a simple reply, and no error.
        assert_eq!(head[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0]);
        let cookie = head[8..].try_into().expect("eight bytes");
        let mut bytes = vec![0; length];
        client.read_exact(&mut bytes).expect("its bytes");
        (u64::from_be_bytes(cookie), bytes)
    }

    const WRITE: Ask = Ask::Write {
        durability: block::Durability::Volatile,
    };

    #[test]
    fn clients_get_the_replies_to_their_own_requests_and_memory_comes_back() {
        let mut scene = Scene::new(Bounds {
            memory: 8 << 20,
            longest: 1 << 20,
            ..Bounds::default()
        });
        let mut one = scene.connect(1, MIB);
        let mut other = scene.connect(2, MIB);
        one.write_all(&request(WRITE, 11, 4096)).expect("a socket");
        scene.answer(1);
        assert_eq!(reply(&mut one, 0), (11, Vec::new()));
        other
            .write_all(&request(Ask::Read, 22, 512))
            .expect("a socket");
        one.write_all(&request(Ask::Read, 33, 4096))
            .expect("a socket");
        scene.answer(3);
        assert_eq!(reply(&mut other, 512), (22, vec![11; 512]));
        assert_eq!(reply(&mut one, 4096), (33, vec![11; 4096]));
        drop((one, other));
        scene.turn_until(|clients| clients.count() == 0);
        assert_eq!(scene.clients.common, 0);
        assert_eq!(scene.volumes.operations.bytes(), 0);
        assert_eq!(scene.clients.counts().accepted, 2);
    }

    #[test]
    fn a_connection_beyond_the_limit_or_with_an_older_size_is_refused() {
        let mut scene = Scene::new(Bounds {
            connections: 1,
            memory: 8 << 20,
            longest: 1 << 20,
            ..Bounds::default()
        });
        let mut larger = scene.connect(1, 2 * MIB);
        assert_eq!(larger.read(&mut [0]).expect("the end"), 0, "it is closed");
        let first = scene.connect(2, MIB);
        let mut second = scene.connect(3, MIB);
        assert_eq!(second.read(&mut [0]).expect("the end"), 0, "it is closed");
        let counts = scene.clients.counts();
        assert_eq!((counts.accepted, counts.turned_away), (1, 1));
        drop(first);
        scene.turn_until(|clients| clients.count() == 0);
    }

    #[test]
    fn a_client_that_breaks_the_protocol_is_dropped_and_the_others_stay() {
        let mut scene = Scene::new(Bounds {
            memory: 8 << 20,
            longest: 1 << 20,
            ..Bounds::default()
        });
        let mut hostile = scene.connect(1, MIB);
        let mut good = scene.connect(2, MIB);
        hostile.write_all(&[0xAA; 64]).expect("a socket");
        scene.turn_until(|clients| clients.count() == 1);
        assert_eq!(hostile.read(&mut [0]).unwrap_or(0), 0, "it is closed");
        assert_eq!(scene.clients.counts().turned_away, 1);
        good.write_all(&request(Ask::Read, 7, 512))
            .expect("a socket");
        scene.answer(1);
        assert_eq!(reply(&mut good, 512), (7, vec![0; 512]));
        scene.clients.close(&mut scene.volumes, &mut scene.disk);
        scene.turn_until(|clients| clients.count() == 0);
        assert_eq!(good.read(&mut [0]).expect("the end"), 0);
    }

    /// A client that stops in the middle of a header is cut off after a pause; one without a request stays.
    #[test]
    fn a_client_that_stops_amid_a_header_loses_its_seat() {
        let pause = Duration::from_secs(3);
        let mut scene = Scene::new(Bounds {
            memory: 8 << 20,
            longest: 1 << 20,
            pause,
            ..Bounds::default()
        });
        let mut stopped = scene.connect(1, MIB);
        let mut silent = scene.connect(2, MIB);
        let header = request(Ask::Read, 1, 512);
        stopped.write_all(&header[..11]).expect("a socket");
        let is_begun = |clients: &Clients| {
            let mut each = clients.connections.iter();
            each.any(|(_, connection)| connection.is_in_a_header())
        };
        scene.turn_until(is_begun);
        let moved = scene.disk.now;
        let pause = scene.disk.clock.scale().model(pause);
        for (later, expected) in [(pause, 2), (pause * 2, 1)] {
            scene.disk.now = moved + later;
            scene.clients.patrol(&mut scene.volumes, &mut scene.disk);
            let mut turns = 0..3;
            scene.turn_until(|_| turns.next().is_none());
            assert_eq!(scene.clients.count(), expected);
        }
        assert_eq!(stopped.read(&mut [0]).unwrap_or(0), 0, "it is closed");
        silent
            .write_all(&request(Ask::Read, 7, 512))
            .expect("a socket");
        scene.answer(1);
        assert_eq!(reply(&mut silent, 512), (7, vec![0; 512]));
    }
}
