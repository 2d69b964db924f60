//! The client's requests and what it makes of replies, byte by byte, with servers that lie.

use block::Durability::{Durable, Volatile};
use block::operation::{Ask, OperationError, Space, ZeroingPace};
use nbd::client::{BUFFER, Event, NotSent, ReplyError, Requests, Session};
use nbd::request::{Asked, Wanted};
use nbd::{Descriptor, Style};

use crate::offered::{bytes, db, session};

const SIMPLE: Style = Style::Simple;
const STRUCTURED: Style = Style::Structured;
const EXTENDED: Style = Style::Extended;
const READ: Asked = Asked::Of(Ask::Read);
const STATUS: Asked = Asked::BlockStatus {
    wanted: Wanted::Many,
};

fn requests(style: Style) -> Requests {
    let agreed = session(style);
    let offer = db();
    Requests::new(Session { offer, agreed }, 2)
}

/// A connection with one request under way, for 4096 bytes at 8192. Its cookie is 1 << 32.
pub fn asked(style: Style, ask: Asked) -> Requests {
    let mut requests = requests(style);
    let cookie = requests.submit(&mut Vec::new(), ask, 8192, 4096);
    assert_eq!(cookie, Ok(COOKIE));
    requests
}

/// The first cookie of a connection.
pub const COOKIE: u64 = 1 << 32;

/// Everything that `text` tells; contents are taken out.
pub fn told(requests: &mut Requests, text: &str) -> Result<Vec<Event>, ReplyError> {
    let all = bytes(text);
    let mut rest = &all[..];
    let mut events = Vec::new();
    loop {
        let (used, event) = requests.receive(rest)?;
        rest = &rest[used..];
        if let Some(Event::Contents { length, .. }) = event {
            rest = &rest[usize::try_from(length).expect("short")..];
        }
        let done = used == 0 && event.is_none();
        events.extend(event);
        if done {
            assert!(rest.is_empty(), "{} bytes left", rest.len());
            return Ok(events);
        }
    }
}

fn finished(result: Result<(), OperationError>) -> Event {
    let cookie = COOKIE;
    Event::Finished { cookie, result }
}

const fn contents(offset: u64, length: u64) -> Event {
    let cookie = COOKIE;
    Event::Contents {
        cookie,
        offset,
        length,
    }
}

/// A structured chunk, and an extended one.
pub fn chunk(style: Style, flags_and_kind: &str, payload: &str) -> String {
    let length = bytes(payload).len();
    if style.extended() {
        format!(
            "6e8a278c {flags_and_kind} 0000000100000000 0000000000002000 {length:016x} {payload}"
        )
    } else {
        format!("668e33ef {flags_and_kind} 0000000100000000 {length:08x} {payload}")
    }
}

#[test]
fn requests_are_what_the_protocol_says() {
    let zero = Asked::Of(Ask::Zero {
        durability: Durable,
        space: Space::Kept,
        pace: ZeroingPace::Fast,
    });
    let one = Asked::BlockStatus {
        wanted: Wanted::One,
    };
    let table = [
        (READ, "0000 0000", "0000 0000"),
        (
            Asked::Of(Ask::Write {
                durability: Volatile,
            }),
            "0000 0001",
            "0020 0001",
        ),
        (
            Asked::Of(Ask::Write {
                durability: Durable,
            }),
            "0001 0001",
            "0021 0001",
        ),
        (
            Asked::Of(Ask::Trim {
                durability: Durable,
            }),
            "0001 0004",
            "0001 0004",
        ),
        (Asked::Of(Ask::Cache), "0000 0005", "0000 0005"),
        (zero, "0013 0006", "0013 0006"),
        (STATUS, "0000 0007", "0000 0007"),
        (one, "0008 0007", "0008 0007"),
    ];
    for (ask, compact, extended) in table {
        let mut out = Vec::new();
        let sent = requests(STRUCTURED).submit(&mut out, ask, 8192, 4096);
        let header = format!("25609513 {compact} 0000000100000000 0000000000002000 00001000");
        assert_eq!((sent, &out), (Ok(COOKIE), &bytes(&header)));
        out.clear();
        let sent = requests(EXTENDED).submit(&mut out, ask, 8192, 4096);
        let header =
            format!("21e41c71 {extended} 0000000100000000 0000000000002000 0000000000001000");
        assert_eq!((sent, &out), (Ok(COOKIE), &bytes(&header)));
    }
    let mut out = Vec::new();
    requests(SIMPLE).disconnect(&mut out);
    assert_eq!(
        out,
        bytes(&("25609513 0000 0002".to_owned() + &"00".repeat(20)))
    );
}

#[test]
fn what_the_server_would_refuse_is_not_sent() {
    let mut requests = requests(SIMPLE);
    let mut out = Vec::new();
    for (ask, offset, length, failed) in [
        (READ, 0, 511, OperationError::Invalid),
        (READ, 16 << 20, 512, OperationError::Invalid),
        (STATUS, 0, 512, OperationError::Invalid),
        (Asked::Disconnect, 0, 0, OperationError::Invalid),
        (
            Asked::Of(Ask::Write {
                durability: Volatile,
            }),
            16 << 20,
            512,
            OperationError::NoSpace,
        ),
    ] {
        let refused = Err(NotSent::Senseless(failed));
        assert_eq!(requests.submit(&mut out, ask, offset, length), refused);
    }
    assert!(out.is_empty());
    assert!(requests.submit(&mut out, READ, 0, 512).is_ok());
    assert!(requests.submit(&mut out, READ, 0, 512).is_ok());
    assert_eq!(requests.submit(&mut out, READ, 0, 512), Err(NotSent::Full));
    assert_eq!((requests.under_way(), out.len()), (2, 56));
}

#[test]
fn a_length_beyond_32_bits_is_not_sent_in_a_compact_header() {
    let mut offer = db();
    offer.size = 1 << 40;
    let trim = Asked::Of(Ask::Trim {
        durability: Volatile,
    });
    for (style, sent) in [(STRUCTURED, false), (EXTENDED, true)] {
        let agreed = session(style);
        let mut requests = Requests::new(
            Session {
                offer: offer.clone(),
                agreed,
            },
            2,
        );
        let submitted = requests.submit(&mut Vec::new(), trim, 0, 1 << 32);
        assert_eq!(submitted.is_ok(), sent);
    }
}

#[test]
fn a_read_comes_in_each_style() {
    let data = "ab".repeat(4096);
    let simple = format!("67446698 00000000 0000000100000000 {data}");
    let structured = chunk(STRUCTURED, "0001 0001", &format!("0000000000002000 {data}"));
    let extended = chunk(EXTENDED, "0001 0001", &format!("0000000000002000 {data}"));
    for (style, text) in [
        (SIMPLE, simple),
        (STRUCTURED, structured),
        (EXTENDED, extended),
    ] {
        let mut requests = asked(style, READ);
        let expected = vec![contents(8192, 4096), finished(Ok(()))];
        assert_eq!(told(&mut requests, &text), Ok(expected), "{style:?}");
        assert_eq!(requests.under_way(), 0);
    }
}

#[test]
fn a_read_comes_in_pieces_in_any_order() {
    for style in [STRUCTURED, EXTENDED] {
        let text = chunk(style, "0000 0002", "0000000000002400 00000c00")
            + &chunk(
                style,
                "0000 0001",
                &("0000000000002000".to_owned() + &"cd".repeat(1024)),
            )
            + &chunk(style, "0001 0000", "");
        let hole = Event::Hole {
            cookie: COOKIE,
            offset: 0x2400,
            length: 0xc00,
        };
        let expected = vec![hole, contents(0x2000, 1024), finished(Ok(()))];
        assert_eq!(told(&mut asked(style, READ), &text), Ok(expected));
    }
}

#[test]
fn errors_are_told_with_their_message_and_place() {
    for (number, failed) in [
        (1, OperationError::NotPermitted),
        (5, OperationError::Io),
        (12, OperationError::Io),
        (22, OperationError::Invalid),
        (28, OperationError::NoSpace),
        (75, OperationError::TooLong),
        (95, OperationError::Unsupported),
        (108, OperationError::ShuttingDown),
        (4711, OperationError::Invalid),
    ] {
        let simple = format!("67446698 {number:08x} 0000000100000000");
        let expected = vec![finished(Err(failed))];
        assert_eq!(told(&mut asked(SIMPLE, READ), &simple), Ok(expected));
        let payload = format!("{number:08x} 0003 'bad'");
        let at = payload.clone() + "0000000000002fff";
        // The known two, and one that nobody knows.
        for (kind, payload, offset) in [
            ("8001", &payload, None),
            ("8002", &at, Some(0x2fff)),
            ("8077", &at, None),
        ] {
            let text = chunk(EXTENDED, &format!("0001 {kind}"), payload);
            let complaint = Event::Complaint {
                cookie: COOKIE,
                failed,
                offset,
                message: "bad".to_owned(),
            };
            let expected = vec![complaint, finished(Err(failed))];
            assert_eq!(
                told(&mut asked(EXTENDED, READ), &text),
                Ok(expected),
                "{kind}"
            );
        }
    }
}

#[test]
fn block_status_is_told_piece_by_piece() {
    let structured = chunk(
        STRUCTURED,
        "0001 0005",
        "00000001 00000400 00000003 00002000 00000000",
    );
    let extended = chunk(
        EXTENDED,
        "0001 0006",
        "00000001 00000002 0000000000000400 0000000000000003 0000000000002000 0000000000000000",
    );
    let state = |length, state| Event::State {
        cookie: COOKIE,
        context: 1,
        descriptor: Descriptor { length, state },
    };
    let expected = vec![state(0x400, 3), state(0x2000, 0), finished(Ok(()))];
    for (style, text) in [(STRUCTURED, structured), (EXTENDED, extended)] {
        assert_eq!(told(&mut asked(style, STATUS), &text), Ok(expected.clone()));
    }
}

#[test]
fn the_longest_that_is_awaited_fits_the_buffer() {
    let text = chunk(
        EXTENDED,
        "0001 8002",
        &format!("00000005 1000 {} 0000000000002000", "61".repeat(4096)),
    );
    let whole = bytes(&text);
    assert_eq!(whole.len(), BUFFER);
    assert_eq!(
        asked(EXTENDED, READ).receive(&whole[..BUFFER - 1]),
        Ok((0, None))
    );
    let (used, event) = asked(EXTENDED, READ).receive(&whole).expect("an error");
    assert_eq!(used, BUFFER);
    assert!(matches!(event, Some(Event::Complaint { .. })));
}
