//! The superblock of a leg: which mirror it belongs to, and what each leg was used for when it was written.
//!
//! ```text
//!   byte     0       8         12       16      32       40            48           56             64
//!            | magic | version | CRC-32C | mirror | events | data begins | data bytes | region bytes |
//!            64    65              67      72
//!            | leg | state of each | zeroes | id of leg 0, of leg 1 (16 bytes each) | zeroes to 512
//! ```
//!
//! Numbers are little-endian. The checksum is that of all 512 bytes with zeroes in its place.

use crc_fast::CrcAlgorithm;

/// Bytes of a superblock: a sector, which a drive writes as a whole.
pub const SUPERBLOCK_BYTES: usize = 512;

/// The version of the layout.
pub const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"HTMIRROR";

/// The name of a mirror or a leg: random bytes.
pub type Id = [u8; 16];

/// What a leg is used for, as it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegRecord {
    /// It has all data.
    InSync,
    /// It was in sync when the service or the power ended: it may differ in marked regions.
    Doubtful,
    /// It lacks data of marked regions.
    Filling,
    /// It is not used: writes since then are missing.
    Out,
}

impl LegRecord {
    /// All states and their codes.
    const CODES: [(LegRecord, u8); 4] = [
        (LegRecord::InSync, 1),
        (LegRecord::Doubtful, 2),
        (LegRecord::Filling, 3),
        (LegRecord::Out, 4),
    ];

    fn code(self) -> u8 {
        let mut all = LegRecord::CODES.iter();
        all.find(|(state, _)| *state == self)
            .map_or(0, |(_, code)| *code)
    }

    fn of_code(code: u8) -> Option<Self> {
        let mut all = LegRecord::CODES.iter();
        all.find(|(_, other)| *other == code)
            .map(|(state, _)| *state)
    }

    /// The state in words, as `headtime mirror status` and `headtime ctl status` print it.
    pub fn name(self) -> &'static str {
        match self {
            LegRecord::InSync => "in sync",
            LegRecord::Doubtful => "in doubt",
            LegRecord::Filling => "being filled",
            LegRecord::Out => "out",
        }
    }

    /// Whether it has all data that clients were told are durable.
    pub fn is_complete(self) -> bool {
        matches!(self, LegRecord::InSync | LegRecord::Doubtful)
    }
}

/// A superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The mirror.
    pub mirror: Id,
    /// The number of changes of states so far.
    pub events: u64,
    /// The first byte of the data on the leg.
    pub data_offset: u64,
    /// The number of bytes of data.
    pub data_bytes: u64,
    /// Bytes of a region with a mark.
    pub region_bytes: u64,
    /// The number of this leg: 0 or 1.
    pub leg: u8,
    /// What each leg is used for.
    pub states: [LegRecord; 2],
    /// The names of the legs.
    pub legs: [Id; 2],
}

/// Why bytes are no superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSuperblock {
    /// Something else is there.
    #[error("no superblock of a mirror")]
    Other,
    /// A later version.
    #[error("a superblock of version {found}: expected version {VERSION}")]
    Version {
        /// The version.
        found: u32,
    },
    /// The checksum or a field is wrong.
    #[error("a damaged superblock")]
    Damaged,
}

impl Superblock {
    /// The number of regions.
    pub fn regions(&self) -> u64 {
        self.data_bytes.div_ceil(self.region_bytes)
    }

    /// The superblock of the other leg with the same contents.
    pub fn of_leg(self, leg: usize) -> Superblock {
        Superblock {
            leg: leg as u8,
            ..self
        }
    }

    /// The bytes on the leg.
    pub fn encoded(&self) -> [u8; SUPERBLOCK_BYTES] {
        let mut bytes = [0; SUPERBLOCK_BYTES];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(16, &self.mirror);
        put(32, &self.events.to_le_bytes());
        put(40, &self.data_offset.to_le_bytes());
        put(48, &self.data_bytes.to_le_bytes());
        put(56, &self.region_bytes.to_le_bytes());
        put(64, &[self.leg]);
        put(65, &self.states.map(LegRecord::code));
        put(72, &self.legs[0]);
        put(88, &self.legs[1]);
        let sum = checksum(&bytes);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The superblock in the bytes of a leg.
    ///
    /// # Errors
    /// If there is none.
    pub fn decoded(bytes: &[u8; SUPERBLOCK_BYTES]) -> Result<Self, NoSuperblock> {
        if bytes[..8] != MAGIC {
            return Err(NoSuperblock::Other);
        }
        let number = |at: usize| u64::from_le_bytes(array(bytes, at));
        let mut bare = *bytes;
        bare[12..16].fill(0);
        if checksum(&bare) != u32::from_le_bytes(array(bytes, 12)) {
            return Err(NoSuperblock::Damaged);
        }
        let found = u32::from_le_bytes(array(bytes, 8));
        if found != VERSION {
            return Err(NoSuperblock::Version { found });
        }
        let state = |at: usize| LegRecord::of_code(bytes[at]).ok_or(NoSuperblock::Damaged);
        let superblock = Superblock {
            mirror: array(bytes, 16),
            events: number(32),
            data_offset: number(40),
            data_bytes: number(48),
            region_bytes: number(56),
            leg: bytes[64],
            states: [state(65)?, state(66)?],
            legs: [array(bytes, 72), array(bytes, 88)],
        };
        let is_sound = superblock.leg < 2
            && superblock.data_offset == super::DATA_OFFSET
            && superblock.data_bytes > 0
            && superblock.region_bytes == super::region_bytes(superblock.data_bytes);
        match is_sound {
            true => Ok(superblock),
            false => Err(NoSuperblock::Damaged),
        }
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

/// CRC-32C.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// The bytes of an identifier as a word.
pub fn id_text(id: &Id) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A superblock of leg 0, both in sync.
    pub(in crate::mirror) fn any() -> Superblock {
        Superblock {
            mirror: [7; 16],
            events: 5,
            data_offset: super::super::DATA_OFFSET,
            data_bytes: 64 << 20,
            region_bytes: super::super::region_bytes(64 << 20),
            leg: 0,
            states: [LegRecord::InSync; 2],
            legs: [[1; 16], [2; 16]],
        }
    }

    proptest! {
        #[test]
        fn a_changed_bit_is_found(at in 0..SUPERBLOCK_BYTES, bit in 0..8u8) {
            let mut bytes = any().encoded();
            prop_assert_eq!(Superblock::decoded(&bytes), Ok(any()));
            bytes[at] ^= 1 << bit;
            prop_assert!(Superblock::decoded(&bytes).is_err());
        }

        #[test]
        fn arbitrary_bytes_are_no_superblock(bytes: [u8; 32]) {
            let mut sector = [0; SUPERBLOCK_BYTES];
            sector[..32].copy_from_slice(&bytes);
            prop_assert!(Superblock::decoded(&sector).is_err());
        }
    }

    #[test]
    fn states_and_the_number_of_the_leg_come_back() {
        for (state, _) in LegRecord::CODES {
            let written = Superblock {
                states: [LegRecord::InSync, state],
                leg: 1,
                ..any()
            };
            assert_eq!(Superblock::decoded(&written.encoded()), Ok(written));
        }
    }

    #[test]
    fn a_later_version_is_named() {
        let mut bytes = any().encoded();
        bytes[8] = 9;
        bytes[12..16].fill(0);
        let sum = checksum(&bytes);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        let refused = Superblock::decoded(&bytes);
        assert_eq!(refused, Err(NoSuperblock::Version { found: 9 }));
    }
}
