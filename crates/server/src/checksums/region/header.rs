//! The header of a region, which names its volume.

use super::{CONTENTS, Identity, RegionError, SECTOR, check};

/// The sector of a header.
pub(super) fn encode_header(identity: &Identity, length: u64, number: u64) -> [u8; SECTOR] {
    let mut head = MAGIC.to_vec();
    head.extend(VERSION.to_le_bytes());
    head.extend(identity.block_bytes.to_le_bytes());
    for word in [identity.offset, identity.capacity, length, number] {
        head.extend(word.to_le_bytes());
    }
    for name in [&identity.drive, &identity.volume] {
        let name = &name.as_bytes()[..name.len().min(MOST_NAME)];
        head.extend((name.len() as u16).to_le_bytes());
        head.extend(name);
    }
    let mut bytes = [0; SECTOR];
    bytes[..head.len()].copy_from_slice(&head);
    // The header itself has the number of the region.
    let check = check(0, 0, &bytes);
    bytes[SECTOR - 4..].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// The volume of a header, the number of its bytes, and the number of the region.
pub(super) fn decode_header(bytes: &[u8; SECTOR]) -> Result<(Identity, u64, u64), RegionError> {
    let mut rest = &bytes[..CONTENTS];
    let mut take = |count: usize| {
        let (head, tail) = rest.split_at_checked(count).ok_or(RegionError::Damaged)?;
        rest = tail;
        Ok::<_, RegionError>(head)
    };
    if take(8)? != MAGIC {
        return Err(RegionError::Magic);
    }
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let version = word(take(4)?) as u32;
    if version != VERSION {
        return Err(RegionError::Version(version));
    }
    if bytes[SECTOR - 4..] != check(0, 0, bytes).to_le_bytes() {
        return Err(RegionError::Damaged);
    }
    let block_bytes = word(take(4)?) as u32;
    let [offset, capacity, length, number] = [take(8)?, take(8)?, take(8)?, take(8)?].map(word);
    let mut name = || {
        let count = word(take(2)?) as usize;
        let name = std::str::from_utf8(take(count)?).map_err(|_| RegionError::Damaged)?;
        Ok::<_, RegionError>(name.to_owned())
    };
    let (drive, volume) = (name()?, name()?);
    if length == 0 || length > MOST_BYTES {
        return Err(RegionError::Damaged);
    }
    let identity = Identity {
        drive,
        volume,
        block_bytes,
        offset,
        capacity,
    };
    Ok((identity, length, number))
}

/// Bytes of the largest volume. A choice: an exbibyte.
const MOST_BYTES: u64 = 1 << 60;

const MAGIC: &[u8; 8] = b"HEADSUMS";
pub(super) const VERSION: u32 = 2;
/// Bytes of the longest name in a header. Names in configurations have at most 64.
const MOST_NAME: usize = 128;

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Identity {
            drive,
            volume,
            block_bytes,
            offset,
            capacity,
        } = self;
        write!(
            f,
            "volume {volume} from byte {offset} on of drive {drive}, which has {capacity} bytes in blocks of \
             {block_bytes}"
        )
    }
}
