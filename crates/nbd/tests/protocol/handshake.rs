//! The greeting, the flags, and how negotiation ends.

use std::sync::Arc;

use nbd::Style;
use nbd::negotiation::{
    Agreed, ServerError, ServerNegotiation, ServerPhase, ServerSecurity, Sizes,
};

use crate::offered::{agreed, answer, bytes, db, greeted, iso, only_reply, option, server};

#[test]
fn the_greeting_is_that_of_fixed_newstyle() {
    let mut server = server(ServerSecurity::Plain);
    let greeting = bytes("4e42444d41474943 49484156454F5054 0003");
    assert_eq!(server.output(), &greeting);
    assert_eq!(server.step(), ServerPhase::More);
}

#[test]
fn flags_that_were_not_offered_end_the_session() {
    for (flags, open) in [
        (0, true),
        (1, true),
        (3, true),
        (4, false),
        (1 << 31, false),
    ] {
        let mut server = server(ServerSecurity::Plain);
        server.receive(&u32::to_be_bytes(flags));
        let expected = if open {
            ServerPhase::More
        } else {
            ServerPhase::Closed(ServerError::Flags(flags))
        };
        assert_eq!(server.step(), expected, "{flags:#x}");
    }
}

#[test]
fn the_old_way_has_124_zeroes_unless_the_client_waives_them() {
    // Size, then HAS_FLAGS, FLUSH, FUA, ROTATIONAL, TRIM, WRITE_ZEROES, MULTI_CONN, CACHE,
    // FAST_ZERO; no DF without structured replies.
    let expected = bytes("0000000001000000 0d7d");
    let ask = option(1, 2) + "'db'";
    let mut server = greeted(ServerSecurity::Plain);
    assert_eq!(answer(&mut server, &ask), expected);
    let whole = Agreed {
        export: 0,
        style: Style::Simple,
        contexts: Vec::new(),
        sizes: Sizes::NotAsked,
    };
    assert_eq!(agreed(&server), whole);

    let mut server = ServerNegotiation::new(Arc::new([db()]), ServerSecurity::Plain);
    server.output().clear();
    let answered = answer(&mut server, &("00000000".to_owned() + &ask));
    assert_eq!(answered.len(), 10 + 124);
    assert_eq!(answered[..10], expected);
    assert!(answered[10..].iter().all(|byte| *byte == 0));
}

#[test]
fn the_old_way_closes_where_it_cannot_answer() {
    let mut server = greeted(ServerSecurity::Plain);
    assert!(answer(&mut server, &(option(1, 2) + "'no'")).is_empty());
    assert_eq!(server.step(), ServerPhase::Closed(ServerError::Unknown));

    let mut server = greeted(ServerSecurity::Required);
    assert!(answer(&mut server, &(option(1, 2) + "'db'")).is_empty());
    assert_eq!(server.step(), ServerPhase::Closed(ServerError::TlsRequired));

    let mut server = greeted(ServerSecurity::Plain);
    answer(&mut server, &option(11, 0));
    assert!(answer(&mut server, &(option(1, 2) + "'db'")).is_empty());
    assert_eq!(
        server.step(),
        ServerPhase::Closed(ServerError::ExtendedName)
    );

    let mut server = greeted(ServerSecurity::Plain);
    server.receive(&bytes(&option(1, 4097)));
    assert_eq!(
        server.step(),
        ServerPhase::Closed(ServerError::NameTooLong(4097))
    );
}

#[test]
fn without_a_name_it_is_the_default_export() {
    let mut server = greeted(ServerSecurity::Plain);
    answer(&mut server, &option(1, 0));
    assert_eq!(agreed(&server).export, 0);

    let mut unnamed = db();
    unnamed.name = nbd::offer::Text::default();
    let mut server = ServerNegotiation::new(Arc::new([iso(), unnamed]), ServerSecurity::Plain);
    answer(&mut server, &("00000003".to_owned() + &option(1, 0)));
    assert_eq!(agreed(&server).export, 1);

    let mut server = ServerNegotiation::new(Arc::new([]), ServerSecurity::Plain);
    answer(&mut server, &("00000003".to_owned() + &option(1, 0)));
    assert_eq!(server.step(), ServerPhase::Closed(ServerError::Unknown));
}

#[test]
fn a_client_that_aborts_is_told_so() {
    let mut server = greeted(ServerSecurity::Required);
    let answered = answer(&mut server, &(option(2, 3) + "'bye'"));
    assert_eq!(
        answered,
        bytes("0003e889045565a9 00000002 00000001 00000000")
    );
    assert_eq!(server.step(), ServerPhase::Closed(ServerError::Aborted));
}

#[test]
fn an_option_that_begins_wrongly_ends_the_session() {
    let mut server = greeted(ServerSecurity::Plain);
    server.receive(&bytes("'IHAVEOPS' 00000003 00000000"));
    assert_eq!(
        server.step(),
        ServerPhase::Closed(ServerError::Magic(0x4948_4156_454f_5053))
    );
    assert_eq!(server.receive(&bytes(&option(3, 0))), 0);
}

#[test]
fn only_the_old_way_is_open_to_clients_that_do_not_know_the_fixed_one() {
    let mut server = server(ServerSecurity::Plain);
    server.output().clear();
    answer(&mut server, "00000002");
    for number in [3, 5, 6, 7, 8, 9, 10, 11, 99] {
        let answered = answer(&mut server, &option(number, 0));
        assert_eq!(only_reply(number, &answered), 0x8000_0003, "{number}");
    }
    answer(&mut server, &(option(1, 2) + "'db'"));
    assert_eq!(agreed(&server).export, 0);
}

#[test]
fn tls_forgets_what_was_agreed_before_it_and_takes_nothing_beyond() {
    let mut server = greeted(ServerSecurity::Optional);
    answer(&mut server, &option(8, 0));
    let set = option(10, 29) + "00000002 'db' 00000001 0000000f 'base:allocation'";
    answer(&mut server, &set);
    let mut sent = bytes(&option(5, 0));
    let length = sent.len();
    sent.extend_from_slice(&bytes(&option(8, 0)));
    assert_eq!(server.receive(&sent), length);
    let answered = std::mem::take(server.output());
    assert_eq!(
        answered,
        bytes("0003e889045565a9 00000005 00000001 00000000")
    );
    assert_eq!(server.step(), ServerPhase::StartTls);

    server.secured();
    assert_eq!(server.step(), ServerPhase::More);
    assert_eq!(
        only_reply(5, &answer(&mut server, &option(5, 0))),
        0x8000_0003
    );
    answer(&mut server, &(option(7, 8) + "00000002 'db' 0000"));
    assert_eq!(agreed(&server).style, Style::Simple);
    assert!(agreed(&server).contexts.is_empty());
}

#[test]
fn nothing_is_told_before_tls_where_it_is_required() {
    let mut server = greeted(ServerSecurity::Required);
    for number in [3, 6, 7, 8, 9, 10, 11, 99] {
        let answered = answer(&mut server, &option(number, 0));
        assert_eq!(only_reply(number, &answered), 0x8000_0005, "{number}");
    }
    assert_eq!(only_reply(5, &answer(&mut server, &option(5, 0))), 1);
    server.secured();
    let answered = answer(&mut server, &(option(6, 8) + "00000002 'db' 0000"));
    assert!(!answered.is_empty());
    answer(&mut server, &(option(1, 2) + "'db'"));
    assert_eq!(agreed(&server).export, 0);
}

#[test]
fn tls_is_not_on_before_it_was_asked_for() {
    let mut server = greeted(ServerSecurity::Required);
    server.secured();
    let answered = answer(&mut server, &option(3, 0));
    assert_eq!(only_reply(3, &answered), 0x8000_0005);
}

#[test]
fn a_service_that_goes_down_lets_nobody_begin() {
    let mut server = greeted(ServerSecurity::Optional);
    answer(&mut server, &option(8, 0));
    server.shut_down();
    for number in [3, 5, 6, 7, 8, 9, 10, 11, 99] {
        let answered = answer(&mut server, &option(number, 0));
        assert_eq!(only_reply(number, &answered), 0x8000_0007, "{number}");
    }
    assert_eq!(only_reply(2, &answer(&mut server, &option(2, 0))), 1);

    let mut server = greeted(ServerSecurity::Plain);
    server.shut_down();
    assert!(answer(&mut server, &(option(1, 2) + "'db'")).is_empty());
    assert_eq!(
        server.step(),
        ServerPhase::Closed(ServerError::ShuttingDown)
    );
}
