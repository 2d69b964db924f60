//! Maps of images that the file systems' own programs made, beside what their programs say of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::checksums::CHUNK;

/// An image whose bytes may be damaged, in memory: pages that are not empty.
struct Image {
    length: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

const PAGE: u64 = 4096;

impl Image {
    /// The first bytes of a source.
    fn of(source: &mut OnDisk, length: u64) -> Image {
        let each = (0..length / PAGE).map(|page| {
            let bytes = source.read(page * PAGE, PAGE as usize).expect("a page");
            (page, bytes)
        });
        let is_full = |(_, bytes): &(u64, Vec<u8>)| bytes.iter().any(|&byte| byte != 0);
        Image {
            length,
            pages: each.filter(is_full).collect(),
        }
    }
}

impl Source for Image {
    fn read(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, String> {
        let end = offset + length as u64;
        if end > self.length {
            return Err("past the end".to_owned());
        }
        let mut bytes = vec![0; length];
        for (page, full) in self.pages.range(offset / PAGE..end.div_ceil(PAGE)) {
            let (from, to) = (offset.max(page * PAGE), end.min((page + 1) * PAGE));
            let part = &full[(from - page * PAGE) as usize..(to - page * PAGE) as usize];
            bytes[(from - offset) as usize..(to - offset) as usize].copy_from_slice(part);
        }
        Ok(bytes)
    }
}

/// An image on a disk.
struct OnDisk(std::fs::File);

impl Source for OnDisk {
    fn read(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; length];
        let read = self.0.read_exact_at(&mut bytes, offset);
        read.map(|()| bytes).map_err(|error| error.to_string())
    }
}

/// A program's output; `None` if it is not installed, which fails where everything must be.
fn run(program: &str, arguments: &[&str], folder: &Path) -> Option<String> {
    let mut command = Command::new(program);
    let sbin = format!(
        "{}:/usr/sbin:/sbin",
        std::env::var("PATH").unwrap_or_default()
    );
    command
        .args(arguments)
        .current_dir(folder)
        .env("PATH", sbin);
    match command.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program} {arguments:?}: {said}");
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{program}: {error}");
            println!("skipped: {program} is not installed");
            None
        }
    }
}

/// A folder with an empty image, and a folder of files of several sizes.
fn scene(length: u64) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("image");
    let file = std::fs::File::create(&image).expect("an image");
    file.set_len(length).expect("its length");
    let files = folder.path().join("files");
    std::fs::create_dir(&files).expect("a folder");
    for number in 0..40_usize {
        let bytes = vec![number as u8; 1 << (number % 20)];
        std::fs::write(files.join(number.to_string()), bytes).expect("a file");
    }
    (folder, image)
}

fn mapped(image: &Path, length: u64) -> Result<UsedBlocks, NotMapped> {
    used(
        &mut OnDisk(std::fs::File::open(image).expect("the image")),
        length,
    )
}

/// The chunks with a byte outside of these free ranges.
fn chunks_not_free(length: u64, free: &[Range<u64>]) -> BTreeSet<u64> {
    let mut free = free.to_vec();
    free.sort_by_key(|range| range.start);
    let (mut used, mut at) = (BTreeSet::new(), 0);
    let end = std::iter::once(length..length);
    for range in free.into_iter().chain(end) {
        if range.start > at {
            used.extend(at / CHUNK..range.start.div_ceil(CHUNK));
        }
        at = at.max(range.end);
    }
    used
}

/// All that the program calls used is in the map, and not much more.
fn compare(found: &UsedBlocks, expected: &BTreeSet<u64>, most_more: usize) {
    let length = found.map.length();
    let ours: BTreeSet<u64> = (0..length.div_ceil(CHUNK))
        .filter(|&chunk| found.map.has(chunk))
        .collect();
    let missing: Vec<_> = expected.difference(&ours).collect();
    let (count, first) = (missing.len(), missing.first());
    assert!(
        missing.is_empty(),
        "{count} are used, but not in the map, from {first:?} on"
    );
    let more: Vec<_> = ours.difference(expected).collect();
    assert_eq!(found.distrusted_groups, 0);
    let (count, first) = (more.len(), more.first());
    assert!(
        count <= most_more,
        "{count} more than used, from {first:?} on"
    );
    assert!(
        ours.len() < (length / CHUNK) as usize / 2,
        "most is free: this tests nothing"
    );
}

const LENGTH: u64 = 320 << 20;

/// What dumpe2fs calls free, in bytes.
fn free_of_ext4(text: &str) -> (Vec<Range<u64>>, usize) {
    let number = |text: &str| text.trim().parse::<u64>().expect("a number");
    let value = |name: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with(name))
            .expect("a line");
        number(line.split_once(':').expect("a value").1)
    };
    let (block, first) = (value("Block size"), value("First block"));
    // Of clusters their first blocks are listed.
    let last = match text.contains("\nCluster size") {
        true => value("Cluster size"),
        false => block,
    };
    let mut free = Vec::new();
    let groups = text
        .lines()
        .filter(|line| line.starts_with("Group "))
        .count();
    for line in text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Free blocks: "))
    {
        for part in line.split(", ").filter(|part| !part.is_empty()) {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            free.push(number(from) * block..number(to) * block + last);
        }
    }
    assert!(first <= 1);
    (free, groups)
}

#[test]
fn ext4_uses_what_dumpe2fs_says() {
    let kinds: [&[&str]; 8] = [
        &["-t", "ext4"],
        &["-t", "ext4", "-b", "1024"],
        &["-t", "ext4", "-O", "^metadata_csum,^64bit,uninit_bg"],
        &["-t", "ext4", "-O", "^metadata_csum,^uninit_bg"],
        &["-t", "ext4", "-O", "bigalloc", "-C", "65536"],
        &["-t", "ext4", "-b", "1024", "-O", "meta_bg,^resize_inode"],
        &["-t", "ext4", "-O", "sparse_super2,metadata_csum_seed"],
        &["-t", "ext2", "-b", "2048"],
    ];
    for kind in kinds {
        let (folder, image) = scene(LENGTH);
        let arguments = [kind, &["-q", "-F", "-d", "files", "image", "300M"]].concat();
        if run("mke2fs", &arguments, folder.path()).is_none() {
            return;
        }
        let Some(text) = run("dumpe2fs", &["image"], folder.path()) else {
            return;
        };
        let (free, groups) = free_of_ext4(&text);
        let found = mapped(&image, LENGTH).unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        assert_eq!(found.kind, "ext4");
        // The volume is longer than the file system: the rest counts as used.
        println!("{kind:?}");
        compare(&found, &chunks_not_free(LENGTH, &free), groups);
    }
}

/// Changes a number of the superblock of an ext4 without checksums.
fn patched(image: &Path, at: u64, bytes: &[u8]) {
    let file = std::fs::File::options()
        .write(true)
        .open(image)
        .expect("the image");
    file.write_all_at(bytes, 1024 + at).expect("bytes");
}

#[test]
fn an_ext4_in_use_or_with_unknown_features_is_refused_and_damaged_groups_count_as_used() {
    let (folder, image) = scene(LENGTH);
    let plain = [
        "-t",
        "ext4",
        "-b",
        "4096",
        "-O",
        "^metadata_csum,^uninit_bg",
        "-q",
        "-F",
        "image",
    ];
    if run("mke2fs", &plain, folder.path()).is_none() {
        return;
    }
    let whole = mapped(&image, LENGTH).expect("an ext4");
    let incompat = {
        let bytes = OnDisk(std::fs::File::open(&image).expect("the image")).read(1024 + 0x60, 4);
        u32::from_le_bytes(bytes.expect("bytes").try_into().expect("four"))
    };
    patched(&image, 0x60, &(incompat | 0x4).to_le_bytes());
    assert_eq!(mapped(&image, LENGTH), Err(NotMapped::InUse("ext4")));
    patched(&image, 0x60, &(incompat | 0x4000_0000).to_le_bytes());
    let refused = mapped(&image, LENGTH)
        .expect_err("an unknown feature")
        .to_string();
    assert!(
        refused.contains("0x40000000") && refused.contains("expected"),
        "{refused}"
    );
    patched(&image, 0x60, &incompat.to_le_bytes());
    patched(&image, 0x3A, &[0, 0]);
    assert_eq!(
        mapped(&image, LENGTH),
        Err(NotMapped::InUse("ext4")),
        "mounted without a journal"
    );
    patched(&image, 0x3A, &[1, 0]);
    let refused = mapped(&image, LENGTH / 2)
        .expect_err("a short volume")
        .to_string();
    assert!(
        refused.contains("expected a file system that fits"),
        "{refused}"
    );
    // The free blocks of the first group contradict its bitmap: descriptors begin in the second block.
    patched(&image, 4096 - 1024 + 0xC, &[7, 7]);
    let distrusted = mapped(&image, LENGTH).expect("an ext4");
    assert_eq!(distrusted.distrusted_groups, 1);
    assert!(
        (0..2048).all(|chunk| distrusted.map.has(chunk)),
        "all of the first group"
    );
    assert!(distrusted.map.bytes() > whole.map.bytes());
}

#[test]
fn xfs_uses_what_xfs_db_says() {
    for version in ["crc=1", "crc=0"] {
        let (folder, image) = scene(LENGTH);
        let proto = "/\n0 0\nd--755 0 0\na ---644 0 0 files/38\nb ---644 0 0 files/39\n$\n";
        std::fs::write(folder.path().join("proto"), proto).expect("a prototype");
        let arguments = ["-q", "-f", "-m", version, "-p", "proto", "image"];
        if run("mkfs.xfs", &arguments, folder.path()).is_none() {
            return;
        }
        let geometry = [
            "-r",
            "-c",
            "sb 0",
            "-c",
            "p blocksize agblocks",
            "-c",
            "freesp -d",
            "image",
        ];
        let Some(text) = run("xfs_db", &geometry, folder.path()) else {
            return;
        };
        let value = |name: &str| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .expect("a value");
            line.trim_start_matches([' ', '='])
                .parse::<u64>()
                .expect("a number")
        };
        let (block, group) = (value("blocksize"), value("agblocks"));
        let numbers = |line: &str| {
            line.split_whitespace()
                .map(str::parse)
                .collect::<Result<Vec<u64>, _>>()
        };
        let mut free = Vec::new();
        for line in text.lines().take_while(|line| !line.contains("from")) {
            if let Ok([number, first, count]) = numbers(line).as_deref() {
                let start = (number * group + first) * block;
                free.push(start..start + count * block);
            }
        }
        assert!(free.len() >= 5, "{text}");
        let found = mapped(&image, LENGTH).unwrap_or_else(|error| panic!("{version}: {error}"));
        assert_eq!(found.kind, "XFS");
        // The program counts blocks that are kept for the trees as free.
        compare(&found, &chunks_not_free(LENGTH, &free), 5);
        let file = std::fs::File::options()
            .write(true)
            .open(&image)
            .expect("the image");
        // A group whose free blocks are not the sum of the tree's.
        file.write_all_at(&[0, 0, 0, 1], 512 + 52).expect("bytes");
        let distrusted = mapped(&image, LENGTH).expect("an XFS");
        assert_eq!(distrusted.distrusted_groups, 1);
        assert!((0..group * block / CHUNK).all(|chunk| distrusted.map.has(chunk)));
        // An operation of the log that is not the end of a mount.
        let log = log_of(&image);
        file.write_all_at(&[0], log + 512 + 9).expect("bytes");
        assert_eq!(mapped(&image, LENGTH), Err(NotMapped::InUse("XFS")));
    }
}

/// The first byte of the log of an XFS, whose groups have as many blocks as their numbers permit or fewer.
fn log_of(image: &Path) -> u64 {
    let bytes = OnDisk(std::fs::File::open(image).expect("the image")).read(0, 512);
    let bytes = bytes.expect("a superblock");
    let sb = bytes::Bytes(&bytes);
    let (start, log) = (sb.be64(48), sb.u8(124));
    ((start >> log) * u64::from(sb.be32(84)) + (start & ((1 << log) - 1))) * u64::from(sb.be32(4))
}

#[test]
fn btrfs_uses_the_device_extents_that_btrfs_progs_say() {
    for options in [&["-m", "dup"][..], &["-m", "single", "-n", "4096"]] {
        let (folder, image) = scene(LENGTH);
        let arguments = [&["-q", "-f", "--rootdir", "files"], options, &["image"]].concat();
        if run("mkfs.btrfs", &arguments, folder.path()).is_none() {
            return;
        }
        let tree = ["inspect-internal", "dump-tree", "-t", "dev", "image"];
        let Some(text) = run("btrfs", &tree, folder.path()) else {
            return;
        };
        let mut expected = BTreeSet::from([0, 1, (64 << 20) / CHUNK]);
        expected.extend(0..(1 << 20) / CHUNK);
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some((_, place)) = line.split_once("DEV_EXTENT ") else {
                continue;
            };
            let start: u64 = place
                .split(')')
                .next()
                .and_then(|at| at.parse().ok())
                .expect("a place");
            let length = lines.by_ref().find_map(|line| line.split_once("length "));
            let length =
                length.and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<u64>().ok());
            let end = start + length.expect("a length");
            expected.extend(start / CHUNK..end.div_ceil(CHUNK));
        }
        let found = mapped(&image, LENGTH).unwrap_or_else(|error| panic!("{options:?}: {error}"));
        assert_eq!(found.kind, "btrfs");
        let ours: BTreeSet<u64> = (0..LENGTH / CHUNK)
            .filter(|&chunk| found.map.has(chunk))
            .collect();
        assert_eq!(ours, expected, "{text}");
    }
}

#[test]
fn a_volume_without_a_file_system_is_refused() {
    for length in [0, 4096, 1 << 20] {
        let pages = BTreeMap::new();
        assert_eq!(
            used(&mut Image { length, pages }, length),
            Err(NotMapped::Unknown)
        );
    }
}

/// An image of each kind, and how often it is damaged: the log of an XFS has 64 MiB.
fn images() -> Vec<(Image, u32)> {
    let ext4 = [
        "-t",
        "ext4",
        "-q",
        "-F",
        "-b",
        "1024",
        "-O",
        "^metadata_csum,^uninit_bg",
        "image",
        "4M",
    ];
    let kinds: [(&str, &[&str], u32); 3] = [
        ("mke2fs", &ext4, 1000),
        ("mkfs.xfs", &["-q", "-f", "image"], 20),
        ("mkfs.btrfs", &["-q", "-f", "image"], 200),
    ];
    let mut all = Vec::new();
    for (program, arguments, cases) in kinds {
        let (folder, image) = scene(LENGTH);
        if run(program, arguments, folder.path()).is_some() {
            let mut source = OnDisk(std::fs::File::open(&image).expect("the image"));
            all.push((Image::of(&mut source, LENGTH), cases));
        }
    }
    all
}

/// Any damage of the metadata: a map of the volume, or one error with a message.
#[test]
fn damaged_metadata_never_panic() {
    let index = any::<prop::sample::Index>;
    let strategy = prop::collection::vec((index(), 0..PAGE as usize, any::<u8>()), 1..40);
    for (image, cases) in images() {
        let numbers: Vec<u64> = image.pages.keys().copied().take(24).collect();
        let image = std::cell::RefCell::new(image);
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(cases));
        let run = runner.run(&strategy, |damage| {
            let mut image = image.borrow_mut();
            let before = image.pages.clone();
            for (page, at, byte) in damage {
                // The first bytes of a page have more of the structure than its end.
                let at = if at % 2 == 0 { at % 256 } else { at };
                let page = image.pages.get_mut(page.get(&numbers)).expect("a page");
                page[at] = byte;
            }
            match used(&mut *image, LENGTH) {
                Ok(found) => prop_assert_eq!(found.map.length(), LENGTH),
                Err(error) => {
                    let text = error.to_string();
                    prop_assert!(
                        text.contains("expected") || text.contains("past the end"),
                        "{}",
                        text
                    );
                }
            }
            image.pages = before;
            Ok(())
        });
        run.expect("no panic");
    }
}
