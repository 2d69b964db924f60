//! Client against server in memory, over streams that are cut anywhere.

use std::sync::Arc;

use block::Durability::{Durable, Volatile};
use block::operation::{Ask, OperationError, Space, ZeroingPace};
use nbd::client::{self, ClientOptions, Event, Requests, Session};
use nbd::negotiation::{Agreed, ServerNegotiation, ServerPhase, ServerSecurity};
use nbd::offer::Text;
use nbd::reply::{ChunkPosition, Reply};
use nbd::request::{self, Asked, Header, Wanted};
use nbd::{Context, Descriptor, HOLE, Style, ZERO};
use proptest::prelude::*;

use crate::offered::{db, iso};

/// Where a stream is cut: the sizes of its pieces, over and over.
fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1_usize..80, 1..6)
}

fn wishes() -> impl Strategy<Value = ClientOptions> {
    let names = prop::sample::select(vec!["", "db", "iso"]);
    let styles = prop::sample::select(vec![Style::Simple, Style::Structured, Style::Extended]);
    let security = prop::sample::select(vec![
        client::ClientSecurity::Plain,
        client::ClientSecurity::IfOffered,
        client::ClientSecurity::Required,
    ]);
    (names, styles, any::<bool>(), security).prop_map(|(name, style, contexts, security)| {
        ClientOptions {
            export: Text::new(name).expect("short"),
            style,
            contexts: contexts
                .then_some(Context::Allocation)
                .into_iter()
                .collect(),
            security,
        }
    })
}

/// Both sides talk until neither has anything to say.
fn talk(client: &mut client::ClientNegotiation, server: &mut ServerNegotiation, cuts: &[usize]) {
    let mut sizes = cuts.iter().cycle().copied();
    let (mut down, mut up) = (Vec::new(), Vec::new());
    loop {
        down.append(server.output());
        let piece = sizes.next().expect("endless").min(down.len());
        let taken = client.receive(&down[..piece]);
        down.drain(..taken);
        up.append(client.output());
        let piece = sizes.next().expect("endless").min(up.len());
        let taken_up = server.receive(&up[..piece]);
        up.drain(..taken_up);
        // TLS begins when both have said so and nothing plain is under way.
        if client.step() == client::ClientPhase::StartTls && server.step() == ServerPhase::StartTls
        {
            assert!(down.is_empty() && up.is_empty());
            client.secured();
            server.secured();
        } else if taken + taken_up == 0 && server.output().is_empty() {
            return;
        }
    }
}

proptest! {
    #[test]
    fn both_sides_agree_on_the_same(
        wish in wishes(),
        security in prop::sample::select(vec![
            ServerSecurity::Plain, ServerSecurity::Optional, ServerSecurity::Required,
        ]),
        cuts in cuts(),
    ) {
        let mut client = client::ClientNegotiation::new(wish.clone());
        let mut server = ServerNegotiation::new(Arc::new([db(), iso()]), security);
        talk(&mut client, &mut server, &cuts);
        let plain = wish.security == client::ClientSecurity::Plain;
        let secure = wish.security == client::ClientSecurity::Required;
        if (security == ServerSecurity::Required && plain) || (security == ServerSecurity::Plain && secure) {
            prop_assert!(matches!(client.step(), client::ClientPhase::Closed(_)));
            prop_assert!(matches!(server.step(), ServerPhase::Closed(_)));
            return Ok(());
        }
        let (client::ClientPhase::Agreed(session), ServerPhase::Agreed(agreed)) = (client.step(), server.step())
        else {
            return Err(TestCaseError::fail("no session"));
        };
        let offer = [db(), iso()][agreed.export].clone();
        prop_assert_eq!(agreed.export, usize::from(wish.export.as_str() == "iso"));
        prop_assert_eq!(agreed.style, wish.style);
        prop_assert_eq!(session.agreed.style, wish.style);
        prop_assert_eq!(&session.agreed.contexts, &agreed.contexts);
        prop_assert_eq!(session.offer.size, offer.size);
        prop_assert_eq!(session.offer.block, offer.block);
        prop_assert_eq!(session.offer.description, offer.description);
        prop_assert_eq!(
            session.offer.features.flags(wish.style),
            offer.features.flags(wish.style)
        );
        let wanted = wish.contexts.len().min(offer.contexts.len());
        let contexts = if wish.style.structured() { wanted } else { 0 };
        prop_assert_eq!(agreed.contexts.len(), contexts);
    }
}

/// A volume of 64 blocks of 512 bytes that is served by hand, and its client.
struct Pair {
    requests: Requests,
    agreed: Agreed,
    up: Vec<u8>,
    down: Vec<u8>,
    volume: Vec<u8>,
}

const BLOCK: u64 = 512;
const BLOCKS: u64 = 64;

impl Pair {
    fn new(style: Style) -> Self {
        let agreed = crate::offered::session(style);
        let mut offer = db();
        offer.size = BLOCK * BLOCKS;
        let session = Session {
            offer,
            agreed: agreed.clone(),
        };
        Self {
            requests: Requests::new(session, 16),
            agreed,
            up: Vec::new(),
            down: Vec::new(),
            volume: vec![0; (BLOCK * BLOCKS) as usize],
        }
    }

    /// Serves everything that has come, reads in pieces of `piece` blocks, from their ends if
    /// `order` says so.
    fn serve(&mut self, piece: u64, order: Order) {
        let mut at = 0;
        while let Ok(Some((header, size))) = request::parse(&self.up[at..], self.agreed.style) {
            let payload = usize::try_from(header.payload).expect("short");
            let end = at + size + payload;
            let bytes = self.up[at + size..end].to_vec();
            at = end;
            let checked = request::check(&header, &self.agreed, &self.requests.session().offer);
            let reply = Reply::to(&header, self.agreed.style);
            match checked {
                Err(failed) => reply.failed(&mut self.down, failed, "refused"),
                Ok(()) => self.answer(&header, reply, &bytes, (piece * BLOCK, order)),
            }
        }
        assert_eq!(at, self.up.len());
        self.up.clear();
    }

    fn answer(&mut self, header: &Header, reply: Reply, bytes: &[u8], pieces: (u64, Order)) {
        let span = header.offset as usize..(header.offset + header.length) as usize;
        match header.ask {
            Asked::Of(Ask::Read) => self.read(header, reply, pieces),
            Asked::Of(Ask::Write { .. }) => {
                self.volume[span].copy_from_slice(bytes);
                reply.done(&mut self.down);
            }
            Asked::Of(Ask::Zero {
                pace: ZeroingPace::Fast,
                ..
            }) => {
                reply.failed(&mut self.down, OperationError::Unsupported, "slow");
            }
            Asked::Of(Ask::Zero { .. }) => {
                self.volume[span].fill(0);
                reply.done(&mut self.down);
            }
            Asked::BlockStatus { .. } => {
                let states = self.volume[header.offset as usize..]
                    .chunks(BLOCK as usize)
                    .map(|block| Descriptor {
                        length: BLOCK,
                        state: state(block),
                    });
                let chunks = reply.chunks().expect("structured");
                let told = chunks.block_status(
                    &mut self.down,
                    1,
                    BLOCK as u32,
                    states,
                    ChunkPosition::Last,
                );
                told.expect("a block");
            }
            _ => reply.done(&mut self.down),
        }
    }

    /// Pieces of zeroes become holes.
    fn read(&mut self, header: &Header, reply: Reply, (size, order): (u64, Order)) {
        let end = header.offset + header.length;
        let Some(chunks) = reply.chunks() else {
            reply.contents(&mut self.down);
            let span = header.offset as usize..end as usize;
            self.down.extend_from_slice(&self.volume[span]);
            return;
        };
        let mut begins: Vec<u64> = (header.offset..end).step_by(size as usize).collect();
        if order == Order::Backward {
            begins.reverse();
        }
        for begin in begins {
            let length = size.min(end - begin);
            let piece = &self.volume[begin as usize..(begin + length) as usize];
            if state(piece) == 0 {
                chunks.contents(&mut self.down, begin, length as u32, ChunkPosition::Before);
                self.down.extend_from_slice(piece);
            } else {
                chunks.hole(&mut self.down, begin, length as u32, ChunkPosition::Before);
            }
        }
        chunks.end(&mut self.down);
    }

    /// What the replies tell, cut anywhere: the ends of all requests, and `found` filled with
    /// contents.
    fn replies(&mut self, cuts: &[usize], mut take: impl FnMut(Event, &[u8])) {
        let mut sizes = cuts.iter().cycle();
        let mut visible = 0;
        while visible < self.down.len() || !self.down.is_empty() {
            let (used, event) = self
                .requests
                .receive(&self.down[..visible])
                .expect("an honest server");
            self.down.drain(..used);
            visible -= used;
            match event {
                Some(Event::Contents { length, .. }) => {
                    let length = length as usize;
                    take(event.expect("contents"), &self.down[..length]);
                    self.down.drain(..length);
                    visible = visible.saturating_sub(length);
                }
                Some(event) => take(event, &[]),
                None if used == 0 => {
                    let more = sizes.next().expect("endless");
                    assert!(
                        visible < self.down.len(),
                        "all is there, and more is awaited"
                    );
                    visible = (visible + more).min(self.down.len());
                }
                None => {}
            }
        }
        // A last chunk's end needs no more bytes.
        if let (0, Some(event)) = self.requests.receive(&[]).expect("an honest server") {
            take(event, &[]);
        }
    }
}

/// In which order the pieces of a read come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Forward,
    Backward,
}

fn state(block: &[u8]) -> u32 {
    if block.iter().all(|byte| *byte == 0) {
        HOLE | ZERO
    } else {
        0
    }
}

fn asks() -> impl Strategy<Value = Asked> {
    let zero = |durability, space, pace| {
        Asked::Of(Ask::Zero {
            durability,
            space,
            pace,
        })
    };
    prop::sample::select(vec![
        Asked::Of(Ask::Read),
        Asked::Of(Ask::Read),
        Asked::Of(Ask::Write {
            durability: Volatile,
        }),
        Asked::Of(Ask::Write {
            durability: Durable,
        }),
        zero(Volatile, Space::Kept, ZeroingPace::Any),
        zero(Durable, Space::MayBeFreed, ZeroingPace::Fast),
        Asked::Of(Ask::Trim {
            durability: Volatile,
        }),
        Asked::Of(Ask::Cache),
        Asked::Of(Ask::Flush),
        Asked::BlockStatus {
            wanted: Wanted::Many,
        },
        Asked::BlockStatus {
            wanted: Wanted::One,
        },
    ])
}

/// What one request told its client.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heard {
    contents: Vec<u8>,
    states: Vec<u32>,
    result: Option<Result<(), OperationError>>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// One request after the other, against a naive volume: what is read is what was written, and
    /// states are those of the blocks.
    #[test]
    fn what_is_read_is_what_was_written(
        style in prop::sample::select(vec![Style::Simple, Style::Structured, Style::Extended]),
        steps in prop::collection::vec((asks(), 0..BLOCKS, 1..=BLOCKS, 1_u8..), 1..12),
        piece in 1..8_u64,
        order in prop::sample::select(vec![Order::Forward, Order::Backward]),
        cuts in cuts(),
    ) {
        let mut pair = Pair::new(style);
        let mut naive = vec![0_u8; (BLOCK * BLOCKS) as usize];
        for (ask, begin, count, fill) in steps {
            let flush = ask == Asked::Of(Ask::Flush);
            let count = count.min(BLOCKS - begin);
            let (offset, length) = if flush { (0, 0) } else { (begin * BLOCK, count * BLOCK) };
            let span = offset as usize..(offset + length) as usize;
            let submitted = pair.requests.submit(&mut pair.up, ask, offset, length);
            if !style.structured() && matches!(ask, Asked::BlockStatus { .. }) {
                prop_assert!(submitted.is_err());
                continue;
            }
            let mut expected = Heard { result: Some(Ok(())), ..Heard::default() };
            match ask {
                Asked::Of(Ask::Write { .. }) => {
                    pair.up.extend(vec![fill; length as usize]);
                    naive[span].fill(fill);
                }
                Asked::Of(Ask::Zero { pace: ZeroingPace::Any, .. }) => naive[span].fill(0),
                Asked::Of(Ask::Zero { .. }) => expected.result = Some(Err(OperationError::Unsupported)),
                Asked::Of(Ask::Read) => expected.contents = naive[span].to_vec(),
                Asked::BlockStatus { wanted } => {
                    // By blocks, as far as the reply goes: to the end of what was asked at least.
                    let all = naive[span.start..].chunks(BLOCK as usize).map(state);
                    expected.states = all.collect();
                    if wanted == Wanted::One {
                        expected.states.truncate(count as usize);
                    }
                }
                _ => {}
            }
            pair.serve(piece, order);
            let mut heard = Heard {
                contents: vec![1; expected.contents.len()],
                ..Heard::default()
            };
            pair.replies(&cuts, |event, bytes| match event {
                Event::Contents { offset: at, .. } => {
                    let at = (at - offset) as usize;
                    heard.contents[at..at + bytes.len()].copy_from_slice(bytes);
                }
                Event::Hole { offset: at, length, .. } => {
                    let at = (at - offset) as usize;
                    heard.contents[at..at + length as usize].fill(0);
                }
                Event::State { descriptor, .. } => {
                    let blocks = descriptor.length / BLOCK;
                    heard.states.extend(vec![descriptor.state; blocks as usize]);
                }
                Event::Complaint { .. } => {}
                Event::Finished { result, .. } => heard.result = Some(result),
            });
            let told = heard.states.len();
            match ask {
                Asked::BlockStatus { wanted: Wanted::Many } => prop_assert!(told >= count as usize),
                Asked::BlockStatus { .. } => prop_assert!(told >= 1),
                _ => {}
            }
            expected.states.truncate(told);
            prop_assert_eq!(heard, expected);
            prop_assert_eq!(pair.requests.under_way(), 0);
        }
    }
}
