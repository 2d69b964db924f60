//! Configuration files: the default, all that can be said, each key wrong once, and any text at all.

use std::path::{Path, PathBuf};

use block::Switch;
use document::DocumentError;
use proptest::prelude::*;
use server::config::{
    Access, Actions, Address, BackEnd, Belief, Config, DEFAULT, Device, DriveModel, ExportClass,
    Listen, LogFormat, Places, Remote, RemoteTls, TlsNeed, Way,
};

#[path = "config/emulated.rs"]
mod emulated;
#[path = "config/units.rs"]
mod units;

fn parse(text: &str) -> Result<Config, DocumentError> {
    let places = Places {
        data: PathBuf::from("/data"),
        runtime: PathBuf::from("/run/h"),
        base: PathBuf::from("/etc/h"),
    };
    Config::parse("c.toml", text, &places)
}

#[test]
fn the_default_is_an_emulated_drive_on_a_unix_socket_with_a_page() {
    let config = parse(DEFAULT).unwrap();
    let [drive] = &config.drives[..] else {
        panic!("one drive: {:?}", config.drives);
    };
    let BackEnd::Emulated(emulated) = &drive.back_end else {
        panic!("emulated: {:?}", drive.back_end);
    };
    assert_eq!(emulated.drive, DriveModel::Shipped("quantum-atlas-10k"));
    assert_eq!(emulated.image, Path::new("/data/disk.img"));
    assert_eq!(emulated.write_cache, Switch::Off);
    assert_eq!(drive.impact_ppm, 20_000);
    let classes = drive.exports.iter().map(|e| (e.name.as_str(), e.class));
    assert_eq!(
        classes.collect::<Vec<_>>(),
        [
            ("disk", ExportClass::Foreground),
            ("disk-bulk", ExportClass::BestEffort(3)),
            ("disk-idle", ExportClass::Background),
        ]
    );
    let [nbd] = &config.nbd[..] else {
        panic!("one listener: {:?}", config.nbd);
    };
    assert_eq!(nbd.listen, Listen::Unix(PathBuf::from("/run/h/nbd.sock")));
    assert_eq!(config.control.http, Some("127.0.0.1:8384".parse().unwrap()));
    assert_eq!(config.control.http_actions, Actions::Refused);
    assert!(config.fuse.is_none() && config.ublk.is_none());
}

/// So that the default can be read as the reference.
#[test]
fn optional_keys_are_without_it_what_the_default_states() {
    let optional = [
        "offset = 0",
        "connections = 16",
        "time_scale = 1",
        "look_ahead = true",
        "seek_noise_us = 0",
        "seed = 1",
        "belief = \"emulated\"",
        "policy = \"sptf-sw60\"",
        "impact_percent = 2",
        "same_track = \"auto\"",
        "read_only = false",
        "class = \"foreground\"",
        "socket = \"{runtime}/control.sock\"",
        "http_actions = false",
        "level = \"info\"",
        "format = \"text\"",
        "connections = 64",
        "requests_per_connection = 128",
        "request_size = \"32 MiB\"",
        "buffer_size = \"128 MiB\"",
        "handshake_s = 10",
    ];
    let whole = parse(DEFAULT).unwrap();
    for line in optional {
        let line = format!("\n{line}\n");
        assert!(DEFAULT.contains(&line), "{line}");
        let text = DEFAULT.replacen(&line, "\n", 1);
        assert_eq!(parse(&text).unwrap(), whole, "without {line}");
    }
}

/// All that the default leaves out.
const FULL: &str = include_str!("config/full.toml");

#[test]
fn clients_by_name_are_understood() {
    let config = parse(FULL).expect("a configuration");
    let named = config.nbd[3].tls.as_ref().expect("TLS").clients.iter();
    let named = named.map(|client| (client.name.as_str(), client.exports.join(" ")));
    let expected = [
        ("vm.example", "d a@checkpoint".to_owned()),
        ("10.0.0.7", String::new()),
    ];
    assert_eq!(named.collect::<Vec<_>>(), expected);
}

/// What [`FULL`] says of the server behind.
fn far() -> Remote {
    Remote {
        uri: String::from("nbds://[::1]:2345/a%20b"),
        address: Address::Tcp {
            host: String::from("::1"),
            port: 2345,
        },
        export: String::from("a b"),
        tls: Some(RemoteTls {
            ca: PathBuf::from("/etc/h/ca.pem"),
            own: Some((
                PathBuf::from("/etc/h/own.pem"),
                PathBuf::from("/etc/h/own-key.pem"),
            )),
        }),
        patience_s: 7,
    }
}

#[test]
fn everything_that_can_be_said_is_understood() {
    let config = parse(FULL).unwrap();
    let ends: Vec<_> = config.drives.iter().map(|d| d.back_end.clone()).collect();
    let memory = BackEnd::Memory { size: 1 << 30 };
    let file = BackEnd::File {
        path: PathBuf::from("/etc/h/disk.img"),
        size: Some(2 << 30),
        direct: Switch::Off,
    };
    let device = BackEnd::Device(Device {
        path: PathBuf::from("/dev/sdb"),
        way: Way::Scsi,
        write_cache: Switch::On,
        look_ahead: Switch::Off,
    });
    assert_eq!(ends, [memory, file, device, BackEnd::Nbd(far())]);
    let capture = Path::new("/etc/h/far.capture");
    assert_eq!(config.drives[3].capture.as_deref(), Some(capture));
    assert_eq!(config.drives[0].capture, None);
    let volumes = config.drives[0].volumes.iter().map(|v| (v.offset, v.size));
    assert_eq!(
        volumes.collect::<Vec<_>>(),
        [(4096, Some(8192)), (4_096_000, None)]
    );
    let beliefs = config.drives.iter().map(|d| d.belief.clone());
    let file = DriveModel::File(PathBuf::from("/etc/h/atlas.toml"));
    assert_eq!(
        beliefs.collect::<Vec<_>>(),
        [
            Belief::Nothing,
            Belief::Profile(file),
            Belief::Profile(DriveModel::Shipped("quantum-atlas-10k")),
            Belief::Nothing,
        ]
    );
    let policies = config.drives.iter().map(|d| d.policy.name());
    let policies: Vec<_> = policies.collect();
    assert_eq!(policies, ["c-look", "fcfs", "sptf-sw60", "c-look"]);
    let exports = config.drives.iter().flat_map(|d| &d.exports);
    let access: Vec<_> = exports.map(|e| e.access).collect();
    use Access::{ReadOnly as R, ReadWrite as W};
    assert_eq!(access, [W, R, R, W, W]);
    let local = Listen::Tcp("127.0.0.1:10810".parse().unwrap());
    assert_eq!(config.nbd[0].listen, local, "localhost unless told");
    let tls = config.nbd.iter().map(|n| n.tls.as_ref().map(|t| t.need));
    assert_eq!(
        tls.collect::<Vec<_>>(),
        [
            None,
            Some(TlsNeed::Required),
            Some(TlsNeed::Optional),
            Some(TlsNeed::Required)
        ]
    );
    assert_eq!(config.control.socket, Path::new("/run/h/control.sock"));
    assert_eq!(config.control.http, Some("127.0.0.1:8385".parse().unwrap()));
    assert_eq!(config.control.http_actions, Actions::Allowed);
    assert_eq!(config.log.level, tracing::Level::DEBUG);
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.fuse.unwrap().mount, Path::new("/mnt/headtime"));
    assert_eq!(config.ublk.unwrap().exports, ["d", "e"]);
}

#[test]
fn other_machines_are_served_without_tls_only_where_insecure_says_so() {
    for (local, open) in [
        (
            "tcp = \"10810\"",
            "tcp = \"192.0.2.1:10810\"\ninsecure = true",
        ),
        ("http = \"8385\"", "http = \"0.0.0.0\"\ninsecure = true"),
    ] {
        let config = parse(&FULL.replacen(local, open, 1)).expect("it is said");
        let is_open = [config.nbd[0].insecure, config.control.insecure];
        assert!(is_open.contains(&Switch::On), "{open}");
        let without = open.replace("\ninsecure = true", "");
        assert!(
            parse(&FULL.replacen(local, &without, 1)).is_err(),
            "{without}"
        );
    }
}

#[test]
fn a_device_goes_through_the_kernel_without_write_cache_unless_told() {
    let more = ", passthrough = true, write_cache = true, look_ahead = false";
    assert!(FULL.contains(more));
    let config = parse(&FULL.replacen(more, "", 1)).unwrap();
    let expected = Device {
        path: PathBuf::from("/dev/sdb"),
        way: Way::Kernel,
        write_cache: Switch::Off,
        look_ahead: Switch::On,
    };
    assert_eq!(config.drives[2].back_end, BackEnd::Device(expected));
}

/// URIs of `doc/uri.md` of NetworkBlockDevice/nbd, with where they lead.
#[test]
fn uris_of_other_servers_are_taken_apart() {
    let tcp = |host: &str, port| Address::Tcp {
        host: host.to_owned(),
        port,
    };
    let unix = |path: &str| Address::Unix(PathBuf::from(path));
    for (uri, address, export) in [
        ("nbd://host", tcp("host", 10809), ""),
        ("nbd://host/", tcp("host", 10809), ""),
        ("nbd://10.0.0.1:99/a/b", tcp("10.0.0.1", 99), "a/b"),
        ("nbd://[fe80::1]/x", tcp("fe80::1", 10809), "x"),
        ("nbd://host//x", tcp("host", 10809), "/x"),
        ("nbd+unix:///?socket=/s", unix("/s"), ""),
        ("nbd+unix:///x?socket=/a%3Fb", unix("/a?b"), "x"),
        ("nbd+unix://?socket=/s", unix("/s"), ""),
    ] {
        let text = FULL.replacen("nbds://[::1]:2345/a%20b", uri, 1);
        let text = text.replacen(
            ", ca = \"ca.pem\", certificate = \"own.pem\", key = \"own-key.pem\"",
            "",
            1,
        );
        let config = parse(&text).unwrap();
        let BackEnd::Nbd(far) = &config.drives[3].back_end else {
            panic!("{uri}");
        };
        assert_eq!(
            (&far.address, far.export.as_str()),
            (&address, export),
            "{uri}"
        );
        assert_eq!((far.tls.as_ref(), far.uri.as_str()), (None, uri));
    }
}

/// What is replaced in [`FULL`], with what, and which complaint that earns.
const REFUSED: &str = include_str!("config/refused.txt");

#[test]
fn each_key_wrong_once_is_named_with_its_line_and_what_was_expected() {
    let cases: Vec<&str> = REFUSED.split("\n\n").skip(1).collect();
    assert!(cases.len() > 60, "{} cases", cases.len());
    let mut other = String::new();
    for case in cases {
        let [from, to, complaint] = case.trim_end().lines().collect::<Vec<_>>()[..] else {
            panic!("three lines: {case}");
        };
        let from = from.replace("\\n", "\n");
        let to = to.replace("\\n", "\n").replace("(nothing)", "");
        assert!(FULL.contains(&from), "{from}");
        let text = FULL.replacen(&from, &to, 1);
        let error = parse(&text).expect_err(&to).to_string();
        let expected = format!("c.toml:{complaint}");
        if !error.starts_with(&expected) {
            other += &format!(
                "{to}
 is {error}
not {expected}
"
            );
        }
    }
    assert!(other.is_empty(), "{other}");
}

/// The emulated drive's keys are those of the default.
#[test]
fn each_key_of_an_emulated_drive_wrong_once_is_named() {
    for (from, to, complaint) in [
        (
            "drive = \"quantum-atlas-10k\"",
            "drive = \"quantum-atlas-10kk\"",
            "drive[0].back_end.drive: no drive is called",
        ),
        (
            "image = \"{data}/disk.img\"\n",
            "",
            "drive[0].back_end.image: missing key: expected a path",
        ),
        (
            "time_scale = 1",
            "time_scale = 0",
            "drive[0].back_end.time_scale: 0: expected a number from 0.001 to 1000",
        ),
        (
            "look_ahead = true",
            "look_ahead = 1",
            "drive[0].back_end.look_ahead: 1: expected true or false",
        ),
        (
            "write_cache = false",
            "write_cache = \"off\"",
            "drive[0].back_end.write_cache: \"off\": expected true or false",
        ),
        (
            "bus_mb_s = 80",
            "bus_mb_s = 0",
            "drive[0].back_end.bus_mb_s: 0: expected megabytes a second, from 0.1",
        ),
        (
            "seek_noise_us = 0",
            "seek_noise_us = -1",
            "drive[0].back_end.seek_noise_us: -1: expected microseconds",
        ),
        (
            "seed = 1",
            "seed = 1.5",
            "drive[0].back_end.seed: 1.5: expected a whole number from 0",
        ),
        (
            "offset = 0",
            "offset = \"10 kB\"",
            "drive[0].volume[0].offset: \"10 kB\": expected bytes",
        ),
        (
            "offset = 0",
            "offset = \"10 TiB\"",
            "drive[0].volume[0]: it ends at byte",
        ),
        (
            "unix = \"{runtime}/nbd.sock\"",
            &format!("unix = \"/{}\"", "x".repeat(107)),
            &format!(
                "nbd[0].unix: /{}: 108 bytes: expected a path of at most 107",
                "x".repeat(107)
            ),
        ),
    ] {
        complains(from, to, complaint);
    }
}

#[test]
fn streams_and_caches_are_on_different_volumes_of_a_drive() {
    let volume = |more: &str| {
        format!(
            "[[drive]]\nname = \"a\"\nback_end = {{ kind = \"emulated\", drive = \
             \"quantum-atlas-10k\", image = \"a.img\" }}\n{more}\n[[drive.export]]\nname = \"e\"\nvolume = \"v\"\n[[nbd]]\nunix = \"/run/h/nbd.sock\"\n"
        )
    };
    let streams = "[drive.streams]\n";
    let plain = "[[drive.volume]]\nname = \"w\"\noffset = \"1 GiB\"\n";
    let cached = "[[drive.volume]]\nname = \"v\"\nsize = \"1 GiB\"\ncache = { size = \"8 MiB\" }\n";
    for good in [
        cached.to_owned(),
        format!("{streams}{cached}{plain}"),
        format!("{streams}{plain}{cached}"),
    ] {
        parse(&volume(&good)).expect(&good);
    }
    let all = parse(&volume(&format!("{streams}{cached}"))).expect_err("streams are on no volume");
    assert_eq!(all.key, "drive[0].volume[0].cache", "{all}");
    assert_eq!(all.line, Some(8), "{all}");
    assert!(all.problem.contains("expected one without"), "{all}");
}

#[test]
fn what_is_read_more_on_free_blocks_needs_a_belief_and_the_order_in_our_hands() {
    let drive = |more: &str, cache: &str| {
        format!(
            "[[drive]]\nname = \"a\"\n{more}\n[[drive.volume]]\nname = \"v\"\ncache = {{ size = \"8 MiB\", \
             readmore = \"free\", {cache} }}\n[[drive.export]]\nname = \"e\"\nvolume = \"v\"\n\
             [[nbd]]\nunix = \"/run/h/nbd.sock\"\n"
        )
    };
    let emulated =
        "back_end = { kind = \"emulated\", drive = \"quantum-atlas-10k\", image = \"a.img\" }";
    let pfc = "coordinator = \"pfc\"";
    parse(&drive(emulated, pfc)).expect("it can be");
    for (more, cache, key, problem) in [
        (
            "back_end = { kind = \"memory\", size = \"1 GiB\" }".to_owned(),
            pfc,
            "drive[0].volume[0].cache",
            "nothing is believed of the drive",
        ),
        (
            "back_end = { kind = \"nbd\", uri = \"nbd://server/v\" }".to_owned(),
            pfc,
            "drive[0].volume[0].cache",
            "nothing is believed of the drive",
        ),
        (
            format!("{emulated}\npolicy = \"drive\""),
            pfc,
            "drive[0].volume[0].cache",
            "leaves the order to the drive",
        ),
        (
            emulated.to_owned(),
            "coordinator = \"none\"",
            "drive[0].volume[0].cache.readmore",
            "readmore free with coordinator none: expected one that reads more",
        ),
    ] {
        let error = parse(&drive(&more, cache)).expect_err(&more);
        assert_eq!(error.key, key, "{error}");
        assert!(error.problem.contains(problem), "{error}");
    }
}

/// Of the default with `to` in the place of `from`, where that stands.
fn complains(from: &str, to: &str, complaint: &str) {
    assert!(DEFAULT.contains(from), "{from}");
    let line = 1 + DEFAULT[..DEFAULT.find(from).unwrap()].matches('\n').count();
    let error = parse(&DEFAULT.replacen(from, to, 1)).expect_err(to);
    let text = format!("{}: {}", error.key, error.problem);
    assert!(
        text.starts_with(complaint),
        "{to}\n is {error}\nnot {complaint}"
    );
    let table = error.problem.starts_with("missing") || error.key.ends_with(']');
    assert!(table || error.line == Some(line), "{error}: line {line}");
}

proptest! {
    /// Whatever is done to a file: it is understood, or refused in one line of that file.
    #[test]
    fn a_mutated_file_is_understood_or_refused_in_one_line(
        which in any::<bool>(),
        at in any::<prop::sample::Index>(),
        length in 0_usize..12,
        with in prop::sample::select(vec!["", "0", "-1", "\"\"", "{", "]", "\n", "nan", "é", "\u{0}", "[[drive]]\n", "\"\\n\" = 1\n", "99999999999999999999"]),
    ) {
        let text = if which { FULL } else { DEFAULT };
        let start = at.index(text.len());
        let end = (start + length).min(text.len());
        let mutated = format!("{}{with}{}", &text[..start], &text[end..]);
        if let Err(error) = parse(&mutated) {
            prop_assert!(!error.to_string().contains('\n'), "{error}");
            prop_assert!(error.line.is_some_and(|line| line <= 1 + mutated.matches('\n').count()));
            prop_assert!(!error.problem.is_empty());
        }
    }
}
