//! The tables of the hostile cases: what is given, and what is said.

/// A command line, and what its one line of complaint begins with and contains.
pub type Case = (&'static str, &'static str, &'static str);

pub const ON: &str = "simulate --drive seagate-cheetah-9lp";

pub const GOOD: &str = "0.0,a,R,0,4096\n0.5,a,W,8192,1024\n0.75,a,R,4096,4096\n";

/// The files that the cases name.
pub const FILES: &[(&str, &[u8])] = &[
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
pub const TRACES: &[Case] = &[
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
pub const CONVERSIONS: &[Case] = &[
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
pub const RUNS: &[Case] = &[
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
        "--workload oltp --policy sptf-sw5000",
        "--policy \"sptf-sw5000\"",
        "percent from 0 to 1000",
    ),
    (
        "--workload nothing.toml",
        "nothing.toml:1: name: missing",
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
pub const OTHERS: &[Case] = &[
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
    (
        "emulate --drive quantum-atlas-10k --image image --tcp 0.0.0.0:0",
        "--tcp 0.0.0.0:0: other machines",
        "--insecure",
    ),
    (
        "demo --seconds 1",
        "invalid value '1' for '--seconds <N>'",
        "",
    ),
    (
        "demo --time-scale 0",
        "invalid value '0' for '--time-scale",
        "",
    ),
    ("demo --simulated --json", "the argument '--simulated'", ""),
    ("demo extra", "unexpected argument 'extra'", "--help"),
    (
        "bench simulate --requests 0",
        "invalid value '0' for '--requests",
        "",
    ),
];

/// Lines of a shipped profile, what becomes of them, and what the complaint contains.
pub const PROFILES: &[(&str, &str, &str)] = &[
    ("rpm = ", "rpm = -7200", "rpm"),
    ("rpm = ", "rpm = 0", "rpm"),
    ("rpm = ", "rpm = nan", "rpm"),
    ("rpm = ", "rpn = 10045", "rpn"),
    ("surfaces = ", "surfaces = 0", "surfaces"),
    ("last_cylinder = ", "last_cylinder = 1000", "cylinder"),
    (
        "sectors_per_track = ",
        "sectors_per_track = 0",
        "sectors_per_track",
    ),
];
