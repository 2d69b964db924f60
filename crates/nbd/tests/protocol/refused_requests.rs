//! Which requests are refused, and how: the protocol's section "Error values", row by row.

use block::operation::OperationError;
use nbd::Style;
use nbd::offer::{Features, Offer};
use nbd::request::{Header, check};

use crate::offered::{ALL, db, iso, parsed, session};

const SIMPLE: Style = Style::Simple;
const STRUCTURED: Style = Style::Structured;
const EXTENDED: Style = Style::Extended;

/// A request by its numbers. In the extended style a write says that it has a payload.
fn request(style: Style, flags: u16, kind: u16, offset: u64, length: u64) -> Header {
    let cookie = 7;
    if style.extended() {
        let flags = if kind == 1 { flags | 0x20 } else { flags };
        let text = format!("21e41c71 {flags:04x} {kind:04x} {cookie:016x} {offset:016x}");
        parsed(&format!("{text} {length:016x}"), style)
    } else {
        let text = format!("25609513 {flags:04x} {kind:04x} {cookie:016x} {offset:016x}");
        parsed(&format!("{text} {length:08x}"), style)
    }
}

fn on(offer: &Offer, style: Style, request: &Header) -> Result<(), OperationError> {
    check(request, &session(style), offer)
}

/// 16 MiB.
const END: u64 = 16 << 20;
/// The longest read and write.
const LONGEST: u64 = 1 << 20;

#[test]
fn what_is_offered_is_served() {
    for style in [SIMPLE, STRUCTURED, EXTENDED] {
        // Kinds of requests with each flag that belongs to them.
        for (kind, flags) in [(0, 0x5), (1, 0x1), (4, 0x1), (5, 0x1), (6, 0x13), (7, 0x9)] {
            if kind == 7 && !style.structured() {
                continue;
            }
            let flags = if style.structured() {
                flags
            } else {
                flags & !0x4
            };
            for offset in [0, 512, END - LONGEST] {
                let request = request(style, flags, kind, offset, LONGEST);
                assert_eq!(on(&db(), style, &request), Ok(()), "{kind} {style:?}");
            }
        }
        for flags in [0, 1] {
            assert_eq!(on(&db(), style, &request(style, flags, 3, 0, 0)), Ok(()));
        }
        assert_eq!(on(&db(), style, &request(style, 0xffff, 2, 1, 0)), Ok(()));
    }
    // What has no payload may be as long as the export.
    for kind in [4, 5, 6] {
        assert_eq!(on(&db(), SIMPLE, &request(SIMPLE, 0, kind, 0, END)), Ok(()));
    }
}

#[test]
fn past_the_end_is_no_space_for_writes_and_invalid_for_the_rest() {
    for style in [SIMPLE, STRUCTURED, EXTENDED] {
        for (kind, failed) in [
            (0, OperationError::Invalid),
            (1, OperationError::NoSpace),
            (4, OperationError::Invalid),
            (5, OperationError::Invalid),
            (6, OperationError::NoSpace),
            (7, OperationError::Invalid),
        ] {
            for (offset, length) in [(END, 512), (END - 512, 1024), (u64::MAX - 511, 512)] {
                let request = request(style, 0, kind, offset, length);
                assert_eq!(on(&db(), style, &request), Err(failed), "{kind} {offset}");
            }
        }
    }
    let endless = request(EXTENDED, 0, 6, 512, u64::MAX - 511);
    assert_eq!(on(&db(), EXTENDED, &endless), Err(OperationError::NoSpace));
    assert_eq!(
        on(&iso(), SIMPLE, &request(SIMPLE, 0, 0, 1_000_000, 1)),
        Ok(())
    );
    let beyond = request(SIMPLE, 0, 0, 1_000_000, 2);
    assert_eq!(on(&iso(), SIMPLE, &beyond), Err(OperationError::Invalid));
}

#[test]
fn what_is_not_in_whole_blocks_or_empty_is_invalid() {
    for style in [SIMPLE, STRUCTURED, EXTENDED] {
        for kind in [0, 1, 4, 5, 6, 7] {
            for (offset, length) in [(1, 512), (0, 511), (511, 1), (256, 512), (0, 0)] {
                let request = request(style, 0, kind, offset, length);
                assert_eq!(
                    on(&db(), style, &request),
                    Err(OperationError::Invalid),
                    "{kind}"
                );
            }
        }
    }
}

#[test]
fn a_payload_longer_than_the_longest_is_refused_as_its_style_allows() {
    let over = LONGEST + 512;
    for (style, kind, failed) in [
        (SIMPLE, 0, OperationError::Invalid),
        (SIMPLE, 1, OperationError::Invalid),
        (STRUCTURED, 0, OperationError::TooLong),
        (STRUCTURED, 1, OperationError::Invalid),
        (EXTENDED, 0, OperationError::TooLong),
        (EXTENDED, 1, OperationError::Invalid),
    ] {
        let request = request(style, 0, kind, 0, over);
        assert_eq!(on(&db(), style, &request), Err(failed), "{style:?} {kind}");
        // What is refused still has its payload behind it.
        assert_eq!(request.payload, if kind == 1 { over } else { 0 });
    }
    let undivided = request(STRUCTURED, 4, 0, 0, over);
    assert_eq!(
        on(&db(), STRUCTURED, &undivided),
        Err(OperationError::TooLong)
    );
}

#[test]
fn a_read_only_export_is_not_written() {
    for (kind, flags) in [(1, 0), (4, 0), (6, 0), (6, 2)] {
        let request = request(SIMPLE, flags, kind, 0, 512);
        assert_eq!(
            on(&iso(), SIMPLE, &request),
            Err(OperationError::NotPermitted),
            "{kind}"
        );
        // Also past the end, and where trims are configured.
        let mut offer = db();
        offer.features.read_only = true;
        let beyond = Header {
            offset: END,
            ..request
        };
        assert_eq!(
            on(&offer, SIMPLE, &beyond),
            Err(OperationError::NotPermitted),
            "{kind}"
        );
    }
    assert_eq!(on(&iso(), SIMPLE, &request(SIMPLE, 0, 0, 0, 512)), Ok(()));
}

#[test]
fn commands_that_are_not_offered_are_invalid() {
    let without: [(u16, Features); 4] = [
        (
            3,
            Features {
                flush: false,
                ..ALL
            },
        ),
        (4, Features { trim: false, ..ALL }),
        (
            5,
            Features {
                cache: false,
                ..ALL
            },
        ),
        (
            6,
            Features {
                write_zeroes: false,
                ..ALL
            },
        ),
    ];
    for (kind, features) in without {
        let length = if kind == 3 { 0 } else { 512 };
        let request = request(SIMPLE, 0, kind, 0, length);
        let offer = Offer { features, ..db() };
        assert_eq!(on(&db(), SIMPLE, &request), Ok(()), "{kind}");
        assert_eq!(
            on(&offer, SIMPLE, &request),
            Err(OperationError::Invalid),
            "{kind}"
        );
    }
    // Block status, where no context was agreed.
    let status = request(SIMPLE, 0, 7, 0, 512);
    assert_eq!(on(&db(), SIMPLE, &status), Err(OperationError::Invalid));
    for kind in [8, 9, 0xffff] {
        let request = request(SIMPLE, 0, kind, 0, 512);
        assert_eq!(
            on(&db(), SIMPLE, &request),
            Err(OperationError::Invalid),
            "{kind}"
        );
    }
}

#[test]
fn flags_that_do_not_belong_to_a_command_are_invalid() {
    // What belongs to each: FUA 1, NO_HOLE 2, DF 4, REQ_ONE 8, FAST_ZERO 16, PAYLOAD_LEN 32.
    for (kind, allowed) in [(0, 5), (1, 1), (3, 1), (4, 1), (5, 1), (6, 19), (7, 9)] {
        for bit in 0..16 {
            let flag = 1 << bit;
            let length = if kind == 3 { 0 } else { 512 };
            let request = request(STRUCTURED, flag, kind, 0, length);
            let expected = if allowed & flag != 0 {
                Ok(())
            } else {
                Err(OperationError::Invalid)
            };
            assert_eq!(
                on(&db(), STRUCTURED, &request),
                expected,
                "{kind} {flag:#x}"
            );
        }
    }
}

#[test]
fn flags_that_were_not_offered_are_invalid() {
    let fua = Offer {
        features: Features { fua: false, ..ALL },
        ..db()
    };
    for kind in [0, 1, 3, 4, 5, 6] {
        let length = if kind == 3 { 0 } else { 512 };
        let request = request(SIMPLE, 1, kind, 0, length);
        assert_eq!(
            on(&fua, SIMPLE, &request),
            Err(OperationError::Invalid),
            "{kind}"
        );
    }
    let df = Offer {
        features: Features { df: false, ..ALL },
        ..db()
    };
    let undivided = request(STRUCTURED, 4, 0, 0, 512);
    assert_eq!(
        on(&df, STRUCTURED, &undivided),
        Err(OperationError::Invalid)
    );
    assert_eq!(on(&db(), SIMPLE, &undivided), Err(OperationError::Invalid));
    let fast = Offer {
        features: Features {
            fast_zero: false,
            ..ALL
        },
        ..db()
    };
    let request = request(SIMPLE, 16, 6, 0, 512);
    assert_eq!(on(&fast, SIMPLE, &request), Err(OperationError::Invalid));
}

#[test]
fn a_flush_has_neither_offset_nor_length() {
    for (offset, length) in [(512, 0), (0, 512), (512, 512)] {
        let request = request(SIMPLE, 0, 3, offset, length);
        assert_eq!(on(&db(), SIMPLE, &request), Err(OperationError::Invalid));
    }
}

#[test]
fn an_extended_write_says_that_it_has_a_payload_and_nothing_else_does() {
    let tail = "0000000000000007 0000000000000000 0000000000000200";
    let without = parsed(&format!("21e41c71 0000 0001 {tail}"), EXTENDED);
    assert_eq!(on(&db(), EXTENDED, &without), Err(OperationError::Invalid));
    for kind in [0, 3, 4, 5, 6, 7] {
        let with = parsed(&format!("21e41c71 0020 {kind:04x} {tail}"), EXTENDED);
        assert_eq!(
            on(&db(), EXTENDED, &with),
            Err(OperationError::Invalid),
            "{kind}"
        );
        assert_eq!(with.payload, 512, "{kind}");
    }
}
