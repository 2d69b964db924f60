//! Options and their answers, byte by byte.

use std::sync::Arc;

use nbd::negotiation::{
    OPTION, OPTIONS, OUTPUT, SKIPPED, ServerError, ServerNegotiation, ServerPhase, ServerSecurity,
};
use nbd::offer::{Offer, Text};
use nbd::{Context, Style};

use crate::offered::{agreed, answer, bytes, db, greeted, only_reply, option, replies};

const UNSUP: u32 = 0x8000_0001;
const POLICY: u32 = 0x8000_0002;
const INVALID: u32 = 0x8000_0003;
const UNKNOWN: u32 = 0x8000_0006;
const TOO_BIG: u32 = 0x8000_0009;
const EXT_HEADER_REQD: u32 = 0x8000_000a;

/// Asks for the context of `db`.
fn set_context(option_number: u32, export: &str) -> String {
    let length = 4 + export.len() + 4 + 4 + 15;
    let header = option(option_number, u32::try_from(length).expect("short"));
    format!(
        "{header} {:08x} '{export}' 00000001 0000000f 'base:allocation'",
        export.len()
    )
}

#[test]
fn exports_are_listed_with_their_descriptions() {
    let mut server = greeted(ServerSecurity::Plain);
    let expected = "0003e889045565a9 00000003 00000002 00000010 00000002 'db' 'foreground'
                    0003e889045565a9 00000003 00000002 00000007 00000003 'iso'
                    0003e889045565a9 00000003 00000001 00000000";
    assert_eq!(answer(&mut server, &option(3, 0)), bytes(expected));
}

#[test]
fn an_export_is_described_as_far_as_the_client_asks() {
    // Name, description, block size, and one that nobody knows.
    let ask = |number| option(number, 16) + "00000002 'db' 0004 0001 0002 0003 00ff";
    let told = |number: u32| {
        let begin = format!("0003e889045565a9 {number:08x} 00000003");
        bytes(&format!(
            "{begin} 0000000c 0000 0000000001000000 0d7d
             {begin} 00000004 0001 'db'
             {begin} 0000000c 0002 'foreground'
             {begin} 0000000e 0003 00000200 00001000 00100000
             0003e889045565a9 {number:08x} 00000001 00000000"
        ))
    };
    let mut server = greeted(ServerSecurity::Plain);
    assert_eq!(answer(&mut server, &ask(6)), told(6));
    assert_eq!(server.step(), ServerPhase::More);
    assert_eq!(answer(&mut server, &ask(7)), told(7));
    assert_eq!(agreed(&server).export, 0);
}

#[test]
fn block_sizes_are_told_unasked_too() {
    let mut server = greeted(ServerSecurity::Plain);
    let answered = answer(&mut server, &(option(7, 9) + "00000003 'iso' 0000"));
    let expected = "0003e889045565a9 00000007 00000003 0000000c 0000 00000000000f4241 0003
                    0003e889045565a9 00000007 00000003 0000000e 0003 00000001 00001000 02000000
                    0003e889045565a9 00000007 00000001 00000000";
    assert_eq!(answered, bytes(expected));
    assert_eq!(agreed(&server).export, 1);
}

#[test]
fn undivided_reads_are_offered_with_chunks_only() {
    for (style, flags) in [(None, "0d7d"), (Some(8), "0dfd"), (Some(11), "0dfd")] {
        let mut server = greeted(ServerSecurity::Plain);
        if let Some(number) = style {
            assert_eq!(
                only_reply(number, &answer(&mut server, &option(number, 0))),
                1
            );
        }
        let answered = answer(&mut server, &(option(7, 8) + "00000002 'db' 0000"));
        assert_eq!(replies(7, &answered)[0].1[10..], bytes(flags), "{style:?}");
    }
}

#[test]
fn extended_headers_go_before_structured_replies() {
    let mut server = greeted(ServerSecurity::Plain);
    assert_eq!(only_reply(8, &answer(&mut server, &option(8, 0))), 1);
    assert_eq!(only_reply(8, &answer(&mut server, &option(8, 0))), INVALID);
    assert_eq!(only_reply(11, &answer(&mut server, &option(11, 0))), 1);
    assert_eq!(
        only_reply(11, &answer(&mut server, &option(11, 0))),
        INVALID
    );
    assert_eq!(
        only_reply(8, &answer(&mut server, &option(8, 0))),
        EXT_HEADER_REQD
    );
    answer(&mut server, &(option(7, 8) + "00000002 'db' 0000"));
    assert_eq!(agreed(&server).style, Style::Extended);
}

#[test]
fn contexts_are_listed_by_name_by_namespace_or_all() {
    let listed = "0003e889045565a9 00000009 00000004 00000013 00000000 'base:allocation'
                  0003e889045565a9 00000009 00000001 00000000";
    let nothing = "0003e889045565a9 00000009 00000001 00000000";
    let mut server = greeted(ServerSecurity::Plain);
    answer(&mut server, &option(8, 0));
    let all = option(9, 10) + "00000002 'db' 00000000";
    assert_eq!(answer(&mut server, &all), bytes(listed));
    assert_eq!(answer(&mut server, &set_context(9, "db")), bytes(listed));
    let base = option(9, 19) + "00000002 'db' 00000001 00000005 'base:'";
    assert_eq!(answer(&mut server, &base), bytes(listed));
    let other = option(9, 20) + "00000002 'db' 00000001 00000006 'qemu:x'";
    assert_eq!(answer(&mut server, &other), bytes(nothing));
    assert_eq!(answer(&mut server, &set_context(9, "iso")), bytes(nothing));
}

#[test]
fn dirty_bitmaps_are_listed_as_qemu_has_them_and_selected_by_name() {
    let daily = Context::dirty_bitmap("daily");
    assert_eq!(
        (daily.name(), daily.bitmap()),
        ("qemu:dirty-bitmap:daily", Some("daily"))
    );
    let offer = Offer {
        contexts: vec![Context::Allocation, daily.clone()],
        ..db()
    };
    let mut server = ServerNegotiation::new(Arc::new([offer]), ServerSecurity::Plain);
    server.output().clear();
    assert_eq!(server.receive(&bytes("00000003")), 4);
    answer(&mut server, &option(8, 0));
    let names = |server: &mut ServerNegotiation, number: u32, query: &str| {
        let length = 14 + u32::try_from(query.len()).expect("short");
        let header = option(number, length);
        let sent = format!(
            "{header} 00000002 'db' 00000001 {:08x} '{query}'",
            query.len()
        );
        let replies = replies(number, &answer(server, &sent));
        // Contexts have the number 4, and their own before the name.
        let contexts = replies.into_iter().filter(|(kind, _)| *kind == 4);
        let names = contexts.map(|(_, payload)| String::from_utf8(payload[4..].to_vec()));
        names.collect::<Result<Vec<_>, _>>().expect("texts")
    };
    for query in ["qemu:", "qemu:dirty-bitmap:", "qemu:dirty-bitmap:daily"] {
        assert_eq!(names(&mut server, 9, query), [daily.name()], "{query}");
    }
    assert_eq!(names(&mut server, 9, "base:"), ["base:allocation"]);
    assert_eq!(names(&mut server, 9, "qemu:d"), [""; 0]);
    assert_eq!(names(&mut server, 10, "qemu:dirty-bitmap:"), [""; 0]);
    assert_eq!(names(&mut server, 10, daily.name()), [daily.name()]);
    answer(&mut server, &(option(7, 8) + "00000002 'db' 0000"));
    assert_eq!(agreed(&server).contexts, [(2, daily)]);
}

#[test]
fn a_context_is_selected_by_its_whole_name_and_for_one_export() {
    let selected = "0003e889045565a9 0000000a 00000004 00000013 00000001 'base:allocation'
                    0003e889045565a9 0000000a 00000001 00000000";
    let go = option(7, 8) + "00000002 'db' 0000";
    let with = |before: &[String]| {
        let mut server = greeted(ServerSecurity::Plain);
        answer(&mut server, &option(8, 0));
        for sent in before {
            answer(&mut server, sent);
        }
        answer(&mut server, &go);
        agreed(&server).contexts
    };
    let set = set_context(10, "db");
    let mut server = greeted(ServerSecurity::Plain);
    answer(&mut server, &option(8, 0));
    assert_eq!(answer(&mut server, &set), bytes(selected));

    assert_eq!(with(std::slice::from_ref(&set)), [(1, Context::Allocation)]);
    // The default export is the same one.
    assert_eq!(with(&[set_context(10, "")]), [(1, Context::Allocation)]);
    // A wildcard selects nothing, and neither does another export's selection.
    let base = option(10, 19) + "00000002 'db' 00000001 00000005 'base:'";
    assert!(with(&[base]).is_empty());
    assert!(with(&[set_context(10, "iso")]).is_empty());
    // The last one counts: without a query, for another export, or broken.
    let none = option(10, 10) + "00000002 'db' 00000000";
    assert!(with(&[set.clone(), none]).is_empty());
    assert!(with(&[set.clone(), set_context(10, "iso")]).is_empty());
    assert!(with(&[set, option(10, 1) + "00"]).is_empty());
}

#[test]
fn a_context_that_was_selected_for_one_export_is_none_of_another() {
    let mut bulk = db();
    bulk.name = Text::new("bulk").expect("short");
    for (selected, number) in [("db", 0), ("bulk", 1)] {
        let mut server =
            ServerNegotiation::new(Arc::new([db(), bulk.clone()]), ServerSecurity::Plain);
        server.output().clear();
        answer(&mut server, &("00000003".to_owned() + &option(8, 0)));
        answer(&mut server, &set_context(10, selected));
        answer(&mut server, &(option(7, 10) + "00000004 'bulk' 0000"));
        assert_eq!(agreed(&server).contexts.len(), number, "{selected}");
    }
}

/// What is wrong with an option, its number, its payload, and how it is answered.
type Broken = (&'static str, u32, &'static str, u32);

const BROKEN: &[Broken] = &[
    ("an unknown option", 4, "'abc'", UNSUP),
    ("an unknown option", 0xffff_ffff, "", UNSUP),
    ("list with a payload", 3, "00", INVALID),
    ("no TLS here", 5, "", POLICY),
    ("TLS with a payload", 5, "00", INVALID),
    ("structured with a payload", 8, "00", INVALID),
    ("extended with a payload", 11, "00", INVALID),
    ("contexts without chunks", 9, DB, INVALID),
    ("contexts without chunks", 10, DB, INVALID),
    ("no such export", 6, "00000002 'no' 0000", UNKNOWN),
    ("no such export", 7, "00000002 'no' 0000", UNKNOWN),
    ("a name beyond the end", 7, "00000003 'db' 0000", INVALID),
    ("a name of 4 GiB", 7, "ffffffff 'db' 0000", INVALID),
    ("a request too few", 7, "00000002 'db' 0001", INVALID),
    ("a request too many", 7, "00000002 'db' 0000 0003", INVALID),
    ("half a request", 7, "00000002 'db' 0000 00", INVALID),
    ("nothing at all", 7, "", INVALID),
];

const BROKEN_WITH_CHUNKS: &[Broken] = &[
    ("no such export", 10, "00000002 'no' 00000000", UNKNOWN),
    (
        "a query of 4 GiB",
        10,
        "00000002 'db' 00000001 ffffffff",
        INVALID,
    ),
    ("a query too few", 10, "00000002 'db' 00000001", INVALID),
    ("4 billion queries", 10, "00000002 'db' ffffffff", INVALID),
    ("something behind", 10, "00000002 'db' 00000000 00", INVALID),
    ("no such export", 9, "00000002 'no' 00000000", UNKNOWN),
    ("half a name", 9, "00000002 'd'", INVALID),
];

/// Export `db` without a query.
const DB: &str = "00000002 'db' 00000000";

#[test]
fn each_broken_option_has_its_error_and_the_session_goes_on() {
    let mut server = greeted(ServerSecurity::Plain);
    let refused = |server: &mut ServerNegotiation, table: &[Broken]| {
        for (what, number, payload, expected) in table {
            let length = u32::try_from(bytes(payload).len()).expect("short");
            let answered = answer(server, &(option(*number, length) + payload));
            assert_eq!(only_reply(*number, &answered), *expected, "{what}");
            assert_eq!(server.step(), ServerPhase::More, "{what}");
        }
    };
    refused(&mut server, BROKEN);
    answer(&mut server, &option(8, 0));
    refused(&mut server, BROKEN_WITH_CHUNKS);
    answer(&mut server, &(option(7, 8) + "00000002 'db' 0000"));
    assert_eq!(agreed(&server).export, 0);
}

#[test]
fn long_options_are_passed_over_and_longer_ones_end_the_session() {
    let mut server = greeted(ServerSecurity::Plain);
    let longest = u32::try_from(OPTION).expect("short");
    answer(&mut server, &option(99, longest));
    assert_eq!(
        only_reply(99, &answer(&mut server, &"00".repeat(OPTION))),
        UNSUP
    );
    answer(&mut server, &option(99, longest + 1));
    assert_eq!(
        only_reply(99, &answer(&mut server, &"00".repeat(OPTION + 1))),
        TOO_BIG
    );

    server.receive(&bytes(&option(99, SKIPPED)));
    let piece = vec![0; 1 << 20];
    for _ in 0..SKIPPED >> 20 {
        assert!(server.output().is_empty());
        assert_eq!(server.receive(&piece), piece.len());
    }
    assert_eq!(only_reply(99, &std::mem::take(server.output())), TOO_BIG);
    server.receive(&bytes(&option(99, SKIPPED + 1)));
    assert_eq!(
        server.step(),
        ServerPhase::Closed(ServerError::TooLong(SKIPPED + 1))
    );
}

#[test]
fn a_client_that_never_ends_its_options_is_closed() {
    let mut server = greeted(ServerSecurity::Plain);
    for _ in 0..OPTIONS {
        assert_eq!(only_reply(99, &answer(&mut server, &option(99, 0))), UNSUP);
    }
    server.receive(&bytes(&option(99, 0)));
    assert_eq!(server.step(), ServerPhase::Closed(ServerError::TooMany));
}

#[test]
fn a_client_that_does_not_read_its_answers_is_not_read_either() {
    let mut server = greeted(ServerSecurity::Plain);
    let many = bytes(&option(3, 0)).repeat(1000);
    let taken = server.receive(&many);
    assert!(taken < many.len());
    assert!(server.output().len() > OUTPUT);
    assert!(server.output().len() < OUTPUT + 1000);
    assert_eq!(server.receive(&many[taken..]), 0);
    server.output().clear();
    assert_ne!(server.receive(&many[taken..]), 0);
}
