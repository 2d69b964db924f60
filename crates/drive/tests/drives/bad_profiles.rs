//! What the loader refuses, and what it says: one error with file, line, key and expectation.

use drive::{Profile, catalog};
use proptest::prelude::*;

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
read_watermark_permille = 500
write_watermark_permille = 0

[queue]
origin = "made up"
depth = 1
order = "fcfs"

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
        error.message.contains(words),
        "{error}: expected to read {words}"
    );
    assert_eq!(error.file, "bad.toml");
    assert_eq!(error.line, line, "{error}");
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("bad.toml:{}: {key}: ", error.line)),
        "{text}"
    );
}

#[test]
fn the_small_drives_are_fine() {
    let zoned = Profile::parse(ZONED, "tiny.toml").expect("a profile");
    assert!(zoned.is_fitted());
    assert!(!zoned.published().is_fitted());
    assert_eq!(zoned.write_settle_nanos, -300_000);
    assert_eq!(zoned.geometry.turns().len(), 2);
    assert!(zoned.published().geometry.turns().is_empty());
    assert_eq!(zoned.spindle.period_ps(), 11_111_111_111);
    assert_eq!(zoned.capacity_bytes(), 300 * 512);
    Profile::parse(&indexed(), "tiny.toml").expect("a profile");
}

#[test]
fn each_number_is_checked_where_it_stands() {
    for (part, by, key, words) in [
        (
            "name = \"tiny\"",
            "name = \"Tiny Drive\"",
            "name",
            "lower-case",
        ),
        ("name = \"tiny\"", "name = 7", "name", "expected a string"),
        ("year = 1990", "year = 19", "year", "1956"),
        (
            "provenance = \"invented\"",
            "provenance = \"guessed\"",
            "provenance",
            "\"measured\"",
        ),
        (
            "origin = \"made up for",
            "orgin = \"made up for",
            "orgin",
            "did you mean `origin`?",
        ),
        (
            "origin = \"fitted to nothing\"",
            "origin = \" \"",
            "fitted.origin",
            "not empty",
        ),
        (
            "block_bytes = 512",
            "block_bytes = 520",
            "block_bytes",
            "512 or 4096",
        ),
        (
            "physical_block_bytes = 512",
            "physical_block_bytes = 1024",
            "physical_block_bytes",
            "512 or 4096",
        ),
        ("blocks = 300\n", "blocks = 317\n", "blocks", "316"),
        ("blocks = 300\n", "blocks = 0\n", "blocks", "at least one"),
        (
            "blocks = 300\n",
            "blocks = -1\n",
            "blocks",
            "expected a whole number",
        ),
        ("actuators = 1", "actuators = 3", "actuators", "from 1 to 2"),
        ("rpm = 5400", "rpm = 0", "spindle.rpm", "from 1000 to 30000"),
        (
            "rpm = 5400",
            "rpm = -7200",
            "spindle.rpm",
            "from 1000 to 30000",
        ),
        (
            "rpm = 5400",
            "rpm = nan",
            "spindle.rpm",
            "from 1000 to 30000",
        ),
        (
            "rpm = 5400",
            "rpm = 1e9",
            "spindle.rpm",
            "from 1000 to 30000",
        ),
        (
            "rpm = 5400",
            "rpms = 5400",
            "spindle.rpms",
            "did you mean `rpm`?",
        ),
        (
            "head_switch_ms = 0.8",
            "head_switch_ms = -0.8",
            "seek.head_switch_ms",
            "from 0",
        ),
        (
            "head_switch_ms = 0.8",
            "head_switch_ms = inf",
            "seek.head_switch_ms",
            "from 0",
        ),
        (
            "[5, 3.5]",
            "[1, 3.5]",
            "seek.read_points[1]",
            "each larger than the last",
        ),
        ("[5, 3.5]", "[5, -3.5]", "seek.read_points[1][1]", "from 0"),
        (
            "[5, 3.5]",
            "[5]",
            "seek.read_points[1]",
            "[cylinders, milliseconds]",
        ),
        (
            "read_points = [[1, 2.0], [5, 3.5], [9, 4.5]]",
            "read_points = []",
            "seek.read_points",
            "at least one",
        ),
        (
            "read_reselect_ms = 0",
            "read_reselect_ms = \"0\"",
            "overhead.read_reselect_ms",
            "expected a number",
        ),
        (
            "read_reselect_ms = 0",
            "read_reslect_ms = 0",
            "overhead.read_reslect_ms",
            "did you mean `read_reselect_ms`?",
        ),
        (
            "segment_blocks = 64",
            "segment_blocks = 99999999",
            "buffer.segment_blocks",
            "together",
        ),
        (
            "segment_blocks = 64",
            "segment_blocks = 0",
            "buffer.segment_blocks",
            "from 1",
        ),
        (
            "write_segments = 1",
            "write_segments = 3",
            "buffer.write_segments",
            "from 0 to 2",
        ),
        (
            "read_written = true",
            "read_written = 1",
            "buffer.read_written",
            "true or false",
        ),
        (
            "look_ahead = \"segment\"",
            "look_ahead = \"far\"",
            "buffer.look_ahead",
            "\"cylinder\"",
        ),
        (
            "read_watermark_permille = 500",
            "read_watermark_permille = 1001",
            "buffer.read_watermark_permille",
            "to 1000",
        ),
        ("depth = 1", "depth = 0", "queue.depth", "from 1"),
        (
            "kind = \"zoned\"",
            "kind = \"round\"",
            "layout.kind",
            "\"indexed\"",
        ),
        ("surfaces = 2", "surfaces = 0", "layout.surfaces", "from 1"),
        (
            "cylinders = 10",
            "cylinders = 4294967295",
            "layout.cylinders",
            "1 to 4194304",
        ),
        (
            "surfaces = 2",
            "surfaces = 65",
            "layout.surfaces",
            "1 to 64",
        ),
        (
            "sparing = \"zone-end\"",
            "sparing = \"lots\"",
            "layout.sparing",
            "\"range-end\"",
        ),
        (
            "first_cylinder = 5",
            "first_cylinder = 4",
            "layout.zone[1].first_cylinder",
            "do not overlap",
        ),
        (
            "last_cylinder = 9",
            "last_cylinder = 10",
            "layout.zone[1].last_cylinder",
            "from 5 to 9",
        ),
        (
            "sectors_per_track = 12",
            "sectors_per_track = 0",
            "layout.zone[1].sectors_per_track",
            "from 1",
        ),
        (
            "sectors_per_track = 12",
            "sectors_per_track = 1000000",
            "layout.zone[1].sectors_per_track",
            "1 to 65536",
        ),
        (
            "start_sectors = 2",
            "start_sectors = nan",
            "layout.zone[1].start_sectors",
            "expected a number",
        ),
        (
            "slips = [7, 19]",
            "slips = [7, 19, 20, 21, 22]",
            "layout.zone[0].slips",
            "not more than spares",
        ),
        (
            "spares = 4",
            "spares = 200",
            "layout.zone[0].spares",
            "at most 199",
        ),
        (
            "slips = [7, 19]",
            "slips = [7, 200]",
            "layout.zone[0].slips[1]",
            "below 200",
        ),
        (
            "slips = [7, 19]",
            "slips = [7, 7]",
            "layout.zone[0].slips[1]",
            "each once",
        ),
        (
            "slips = [7, 19]",
            "slips = [7, -1]",
            "layout.zone[0].slips[1]",
            "from 0",
        ),
        (
            "slips = [7, 19]",
            "slips = 7",
            "layout.zone[0].slips",
            "an array",
        ),
        (
            "slips = [7, 19]",
            "remaps = [[7, 3]]",
            "layout.zone[0].remaps[0]",
            "expected a spare",
        ),
        (
            "[0, 1, 0.5, 0.001]",
            "[0, 0, 0.5, 0.001]",
            "fitted.turns[1]",
            "ascending",
        ),
        (
            "[0, 1, 0.5, 0.001]",
            "[0, 1, inf, 0.001]",
            "fitted.turns[1][2]",
            "expected a number",
        ),
        (
            "[0, 1, 0.5, 0.001]",
            "[0, 1, 0.5]",
            "fitted.turns[1]",
            "expected [group, run, start, step]",
        ),
    ] {
        refused(ZONED, part, by, key, words);
    }
}

#[test]
fn sectors_are_not_smaller_than_blocks() {
    let text = ZONED.replacen("block_bytes = 512", "block_bytes = 4096", 1);
    let error = Profile::parse(&text, "bad.toml").expect_err("sectors smaller than blocks");
    assert_eq!(
        (error.line, error.key.as_str()),
        (7, "physical_block_bytes")
    );
}

#[test]
fn nested_patterns_are_checked_where_they_stand() {
    for (part, by, key, words) in [
        (
            "cylinders = 8",
            "cylinders = 7",
            "layout.cylinders",
            "reach over 8",
        ),
        (
            "slips = [[5, 1], [9, 2]]",
            "slips = [[5, 5], [9, 2]]",
            "layout.slips[1]",
            "ascending",
        ),
        (
            "slips = [[5, 1], [9, 2]]",
            "slips = [[5, 1], [9, 0]]",
            "layout.slips[1][1]",
            "from 1",
        ),
        (
            "[3, 1, 20, 0.2, -4, 0.1]",
            "[3, 2, 20, 0.2, -4, 0.1]",
            "layout.group[0].tracks[1]",
            "below 2",
        ),
        (
            "[3, 1, 20, 0.2, -4, 0.1]",
            "[2, 1, 20, 0.2, -4, 0.1]",
            "layout.group[0].tracks[1]",
            "inside the group",
        ),
        (
            "[3, 1, 20, 0.2, -4, 0.1]",
            "[3, 0, 20, 0.2, -4, 0.1]",
            "layout.group[0].tracks[1]",
            "each track once",
        ),
        (
            "[3, 1, 20, 0.2, -4, 0.1]",
            "[3, 1, 20, 0.2, -4]",
            "layout.group[0].tracks[1]",
            "5 numbers",
        ),
        (
            "[3, 1, 20, 0.2, -4, 0.1]",
            "[3, 1, 0, 0.2]",
            "layout.group[0].tracks[1][2]",
            "from 1",
        ),
        (
            "groups = [[0, 0, 0.0, 2, 4, 0.3]]",
            "groups = [[1, 0, 0.0, 2, 4, 0.3]]",
            "layout.group[1].groups[0]",
            "below 1",
        ),
        (
            "groups = [[0, 0, 0.0, 2, 4, 0.3]]",
            "groups = [[0, 0, 0.0, 2, 3, 0.3]]",
            "layout.group[1].groups[0]",
            "every 4 cylinders",
        ),
        (
            "groups = [[0, 0, 0.0, 2, 4, 0.3]]",
            "groups = []",
            "layout.group[1].groups",
            "1 run at least",
        ),
        (
            "groups = [[0, 0, 0.0, 2, 4, 0.3]]",
            "groups = [[0, 0, nan, 2, 4, 0.3]]",
            "layout.group[1].groups[0][2]",
            "a number",
        ),
    ] {
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
        ("year = 1990\n", "year", "name ="),
    ] {
        let text = ZONED.replacen(part, "", 1);
        let error = Profile::parse(&text, "bad.toml").expect_err(key);
        assert_eq!(error.key, key, "{error}");
        assert!(error.message.contains("missing"), "{error}");
        assert_eq!(error.line, line_of(&text, table), "{error}");
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
        assert_eq!(error.line, line, "{error}");
        assert!(!error.message.is_empty());
    }
    let error = Profile::parse("", "empty.toml").expect_err("nothing there");
    assert_eq!((error.line, error.key.as_str()), (1, "origin"), "{error}");
}

/// A text with some of its lines removed, doubled, swapped, or with other numbers in them.
fn mutate(text: &str, changes: &[(u8, usize, i64)]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for &(kind, at, number) in changes {
        if lines.is_empty() {
            break;
        }
        let at = at % lines.len();
        match kind % 6 {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => {
                let other = number.unsigned_abs() as usize % lines.len();
                lines.swap(at, other);
            }
            3 => {
                if let Some((key, _)) = lines[at].split_once(" = ") {
                    lines[at] = format!("{key} = {number}");
                }
            }
            4 => {
                let mut digits: Vec<char> = lines[at].chars().collect();
                let spot = number.unsigned_abs() as usize % (digits.len() + 1);
                digits.insert(
                    spot,
                    ['9', '-', '.', '[', ']', '"', 'e'][number.unsigned_abs() as usize % 7],
                );
                lines[at] = digits.into_iter().collect();
            }
            _ => {
                let keep = number.unsigned_abs() as usize % (lines[at].len() + 1);
                lines[at] = lines[at].chars().take(keep).collect();
            }
        }
    }
    lines.join("\n")
}

fn changes() -> impl Strategy<Value = Vec<(u8, usize, i64)>> {
    let number = prop_oneof![
        -3i64..100,
        any::<i64>(),
        Just(i64::from(u32::MAX)),
        Just(1 << 31)
    ];
    proptest::collection::vec((any::<u8>(), any::<usize>(), number), 1..5)
}

/// A profile is one, or the error says where and why it is not. What loads can be used.
fn never_panics(text: &str) {
    match Profile::parse(text, "mutated.toml") {
        Ok(profile) => {
            let blocks = profile.geometry.sectors().0;
            for lba in [0, blocks / 3, blocks / 2, blocks - 1] {
                crate::oracle::check_block(&profile.geometry, lba, 9);
            }
        }
        Err(error) => {
            assert!(
                error.line >= 1 && error.line <= text.lines().count() + 1,
                "{error}"
            );
            assert!(!error.message.is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn mutated_small_drives_never_panic(changes in changes(), nested in any::<prop::sample::Selector>()) {
        let texts = [ZONED.to_owned(), indexed()];
        never_panics(&mutate(nested.select(&texts), &changes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn mutated_shipped_drives_never_panic(changes in changes(), drive in any::<prop::sample::Selector>()) {
        let small = catalog::ALL.iter().filter(|entry| entry.text.len() < 100_000);
        never_panics(&mutate(drive.select(small).text, &changes));
    }
}
