//! Servers that lie: each lie ends the session.

use block::operation::Ask;
use nbd::Style;
use nbd::client::ReplyError;
use nbd::request::{Asked, Wanted};

use crate::client_replies::{COOKIE, asked, chunk, told};

const STRUCTURED: Style = Style::Structured;
const EXTENDED: Style = Style::Extended;
const READ: Asked = Asked::Of(Ask::Read);
const STATUS: Asked = Asked::BlockStatus {
    wanted: Wanted::Many,
};

/// Half of what was asked for, as a hole: flags, type, payload.
const HALF: (&str, &str) = ("0000 0002", "0000000000002000 00000800");
/// An end that claims success.
const END: (&str, &str) = ("0001 0000", "");

/// What is wrong, the chunks, and what it is called.
type Lie = (
    &'static str,
    &'static [(&'static str, &'static str)],
    ReplyError,
);

#[rustfmt::skip]
const LIES_ABOUT_READS: &[Lie] = &[
    ("an end without contents", &[END], ReplyError::Incomplete),
    ("half of it", &[HALF, END], ReplyError::Incomplete),
    ("twice the same", &[HALF, HALF], ReplyError::Overlap),
    ("before it", &[("0000 0001", "0000000000001fff 0000")], ReplyError::Overlap),
    ("behind it", &[("0000 0001", "0000000000002fff 0000")], ReplyError::Outside),
    ("at the end of all", &[("0000 0001", "ffffffffffffffff 0000")], ReplyError::Outside),
    ("an empty hole", &[("0000 0002", "0000000000002000 00000000")], ReplyError::Outside),
    ("states", &[("0001 0005", "00000001 00000400 00000003")], ReplyError::Kind(5)),
    ("an unknown type", &[("0001 0077", "")], ReplyError::Kind(0x77)),
    ("nothing, not last", &[("0000 0000", "")], ReplyError::Kind(0)),
    ("no error", &[("0001 8001", "00000000 0000")], ReplyError::Error),
    ("half a message", &[("0001 8001", "00000005 0004 'bad'")], ReplyError::Error),
    ("a place outside", &[("0001 8002", "00000005 0000 0000000000003000")], ReplyError::Error),
    ("half a place", &[("0001 8002", "00000005 0004 'badd' 00000000")], ReplyError::Error),
];

#[test]
fn lies_about_reads_are_hostile() {
    for (what, chunks, hostile) in LIES_ABOUT_READS {
        for style in [STRUCTURED, EXTENDED] {
            let text: String = chunks
                .iter()
                .map(|(head, payload)| chunk(style, head, payload))
                .collect();
            // The extended style has a type of its own for states, which is wrong here, too.
            let found = told(&mut asked(style, READ), &text);
            assert_eq!(found, Err(*hostile), "{what}");
        }
    }
}

#[test]
fn replies_that_belong_to_nothing_are_hostile() {
    for (text, hostile) in [
        ("67446698 00000000 0000000100000000", ReplyError::Simple),
        (
            "668e33ef 0001 0000 0000000000000000 00000000",
            ReplyError::Cookie(0),
        ),
        (
            "668e33ef 0001 0000 0000000100000001 00000000",
            ReplyError::Cookie(COOKIE | 1),
        ),
        ("668e33f0", ReplyError::Magic(0x668e_33f0)),
        ("6e8a278c", ReplyError::Magic(0x6e8a_278c)),
    ] {
        assert_eq!(
            told(&mut asked(STRUCTURED, READ), text),
            Err(hostile),
            "{text}"
        );
    }
    let other = "6e8a278c 0001 0000 0000000100000000 0000000000002001 0000000000000000";
    let found = told(&mut asked(EXTENDED, READ), other);
    assert_eq!(found, Err(ReplyError::Offset(0x2001)));
    let simple = "67446698 00000005 0000000100000000";
    let found = told(&mut asked(EXTENDED, READ), simple);
    assert_eq!(found, Err(ReplyError::Magic(0x6744_6698)));
    // A request ends once.
    let mut ended = asked(Style::Simple, READ);
    assert!(told(&mut ended, simple).is_ok());
    assert_eq!(told(&mut ended, simple), Err(ReplyError::Cookie(COOKIE)));
}

#[test]
fn impossible_lengths_are_hostile_before_anything_is_awaited() {
    for (kind, length) in [
        (0, 1),
        (1, 8),
        (2, 11),
        (2, 13),
        (0x8001, 5),
        (0x8001, 4111),
        (0x8002, 13),
        (0x8077, 0xffff_ffff),
    ] {
        let text = format!("668e33ef 0001 {kind:04x} 0000000100000000 {length:08x}");
        let hostile = ReplyError::Length { kind, length };
        assert_eq!(
            told(&mut asked(STRUCTURED, READ), &text),
            Err(hostile),
            "{kind:#x}"
        );
    }
    for length in [0, 4, 11, 13, 4 + 8 * ((1 << 20) + 1), 0xffff_fffc] {
        let text = format!("668e33ef 0001 0005 0000000100000000 {length:08x}");
        let hostile = ReplyError::Length { kind: 5, length };
        assert_eq!(
            told(&mut asked(STRUCTURED, STATUS), &text),
            Err(hostile),
            "{length:#x}"
        );
    }
}

#[test]
fn lies_about_states_are_hostile() {
    let one = Asked::BlockStatus {
        wanted: Wanted::One,
    };
    let status = |payload: &str| chunk(STRUCTURED, "0000 0005", payload);
    let good = "00000001 00001000 00000000";
    for (ask, text, hostile) in [
        (
            STATUS,
            status("00000002 00000400 00000000"),
            ReplyError::State,
        ),
        (
            STATUS,
            status("00000001 00000000 00000000"),
            ReplyError::State,
        ),
        (STATUS, status(good) + &status(good), ReplyError::State),
        (
            STATUS,
            status("00000001 00001000 00000000 00000200 00000001"),
            ReplyError::State,
        ),
        (
            STATUS,
            chunk(STRUCTURED, "0001 0000", ""),
            ReplyError::Incomplete,
        ),
        (
            STATUS,
            chunk(STRUCTURED, "0001 0006", good),
            ReplyError::Kind(6),
        ),
        (one, status("00000001 00001200 00000000"), ReplyError::State),
        (
            one,
            status("00000001 00000200 00000000 00000200 00000001"),
            ReplyError::State,
        ),
    ] {
        assert_eq!(
            told(&mut asked(STRUCTURED, ask), &text),
            Err(hostile),
            "{text}"
        );
    }
    let miscounted = "00000001 00000002 0000000000000400 0000000000000003";
    let text = chunk(EXTENDED, "0001 0006", miscounted);
    assert_eq!(
        told(&mut asked(EXTENDED, STATUS), &text),
        Err(ReplyError::State)
    );
    let wide = "00000001 00000001 0000000000000400 0000000100000000";
    let text = chunk(EXTENDED, "0001 0006", wide);
    assert_eq!(
        told(&mut asked(EXTENDED, STATUS), &text),
        Err(ReplyError::State)
    );
}
