//! The checksums of superblock, descriptors and bitmaps.

use super::{CHECKSUM_SEED, GDT_CHECKSUM, METADATA_CHECKSUM, refused};
use crate::checksums::record::{crc, joined};
use crate::file_systems::NotMapped;
use crate::file_systems::bytes::Bytes;

/// How descriptors and bitmaps are guarded.
pub enum Checks {
    None,
    /// CRC-16 of descriptors, with the volume's identity.
    Descriptors([u8; 16]),
    /// CRC-32C of all, from this seed.
    Metadata(u32),
}

impl Checks {
    pub fn of(superblock: &[u8], incompat: u32, ro_compat: u32) -> Result<Self, NotMapped> {
        let sb = Bytes(superblock);
        let uuid = superblock.get(0x68..0x78).unwrap_or_default();
        if ro_compat & METADATA_CHECKSUM != 0 {
            let found = superblock.get(..0x3FC).map(|bytes| !crc(bytes));
            if found != Some(sb.le32(0x3FC)) {
                return Err(refused(
                    "the checksum of the superblock differs: expected a whole superblock",
                ));
            }
            let seed = match incompat & CHECKSUM_SEED != 0 {
                true => sb.le32(0x270),
                false => !crc(uuid),
            };
            return Ok(Checks::Metadata(seed));
        }
        Ok(match ro_compat & GDT_CHECKSUM != 0 {
            true => Checks::Descriptors(uuid.try_into().unwrap_or_default()),
            false => Checks::None,
        })
    }

    /// Whether the descriptor of a group is as it was written.
    pub fn is_sound(&self, group: u64, descriptor: &[u8]) -> bool {
        let stored = Bytes(descriptor).le16(0x1E);
        let number = (group as u32).to_le_bytes();
        match self {
            Checks::None => true,
            Checks::Metadata(seed) => {
                let mut bytes = [&number, descriptor].concat();
                bytes[4 + 0x1E..4 + 0x20].fill(0);
                crc_from(*seed, &bytes) as u16 == stored
            }
            Checks::Descriptors(uuid) => {
                let rest = descriptor.get(0x20..).unwrap_or_default();
                let all = [&uuid[..], &number, &descriptor[..0x1E], rest].concat();
                crc16(&all) == stored
            }
        }
    }

    /// Whether the bitmap of a group is as it was written.
    pub fn is_sound_bitmap(&self, descriptor: &[u8], bitmap: &[u8]) -> bool {
        let Checks::Metadata(seed) = self else {
            return true;
        };
        let found = crc_from(*seed, bitmap);
        let stored = Bytes(descriptor);
        match descriptor.len() >= 64 {
            true => found == u32::from(stored.le16(0x18)) | u32::from(stored.le16(0x38)) << 16,
            false => found as u16 == stored.le16(0x18),
        }
    }
}

/// The CRC-32C of bytes from a seed, as the kernel has it: without the inversions of the standard.
fn crc_from(seed: u32, bytes: &[u8]) -> u32 {
    !joined(!seed, crc(bytes), bytes.len() as u64)
}

/// The CRC-16 of Linux (lib/crc16.c) from all ones.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(u16::MAX, |mut sum, &byte| {
        sum ^= u16::from(byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 {
                sum >> 1 ^ 0xA001
            } else {
                sum >> 1
            };
        }
        sum
    })
}
