//! The client's side of the negotiation, byte by byte, and against servers of other kinds.

use nbd::client::{
    ANSWER, ClientError, ClientNegotiation, ClientOptions, ClientPhase, ClientSecurity, REPLIES,
    Session,
};
use nbd::offer::{Features, Text};
use nbd::{Context, Style};

use crate::offered::{bytes, option};

const FIXED: &str = "'NBDMAGIC' 'IHAVEOPT' 0003";

fn wish() -> ClientOptions {
    ClientOptions {
        export: Text::new("db").expect("short"),
        style: Style::Extended,
        contexts: vec![Context::Allocation],
        security: ClientSecurity::Plain,
    }
}

/// What the client sends when the server says this.
fn says(client: &mut ClientNegotiation, text: &str) -> Vec<u8> {
    let said = bytes(text);
    assert_eq!(client.receive(&said), said.len());
    std::mem::take(client.output())
}

/// A reply to an option, without and with a payload.
fn ack(number: u32) -> String {
    reply(number, 1, "")
}

fn reply(number: u32, kind: u32, payload: &str) -> String {
    let length = bytes(payload).len();
    format!("0003e889045565a9 {number:08x} {kind:08x} {length:08x} {payload}")
}

const UNSUP: u32 = 0x8000_0001;

fn set_context() -> Vec<u8> {
    bytes(&(option(10, 29) + "00000002 'db' 00000001 0000000f 'base:allocation'"))
}

fn go() -> Vec<u8> {
    bytes(&(option(7, 12) + "00000002 'db' 0002 0002 0003"))
}

fn session(client: &ClientNegotiation) -> Session {
    match client.step() {
        ClientPhase::Agreed(session) => session,
        other => panic!("{other:?}"),
    }
}

fn reason(client: &ClientNegotiation) -> ClientError {
    match client.step() {
        ClientPhase::Closed(reason) => reason,
        other => panic!("{other:?}"),
    }
}

/// 1 GiB that can be flushed.
const EXPORT: &str = "0000 0000000040000000 0005";

#[test]
fn all_that_is_wished_is_asked_for_in_order() {
    let mut client = ClientNegotiation::new(wish());
    let mut expected = bytes("00000003");
    expected.extend(bytes(&option(11, 0)));
    assert_eq!(says(&mut client, FIXED), expected);
    assert_eq!(says(&mut client, &ack(11)), set_context());
    assert!(says(&mut client, &reply(10, 4, "00000007 'base:allocation'")).is_empty());
    assert_eq!(says(&mut client, &ack(10)), go());
    for payload in [
        EXPORT,
        "0002 'a disk'",
        "0003 00000200 00001000 ffffffff",
        "0077 'unknown ones are passed over'",
    ] {
        assert!(says(&mut client, &reply(7, 3, payload)).is_empty());
    }
    assert_eq!(client.step(), ClientPhase::More);
    assert!(says(&mut client, &ack(7)).is_empty());
    let session = session(&client);
    assert_eq!(session.agreed.style, Style::Extended);
    assert_eq!(session.agreed.contexts, [(7, Context::Allocation)]);
    assert_eq!(session.offer.size, 1 << 30);
    assert_eq!(session.offer.description.as_str(), "a disk");
    let block = session.offer.block;
    assert_eq!(
        (block.min(), block.preferred(), block.max()),
        (512, 4096, 64 << 20)
    );
    let features = Features {
        flush: true,
        ..Features::default()
    };
    assert_eq!(session.offer.features, features);
    // What follows are replies to requests.
    assert_eq!(client.receive(&[1, 2, 3]), 0);
}

#[test]
fn what_a_server_does_not_know_is_done_without() {
    let mut client = ClientNegotiation::new(wish());
    says(&mut client, FIXED);
    assert_eq!(
        says(&mut client, &reply(11, UNSUP, "'what?'")),
        bytes(&option(8, 0))
    );
    assert_eq!(says(&mut client, &reply(8, UNSUP, "")), go());
    let old = bytes(&(option(1, 2) + "'db'"));
    assert_eq!(says(&mut client, &reply(7, UNSUP, "")), old);
    says(&mut client, "0000000040000000 0005");
    let session = session(&client);
    assert_eq!(session.agreed.style, Style::Simple);
    assert_eq!(session.offer.size, 1 << 30);
    assert_eq!(session.offer.block.min(), 512);
    assert_eq!(session.offer.block.max(), 32 << 20);
}

#[test]
fn structured_replies_are_the_second_best() {
    let mut client = ClientNegotiation::new(wish());
    says(&mut client, FIXED);
    says(&mut client, &reply(11, UNSUP, ""));
    assert_eq!(says(&mut client, &ack(8)), set_context());
    assert_eq!(says(&mut client, &reply(10, 0x8000_0003, "")), go());
    says(&mut client, &reply(7, 3, EXPORT));
    says(&mut client, &ack(7));
    assert_eq!(session(&client).agreed.style, Style::Structured);
    assert!(session(&client).agreed.contexts.is_empty());
}

#[test]
fn no_more_is_asked_for_than_wished() {
    let simple = ClientOptions {
        style: Style::Simple,
        ..wish()
    };
    let mut client = ClientNegotiation::new(simple);
    assert_eq!(says(&mut client, FIXED)[4..], go());
    let structured = ClientOptions {
        style: Style::Structured,
        contexts: Vec::new(),
        ..wish()
    };
    let mut client = ClientNegotiation::new(structured);
    assert_eq!(says(&mut client, FIXED)[4..], bytes(&option(8, 0)));
    assert_eq!(says(&mut client, &ack(8)), go());
}

#[test]
fn a_server_without_fixed_newstyle_is_asked_the_old_way() {
    let mut client = ClientNegotiation::new(wish());
    let sent = says(&mut client, "'NBDMAGIC' 'IHAVEOPT' 0000");
    assert_eq!(
        sent,
        bytes(&("00000000".to_owned() + &option(1, 2) + "'db'"))
    );
    says(&mut client, "0000000040000000 0005");
    assert_eq!(client.step(), ClientPhase::More);
    says(&mut client, &"00".repeat(124));
    assert_eq!(session(&client).offer.size, 1 << 30);
    let secure = ClientOptions {
        security: ClientSecurity::Required,
        ..wish()
    };
    let mut client = ClientNegotiation::new(secure);
    says(&mut client, "'NBDMAGIC' 'IHAVEOPT' 0000");
    assert!(matches!(reason(&client), ClientError::NoTls(_)));
}

#[test]
fn tls_comes_first_and_nothing_plain_after_it() {
    for security in [ClientSecurity::IfOffered, ClientSecurity::Required] {
        let secure = ClientOptions { security, ..wish() };
        let mut client = ClientNegotiation::new(secure.clone());
        assert_eq!(says(&mut client, FIXED)[4..], bytes(&option(5, 0)));
        let mut said = bytes(&ack(5));
        let length = said.len();
        said.extend(bytes(&ack(11)));
        assert_eq!(client.receive(&said), length);
        assert_eq!(client.step(), ClientPhase::StartTls);
        client.secured();
        assert_eq!(*client.output(), bytes(&option(11, 0)));

        let mut client = ClientNegotiation::new(secure);
        says(&mut client, FIXED);
        let sent = says(&mut client, &reply(5, 0x8000_0002, "'no'"));
        if security == ClientSecurity::Required {
            // It says that it goes.
            assert_eq!(sent, bytes(&option(2, 0)));
            assert_eq!(reason(&client), ClientError::NoTls("no".to_owned()));
        } else {
            assert_eq!(sent, bytes(&option(11, 0)));
        }
    }
    let mut client = ClientNegotiation::new(wish());
    client.secured();
    assert!(client.output().is_empty());
}

#[test]
fn a_refusal_is_told_with_its_message_and_the_server_is_left() {
    for kind in [
        0x8000_0002,
        0x8000_0005,
        0x8000_0006,
        0x8000_0007,
        0x8000_0008,
    ] {
        let mut client = ClientNegotiation::new(ClientOptions {
            style: Style::Simple,
            ..wish()
        });
        says(&mut client, FIXED);
        let sent = says(&mut client, &reply(7, kind, "'no such thing'"));
        assert_eq!(sent, bytes(&option(2, 0)));
        let message = "no such thing".to_owned();
        assert_eq!(reason(&client), ClientError::Refused { kind, message });
    }
}

#[test]
fn what_is_no_server_is_closed() {
    let mut client = ClientNegotiation::new(wish());
    says(&mut client, "'HTTP/1.1' '400 Bad ' 0000");
    assert_eq!(
        reason(&client),
        ClientError::NoServer(0x4854_5450_2f31_2e31)
    );
    let mut client = ClientNegotiation::new(wish());
    says(&mut client, "'NBDMAGIC' 00420281861253 00 0000");
    assert!(matches!(reason(&client), ClientError::NoOptions(_)));
    let mut client = ClientNegotiation::new(wish());
    says(&mut client, "'NBDMAGIC' 0000420281861253 0000");
    assert_eq!(reason(&client), ClientError::OldStyle);
}

#[test]
fn hostile_replies_to_options_end_the_session() {
    let begun = || {
        let mut client = ClientNegotiation::new(wish());
        says(&mut client, FIXED);
        client
    };
    let at_go = || {
        let mut client = begun();
        says(&mut client, &ack(11));
        says(&mut client, &ack(10));
        client
    };
    let long = format!("0003e889045565a9 0000000b 80000001 {:08x}", ANSWER + 1);
    let mut client = begun();
    says(&mut client, &long);
    assert_eq!(reason(&client), ClientError::TooLong(8193));
    for (text, of) in [
        ("0003e889045565aa 0000000b 00000001 00000000".to_owned(), 11),
        (ack(8), 11),
        (reply(11, 1, "00"), 11),
        (reply(11, 2, ""), 11),
        (reply(11, 3, EXPORT), 11),
    ] {
        let mut client = begun();
        says(&mut client, &text);
        assert_eq!(reason(&client), ClientError::Reply(of), "{text}");
    }
    for payload in ["", "00", "0003 00000200 00001000"] {
        let mut client = at_go();
        says(&mut client, &reply(7, 3, payload));
        assert_eq!(reason(&client), ClientError::Reply(7), "{payload}");
    }
    for payload in ["0000 00", ""] {
        let mut client = at_go();
        if !payload.is_empty() {
            says(&mut client, &reply(7, 3, payload));
        }
        says(&mut client, &ack(7));
        assert_eq!(reason(&client), ClientError::NoExport, "{payload}");
    }
    for sizes in [
        "00000000 00001000 00100000",
        "00000300 00001000 00100000",
        "00020000 00020000 00100000",
        "00001000 00000200 00100000",
        "00001000 00001800 00100000",
        "00001000 00001000 00000200",
    ] {
        let mut client = at_go();
        says(&mut client, &reply(7, 3, &format!("0003 {sizes}")));
        assert!(
            matches!(reason(&client), ClientError::BlockSizes(_)),
            "{sizes}"
        );
    }
    let mut client = at_go();
    for _ in 0..REPLIES {
        says(&mut client, &reply(7, 3, "0077"));
    }
    client.receive(&bytes(&reply(7, 3, "0077")));
    assert_eq!(reason(&client), ClientError::TooMany);
}

#[test]
fn contexts_that_were_not_asked_for_end_the_session() {
    for (first, second) in [
        ("00000001 'base:other'", None),
        ("0000", None),
        (
            "00000001 'base:allocation'",
            Some("00000002 'base:allocation'"),
        ),
    ] {
        let mut client = ClientNegotiation::new(wish());
        says(&mut client, FIXED);
        says(&mut client, &ack(11));
        says(&mut client, &reply(10, 4, first));
        if let Some(second) = second {
            assert_eq!(client.step(), ClientPhase::More);
            says(&mut client, &reply(10, 4, second));
        }
        assert_eq!(reason(&client), ClientError::Reply(10), "{first}");
    }
}
