//! Random operations on sequential-write zones, against a model of pointers and contents.

use std::collections::BTreeMap;

use block::Durability;
use drive::Imperfections;

use crate::commands::{drive, truth};
use crate::machine::{Behind, ScsiMachine};

/// Zones of this many blocks; the operations are on the first ones.
const ZONE: u64 = 64;
const ZONES: u64 = 12;

const OPERATIONS: u32 = 10_000;

/// Numbers that look random (the multiplier of PCG).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// A write succeeds at a zone's pointer, or at its first block, which resets it, and not past its end. Any
/// other is refused and changes nothing. Reads succeed anywhere.
#[test]
fn no_write_off_the_pointer_changes_anything() {
    let imperfections = Imperfections {
        sequential_zone: Some(ZONE),
        ..Imperfections::default()
    };
    let machine = ScsiMachine::new(truth(), imperfections, Behind::Scsi);
    let drive = drive(&machine);
    let mut numbers = Numbers(7);
    let mut pointers = [0u64; ZONES as usize];
    let mut contents: BTreeMap<u64, u8> = BTreeMap::new();
    let (mut written, mut refused) = (0, 0);
    for operation in 0..OPERATIONS {
        let zone = numbers.below(ZONES);
        let pointer = pointers[zone as usize];
        let offset = match numbers.below(10) {
            0..7 => pointer % ZONE,
            7 => 0,
            _ => numbers.below(ZONE),
        };
        let length = 1 + numbers.below(8);
        let first = zone * ZONE + offset;
        let byte = (operation % 255) as u8 + 1;
        let bytes = vec![byte; length as usize * 512];
        let durability = match numbers.below(2) {
            0 => Durability::Volatile,
            _ => Durability::Durable,
        };
        let fits = offset + length <= ZONE;
        match drive.write(first, &bytes, durability) {
            Ok(()) => {
                assert!(fits && (offset == pointer || offset == 0), "{operation}");
                pointers[zone as usize] = offset + length;
                contents.extend((first..first + length).map(|block| (block, byte)));
                written += 1;
            }
            Err(failed) => {
                assert!(!fits || (offset != pointer && offset != 0), "{operation}");
                let said = failed.to_string();
                assert!(said.starts_with("sense 5/21/04: "), "{said}");
                refused += 1;
            }
        }
        let block = numbers.below(ZONE * ZONES);
        let mut read = [0; 512];
        drive
            .read(block, &mut read, Durability::Volatile)
            .expect("a read");
        let expected = contents.get(&block).copied().unwrap_or(0);
        assert_eq!(read[0], expected, "block {block} at {operation}");
    }
    assert!(written > 4000 && refused > 1000, "{written}, {refused}");
}
