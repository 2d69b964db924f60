//! The independent access ranges of a disk: the blocks of each of its actuators, as the kernel or the drive
//! states them.

use std::path::Path;

use block::{Extent, Lba, Sectors};
use server::disk::back_end::disk::claim::{Node, node};
use server::disk::back_end::disk::sysfs;
use server::disk::back_end::scsi::{PositioningRange, ScsiDrive};

/// The folder of the kernel's files about devices.
const SYSTEM: &str = "/sys";

/// The ranges of a disk of so many blocks of `block_bytes` bytes: those of its two actuators, or one of all
/// blocks.
pub fn of(path: &Path, blocks: u64, block_bytes: u32) -> Vec<Extent> {
    let of_kernel = match node(path, Path::new(SYSTEM)) {
        Ok(Node::Disk(folder)) => sysfs::access_ranges(&folder, block_bytes),
        _ => Vec::new(),
    };
    let of_drive = || {
        let drive = ScsiDrive::open_to_read(path).ok()?;
        let capacity = drive.capacity();
        // A partition passes on the answers of its disk.
        let is_whole = (capacity.blocks, capacity.block_bytes) == (blocks, block_bytes);
        drive.positioning_ranges().ok().filter(|_| is_whole)
    };
    let stated = match of_kernel.len() {
        0 => of_drive().unwrap_or_default(),
        _ => of_kernel,
    };
    checked(&stated, blocks)
}

/// Two ranges that have all blocks; otherwise one of all. Drives of more actuators are not known.
pub fn checked(stated: &[PositioningRange], blocks: u64) -> Vec<Extent> {
    let extent = |first: u64, blocks: u64| Extent::new(Lba(first), Sectors(blocks));
    if let [first, second] = stated
        && (first.first, second.first) == (0, first.blocks)
        && first.blocks.checked_add(second.blocks) == Some(blocks)
        && let (Ok(first), Ok(second)) = (
            extent(first.first, first.blocks),
            extent(second.first, second.blocks),
        )
    {
        return vec![first, second];
    }
    extent(0, blocks).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_ranges_of_all_blocks_are_taken_apart() {
        let range = |first, blocks| PositioningRange { first, blocks };
        let found = |stated: &[PositioningRange]| {
            let found = checked(stated, 100).into_iter();
            let pairs = found.map(|extent| (extent.start().0, extent.length().0));
            pairs.collect::<Vec<_>>()
        };
        assert_eq!(found(&[range(0, 40), range(40, 60)]), [(0, 40), (40, 60)]);
        for stated in [
            vec![],
            vec![range(0, 100)],
            vec![range(0, 40), range(40, 50)],
            vec![range(0, 40), range(50, 50)],
            vec![range(1, 40), range(41, 59)],
            vec![range(0, 100), range(100, 0)],
            vec![range(0, u64::MAX), range(u64::MAX, 101)],
            vec![range(0, 30), range(30, 30), range(60, 40)],
        ] {
            assert_eq!(found(&stated), [(0, 100)], "{stated:?}");
        }
    }
}
