//! A bitmap through kills, power cuts and failing files, against a plain set of changed chunks.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use proptest::prelude::*;

use super::super::bitmap::BitmapFile;
use super::super::thread::carry_out;
use super::*;
use crate::checksums::region::{Identity, Medium};

/// Bytes of the volume: two sectors of a plane, and a part of a chunk.
pub(in super::super) const LENGTH: u64 = 4100 * CHUNK + 512;

/// A file in memory that may lose each sector that was written since the last sync, and fails after some writes.
#[derive(Clone, Default)]
pub(in super::super) struct Disk {
    durable: Vec<u8>,
    /// Sectors that were not synced.
    volatile: BTreeMap<u64, [u8; 512]>,
    /// Writes and syncs until it fails.
    left: Option<u32>,
}

impl Disk {
    pub(in super::super) fn of(durable: Vec<u8>) -> Self {
        Disk {
            durable,
            ..Disk::default()
        }
    }

    /// The file after a power cut: `keeps` says which sectors came through.
    fn cut(mut self, mut keeps: impl FnMut() -> bool) -> Self {
        for (at, sector) in std::mem::take(&mut self.volatile) {
            if keeps() {
                self.apply(at, &sector);
            }
        }
        self.left = None;
        self
    }

    fn apply(&mut self, at: u64, sector: &[u8; 512]) {
        let at = at as usize * 512;
        self.durable[at..at + 512].copy_from_slice(sector);
    }

    fn sector(&self, at: u64) -> [u8; 512] {
        let of_medium = || {
            let from = at as usize * 512;
            self.durable[from..from + 512]
                .try_into()
                .expect("a whole sector")
        };
        self.volatile.get(&at).copied().unwrap_or_else(of_medium)
    }

    fn step(&mut self) -> io::Result<()> {
        match &mut self.left {
            Some(0) => Err(io::Error::other("the power is off")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Medium for Disk {
    fn length(&self) -> io::Result<u64> {
        Ok(self.durable.len() as u64)
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.step()?;
        self.volatile.retain(|at, _| (at + 1) * 512 <= bytes);
        self.durable.resize(bytes as usize, 0);
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        for (at, byte) in (offset..).zip(bytes) {
            *byte = self.sector(at / 512)[(at % 512) as usize];
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.step()?;
        for (at, byte) in (offset..).zip(bytes) {
            let mut sector = self.sector(at / 512);
            sector[(at % 512) as usize] = *byte;
            self.volatile.insert(at / 512, sector);
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.step()?;
        for (at, sector) in std::mem::take(&mut self.volatile) {
            self.apply(at, &sector);
        }
        Ok(())
    }
}

pub(in super::super) fn identity() -> Identity {
    Identity {
        drive: "disk".to_owned(),
        volume: "all".to_owned(),
        block_bytes: 512,
        offset: 4096,
        capacity: 1 << 40,
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Chunks from the first one on.
    Change(u64, u64),
    /// The file carries out an order.
    Work,
    Freeze,
    Release,
    Abandon,
    Resize(u64),
    /// A kill, or a power cut after so many more writes of the file; the bits are the sectors that come through.
    Crash(u32, u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4102_u64, 1..4_u64).prop_map(|(first, count)| Step::Change(first, count)),
        2 => (4060..4068_u64, 1..4_u64).prop_map(|(first, count)| Step::Change(first, count)),
        6 => Just(Step::Work),
        2 => Just(Step::Freeze),
        1 => Just(Step::Release),
        1 => Just(Step::Abandon),
        1 => (4000 * CHUNK..4200 * CHUNK).prop_map(|length| Step::Resize(length / 512 * 512)),
        1 => (0..12_u32, any::<u64>()).prop_map(|(left, keeps)| Step::Crash(left, keeps)),
    ]
}

/// A bitmap beside the sets of chunks that the next backup must have.
struct Scene {
    marks: Marks,
    file: BitmapFile<Disk>,
    length: u64,
    /// Chunks with a change since the last moment, and those before an open checkpoint's.
    changed: BTreeSet<u64>,
    frozen: Option<BTreeSet<u64>>,
    made: u64,
    is_exact: bool,
}

impl Scene {
    fn new() -> Self {
        let disk = Disk::default();
        let file = BitmapFile::create(disk, identity(), ("daily".to_owned(), LENGTH), 5);
        let file = file.expect("memory");
        let none = Bits::none(LENGTH.div_ceil(CHUNK));
        Scene {
            marks: Scene::marks(&file, LENGTH, (none, 0)),
            file,
            length: LENGTH,
            changed: BTreeSet::new(),
            frozen: None,
            made: 0,
            is_exact: true,
        }
    }

    fn marks(file: &BitmapFile<Disk>, length: u64, dirty: (Bits, u64)) -> Marks {
        let start = identity().offset;
        let names = (file.name().to_owned(), "all".to_owned());
        Marks::new(
            names,
            start..start + length,
            (file.number(), file.base()),
            dirty,
        )
    }

    fn work(&mut self) -> bool {
        let Some(order) = self.marks.poll_order() else {
            return false;
        };
        let answer = carry_out(&mut self.file, order).expect("memory");
        self.marks.answer(answer);
        true
    }

    fn work_all(&mut self) {
        while self.work() {}
    }

    fn play(&mut self, step: &Step) {
        match *step {
            Step::Change(first, count) => {
                let start = identity().offset + first * CHUNK;
                let bytes = start + 1..start + count * CHUNK;
                let end = identity().offset + self.length;
                let bytes = bytes.start.min(end)..bytes.end.min(end);
                if self.marks.admit(&bytes) == MarkAnswer::Marked {
                    self.marks.note(&bytes);
                    self.changed
                        .extend(chunks_of(&bytes, identity().offset, self.length));
                }
            }
            Step::Work => drop(self.work()),
            Step::Freeze if self.marks.may_freeze() == Ok(true) => {
                self.made += 1;
                self.marks.begin_freeze(self.made);
                self.work_all();
                self.frozen = Some(std::mem::take(&mut self.changed));
            }
            Step::Release if self.frozen.is_some() => {
                self.frozen = None;
                self.marks.release();
            }
            Step::Abandon if self.frozen.is_some() => {
                self.changed.extend(self.frozen.take().unwrap_or_default());
                self.marks.abandon();
            }
            Step::Resize(length) if self.frozen.is_none() => {
                self.work_all();
                self.marks.resize(length);
                self.work_all();
                let first = self.length.min(length) / CHUNK;
                self.changed.retain(|chunk| *chunk < length.div_ceil(CHUNK));
                self.changed.extend(first..length.div_ceil(CHUNK));
                self.length = length;
            }
            Step::Crash(left, keeps) => self.crash(left, keeps),
            _ => (),
        }
        let changed: BTreeSet<u64> = self.marks.changed.iter().collect();
        match self.is_exact {
            true => assert_eq!(changed, self.changed, "{step:?}"),
            false => assert!(changed.is_superset(&self.changed), "{step:?}"),
        }
        let frozen = self.marks.frozen().map(|bits| bits.iter().collect());
        let frozen: Option<BTreeSet<u64>> = frozen;
        assert_eq!(frozen.is_some(), self.frozen.is_some());
        assert!(frozen >= self.frozen || !self.is_exact, "{step:?}");
        if let (Some(frozen), Some(naive)) = (frozen, &self.frozen) {
            assert!(frozen.is_superset(naive), "{step:?}");
        }
    }

    /// The power fails after some more writes of the file; or only the service is killed.
    fn crash(&mut self, left: u32, mut keeps: u64) {
        let mut disk = self.file.medium().clone();
        disk.left = Some(left);
        self.file.set_medium(disk);
        while let Some(order) = self.marks.poll_order() {
            match carry_out(&mut self.file, order) {
                Ok(answer) => self.marks.answer(answer),
                Err(_) => break,
            }
        }
        let disk = self.file.medium().clone().cut(|| {
            keeps = keeps.rotate_left(1);
            keeps & 1 == 1
        });
        self.changed.extend(self.frozen.take().unwrap_or_default());
        let opened = BitmapFile::open(disk, &identity(), self.length);
        let (file, opened) = opened.expect("a crash damages nothing");
        assert_eq!(opened.assumed, 0, "no sector is torn");
        self.marks = Scene::marks(&file, self.length, (opened.dirty, 0));
        self.file = file;
        self.is_exact = false;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_changed_chunk_is_missing_after_any_crash(steps in prop::collection::vec(step(), 1..60)) {
        let mut scene = Scene::new();
        steps.iter().for_each(|step| scene.play(step));
        scene.crash(0, 0);
        let dirty: BTreeSet<u64> = scene.marks.changed.iter().collect();
        prop_assert!(dirty.is_superset(&scene.changed));
    }
}

#[test]
fn sequential_changes_are_marked_ahead_and_count_only_after_a_crash() {
    let mut scene = Scene::new();
    let mut waits = 0;
    for chunk in 0..1024 {
        let start = identity().offset + chunk * CHUNK;
        let bytes = start..start + CHUNK;
        while scene.marks.admit(&bytes) == MarkAnswer::Waits {
            waits += 1;
            scene.work_all();
        }
        scene.marks.note(&bytes);
        scene.changed.insert(chunk);
    }
    // Doubled up to 256 chunks: 1, 2, 4, ... 128, and four times 256.
    assert!(waits <= 13, "{waits} syncs");
    let status = scene.marks.status();
    assert_eq!(status.dirty_bytes, 1024 * CHUNK);
    assert!(status.ahead_bytes <= AHEAD * CHUNK);
    scene.crash(0, 0);
    let after = scene.marks.status();
    assert_eq!(after.dirty_bytes, status.dirty_bytes + status.ahead_bytes);
}

#[test]
fn a_file_that_fails_takes_the_bitmap_with_it_or_stops_changes() {
    let bytes = identity().offset..identity().offset + CHUNK;
    let mut scene = Scene::new();
    let off = MarkState::Off("no space".to_owned());
    scene.marks.answer(Answer::Failed(off));
    assert_eq!(scene.marks.admit(&bytes), MarkAnswer::Marked);
    let refused = scene.marks.may_freeze().expect_err("refused");
    assert!(refused.contains("no space"), "{refused}");
    let stuck = MarkState::Stuck("no disk".to_owned());
    scene.marks.answer(Answer::Failed(stuck));
    assert_eq!(scene.marks.admit(&bytes), MarkAnswer::Refused);
    assert_eq!(scene.marks.status().problem.as_deref(), Some("no disk"));
}

/// A checkpoint ends while its bitmap is being frozen: at a power cut, or because its moment took too long.
#[test]
fn a_checkpoint_that_ends_before_its_moment_leaves_the_bitmap_to_the_next() {
    for end in [Marks::release, Marks::abandon] {
        let mut scene = Scene::new();
        let start = identity().offset;
        let bytes = start..start + CHUNK;
        while scene.marks.admit(&bytes) == MarkAnswer::Waits {
            scene.work_all();
        }
        scene.marks.note(&bytes);
        scene.marks.begin_freeze(1);
        end(&mut scene.marks);
        assert_eq!(scene.marks.may_freeze(), Ok(false), "it is on its way");
        scene.work_all();
        assert_eq!(scene.marks.may_freeze(), Ok(true));
        let dirty: Vec<u64> = scene.marks.changed.iter().collect();
        assert_eq!(dirty, [0], "the next backup has it");
        assert_eq!(scene.file.base(), 0, "nobody has a backup of it");
    }
}
