//! Any bytes as one side of an NBD connection. The first byte says which side, the second into
//! pieces of which size the stream is cut; the rest is the stream.
//!
//! Nothing panics, no more waits than may, and a read ends well only if all of it came.

#![no_main]

use std::sync::Arc;

use block::operation::Ask;
use libfuzzer_sys::fuzz_target;
use nbd::client::{self, ClientOptions, Event, Requests};
use nbd::negotiation::{OUTPUT, ServerNegotiation, ServerPhase, ServerSecurity};
use nbd::offer::{BlockSizes, Features, Offer, PAYLOAD, Text};
use nbd::reply::Reply;
use nbd::request::{self, Asked, Wanted};
use nbd::{Context, Style};

/// An export of 1 MiB that can do everything.
fn offer() -> Offer {
    Offer {
        name: Text::new("db").expect("short"),
        description: Text::new("foreground").expect("short"),
        size: 1 << 20,
        block: BlockSizes::new(512, 4096, 1 << 20).expect("fit"),
        features: Features::of_flags(0x0dfd),
        contexts: vec![Context::Allocation, Context::dirty_bitmap("daily")],
    }
}

/// The bytes are those of a client.
fn serve(stream: &[u8], size: usize, security: ServerSecurity) {
    let exports: Arc<[Offer]> = Arc::new([offer()]);
    let mut server = ServerNegotiation::new(Arc::clone(&exports), security);
    let mut rest = stream;
    while server.step() == ServerPhase::More && !rest.is_empty() {
        server.output().clear();
        let taken = server.receive(&rest[..size.min(rest.len())]);
        assert!(taken > 0);
        assert!(server.output().len() < OUTPUT + 1024);
        rest = &rest[taken..];
        server.secured();
    }
    let ServerPhase::Agreed(agreed) = server.step() else {
        return;
    };
    let mut out = Vec::new();
    while let Ok(Some((header, size))) = request::parse(rest, agreed.style) {
        assert!(header.payload <= u64::from(PAYLOAD));
        let mut again = Vec::new();
        header.encode(&mut again, agreed.style);
        assert_eq!(again, rest[..size]);
        let reply = Reply::to(&header, agreed.style);
        match request::check(&header, &agreed, &exports[0]) {
            Err(failed) => reply.failed(&mut out, failed, "refused"),
            Ok(()) if header.ask == Asked::Of(Ask::Read) => {
                assert!(header.offset + header.length <= 1 << 20);
                reply.contents(&mut out);
            }
            Ok(()) => reply.done(&mut out),
        }
        out.clear();
        let Some(next) = rest.get(size + header.payload as usize..) else {
            return;
        };
        rest = next;
    }
}

/// The bytes are those of a server.
fn ask(stream: &[u8], size: usize, style: Style) {
    let mut client = client::ClientNegotiation::new(ClientOptions {
        export: offer().name,
        style,
        contexts: vec![Context::Allocation, Context::dirty_bitmap("daily")],
        security: client::ClientSecurity::IfOffered,
    });
    let mut rest = stream;
    while client.step() == client::ClientPhase::More && !rest.is_empty() {
        let taken = client.receive(&rest[..size.min(rest.len())]);
        assert!(taken > 0);
        assert!(client.output().len() < OUTPUT);
        rest = &rest[taken..];
        client.secured();
    }
    if let client::ClientPhase::Agreed(session) = client.step() {
        replies(rest, Requests::new(session, 8));
    }
}

/// Replies to a read and to a question about the first blocks.
fn replies(mut rest: &[u8], mut requests: Requests) {
    let status = Asked::BlockStatus {
        wanted: Wanted::Many,
    };
    let mut out = Vec::new();
    let read = requests.submit(&mut out, Asked::Of(Ask::Read), 0, 4096);
    let _: Result<_, _> = requests.submit(&mut out, status, 0, 4096);
    let mut seen = 0;
    while let Ok((used, event)) = requests.receive(rest) {
        rest = &rest[used..];
        match event {
            None if used == 0 => return,
            Some(Event::Contents { length, .. }) => {
                seen += length;
                let Some(next) = rest.get(length as usize..) else {
                    return;
                };
                rest = next;
            }
            Some(Event::Hole { length, .. }) => seen += length,
            Some(Event::Finished {
                cookie,
                result: Ok(()),
            }) if Ok(cookie) == read => assert_eq!(seen, 4096),
            _ => {}
        }
        assert!(seen <= 4096);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let [side, size, stream @ ..] = bytes else {
        return;
    };
    let size = usize::from(*size).max(1);
    match side % 6 {
        0 => serve(stream, size, ServerSecurity::Plain),
        1 => serve(stream, size, ServerSecurity::Optional),
        2 => serve(stream, size, ServerSecurity::Required),
        3 => ask(stream, size, Style::Simple),
        4 => ask(stream, size, Style::Structured),
        _ => ask(stream, size, Style::Extended),
    }
});
