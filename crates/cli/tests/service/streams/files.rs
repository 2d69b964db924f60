//! Streams on files of ext4, on a loop device over a volume's file.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::{Child, Stdio};

use headtime_client::{FileChange, Listed, StreamMode, StreamStatus, StreamUpdate, Terms};
use rustix::fs::{FallocateFlags, OFlags, fallocate};

use super::service::{Mounted, Service, contents, run, terms, wait_for, wait_until_served};

const MIB: u64 = 1 << 20;

fn mounted() -> Option<(Service, Mounted)> {
    let service = Service::start()?;
    let mounted = service.mounted()?;
    Some((service, mounted))
}

/// A file of so many bytes, on the medium, and not in the page cache.
fn film(at: &Path, length: u64) -> File {
    std::fs::write(at, contents(0, length as usize, 1)).expect("written");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(at)
        .expect("a file");
    file.sync_all().expect("on the medium");
    file
}

#[test]
fn a_file_is_played_from_memory_and_logged() {
    let Some((service, mounted)) = mounted() else {
        return;
    };
    film(&mounted.at.join("film"), 4 * MIB + 1000);
    let said = service.streamed(&[
        "play",
        "mounted/film",
        "--rate",
        "10M",
        "--buffer",
        "128Ki",
        "--log",
        "delays.csv",
        "--json",
    ]);
    assert_eq!(said["bytes"], 4 * MIB + 1000, "{said}");
    assert_eq!(said["count"], 65, "{said}");
    assert!(
        said["granted"]["memory"].as_u64() > Some(128 << 10),
        "{said}"
    );
    let log = std::fs::read_to_string(service.path("delays.csv")).expect("a log");
    assert_eq!(log.lines().count(), 66, "{log}");
    service.wait_for_streams(0);
    let status = service.json(&["ctl", "status", "--json"]);
    // Batches are time of the streams, and nobody else's.
    let total = &status["drives"][0]["head_time"]["total_us"];
    assert!(total["real-time"].as_u64() > Some(0), "{total}");
    assert_eq!(
        status["drives"][0]["streams"]["granted_total"], 1,
        "{status}"
    );
    let unattached = service.json(&[
        "play",
        "mounted/film",
        "--rate",
        "10M",
        "--best-effort",
        "--json",
    ]);
    assert_eq!(unattached["bytes"], 4 * MIB + 1000, "{unattached}");
    mounted.end();
    service.end();
}

/// Bytes that were read at priorities 1 to 6.
fn read_below_the_foreground(service: &Service) -> u64 {
    let status = service.json(&["ctl", "status", "--json"]);
    let traffic = status["drives"][0]["traffic"].as_array().expect("a list");
    let of = traffic.iter().find(|it| it["class"] == "best-effort");
    of.map_or(0, |it| it["read"]["bytes_total"].as_u64().expect("bytes"))
}

/// A player that goes on for longer than the test, and what is listed of it.
fn play_slowly(service: &Service, words: &[&str]) -> (Child, Listed) {
    let mut command = service.command(&["play", "mounted/film", "--rate", "64Ki"]);
    let player = command.args(words).stdout(Stdio::null()).spawn();
    let client = service.client();
    let listed = loop {
        if let Some(listed) = client.streams().expect("a list").pop() {
            break listed;
        }
        std::thread::yield_now();
    };
    (player.expect("it runs"), listed)
}

#[test]
fn a_film_with_a_priority_is_read_at_it_while_it_plays() {
    let Some((service, mounted)) = mounted() else {
        return;
    };
    film(&mounted.at.join("film"), 2 * MIB);
    film(&mounted.at.join("other"), MIB);
    let play = |words: &[&str]| {
        let rate = ["--rate", "100M", "--best-effort", "--json"];
        let said = service.json(&[&["play"], words, &rate].concat());
        (said["bytes"].as_u64(), read_below_the_foreground(&service))
    };
    // Without one, it is served as its export, which is of the foreground.
    assert_eq!(play(&["mounted/film"]), (Some(2 * MIB), 0));
    let film = ["mounted/film", "--priority", "2"];
    assert_eq!(play(&film), (Some(2 * MIB), 2 * MIB));
    service.wait_for_streams(0);
    assert_eq!(play(&["mounted/film"]), (Some(2 * MIB), 2 * MIB));
    // While it plays, what others read of it has the priority as well, and no other file has.
    let (mut player, listed) = play_slowly(&service, &["--best-effort", "--priority", "6"]);
    assert_eq!(listed.terms.priority, Some(6), "{listed:?}");
    assert_eq!(listed.standing, StreamStatus::BestEffort, "{listed:?}");
    assert_eq!(
        (listed.terms.rate, listed.terms.memory),
        (0, Some(0)),
        "{listed:?}"
    );
    let (bytes, read) = play(&["mounted/film"]);
    assert!(
        bytes == Some(2 * MIB) && read >= 4 * MIB,
        "{bytes:?}, {read}"
    );
    player.kill().expect("it runs");
    player.wait().expect("its end");
    service.wait_for_streams(0);
    let before = read_below_the_foreground(&service);
    assert_eq!(play(&["mounted/film"]), (Some(2 * MIB), before));
    let other = ["mounted/other", "--priority", "0"];
    assert_eq!(play(&other), (Some(MIB), before), "that is the foreground");
    // With a guarantee, it is told besides.
    let (mut player, listed) = play_slowly(&service, &["--priority", "3"]);
    assert_eq!(
        (listed.terms.priority, listed.terms.rate),
        (Some(3), 64 << 10)
    );
    player.kill().expect("it runs");
    player.wait().expect("its end");
    let words = ["play", "mounted/film", "--rate", "1M", "--priority", "7"];
    let (is_good, said) = service.headtime(&words);
    assert!(!is_good && said.contains("0..=6"), "{said}");
    service.wait_for_streams(0);
    mounted.end();
    service.end();
}

#[test]
fn what_is_recorded_is_in_the_file() {
    let Some((service, mounted)) = mounted() else {
        return;
    };
    for (name, more) in [("camera", None), ("synced", Some("--sync"))] {
        let path = format!("mounted/{name}");
        let mut words = vec![
            "record",
            &path,
            "--rate",
            "10M",
            "--seconds",
            "0.3",
            "--json",
        ];
        words.extend(more);
        let said = service.streamed(&words);
        let length = 3_000_000u64.next_multiple_of(65_536);
        assert_eq!(said["bytes"], length, "{said}");
        // All of it went through the stream, and nothing was lost.
        let events = said["events"].to_string();
        assert!(
            !events.contains("any other") && !events.contains("could not"),
            "{said}"
        );
        let bytes = std::fs::read(service.path(&path)).expect("the file");
        let words = (0..length).step_by(8).flat_map(u64::to_le_bytes);
        assert!(bytes.into_iter().eq(words), "{name}");
    }
    let status = service.json(&["ctl", "status", "--json"]);
    assert_eq!(
        status["drives"][0]["streams"]["granted_total"], 2,
        "{status}"
    );
    mounted.end();
    service.end();
}

#[test]
fn a_file_that_changes_while_it_plays_is_followed() {
    let Some((service, mounted)) = mounted() else {
        return;
    };
    let path = mounted.at.join("film");
    let file = film(&path, 8 * MIB);
    let other = film(&mounted.at.join("other"), 8 * MIB);
    let client = service.client();
    let stream = client.attach_file(&file, &terms()).expect("granted");
    let beside = client.attach_file(&other, &terms()).expect("granted");
    wait_until_served(&stream);
    wait_until_served(&beside);
    assert_eq!(stream.refresh(&file).expect("there"), FileChange::Same);
    // Punched.
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, flags, MIB, MIB).expect("punched");
    assert_eq!(
        stream.refresh(&file).expect("there"),
        FileChange::Punched(MIB)
    );
    let mut read = vec![0; 64 << 10];
    let cached = File::open(&path).expect("a file");
    cached.read_exact_at(&mut read, MIB).expect("bytes");
    assert!(read.iter().all(|&byte| byte == 0), "a hole");
    // Filled again: elsewhere or not, it is what was written.
    let filled = OpenOptions::new().write(true).open(&path).expect("a file");
    filled
        .write_all_at(&contents(MIB, MIB as usize, 2), MIB)
        .expect("written");
    filled.sync_all().expect("on the medium");
    stream.refresh(&file).expect("there");
    stream.position(MIB).expect("it serves");
    // Shrunk.
    file.set_len(2 * MIB).expect("cut");
    stream.refresh(&file).expect("there");
    // Grown.
    filled
        .write_all_at(&contents(2 * MIB, MIB as usize, 3), 2 * MIB)
        .expect("written");
    filled.sync_all().expect("on the medium");
    assert_eq!(stream.refresh(&file).expect("there"), FileChange::Grown);
    run("sh", &["-c", "echo 3 > /proc/sys/vm/drop_caches"]);
    for (at, version) in [(0, 1), (MIB, 2), (2 * MIB, 3)] {
        let mut bytes = vec![0; MIB as usize];
        cached.read_exact_at(&mut bytes, at).expect("bytes");
        assert!(bytes == contents(at, MIB as usize, version), "at {at}");
    }
    let listed = client.streams().expect("a list");
    let beside = listed
        .iter()
        .find(|it| it.stream == beside.granted().stream);
    assert_eq!(beside.expect("it is there").lapsed_total, 0);
    drop((stream, client));
    drop((file, other, cached, filled));
    mounted.end();
}

#[test]
fn what_a_recorder_cannot_promise_is_refused() {
    let Some((service, mounted)) = mounted() else {
        return;
    };
    let client = service.client();
    let record = Terms {
        mode: StreamMode::Record,
        ..terms()
    };
    // On no volume of the service.
    let elsewhere = File::create(service.path("elsewhere")).expect("a file");
    let why = client
        .attach_file(&elsewhere, &terms())
        .expect_err("no volume")
        .to_string();
    assert!(
        why.contains("expected") || why.contains("name the export"),
        "{why}"
    );
    // A folder has no bytes.
    let folder = File::open(&mounted.at).expect("a folder");
    let why = client
        .attach_file(&folder, &terms())
        .expect_err("a folder")
        .to_string();
    assert!(why.contains("not a regular file"), "{why}");
    // Nothing is allocated: what is written is not in a buffer, and the stream is told.
    let sparse = OpenOptions::new()
        .write(true)
        .create_new(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(mounted.at.join("sparse"))
        .expect("a file");
    sparse.set_len(MIB).expect("longer");
    let stream = client.attach_file(&sparse, &record).expect("granted");
    assert_eq!(client.streams().expect("a list")[0].from, 0);
    stream.close().expect("it was there");
    drop((elsewhere, folder, sparse));
    mounted.end();
}

#[test]
fn a_player_that_is_killed_has_no_stream_any_more() {
    let Some((service, mounted)) = mounted() else {
        return;
    };
    let file = film(&mounted.at.join("film"), 16 * MIB);
    let client = service.client();
    let beside = client.attach_file(&file, &terms()).expect("granted");
    wait_until_served(&beside);
    let mut player = service
        .command(&["play", "mounted/film", "--rate", "1M"])
        .stdout(Stdio::null())
        .spawn()
        .expect("it runs");
    while client.streams().expect("a list").len() < 2 {
        std::thread::yield_now();
    }
    player.kill().expect("it runs");
    player.wait().expect("its end");
    service.wait_for_streams(1);
    beside.position(12 * MIB).expect("it serves");
    wait_for(&beside, |event| *event == StreamUpdate::Lapsed);
    wait_until_served(&beside);
    drop((beside, client, file));
    mounted.end();
}
