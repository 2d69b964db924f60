//! Reloads that take volumes or exports away on which there are streams.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use headtime_client::{Client, FilePiece, Places, Stream, StreamMode, StreamStatus, Terms};

use super::service::{PROMISING, Service, contents, is_at, terms, wait_until_served};

const MIB: u64 = 1 << 20;

/// A second volume.
const VOLUME: &str =
    "[[drive.volume]]\nname = \"other\"\noffset = \"300 MiB\"\nsize = \"64 MiB\"\n";

/// What shows it.
const EXPORT: &str =
    "[[drive.export]]\nname = \"other\"\nvolume = \"other\"\nclass = \"foreground\"\n";

const STREAMS: &str = "[drive.streams]\nlatency_ms = 0.2\nlongest_round_s = 0.05\n";

fn places(start: u64) -> Places {
    Places {
        length: 8 * MIB,
        pieces: vec![FilePiece(0, start, 8 * MIB)],
    }
}

/// Two volumes with films and a recording on them.
struct Scene {
    service: Service,
    config: String,
    client: Client,
    /// On the first volume, and on the second.
    films: [Stream; 2],
    /// On the second, and what was written.
    recording: Stream,
    written: u64,
    /// Of what was played.
    played: u64,
}

impl Scene {
    fn start() -> Option<Scene> {
        let tables = [VOLUME, EXPORT, STREAMS].concat();
        let service = Service::start_with(PROMISING, &tables)?;
        let config = std::fs::read_to_string(service.path("c.toml")).expect("a configuration");
        let client = service.client();
        let attach = |export, start, terms: &Terms| {
            let stream = client.attach_places(export, places(start), terms);
            stream.expect("granted")
        };
        let record = Terms {
            mode: StreamMode::Record,
            ..terms()
        };
        for name in ["volumes/disk", "volumes/other"] {
            let volume = File::options().write(true).open(service.path(name));
            let film = contents(0, 8 * MIB as usize, 1);
            let volume = volume.expect("a volume");
            volume.write_all_at(&film, 0).expect("written");
            volume.sync_all().expect("on the medium");
        }
        let films = [attach("disk", 0, &terms()), attach("other", 0, &terms())];
        let recording = attach("other", 32 * MIB, &record);
        for film in &films {
            wait_until_served(film);
        }
        Some(Scene {
            config,
            films,
            recording,
            written: 0,
            played: 0,
            client,
            service,
        })
    }

    /// Reloads another configuration: whether it was taken, what it has changed, and what is said.
    fn reload(&self, config: &str) -> (bool, String) {
        std::fs::write(self.service.path("c.toml"), config).expect("a configuration");
        self.service.headtime(&["ctl", "reload"])
    }

    /// Everything is read, written and guaranteed as before, for as many streams as there were.
    fn goes_on(&mut self) {
        let open = |name: &str| {
            let opened = File::options()
                .read(true)
                .write(true)
                .open(self.service.path(name));
            opened.expect("a volume")
        };
        let [disk, other] = ["volumes/disk", "volumes/other"].map(open);
        let step = 64 << 10;
        let start = 32 * MIB + self.written;
        let bytes = contents(start, step as usize, 2);
        other.write_all_at(&bytes, start).expect("recorded");
        assert!(is_at(&other, start, step as usize, 2), "what was recorded");
        self.written += step;
        for (volume, film) in [&disk, &other].into_iter().zip(&self.films) {
            assert!(is_at(volume, self.played, step as usize, 1), "of a film");
            film.position(self.played + step).expect("it serves");
        }
        self.played += step;
        let listed = self.client.streams().expect("a list");
        assert_eq!(listed.len(), 3);
        for it in &listed {
            assert_eq!((it.lapsed_total, it.late_total), (0, 0), "{it:?}");
            let is_film = it.terms.mode == StreamMode::Play;
            assert!(!is_film || it.standing == StreamStatus::Serving, "{it:?}");
        }
        let from_memory: u64 = listed.iter().map(|it| it.from_memory_total).sum();
        assert!(from_memory > 0, "{listed:?}");
    }

    fn refused(&self, export: &str) -> String {
        let attached = self
            .client
            .attach_places(export, places(16 * MIB), &terms());
        attached.expect_err("refused").to_string()
    }
}

#[test]
fn a_volume_that_a_reload_takes_away_stays_until_a_restart_with_its_streams() {
    let Some(mut scene) = Scene::start() else {
        return;
    };
    scene.goes_on();
    let without = scene.config.replace(VOLUME, "").replace(EXPORT, "");
    let (is_taken, said) = scene.reload(&without);
    let expected = "after a restart: [[drive]] differs from what is in force";
    assert!(is_taken && said.contains(expected), "{said}");
    scene.goes_on();
    // So does the whole drive.
    let name = scene.config.replace("name = \"d\"", "name = \"e\"");
    let (is_taken, said) = scene.reload(&name);
    assert!(is_taken && said.contains(expected), "{said}");
    scene.goes_on();
    let again = scene
        .client
        .attach_places("other", places(16 * MIB), &terms());
    again.expect("it is there").close().expect("it was there");
    scene.service.wait_for_streams(3);
    scene.goes_on();
}

#[test]
fn an_export_that_a_reload_takes_away_keeps_its_streams_and_gets_no_others() {
    let Some(mut scene) = Scene::start() else {
        return;
    };
    let unseen = scene.config.replace(EXPORT, "");
    let (is_taken, said) = scene.reload(&unseen);
    let expected = "now: the exports of drive d (number 1), for clients that come from now on";
    assert!(is_taken && said.contains(expected), "{said}");
    scene.goes_on();
    let why = scene.refused("other");
    assert!(
        why.contains("no export other: expected one of disk"),
        "{why}"
    );
    // Nobody sees the volume any more, but for its streams.
    let shorter = unseen.replace("size = \"64 MiB\"", "size = \"16 MiB\"");
    let (is_taken, said) = scene.reload(&shorter);
    let expected = "streams are on it: close them, then reload again";
    assert!(!is_taken && said.contains(expected), "{said}");
    scene.goes_on();
    // Its name is another volume's now: what would a stream be on?
    let of_disk = EXPORT.replace("volume = \"other\"", "volume = \"disk\"");
    let (is_taken, said) = scene.reload(&scene.config.replace(EXPORT, &of_disk));
    assert!(is_taken && said.contains("now: the exports"), "{said}");
    scene.goes_on();
    let why = scene.refused("other");
    let expected = "export other was another volume's before a reload";
    assert!(why.contains(expected), "{why}");
    // When they have gone, it can become shorter, and the first film goes on.
    let (is_taken, said) = scene.reload(&unseen);
    assert!(is_taken, "{said}");
    let [first, second] = scene.films;
    for stream in [second, scene.recording] {
        stream.close().expect("it was there");
    }
    scene.service.wait_for_streams(1);
    std::fs::write(scene.service.path("c.toml"), &shorter).expect("a configuration");
    let (is_taken, said) = scene.service.headtime(&["ctl", "reload"]);
    assert!(is_taken, "{said}");
    let expected = "volume other of drive d has 16777216 bytes instead of 67108864";
    assert!(said.contains(expected), "{said}");
    let listed = scene.client.streams().expect("a list");
    assert_eq!(listed[0].stream, first.granted().stream);
    assert_eq!(
        (listed[0].lapsed_total, listed[0].standing),
        (0, StreamStatus::Serving)
    );
    assert!(is_at(&scene.service.volume(), 0, MIB as usize, 1));
}
