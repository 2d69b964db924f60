//! What a confused or hostile user can give: each is refused with one line on standard error that
//! names the place and what was expected, exit code 2, and nothing on standard output.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use tempfile::TempDir;

/// A command line, and what its one line of complaint begins with and contains.
type Case = (&'static str, &'static str, &'static str);

const ON: &str = "simulate --drive seagate-cheetah-9lp";

const GOOD: &str = "0.0,a,R,0,4096\n0.5,a,W,8192,1024\n0.75,a,R,4096,4096\n";

/// The files that the cases name.
const FILES: &[(&str, &[u8])] = &[
    ("good.csv", GOOD.as_bytes()),
    ("empty.csv", b""),
    ("blank.csv", b"\n\n"),
    ("bom.csv", b"\xef\xbb\xbf0.0,a,R,0,4096\n"),
    ("utf16.csv", b"\xff\xfe0\0,\0a\0,\0R\0,\x000\0,\x008\0\n\0"),
    ("binary.csv", b"\x7fELF\x02\x01\x01\0\xfe\xff\n\xff"),
    ("nan.csv", b"nan,a,R,0,512\n"),
    ("negative.csv", b"-1,a,R,0,512\n"),
    ("huge.csv", b"0,a,R,99999999999999999999999,4096\n"),
    ("past64.csv", b"0,a,R,18446744073709551615,1\n"),
    ("near64.csv", b"0,a,R,18446744073709551104,511\n"),
    ("back.csv", b"1,a,R,0,512\n0.5,a,R,0,512\n"),
    ("zero.csv", b"0,a,R,0,0\n"),
    ("cut.csv", b"0,a,R,0,512\n1,a,R,0,51"),
    ("mixed.csv", b"0,a,R,0,512\n1.0 0 4096 8 1\n"),
    (
        "late.csv",
        b"0,a,R,0,512\n18446744073.709551615,a,R,512,512\n",
    ),
    ("two.csv", b"0,a,R,0,512\n1,b,R,0,512\n"),
    ("not-utf8.toml", b"name = \"mine\"\nsummary = \"\xff\"\n"),
    (
        "tusks.toml",
        b"name = \"m\"\n[arrivals]\nmodel = \"closed\"\ntusks = 10\n[size]\nkind = \"fixed\"\n\
          kib = 4\n[placement]\nkind = \"uniform\"\n",
    ),
    ("nothing.toml", b""),
    ("broken.toml", b"name = \n"),
];

/// Of `headtime trace stat`.
const TRACES: &[Case] = &[
    ("empty.csv", "empty.csv: empty trace", "expected canonical"),
    ("blank.csv", "blank.csv:1: ", "an empty line"),
    ("bom.csv", "bom.csv:1: bad field: timestamp_seconds", "feff"),
    ("utf16.csv", "utf16.csv:1: ", "expected"),
    ("binary.csv", "binary.csv:1: ", "expected"),
    (
        "nan.csv",
        "nan.csv:1: bad field: timestamp_seconds",
        "\"nan\"",
    ),
    ("negative.csv", "negative.csv:1: ", "not negative"),
    (
        "huge.csv",
        "huge.csv:1: number too large: byte_offset",
        "expected",
    ),
    ("past64.csv", "past64.csv:1: number too large", "64-bit"),
    (
        "back.csv",
        "back.csv:2: time goes backwards",
        "at least 1.0",
    ),
    ("zero.csv", "zero.csv:1: zero length", "at least 1"),
    ("cut.csv", "cut.csv:2: truncated", "no newline"),
    ("mixed.csv", "mixed.csv:2: mixed formats", "disksim"),
    ("nowhere.csv", "nowhere.csv: unreadable", "No such file"),
    ("folder.csv", "folder.csv: unreadable", "directory"),
    ("good.csv/x", "good.csv/x: unreadable", ""),
    ("cut.csv.zst", "cut.csv.zst:", "inside a zstd frame"),
    ("magic.csv.zst --skip-bad", "magic.csv.zst: empty trace", ""),
    ("junk.csv.zst", "junk.csv.zst:4: unreadable", "frame"),
    (
        "good.csv --format foo",
        "invalid value 'foo' for '--format",
        "canonical",
    ),
    (
        "good.csv --format spc",
        "good.csv:1: mixed formats",
        "canonical",
    ),
    ("good.csv good.csv", "unexpected argument", "--help"),
];

/// Of `headtime trace convert`.
const CONVERSIONS: &[Case] = &[
    ("good.csv good.csv", "good.csv: exists", "--force"),
    (
        "good.csv nodir/x.csv",
        "nodir/x.csv: there is no folder nodir",
        "",
    ),
    (
        "good.csv folder.csv --force",
        "folder.csv: neither a file",
        "expected",
    ),
    ("good.csv x.foo", "x.foo: the name tells no format", "--to"),
    (
        "good.csv x.spc",
        "x.spc: the name tells no format",
        "fio-v3",
    ),
    ("good.csv x --to spc", "invalid value 'spc'", "fio-v3"),
    (
        "good.csv x.csv --device z",
        "good.csv: no request of device z",
        "are a",
    ),
    ("cut.csv x.csv", "cut.csv:2: truncated", ""),
    (
        "near64.csv x.dis",
        "x.dis: request 1 does not fit disksim",
        "byte_length",
    ),
];

/// Of `headtime simulate` on a drive.
const RUNS: &[Case] = &[
    ("", "the following required arguments", "--workload"),
    (
        "--workload oltp --trace good.csv",
        "the argument",
        "cannot be used with",
    ),
    (
        "--workload oltp --bogus",
        "unexpected argument '--bogus'",
        "",
    ),
    (
        "--workload oltp --depth 0",
        "invalid value '0' for '--depth",
        "1..=",
    ),
    (
        "--workload oltp --depth 1000000000",
        "--depth 1000000000: expected at most",
        "",
    ),
    (
        "--workload oltp --requests 0",
        "invalid value '0' for '--requests",
        "",
    ),
    (
        "--workload oltp --seconds -1",
        "--seconds -1: expected more than 0",
        "",
    ),
    (
        "--workload oltp --seconds inf",
        "--seconds inf: expected",
        "",
    ),
    (
        "--workload oltp --tasks 0",
        "command line: --tasks: 0: expected",
        "",
    ),
    (
        "--workload oltp --tasks 99999999",
        "command line: --tasks: ",
        "65536",
    ),
    (
        "--workload oltp --rate 0",
        "command line: --rate: 0: expected",
        "",
    ),
    (
        "--workload oltp --rate nan",
        "command line: --rate: NaN: expected",
        "",
    ),
    (
        "--workload oltp --rate 5 --tasks 3",
        "command line: --rate: ",
        "not both",
    ),
    (
        "--workload oltp --rate 0.000001 --seconds 1",
        "oltp: no request to serve",
        "",
    ),
    (
        "--workload oltp --rate 0.000001 --requests 9000",
        "an arrival 3",
        "a century",
    ),
    (
        "--workload oltp --think-ms -1",
        "command line: --think-ms: -1: expected",
        "",
    ),
    (
        "--workload oltp --size-kib 0",
        "command line: --size-kib: 0 KiB: expected",
        "",
    ),
    (
        "--workload oltp --size-kib 99999999",
        "command line: --size-kib: ",
        "do not fit",
    ),
    (
        "--workload oltp --read-fraction 2",
        "command line: --read-fraction: 2",
        "to 1",
    ),
    (
        "--workload oltp --seed -1",
        "invalid value '-1' for '--seed",
        "",
    ),
    (
        "--workload oltp --policy fcfs,fcfs",
        "--policy: fcfs is there twice",
        "expected",
    ),
    (
        "--workload oltp --policy LIFO",
        "no policy is called \"LIFO\"",
        "sptf",
    ),
    (
        "--workload nothing.toml",
        "nothing.toml: name: missing",
        "expected",
    ),
    ("--workload broken.toml", "broken.toml:1: not TOML", ""),
    (
        "--workload not-utf8.toml",
        "not-utf8.toml:2: ",
        "expected text",
    ),
    (
        "--workload tusks.toml",
        "tusks.toml:4: arrivals.tusks: unknown key",
        "tasks",
    ),
    (
        "--workload ./nowhere.toml",
        "./nowhere.toml: No such file",
        "",
    ),
    ("--workload folder.csv", "folder.csv: Is a directory", ""),
    (
        "--workload oltp --svg folder.csv",
        "folder.csv: ",
        "directory",
    ),
    (
        "--workload oltp --svg good.csv/x.svg",
        "good.csv/x.svg: ",
        "",
    ),
    (
        "--workload oltp --requests-out folder.csv",
        "folder.csv: ",
        "directory",
    ),
    (
        "--workload oltp --svg x --requests-out ./x",
        "--svg x: used for",
        "of its own",
    ),
    (
        "--trace good.csv --requests-out ./good.csv",
        "--requests-out ./good.csv: used",
        "",
    ),
    (
        "--workload tusks.toml --svg tusks.toml",
        "tusks.toml:4: ",
        "",
    ),
    ("--trace near64.csv", "near64.csv:1: blocks", "--fit wrap"),
    (
        "--trace near64.csv --skip-bad",
        "near64.csv: no request to serve: 1 end past",
        "",
    ),
    (
        "--trace near64.csv --skip-bad --closed=9",
        "near64.csv: no request to serve",
        "",
    ),
    (
        "--trace late.csv",
        "late.csv:2: an arrival 18446744073",
        "a century",
    ),
    (
        "--trace late.csv --scale-time 1000000",
        "late.csv:2: an arrival 1844674407",
        "",
    ),
    (
        "--trace two.csv",
        "two.csv:2: a request for device \"b\"",
        "--device",
    ),
    (
        "--trace good.csv --device z",
        "good.csv: no request for device \"z\"",
        "of a",
    ),
    (
        "--trace good.csv --format foo",
        "no trace format is called \"foo\"",
        "",
    ),
    (
        "--trace good.csv --scale-time nan",
        "--scale-time NaN: expected",
        "",
    ),
];

/// Of everything else.
const OTHERS: &[Case] = &[
    ("nonsense", "unrecognized subcommand 'nonsense'", "--help"),
    (
        "simulate --drive nope --workload oltp",
        "no drive is called \"nope\"",
        "",
    ),
    (
        "simulate --drive ./nope.toml --workload oltp",
        "./nope.toml: No such file",
        "",
    ),
    (
        "simulate --drive nothing.toml --workload oltp",
        "nothing.toml:1: ",
        "missing",
    ),
    (
        "simulate --drive not-utf8.toml --workload oltp",
        "not-utf8.toml:2: ",
        "text",
    ),
    (
        "simulate --drive folder.csv/ --workload oltp",
        "folder.csv/: Is a directory",
        "",
    ),
    ("drives show nope", "no drive is called \"nope\"", ""),
    (
        "drives map seagate-cheetah-9lp --lbn 17783240",
        "--lbn 17783240: ",
        "expected below",
    ),
    ("demo --svg good.csv/demo.svg", "good.csv/demo.svg: ", ""),
    ("demo extra", "unexpected argument 'extra'", "--help"),
    (
        "bench simulate --requests 0",
        "invalid value '0' for '--requests",
        "",
    ),
];

/// Lines of a shipped profile, what becomes of them, and what the complaint contains.
const PROFILES: &[(&str, &str, &str)] = &[
    ("rpm = ", "rpm = -7200", "rpm"),
    ("rpm = ", "rpm = 0", "rpm"),
    ("rpm = ", "rpm = nan", "rpm"),
    ("rpm = ", "rpn = 10045", "rpn"),
    ("surfaces = ", "surfaces = 0", "surfaces"),
];

struct Scene {
    directory: TempDir,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let scene = Scene { directory };
        let packed = zstd::encode_all(GOOD.as_bytes(), 0).expect("in memory");
        for (name, bytes) in FILES {
            scene.write(name, bytes);
        }
        scene.write("cut.csv.zst", &packed[..packed.len() / 2]);
        scene.write("magic.csv.zst", &packed[..4]);
        scene.write("junk.csv.zst", &[&packed[..], b"junkjunk"].concat());
        std::fs::create_dir(scene.directory.path().join("folder.csv")).expect("a folder");
        scene
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.directory.path().join(name), bytes).expect("written");
    }

    fn run(&self, arguments: &str) -> Output {
        Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
            .current_dir(self.directory.path())
            .args(arguments.split_whitespace())
            .output()
            .expect("it ran")
    }

    fn refuses(&self, arguments: &str, begin: &str, part: &str) {
        let output = self.run(arguments);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(output.stdout.is_empty(), "{arguments}: {:?}", output.stdout);
        assert_eq!(said.lines().count(), 1, "{arguments}: {said}");
        let begin = format!("error: {begin}");
        assert!(said.starts_with(&begin), "{arguments}: {said}");
        assert!(said.contains(part), "{arguments}: {part} is not in: {said}");
    }

    fn refuses_all(&self, command: &str, cases: &[Case]) {
        for (arguments, begin, part) in cases {
            self.refuses(&format!("{command} {arguments}"), begin, part);
        }
        assert_eq!(self.files(), Scene::new().files(), "nothing is left behind");
    }

    /// The files, and what is in them.
    fn files(&self) -> Vec<(String, Option<Vec<u8>>)> {
        let entries = self.directory.path().read_dir().expect("a directory");
        let mut files: Vec<_> = entries
            .map(|entry| entry.expect("an entry"))
            .map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                (name, std::fs::read(entry.path()).ok())
            })
            .collect();
        files.sort();
        files
    }
}

#[test]
fn traces() {
    Scene::new().refuses_all("trace stat", TRACES);
}

#[test]
fn conversions() {
    Scene::new().refuses_all("trace convert", CONVERSIONS);
}

#[test]
fn runs() {
    Scene::new().refuses_all(ON, RUNS);
}

#[test]
fn others() {
    Scene::new().refuses_all("", OTHERS);
}

#[test]
fn profiles() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drives/seagate-cheetah-18lp.toml");
    let good = std::fs::read_to_string(path).expect("it is shipped");
    let scene = Scene::new();
    for (key, line, part) in PROFILES {
        let place = good.lines().position(|line| line.starts_with(key));
        let place = place.unwrap_or_else(|| panic!("{key} is in the profile"));
        let lines = good.lines().enumerate();
        let bad: Vec<&str> = lines
            .map(|(number, old)| if number == place { *line } else { old })
            .collect();
        scene.write("bad.toml", bad.join("\n").as_bytes());
        scene.refuses(
            "simulate --drive bad.toml --workload oltp",
            "bad.toml:",
            part,
        );
        scene.refuses("drives show ./bad.toml", "./bad.toml:", part);
    }
}

#[test]
fn a_last_line_without_a_newline_is_remarked_upon() {
    let scene = Scene::new();
    scene.write("unended.csv", GOOD.trim_end().as_bytes());
    for command in ["trace stat", "simulate --drive seagate-cheetah-9lp --trace"] {
        let output = scene.run(&format!("{command} unended.csv"));
        let said = String::from_utf8(output.stdout).expect("text");
        assert!(
            output.status.success() && said.contains("no newline"),
            "{said}"
        );
        let output = scene.run(&format!("{command} good.csv"));
        let said = String::from_utf8(output.stdout).expect("text");
        assert!(
            output.status.success() && !said.contains("no newline"),
            "{said}"
        );
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_written_to_or_refused_and_never_replaced() {
    let scene = Scene::new();
    let link = scene.directory.path().join("link.csv");
    std::os::unix::fs::symlink("two.csv", &link).expect("a link");
    assert!(
        scene
            .run("trace convert --force good.csv link.csv")
            .status
            .success()
    );
    assert!(link.is_symlink());
    let two = scene.directory.path().join("two.csv");
    assert_eq!(std::fs::read(two).expect("there").len(), 66);
    let begin = "/dev/null: neither a file";
    scene.refuses(
        "trace convert --force --to canonical good.csv /dev/null",
        begin,
        "",
    );
    let written = scene.run(&format!("{ON} --trace good.csv --requests-out /dev/stdout"));
    let text = String::from_utf8(written.stdout).expect("text");
    assert!(text.starts_with("request,direction,"), "{text}");
    let full = scene.run(&format!("{ON} --trace good.csv --requests-out /dev/full"));
    let said = String::from_utf8(full.stderr).expect("text");
    assert_eq!(full.status.code(), Some(1), "{said}");
    assert!(said.starts_with("error: /dev/full: "), "{said}");
}

#[test]
fn every_help_has_an_example() {
    let scene = Scene::new();
    for command in [
        "simulate",
        "demo",
        "bench",
        "bench simulate",
        "trace",
        "trace stat",
        "trace convert",
        "fit",
        "validate",
    ] {
        let output = scene.run(&format!("{command} --help"));
        let said = String::from_utf8(output.stdout).expect("text");
        assert!(
            output.status.success() && said.contains("\n  headtime "),
            "{command}: {said}"
        );
    }
}
