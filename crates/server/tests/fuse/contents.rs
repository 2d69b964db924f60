//! The bytes are those of a plain file to which the same is done.

use std::fs::File;
use std::io::IoSlice;
use std::os::unix::fs::FileExt;
use std::thread;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::{ReadWriteFlags, pwritev2};

use crate::scene::{Medium, NAME, Scene};

/// A multiple of both media's blocks.
const BYTES: u64 = 64 * 4096;

#[derive(Clone, Debug)]
enum Operation {
    Read,
    Write(u8),
    WriteDurably(u8),
    Punch,
    Zero,
    Sync,
    SyncContents,
}

#[derive(Clone, Debug)]
struct Step {
    operation: Operation,
    offset: u64,
    length: usize,
}

fn step() -> impl Strategy<Value = Step> {
    let operation = prop_oneof![
        4 => Just(Operation::Read),
        6 => any::<u8>().prop_map(Operation::Write),
        1 => any::<u8>().prop_map(Operation::WriteDurably),
        2 => Just(Operation::Punch),
        2 => Just(Operation::Zero),
        1 => Just(Operation::Sync),
        1 => Just(Operation::SyncContents),
    ];
    // To the byte, the sector, the page; short and long.
    let grain = prop_oneof![Just(1u64), Just(512), Just(4096)];
    let length = prop_oneof![1..600usize, 1..20_000usize, 1..100_000usize];
    (operation, 0..BYTES, length, grain).prop_map(|(operation, offset, length, grain)| {
        let offset = offset / grain * grain;
        let length = length.next_multiple_of(grain as usize);
        Step {
            operation,
            offset,
            length: length.min((BYTES - offset) as usize),
        }
    })
}

impl Step {
    /// Does it; of a read the bytes.
    fn apply(&self, file: &File) -> Vec<u8> {
        let (offset, length) = (self.offset, self.length);
        let keep = FallocateFlags::KEEP_SIZE;
        match self.operation {
            Operation::Read => {
                // The end may be in it.
                let mut bytes = vec![0xAA; length + 100];
                let count = file.read_at(&mut bytes, offset).expect("read");
                bytes.truncate(count);
                return bytes;
            }
            Operation::Write(seed) => file
                .write_all_at(&pattern(seed, length), offset)
                .expect("written"),
            Operation::WriteDurably(seed) => {
                let bytes = pattern(seed, length);
                let slices = [IoSlice::new(&bytes)];
                let count = pwritev2(file, &slices, offset, ReadWriteFlags::DSYNC);
                assert_eq!(count.expect("written"), length);
            }
            Operation::Punch => {
                let how = FallocateFlags::PUNCH_HOLE | keep;
                fallocate(file, how, offset, length as u64).expect("a hole");
            }
            Operation::Zero => {
                let how = FallocateFlags::ZERO_RANGE | keep;
                let zeroed = fallocate(file, how, offset, length as u64);
                if zeroed.is_err() {
                    // A plain file on a file system that cannot.
                    file.write_all_at(&vec![0; length], offset).expect("zeroes");
                }
            }
            Operation::Sync => file.sync_all().expect("flushed"),
            Operation::SyncContents => file.sync_data().expect("flushed"),
        }
        Vec::new()
    }
}

fn pattern(seed: u8, length: usize) -> Vec<u8> {
    let byte = |place: usize| (place as u8).wrapping_mul(31).wrapping_add(seed) | 1;
    (0..length).map(byte).collect()
}

fn whole(file: &File) -> Vec<u8> {
    let mut bytes = vec![0xAA; BYTES as usize];
    file.read_exact_at(&mut bytes, 0).expect("all of it");
    bytes
}

fn like_a_plain_file(medium: Medium) {
    let Some(scene) = Scene::new(medium, BYTES) else {
        return;
    };
    let volume = scene.open();
    let config = Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    };
    let steps = prop::collection::vec(step(), 1..40);
    let ran = TestRunner::new(config).run(&steps, |steps| {
        let plain = tempfile::tempfile().expect("a file");
        plain.set_len(BYTES).expect("its size");
        volume
            .write_all_at(&vec![0; BYTES as usize], 0)
            .expect("zeroes");
        for step in &steps {
            if step.apply(&volume) != step.apply(&plain) {
                return Err(TestCaseError::fail(format!("read differs: {step:?}")));
            }
        }
        prop_assert!(whole(&volume) == whole(&plain), "contents differ");
        holes_are_zeroes(&volume, &plain);
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{medium:?}: {error}"));
}

/// Whatever is between bytes and holes, as the volume tells, holes have no bytes.
fn holes_are_zeroes(volume: &File, plain: &File) {
    let contents = whole(plain);
    let mut at = 0;
    while at < BYTES {
        let start = seek(volume, SeekFrom::Data(at)).unwrap_or(BYTES);
        let hole = &contents[at as usize..start as usize];
        assert!(hole.iter().all(|&byte| byte == 0), "{at}..{start}");
        if start == BYTES {
            break;
        }
        at = seek(volume, SeekFrom::Hole(start)).expect("one is behind the end");
        assert!(start < at && at <= BYTES, "{start}..{at}");
    }
    assert!(seek(volume, SeekFrom::Data(BYTES)).is_err());
}

#[test]
fn bytes_are_those_of_a_plain_file_in_memory() {
    like_a_plain_file(Medium::Ram);
}

#[test]
fn bytes_are_those_of_a_plain_file_in_an_image() {
    like_a_plain_file(Medium::Image);
}

#[test]
fn a_hole_in_the_image_is_found() {
    let Some(scene) = Scene::new(Medium::Image, BYTES) else {
        return;
    };
    let volume = scene.open();
    assert!(
        seek(&volume, SeekFrom::Data(0)).is_err(),
        "nothing is written"
    );
    volume
        .write_all_at(b"here", 20 * 4096 + 5)
        .expect("written");
    assert_eq!(seek(&volume, SeekFrom::Data(0)), Ok(20 * 4096));
    assert_eq!(seek(&volume, SeekFrom::Hole(20 * 4096)), Ok(21 * 4096));
    assert_eq!(seek(&volume, SeekFrom::Hole(0)), Ok(0));
}

/// Many write parts of the same blocks at once, and others punch blocks beside them: nothing is
/// undone.
fn nothing_is_lost(medium: Medium) {
    const WRITERS: u64 = 6;
    const ROUNDS: u64 = 60;
    /// Bytes of one writer in a row: several in each block, and across its edges.
    const PART: u64 = 700;
    /// What the writers share.
    const SHARED: u64 = 8 * 4096;
    let Some(scene) = Scene::new(medium, BYTES) else {
        return;
    };
    let parts = SHARED / PART;
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let scene = &scene;
            scope.spawn(move || {
                let volume = scene.open();
                for round in 0..ROUNDS {
                    for part in (0..parts).filter(|part| part % WRITERS == writer) {
                        // The last of them punches, and writes again at the end.
                        let is_hole = writer == WRITERS - 1 && round + 1 < ROUNDS;
                        let seed = (part * 7 + round) as u8;
                        let operation = match is_hole {
                            true => Operation::Punch,
                            false => Operation::Write(seed),
                        };
                        let step = Step {
                            operation,
                            offset: part * PART,
                            length: PART as usize,
                        };
                        step.apply(&volume);
                    }
                }
            });
        }
    });
    let found = whole(&scene.open());
    for part in 0..parts {
        let seed = (part * 7 + ROUNDS - 1) as u8;
        let at = (part * PART) as usize;
        let bytes = &found[at..at + PART as usize];
        assert!(
            bytes == pattern(seed, PART as usize),
            "part {part} of {medium:?}"
        );
    }
}

#[test]
fn writers_of_parts_of_the_same_blocks_lose_nothing_in_memory() {
    nothing_is_lost(Medium::Ram);
}

#[test]
fn writers_of_parts_of_the_same_blocks_lose_nothing_in_an_image() {
    nothing_is_lost(Medium::Image);
}

/// Whole blocks are written beside parts of them, and space is given back beside parts of blocks:
/// bytes that only one of the two writes are its own.
#[test]
fn parts_of_blocks_do_not_undo_whole_blocks_nor_holes() {
    const ROUNDS: usize = 300;
    let Some(scene) = Scene::new(Medium::Image, BYTES) else {
        return;
    };
    let (part, whole_block) = (scene.open(), scene.open());
    for round in 0..ROUNDS {
        let old = vec![1; 4096];
        whole_block.write_all_at(&old, 4096).expect("written");
        let new = if round % 2 == 0 { 2 } else { 0 };
        thread::scope(|scope| {
            scope.spawn(|| part.write_all_at(&[3; 100], 4096 + 50).expect("written"));
            scope.spawn(|| match new {
                0 => Step {
                    operation: Operation::Punch,
                    offset: 4096,
                    length: 4096,
                }
                .apply(&whole_block),
                new => {
                    whole_block
                        .write_all_at(&vec![new; 4096], 4096)
                        .expect("written");
                    Vec::new()
                }
            });
        });
        let mut found = vec![0xAA; 4096];
        part.read_exact_at(&mut found, 4096).expect("read");
        assert!(found[..50].iter().all(|&byte| byte == new), "round {round}");
        assert!(
            found[150..].iter().all(|&byte| byte == new),
            "round {round}"
        );
        assert!([3, new].contains(&found[50]), "round {round}");
        assert!(
            found[50..150].iter().all(|&byte| byte == found[50]),
            "round {round}"
        );
    }
}

#[test]
fn a_file_becomes_longer_while_it_is_open() {
    let Some(scene) = Scene::new(Medium::Ram, 1 << 20) else {
        return;
    };
    let file = scene.open();
    assert_eq!(file.metadata().expect("attributes").len(), 1 << 20);
    let refused = file.write_all_at(&[1; 512], 1 << 20);
    assert!(refused.is_err(), "past its end");
    // The drive has 2 MiB, of which the volume has the second half but for the last 4 KiB.
    let mount = scene.mount.as_ref().expect("mounted");
    let (shorter, longer) = ((1 << 20) - 4096, 1 << 20);
    mount.resize(NAME, shorter);
    assert_eq!(file.metadata().expect("attributes").len(), shorter);
    let refused = file.write_all_at(&[1; 512], shorter);
    assert!(refused.is_err(), "past its new end");
    mount.resize(NAME, longer);
    assert_eq!(file.metadata().expect("attributes").len(), longer);
    file.write_all_at(&[1; 512], shorter).expect("inside again");
    mount.resize("another", 0);
    assert_eq!(file.metadata().expect("attributes").len(), longer);
}
