//! What is refused, and with which words.

use super::*;

#[test]
fn what_makes_no_sense_is_refused_with_file_line_key_and_expectation() {
    for (old, new, complaint) in REFUSED {
        let text = ALL[0].text.replace(old, new);
        assert_ne!(text, ALL[0].text, "{old} is not in the file");
        let error = Workload::parse("load.toml", &text).expect_err(new);
        assert_eq!(error.to_string(), *complaint);
    }
}

#[test]
fn what_does_not_fit_the_drive_is_refused() {
    for (old, new, block_bytes, capacity, complaint) in UNFIT {
        let text = ALL[0].text.replace(old, new);
        let load = Workload::parse("load.toml", &text).expect("sensible in itself");
        let error = Generator::new(&load, *block_bytes, *capacity).expect_err(new);
        assert_eq!(error.to_string(), *complaint);
    }
}

#[test]
fn what_makes_no_sense_of_files_and_even_sizes_is_refused() {
    for (name, old, new, complaint) in REFUSED_OF {
        let text = BuiltInWorkload::find(name).expect("a built-in load").text;
        let changed = text.replacen(old, new, 1);
        assert_ne!(changed, text, "{old} is not in the file");
        let refused = Workload::parse("load.toml", &changed)
            .and_then(|load| Generator::new(&load, 512, BLOCKS))
            .expect_err(new);
        assert_eq!(refused.to_string(), *complaint);
    }
}

#[test]
fn complaints_about_flags_name_the_flag() {
    let flags = |flags: Overrides| oltp().with(&flags).expect_err("senseless").to_string();
    assert_eq!(
        flags(Overrides {
            read_fraction: Some(1.5),
            ..Overrides::default()
        }),
        "command line: --read-fraction: 1.5: expected a number from 0 to 1"
    );
    assert_eq!(
        flags(Overrides {
            tasks: Some(0),
            ..Overrides::default()
        }),
        "command line: --tasks: 0: expected a number from 1 to 65536"
    );
    assert_eq!(
        flags(Overrides {
            tasks: Some(3),
            rate: Some(3.0),
            ..Overrides::default()
        }),
        "command line: --rate: a load is open (--rate) or closed (--tasks, --think-ms), not both"
    );
    let flags = Overrides {
        size_kib: Some(7.5),
        ..Overrides::default()
    };
    let load = oltp().with(&flags).expect("sensible in itself");
    let error = Generator::new(&load, 4096, 1000).expect_err("not whole blocks");
    assert_eq!(
        error.to_string(),
        "command line: --size-kib: 7680 bytes: expected whole blocks: \
         the drive has 1000 blocks of 4096 bytes"
    );
}

const REFUSED: &[(&str, &str, &str)] = &[
    (
        "tasks = 10",
        "tasks = 0",
        "load.toml:10: arrivals.tasks: 0: expected a whole number from 1 to 65536",
    ),
    (
        "tasks = 10",
        "tusks = 10",
        "load.toml:10: arrivals.tusks: unknown key: did you mean `tasks`?",
    ),
    (
        "tasks = 10",
        "",
        "load.toml:8: arrivals.tasks: missing key: expected a whole number from 1 to 65536",
    ),
    (
        "think_ms = 30",
        "think_ms = -1",
        "load.toml:11: arrivals.think_ms: -1: expected a number from 0 to 86400000",
    ),
    (
        "think_ms = 30",
        "think_ms = nan",
        "load.toml:11: arrivals.think_ms: nan: expected milliseconds such as 10, or a time such as \"10 ms\"",
    ),
    (
        "think_ms = 30",
        "think_ms = \"long\"",
        "load.toml:11: arrivals.think_ms: \"long\": expected milliseconds such as 10, or a time such as \"10 ms\"",
    ),
    (
        "think_ms = 30",
        "think = \"deep\"",
        "load.toml:11: arrivals.think: \"deep\": expected \"constant\" or \"exponential\"",
    ),
    (
        "think_ms = 30",
        "think_ms = 30\nthinks = 1",
        "load.toml:12: arrivals.thinks: unknown key: did you mean `think`?",
    ),
    (
        "read_fraction = 0.6667",
        "read_fraction = 66.67",
        "load.toml:6: read_fraction: 66.67: expected a number from 0 to 1",
    ),
    (
        "mean_kib = 8",
        "mean_kib = 2",
        "load.toml:15: size.mean_kib: 2 KiB: expected at least multiple_kib, 4 KiB",
    ),
    (
        "mean_kib = 8",
        "mean_kib = 0.0001",
        "load.toml:15: size.mean_kib: 0.0001 KiB: expected a whole number of bytes, at least 1, at most 1073741824 KiB",
    ),
    (
        "kind = \"uniform\"",
        "kind = \"everywhere\"",
        "load.toml:19: placement.kind: \"everywhere\": expected \"uniform\", \"zipf\", \"sequential\", \"streams\", \"local\" or \"small-files\"",
    ),
    (
        "[placement]",
        "[place]",
        "load.toml:18: place: unknown key: expected one of name, summary, seed, class, read_fraction, arrivals, size, placement",
    ),
    (
        "[placement]",
        "[placement",
        "load.toml:18: not TOML: unclosed table, expected `]`",
    ),
    (
        "[arrivals]\nmodel = \"closed\"\ntasks = 10\nthink_ms = 30\n",
        "arrivals = 3\n",
        "load.toml:8: arrivals: 3: expected a table",
    ),
    (
        "[arrivals]",
        "arrivals = 3\n[other]",
        "load.toml:9: other: unknown key: expected one of name, summary, seed, class, read_fraction, arrivals, size, placement",
    ),
    (
        "kind = \"exponential\"\nmean_kib = 8\nmultiple_kib = 4",
        "kind = \"choice\"\nchoices = [4, 8]",
        "load.toml:15: size.choices[0]: 4: expected a list such as [{ kib = 4, weight = 3 }, { kib = 64, weight = 1 }]",
    ),
    (
        "kind = \"exponential\"\nmean_kib = 8\nmultiple_kib = 4",
        "kind = \"choice\"\nchoices = []",
        "load.toml:15: size.choices: empty: expected a list such as [{ kib = 4, weight = 3 }, { kib = 64, weight = 1 }]",
    ),
    (
        "kind = \"exponential\"\nmean_kib = 8\nmultiple_kib = 4",
        "kind = \"choice\"\nchoices = [{ kib = 4, weight = 0 }]",
        "load.toml:15: size.choices[0].weight: 0: expected a whole number from 1 to 65536",
    ),
];

/// Of which built-in load, what is changed into what, and the complaint.
const REFUSED_OF: &[(&str, &str, &str, &str)] = &[
    (
        "modern",
        "to_kib = 64",
        "to_kib = 66",
        "load.toml:16: size.to_kib: 66 KiB: expected a multiple of 4 KiB, at least 4",
    ),
    (
        "modern",
        "from_kib = 4",
        "from_kib = 5",
        "load.toml:15: size.from_kib: 5 KiB: expected a multiple of 4 KiB, at least 4",
    ),
    (
        "modern",
        "from_kib = 4",
        "from_kib = 128",
        "load.toml:16: size.to_kib: 64 KiB: expected a multiple of 4 KiB, at least 128",
    ),
    (
        "small-files",
        "kind = \"fixed\"\nkib = 3",
        "kind = \"exponential\"\nmean_kib = 3\nmultiple_kib = 1",
        "load.toml:17: size.kind: expected \"fixed\", the size of every file, with placement small-files",
    ),
    (
        "small-files",
        "directories = 2000",
        "align_kib = 4\ndirectories = 2000",
        "load.toml:22: placement.align_kib: expected none with small-files, which keep to fs_block_kib",
    ),
    (
        "small-files",
        "fs_block_kib = 4",
        "fs_block_kib = 0.75",
        "load.toml:24: placement.fs_block_kib: 768 bytes: expected whole blocks: \
         the drive has 17783240 blocks of 512 bytes",
    ),
    (
        "small-files",
        "group_kib = 131072",
        "group_kib = 131074",
        "load.toml:25: placement.group_kib: groups of 134219776 bytes: expected a multiple of \
         4096 bytes, at most the drive: the drive has 17783240 blocks of 512 bytes",
    ),
    (
        "small-files",
        "group_kib = 131072",
        "group_kib = 13107200",
        "load.toml:25: placement.group_kib: groups of 13421772800 bytes: expected a multiple of \
         4096 bytes, at most the drive: the drive has 17783240 blocks of 512 bytes",
    ),
    (
        "small-files",
        "inode_bytes = 128",
        "inode_bytes = 8192",
        "load.toml:26: placement.inode_bytes: 8192: expected at most a block, 4096 bytes: \
         the drive has 17783240 blocks of 512 bytes",
    ),
    (
        "small-files",
        "inode_every_kib = 8",
        "inode_every_kib = 128",
        "load.toml:27: placement.inode_every_kib: 1024 inodes in a group, 1530 needed: expected \
         more: the drive has 17783240 blocks of 512 bytes",
    ),
    (
        "small-files",
        "kib = 3",
        "kib = 100",
        "load.toml:22: placement.directories: 30 directories in a group need 38046 blocks of its \
         32768: expected room: the drive has 17783240 blocks of 512 bytes",
    ),
    (
        "small-files",
        "cached_blocks = 1024",
        "cashed_blocks = 1024",
        "load.toml:28: placement.cashed_blocks: unknown key: did you mean `cached_blocks`?",
    ),
];

const UNFIT: &[(&str, &str, u32, u64, &str)] = &[
    (
        "mean_kib = 8",
        "mean_kib = 8",
        512,
        1000,
        "load.toml:15: size.mean_kib: requests of up to 1024 blocks do not fit: the drive has 1000 blocks of 512 bytes",
    ),
    (
        "multiple_kib = 4",
        "multiple_kib = 2",
        4096,
        1 << 20,
        "load.toml:15: size.mean_kib: 2048 bytes: expected whole blocks: the drive has 1048576 blocks of 4096 bytes",
    ),
    (
        "kind = \"uniform\"",
        "kind = \"uniform\"\nalign_kib = 0.75",
        512,
        1 << 20,
        "load.toml:20: placement.align_kib: 768 bytes: expected whole blocks: the drive has 1048576 blocks of 512 bytes",
    ),
    (
        "kind = \"uniform\"",
        "kind = \"streams\"\nstreams = 2000",
        512,
        1 << 20,
        "load.toml:20: placement.streams: 2000 shares, some too small for a request of 1024 blocks: the drive has 1048576 blocks of 512 bytes",
    ),
    (
        "kind = \"uniform\"",
        "kind = \"zipf\"\ntheta = 1\nregions = 60000\nalign_kib = 512",
        512,
        1 << 20,
        "load.toml:21: placement.regions: 60000 regions, some without a place in them: the drive has 1048576 blocks of 512 bytes",
    ),
    (
        "kind = \"uniform\"",
        "kind = \"local\"\nshare = 0.5\ngroup_kib = 1.25",
        512,
        1 << 20,
        "load.toml:21: placement.group_kib: groups of 1280 bytes: expected a multiple of 512 bytes, at most the drive: the drive has 1048576 blocks of 512 bytes",
    ),
    (
        "kind = \"uniform\"",
        "kind = \"sequential\"\nmean_run = 4\nalign_kib = 8",
        512,
        1 << 20,
        "load.toml:21: placement.align_kib: requests of 4096 bytes do not keep to 8192 bytes: the drive has 1048576 blocks of 512 bytes",
    ),
];
