//! btrfs: the extents of its device, each a gibibyte or so. All of one counts as used.
//!
//! ```text
//!   superblock --system chunks--> chunk tree --CHUNK_ITEM--> stripes on this device: used
//! ```
//!
//! Layout: btrfs.readthedocs.io, On-disk Format. All numbers have the least significant byte first.

use super::bytes::Bytes;
use super::{NotMapped, SECTOR, Source, UsedBlocks, UsedMap};
use crate::checksums::record::crc;

const KIND: &str = "btrfs";

/// The superblocks: all that fit are used, and 4 KiB each.
const SUPERBLOCKS: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];
const SUPERBLOCK: u64 = 4096;

/// Bytes before the first device extent (`BTRFS_DEVICE_RANGE_RESERVED`).
const RESERVED: u64 = 1 << 20;

/// The bits of incompatible features that change nothing here: all of Linux 6.12 but zones, the second extent tree and the
/// tree of stripes. The last is that of simple quotas.
const KNOWN_INCOMPAT: u64 = 0xFFF | 0x1_0000;

/// Keys of a system chunk and of a chunk.
const CHUNK_ITEM: u8 = 228;

/// Bytes of a node's head, of a pointer to another, of an item's head, of a key, of a chunk and of each of its stripes.
const HEAD: usize = 101;
const POINTER: usize = 33;
const ITEM: usize = 25;
const KEY: usize = 17;
const CHUNK: usize = 48;
const STRIPE: usize = 32;

/// Nodes of a chunk tree. A choice: a hundred times those of the largest disk. A circle ends here.
const MOST_NODES: usize = 100_000;

/// Finds what is used.
pub fn used(source: &mut dyn Source, length: u64) -> Result<UsedBlocks, NotMapped> {
    let superblock = read(source, SUPERBLOCKS[0], SUPERBLOCK)?;
    let mut walk = Walk::begin(&superblock, length)?;
    let mut found = UsedBlocks {
        kind: KIND,
        map: UsedMap::none(length),
        distrusted_groups: 0,
    };
    found.map.add(0..RESERVED);
    for at in SUPERBLOCKS {
        found.map.add(at..at.saturating_add(SUPERBLOCK));
    }
    found.map.add(walk.bytes..length);
    walk.chunk_tree(source)?;
    for (start, bytes) in walk.stripes {
        found.map.add(start..start + bytes);
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

/// A chunk: logical bytes, and where a copy of them begins on this device.
struct Chunk {
    logical: u64,
    length: u64,
    stripe: u64,
}

/// A walk through the chunk tree.
struct Walk {
    device: u64,
    /// Bytes of the device that the file system has.
    bytes: u64,
    node: u64,
    root: (u64, u8),
    /// The chunks of the chunk tree itself.
    system: Vec<Chunk>,
    stripes: Vec<(u64, u64)>,
}

impl Walk {
    fn begin(superblock: &[u8], length: u64) -> Result<Self, NotMapped> {
        let sb = Bytes(superblock);
        let incompat = sb.le64(0xBC) & !KNOWN_INCOMPAT;
        if incompat != 0 || sb.le16(0xC4) != 0 {
            return Err(refused(format!(
                "features {incompat:#x} or checksums of kind {} are unknown: expected CRC-32C and no zones",
                sb.le16(0xC4)
            )));
        }
        if superblock.get(0x20..).map(crc) != Some(sb.le32(0)) {
            return Err(refused(
                "the checksum of the superblock differs: expected a whole superblock",
            ));
        }
        if sb.le64(0x60) != 0 {
            return Err(NotMapped::InUse(KIND));
        }
        let (node, bytes) = (u64::from(sb.le32(0x94)), sb.le64(0xC9 + 8));
        let is_whole =
            node.is_power_of_two() && (SECTOR..=65_536).contains(&node) && bytes <= length;
        let array = superblock.get(0x32B..0x32B + (sb.le32(0xA0) as usize).min(2048));
        let Some(array) = array.filter(|_| is_whole) else {
            return Err(refused(format!(
                "{bytes} bytes in nodes of {node}: expected a file system that fits the volume of {length} bytes"
            )));
        };
        let mut walk = Walk {
            device: sb.le64(0xC9),
            bytes,
            node,
            root: (sb.le64(0x58), sb.u8(0xC7)),
            system: Vec::new(),
            stripes: Vec::new(),
        };
        let mut rest = array;
        while !rest.is_empty() {
            let logical = Bytes(rest).le64(9);
            let item = rest.get(KEY..).unwrap_or_default();
            let used = walk.chunk(logical, item)?;
            rest = rest.get(KEY + used..).unwrap_or_default();
        }
        Ok(walk)
    }

    /// Adds the stripes of a chunk on this device. The answer is its length.
    fn chunk(&mut self, logical: u64, bytes: &[u8]) -> Result<usize, NotMapped> {
        let item = Bytes(bytes);
        let stripes = usize::from(item.le16(44));
        let used = CHUNK + stripes * STRIPE;
        if stripes == 0 || used > bytes.len() {
            return Err(refused("a chunk without stripes: expected one or more"));
        }
        // A stripe of a chunk over several devices has no more than all of it.
        let length = item.le64(0);
        for stripe in 0..stripes {
            let at = CHUNK + stripe * STRIPE;
            if item.le64(at) != self.device {
                continue;
            }
            let start = item.le64(at + 8);
            if length == 0 || start.checked_add(length).is_none() || start >= self.bytes {
                return Err(refused(format!(
                    "a chunk of {length} bytes at {start}: expected it on the device"
                )));
            }
            self.stripes.push((start, length));
            self.system.push(Chunk {
                logical,
                length,
                stripe: start,
            });
        }
        Ok(used)
    }

    fn chunk_tree(&mut self, source: &mut dyn Source) -> Result<(), NotMapped> {
        // Only the system's chunks have nodes of this tree.
        let system = std::mem::take(&mut self.system);
        let (mut waiting, mut nodes) = (vec![self.root], 0);
        while let Some((logical, level)) = waiting.pop() {
            nodes += 1;
            if nodes > MOST_NODES {
                return Err(refused("too many nodes in the chunk tree: expected fewer"));
            }
            let node = self.tree_node(source, &system, logical, level)?;
            let head = Bytes(&node);
            let count = head.le32(96) as usize;
            let room = (node.len() - HEAD) / if level == 0 { ITEM } else { POINTER };
            if count > room {
                return Err(refused("a node with too many items: expected fewer"));
            }
            for number in 0..count {
                if level > 0 {
                    waiting.push((head.le64(HEAD + number * POINTER + KEY), level - 1));
                    continue;
                }
                let at = HEAD + number * ITEM;
                if head.u8(at + 8) != CHUNK_ITEM {
                    continue;
                }
                let (offset, length) = (
                    head.le32(at + KEY) as usize,
                    head.le32(at + KEY + 4) as usize,
                );
                let start = HEAD.saturating_add(offset);
                let item = node
                    .get(start..start.saturating_add(length))
                    .unwrap_or_default();
                self.chunk(head.le64(at + 9), item)?;
            }
            self.system.clear();
        }
        Ok(())
    }

    /// A node of the chunk tree, which has this level and its checksum.
    fn tree_node(
        &self,
        source: &mut dyn Source,
        system: &[Chunk],
        logical: u64,
        level: u8,
    ) -> Result<Vec<u8>, NotMapped> {
        let holds = |chunk: &&Chunk| {
            logical.checked_sub(chunk.logical).is_some_and(|within| {
                within
                    .checked_add(self.node)
                    .is_some_and(|end| end <= chunk.length)
            })
        };
        let chunk = system.iter().find(holds).ok_or_else(|| {
            refused(format!(
                "node {logical} is on no stripe of this device: expected one here"
            ))
        })?;
        let at = chunk.stripe.saturating_add(logical - chunk.logical);
        if at.checked_add(self.node).is_none_or(|end| end > self.bytes) {
            return Err(refused(format!(
                "node {logical} is past the device: expected it inside"
            )));
        }
        let bytes = read(source, at, self.node)?;
        let head = Bytes(&bytes);
        let is_right = head.le64(48) == logical
            && head.u8(100) == level
            && bytes.get(32..).map(crc) == Some(head.le32(0));
        match is_right {
            true => Ok(bytes),
            false => Err(refused(format!(
                "node {logical} is not what its parent says: expected level {level} and its checksum"
            ))),
        }
    }
}
