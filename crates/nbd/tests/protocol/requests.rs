//! Requests, byte by byte.

use block::Durability::{Durable, Volatile};
use block::operation::{Ask, Space, ZeroingPace};
use nbd::Style;
use nbd::offer::PAYLOAD;
use nbd::request::{self, Asked, Header, RequestError, Wanted};

use crate::offered::{bytes, parsed};

const fn zero(durability: block::Durability, space: Space, pace: ZeroingPace) -> Asked {
    Asked::Of(Ask::Zero {
        durability,
        space,
        pace,
    })
}

#[test]
fn each_command_is_what_the_protocol_says() {
    let table = [
        ("0000 0000", Asked::Of(Ask::Read)),
        ("0004 0000", Asked::Of(Ask::Read)),
        ("0000 0002", Asked::Disconnect),
        ("0000 0003", Asked::Of(Ask::Flush)),
        (
            "0000 0004",
            Asked::Of(Ask::Trim {
                durability: Volatile,
            }),
        ),
        (
            "0001 0004",
            Asked::Of(Ask::Trim {
                durability: Durable,
            }),
        ),
        ("0000 0005", Asked::Of(Ask::Cache)),
        (
            "0000 0006",
            zero(Volatile, Space::MayBeFreed, ZeroingPace::Any),
        ),
        (
            "0001 0006",
            zero(Durable, Space::MayBeFreed, ZeroingPace::Any),
        ),
        ("0002 0006", zero(Volatile, Space::Kept, ZeroingPace::Any)),
        (
            "0010 0006",
            zero(Volatile, Space::MayBeFreed, ZeroingPace::Fast),
        ),
        (
            "0000 0007",
            Asked::BlockStatus {
                wanted: Wanted::Many,
            },
        ),
        (
            "0008 0007",
            Asked::BlockStatus {
                wanted: Wanted::One,
            },
        ),
        ("0000 0008", Asked::Unknown(8)),
        ("0000 ffff", Asked::Unknown(0xffff)),
    ];
    for (head, ask) in table {
        let header = Header {
            ask,
            flags: u16::from_str_radix(&head[..4], 16).expect("digits"),
            cookie: 0x0102_0304_0506_0708,
            offset: 0x1112_1314_1516_1718,
            length: 0x2122_2324,
            payload: 0,
        };
        let compact = format!("25609513 {head} 0102030405060708 1112131415161718 21222324");
        assert_eq!(parsed(&compact, Style::Simple), header, "{head}");
        assert_eq!(parsed(&compact, Style::Structured), header, "{head}");
        let extended =
            format!("21e41c71 {head} 0102030405060708 1112131415161718 2122232425262728");
        let length = 0x2122_2324_2526_2728;
        let header = Header { length, ..header };
        assert_eq!(parsed(&extended, Style::Extended), header, "{head}");
    }
}

#[test]
fn a_write_has_its_bytes_behind_it_and_in_the_extended_style_what_the_flag_says() {
    let ask = Asked::Of(Ask::Write {
        durability: Durable,
    });
    let compact = "25609513 0001 0001 00000000000000aa 0000000000001000 00002000";
    let header = parsed(compact, Style::Simple);
    assert_eq!(
        (header.ask, header.length, header.payload),
        (ask, 0x2000, 0x2000)
    );
    let with = "21e41c71 0021 0001 00000000000000aa 0000000000001000 0000000000002000";
    let header = parsed(with, Style::Extended);
    assert_eq!(
        (header.ask, header.length, header.payload),
        (ask, 0x2000, 0x2000)
    );
    let without = "21e41c71 0001 0001 00000000000000aa 0000000000001000 0000000000002000";
    assert_eq!(parsed(without, Style::Extended).payload, 0);
    // Any command may have one, and it has to be passed over.
    let odd = "21e41c71 0020 0063 00000000000000aa 0000000000001000 0000000000002000";
    assert_eq!(parsed(odd, Style::Extended).payload, 0x2000);
    // In the compact style the flag means nothing.
    let odd = "25609513 0020 0000 00000000000000aa 0000000000001000 00002000";
    assert_eq!(parsed(odd, Style::Simple).payload, 0);
}

#[test]
fn a_part_of_a_request_waits_for_the_rest() {
    for (text, style) in [
        (
            "25609513 0000 0000 0102030405060708 1112131415161718 21222324",
            Style::Structured,
        ),
        (
            "21e41c71 0000 0000 0102030405060708 1112131415161718 2122232425262728",
            Style::Extended,
        ),
    ] {
        let whole = bytes(text);
        for length in 0..whole.len() {
            assert_eq!(
                request::parse(&whole[..length], style),
                Ok(None),
                "{length}"
            );
        }
    }
}

#[test]
fn another_magic_is_hostile_as_soon_as_it_is_there() {
    let table = [
        ("25609514", Style::Simple, 0x2560_9513),
        ("12560953", Style::Structured, 0x2560_9513),
        ("21e41c71", Style::Structured, 0x2560_9513),
        ("25609513", Style::Extended, 0x21e4_1c71),
    ];
    for (text, style, expected) in table {
        let found = u32::from_str_radix(text, 16).expect("digits");
        let hostile = Err(RequestError::Magic { found, expected });
        assert_eq!(request::parse(&bytes(text), style), hostile, "{text}");
        assert_eq!(request::parse(&bytes(&text[..6]), style), Ok(None));
    }
}

#[test]
fn a_payload_beyond_the_limit_is_hostile() {
    let most = u64::from(PAYLOAD);
    for (length, expected) in [
        (most, Ok(most)),
        (most + 1, Err(RequestError::Payload(most + 1))),
    ] {
        let compact = format!("25609513 0000 0001 {:032x} {length:08x}", 0);
        let extended = format!("21e41c71 0020 0005 {:032x} {length:016x}", 0);
        for (text, style) in [(compact, Style::Simple), (extended, Style::Extended)] {
            let found = request::parse(&bytes(&text), style);
            let payload = found.map(|found| found.expect("whole").0.payload);
            assert_eq!(payload, expected);
        }
    }
    // A read of that length has no payload.
    let read = "25609513 0000 0000 00000000000000000000000000000000 ffffffff";
    assert_eq!(parsed(read, Style::Simple).payload, 0);
}
