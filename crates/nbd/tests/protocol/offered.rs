//! The exports of the tests, and bytes as the protocol's document writes them.

use std::sync::Arc;

use nbd::Context;
use nbd::negotiation::{Agreed, ServerNegotiation, ServerPhase, ServerSecurity, Sizes};
use nbd::offer::{BlockSizes, Features, Offer, Text};
use nbd::{Style, request};

/// Hexadecimal digits as bytes; text between quotes is itself.
pub fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, piece) in text.split('\'').enumerate() {
        if index % 2 == 1 {
            out.extend_from_slice(piece.as_bytes());
            continue;
        }
        let digits: Vec<u8> = piece
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .map(|byte| char::from(byte).to_digit(16).expect("a digit") as u8)
            .collect();
        assert!(digits.len().is_multiple_of(2), "{piece}");
        out.extend(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]));
    }
    out
}

/// Everything that an export can do.
pub const ALL: Features = Features {
    read_only: false,
    flush: true,
    fua: true,
    trim: true,
    write_zeroes: true,
    fast_zero: true,
    multi_conn: true,
    cache: true,
    rotational: true,
    df: true,
};

/// 16 MiB in blocks of 512 bytes, at most 1 MiB at once.
pub fn db() -> Offer {
    Offer {
        name: Text::new("db").expect("short"),
        description: Text::new("foreground").expect("short"),
        size: 16 << 20,
        block: BlockSizes::new(512, 4096, 1 << 20).expect("fit"),
        features: ALL,
        contexts: vec![Context::Allocation],
    }
}

/// An export that can only be read, of an odd size.
pub fn iso() -> Offer {
    Offer {
        name: Text::new("iso").expect("short"),
        description: Text::default(),
        size: 1_000_001,
        block: BlockSizes::default(),
        features: Features {
            read_only: true,
            ..Features::default()
        },
        contexts: Vec::new(),
    }
}

/// A server with both.
pub fn server(security: ServerSecurity) -> ServerNegotiation {
    ServerNegotiation::new(Arc::new([db(), iso()]), security)
}

/// A server that has greeted, and whose client has sent its flags (fixed newstyle, no zeroes).
pub fn greeted(security: ServerSecurity) -> ServerNegotiation {
    let mut server = server(security);
    server.output().clear();
    assert_eq!(server.receive(&bytes("00000003")), 4);
    server
}

/// What the server answers; it must take everything.
pub fn answer(server: &mut ServerNegotiation, sent: &str) -> Vec<u8> {
    let sent = bytes(sent);
    assert_eq!(server.receive(&sent), sent.len());
    std::mem::take(server.output())
}

/// The header of an option.
pub fn option(number: u32, length: u32) -> String {
    format!("'IHAVEOPT' {number:08x} {length:08x}")
}

/// The reply types in `answered`, each with its payload.
pub fn replies(option: u32, mut answered: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut found = Vec::new();
    while !answered.is_empty() {
        assert_eq!(answered[..8], bytes("0003e889045565a9"));
        assert_eq!(answered[8..12], option.to_be_bytes());
        let word = |at: usize| u32::from_be_bytes(answered[at..at + 4].try_into().expect("four"));
        let length = word(16) as usize;
        found.push((word(12), answered[20..20 + length].to_vec()));
        answered = &answered[20 + length..];
    }
    found
}

/// The one reply type in `answered`.
pub fn only_reply(option: u32, answered: &[u8]) -> u32 {
    match &replies(option, answered)[..] {
        [(kind, _)] => *kind,
        other => panic!("{} replies", other.len()),
    }
}

/// What the server agreed to.
pub fn agreed(server: &ServerNegotiation) -> Agreed {
    match server.step() {
        ServerPhase::Agreed(agreed) => agreed,
        other => panic!("{other:?}"),
    }
}

/// A session of `style` on the first export, with its context if that is possible.
pub fn session(style: Style) -> Agreed {
    Agreed {
        export: 0,
        style,
        contexts: if style.structured() {
            vec![(1, Context::Allocation)]
        } else {
            Vec::new()
        },
        sizes: Sizes::Asked,
    }
}

/// The request at the front of `text`.
pub fn parsed(text: &str, style: Style) -> request::Header {
    let bytes = bytes(text);
    let (header, size) = request::parse(&bytes, style)
        .expect("a request")
        .expect("a whole one");
    assert_eq!(size, if style.extended() { 32 } else { 28 });
    header
}
