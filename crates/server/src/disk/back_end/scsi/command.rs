//! SCSI commands in bytes: SPC-4 (inquiry, modes) and SBC-3 (blocks). Numbers are big-endian.

use block::Durability;

/// A command descriptor block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScsiCommand {
    bytes: [u8; 16],
    length: usize,
}

/// The kind of values of a mode page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Present values.
    Current,
    /// Ones where a bit can be changed.
    Changeable,
}

/// The duration of a change of modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// Until power off or reset.
    UntilReset,
    /// Permanent, if the drive can save it.
    Saved,
}

/// An inquiry page (SPC-4 7.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// The standard inquiry.
    Standard,
    /// The serial number.
    Serial,
    /// The rotation and form of the device.
    Characteristics,
    /// Limits of commands.
    Limits,
    /// The ranges of blocks of several actuators.
    PositioningRanges,
    /// The ATA drive behind a SCSI translation (SAT-3).
    AtaInformation,
}

/// The caching mode page (SBC-3 6.5.5).
pub const CACHING_PAGE: u8 = 0x08;

impl ScsiCommand {
    /// The bytes, as many as the operation code defines.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Checks whether the drive is ready.
    pub fn test_unit_ready() -> Self {
        ScsiCommand::of(0x00, 6)
    }

    /// Inquires a page. The answer has at most `room` bytes.
    pub fn inquiry(page: Page, room: u16) -> Self {
        let page = match page {
            Page::Standard => None,
            Page::Serial => Some(0x80),
            Page::Characteristics => Some(0xb1),
            Page::Limits => Some(0xb0),
            Page::PositioningRanges => Some(0xb9),
            Page::AtaInformation => Some(0x89),
        };
        ScsiCommand::of(0x12, 6)
            .with(1, &[u8::from(page.is_some()), page.unwrap_or(0)])
            .with(3, &room.to_be_bytes())
    }

    /// Inquires the capacity.
    pub fn read_capacity(room: u32) -> Self {
        // READ CAPACITY (16) is the service action 0x10 of its operation code.
        ScsiCommand::of(0x9e, 16)
            .with(1, &[0x10])
            .with(10, &room.to_be_bytes())
    }

    /// Reads blocks. A durable read comes from the medium.
    pub fn read(first: u64, blocks: u32, durability: Durability) -> Self {
        ScsiCommand::blocks(0x88, first, blocks, durability)
    }

    /// Writes blocks. A durable write ends when they are on the medium.
    pub fn write(first: u64, blocks: u32, durability: Durability) -> Self {
        ScsiCommand::blocks(0x8a, first, blocks, durability)
    }

    /// Reads blocks on the medium without a transfer (BYTCHK 0: the drive compares nothing).
    pub fn verify(first: u64, blocks: u32) -> Self {
        ScsiCommand::blocks(0x8f, first, blocks, Durability::Volatile)
    }

    /// Flushes the cache to the medium.
    pub fn synchronize_cache() -> Self {
        // From block 0 on, 0 blocks: that is all, however large the drive is. So the short command
        // does, which every drive knows; the long one (0x91) QEMU's does not.
        ScsiCommand::of(0x35, 10)
    }

    /// Seeks to the track of a block. SBC-2 was the last standard with it; drives still have it.
    pub fn seek(block: u32) -> Self {
        ScsiCommand::of(0x2b, 10).with(2, &block.to_be_bytes())
    }

    /// Reads a mode page without block descriptors. The answer has at most `room` bytes.
    pub fn mode_sense(page: u8, values: Values, room: u16) -> Self {
        let values = match values {
            Values::Current => 0b00,
            Values::Changeable => 0b01,
        };
        ScsiCommand::of(0x5a, 10)
            .with(1, &[0x08, values << 6 | page & 0x3f])
            .with(7, &room.to_be_bytes())
    }

    /// Sets a mode page. `length` bytes follow, with their header.
    pub fn mode_select(lasting: Lasting, length: u16) -> Self {
        // The page has the format of the standard.
        let saves = match lasting {
            Lasting::UntilReset => 0x10,
            Lasting::Saved => 0x11,
        };
        ScsiCommand::of(0x55, 10)
            .with(1, &[saves])
            .with(7, &length.to_be_bytes())
    }

    pub(super) fn of(code: u8, length: usize) -> Self {
        let mut bytes = [0; 16];
        bytes[0] = code;
        ScsiCommand { bytes, length }
    }

    pub(super) fn with(mut self, at: usize, field: &[u8]) -> Self {
        self.bytes[at..at + field.len()].copy_from_slice(field);
        self
    }

    fn blocks(code: u8, first: u64, blocks: u32, durability: Durability) -> Self {
        let fua = match durability {
            Durability::Volatile => 0,
            Durability::Durable => 0x08,
        };
        ScsiCommand::of(code, 16)
            .with(1, &[fua])
            .with(2, &first.to_be_bytes())
            .with(10, &blocks.to_be_bytes())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The bytes of a command.
    pub(in super::super) fn hex(command: ScsiCommand) -> String {
        let bytes = command.bytes().iter();
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn golden_commands() {
        let durable = Durability::Durable;
        let first = 0x0102_0304_0506_0708;
        for (command, expected) in [
            (ScsiCommand::test_unit_ready(), "000000000000"),
            (ScsiCommand::inquiry(Page::Standard, 96), "120000006000"),
            (ScsiCommand::inquiry(Page::Serial, 252), "12018000fc00"),
            (
                ScsiCommand::inquiry(Page::Characteristics, 64),
                "1201b1004000",
            ),
            (
                ScsiCommand::read_capacity(32),
                "9e10000000000000000000000020 0000",
            ),
            (
                ScsiCommand::read(first, 0x090a_0b0c, Durability::Volatile),
                "88000102030405060708090a0b0c0000",
            ),
            (
                ScsiCommand::write(first, 0x090a_0b0c, durable),
                "8a080102030405060708090a0b0c0000",
            ),
            (
                ScsiCommand::verify(first, 8),
                "8f000102030405060708000000080000",
            ),
            (
                ScsiCommand::inquiry(Page::PositioningRanges, 1024),
                "1201b9040000",
            ),
            (
                ScsiCommand::inquiry(Page::AtaInformation, 572),
                "120189023c00",
            ),
            (ScsiCommand::inquiry(Page::Limits, 64), "1201b0004000"),
            (ScsiCommand::synchronize_cache(), "35000000000000000000"),
            (ScsiCommand::seek(0x0102_0304), "2b000102030400000000"),
            (
                ScsiCommand::mode_sense(CACHING_PAGE, Values::Changeable, 256),
                "5a084800000000010000",
            ),
            (
                ScsiCommand::mode_sense(CACHING_PAGE, Values::Current, 28),
                "5a0808000000 00001c00",
            ),
            (
                ScsiCommand::mode_select(Lasting::UntilReset, 28),
                "55100000000000001c00",
            ),
            (
                ScsiCommand::mode_select(Lasting::Saved, 28),
                "55110000000000001c00",
            ),
        ] {
            assert_eq!(hex(command), expected.replace(' ', ""), "{command:?}");
        }
    }
}
