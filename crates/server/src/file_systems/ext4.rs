//! ext2, ext3 and ext4: a bitmap for each group of blocks.
//!
//! ```text
//!   superblock --> descriptors of groups --> bitmap of the group's clusters: 1 is used
//!                                       '--> bitmaps and inode tables, wherever they are: used
//! ```
//!
//! Layout: Linux, Documentation/filesystems/ext4 (super.rst, group_descr.rst, bitmaps.rst).

use super::bytes::Bytes;
use super::{NotMapped, Source, UsedBlocks, UsedMap};

mod checks;

use checks::Checks;

const KIND: &str = "ext4";

/// Where the superblock is, and its length.
const SUPERBLOCK: (u64, usize) = (1024, 1024);

/// Bits of `s_feature_incompat`: an unfinished journal, a checksum's seed, descriptors in groups, 64 bits.
const RECOVER: u32 = 0x4;
const META_BG: u32 = 0x10;
const IS_64_BIT: u32 = 0x80;
const CHECKSUM_SEED: u32 = 0x2000;
/// Bits that change nothing here, and those above: file types, extents, MMP, flexible groups, attributes in inodes,
/// large directories, inline data, encryption, casefolding.
const KNOWN_INCOMPAT: u32 = 0x2
    | RECOVER
    | META_BG
    | 0x40
    | IS_64_BIT
    | 0x100
    | 0x200
    | 0x400
    | CHECKSUM_SEED
    | 0x4000
    | 0x8000
    | 0x1_0000
    | 0x2_0000;

/// Bits of `s_feature_compat` and of `s_feature_ro_compat`: which groups have copies of the superblock.
const SPARSE_SUPER_2: u32 = 0x200;
const SPARSE_SUPER: u32 = 0x1;

/// Bits of `s_feature_ro_compat`: checksums of descriptors, clusters of blocks, checksums of metadata.
const GDT_CHECKSUM: u32 = 0x10;
const BIGALLOC: u32 = 0x200;
const METADATA_CHECKSUM: u32 = 0x400;
/// Those, and bits that change nothing here: sparse superblocks, large and huge files, links, inode sizes, quotas,
/// read-only, projects, verity, orphans.
const KNOWN_RO_COMPAT: u32 = 0x1
    | 0x2
    | 0x4
    | 0x8
    | GDT_CHECKSUM
    | 0x20
    | 0x40
    | 0x100
    | BIGALLOC
    | METADATA_CHECKSUM
    | 0x1000
    | 0x2000
    | 0x8000
    | 0x1_0000;

/// Bits of `s_state`: unmounted, with errors.
const CLEAN: u16 = 1;
const ERRORS: u16 = 2;

/// Bit of `bg_flags`: the bitmap was not written, and only metadata are used.
const BLOCK_UNINIT: u16 = 2;

/// The smallest number of clusters in a group: mke2fs(8) makes none with less.
const LEAST_GROUP: u64 = 256;

/// Descriptors that are handled together, and the longest read of bitmaps. Choices: a mebibyte at a time.
const BATCH: u64 = 4096;
const LONGEST: u64 = 1 << 20;

/// Finds what is used.
pub fn used(source: &mut dyn Source, length: u64) -> Result<UsedBlocks, NotMapped> {
    let (at, bytes) = SUPERBLOCK;
    // The first block of 4 KiB has it, whatever the size of blocks.
    let first = source.read(0, 4096).map_err(NotMapped::Unreadable)?;
    let superblock = first.get(at as usize..at as usize + bytes);
    let layout = Layout::parse(superblock.unwrap_or_default(), length)?;
    let mut walk = Walk {
        found: UsedBlocks {
            kind: KIND,
            map: UsedMap::none(length),
            distrusted_groups: 0,
        },
        layout,
    };
    walk.run(source, length)?;
    Ok(walk.found)
}

/// The numbers of a superblock. Each was checked against the volume.
struct Layout {
    block: u64,
    blocks: u64,
    first_data_block: u64,
    /// Blocks of a cluster, clusters of a group, and the number of groups.
    cluster: u64,
    group_clusters: u64,
    groups: u64,
    descriptor: u64,
    inode_table_blocks: u64,
    /// Blocks of superblock, descriptors and reserved ones at the begin of some groups.
    base_blocks: u64,
    copies: Copies,
    first_meta_group: Option<u64>,
    checks: Checks,
}

fn refused(problem: impl Into<String>) -> NotMapped {
    NotMapped::Refused {
        kind: KIND,
        problem: problem.into(),
    }
}

fn check_features(sb: Bytes<'_>) -> Result<(), NotMapped> {
    let unknown = (
        sb.le32(0x60) & !KNOWN_INCOMPAT,
        sb.le32(0x64) & !KNOWN_RO_COMPAT,
    );
    match unknown {
        (0, 0) => Ok(()),
        (incompat, ro_compat) => Err(refused(format!(
            "features {incompat:#x} and {ro_compat:#x} are unknown: expected those of Linux 6.12"
        ))),
    }
}

fn check_unmounted(sb: Bytes<'_>) -> Result<(), NotMapped> {
    let is_clean = sb.le32(0x60) & RECOVER == 0 && sb.le16(0x3A) & (CLEAN | ERRORS) == CLEAN;
    match is_clean {
        true => Ok(()),
        false => Err(NotMapped::InUse(KIND)),
    }
}

impl Layout {
    fn parse(superblock: &[u8], length: u64) -> Result<Self, NotMapped> {
        let sb = Bytes(superblock);
        let (incompat, ro_compat) = (sb.le32(0x60), sb.le32(0x64));
        check_features(sb)?;
        let checks = Checks::of(superblock, incompat, ro_compat)?;
        check_unmounted(sb)?;
        let (log_block, log_cluster) = (sb.le32(0x18), sb.le32(0x1C));
        let is_sized = log_block <= 6 && (log_block..=20).contains(&log_cluster);
        if !is_sized || (ro_compat & BIGALLOC == 0 && log_cluster != log_block) {
            return Err(refused(
                "the sizes of blocks and clusters make no sense: expected a whole superblock",
            ));
        }
        let is_wide = incompat & IS_64_BIT != 0;
        let high = |at| {
            if is_wide {
                u64::from(sb.le32(at)) << 32
            } else {
                0
            }
        };
        let block = 1024_u64 << log_block;
        let cluster = 1_u64 << (log_cluster - log_block);
        let blocks = u64::from(sb.le32(0x4)) | high(0x150);
        let first_data_block = u64::from(sb.le32(0x14));
        let group_clusters = u64::from(sb.le32(if ro_compat & BIGALLOC == 0 {
            0x20
        } else {
            0x24
        }));
        let descriptor = if is_wide {
            u64::from(sb.le16(0xFE))
        } else {
            32
        };
        let is_whole = blocks
            .checked_mul(block)
            .is_some_and(|bytes| bytes <= length)
            && first_data_block <= 1
            && blocks > first_data_block
            && (LEAST_GROUP..=block * 8).contains(&group_clusters)
            && group_clusters.is_multiple_of(8)
            && descriptor.is_power_of_two()
            && (if is_wide { 64 } else { 32 }..=1024).contains(&descriptor);
        if !is_whole {
            return Err(refused(format!(
                "{blocks} blocks of {block} bytes in groups of {group_clusters}: expected a file system that fits \
                 the volume of {length} bytes"
            )));
        }
        let groups = (blocks - first_data_block).div_ceil(group_clusters * cluster);
        let inodes = u64::from(sb.le32(0x28)) * u64::from(sb.le16(0x58).max(128));
        let descriptors = (groups * descriptor).div_ceil(block);
        Ok(Layout {
            block,
            blocks,
            first_data_block,
            cluster,
            group_clusters,
            groups,
            descriptor,
            inode_table_blocks: inodes.div_ceil(block).min(blocks),
            base_blocks: 1 + descriptors + u64::from(sb.le16(0xCE)),
            copies: Copies::of(sb),
            first_meta_group: (incompat & META_BG != 0).then(|| u64::from(sb.le32(0x104))),
            checks,
        })
    }

    /// The block of a group's descriptor, and its place there.
    fn descriptor_at(&self, group: u64) -> (u64, u64) {
        let per_block = self.block / self.descriptor;
        let (number, place) = (group / per_block, group % per_block * self.descriptor);
        let block = match self.first_meta_group {
            // Each block of descriptors is in the first group of its own.
            Some(first) if number >= first => {
                let group = number * per_block;
                let shift = if group == 0 { self.shift() } else { 0 };
                self.first_block(group) + u64::from(self.copies.has(group)) + shift
            }
            _ => self.first_data_block + self.shift() + 1 + number,
        };
        (block, place)
    }

    /// Blocks before the superblock in the first group: one, if a block of 1 KiB belongs to a group of clusters.
    fn shift(&self) -> u64 {
        u64::from(self.block == 1024 && self.first_data_block == 0)
    }

    fn first_block(&self, group: u64) -> u64 {
        self.first_data_block + group * self.group_clusters * self.cluster
    }

    /// The clusters of a group: the last has fewer.
    fn clusters(&self, group: u64) -> u64 {
        let left = self.blocks - self.first_block(group);
        left.div_ceil(self.cluster).min(self.group_clusters)
    }
}

/// The groups with a copy of the superblock and the descriptors.
#[derive(Clone, Copy)]
enum Copies {
    All,
    /// 0, 1 and the powers of 3, 5 and 7.
    Sparse,
    /// 0 and two others.
    Two([u64; 2]),
}

impl Copies {
    fn of(sb: Bytes<'_>) -> Self {
        match (
            sb.le32(0x5C) & SPARSE_SUPER_2 != 0,
            sb.le32(0x64) & SPARSE_SUPER != 0,
        ) {
            (true, _) => Copies::Two([0x24C, 0x250].map(|at| u64::from(sb.le32(at)))),
            (false, true) => Copies::Sparse,
            (false, false) => Copies::All,
        }
    }

    fn has(self, group: u64) -> bool {
        let is_power = |base: u64| {
            let mut power = base;
            while power < group {
                power *= base;
            }
            power == group
        };
        group == 0
            || match self {
                Copies::All => true,
                Copies::Sparse => group == 1 || [3, 5, 7].into_iter().any(is_power),
                Copies::Two(both) => both.contains(&group),
            }
    }
}

/// A walk over the groups.
struct Walk {
    layout: Layout,
    found: UsedBlocks,
}

/// A group whose bitmap is to be read.
struct Group {
    number: u64,
    bitmap: u64,
    descriptor: Vec<u8>,
}

impl Walk {
    fn run(&mut self, source: &mut dyn Source, length: u64) -> Result<(), NotMapped> {
        let (block, blocks) = (self.layout.block, self.layout.blocks);
        self.found
            .map
            .add(0..(self.layout.first_data_block + 1) * block);
        self.found.map.add(blocks * block..length);
        let mut first = 0;
        while first < self.layout.groups {
            let end = (first + BATCH).min(self.layout.groups);
            let mut groups = self.descriptors(source, first..end)?;
            groups.sort_by_key(|group| group.bitmap);
            let mut rest = &groups[..];
            while !rest.is_empty() {
                let count = in_a_row(rest, block);
                self.bitmaps(source, &rest[..count])?;
                rest = &rest[count..];
            }
            first = end;
        }
        Ok(())
    }

    /// Reads the descriptors of groups, adds their metadata, and returns those whose bitmaps count.
    fn descriptors(
        &mut self,
        source: &mut dyn Source,
        groups: std::ops::Range<u64>,
    ) -> Result<Vec<Group>, NotMapped> {
        let (block, descriptor) = (self.layout.block, self.layout.descriptor as usize);
        let (mut kept, mut all) = (None, Vec::new());
        for number in groups {
            let (at, place) = self.layout.descriptor_at(number);
            if kept.as_ref().is_none_or(|(of, _)| *of != at) {
                if at >= self.layout.blocks {
                    return Err(refused(format!(
                        "the descriptor of group {number} is in block {at}: expected one of {}",
                        self.layout.blocks
                    )));
                }
                let bytes = source.read(at * block, block as usize);
                kept = Some((at, bytes.map_err(NotMapped::Unreadable)?));
                self.blocks(at, 1);
            }
            let bytes = kept.as_ref().map_or(&[][..], |(_, bytes)| bytes);
            let Some(bytes) = bytes.get(place as usize..place as usize + descriptor) else {
                return Err(NotMapped::Unreadable(
                    "fewer bytes than asked for".to_owned(),
                ));
            };
            all.extend(self.group(number, bytes.to_vec()));
        }
        Ok(all)
    }

    /// Adds a group's metadata. The answer is the group, unless it is used as a whole or nothing else of it is.
    fn group(&mut self, number: u64, bytes: Vec<u8>) -> Option<Group> {
        let first = self.layout.first_block(number);
        let base = match self.layout.copies.has(number) {
            true => self.layout.base_blocks,
            // A block of descriptors may be there.
            false => 1,
        };
        self.blocks(first, base.max(2) + self.layout.shift());
        let descriptor = Bytes(&bytes);
        let high = |at| {
            if bytes.len() >= 64 {
                u64::from(descriptor.le32(at)) << 32
            } else {
                0
            }
        };
        let place = |low, at| u64::from(descriptor.le32(low)) | high(at);
        let bitmap = place(0, 0x20);
        let tables = [
            (bitmap, 1),
            (place(0x4, 0x24), 1),
            (place(0x8, 0x28), self.layout.inode_table_blocks),
        ];
        let is_inside = |&(at, count): &(u64, u64)| {
            at.checked_add(count)
                .is_some_and(|end| end <= self.layout.blocks)
        };
        if !self.layout.checks.is_sound(number, &bytes) || !tables.iter().all(is_inside) {
            self.distrust(number);
            return None;
        }
        for (at, count) in tables {
            self.blocks(at, count);
        }
        // Without checksums a flag may be damage.
        let is_guarded = !matches!(self.layout.checks, Checks::None);
        (descriptor.le16(0x12) & BLOCK_UNINIT == 0 || !is_guarded).then_some(Group {
            number,
            bitmap,
            descriptor: bytes,
        })
    }

    /// Reads bitmaps that lie in a row.
    fn bitmaps(&mut self, source: &mut dyn Source, groups: &[Group]) -> Result<(), NotMapped> {
        let block = self.layout.block as usize;
        let Some(first) = groups.first() else {
            return Ok(());
        };
        let bytes = source.read(first.bitmap * self.layout.block, groups.len() * block);
        let bytes = bytes.map_err(NotMapped::Unreadable)?;
        for (group, bitmap) in groups.iter().zip(bytes.chunks(block)) {
            self.bitmap(group, bitmap);
        }
        Ok(())
    }

    fn bitmap(&mut self, group: &Group, bitmap: &[u8]) {
        let clusters = self.layout.clusters(group.number);
        let guarded = bitmap
            .get(..(self.layout.group_clusters / 8) as usize)
            .unwrap_or_default();
        let descriptor = Bytes(&group.descriptor);
        let high = match group.descriptor.len() >= 64 {
            true => u64::from(descriptor.le16(0x2C)) << 16,
            false => 0,
        };
        let free = u64::from(descriptor.le16(0xC)) | high;
        let is_used = |cluster: u64| {
            let byte = guarded.get((cluster / 8) as usize);
            byte.is_none_or(|byte| byte >> (cluster % 8) & 1 == 1)
        };
        let unused = (0..clusters).filter(|&cluster| !is_used(cluster)).count() as u64;
        if unused != free
            || !self
                .layout
                .checks
                .is_sound_bitmap(&group.descriptor, guarded)
        {
            self.distrust(group.number);
            return;
        }
        let (first, cluster) = (self.layout.first_block(group.number), self.layout.cluster);
        for number in (0..clusters).filter(|&number| is_used(number)) {
            self.blocks(first + number * cluster, cluster);
        }
    }

    fn distrust(&mut self, group: u64) {
        self.found.distrusted_groups += 1;
        let clusters = self.layout.clusters(group);
        self.blocks(
            self.layout.first_block(group),
            clusters * self.layout.cluster,
        );
    }

    fn blocks(&mut self, first: u64, count: u64) {
        let block = self.layout.block;
        let end = first.saturating_add(count);
        self.found
            .map
            .add(first.saturating_mul(block)..end.saturating_mul(block));
    }
}

/// How many groups at the begin have their bitmaps in a row.
fn in_a_row(groups: &[Group], block: u64) -> usize {
    let most = (LONGEST / block).max(1) as usize;
    let first = groups.first().map_or(0, |group| group.bitmap);
    let each = (first..).zip(groups.iter().take(most));
    each.take_while(|(expected, group)| group.bitmap == *expected)
        .count()
}
