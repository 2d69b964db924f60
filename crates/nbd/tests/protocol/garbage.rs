//! Arbitrary bytes, and messages that are broken in one place, for both sides.

use std::sync::Arc;

use block::operation::Ask;
use nbd::Style;
use nbd::client::{self, Requests, Session};
use nbd::negotiation::{OUTPUT, ServerNegotiation, ServerPhase, ServerSecurity};
use nbd::offer::PAYLOAD;
use nbd::request::{self, Asked};
use proptest::prelude::*;

use crate::offered::{bytes, db, iso, option, session};

/// Pieces of which a client's stream is made: most of them sound, some cut, some anything.
fn spoken() -> impl Strategy<Value = Vec<u8>> {
    let sound = prop::sample::select(vec![
        option(2, 0),
        option(3, 0),
        option(5, 0),
        option(6, 12) + "00000002 'db' 0002 0001 0003",
        option(7, 8) + "00000002 'db' 0000",
        option(7, 8) + "00000002 'no' 0000",
        option(8, 0),
        option(9, 10) + "00000002 'db' 00000000",
        option(10, 29) + "00000002 'db' 00000001 0000000f 'base:allocation'",
        option(11, 0),
        option(99, 20_000) + &"00".repeat(20_000),
        option(1, 2) + "'db'",
    ])
    .prop_map(|text| bytes(&text));
    let broken = (sound.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(
        |(mut message, at, value)| {
            let at = at.index(message.len());
            message[at] = value;
            message
        },
    );
    let anything = prop::collection::vec(any::<u8>(), 0..60);
    let piece = prop_oneof![6 => sound, 2 => broken, 1 => anything];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Pieces of a server's stream.
fn answered() -> impl Strategy<Value = Vec<u8>> {
    let sound = prop::sample::select(vec![
        "0003e889045565a9 0000000b 00000001 00000000",
        "0003e889045565a9 0000000b 80000001 00000003 'no.'",
        "0003e889045565a9 00000008 00000001 00000000",
        "0003e889045565a9 0000000a 00000004 00000013 00000001 'base:allocation'",
        "0003e889045565a9 0000000a 00000001 00000000",
        "0003e889045565a9 00000007 00000003 0000000c 0000 0000000001000000 0fff",
        "0003e889045565a9 00000007 00000003 0000000e 0003 00000200 00001000 00100000",
        "0003e889045565a9 00000007 00000001 00000000",
        "0003e889045565a9 00000007 80000001 00000000",
        "0000000001000000 0fff",
    ])
    .prop_map(bytes);
    let broken = (sound.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(
        |(mut message, at, value)| {
            let at = at.index(message.len());
            message[at] = value;
            message
        },
    );
    let piece = prop_oneof![8 => sound, 1 => broken];
    prop::collection::vec(piece, 0..10)
        .prop_map(|pieces| [&bytes("'NBDMAGIC' 'IHAVEOPT' 0003")[..], &pieces.concat()].concat())
}

/// What a server makes of `stream`, cut into pieces of `size`: all of its output, what it took, and
/// its last step.
fn heard(stream: &[u8], size: usize, security: ServerSecurity) -> (Vec<u8>, usize, ServerPhase) {
    let mut server = ServerNegotiation::new(Arc::new([db(), iso()]), security);
    let mut sent = Vec::new();
    let mut taken = 0;
    loop {
        sent.append(server.output());
        if server.step() == ServerPhase::StartTls {
            server.secured();
        }
        let end = (taken + size).min(stream.len());
        let step = server.receive(&stream[taken..end]);
        assert!(step <= end - taken);
        // One answer more than may wait: the longest lists both exports.
        assert!(server.output().len() < OUTPUT + 1024);
        taken += step;
        if step == 0 && server.output().is_empty() && server.step() != ServerPhase::StartTls {
            return (sent, taken, server.step());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_server_hears_the_same_however_the_stream_is_cut(
        flags in prop::sample::select(vec![0_u32, 1, 3, 3, 3, 7]),
        stream in spoken(),
        size in 1_usize..200,
        security in prop::sample::select(vec![
            ServerSecurity::Plain, ServerSecurity::Optional, ServerSecurity::Required,
        ]),
    ) {
        let stream = [&flags.to_be_bytes()[..], &stream].concat();
        let whole = heard(&stream, stream.len(), security);
        prop_assert_eq!(&heard(&stream, size, security), &whole);
        let (_, taken, step) = whole;
        // It waits for more only if it has taken everything.
        prop_assert!(step != ServerPhase::More || taken == stream.len());
    }

    #[test]
    fn a_client_hears_the_same_however_the_stream_is_cut(
        stream in answered(),
        size in 1_usize..200,
    ) {
        let wish = client::ClientOptions {
            export: db().name,
            style: Style::Extended,
            contexts: db().contexts,
            security: client::ClientSecurity::Plain,
        };
        let heard = |size: usize| {
            let mut client = client::ClientNegotiation::new(wish.clone());
            let taken: usize = stream.chunks(size).map(|piece| client.receive(piece)).sum();
            (taken, std::mem::take(client.output()), client.step())
        };
        let whole = heard(stream.len());
        prop_assert_eq!(&heard(size), &whole);
        prop_assert!(whole.2 != client::ClientPhase::More || whole.0 == stream.len());
    }

    #[test]
    fn any_bytes_are_requests_or_hostile(
        head in prop::sample::select(vec!["25609513", "21e41c71", ""]),
        tail in prop::collection::vec(any::<u8>(), 0..40),
        style in prop::sample::select(vec![Style::Simple, Style::Structured, Style::Extended]),
    ) {
        let stream = [&bytes(head)[..], &tail].concat();
        if let Ok(Some((header, size))) = request::parse(&stream, style) {
            prop_assert!(header.payload <= u64::from(PAYLOAD));
            // What is written again is the same.
            let mut again = Vec::new();
            header.encode(&mut again, style);
            prop_assert_eq!(&again, &stream[..size]);
            let _: Result<_, _> = request::check(&header, &session(style), &db());
        }
    }

    /// A server that answers anything: no contents come twice or from outside, and no more than
    /// was asked for.
    #[test]
    fn any_replies_tell_of_what_was_asked_or_are_hostile(
        style in prop::sample::select(vec![Style::Simple, Style::Structured, Style::Extended]),
        pieces in prop::collection::vec((
            prop::sample::select(vec![0_u16, 1, 1, 2, 2, 5, 6, 0x8001, 0x8002, 77]),
            0_u16..2,
            0_u64..12,
            0_u64..12,
        ), 0..12),
    ) {
        let agreed = session(style);
        let mut requests = Requests::new(Session { offer: db(), agreed }, 4);
        let read = Asked::Of(Ask::Read);
        let cookie = requests.submit(&mut Vec::new(), read, 4096, 4096).expect("a read");
        let mut stream = Vec::new();
        for (kind, flags, from, count) in pieces {
            let (from, length) = (4096 + 512 * from - 512, 512 * count);
            piece(&mut stream, style, (flags, kind, cookie), from, length);
        }
        let mut seen = vec![false; 4096];
        let mut rest = &stream[..];
        while let Ok((used, event)) = requests.receive(rest) {
            rest = &rest[used..];
            match event {
                Some(client::Event::Contents { offset, length, .. }) => {
                    let (begin, length) = ((offset - 4096) as usize, length as usize);
                    prop_assert!(!seen[begin..begin + length].contains(&true));
                    seen[begin..begin + length].fill(true);
                    let Some(after) = rest.get(length..) else { break };
                    rest = after;
                }
                Some(client::Event::Hole { offset, length, .. }) => {
                    let (begin, length) = ((offset - 4096) as usize, length as usize);
                    prop_assert!(!seen[begin..begin + length].contains(&true));
                    seen[begin..begin + length].fill(true);
                }
                Some(client::Event::Finished { result, .. }) => {
                    prop_assert!(result.is_err() || !seen.contains(&false));
                }
                Some(_) => {}
                None if used == 0 => break,
                None => {}
            }
        }
    }
}

/// Appends a reply that may be sound.
fn piece(out: &mut Vec<u8>, style: Style, head: (u16, u16, u64), from: u64, length: u64) {
    let (flags, kind, cookie) = head;
    if style == Style::Simple {
        out.extend(bytes("67446698"));
        out.extend((u32::from(kind) & 4).to_be_bytes());
        out.extend(cookie.to_be_bytes());
        out.extend(vec![7; 4096]);
        return;
    }
    let payload = match kind {
        0 => Vec::new(),
        1 => [&from.to_be_bytes()[..], &vec![7; length as usize]].concat(),
        2 => [&from.to_be_bytes()[..], &(length as u32).to_be_bytes()].concat(),
        0x8001 => bytes("00000005 0000"),
        0x8002 => [&bytes("00000005 0000")[..], &from.to_be_bytes()].concat(),
        _ => bytes("00000001 00000001 00001000 00000000"),
    };
    out.extend(bytes(if style.extended() {
        "6e8a278c"
    } else {
        "668e33ef"
    }));
    out.extend(flags.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    if style.extended() {
        out.extend(4096_u64.to_be_bytes());
        out.extend((payload.len() as u64).to_be_bytes());
    } else {
        out.extend((payload.len() as u32).to_be_bytes());
    }
    out.extend(payload);
}
