//! What is refused, and what is said then.

use headtime_client::{Error, FilePiece, Places, StreamMode, StreamRefused, Terms};

use super::service::{BYTES, PROMISING, Service, terms, wait_until_served};

fn places() -> Places {
    Places {
        length: 1 << 20,
        pieces: vec![FilePiece(0, 4096, 1 << 20)],
    }
}

fn refused(service: &Service, export: &str, places: Places, terms: &Terms) -> StreamRefused {
    let client = service.client();
    match client.attach_places(export, places, terms) {
        Err(Error::Refused(refused)) => refused,
        Err(other) => panic!("{other}"),
        Ok(stream) => panic!("{:?} was granted", stream.granted()),
    }
}

#[test]
fn every_refusal_says_why_and_what_would_be_granted() {
    let Some(service) = Service::start() else {
        return;
    };
    let with = |rate, buffer| Terms {
        rate,
        buffer,
        ..terms()
    };
    let why = |terms: &Terms| refused(&service, "disk", places(), terms);
    let none = why(&with(0, 65_536));
    assert!(none.reason.contains("a rate of 0"), "{none}");
    let fast = why(&with(10_000_000_000, 65_536));
    assert!(fast.reason.contains("the disk does"), "{fast}");
    let empty = why(&with(1_000_000, 0));
    assert!(empty.reason.contains("a buffer of 0"), "{empty}");
    let small = why(&Terms {
        memory: Some(65_536),
        ..with(1_000_000, 65_536)
    });
    assert!(small.reason.contains("memory"), "{small}");
    // What would be granted is: with just that rate, and no more.
    let tight = Terms {
        memory: Some(2 << 20),
        ..with(150_000_000, 65_536)
    };
    let client = service.client();
    let offered = || {
        let largest = why(&tight).largest_rate.expect("a rate");
        let terms = Terms {
            rate: largest,
            ..tight.clone()
        };
        Some((
            largest,
            client.attach_places("disk", places(), &terms).ok()?,
        ))
    };
    // A belief that is refined between the offer and the request moves times by some millionths.
    let granted = (0..4).find_map(|_| offered());
    let (largest, stream) = granted.expect("as it said");
    stream.close().expect("it was there");
    service.wait_for_streams(0);
    let more = Terms {
        rate: largest + largest / 50,
        ..tight
    };
    assert!(why(&more).largest_rate.is_some());
}

#[test]
fn a_stream_for_which_others_have_left_too_little_memory_is_told_so() {
    let pool = "[drive.streams]\nlatency_ms = 0.2\nlongest_round_s = 0.05\nmemory = \"1 MiB\"\n";
    let Some(service) = Service::start_with(PROMISING, pool) else {
        return;
    };
    let large = Terms {
        memory: Some(896 << 10),
        ..terms()
    };
    let client = service.client();
    let stream = client.attach_places("disk", places(), &large);
    let stream = stream.expect("the pool has as much");
    let small = refused(&service, "disk", places(), &terms());
    let said = "131072 of 1048576 for all streams are left";
    assert!(small.reason.contains(said), "{small}");
    let least = small.least_memory;
    assert!(least.is_some_and(|least| least > 128 << 10), "{small}");
    stream.close().expect("it was there");
}

#[test]
fn places_that_are_not_the_volumes_are_refused() {
    let Some(service) = Service::start() else {
        return;
    };
    let at = |pieces| Places {
        length: 8192,
        pieces,
    };
    let why = |places| refused(&service, "disk", places, &terms()).reason;
    let outside = why(at(vec![FilePiece(0, BYTES - 4096, 8192)]));
    assert!(outside.contains("expected places within"), "{outside}");
    let beyond = why(at(vec![FilePiece(0, u64::MAX - 4095, 8192)]));
    assert!(beyond.contains("expected places within"), "{beyond}");
    let parts = why(at(vec![FilePiece(0, 100, 4096)]));
    assert!(parts.contains("whole blocks"), "{parts}");
    let twice = why(at(vec![
        FilePiece(0, 0, 8192),
        FilePiece(4096, 65_536, 4096),
    ]));
    assert!(twice.contains("offset 4096"), "{twice}");
    let other = refused(&service, "film", places(), &terms()).reason;
    assert!(
        other.contains("no export film: expected one of disk"),
        "{other}"
    );
}

#[test]
fn two_may_play_the_same_and_one_may_record_it() {
    let Some(service) = Service::start() else {
        return;
    };
    let client = service.client();
    let record = Terms {
        mode: StreamMode::Record,
        ..terms()
    };
    let attach = |terms: &Terms| client.attach_places("disk", places(), terms);
    let first = attach(&terms()).expect("granted");
    let second = attach(&terms()).expect("granted as well");
    wait_until_served(&first);
    wait_until_served(&second);
    let recording = attach(&record).expect("granted beside them");
    let refused = attach(&record)
        .expect_err("it is recorded already")
        .to_string();
    assert!(refused.contains("records there already"), "{refused}");
    recording.close().expect("it was there");
    service.wait_for_streams(2);
    attach(&record).expect("nobody does any more");
}

#[test]
fn users_and_names_have_what_their_rules_say() {
    let rules = "[drive.streams]\nlatency_ms = 0.2\nlongest_round_s = 0.05\n\
                 [[drive.streams.rule]]\nuser = 0\nname = \"camera-\"\nstreams = 1\n\
                 [[drive.streams.rule]]\nuser = 4711\n\
                 [[drive.streams.rule]]\nname = \"film\"\nrate = \"15 MB\"\n";
    let Some(service) = Service::start_with(PROMISING, rules) else {
        return;
    };
    let client = service.client();
    let attach = |name: &str| {
        let name = name.to_owned();
        client.attach_places("disk", places(), &Terms { name, ..terms() })
    };
    let why = |name: &str| attach(name).map(|_| ()).expect_err(name).to_string();
    let camera = attach("camera-1").expect("allowed");
    assert!(
        why("camera-2").contains("1 streams at once"),
        "{}",
        why("camera-2")
    );
    let film = attach("film").expect("allowed");
    assert!(why("film-2").contains("of which"), "{}", why("film-2"));
    assert!(
        why("other").contains("user 0 may have no stream"),
        "{}",
        why("other")
    );
    camera.close().expect("it was there");
    service.wait_for_streams(1);
    attach("camera-2").expect("it is free again");
    film.close().expect("it was there");
}

#[test]
fn a_drive_that_promises_nothing_says_what_it_needs() {
    for (drive, tables, part) in [
        (
            "policy = \"drive\"\nbelief = \"emulated\"",
            "",
            "a policy such as sptf-sw60",
        ),
        (PROMISING, "", "[drive.streams]"),
    ] {
        let Some(service) = Service::start_with(drive, tables) else {
            return;
        };
        let why = refused(&service, "disk", places(), &terms()).reason;
        assert!(
            why.contains("promises nothing") && why.contains(part),
            "{why}"
        );
    }
}

#[test]
fn the_program_refuses_in_one_line() {
    let Some(service) = Service::start() else {
        return;
    };
    std::fs::write(service.path("film"), vec![0; 1 << 20]).expect("a file");
    for (words, part) in [
        (vec!["play", "film", "--rate", "0"], "--rate 0"),
        (
            vec!["play", "film", "--rate", "1M", "--buffer", "4Ki"],
            "smaller than one read",
        ),
        (
            vec!["play", "film", "--rate", "1M", "--read", "100"],
            "whole pages",
        ),
        (vec!["play", "nothing", "--rate", "1M"], "nothing"),
        (vec!["play", "film", "--rate", "1M"], "name the export"),
        (
            vec!["record", "film", "--rate", "1M", "--seconds", "1"],
            "expected a new name",
        ),
        (
            vec!["record", "new", "--rate", "1M", "--seconds", "0"],
            "something to write",
        ),
    ] {
        let (is_good, text) = service.headtime(&words);
        assert!(!is_good && text.contains(part), "{words:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{words:?}: {text}");
    }
}
