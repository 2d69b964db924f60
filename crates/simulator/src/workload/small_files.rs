//! Reads of small files, as a file system turns them into reads of blocks.
//!
//! The layout is that of the Berkeley fast file system (McKusick, Joy, Leffler, Fabry, ACM TOCS
//! 2(3), 1984) and of ext2, freshly filled: the drive in cylinder groups; directories dealt to the
//! groups in turn; the inodes and blocks of a directory's files in its group, in the order in which
//! they were made.
//!
//! ```text
//!   group  |0    |4             |4 + table                                          |end
//!          |super|inode table   |dir 0|its files......|dir 68|its files......| free |
//!                   ^ 2. inode     ^ 1. entry   ^ 3. contents
//! ```
//!
//! To read a file, a client reads the directory's block, then the inode's block, each only if it is
//! not cached, then the contents, in sequence. The cache does not model contents: all of them are
//! read. Two clients that miss the same block together read it once; the second does not wait for
//! the first. Both are choices.
//!
//! With access times, a read file's inode is written later: its block waits in a queue of fixed length, as
//! the blocks of FFS wait for `update`. A client writes the block that leaves the queue after its contents.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use block::{Direction, Extent, Lba, Sectors};
use serde::Serialize;

use super::dice::Dice;

/// The parameters of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SmallFiles {
    /// Number of directories.
    pub directories: u32,
    /// Number of files per directory.
    pub files_per_directory: u32,
    /// The block size of the file system.
    pub fs_block_bytes: u64,
    /// Bytes per cylinder group.
    pub group_bytes: u64,
    /// Bytes per inode.
    pub inode_bytes: u64,
    /// Bytes of a group per inode.
    pub inode_every_bytes: u64,
    /// Number of cached blocks of directories and inodes.
    pub cached_blocks: u32,
    /// Bytes of a fragment: the last block of a file is read up to its last fragment. The block size
    /// if the file system has none.
    pub fragment_bytes: u64,
    /// Blocks of inodes with a new access time that wait to be written. With one more, the oldest
    /// is written. None: access times are not kept.
    pub delayed_inode_blocks: Option<u32>,
}

impl fmt::Display for SmallFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "files in {} directories of {}, groups of {} MiB, {} blocks of metadata in memory",
            self.directories,
            self.files_per_directory,
            self.group_bytes as f64 / f64::from(1 << 20),
            self.cached_blocks
        )?;
        if self.fragment_bytes < self.fs_block_bytes {
            write!(f, ", fragments of {} bytes", self.fragment_bytes)?;
        }
        match self.delayed_inode_blocks {
            None => Ok(()),
            Some(blocks) => write!(f, ", access times written {blocks} blocks of inodes later"),
        }
    }
}

/// One read or write of a client.
type FileStep = (Direction, Extent);

/// Opens files, one after the other.
#[derive(Clone, Debug)]
pub(super) struct FileOpener {
    layout: FileSystemLayout,
    cache: BlockCache,
    /// Blocks of inodes to be written, the oldest first, and the length of the queue.
    delayed: VecDeque<u64>,
    most_delayed: Option<usize>,
    /// The remaining steps after each outstanding read, by its first block; the last step first.
    then: BTreeMap<u64, VecDeque<Vec<FileStep>>>,
}

/// The layout, in blocks of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileSystemLayout {
    directories: u64,
    files_per_directory: u64,
    groups: u64,
    group_blocks: u64,
    inodes_per_block: u64,
    table_blocks: u64,
    entries_per_block: u64,
    directory_blocks: u64,
    file_blocks: u64,
    /// Blocks of the drive per block of the file system.
    unit: u64,
    /// Blocks of the drive that the contents of a file take.
    contents: u64,
}

/// An invalid key and the problem.
type Wrong = (&'static str, String);

impl FileSystemLayout {
    /// The layout of `files`, each of `file_bytes`, on a drive of `capacity` blocks.
    ///
    /// # Errors
    /// The key that does not fit, and why.
    pub(super) fn new(
        files: &SmallFiles,
        file_bytes: u64,
        block_bytes: u64,
        capacity: u64,
    ) -> Result<FileSystemLayout, Wrong> {
        let fs_block = files.fs_block_bytes;
        if !fs_block.is_multiple_of(block_bytes) {
            let problem = format!("{fs_block} bytes: expected whole blocks");
            return Err(("placement.fs_block_kib", problem));
        }
        let unit = fs_block / block_bytes;
        let group_blocks = files.group_bytes / fs_block;
        let groups = (capacity / unit).checked_div(group_blocks).unwrap_or(0);
        if groups == 0 || !files.group_bytes.is_multiple_of(fs_block) {
            let problem = format!(
                "groups of {} bytes: expected a multiple of {fs_block} bytes, at most the drive",
                files.group_bytes
            );
            return Err(("placement.group_kib", problem));
        }
        let fragment = files.fragment_bytes;
        if !fragment.is_multiple_of(block_bytes) || !fs_block.is_multiple_of(fragment.max(1)) {
            let problem =
                format!("{fragment} bytes: expected a whole part of a block of {fs_block} bytes");
            return Err(("placement.fragment_kib", problem));
        }
        let inodes_per_block = fs_block / files.inode_bytes;
        if inodes_per_block == 0 {
            let inode = files.inode_bytes;
            let problem = format!("{inode}: expected at most a block, {fs_block} bytes");
            return Err(("placement.inode_bytes", problem));
        }
        let inodes = files.group_bytes / files.inode_every_bytes;
        let files_per_directory = u64::from(files.files_per_directory);
        let entries_per_block = (fs_block / ENTRY_BYTES).max(1);
        let layout = FileSystemLayout {
            directories: files.directories.into(),
            files_per_directory,
            groups,
            group_blocks,
            inodes_per_block,
            table_blocks: inodes.div_ceil(inodes_per_block),
            entries_per_block,
            directory_blocks: files_per_directory.div_ceil(entries_per_block),
            file_blocks: file_bytes.div_ceil(fs_block),
            unit,
            contents: file_bytes.div_ceil(fragment) * fragment / block_bytes,
        };
        layout.check(inodes).map(|()| layout)
    }

    fn check(&self, inodes: u64) -> Result<(), Wrong> {
        let most = self.directories.div_ceil(self.groups);
        let needed = most * (self.files_per_directory + 1);
        if needed > inodes {
            let problem = format!("{inodes} inodes in a group, {needed} needed: expected more");
            return Err(("placement.inode_every_kib", problem));
        }
        // At most 65,536 directories of as many files of 2^31 blocks: no overflow.
        let end = HEAD_BLOCKS + self.table_blocks + most * self.share();
        if end > self.group_blocks {
            let problem = format!(
                "{most} directories in a group need {end} blocks of its {}: expected room",
                self.group_blocks
            );
            return Err(("placement.directories", problem));
        }
        Ok(())
    }

    /// Blocks of a directory and its files.
    fn share(&self) -> u64 {
        self.directory_blocks + self.files_per_directory * self.file_blocks
    }

    /// The block of a file's directory entry, the block of its inode, and the first block of its
    /// contents.
    fn blocks(&self, directory: u64, file: u64) -> [u64; 3] {
        let group = directory % self.groups * self.group_blocks;
        let place = directory / self.groups;
        // The directory's own inode is before those of its files.
        let inode = place * (self.files_per_directory + 1) + 1 + file;
        let contents = group + HEAD_BLOCKS + self.table_blocks + place * self.share();
        [
            contents + file / self.entries_per_block,
            group + HEAD_BLOCKS + inode / self.inodes_per_block,
            contents + self.directory_blocks + file * self.file_blocks,
        ]
    }

    /// A block of the file system.
    fn block(&self, number: u64) -> Extent {
        Extent::new(Lba(number * self.unit), Sectors(self.unit))
            .expect("groups were found to fit the drive")
    }

    /// The contents of a file that begins with this block.
    fn contents(&self, first: u64) -> Extent {
        Extent::new(Lba(first * self.unit), Sectors(self.contents))
            .expect("groups were found to fit the drive")
    }
}

impl FileOpener {
    /// A client with an empty cache.
    pub(super) fn new(layout: FileSystemLayout, files: &SmallFiles) -> Self {
        FileOpener {
            layout,
            cache: BlockCache::new(files.cached_blocks),
            delayed: VecDeque::new(),
            most_delayed: files.delayed_inode_blocks.map(|blocks| blocks as usize),
            then: BTreeMap::new(),
        }
    }

    /// The first step towards the contents of a random file.
    pub(super) fn open(&mut self, direction: Direction, dice: &mut Dice) -> FileStep {
        let layout = &self.layout;
        let number = dice.below(layout.directories * layout.files_per_directory);
        let (directory, file) = (
            number / layout.files_per_directory,
            number % layout.files_per_directory,
        );
        let [entry, inode, contents] = layout.blocks(directory, file);
        let mut steps = Vec::new();
        if let Some(late) = self.access(inode) {
            steps.push((Direction::Write, self.layout.block(late)));
        }
        steps.push((direction, self.layout.contents(contents)));
        let [has_entry, has_inode] = [entry, inode].map(|block| self.cache.touch(block));
        for (block, has) in [(inode, has_inode), (entry, has_entry)] {
            if has == CacheLookup::No {
                steps.push((Direction::Read, self.layout.block(block)));
            }
        }
        self.next(steps)
            .expect("there is at least the step to the contents")
    }

    /// Keeps a new access time, and returns the block of inodes that is written now.
    fn access(&mut self, inode: u64) -> Option<u64> {
        let most = self.most_delayed?;
        if !self.delayed.contains(&inode) {
            self.delayed.push_back(inode);
        }
        match self.delayed.len() > most {
            true => self.delayed.pop_front(),
            false => None,
        }
    }

    /// The step after the one that has ended, if the file needs further steps.
    pub(super) fn after(&mut self, ended: Extent) -> Option<FileStep> {
        let start = ended.start().0;
        let waiting = self.then.get_mut(&start)?;
        let steps = waiting.pop_front()?;
        if waiting.is_empty() {
            self.then.remove(&start);
        }
        self.next(steps)
    }

    /// Returns the next of the steps, and keeps the rest until it has ended.
    fn next(&mut self, mut steps: Vec<FileStep>) -> Option<FileStep> {
        let step = steps.pop()?;
        if !steps.is_empty() {
            let waiting = self.then.entry(step.1.start().0).or_default();
            waiting.push_back(steps);
        }
        Some(step)
    }
}

/// An LRU cache of blocks.
#[derive(Clone, Debug)]
struct BlockCache {
    room: usize,
    stamp: u64,
    stamps: BTreeMap<u64, u64>,
    by_stamp: BTreeMap<u64, u64>,
}

/// Whether a block was cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CacheLookup {
    Yes,
    No,
}

impl BlockCache {
    fn new(room: u32) -> Self {
        BlockCache {
            room: room as usize,
            stamp: 0,
            stamps: BTreeMap::new(),
            by_stamp: BTreeMap::new(),
        }
    }

    /// Looks up a block and caches it.
    fn touch(&mut self, block: u64) -> CacheLookup {
        self.stamp += 1;
        let before = self.stamps.insert(block, self.stamp);
        self.by_stamp.insert(self.stamp, block);
        if let Some(before) = before {
            self.by_stamp.remove(&before);
            return CacheLookup::Yes;
        }
        if self.stamps.len() > self.room
            && let Some((_, oldest)) = self.by_stamp.pop_first()
        {
            self.stamps.remove(&oldest);
        }
        CacheLookup::No
    }
}

/// Blocks at the beginning of a group: a copy of the superblock, the group descriptors, the bitmaps
/// of blocks and of inodes, one each, as in ext2 (Card, Ts'o, Tweedie, 1994).
const HEAD_BLOCKS: u64 = 4;

/// Bytes of a directory entry: ext2's 8 bytes and a name of 8 characters (a choice).
const ENTRY_BYTES: u64 = 16;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// That of `workloads/small-files.toml`.
    const PAPER: SmallFiles = SmallFiles {
        directories: 2000,
        files_per_directory: 50,
        fs_block_bytes: 4096,
        group_bytes: 128 << 20,
        inode_bytes: 128,
        inode_every_bytes: 8192,
        cached_blocks: 1024,
        fragment_bytes: 4096,
        delayed_inode_blocks: None,
    };

    fn layout() -> FileSystemLayout {
        FileSystemLayout::new(&PAPER, 3072, 512, 17_938_986).expect("it fits the Atlas 10K")
    }

    #[test]
    fn every_file_has_its_own_blocks_in_its_directory_s_group() {
        let layout = layout();
        assert_eq!((layout.groups, layout.table_blocks), (68, 512));
        let mut contents = BTreeSet::new();
        let (mut entries, mut inodes) = (BTreeSet::new(), BTreeMap::new());
        for directory in 0..2000 {
            for file in 0..50 {
                let blocks = layout.blocks(directory, file);
                let group = directory % 68;
                assert!(blocks.iter().all(|block| block / 32_768 == group));
                let [entry, inode, first] = blocks;
                assert!((4..516).contains(&(inode % 32_768)) && entry % 32_768 >= 516);
                entries.insert(entry);
                *inodes.entry(inode).or_insert(0) += 1;
                assert!(contents.insert(first));
            }
        }
        assert_eq!(entries.len(), 2000);
        assert!(entries.is_disjoint(&contents));
        assert_eq!(inodes.values().max(), Some(&32));
    }

    #[test]
    fn a_file_is_its_directory_its_inode_and_its_contents_each_after_the_other() {
        let mut reader = FileOpener::new(layout(), &PAPER);
        let mut dice = Dice::new(1, 3);
        let (_, entry) = reader.open(Direction::Write, &mut dice);
        let (reads, inode) = reader.after(entry).expect("an inode");
        let (writes, contents) = reader.after(inode).expect("contents");
        assert_eq!((reads, writes), (Direction::Read, Direction::Write));
        assert_eq!(reader.after(contents), None);
        assert!(reader.then.is_empty());
        let group = |extent: Extent| extent.start().0 / (32_768 * 8);
        assert!(group(entry) == group(inode) && group(inode) == group(contents));
    }

    #[test]
    fn contents_are_fragments_and_each_access_time_is_written_once_it_has_waited() {
        let files = SmallFiles {
            fragment_bytes: 512,
            delayed_inode_blocks: Some(5),
            ..PAPER
        };
        let layout = FileSystemLayout::new(&files, 3072, 512, 17_938_986).expect("it fits");
        let mut reader = FileOpener::new(layout, &files);
        let mut dice = Dice::new(1, 3);
        let (mut read, mut written) = (VecDeque::new(), 0);
        for _ in 0..1_000 {
            let mut step = Some(reader.open(Direction::Read, &mut dice));
            let mut contents = None;
            while let Some((direction, extent)) = step {
                if direction == Direction::Write {
                    // The oldest of those that were read, and after the contents.
                    assert_eq!(read.pop_front(), Some(extent));
                    assert!(contents.is_some());
                    written += 1;
                } else if extent.length() == Sectors(6) {
                    contents = Some(extent);
                }
                step = reader.after(extent);
            }
            let inode = reader
                .delayed
                .back()
                .map(|&block| reader.layout.block(block));
            if let Some(inode) = inode
                && !read.contains(&inode)
            {
                read.push_back(inode);
            }
            assert!(contents.is_some(), "six fragments of 512 bytes");
        }
        assert_eq!(reader.delayed.len(), 5);
        assert!(written > 900, "{written}: few inodes share a block");
    }

    #[test]
    fn clients_that_wait_for_the_same_block_all_go_on() {
        let one = SmallFiles {
            directories: 1,
            files_per_directory: 1,
            cached_blocks: 0,
            ..PAPER
        };
        let layout = FileSystemLayout::new(&one, 3072, 512, 17_938_986).expect("it fits");
        let mut reader = FileOpener::new(layout, &one);
        let mut dice = Dice::new(1, 3);
        let [first, second] = [(); 2].map(|()| reader.open(Direction::Read, &mut dice).1);
        assert_eq!(first, second);
        for _ in 0..2 {
            assert!(reader.after(first).is_some());
        }
        assert_eq!(reader.after(first), None);
    }

    #[test]
    fn the_memory_holds_what_was_used_last() {
        let mut cache = BlockCache::new(2);
        let held = |cache: &mut BlockCache, block| cache.touch(block) == CacheLookup::Yes;
        assert!(!held(&mut cache, 1) && !held(&mut cache, 2) && held(&mut cache, 1));
        assert!(!held(&mut cache, 3), "2 leaves");
        assert!(held(&mut cache, 1) && !held(&mut cache, 2), "3 leaves");
        assert!(held(&mut cache, 1) && !held(&mut cache, 3));
        assert_eq!(cache.by_stamp.len(), 2);
    }

    #[test]
    fn a_full_memory_of_metadata_leaves_the_contents() {
        let files = SmallFiles {
            cached_blocks: 65_536,
            ..PAPER
        };
        let mut reader = FileOpener::new(layout(), &files);
        let mut dice = Dice::new(2, 3);
        let mut steps = 0;
        for _ in 0..30_000 {
            let mut step = Some(reader.open(Direction::Read, &mut dice));
            while let Some((_, extent)) = step {
                steps += 1;
                step = reader.after(extent);
            }
        }
        // 2000 blocks of directories, and of each group's 30 x 51 inodes all but the first, in
        // blocks of 32: each is read once.
        let inodes: BTreeSet<u64> = (0..100_000)
            .map(|n| reader.layout.blocks(n / 50, n % 50)[1])
            .collect();
        let missed = 2000 + inodes.len();
        assert!((30_000 + missed - 5..=30_000 + missed).contains(&steps));
    }
}
