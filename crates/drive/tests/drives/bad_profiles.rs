//! What the loader refuses, and what it says: one error with file, line, key and expectation.

mod cases;
mod mutated;

use block::{Sectors, Switch};
use drive::firmware::QueueOrder;
use drive::profile::Chunks;
use drive::{Profile, ProfilePart};

use cases::{INDEXED_CASES, ZONED_CASES};

/// A small drive of zones. Lines are counted from 1, with `name` on line 1.
const ZONED: &str = r#"name = "tiny"
model = "Tiny"
year = 1990
provenance = "invented"
origin = "made up for this test"
block_bytes = 512
physical_block_bytes = 512
blocks = 300
actuators = 1

[spindle]
origin = "made up"
rpm = 5400

[seek]
origin = "made up"
head_switch_ms = 0.8
write_settle_ms = -0.3
deviation_points = [[1, 0.05], [9, 0.09]]
read_points = [[1, 2.0], [5, 3.5], [9, 4.5]]

[overhead]
origin = "made up"
read_hit_after_read_ms = 0.1
read_hit_after_write_ms = 0.1
read_miss_after_read_ms = 0.1
read_miss_after_write_ms = 0.1
write_hit_after_read_ms = 0.1
write_hit_after_write_ms = 0.1
write_miss_after_read_ms = 0.1
write_miss_after_write_ms = 0.1
read_completion_ms = 0
write_completion_ms = 0
read_reselect_ms = 0
write_reselect_ms = 0

[bus]
origin = "made up"
read_block_ms = 0.05
write_block_ms = 0.05

[buffer]
origin = "made up"
segments = 2
segment_blocks = 64
write_segments = 1
read_written = true
look_ahead = "segment"
look_ahead_blocks = 32
look_ahead_on_hit = false
read_on_arrival = false
zero_latency_read = false
zero_latency_write = false
write_back = "none"
segment_per_write = true
destage_order = "sptf"
destage_first = true
writes_in_parts = true
read_watermark_permille = 500
write_watermark_permille = 0

[queue]
origin = "made up"
depth = 1
order = "fcfs"

[commands]
origin = "made up"
seek = false

[confidence]
origin = "made up"
spindle = 0.99
seek = 0.5
known = [[0, 100], [150, 50]]

[layout]
origin = "made up"
kind = "zoned"
surfaces = 2
cylinders = 10
head_order = "ascending"
sparing = "zone-end"

[[layout.zone]]
first_cylinder = 0
last_cylinder = 4
sectors_per_track = 20
start_sectors = 0
track_skew_sectors = 3
cylinder_skew_sectors = 5
spares = 4
slips = [7, 19]

[[layout.zone]]
first_cylinder = 5
last_cylinder = 9
sectors_per_track = 12
start_sectors = 2
track_skew_sectors = 2
cylinder_skew_sectors = 4

[fitted]
origin = "fitted to nothing"
revolution_ms = 11.2
turns = [[0, 0, 0.25, 0], [0, 1, 0.5, 0.001]]
"#;

/// The layout of a small drive of nested patterns, instead of that of `ZONED`.
const INDEXED: &str = r#"[layout]
origin = "made up"
kind = "indexed"
surfaces = 2
cylinders = 8
slips = [[5, 1], [9, 2]]

[[layout.group]]
tracks = [[0, 0, 20, 0.0, 4, 0.1], [3, 1, 20, 0.2, -4, 0.1]]

[[layout.group]]
groups = [[0, 0, 0.0, 2, 4, 0.3]]
"#;

/// `ZONED` with the layout of `INDEXED`.
fn indexed() -> String {
    let from = ZONED.find("[layout]").expect("a layout");
    format!("{}{INDEXED}", &ZONED[..from])
}

/// The line of the first occurrence of a text.
fn line_of(text: &str, part: &str) -> usize {
    let at = text
        .find(part)
        .unwrap_or_else(|| panic!("{part} is in the text"));
    1 + text[..at].matches('\n').count()
}

/// Replaces a text by another, and expects an error on its line, for a key, with some words.
fn refused(text: &str, part: &str, by: &str, key: &str, words: &str) {
    let line = line_of(text, part);
    let bad = text.replacen(part, by, 1);
    let error = Profile::parse(&bad, "bad.toml").expect_err(by);
    assert_eq!(error.key, key, "{error}");
    assert!(
        error.problem.contains(words),
        "{error}: expected to read {words}"
    );
    assert_eq!(error.file, "bad.toml");
    assert_eq!(error.line, Some(line), "{error}");
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("bad.toml:{line}: {key}: ")),
        "{text}"
    );
}

#[test]
fn the_small_drives_are_fine() {
    let zoned = Profile::parse(ZONED, "tiny.toml").expect("a profile");
    assert_eq!(zoned.seek_command, Switch::Off);
    assert_eq!(zoned.buffer.destage_order, QueueOrder::Sptf);
    assert!(zoned.buffer.segment_per_write && zoned.buffer.destage_first);
    assert!(zoned.buffer.writes_in_parts);
    assert!(zoned.is_fitted());
    assert!(!zoned.published().is_fitted());
    assert_eq!(zoned.write_settle_nanos, -300_000);
    assert_eq!(zoned.geometry.turns().len(), 2);
    assert!(zoned.published().geometry.turns().is_empty());
    assert_eq!(zoned.spindle.period_ps(), 11_200_000_000);
    let published = zoned.published();
    assert_eq!(published.spindle.period_ps(), 11_111_111_111);
    assert_eq!(zoned.capacity_bytes(), 300 * 512);
    Profile::parse(&indexed(), "tiny.toml").expect("a profile");
}

#[test]
fn each_number_is_checked_where_it_stands() {
    for [part, by, key, words] in ZONED_CASES {
        refused(ZONED, part, by, key, words);
    }
}

#[test]
fn sectors_are_not_smaller_than_blocks() {
    let text = ZONED.replacen("block_bytes = 512", "block_bytes = 4096", 1);
    let error = Profile::parse(&text, "bad.toml").expect_err("sectors smaller than blocks");
    assert_eq!(
        (error.line, error.key.as_str()),
        (Some(7), "physical_block_bytes")
    );
}

#[test]
fn nested_patterns_are_checked_where_they_stand() {
    for [part, by, key, words] in INDEXED_CASES {
        refused(&indexed(), part, by, key, words);
    }
}

#[test]
fn what_is_missing_is_named_at_its_table() {
    for (part, key, table) in [
        ("rpm = 5400\n", "spindle.rpm", "[spindle]"),
        ("depth = 1\n", "queue.depth", "[queue]"),
        ("read_block_ms = 0.05\n", "bus.read_block_ms", "[bus]"),
        ("kind = \"zoned\"\n", "layout.kind", "[layout]"),
        (
            "origin = \"fitted to nothing\"\n",
            "fitted.origin",
            "[fitted]",
        ),
        ("model = \"Tiny\"\n", "model", "name ="),
    ] {
        let text = ZONED.replacen(part, "", 1);
        let error = Profile::parse(&text, "bad.toml").expect_err(key);
        assert_eq!(error.key, key, "{error}");
        assert!(error.problem.contains("missing"), "{error}");
        assert_eq!(error.line, Some(line_of(&text, table)), "{error}");
    }
}

#[test]
fn text_that_is_not_toml_is_refused_with_its_line() {
    for (text, line) in [
        ("name = \"a\"\nyear = = 3\n", 2),
        ("name = \"a\"\nname = \"b\"\n", 2),
        ("\n\n[spindle\n", 3),
    ] {
        let error = Profile::parse(text, "bad.toml").expect_err("not TOML");
        assert_eq!(error.line, Some(line), "{error}");
        assert!(!error.problem.is_empty());
    }
    let error = Profile::parse("", "empty.toml").expect_err("nothing there");
    assert_eq!(
        (error.line, error.key.as_str()),
        (Some(1), "origin"),
        "{error}"
    );
}

/// `ZONED` with a formula instead of points.
fn with_formula() -> String {
    ZONED.replacen(
        "read_points = [[1, 2.0], [5, 3.5], [9, 4.5]]\n",
        "\n[seek.formula]\norigin = \"also made up\"\nfirst_ms = [2.0, 2.5]\nfar_cylinders = 6\n\
         near_ms = 1\nnear_root_ms = 1\nfar_ms = 3\nfar_cylinder_ms = 0.1\n",
        1,
    )
}

#[test]
fn a_formula_says_where_its_numbers_come_from() {
    let text = with_formula();
    let profile = Profile::parse(&text, "tiny.toml").expect("a profile");
    let origin = profile.origins.iter().find(|o| o.table == "seek.formula");
    assert_eq!(origin.expect("its own origin").text, "also made up");
    let nanos = [1, 2, 3, 6].map(|d| profile.seek.read().time(d).as_nanos());
    assert_eq!(nanos, [2_000_000, 2_500_000, 2_732_051, 3_600_000]);
    refused(
        &text,
        "\"also made up\"",
        "\"\"",
        "seek.formula.origin",
        "not empty",
    );
    let error = Profile::parse(
        &text.replacen("origin = \"also made up\"\n", "", 1),
        "bad.toml",
    );
    assert_eq!(error.expect_err("no origin").key, "seek.formula.origin");
}

#[test]
fn confidences_are_those_of_the_file() {
    let profile = Profile::parse(ZONED, "tiny.toml").expect("a profile");
    let confidence = profile.confidence.expect("a table of confidences");
    assert_eq!(confidence.of(ProfilePart::Spindle), Some(0.99));
    assert_eq!(confidence.of(ProfilePart::Queue), None);
    assert_eq!(confidence.least(), Some(0.5));
    let known = |lba| confidence.is_known(block::Lba(lba));
    let edges = [0, 99, 100, 149, 150, 199, 200].map(known);
    assert_eq!(edges, [true, true, false, false, true, true, false]);
    assert_eq!(confidence.known().len(), 2);
    for (key, part) in ProfilePart::ALL {
        assert_eq!(part.name(), key);
    }
    let deviation = profile.seek_deviation.expect("a table of spreads");
    assert_eq!(deviation.time(5).as_nanos(), 70_000);
    let without = Profile::parse(&without_confidence(), "tiny.toml");
    assert_eq!(without.expect("a profile").confidence, None);
}

/// `ZONED` without its confidences.
fn without_confidence() -> String {
    let from = ZONED.find("[confidence]").expect("confidences");
    let to = ZONED.find("[layout]").expect("a layout");
    format!("{}{}", &ZONED[..from], &ZONED[to..])
}

#[test]
fn a_seventh_number_is_the_blocks_of_each_track() {
    let text = indexed().replace("[3, 1, 20, 0.2, -4, 0.1]", "[3, 1, 20, 0.2, -4, 0.1, 19]");
    let profile = Profile::parse(&text, "tiny.toml").expect("a profile");
    // Three slipped sectors before; 20 sectors on each track of head 0, 19 on each of head 1.
    let lba = |cylinder, head, sector| profile.geometry.lba_at(cylinder, head, sector);
    assert_eq!(lba(3, 1, 0), Some(block::Lba(4 * 20 - 3)));
    assert_eq!(lba(3, 1, 18), Some(block::Lba(4 * 20 - 3 + 18)));
    assert_eq!(lba(3, 1, 19), None);
    assert_eq!(lba(2, 1, 0), Some(block::Lba(4 * 20 - 3 + 19)));
}

/// `ZONED` without its table of commands.
fn without_commands() -> String {
    ZONED.replacen("[commands]\norigin = \"made up\"\nseek = false\n", "", 1)
}

#[test]
fn only_a_profiled_drive_that_says_nothing_of_it_has_no_seek_command() {
    for (provenance, expected) in [
        ("measured", Switch::On),
        ("approximate", Switch::On),
        ("invented", Switch::On),
        ("profiled", Switch::Off),
    ] {
        let text = without_commands().replacen("\"invented\"", &format!("\"{provenance}\""), 1);
        let profile = Profile::parse(&text, "tiny.toml").expect("a profile");
        assert_eq!(profile.seek_command, expected, "{provenance}");
    }
}

/// `ZONED` with a table of chunks.
fn with_chunks(keys: &str) -> Result<Profile, document::DocumentError> {
    let table = format!("[chunks]\norigin = \"made up\"\n{keys}\n[commands]");
    Profile::parse(&ZONED.replacen("[commands]", &table, 1), "tiny.toml")
}

#[test]
fn chunks_are_from_the_least_to_the_most() {
    let chunks = |keys| with_chunks(keys).expect("a profile").chunks;
    let (least, most) = (Sectors(3), Some(Sectors(9)));
    let both = chunks("least_blocks = 3\nmost_blocks = 9");
    assert_eq!(both, Some(Chunks { least, most }));
    let one = chunks("least_blocks = 3");
    assert_eq!(one, Some(Chunks { least, most: None }));
    assert_eq!(
        Profile::parse(ZONED, "tiny.toml").expect("valid").chunks,
        None
    );
    for (keys, key) in [
        ("least_blocks = 0", "chunks.least_blocks"),
        ("most_blocks = 9", "chunks"),
        ("least_blocks = 3\nmost_blocks = 2", "chunks.most_blocks"),
        ("least_blocks = 1000000000", "chunks.least_blocks"),
        ("least_blocks = 3\nfewest = 2", "chunks.fewest"),
    ] {
        let error = with_chunks(keys).expect_err(keys);
        assert!(error.key.starts_with(key), "{keys}: {error}");
    }
}

#[test]
fn the_rare_rules_may_be_left_out() {
    let mut text = ZONED.to_owned();
    for line in [
        "segment_per_write = true\n",
        "destage_order = \"sptf\"\n",
        "destage_first = true\n",
        "writes_in_parts = true\n",
    ] {
        text = text.replacen(line, "", 1);
    }
    let buffer = Profile::parse(&text, "tiny.toml")
        .expect("a profile")
        .buffer;
    assert_eq!(buffer.destage_order, QueueOrder::Fcfs);
    assert!(!buffer.segment_per_write && !buffer.destage_first && !buffer.writes_in_parts);
}
