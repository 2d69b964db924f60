//! Data goes through unharmed and unseen.

use std::io::Read;

use block::Durability;
use block::operation::Ask;
use server::config::TlsNeed;
use server::tls::Security;

use crate::authority::Authority;
use crate::client::{Client, Shown, VERSIONS, config};
use crate::scene::{BYTES, Scene};

/// Bytes that are not alike: those of each place and `seed`.
fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let word = |at: usize| {
        let mixed = (at as u64 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).to_le_bytes()
    };
    (0..length / 8).flat_map(word).collect()
}

/// Around records (16 KiB), slices (256 KiB), what is received at once (64 and 128 KiB), and the
/// longest request.
const SIZES: [usize; 9] = [
    512,
    4096,
    (16 << 10) - 512,
    (16 << 10) + 512,
    64 << 10,
    (128 << 10) + 512,
    256 << 10,
    (1 << 20) + 512,
    32 << 20,
];

#[test]
fn what_is_read_over_tls_is_what_was_written() {
    let papers = Authority::new("ours").papers();
    for version in VERSIONS {
        let scene = Scene::with(&papers.strict());
        let tls = config(version, &papers, Shown::Of(&papers));
        let mut client = Client::connect(scene.knock(), Some(tls)).expect("a session");
        for (index, size) in SIZES.into_iter().enumerate() {
            let bytes = pattern(index as u64, size);
            let offset = index as u64 * 4096;
            client.write(offset, &bytes);
            assert!(
                client.read(offset, size as u64) == bytes,
                "{size} bytes, {version:?}"
            );
        }
    }
}

#[test]
fn many_requests_at_once_over_tls_are_each_answered() {
    let papers = Authority::new("ours").papers();
    let scene = Scene::with(&papers.server(TlsNeed::Optional));
    for tls in [true, false] {
        let tls = tls.then(|| config(VERSIONS[1], &papers, Shown::Nothing));
        let mut client = Client::connect(scene.knock(), tls).expect("a session");
        let whole = pattern(3, 1 << 20);
        let mut asked: Vec<(u64, usize, usize)> = Vec::new();
        for (index, bytes) in whole.chunks(12 << 10).enumerate() {
            let durability = Durability::Volatile;
            let (offset, length) = (index * (12 << 10), bytes.len() as u64);
            let cookie = client.ask(Ask::Write { durability }, offset as u64, length, bytes);
            asked.push((cookie, 0, 0));
        }
        for _ in 0..asked.len() {
            let (cookie, _) = client.answer().expect("written");
            asked.retain(|&(other, ..)| other != cookie);
        }
        assert_eq!(asked, []);
        for index in 0..128 {
            let (offset, length) = (index * 5632, 512 * (1 + index % 90));
            let cookie = client.ask(Ask::Read, offset as u64, length as u64, &[]);
            asked.push((cookie, offset, length));
        }
        for _ in 0..asked.len() {
            let (cookie, bytes) = client.answer().expect("read");
            let place = asked.iter().position(|&(other, ..)| other == cookie);
            let (_, offset, length) = asked.remove(place.expect("asked for"));
            assert!(bytes == whole[offset..offset + length], "at {offset}");
        }
    }
}

/// What the kernel has of replies goes on; those behind it must not wait for a further request.
#[test]
fn replies_that_came_while_others_were_being_sent_follow_by_themselves() {
    let papers = Authority::new("ours").papers();
    let scene = Scene::with(&papers.server(TlsNeed::Optional));
    for tls in [true, false] {
        let tls = tls.then(|| config(VERSIONS[1], &papers, Shown::Nothing));
        let mut client = Client::connect(scene.knock(), tls).expect("a session");
        let mut other = Client::connect(scene.knock(), None).expect("a session");
        let long = 8 << 20;
        // More than the socket takes, and nobody reads it.
        let first = client.ask(Ask::Read, 0, long, &[]);
        other.read(0, 512);
        // The loop looks at this before it looks at what the other asks for next.
        let second = client.ask(Ask::Read, 0, 512, &[]);
        for _ in 0..8 {
            other.read(0, 512);
        }
        assert_eq!(client.answer().expect("read").0, first);
        assert_eq!(client.answer().expect("read").0, second);
    }
}

#[test]
fn nothing_of_a_session_is_seen_in_the_clear() {
    let papers = Authority::new("ours").papers();
    let scene = Scene::with(&papers.server(TlsNeed::Optional));
    let secret = pattern(5, 64 << 10);
    for tls in [true, false] {
        let tls = tls.then(|| config(VERSIONS[0], &papers, Shown::Nothing));
        let is_secure = tls.is_some();
        let mut client = Client::connect(scene.knock(), tls).expect("a session");
        client.write(0, &secret);
        client.read(0, 64 << 10);
        let seen = client.seen.lock().expect("one thread");
        let is_seen = |some: &[u8]| seen.windows(some.len()).any(|window| window == some);
        assert!(seen.len() > 2 * secret.len());
        assert_eq!(is_seen(&secret[512..544]), !is_secure);
        assert_eq!(is_seen(b"volume"), !is_secure);
    }
}

#[test]
fn the_end_of_a_session_is_said_inside_of_it() {
    let papers = Authority::new("ours").papers();
    let scene = Scene::with(&papers.server(TlsNeed::Required));
    for version in VERSIONS {
        let tls = config(version, &papers, Shown::Nothing);
        let client = Client::connect(scene.knock(), Some(tls)).expect("a session");
        // Without close_notify rustls says `UnexpectedEof`.
        assert_eq!(client.leave().expect("said"), 0);
    }
    // The same if the service goes down.
    let tls = config(VERSIONS[1], &papers, Shown::Nothing);
    let mut client = Client::connect(scene.knock(), Some(tls)).expect("a session");
    client.read(BYTES - 512, 512);
    drop(scene);
    assert_eq!(client.line.read(&mut [0]).expect("said"), 0);
}

#[test]
fn a_client_may_say_inside_of_tls_that_it_goes() {
    let papers = Authority::new("ours").papers();
    let scene = Scene::with(&papers.server(TlsNeed::Required));
    let tls = config(VERSIONS[1], &papers, Shown::Nothing);
    let mut client = Client::connect(scene.knock(), Some(tls)).expect("a session");
    let crate::client::Line::Secure(secure) = &mut client.line else {
        panic!("in the clear");
    };
    secure.conn.send_close_notify();
    assert_eq!(client.line.read(&mut [0]).expect("said"), 0);
}

#[test]
fn without_tls_nothing_changes() {
    let scene = Scene::new(Security::Plain);
    let mut client = Client::connect(scene.knock(), None).expect("a session");
    for (index, size) in SIZES.into_iter().enumerate() {
        let bytes = pattern(index as u64, size);
        client.write(0, &bytes);
        assert!(client.read(0, size as u64) == bytes, "{size} bytes");
    }
    assert_eq!(client.leave().expect("closed"), 0);
}
