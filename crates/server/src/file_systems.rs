//! Which parts of a volume its file system uses, from the metadata on it.
//!
//! ```text
//!   volume --read--> superblock --> ext4: bitmaps of groups ----------.
//!                              '--> XFS: free space of groups --------+--> UsedMap, a bit for each 64 KiB
//!                              '--> btrfs: allocated device extents --'
//! ```
//!
//! The map has too much rather than too little: what is damaged, contradicts itself or lies past the file system counts
//! as used. A file system that is mounted or was not unmounted is refused where its metadata say so, because newer
//! allocations are in its journal. All bytes are untrusted. Decision 0101 has the reasons and limits.

mod btrfs;
mod bytes;
mod ext4;
mod map;
mod xfs;

pub use map::UsedMap;

/// The bytes of a volume.
pub trait Source {
    /// Reads `length` bytes at `offset`.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, String>;
}

/// The file system of a volume, and what it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedBlocks {
    /// The kind of the file system.
    pub kind: &'static str,
    /// What it uses.
    pub map: UsedMap,
    /// Groups whose metadata are damaged or contradict themselves: all of each counts as used.
    pub distrusted_groups: u64,
}

/// Why the used blocks of a volume are not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotMapped {
    /// No known file system begins at the first byte.
    #[error("no file system at byte 0 of the volume: expected ext4, XFS or btrfs")]
    Unknown,
    /// The file system is mounted, or was not unmounted.
    #[error(
        "the {0} is mounted or was not unmounted: expected an unmounted file system, or a scrub of all blocks"
    )]
    InUse(&'static str),
    /// The metadata have something that this version does not understand.
    #[error("the {kind}: {problem}")]
    Refused {
        /// The kind of the file system.
        kind: &'static str,
        /// The problem, and what was expected.
        problem: String,
    },
    /// The metadata cannot be read.
    #[error("the metadata cannot be read: {0}")]
    Unreadable(String),
}

/// A parser of one kind.
struct Parser {
    /// Where its superblock's magic number is, in bytes.
    magic: (u64, &'static [u8]),
    used: fn(&mut dyn Source, u64) -> Result<UsedBlocks, NotMapped>,
}

const PARSERS: &[Parser] = &[
    Parser {
        magic: (0x438, &[0x53, 0xEF]),
        used: ext4::used,
    },
    Parser {
        magic: (0, b"XFSB"),
        used: xfs::used,
    },
    Parser {
        magic: (0x1_0040, b"_BHRfS_M"),
        used: btrfs::used,
    },
];

/// The smallest volume with a file system: all superblocks are in it.
const LEAST: u64 = 0x1_1000;

/// Finds what the file system of a volume of `length` bytes uses.
///
/// # Errors
/// If there is none, it is in use, or its metadata are not understood.
pub fn used(source: &mut dyn Source, length: u64) -> Result<UsedBlocks, NotMapped> {
    if length < LEAST {
        return Err(NotMapped::Unknown);
    }
    for parser in PARSERS {
        let (at, magic) = parser.magic;
        let sector = at / SECTOR * SECTOR;
        let bytes = source
            .read(sector, SECTOR as usize)
            .map_err(NotMapped::Unreadable)?;
        let place = (at - sector) as usize;
        if bytes.get(place..place + magic.len()) == Some(magic) {
            return (parser.used)(source, length);
        }
    }
    Err(NotMapped::Unknown)
}

/// Reads begin and end at multiples of this.
const SECTOR: u64 = 4096;

#[cfg(test)]
mod tests;
