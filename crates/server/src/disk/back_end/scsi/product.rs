//! Parsers of the inquiry pages that say what a drive is built of: limits, independent ranges of blocks,
//! and whether a SCSI translation has an ATA drive behind it. For any bytes.

use super::ScsiError;
use super::answer::{short, vital};

/// A range of blocks that an actuator of its own serves (SBC-5 6.6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositioningRange {
    /// The first block.
    pub first: u64,
    /// The number of blocks.
    pub blocks: u64,
}

/// Bytes before the first range and of each range in the page of concurrent positioning ranges.
const RANGES_AT: usize = 60;
const RANGE_BYTES: usize = 32;

/// Parses the page of concurrent positioning ranges (B9h), in the order of blocks.
///
/// # Errors
/// If it is another page.
pub fn positioning_ranges(bytes: &[u8]) -> Result<Vec<PositioningRange>, ScsiError> {
    let page = vital(bytes, "positioning ranges", 0xb9)?;
    let ranges = page.get(RANGES_AT..).unwrap_or_default();
    let mut found: Vec<PositioningRange> = ranges
        .chunks_exact(RANGE_BYTES)
        .map(|range| PositioningRange {
            first: number(&range[8..16]),
            blocks: number(&range[16..24]),
        })
        .filter(|range| range.blocks > 0)
        .collect();
    found.sort_unstable_by_key(|range| range.first);
    Ok(found)
}

/// The most blocks of a command by the page of block limits (B0h); `None` if the drive states none.
///
/// # Errors
/// If it is another page, or too short.
pub fn most_blocks(bytes: &[u8]) -> Result<Option<u32>, ScsiError> {
    let page = vital(bytes, "block limits", 0xb0)?;
    let most = page
        .get(4..8)
        .ok_or_else(|| short("block limits", 12, bytes.len()))?;
    let most = number(most) as u32;
    Ok((most > 0).then_some(most))
}

/// Checks that a page is the one of ATA information (89h), which only translations for ATA drives have.
///
/// # Errors
/// If it is another page, or too short.
pub fn is_ata(bytes: &[u8]) -> Result<(), ScsiError> {
    vital(bytes, "ATA information", 0x89).map(|_| ())
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_ranges_of_two_actuators() {
        let mut page = vec![0, 0xb9, 0, 124];
        page.extend_from_slice(&[0; RANGES_AT]);
        for (first, blocks) in [(1000u64, 900u64), (0, 1000)] {
            let mut range = [0; RANGE_BYTES];
            range[8..16].copy_from_slice(&first.to_be_bytes());
            range[16..24].copy_from_slice(&blocks.to_be_bytes());
            page.extend_from_slice(&range);
        }
        let range = |first, blocks| PositioningRange { first, blocks };
        let found = positioning_ranges(&page).expect("the page");
        assert_eq!(found, [range(0, 1000), range(1000, 900)]);
    }

    #[test]
    fn golden_limits() {
        let mut page = vec![0, 0xb0, 0, 60, 0, 0, 0, 0, 0, 0, 4, 0];
        page.resize(64, 0);
        assert_eq!(most_blocks(&page).ok(), Some(Some(1024)));
        page[10] = 0;
        assert_eq!(most_blocks(&page).ok(), Some(None));
        assert!(most_blocks(&page[..8]).is_err());
        assert!(is_ata(&page).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for code in [0xb0, 0xb9, 0x89] {
                if let Some(byte) = bytes.get_mut(1) {
                    *byte = code;
                }
                let _ = (most_blocks(&bytes), positioning_ranges(&bytes), is_ata(&bytes));
            }
        }
    }
}
