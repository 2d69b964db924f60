//! The store of a checkpoint: the old bytes of chunks that were changed since its moment.
//!
//! A store has a bound. A chunk that finds no room ends the checkpoint, never the change.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{CHUNK, bytes_of};

/// The place of the old bytes of changed chunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreOrder {
    /// The folder of the store's file, which has no name. Without one the store is in memory.
    pub folder: Option<PathBuf>,
    /// The bound in bytes.
    pub bytes: u64,
}

/// The bound of a store in memory, unless another one is asked for. A choice: 4,096 changed chunks.
pub const IN_MEMORY: u64 = 256 << 20;

impl Default for StoreOrder {
    fn default() -> Self {
        StoreOrder {
            folder: None,
            bytes: IN_MEMORY,
        }
    }
}

/// The old bytes of changed chunks.
pub struct Store {
    medium: Medium,
    /// The chunks in the order of their places.
    kept: BTreeMap<u64, Kept>,
    /// Chunks with bytes.
    used: u64,
    /// Chunks for which there is room.
    room: u64,
}

enum Medium {
    Memory(Vec<Box<[u8]>>),
    File(File),
}

/// What is known of a chunk's old bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    At(u64),
    Unreadable,
}

impl Store {
    /// An empty store, whose file has its space already.
    ///
    /// # Errors
    /// If the file cannot be made, or its file system has not so much space.
    pub fn begin(order: &StoreOrder) -> Result<Self, String> {
        let room = order.bytes / CHUNK;
        if room == 0 {
            return Err(format!(
                "a store of {} bytes: expected {CHUNK} or more",
                order.bytes
            ));
        }
        let medium = match &order.folder {
            None => Medium::Memory(Vec::new()),
            Some(folder) => Medium::File(
                unnamed(folder, room * CHUNK)
                    .map_err(|error| format!("{}: {error}", folder.display()))?,
            ),
        };
        Ok(Store {
            medium,
            kept: BTreeMap::new(),
            used: 0,
            room,
        })
    }

    /// Chunks for which there is room.
    pub fn left(&self) -> u64 {
        self.room - self.used
    }

    /// Bytes of the chunks in the store.
    pub fn used_bytes(&self) -> u64 {
        self.used * CHUNK
    }

    /// The bound in bytes.
    pub fn bound_bytes(&self) -> u64 {
        self.room * CHUNK
    }

    /// Whether a change of the chunk need not wait.
    pub fn has(&self, chunk: u64) -> bool {
        self.kept.contains_key(&chunk)
    }

    /// The chunks of a range that are in the store.
    pub fn kept(&self, chunks: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
        self.kept.range(chunks).map(|(chunk, _)| *chunk)
    }

    /// Keeps the old bytes of a chunk. There is room for it.
    ///
    /// # Errors
    /// If the file fails.
    pub fn keep(&mut self, chunk: u64, bytes: &[u8]) -> io::Result<()> {
        match &mut self.medium {
            Medium::Memory(all) => all.push(bytes.into()),
            Medium::File(file) => file.write_all_at(bytes, self.used * CHUNK)?,
        }
        self.kept.insert(chunk, Kept::At(self.used));
        self.used += 1;
        Ok(())
    }

    /// Notes that the old bytes of a chunk could not be read. Reads of the moment fail there.
    pub fn lose(&mut self, chunk: u64) {
        self.kept.insert(chunk, Kept::Unreadable);
    }

    /// Gives the space back: the bytes are of no use any more.
    pub fn empty(&mut self) {
        self.kept.clear();
        self.used = 0;
        match &mut self.medium {
            Medium::Memory(all) => *all = Vec::new(),
            // The file goes with the store at the latest.
            Medium::File(file) => drop(file.set_len(0)),
        }
    }

    /// The number of chunks whose old bytes could not be read.
    pub fn lost(&self) -> u64 {
        let kept = self.kept.values();
        kept.filter(|kept| **kept == Kept::Unreadable).count() as u64
    }

    /// Puts old bytes in the place of the volume's. `bytes` begin at byte `start` of the volume.
    ///
    /// # Errors
    /// If the old bytes could not be read, then or now.
    pub fn restore(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        let end = start + bytes.len() as u64;
        let chunks = start / CHUNK..end.div_ceil(CHUNK);
        for (chunk, kept) in self.kept.range(chunks) {
            let Kept::At(place) = *kept else {
                return Err(io::Error::other("the old bytes could not be read"));
            };
            let here = bytes_of(*chunk, end);
            let (first, last) = (here.start.max(start), here.end);
            let to = &mut bytes[(first - start) as usize..(last - start) as usize];
            let skip = first - here.start;
            match &self.medium {
                Medium::Memory(all) => {
                    let old = &all[place as usize];
                    to.copy_from_slice(&old[skip as usize..skip as usize + to.len()]);
                }
                Medium::File(file) => file.read_exact_at(to, place * CHUNK + skip)?,
            }
        }
        Ok(())
    }
}

/// A file without a name and with `bytes` of space.
fn unnamed(folder: &Path, bytes: u64) -> io::Result<File> {
    let file = tempfile_in(folder)?;
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes)?;
    Ok(file)
}

fn tempfile_in(folder: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(File::from(file))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CHUNKS: u64 = 6;
    const LENGTH: u64 = CHUNKS * CHUNK - 512;

    fn filled(seed: u64) -> Vec<u8> {
        let each = (0..LENGTH).map(|at| (at * 31 % 251 + seed) as u8);
        each.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn old_bytes_come_back_and_others_stay(
            chunks in prop::collection::btree_set(0..CHUNKS, 0..5),
            start in 0..LENGTH,
            length in 1..LENGTH,
            is_file: bool,
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let folder = is_file.then(|| folder.path().to_owned());
            let order = StoreOrder { folder, bytes: CHUNKS * CHUNK };
            let mut store = Store::begin(&order).expect("a store");
            let (old, new) = (filled(0), filled(1));
            for chunk in &chunks {
                let bytes = bytes_of(*chunk, LENGTH);
                let bytes = &old[bytes.start as usize..bytes.end as usize];
                store.keep(*chunk, bytes).expect("a file");
            }
            let end = (start + length).min(LENGTH);
            let mut read = new[start as usize..end as usize].to_vec();
            store.restore(start, &mut read).expect("a file");
            for (at, byte) in (start..).zip(&read) {
                let expected = if chunks.contains(&(at / CHUNK)) { &old } else { &new };
                prop_assert_eq!(*byte, expected[at as usize], "byte {}", at);
            }
            prop_assert_eq!(store.left(), CHUNKS - chunks.len() as u64);
        }
    }

    #[test]
    fn lost_chunks_are_no_bytes() {
        let mut store = Store::begin(&StoreOrder::default()).expect("a store");
        store.lose(1);
        assert!(store.has(1) && !store.has(0));
        let mut bytes = vec![0; CHUNK as usize];
        assert!(store.restore(0, &mut bytes).is_ok());
        assert!(store.restore(1, &mut bytes).is_err());
        assert_eq!(store.lost(), 1);
    }

    #[test]
    fn a_store_without_room_or_folder_is_refused() {
        let order = |folder: &str, bytes| StoreOrder {
            folder: Some(folder.into()),
            bytes,
        };
        let problem = |order| Store::begin(&order).err().expect("refused");
        assert!(problem(order("/tmp", 10)).contains("expected 65536 or more"));
        assert!(problem(order("/none", 1 << 20)).starts_with("/none: "));
    }
}
