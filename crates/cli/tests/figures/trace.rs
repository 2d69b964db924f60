//! `headtime trace` as a whole binary: reports, conversions, and errors with their exit code.

use assert_cmd::Command;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

/// A directory with files in it, and the binary run in it.
struct Scene {
    directory: TempDir,
}

impl Scene {
    fn with(files: &[(&str, &[u8])]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, bytes) in files {
            std::fs::write(directory.path().join(name), bytes).expect("written");
        }
        Scene { directory }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
            .current_dir(self.directory.path())
            .arg("trace")
            .args(arguments)
            .output()
            .expect("it ran")
    }

    /// What it prints on standard output when it succeeds.
    fn prints(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn json(&self, arguments: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.prints(arguments)).expect("JSON")
    }

    /// The one line that it says on standard error when it refuses, with exit code 2.
    fn refuses(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "nothing on standard output");
        assert_eq!(said.lines().count(), 1, "one line: {said}");
        let said = said.trim_end().strip_prefix("error: ").expect("an error");
        said.into()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a text")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn files(&self) -> Vec<String> {
        let entries = self.directory.path().read_dir().expect("a directory");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.into_string().expect("text"))
            .collect();
        names.sort();
        names
    }
}

const GOOD: &[u8] = b"0.000000,a,R,0,4096\n0.500000,b,W,8192,1024\n0.750000,a,R,4096,4096\n";

#[test]
fn stat_reports_as_a_table_and_as_json() {
    let scene = Scene::with(&[("t.csv", GOOD)]);
    let table = scene.prints(&["stat", "t.csv"]);
    for part in [
        "requests                3 66.7 % reads",
        "random               66.7 %",
        "p99.9",
    ] {
        assert!(table.contains(part), "{part} in {table}");
    }
    let json = scene.json(&["stat", "--json", "t.csv"]);
    assert_eq!(json["format"], "canonical");
    assert_eq!(json["requests"], 3);
    assert_eq!(json["bytes"], 9216);
    assert_eq!(json["footprint_bytes"], 3 * 4096);
    assert_eq!(json["span_seconds"], 0.75);
    assert_eq!(json["devices"][1]["name"], "b");
    assert_eq!(json["skipped"], 0);
    let again = || scene.prints(&["stat", "--json", "t.csv"]);
    assert_eq!(again(), again());
}

#[test]
fn errors_name_file_line_and_field_and_end_with_code_2() {
    let packed = zstd::encode_all(GOOD, 0).expect("in memory");
    let after_good = |line: &[u8]| [GOOD, line].concat();
    let scene = Scene::with(&[
        ("cut.csv", &after_good(b"0.8,a,R,81")),
        ("cut.csv.zst", &packed[..packed.len() - 3]),
        ("cut.zst", &packed[..packed.len() - 3]),
        ("mixed.csv", &after_good(b"0,8,512,R,0.8\n0.9,a,R,0,512\n")),
        ("backwards.csv", &after_good(b"0.7,a,R,0,512\n")),
        ("field.csv", &after_good(b"0.8,a,R,x,512\n")),
        ("negative.csv", &after_good(b"0.8,a,R,0,-512\n")),
        ("zero.csv", &after_good(b"0.8,a,R,0,0\n")),
        ("empty.csv", b""),
        (
            "bad.iolog",
            b"fio version 3 iolog\n0 f add\n1 f reed 0 512\n",
        ),
        ("what.bin", b"\x7fELF"),
    ]);
    for (file, line, parts) in [
        ("cut.csv", 4, ["truncated", "byte_length", "no newline"]),
        ("mixed.csv", 4, ["mixed formats", "spc", "canonical"]),
        (
            "backwards.csv",
            4,
            ["time goes backwards", "0.700000000 s", "0.750000000 s"],
        ),
        ("field.csv", 4, ["bad field", "byte_offset", "\"x\""]),
        ("negative.csv", 4, ["bad field", "byte_length", "\"-512\""]),
        ("zero.csv", 4, ["zero length", "byte_length", "at least 1"]),
        ("bad.iolog", 3, ["bad field", "action", "\"reed\""]),
        ("what.bin", 1, ["unknown format", "canonical", "fio-v2"]),
    ] {
        let said = scene.refuses(&["stat", file]);
        assert!(said.starts_with(&format!("{file}:{line}: ")), "{said}");
        for part in parts {
            assert!(said.contains(part), "{part} in {said}");
        }
    }
    for file in ["cut.csv.zst", "cut.zst"] {
        let said = scene.refuses(&["stat", file]);
        assert!(said.contains("truncated: file: found the end inside a zstd frame"));
    }
    let said = scene.refuses(&["stat", "empty.csv"]);
    assert!(said.starts_with("empty.csv: empty trace"), "{said}");
    let said = scene.refuses(&["stat", "absent.csv"]);
    assert_eq!(
        said.trim_end(),
        "absent.csv: unreadable: No such file or directory (os error 2)"
    );
    let said = scene.refuses(&["stat", "."]);
    assert!(said.contains("directory"), "{said}");
}

#[test]
fn skipping_goes_on_and_counts() {
    let bad = [
        GOOD,
        b"0.7,a,R,0,512\n0.8,a,R,x,512\n0.8,a,R,y,512\n0.9,a,R,0,512\n1.0,a",
    ]
    .concat();
    let scene = Scene::with(&[("t.csv", &bad)]);
    let table = scene.prints(&["stat", "--skip-bad", "t.csv"]);
    let told = "4 bad lines skipped: 2 bad field, 1 time goes backwards, 1 truncated";
    assert!(table.contains(told), "{table}");
    let json = scene.json(&["stat", "--skip-bad", "--json", "t.csv"]);
    assert_eq!(json["requests"], 4);
    assert_eq!(json["skipped"], 4);
    assert_eq!(json["skipped_by_reason"]["malformed"], 2);
    assert_eq!(json["skipped_by_reason"]["backwards"], 1);
    assert_eq!(json["skipped_by_reason"]["truncated"], 1);
    let output = scene.run(&["convert", "--skip-bad", "t.csv", "good.csv"]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains(told));
    assert_eq!(scene.read("good.csv").lines().count(), 4);
}

#[test]
fn a_trace_goes_through_every_written_format_and_comes_back() {
    let trace = "0.000000,0,R,0,4096\n0.500000,1,W,8192,1024\n0.500001,0,R,4096,4096\n";
    let scene = Scene::with(&[("t.csv", trace.as_bytes())]);
    for [from, to] in [
        ["t.csv", "a.dis"],
        ["a.dis", "b.iolog"],
        ["b.iolog", "c.csv.zst"],
        ["c.csv.zst", "d.csv"],
    ] {
        scene.prints(&["convert", from, to]);
    }
    scene.prints(&["convert", "--to", "fio-v2", "d.csv", "e.anything.zst"]);
    scene.prints(&["convert", "e.anything.zst", "f.csv"]);
    assert_eq!(scene.read("d.csv"), trace);
    assert_eq!(scene.read("f.csv"), trace);
    assert_eq!(
        scene.read("a.dis"),
        "0.000000 0 0 8 1\n500.000000 1 16 2 0\n500.001000 0 8 8 1\n"
    );
    assert_eq!(
        scene.read("b.iolog"),
        "fio version 3 iolog\n0 0 add\n0 0 open\n0 0 read 0 4096\n500000 1 add\n500000 1 open\n\
         500000 1 write 8192 1024\n500001 0 read 4096 4096\n500001 0 close\n500001 1 close\n"
    );
}

#[test]
fn convert_selects_a_device_and_tells_those_that_there_are() {
    let scene = Scene::with(&[("t.csv", GOOD)]);
    scene.prints(&["convert", "--device", "a", "t.csv", "a.csv"]);
    assert_eq!(scene.read("a.csv").lines().count(), 2);
    let said = scene.refuses(&["convert", "--device", "c", "t.csv", "c.csv"]);
    assert_eq!(said, "t.csv: no request of device c: the devices are a, b");
    assert_eq!(scene.files(), ["a.csv", "t.csv"]);
}

#[test]
fn nothing_is_overwritten_or_left_half_written() {
    let bad = [GOOD, b"x\n"].concat();
    let scene = Scene::with(&[("t.csv", GOOD), ("bad.csv", &bad), ("out.csv", b"mine")]);
    let said = scene.refuses(&["convert", "t.csv", "out.csv"]);
    assert_eq!(said, "out.csv: exists, and is not replaced without --force");
    scene.refuses(&["convert", "--force", "bad.csv", "out.csv"]);
    scene.refuses(&["convert", "bad.csv", "new.dis"]);
    assert_eq!(scene.read("out.csv"), "mine");
    assert_eq!(scene.files(), ["bad.csv", "out.csv", "t.csv"]);
    scene.prints(&["convert", "--force", "t.csv", "out.csv"]);
    assert_eq!(scene.read("out.csv").as_bytes(), GOOD);
    scene.prints(&["convert", "--force", "t.csv", "t.csv"]);
    assert_eq!(scene.read("t.csv").as_bytes(), GOOD);
}

#[test]
fn formats_are_chosen_by_name_or_refused() {
    let scene = Scene::with(&[("t.csv", GOOD)]);
    let said = scene.refuses(&["convert", "t.csv", "t.spc"]);
    assert_eq!(
        said,
        "t.spc: the name tells no format that is written: use --to with one of canonical, disksim, \
         fio-v3, fio-v2"
    );
    let said = scene.refuses(&["stat", "--format", "msr", "t.csv"]);
    assert!(said.starts_with("t.csv:1: mixed formats"), "{said}");
}

#[cfg(unix)]
#[test]
fn the_output_has_the_permissions_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::with(&[("t.csv", GOOD)]);
    scene.prints(&["convert", "t.csv", "out.csv"]);
    let mode = |path: &Path| path.metadata().expect("there").permissions().mode();
    assert_eq!(mode(&scene.path("out.csv")), mode(&scene.path("t.csv")));
}

/// A trace without a header, whose times are microseconds and whose addresses are blocks of 4 KiB.
const BARE: &[u8] = b"5 x 10 2 R\n1005 y 20 1 W\n";

#[test]
fn columns_and_units_are_stated_where_there_is_no_header() {
    let scene = Scene::with(&[("t.txt", BARE)]);
    let stated = [
        "--columns",
        "time,-,lba,blocks,op",
        "--delimiter",
        "space",
        "--block-bytes",
        "4096",
        "--time-unit",
        "us",
    ];
    let words = [
        &["convert", "t.txt", "out.csv", "--to", "canonical"][..],
        &stated,
    ]
    .concat();
    let output = scene.run(&words);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        scene.read("out.csv"),
        "0.000000,0,R,40960,8192\n0.001000,0,W,81920,4096\n"
    );
    for (words, problem) in [
        (
            &["stat", "t.txt", "--columns", "time,offset"][..],
            "--columns: no column of lengths (size or sectors)",
        ),
        (
            &["stat", "t.txt", "--columns", "time,ofset,size"],
            "--columns: \"ofset\": expected time",
        ),
        (
            &["stat", "t.txt", "--format", "msr", "--block-bytes", "512"],
            "--format msr: it has columns and units of its own",
        ),
        (
            &[
                "stat",
                "t.txt",
                "--columns",
                "time,-,lba,blocks,op",
                "--delimiter",
                "space",
                "--time-unit",
                "ms",
                "--block-bytes",
                "0",
            ],
            "--block-bytes 0: expected 1 to",
        ),
        (
            &[
                "stat",
                "t.txt",
                "--columns",
                "time,lba,blocks,-,op",
                "--delimiter",
                "space",
            ],
            "t.txt:1: bad field: address: found \"x\" in column 2, expected a whole number",
        ),
    ] {
        let said = scene.refuses(words);
        assert!(said.contains(problem), "{problem}: {said}");
    }
}

#[test]
fn the_last_address_names_the_smallest_drive_that_has_it() {
    for (end, of_drive) in [
        (
            2_000_000_000_u64,
            "2,000.0 MB is the last address; the smallest shipped drive with it is seagate-barracuda-4lp\n",
        ),
        (
            30_000_000_000_000,
            "30,000,000.0 MB is the last address; no shipped drive has it\n",
        ),
    ] {
        let trace = format!(
            "0.0,a,R,0,4096\n0.5,a,W,{},4096\n0.6,a,R,0,4096\n",
            end - 4096
        );
        let scene = Scene::with(&[("t.csv", trace.as_bytes())]);
        let table = scene.prints(&["stat", "t.csv"]);
        assert!(table.contains(of_drive), "{table}");
    }
}

#[test]
fn a_dash_is_standard_input_also_of_a_simulation_of_several_policies() {
    let scene = Scene::with(&[]);
    let with_input = |words: &[&str], input: &[u8]| {
        Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
            .current_dir(scene.directory.path())
            .args(words)
            .write_stdin(input)
            .output()
            .expect("it ran")
    };
    let output = with_input(&["trace", "stat", "-", "--json"], GOOD);
    let figures: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&figures["requests"], &figures["format"]),
        (&3.into(), &"canonical".into())
    );
    let output = with_input(&["trace", "stat", "-"], b"nonsense\n");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("standard input:1: unknown format"), "{said}");
    let simulated = [
        "simulate",
        "--drive",
        "hp-c2247a",
        "--policy",
        "fcfs,sptf",
        "--trace",
        "-",
        "--device",
        "all",
        "--json",
    ];
    let output = with_input(&simulated, GOOD);
    let figures: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(
        figures["results"].as_array().map(Vec::len),
        Some(2),
        "{figures}"
    );
    assert_eq!(scene.files(), Vec::<String>::new());
}

#[test]
fn stat_warns_where_units_look_wrong() {
    // Blocks that a header takes for bytes, and microseconds that it takes for seconds.
    let lines = (0..20).map(|at| format!("{},{},8\n", at * 40_000_000, at * 17 + 1));
    let text = format!("time,offset,size\n{}", lines.collect::<String>());
    let scene = Scene::with(&[("t.csv", text.as_bytes())]);
    let table = scene.prints(&["stat", "t.csv"]);
    for part in [
        "warning: the longest request has 8 bytes: sizes look like a number of blocks: name another --format",
        "warning: 20 of 20 addresses are no multiples of 512 bytes",
        "warning: the trace has 24 years: times look like a smaller unit",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let doubts = scene.json(&["stat", "t.csv", "--json"])["doubts"].clone();
    assert_eq!(doubts.as_array().map(Vec::len), Some(3));
    let good = text.replace("time,offset,size", "time_us,lba,sectors");
    let scene = Scene::with(&[("t.csv", good.as_bytes())]);
    let table = scene.prints(&["stat", "t.csv"]);
    assert!(!table.contains("warning"));
    assert!(
        table.contains("\n1 line is no request, such as a header"),
        "{table}"
    );
}
