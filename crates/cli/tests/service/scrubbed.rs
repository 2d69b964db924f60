//! Live scrubs: flipped bits are found, and kills within a load raise no alarm.

use std::os::unix::fs::FileExt as _;

use block::Durability;
use block::operation::Ask;
use nbd::Style;
use nbd::request::Asked;
use serde_json::Value;

use crate::client::Client;
use crate::judged::judge;
use crate::ledger::Ledger;
use crate::scanned::{BYTES, Service, config, contents};

/// The configuration with checksums of the small volume, and a write cache in the drive.
pub fn checked() -> String {
    let sums = format!("size = {BYTES}\nchecksums = \"small.sums\"");
    config("")
        .replace(&format!("size = {BYTES}"), &sums)
        .replace("write_cache = false", "write_cache = true")
}

/// The same with room for the units of a ledger.
fn large() -> String {
    let size = |bytes: usize| format!("size = {bytes}");
    let offset = |bytes: usize| format!("offset = {bytes}");
    let moved = checked().replace(&offset(BYTES), &offset(LARGE));
    moved.replace(&size(BYTES), &size(LARGE))
}

/// A ledger's units, and a chunk that is cut.
const LARGE: usize = (97 << 20) + 4096;

/// A scrub's success, and its report.
pub fn scrub(service: &Service) -> (bool, Value) {
    let (is_good, text) = service.run(&["scrub", "--json", "small"]);
    let mut values = serde_json::Deserializer::from_str(&text).into_iter();
    let report = values.next().and_then(Result::ok);
    (is_good, report.unwrap_or_else(|| panic!("{text}")))
}

fn connect(service: &Service) -> Client {
    Client::connect_to(&service.path("nbd.sock"), "small", Style::Structured)
}

/// Flips a bit of the medium behind the service's back.
fn flip(service: &Service, byte: u64) {
    let image = std::fs::File::options()
        .read(true)
        .write(true)
        .open(service.path("disk.img"));
    let image = image.expect("the image");
    let mut one = [0];
    image.read_exact_at(&mut one, byte).expect("a byte");
    image.write_all_at(&[one[0] ^ 0x10], byte).expect("a byte");
}

#[test]
fn flipped_bits_are_found_with_their_place_and_history_until_they_are_rewritten() {
    let service = Service::start_with(&contents(), &checked());
    let (is_good, built) = scrub(&service);
    assert!(is_good, "{built}");
    assert_eq!(built["adopted_bytes"], BYTES, "{built}");
    let (is_good, clean) = scrub(&service);
    assert!(is_good, "{clean}");
    assert_eq!(
        (&clean["verified_bytes"], &clean["adopted_bytes"]),
        (&Value::from(BYTES), &Value::from(0))
    );
    let bytes = [5_000, 70_000, BYTES as u64 - 1];
    bytes.iter().for_each(|&byte| flip(&service, byte));
    let places = |report: &Value| {
        let findings = report["findings"].as_array().expect("a list").clone();
        let place = |finding: &Value| {
            let offset = finding["offset_bytes"].as_u64().expect("a number");
            assert_eq!(finding["length_bytes"], 4096, "located to a page");
            assert_eq!(finding["lbn"], offset / 512);
            (
                offset,
                finding["scrubs_total"].as_u64(),
                finding["gone_s"].is_null(),
            )
        };
        findings.iter().map(place).collect::<Vec<_>>()
    };
    let expected =
        |scrubs, is_present| bytes.map(|byte| (byte / 4096 * 4096, Some(scrubs), is_present));
    let (is_good, found) = scrub(&service);
    assert!(!is_good, "{found}");
    assert_eq!(places(&found), expected(1, true));
    // The history outlives the service.
    let service = Service::start_in(service.end(), &checked());
    let (is_good, again) = scrub(&service);
    assert!(!is_good, "{again}");
    assert_eq!(places(&again), expected(2, true));
    let mut client = connect(&service);
    let write = Asked::Of(Ask::Write {
        durability: Durability::Durable,
    });
    for (offset, _, _) in expected(2, true) {
        let payload = vec![7; 4096];
        assert_eq!(client.ask(write, offset, 4096, &payload).result, Ok(()));
    }
    let (is_good, mended) = scrub(&service);
    assert!(is_good, "{mended}");
    assert_eq!(places(&mended), expected(2, false));
    assert_eq!(
        mended["adopted_bytes"], 0,
        "the rest of the chunks stayed guarded"
    );
}

#[test]
fn unreadable_blocks_are_found_block_by_block_until_they_are_rewritten() {
    let bad = checked().replace(
        "write_cache = true",
        "write_cache = true\nunreadable = [9, 10, 700, 704]",
    );
    let service = Service::start_with(&contents(), &bad);
    let expected = [(9, 1024), (700, 512), (704, 512)];
    let places = |report: &Value| {
        let findings = report["findings"].as_array().expect("a list").clone();
        let place = |finding: &Value| {
            assert_eq!(finding["kind"], "unreadable");
            assert!(finding["first_seen_s"].as_u64() <= finding["last_seen_s"].as_u64());
            let lbn = finding["lbn"].as_u64().expect("a number");
            assert_eq!(finding["offset_bytes"], lbn * 512);
            (lbn, finding["length_bytes"].as_u64().expect("a number"))
        };
        findings.iter().map(place).collect::<Vec<_>>()
    };
    for scrubs in 1..3 {
        let (is_good, found) = scrub(&service);
        assert!(!is_good, "{found}");
        assert_eq!(places(&found), expected, "{found}");
        assert_eq!(found["findings"][0]["scrubs_total"], scrubs);
        // Only their two chunks are left out.
        assert_eq!(found["verified_bytes"], BYTES - 2 * 65_536, "{found}");
    }
    let mut client = connect(&service);
    let write = Asked::Of(Ask::Write {
        durability: Durability::Durable,
    });
    for (lbn, length) in expected {
        let payload = vec![7; length as usize];
        assert_eq!(
            client.ask(write, lbn * 512, length, &payload).result,
            Ok(())
        );
    }
    let (is_good, mended) = scrub(&service);
    assert!(is_good, "{mended}");
    assert_eq!(places(&mended), expected);
    assert!(!mended["findings"][2]["gone_s"].is_null(), "{mended}");
}

#[test]
fn a_flip_beside_an_unreadable_block_is_found_while_its_checksum_guards_it() {
    let service = Service::start_with(&contents(), &checked());
    assert!(scrub(&service).0);
    let bad = checked().replace(
        "write_cache = true",
        "write_cache = true\nunreadable = [9, 700, 720, 740]",
    );
    let service = Service::start_in(service.end(), &bad);
    // The first chunk has one unreadable page. The second of three has too many.
    flip(&service, 40_000);
    flip(&service, 700 * 512 + 20_000);
    let (is_good, report) = scrub(&service);
    assert!(!is_good, "{report}");
    let findings = report["findings"].as_array().expect("a list");
    let changed = findings
        .iter()
        .filter(|finding| finding["kind"] == "changed");
    let places: Vec<u64> = changed
        .filter_map(|finding| finding["offset_bytes"].as_u64())
        .collect();
    assert_eq!(places, [40_000 / 4096 * 4096], "{report}");
    assert_eq!(findings.len(), 5, "{report}");
    assert_eq!(report["skipped_bytes"], 2 * 65_536, "{report}");
    assert_eq!(report["unverified_bytes"], 13 * 4096, "{report}");
}

#[test]
fn kills_within_a_load_raise_no_alarm_and_flips_after_them_are_found() {
    let mut service = Service::start_with(&[], &large());
    assert!(scrub(&service).0);
    let mut ledger = Ledger::new(11);
    assert!(ledger.bytes() <= LARGE as u64);
    let mut doubted = 0;
    for round in 0..8 {
        let mut client = connect(&service);
        let mut left = 5 + round * 7;
        while left > 0 {
            while client.under_way() < 8 {
                let (rule, unit) = ledger.next();
                ledger.submit(&mut client, rule, unit);
            }
            let end = client.end().expect("the server answers");
            assert_eq!(end.result, Ok(()));
            ledger.ended(&end);
            left -= 1;
        }
        let folder = service.kill();
        while let Some(end) = client.end() {
            match end.result {
                Ok(()) => ledger.ended(&end),
                Err(_) => ledger.failed(&end),
            }
        }
        ledger.nobody_answers();
        service = Service::start_in(folder, &large());
        let mut client = connect(&service);
        assert_eq!(ledger.verify(&mut client).0, [""; 0]);
        if round % 3 == 2 {
            let (is_good, report) = scrub(&service);
            assert!(is_good, "a false alarm: {report}");
            assert_eq!(report["verified_bytes"], LARGE, "{report}");
            doubted += report["adopted_after_crash_bytes"]
                .as_u64()
                .expect("a number");
            doubted += report["adopted_bytes"].as_u64().expect("a number");
        }
    }
    assert!(
        doubted > 0,
        "no kill came within a write: this tests nothing"
    );
    assert!(scrub(&service).0);
    let flips: Vec<u64> = (0..20).map(|n| n * 5_000_000 + 123).collect();
    flips.iter().for_each(|&byte| flip(&service, byte));
    let (is_good, report) = scrub(&service);
    let found = report["findings"].as_array().expect("a list");
    assert!(!is_good && found.len() == flips.len(), "{report}");
}

/// A flip in a block that the file system does not use is found by a scrub of all only.
#[test]
fn a_scrub_of_used_blocks_leaves_out_free_ones_and_a_file_system_in_use() {
    let Some(image) = small_ext4() else {
        println!("skipped: mke2fs is not installed");
        return;
    };
    let service = Service::start_with(&image, &checked());
    assert!(scrub(&service).0);
    let used = |service: &Service| {
        let (is_good, text) = service.run(&["scrub", "--used", "--json", "small"]);
        let mut values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let report = values.next().and_then(Result::ok);
        (is_good, report.unwrap_or_else(|| panic!("{text}")))
    };
    let (is_good, clean) = used(&service);
    assert!(is_good, "{clean}");
    let asked = clean["asked_bytes"].as_u64().expect("a number");
    assert!(
        asked > 0 && asked < BYTES as u64 / 2,
        "most is free: {clean}"
    );
    assert_eq!(clean["verified_bytes"], asked, "{clean}");
    assert_eq!(clean["used"]["file_system"], "ext4", "{clean}");
    // A superblock's spare bytes, and the last but one chunk.
    let (in_use, unused) = (100, BYTES as u64 - 70_000);
    flip(&service, in_use);
    flip(&service, unused);
    let offsets = |report: &Value| {
        let findings = report["findings"].as_array().expect("a list").clone();
        let each = findings
            .iter()
            .filter(|finding| finding["gone_s"].is_null());
        each.filter_map(|finding| finding["offset_bytes"].as_u64())
            .collect::<Vec<_>>()
    };
    let (is_good, found) = used(&service);
    assert!(!is_good, "{found}");
    assert_eq!(offsets(&found), [0], "{found}");
    let (_, all) = scrub(&service);
    assert_eq!(offsets(&all), [0, unused / 4096 * 4096], "{all}");
    // What was found outside of the used blocks stays.
    let (_, again) = used(&service);
    assert_eq!(offsets(&again), [0, unused / 4096 * 4096], "{again}");
    // The journal is unfinished: the file system is mounted.
    let mut client = connect(&service);
    let write = Asked::Of(Ask::Write {
        durability: Durability::Durable,
    });
    let mut first = image[..4096].to_vec();
    first[1024 + 0x60] |= 4;
    let sum = !crc32c(&first[1024..1024 + 0x3FC]);
    first[1024 + 0x3FC..2048].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(client.ask(write, 0, 4096, &first).result, Ok(()));
    let (is_good, refused) = used(&service);
    let problem = refused["problem"].as_str().expect("a problem");
    assert!(!is_good && problem.contains("mounted"), "{refused}");
    assert!(
        problem.contains("expected an unmounted file system"),
        "{refused}"
    );
    // Who does not follow the scrub hears of it, too.
    let said = service.refuses(&["scrub", "--used", "--detach", "small"]);
    assert!(said.contains("expected an unmounted file system"), "{said}");
}

/// The bytes of an empty ext4 as long as the small volume; `None` if its program is not installed.
fn small_ext4() -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("small");
    let file = std::fs::File::create(&image).expect("an image");
    file.set_len(BYTES as u64).expect("its length");
    let made = std::process::Command::new("mke2fs")
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .args(["-t", "ext4", "-q", "-F"])
        .arg(&image)
        .status();
    let Ok(status) = made else {
        assert!(std::env::var_os("CI").is_none(), "mke2fs is not installed");
        return None;
    };
    assert!(status.success());
    Some(std::fs::read(&image).expect("an image"))
}

/// The CRC-32C of the standard, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |mut sum, &byte| {
        sum ^= u32::from(byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 {
                sum >> 1 ^ 0x82F6_3B78
            } else {
                sum >> 1
            };
        }
        sum
    })
}

/// Flips and unreadable sectors under a verify load with kills, as the benchmark measures them.
#[test]
fn the_benchmark_of_scrubs_finds_and_repairs_all_damage_without_false_alarms() {
    let output = std::process::Command::new(assert_cmd::cargo::cargo_bin("headtime"))
        .args([
            "bench", "care", "--case", "scrub", "--drive", "dec-rz26", "--json",
        ])
        .output()
        .expect("it runs");
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{problem}");
    let measured = judge("bench-care", &String::from_utf8_lossy(&output.stdout));
    let figures = &measured[0];
    for key in ["injected", "found", "repaired"] {
        assert_eq!(figures[key], 30, "{key}: {figures}");
    }
    for key in ["false_alarms", "wrong_bytes"] {
        assert_eq!(figures[key], 0, "{key}: {figures}");
    }
    assert_eq!(figures["scrub"]["failed_reads"], 0, "{figures}");
    assert_eq!(figures["scrub"]["kills"], 3, "{figures}");
}

/// The slices of the small volume are verified by themselves. A scrub of all takes the place of a slice.
#[test]
fn a_schedule_begins_scrubs_and_goes_on_after_a_restart() {
    let sums = "checksums = \"small.sums\"";
    let scheduled = checked().replace(sums, &format!("{sums}\nscrub = {{ every = \"2 days\" }}"));
    let mut service = Service::start_with(&contents(), &scheduled);
    let moments = |service: &Service| {
        let (_, text) = service.run(&["scrub", "--json", "--status", "small"]);
        let mut values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let report = values.next().and_then(Result::ok);
        let report = report.unwrap_or_else(|| panic!("{text}"));
        assert_eq!(report["schedule"]["every_s"], 2 * 86_400, "{report}");
        assert_eq!(report["late_by_s"], 0, "{report}");
        let all = report["verified_s"].as_array().expect("a list").clone();
        all.iter().filter_map(Value::as_u64).collect::<Vec<u64>>()
    };
    let is_done = |all: &[u64]| all.iter().filter(|&&moment| moment > 0).count();
    let first = loop {
        let now = moments(&service);
        if is_done(&now) >= 2 {
            break now;
        }
    };
    service = Service::start_in(service.end(), &scheduled);
    let second = loop {
        let now = moments(&service);
        if is_done(&now) >= 4 {
            break now;
        }
    };
    let is_kept = |(old, new): (&u64, &u64)| *old == 0 || old == new;
    assert!(
        first.iter().zip(&second).all(is_kept),
        "{first:?} {second:?}"
    );
    assert!(scrub(&service).0, "a scrub of all");
    assert_eq!(is_done(&moments(&service)), 16);
    let status = service.run(&["ctl", "status"]).1;
    assert!(
        status.contains("small: no damage, all verified within"),
        "{status}"
    );
    assert!(status.contains("every 2 days"), "{status}");
}

#[test]
fn a_volume_without_checksums_and_a_region_of_another_volume_are_refused() {
    let service = Service::start_with(&contents(), &checked());
    let refused = service.refuses(&["scrub", "all"]);
    assert!(
        refused.contains("volume all keeps no checksums: expected"),
        "{refused}"
    );
    let refused = service.refuses(&["scrub", "nothing"]);
    assert!(refused.contains("expected one of small, all"), "{refused}");
    let folder = service.end();
    let other = checked().replace("name = \"rz26\"", "name = \"other\"");
    std::fs::write(folder.path().join("c.toml"), other).expect("a configuration");
    let output = std::process::Command::new(assert_cmd::cargo::cargo_bin("headtime"))
        .args(["serve", "c.toml"])
        .current_dir(folder.path())
        .output();
    let output = output.expect("it runs");
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        problem.contains("the checksums are of volume small")
            && problem.contains("expected those of"),
        "{problem}"
    );
}
