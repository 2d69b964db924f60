//! Streams on bytes of a volume that the client names itself.

use std::os::unix::fs::FileExt as _;

use headtime_client::{
    FileChange, FilePiece, Places, Stream, StreamMode, StreamStatus, StreamUpdate, Terms,
};

use super::service::{
    BYTES, HANGS, PROMISING, Service, contents, is_at, terms, wait_for, wait_until_served,
};

const MIB: u64 = 1 << 20;

/// A file of so many bytes in two pieces, the second before the first.
fn places(half: u64) -> Places {
    Places {
        length: 2 * half,
        pieces: vec![
            FilePiece(0, 64 * MIB, half),
            FilePiece(half, 32 * MIB, half),
        ],
    }
}

fn attach(service: &Service, places: Places, terms: &Terms) -> (headtime_client::Client, Stream) {
    let client = service.client();
    let stream = client
        .attach_places("disk", places, terms)
        .expect("granted");
    (client, stream)
}

#[test]
fn what_is_played_comes_from_memory_and_is_what_was_written_last() {
    let Some(service) = Service::start() else {
        return;
    };
    let volume = service.volume();
    let (length, read) = (8 * MIB, 64 << 10);
    volume
        .write_all_at(&contents(64 * MIB, length as usize, 1), 64 * MIB)
        .expect("written");
    volume.sync_all().expect("on the medium");
    let whole = Places {
        length,
        pieces: vec![FilePiece(0, 64 * MIB, length)],
    };
    let (client, stream) = attach(&service, whole, &terms());
    wait_until_served(&stream);
    let mut at = 0;
    while at < length {
        // What is in the buffer by now is written over from elsewhere.
        let version = 1 + u64::from(at % (3 * read) == 0);
        if version == 2 {
            let bytes = contents(64 * MIB + at, read as usize, 2);
            volume.write_all_at(&bytes, 64 * MIB + at).expect("written");
        }
        assert!(
            is_at(&volume, 64 * MIB + at, read as usize, version),
            "at {at}"
        );
        at += read;
        stream.position(at).expect("it serves");
    }
    let listed = client.streams().expect("a list");
    assert_eq!((listed.len(), listed[0].terms.name.as_str()), (1, "test"));
    // The first read that was written over came from memory as well.
    assert!(listed[0].from_memory_total > 0, "{listed:?}");
    stream.close().expect("it was there");
    service.wait_for_streams(0);
    service.end();
}

#[test]
fn what_is_recorded_is_read_flushed_and_found_by_the_next_service() {
    let Some(service) = Service::start() else {
        return;
    };
    let volume = service.volume();
    let half = 2 * MIB;
    for (mode, version) in [(StreamMode::Record, 3), (StreamMode::RecordSync, 4)] {
        let terms = Terms { mode, ..terms() };
        let (client, stream) = attach(&service, places(half), &terms);
        for at in (0..2 * half).step_by(64 << 10) {
            let start = match at.checked_sub(half) {
                None => 64 * MIB + at,
                Some(at) => 32 * MIB + at,
            };
            volume
                .write_all_at(&contents(start, 64 << 10, version), start)
                .expect("written");
            // It is in memory, or on its way.
            assert!(is_at(&volume, start, 64 << 10, version), "{mode:?} at {at}");
        }
        // A read that only begins in what is not written yet.
        let mut across = vec![0; 256 << 10];
        let end = 32 * MIB + half;
        volume
            .read_exact_at(&mut across, end - (128 << 10))
            .expect("bytes");
        assert_eq!(
            across[..128 << 10],
            contents(end - (128 << 10), 128 << 10, version)
        );
        volume.sync_all().expect("flushed");
        drop((stream, client));
        service.wait_for_streams(0);
        assert!(is_at(&volume, 64 * MIB, half as usize, version));
        assert!(is_at(&volume, 32 * MIB, half as usize, version));
    }
    service.end();
}

/// A flush is over only when what was acknowledged before is in the image: the service is killed, and
/// another one finds it.
#[test]
fn what_was_flushed_survives_the_service() {
    let Some(service) = Service::start() else {
        return;
    };
    let volume = service.volume();
    let terms = Terms {
        mode: StreamMode::Record,
        ..terms()
    };
    let (_client, _stream) = attach(&service, places(MIB), &terms);
    let bytes = contents(64 * MIB, 320 << 10, 5);
    for (index, part) in bytes.chunks(64 << 10).enumerate() {
        let at = 64 * MIB + index as u64 * (64 << 10);
        volume.write_all_at(part, at).expect("written");
    }
    volume.sync_all().expect("flushed");
    let image = std::fs::File::open(service.path("disk.img")).expect("the image");
    let mut found = vec![0; bytes.len()];
    image
        .read_exact_at(&mut found, MIB + 64 * MIB)
        .expect("bytes");
    assert!(found == bytes, "what was flushed is not in the image");
}

#[test]
fn leaving_the_buffer_lapses_and_coming_to_rest_regains() {
    let Some(service) = Service::start() else {
        return;
    };
    let (_client, stream) = attach(&service, places(16 * MIB), &terms());
    wait_until_served(&stream);
    stream.position(24 * MIB).expect("it serves");
    wait_for(&stream, |event| *event == StreamUpdate::Lapsed);
    wait_until_served(&stream);
    let listed = service.json(&["streams", "--json"]);
    assert_eq!(listed[0]["lapsed_total"], 1, "{listed}");
    assert_eq!(listed[0]["standing"], "serving", "{listed}");
}

#[test]
fn a_refresh_says_what_has_changed_and_others_keep_their_guarantee() {
    let Some(service) = Service::start() else {
        return;
    };
    let (_client, stream) = attach(&service, places(8 * MIB), &terms());
    let (client, other) = attach(&service, places(8 * MIB), &terms());
    wait_until_served(&stream);
    wait_until_served(&other);
    let mut moved = places(8 * MIB);
    moved.pieces[0].1 += 16 * MIB;
    assert_eq!(
        stream.refresh_places(moved.clone()).expect("there"),
        FileChange::Moved(0)
    );
    wait_until_served(&stream);
    moved.pieces.remove(1);
    let punched = stream.refresh_places(moved.clone()).expect("there");
    assert_eq!(punched, FileChange::Punched(8 * MIB));
    moved.length = 8 * MIB;
    assert_eq!(
        stream.refresh_places(moved.clone()).expect("there"),
        FileChange::Shrunk
    );
    moved.length = 16 * MIB;
    moved.pieces.push(FilePiece(8 * MIB, 128 * MIB, 8 * MIB));
    assert_eq!(
        stream.refresh_places(moved.clone()).expect("there"),
        FileChange::Grown
    );
    assert_eq!(
        stream.refresh_places(moved).expect("there"),
        FileChange::Same
    );
    let refused = stream.refresh_places(Places {
        length: 4096,
        pieces: vec![FilePiece(0, BYTES, 4096)],
    });
    let why = refused.expect_err("past the end").to_string();
    assert!(why.contains("expected places within"), "{why}");
    let listed = client.streams().expect("a list");
    let other = listed.iter().find(|it| it.stream == other.granted().stream);
    let other = other.expect("it is there");
    assert_eq!(
        (other.lapsed_total, other.standing),
        (0, StreamStatus::Serving),
        "{other:?}"
    );
}

#[test]
fn a_service_that_stops_tells_its_streams() {
    let Some(service) = Service::start() else {
        return;
    };
    let (_client, playing) = attach(&service, places(8 * MIB), &terms());
    let terms = Terms {
        mode: StreamMode::Record,
        ..terms()
    };
    let places = Places {
        length: MIB,
        pieces: vec![FilePiece(0, 128 * MIB, MIB)],
    };
    let (_recorder, recording) = attach(&service, places, &terms);
    let volume = service.volume();
    volume
        .write_all_at(&contents(128 * MIB, 64 << 10, 6), 128 * MIB)
        .expect("written");
    drop(volume);
    let image = service.path("disk.img");
    let image = std::fs::File::open(image).expect("the image");
    service.end();
    for stream in [&playing, &recording] {
        let last = std::iter::from_fn(|| stream.wait_event(HANGS))
            .find(|event| matches!(event, StreamUpdate::Ended { .. }));
        let Some(StreamUpdate::Ended { reason }) = last else {
            panic!("it was not told");
        };
        assert!(reason.contains("the service"), "{reason}");
    }
    // What was acknowledged is written.
    let mut found = vec![0; 64 << 10];
    image
        .read_exact_at(&mut found, MIB + 128 * MIB)
        .expect("bytes");
    assert!(found == contents(128 * MIB, 64 << 10, 6));
}

/// It has no gaps for free blocks, and a scan is refused; but what it promises, it keeps.
#[test]
fn a_drive_that_takes_one_command_at_a_time_promises_as_well() {
    let tables = "[drive.streams]\nlatency_ms = 0.2\nlongest_round_s = 0.05\n";
    let model = "hitachi-travelstar-80gn";
    let Some(service) = Service::start_on(model, PROMISING, tables) else {
        return;
    };
    let volume = service.volume();
    let (length, read) = (2 * MIB, 64 << 10);
    volume
        .write_all_at(&contents(64 * MIB, length as usize, 1), 64 * MIB)
        .expect("written");
    let whole = Places {
        length,
        pieces: vec![FilePiece(0, 64 * MIB, length)],
    };
    let (client, stream) = attach(&service, whole, &terms());
    wait_until_served(&stream);
    for at in (0..length).step_by(read) {
        assert!(is_at(&volume, 64 * MIB + at, read, 1), "at {at}");
        stream.position(at + read as u64).expect("it serves");
    }
    let listed = client.streams().expect("a list");
    assert!(listed[0].from_memory_total > 0, "{listed:?}");
    let (is_good, said) = service.headtime(&["scan", "disk"]);
    assert!(!is_good && said.contains("takes two commands"), "{said}");
    stream.close().expect("it was there");
    service.wait_for_streams(0);
    service.end();
}
