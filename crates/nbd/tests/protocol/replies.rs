//! Replies, byte by byte.

use block::operation::OperationError;
use nbd::reply::{ChunkPosition, NothingToTell, Reply};
use nbd::{Descriptor, HOLE, Style, ZERO};

use crate::offered::{bytes, parsed};

/// A reply to a request of `kind` with `flags` at 4096 for 8192 bytes, with the cookie "cookie.."
fn reply(style: Style, kind: u16, flags: u16) -> Reply {
    let text = if style.extended() {
        format!("21e41c71 {flags:04x} {kind:04x} 'cookie..' 0000000000001000 0000000000002000")
    } else {
        format!("25609513 {flags:04x} {kind:04x} 'cookie..' 0000000000001000 00002000")
    };
    Reply::to(&parsed(&text, style), style)
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = b"before".to_vec();
    write(&mut out);
    assert!(out.starts_with(b"before"));
    out.split_off(6)
}

const HEAD: &str = "6e8a278c 0001";
const TAIL: &str = "'cookie..' 0000000000001000";

#[test]
fn what_is_done_without_contents() {
    let simple = bytes("67446698 00000000 'cookie..'");
    for style in [Style::Simple, Style::Structured] {
        assert_eq!(written(|out| reply(style, 1, 0).done(out)), simple);
    }
    let none = bytes(&format!("{HEAD} 0000 {TAIL} 0000000000000000"));
    assert_eq!(written(|out| reply(Style::Extended, 1, 0).done(out)), none);
}

#[test]
fn contents_of_a_read_have_a_header_of_their_style() {
    for (style, expected) in [
        (Style::Simple, "67446698 00000000 'cookie..'".to_owned()),
        (
            Style::Structured,
            "668e33ef 0001 0001 'cookie..' 00002008 0000000000001000".to_owned(),
        ),
        (
            Style::Extended,
            format!("{HEAD} 0001 {TAIL} 0000000000002008 0000000000001000"),
        ),
    ] {
        let found = written(|out| reply(style, 0, 0).contents(out));
        assert_eq!(found, bytes(&expected), "{style:?}");
    }
}

#[test]
fn a_read_in_chunks() {
    assert!(reply(Style::Simple, 0, 0).chunks().is_none());
    let chunks = reply(Style::Structured, 0, 0).chunks().expect("chunks");
    let found = written(|out| {
        chunks.contents(out, 0x1000, 4, ChunkPosition::Before);
        out.extend_from_slice(b"abcd");
        chunks.hole(out, 0x1004, 0x1ff8, ChunkPosition::Before);
        chunks.failed_at(
            out,
            OperationError::Io,
            0x2ffc,
            "bad",
            ChunkPosition::Before,
        );
        chunks.end(out);
    });
    let expected = "668e33ef 0000 0001 'cookie..' 0000000c 0000000000001000 'abcd'
                    668e33ef 0000 0002 'cookie..' 0000000c 0000000000001004 00001ff8
                    668e33ef 0000 8002 'cookie..' 00000011 00000005 0003 'bad' 0000000000002ffc
                    668e33ef 0001 0000 'cookie..' 00000000";
    assert_eq!(found, bytes(expected));

    let chunks = reply(Style::Extended, 0, 0).chunks().expect("chunks");
    let found = written(|out| chunks.hole(out, 0x1004, 0x1ff8, ChunkPosition::Last));
    let expected = format!("{HEAD} 0002 {TAIL} 000000000000000c 0000000000001004 00001ff8");
    assert_eq!(found, bytes(&expected));
}

#[test]
fn each_failure_has_its_number() {
    // A fast zero, for which all of them are foreseen.
    for (failed, number) in [
        (OperationError::NotPermitted, "00000001"),
        (OperationError::Io, "00000005"),
        (OperationError::Invalid, "00000016"),
        (OperationError::NoSpace, "0000001c"),
        (OperationError::TooLong, "0000004b"),
        (OperationError::Unsupported, "0000005f"),
        (OperationError::ShuttingDown, "0000006c"),
    ] {
        let simple = format!("67446698 {number} 'cookie..'");
        let found = written(|out| reply(Style::Simple, 6, 16).failed(out, failed, "why"));
        assert_eq!(found, bytes(&simple));
        let chunk = format!("668e33ef 0001 8001 'cookie..' 00000009 {number} 0003 'why'");
        let found = written(|out| reply(Style::Structured, 6, 16).failed(out, failed, "why"));
        assert_eq!(found, bytes(&chunk));
        let chunk = format!("{HEAD} 8001 {TAIL} 0000000000000009 {number} 0003 'why'");
        let found = written(|out| reply(Style::Extended, 6, 16).failed(out, failed, "why"));
        assert_eq!(found, bytes(&chunk));
    }
}

#[test]
fn numbers_that_a_request_does_not_foresee_are_invalid() {
    let number = |style: Style, kind, flags, failed| {
        let found = written(|out| reply(style, kind, flags).failed(out, failed, ""));
        let at = if style.structured() { 20 } else { 4 };
        u32::from_be_bytes(found[at..at + 4].try_into().expect("four"))
    };
    let (simple, structured) = (Style::Simple, Style::Structured);
    assert_eq!(number(simple, 6, 0, OperationError::Unsupported), 22);
    assert_eq!(number(simple, 6, 16, OperationError::Unsupported), 95);
    assert_eq!(number(simple, 4, 0, OperationError::Unsupported), 22);
    assert_eq!(number(simple, 0, 0, OperationError::TooLong), 22);
    assert_eq!(number(structured, 0, 0, OperationError::TooLong), 75);
    assert_eq!(number(structured, 1, 0, OperationError::TooLong), 22);
    assert_eq!(number(structured, 4, 0, OperationError::TooLong), 75);
}

#[test]
fn a_message_is_cut_between_characters() {
    let message = "a".to_owned() + &"é".repeat(4096);
    let found =
        written(|out| reply(Style::Structured, 0, 0).failed(out, OperationError::Io, &message));
    assert_eq!(found.len(), 20 + 6 + 4095);
    assert_eq!(found[24..26], 4095_u16.to_be_bytes());
    assert!(message.as_bytes().starts_with(&found[26..]));
}

/// The descriptors of a reply about 8192 bytes.
fn status(style: Style, flags: u16, states: &[(u64, u32)]) -> Result<Vec<u8>, NothingToTell> {
    let chunks = reply(style, 7, flags).chunks().expect("chunks");
    let states = states
        .iter()
        .map(|&(length, state)| Descriptor { length, state });
    let mut out = b"before".to_vec();
    let told = chunks.block_status(&mut out, 1, 512, states, ChunkPosition::Last);
    assert!(out.starts_with(b"before"));
    assert_eq!(told.is_err(), out.len() == 6);
    told.map(|()| out.split_off(6))
}

#[test]
fn block_status_in_both_styles() {
    let states = [(0x1000, 0), (0x1000, HOLE | ZERO)];
    let compact = "668e33ef 0001 0005 'cookie..' 00000014 00000001
                   00001000 00000000 00001000 00000003";
    assert_eq!(status(Style::Structured, 0, &states), Ok(bytes(compact)));
    let extended = format!(
        "{HEAD} 0006 {TAIL} 0000000000000028 00000001 00000002
         0000000000001000 0000000000000000 0000000000001000 0000000000000003"
    );
    assert_eq!(status(Style::Extended, 0, &states), Ok(bytes(&extended)));
}

#[test]
fn neighbours_of_one_state_are_one_and_empty_ones_none() {
    let states = [(0x800, ZERO), (0, 0), (0x800, ZERO), (0x1000, 0)];
    let expected = "668e33ef 0001 0005 'cookie..' 00000014 00000001
                    00001000 00000002 00001000 00000000";
    assert_eq!(status(Style::Structured, 0, &states), Ok(bytes(expected)));
    assert_eq!(status(Style::Structured, 0, &[(0, 0)]), Err(NothingToTell));
    assert_eq!(status(Style::Extended, 8, &[]), Err(NothingToTell));
}

#[test]
fn only_the_last_descriptor_goes_beyond_what_was_asked() {
    let states = [(0x1000, 0), (0x1_0000, ZERO), (0x1000, 0)];
    let expected = "668e33ef 0001 0005 'cookie..' 00000014 00000001
                    00001000 00000000 00010000 00000002";
    assert_eq!(status(Style::Structured, 0, &states), Ok(bytes(expected)));
}

#[test]
fn one_descriptor_is_not_longer_than_what_was_asked() {
    let states = [(0x1_0000, ZERO), (0x1000, 0)];
    let expected = "668e33ef 0001 0005 'cookie..' 0000000c 00000001 00002000 00000002";
    assert_eq!(status(Style::Structured, 8, &states), Ok(bytes(expected)));
    let expected = format!(
        "{HEAD} 0006 {TAIL} 0000000000000018 00000001 00000001 0000000000002000 0000000000000002"
    );
    assert_eq!(status(Style::Extended, 8, &states), Ok(bytes(&expected)));
}

#[test]
fn lengths_beyond_32_bits_are_cut_to_whole_blocks_in_the_compact_style() {
    let states = [(1 << 40, ZERO)];
    let expected = "668e33ef 0001 0005 'cookie..' 0000000c 00000001 fffffe00 00000002";
    assert_eq!(status(Style::Structured, 0, &states), Ok(bytes(expected)));
    let expected = format!(
        "{HEAD} 0006 {TAIL} 0000000000000018 00000001 00000001 0000010000000000 0000000000000002"
    );
    assert_eq!(status(Style::Extended, 0, &states), Ok(bytes(&expected)));
}

#[test]
fn nothing_is_told_behind_a_length_that_was_cut() {
    // Almost 4 GiB are asked about, and the export tells in pieces of 64 KiB.
    let text = "25609513 0000 0007 'cookie..' 0000000000000000 fffffe00";
    let reply = Reply::to(&parsed(text, Style::Structured), Style::Structured);
    let states =
        [(1 << 40, ZERO), (1 << 16, 0)].map(|(length, state)| Descriptor { length, state });
    let mut out = Vec::new();
    let chunks = reply.chunks().expect("chunks");
    let told = chunks.block_status(&mut out, 1, 1 << 16, states, ChunkPosition::Last);
    assert_eq!(told, Ok(()));
    let expected = "668e33ef 0001 0005 'cookie..' 0000000c 00000001 ffff0000 00000002";
    assert_eq!(out, bytes(expected));
}

#[test]
fn no_more_states_are_looked_at_than_were_asked_about() {
    for style in [Style::Structured, Style::Extended] {
        let looked_at = std::cell::Cell::new(0);
        let endless = std::iter::repeat(Descriptor {
            length: 512,
            state: ZERO,
        })
        .inspect(|_| looked_at.set(looked_at.get() + 1));
        let chunks = reply(style, 7, 0).chunks().expect("chunks");
        let told = chunks.block_status(&mut Vec::new(), 1, 512, endless, ChunkPosition::Last);
        assert_eq!((told, looked_at.get()), (Ok(()), 16));
    }
}
