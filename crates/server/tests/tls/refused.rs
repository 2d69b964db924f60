//! Who is not let in, and that it disturbs nobody.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use server::clients::Seats;
use server::config::{SocketRights, TlsNeed};
use server::listener::Terms;
use server::tls::Security;

use crate::authority::{Authority, Papers};
use crate::client::{Client, Line, Shown, VERSIONS, config};
use crate::scene::{PATIENCE, Scene};

/// Says with the NBD protocol that TLS is to begin; then it is the client's turn.
fn start_tls(stream: &mut UnixStream) {
    stream.read_exact(&mut [0; 18]).expect("a greeting");
    let mut out = vec![0, 0, 0, 3];
    out.extend_from_slice(b"IHAVEOPT\0\0\0\x05\0\0\0\0");
    stream.write_all(&out).expect("sent");
    let mut reply = [0; 20];
    stream.read_exact(&mut reply).expect("a reply");
    assert_eq!(reply[12..16], [0, 0, 0, 1], "NBD_REP_ACK");
}

/// The first message of a client.
fn hello(papers: &Papers) -> Vec<u8> {
    let name = ServerName::try_from("localhost").expect("a name");
    let config = config(VERSIONS[1], papers, Shown::Nothing);
    let mut tls = ClientConnection::new(config, name).expect("a client");
    let mut hello = Vec::new();
    tls.write_tls(&mut hello).expect("written");
    hello
}

/// What a client is told that shakes hands in vain. By hand: a server that has refused reads no
/// more, and what it said is there behind the failure to write.
fn refusal(scene: &Scene, config: Arc<ClientConfig>) -> String {
    let mut stream = scene.knock();
    start_tls(&mut stream);
    let name = ServerName::try_from("localhost").expect("a name");
    let mut tls = ClientConnection::new(config, name).expect("a client");
    loop {
        while tls.wants_write() && tls.write_tls(&mut stream).is_ok() {}
        match tls.read_tls(&mut stream) {
            Ok(0) => return "closed without a word".to_owned(),
            Ok(_) => (),
            Err(error) => return error.to_string(),
        }
        if let Err(error) = tls.process_new_packets() {
            return error.to_string();
        }
    }
}

/// Waits until the server has closed. That it closes while something was not read is an error of
/// the socket.
fn is_closed(stream: &mut UnixStream) -> bool {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

/// Somebody who may come in does.
fn serves(scene: &Scene, papers: &Papers) {
    let tls = config(VERSIONS[1], papers, Shown::Of(papers));
    let mut client = Client::connect(scene.knock(), Some(tls)).expect("a session");
    client.write(0, &[7; 512]);
    assert_eq!(client.read(0, 512), [7; 512]);
}

#[test]
fn clients_with_unknown_certificates_or_none_are_refused() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (papers, unknown) = (ours.papers(), theirs.papers());
    // The same name does not help.
    let pretended = Authority::new("ours").papers();
    let scene = Scene::with(&papers.strict());
    for version in VERSIONS {
        for shown in [Shown::Nothing, Shown::Of(&unknown), Shown::Of(&pretended)] {
            let said = refusal(&scene, config(version, &papers, shown));
            assert!(said.contains("alert"), "{version:?}: {said}");
        }
    }
    serves(&scene, &papers);
}

#[test]
fn a_servers_certificate_is_none_for_a_client() {
    let papers = Authority::new("ours").papers();
    let scene = Scene::with(&papers.strict());
    let theft = Authority::new("ours").papers();
    for (from, to) in [("server-cert", "client-cert"), ("server-key", "client-key")] {
        let text = std::fs::read_to_string(papers.file(&format!("{from}.pem"))).expect("a file");
        theft.write(&format!("{to}.pem"), &text);
    }
    let tls = config(VERSIONS[1], &papers, Shown::Of(&theft));
    assert!(Client::connect(scene.knock(), Some(tls)).is_err());
    serves(&scene, &papers);
}

#[test]
fn clients_without_tls_are_refused_where_it_is_required() {
    let papers = Authority::new("ours").papers();
    let scene = Scene::with(&papers.server(TlsNeed::Required));
    assert!(Client::connect(scene.knock(), None).is_err());
    serves(&scene, &papers);
    let scene = Scene::with(&papers.server(TlsNeed::Optional));
    assert!(Client::connect(scene.knock(), None).is_ok());
    serves(&scene, &papers);
}

#[test]
fn clients_that_require_tls_go_where_there_is_none() {
    let papers = Authority::new("ours").papers();
    let scene = Scene::new(Security::Plain);
    let tls = config(VERSIONS[1], &papers, Shown::Nothing);
    assert!(Client::connect(scene.knock(), Some(tls)).is_err());
}

#[test]
fn garbage_instead_of_hands_is_closed_and_disturbs_nobody() {
    let papers = Authority::new("ours").papers();
    // It is not the deadline that closes.
    let scene = Scene::new(Terms {
        security: Security::load(Some(&papers.strict())).expect("certificates"),
        longest: 10 * PATIENCE,
        seats: Seats::default(),
        refused: Arc::default(),
        rights: SocketRights::default(),
    });
    let hello = hello(&papers);
    let mut flipped = hello.clone();
    flipped[5] ^= 0x80;
    let mut long = hello.clone();
    long[3..5].copy_from_slice(&[0xff, 0xff]);
    let cases: [Vec<u8>; 6] = [
        vec![0; 4096],
        vec![0xff; 4096],
        b"IHAVEOPT\0\0\0\x07\0\0\0\x08\0\0\0\0\0\0\0\0".to_vec(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        flipped,
        long,
    ];
    for bytes in cases {
        let mut stream = scene.knock();
        start_tls(&mut stream);
        stream.write_all(&bytes).expect("sent");
        assert!(is_closed(&mut stream), "{:02x?}", &bytes[..16]);
    }
    serves(&scene, &papers);
}

#[test]
fn garbage_inside_of_a_session_cuts_off_that_client_alone() {
    let papers = Authority::new("ours").papers();
    let scene = Scene::with(&papers.strict());
    for version in VERSIONS {
        let tls = config(version, &papers, Shown::Of(&papers));
        let mut client = Client::connect(scene.knock(), Some(tls.clone())).expect("a session");
        let mut beside = Client::connect(scene.knock(), Some(tls)).expect("a session");
        // A record that nobody has sealed: 32 bytes of application data.
        let mut record = vec![23, 3, 3, 0, 32];
        record.extend_from_slice(&[0x5a; 32]);
        let Line::Secure(_) = client.line else {
            panic!("in the clear");
        };
        let socket = client.line.socket();
        socket.write_all(&record).expect("sent");
        assert!(is_closed(socket));
        beside.write(4096, &[9; 512]);
        assert_eq!(beside.read(4096, 512), [9; 512]);
    }
}

/// None of them ends by itself: without the deadline the test would wait until its own patience
/// is over, and fail.
#[test]
fn a_client_that_stops_in_the_middle_is_closed_at_the_deadline() {
    let papers = Authority::new("ours").papers();
    let terms = Terms {
        security: Security::load(Some(&papers.strict())).expect("certificates"),
        longest: Duration::from_millis(500),
        seats: Seats::default(),
        refused: Arc::default(),
        rights: SocketRights::default(),
    };
    let scene = Scene::new(terms);
    let hello = hello(&papers);
    // Nothing of it, a part of it, and all, but no answer to the server's.
    for part in [0, 1, hello.len() / 2, hello.len()] {
        let mut stream = scene.knock();
        start_tls(&mut stream);
        stream.write_all(&hello[..part]).expect("sent");
        assert!(is_closed(&mut stream), "after {part} bytes");
    }
    // Hands are shaken, and then it says nothing.
    let mut stream = scene.knock();
    start_tls(&mut stream);
    let name = ServerName::try_from("localhost").expect("a name");
    let tls = config(VERSIONS[1], &papers, Shown::Of(&papers));
    let mut tls = ClientConnection::new(tls, name).expect("a client");
    while tls.is_handshaking() {
        tls.complete_io(&mut stream).expect("let in");
    }
    assert!(is_closed(&mut stream));
}
