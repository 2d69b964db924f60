//! XFS: a B+ tree of free space for each allocation group.
//!
//! ```text
//!   superblock --> AGF of each group --> root of the free-space tree by block --> leaves: (first block, blocks)
//!             '--> log: its last record says "unmounted"
//! ```
//!
//! Layout: XFS Algorithms & Data Structures, 3rd edition. All numbers have the most significant byte first.

use super::bytes::Bytes;
use super::{NotMapped, SECTOR, Source, UsedBlocks, UsedMap};

const KIND: &str = "XFS";

/// Versions of the superblock, and the bits of its incompatible features in version 5: file types, sparse inodes, another
/// identity in metadata, large time stamps, needs repair, large extent counts, exchanged ranges, parents, metadata folder.
const VERSIONS: [u16; 2] = [4, 5];
const NEEDS_REPAIR: u32 = 0x10;
const KNOWN_INCOMPAT: u32 = 0x1 | 0x2 | 0x4 | 0x8 | NEEDS_REPAIR | 0x20 | 0x40 | 0x80;
/// Bits of the features that only forbid writing: inodes' free tree, reverse map, shared extents, counts of inodes.
const KNOWN_RO_COMPAT: u32 = 0x1 | 0x2 | 0x4 | 0x8;

/// Magic numbers: group's free space; tree of version 4 and of version 5; record of the log.
const AGF: u32 = 0x5841_4746;
const TREES: [u32; 2] = [0x4142_5442, 0x4142_3342];
const RECORD: u32 = 0xFEED_BABE;

/// Heads of tree blocks.
const HEADS: [usize; 2] = [16, 56];

/// The flag of the log's operation "unmounted".
const UNMOUNT: u8 = 0x20;

/// Blocks of the log, and how much is read of it at a time. The latter is a choice.
const LOG_BLOCK: u64 = 512;
const LOG_READ: u64 = 1 << 20;

/// The largest height of a tree (`XFS_BTREE_MAXLEVELS`).
const MOST_LEVELS: u32 = 9;

/// Finds what is used.
pub fn used(source: &mut dyn Source, length: u64) -> Result<UsedBlocks, NotMapped> {
    let layout = Layout::parse(&read(source, 0, SECTOR)?, length)?;
    if !layout.is_unmounted(source)? {
        return Err(NotMapped::InUse(KIND));
    }
    let mut found = UsedBlocks {
        kind: KIND,
        map: UsedMap::none(length),
        distrusted_groups: 0,
    };
    found.map.add(layout.blocks * layout.block..length);
    for group in 0..layout.groups {
        let (first, count) = layout.group(group);
        let place = |block: u64| (first + block) * layout.block;
        let free = layout.free(source, group)?;
        found.distrusted_groups += u64::from(free.is_none());
        let mut at = 0;
        for (start, blocks) in free.unwrap_or_default() {
            found.map.add(place(at)..place(start));
            at = start + blocks;
        }
        found.map.add(place(at)..place(count));
    }
    Ok(found)
}

fn read(source: &mut dyn Source, offset: u64, length: u64) -> Result<Vec<u8>, NotMapped> {
    let bytes = source
        .read(offset, length as usize)
        .map_err(NotMapped::Unreadable)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(NotMapped::Unreadable(
            "fewer bytes than asked for".to_owned(),
        )),
    }
}

fn refused(problem: impl Into<String>) -> NotMapped {
    NotMapped::Refused {
        kind: KIND,
        problem: problem.into(),
    }
}

/// The numbers of a superblock. Each was checked against the volume.
struct Layout {
    block: u64,
    blocks: u64,
    group_blocks: u64,
    groups: u64,
    sector: u64,
    /// The first byte of the log and its blocks; `None` if the log is on another device.
    log: Option<(u64, u64)>,
    /// Index of the version.
    version: usize,
}

impl Layout {
    fn parse(superblock: &[u8], length: u64) -> Result<Self, NotMapped> {
        let sb = Bytes(superblock);
        let version = VERSIONS
            .iter()
            .position(|&version| version == sb.be16(100) & 0xF);
        let version = version
            .ok_or_else(|| refused(format!("version {}: expected 4 or 5", sb.be16(100) & 0xF)))?;
        if version == 1 {
            let unknown = (
                sb.be32(216) & !KNOWN_INCOMPAT,
                sb.be32(212) & !KNOWN_RO_COMPAT,
            );
            if unknown != (0, 0) {
                return Err(refused(format!(
                    "features {:#x} and {:#x} are unknown: expected those of Linux 6.12",
                    unknown.0, unknown.1
                )));
            }
            if sb.be32(216) & NEEDS_REPAIR != 0 {
                return Err(refused("it needs repair: expected it after xfs_repair"));
            }
        }
        let (block, blocks) = (u64::from(sb.be32(4)), sb.be64(8));
        let (group_blocks, groups) = (u64::from(sb.be32(84)), u64::from(sb.be32(88)));
        let sector = u64::from(sb.be16(102));
        let group_log = u32::from(sb.u8(124));
        let is_whole = block.is_power_of_two()
            && (512..=65_536).contains(&block)
            && sector.is_power_of_two()
            && (512..=32_768).contains(&sector)
            && blocks.checked_mul(block).is_some_and(|bytes| bytes <= length)
            // The smallest group (`XFS_MIN_AG_BLOCKS`).
            && group_blocks >= 64
            && group_log < 32
            && group_blocks <= 1 << group_log
            && groups == blocks.div_ceil(group_blocks);
        if !is_whole || blocks == 0 {
            return Err(refused(format!(
                "{blocks} blocks of {block} bytes in {groups} groups of {group_blocks}: expected a file system that \
                 fits the volume of {length} bytes"
            )));
        }
        let (log_start, log_blocks) = (sb.be64(48), u64::from(sb.be32(96)));
        let (group, within) = (log_start >> group_log, log_start & ((1 << group_log) - 1));
        let log = (group.saturating_mul(group_blocks)).saturating_add(within);
        if log_start != 0 && log.saturating_add(log_blocks) > blocks {
            return Err(refused(
                "the log ends past the file system: expected it inside",
            ));
        }
        Ok(Layout {
            block,
            blocks,
            group_blocks,
            groups,
            sector,
            log: (log_start != 0).then_some((log * block, log_blocks * block / LOG_BLOCK)),
            version,
        })
    }

    /// The first block of a group and its blocks.
    fn group(&self, group: u64) -> (u64, u64) {
        let first = group * self.group_blocks;
        (first, (self.blocks - first).min(self.group_blocks))
    }

    /// Whether the last record of the log says that the file system was unmounted.
    fn is_unmounted(&self, source: &mut dyn Source) -> Result<bool, NotMapped> {
        let Some((first, blocks)) = self.log else {
            return Err(refused("its log is on another device: expected one inside"));
        };
        let mut last = None;
        let per_read = LOG_READ / LOG_BLOCK;
        let mut at = 0;
        while at < blocks {
            let count = per_read.min(blocks - at);
            let bytes = read(source, first + at * LOG_BLOCK, count * LOG_BLOCK)?;
            for (number, head) in (at..).zip(bytes.chunks_exact(LOG_BLOCK as usize)) {
                let head = Bytes(head);
                let number_of_record = head.be64(16);
                let is_record = head.be32(0) == RECORD
                    && u64::from(head.be32(4)) == number_of_record >> 32
                    && number_of_record & 0xFFFF_FFFF == number;
                let is_later = last.is_none_or(|(latest, _, _)| number_of_record > latest);
                if is_record && is_later {
                    last = Some((number_of_record, number, head.be32(40)));
                }
            }
            at += count;
        }
        // The record's operations are in the next block.
        let Some((_, number, 1)) = last.filter(|(_, number, _)| number + 1 < blocks) else {
            return Ok(false);
        };
        let operation = read(source, first + (number + 1) * LOG_BLOCK, LOG_BLOCK)?;
        Ok(Bytes(&operation).u8(9) == UNMOUNT)
    }

    /// The free pieces of a group, ascending; `None` if its metadata are damaged or contradict themselves.
    fn free(
        &self,
        source: &mut dyn Source,
        group: u64,
    ) -> Result<Option<Vec<(u64, u64)>>, NotMapped> {
        let (first, count) = self.group(group);
        let bytes = read(source, first * self.block + self.sector, self.sector)?;
        let agf = Bytes(&bytes);
        let (root, levels) = (u64::from(agf.be32(16)), agf.be32(28));
        let is_own = agf.be32(0) == AGF && u64::from(agf.be32(8)) == group;
        if !is_own || u64::from(agf.be32(12)) != count || !(1..=MOST_LEVELS).contains(&levels) {
            return Ok(None);
        }
        let mut block = root;
        for level in (1..levels).rev() {
            match self.tree_block(source, (group, block), level)? {
                Some(node) => block = self.first_child(&node),
                None => return Ok(None),
            }
        }
        let leaves = self.leaves(source, (group, block))?;
        let total = |all: &Vec<(u64, u64)>| all.iter().map(|(_, blocks)| blocks).sum::<u64>();
        Ok(leaves.filter(|all| total(all) == u64::from(agf.be32(52))))
    }

    /// The records of a row of leaves, if they ascend.
    fn leaves(
        &self,
        source: &mut dyn Source,
        (group, mut block): (u64, u64),
    ) -> Result<Option<Vec<(u64, u64)>>, NotMapped> {
        let (_, count) = self.group(group);
        let mut all: Vec<(u64, u64)> = Vec::new();
        let mut end = 0;
        // Each leaf has a record beyond those before it, so that a circle ends.
        while block != u64::from(u32::MAX) {
            let Some(leaf) = self.tree_block(source, (group, block), 0)? else {
                return Ok(None);
            };
            let (bytes, head) = (Bytes(&leaf), HEADS[self.version]);
            let records = usize::from(bytes.be16(6));
            if records > (leaf.len() - head) / 8 || (records == 0 && !all.is_empty()) {
                return Ok(None);
            }
            for record in 0..records {
                let at = head + record * 8;
                let (start, blocks) = (u64::from(bytes.be32(at)), u64::from(bytes.be32(at + 4)));
                if start < end || blocks == 0 || start + blocks > count {
                    return Ok(None);
                }
                end = start + blocks;
                all.push((start, blocks));
            }
            block = u64::from(bytes.be32(12));
            if records == 0 && block != u64::from(u32::MAX) {
                return Ok(None);
            }
        }
        Ok(Some(all))
    }

    /// A block of a group's tree, if it is one of this level.
    fn tree_block(
        &self,
        source: &mut dyn Source,
        (group, block): (u64, u64),
        level: u32,
    ) -> Result<Option<Vec<u8>>, NotMapped> {
        let (first, count) = self.group(group);
        if block >= count {
            return Ok(None);
        }
        let bytes = read(source, (first + block) * self.block, self.block)?;
        let head = Bytes(&bytes);
        let is_own = self.version == 0
            || (head.be64(16) == (first + block) * self.block / 512
                && u64::from(head.be32(48)) == group);
        let is_right =
            head.be32(0) == TREES[self.version] && u32::from(head.be16(4)) == level && is_own;
        Ok(is_right.then_some(bytes))
    }

    /// The first pointer of a node, behind the room for all keys.
    fn first_child(&self, node: &[u8]) -> u64 {
        let head = HEADS[self.version];
        // A key has 8 bytes, a pointer 4.
        let most = (self.block as usize - head) / 12;
        u64::from(Bytes(node).be32(head + most * 8))
    }
}
