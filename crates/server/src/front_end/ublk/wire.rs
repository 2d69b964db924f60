//! The binary formats of the driver's commands (the kernel's `include/uapi/linux/ublk_cmd.h`).
//! Numbers have the byte order of the machine.

use super::{
    Access, DeviceSetting, DeviceShape, FixedProperties, Medium, Orphans, Trims, UblkError,
};
use block::Durability;
use block::operation::{Ask, Space, ZeroingPace};

/// Bytes of the kernel's sector, its unit of length for all block sizes.
pub const SECTOR: u64 = 512;

/// A command for the control device or for a queue, as an ioctl's number: direction (2 reads, 3
/// reads and writes), size of its structure, the letter, the command.
const fn ioctl(direction: u32, size: usize, command: u32) -> u32 {
    direction << 30 | (size as u32) << 16 | (b'u' as u32) << 8 | command
}

/// Bytes of a command for the control device.
pub const CONTROL_BYTES: usize = 32;
/// Bytes of the driver's record of a device.
pub const DEVICE_RECORD_BYTES: usize = 64;
/// Bytes of a command for a queue.
pub const QUEUE_BYTES: usize = 16;
/// Bytes of a request's description.
pub const DESCRIPTION_BYTES: usize = 24;
/// Bytes of the parameters of a device.
pub const PARAMETER_BYTES: usize = 60;

/// The commands of the control device.
pub const GET_DEVICE: u32 = ioctl(2, CONTROL_BYTES, 0x02);
pub const ADD_DEVICE: u32 = ioctl(3, CONTROL_BYTES, 0x04);
pub const DELETE_DEVICE: u32 = ioctl(3, CONTROL_BYTES, 0x05);
pub const START_DEVICE: u32 = ioctl(3, CONTROL_BYTES, 0x06);
pub const STOP_DEVICE: u32 = ioctl(3, CONTROL_BYTES, 0x07);
pub const SET_PARAMETERS: u32 = ioctl(3, CONTROL_BYTES, 0x08);
pub const GET_PARAMETERS: u32 = ioctl(2, CONTROL_BYTES, 0x09);
pub const BEGIN_RECOVERY: u32 = ioctl(3, CONTROL_BYTES, 0x10);
pub const END_RECOVERY: u32 = ioctl(3, CONTROL_BYTES, 0x11);
pub const DELETE_DEVICE_ASYNC: u32 = ioctl(2, CONTROL_BYTES, 0x14);

/// The commands of a queue.
pub const FETCH: u32 = ioctl(3, QUEUE_BYTES, 0x20);
pub const COMMIT_AND_FETCH: u32 = ioctl(3, QUEUE_BYTES, 0x21);

/// The largest depth of a queue. The descriptions of each queue have room for it.
pub const DEEPEST: u16 = 4096;
/// The largest length of a request's buffer in bytes.
pub const LONGEST: u32 = 1 << 25;

/// The features in use: recovery with repeated requests, and commands with ioctl numbers.
const USER_RECOVERY: u64 = 1 << 3;
const USER_RECOVERY_REISSUE: u64 = 1 << 4;
const IOCTL_ENCODE: u64 = 1 << 6;

/// Attributes of the parameters.
const READ_ONLY: u32 = 1 << 0;
const ROTATIONAL: u32 = 1 << 1;
const VOLATILE_CACHE: u32 = 1 << 2;
const FUA: u32 = 1 << 3;

/// The sets of parameters that are present: basic, discard.
const HAS_BASIC: u32 = 1 << 0;
const HAS_DISCARD: u32 = 1 << 1;

/// Flags of a request.
const IS_FUA: u32 = 1 << 13;
const KEEPS_SPACE: u32 = 1 << 15;

/// Sectors of the longest trim or write of zeroes: 1 GiB. A choice: such a request has no bytes,
/// but a volume may have to write them.
const EMPTY_SECTORS: u32 = 1 << 21;

/// A command for the control device: the device, and an address with its length, or a number.
pub fn control(device: u32, address: u64, length: u16, number: u64) -> [u8; 80] {
    let mut bytes = [0; 80];
    bytes[0..4].copy_from_slice(&device.to_ne_bytes());
    // No queue in particular.
    bytes[4..6].copy_from_slice(&u16::MAX.to_ne_bytes());
    bytes[6..8].copy_from_slice(&length.to_ne_bytes());
    bytes[8..16].copy_from_slice(&address.to_ne_bytes());
    bytes[16..24].copy_from_slice(&number.to_ne_bytes());
    bytes
}

/// A command for the queue: the result of the tag's request, and the buffer address of the next one.
pub fn queue(tag: u16, result: i32, address: u64) -> [u8; QUEUE_BYTES] {
    let mut bytes = [0; QUEUE_BYTES];
    // The first two are the queue's number: there is one.
    bytes[2..4].copy_from_slice(&tag.to_ne_bytes());
    bytes[4..8].copy_from_slice(&result.to_ne_bytes());
    bytes[8..16].copy_from_slice(&address.to_ne_bytes());
    bytes
}

/// The driver's record of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRecord {
    pub depth: u16,
    pub state: u16,
    pub longest: u32,
    pub device: u32,
    /// The server's process, after the start.
    pub process: i32,
    pub flags: u64,
    /// The server's mark, which the driver does not interpret.
    pub mark: u64,
}

impl DeviceRecord {
    /// The record of a device to be added. The number `u32::MAX` stands for any free one.
    pub fn new(device: u32, setting: DeviceSetting) -> Self {
        let recovery = match setting.orphans {
            Orphans::Wait => USER_RECOVERY | USER_RECOVERY_REISSUE,
            Orphans::Fail => 0,
        };
        DeviceRecord {
            depth: setting.depth,
            state: 0,
            longest: setting.longest,
            device,
            process: 0,
            flags: recovery | IOCTL_ENCODE,
            mark: setting.mark,
        }
    }

    /// Whether the driver repeats the requests in flight of a dead server.
    pub fn is_recoverable(&self) -> bool {
        self.flags & USER_RECOVERY_REISSUE != 0
    }

    pub fn bytes(&self) -> [u8; DEVICE_RECORD_BYTES] {
        let mut bytes = [0; DEVICE_RECORD_BYTES];
        bytes[0..2].copy_from_slice(&1u16.to_ne_bytes());
        bytes[2..4].copy_from_slice(&self.depth.to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.state.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.longest.to_ne_bytes());
        bytes[12..16].copy_from_slice(&self.device.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.process.to_ne_bytes());
        bytes[24..32].copy_from_slice(&self.flags.to_ne_bytes());
        bytes[32..40].copy_from_slice(&self.mark.to_ne_bytes());
        bytes
    }

    pub fn parse(bytes: &[u8; DEVICE_RECORD_BYTES]) -> Self {
        DeviceRecord {
            depth: number(bytes, 2, u16::from_ne_bytes),
            state: number(bytes, 4, u16::from_ne_bytes),
            longest: number(bytes, 8, u32::from_ne_bytes),
            device: number(bytes, 12, u32::from_ne_bytes),
            process: number(bytes, 16, i32::from_ne_bytes),
            flags: number(bytes, 24, u64::from_ne_bytes),
            mark: number(bytes, 32, u64::from_ne_bytes),
        }
    }
}

/// The parameters of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters([u8; PARAMETER_BYTES]);

impl Parameters {
    /// The parameters for the properties of a device.
    pub fn of(shape: &DeviceShape, longest: u32) -> Result<Self, UblkError> {
        let logical = shape.logical_block;
        if !logical.is_power_of_two() || !(512..=4096).contains(&logical) {
            return Err(UblkError::Shape(
                "blocks but of 512, 1024, 2048 or 4096 bytes",
            ));
        }
        if !shape.physical_block.is_power_of_two() || shape.physical_block < logical {
            let what = "physical blocks that are no power of two or less than logical ones";
            return Err(UblkError::Shape(what));
        }
        if shape.bytes == 0 || !shape.bytes.is_multiple_of(u64::from(logical)) {
            return Err(UblkError::Shape(
                "a length that is no multiple of its block",
            ));
        }
        let mut attributes = VOLATILE_CACHE | FUA;
        if shape.access == Access::ReadOnly {
            attributes |= READ_ONLY;
        }
        if shape.medium == Medium::Rotational {
            attributes |= ROTATIONAL;
        }
        let mut bytes = [0; PARAMETER_BYTES];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        let shift = |block: u32| block.trailing_zeros() as u8;
        let physical = shift(shape.physical_block);
        let trims = match shape.space {
            Trims::Passed => EMPTY_SECTORS,
            Trims::None => 0,
        };
        put(&(PARAMETER_BYTES as u32).to_ne_bytes());
        put(&(HAS_BASIC | HAS_DISCARD).to_ne_bytes());
        put(&attributes.to_ne_bytes());
        // Logical and physical block, best and least length of a request.
        put(&[shift(logical), physical, physical, physical]);
        put(&(longest / SECTOR as u32).to_ne_bytes());
        // Nothing stops requests from crossing any boundary.
        put(&0u32.to_ne_bytes());
        put(&(shape.bytes / SECTOR).to_ne_bytes());
        put(&0u64.to_ne_bytes());
        // Discards: alignment and granularity in bytes, longest discard, longest zeroes, pieces.
        put(&0u32.to_ne_bytes());
        put(&logical.to_ne_bytes());
        put(&trims.to_ne_bytes());
        put(&EMPTY_SECTORS.to_ne_bytes());
        put(&1u16.to_ne_bytes());
        Ok(Parameters(bytes))
    }

    /// Empty parameters for a query: the driver fills them.
    pub fn unknown() -> Self {
        let mut bytes = [0; PARAMETER_BYTES];
        bytes[0..4].copy_from_slice(&(PARAMETER_BYTES as u32).to_ne_bytes());
        Parameters(bytes)
    }

    /// The properties that clients rely on.
    pub fn fixed(&self) -> FixedProperties {
        let attributes = number(&self.0, 8, u32::from_ne_bytes);
        let sectors = number(&self.0, 24, u64::from_ne_bytes);
        FixedProperties {
            bytes: sectors.saturating_mul(SECTOR),
            // Shifts of more than 31 are none that the driver takes.
            logical_block: 1u32.checked_shl(u32::from(self.0[12])).unwrap_or(0),
            access: match attributes & READ_ONLY {
                0 => Access::ReadWrite,
                _ => Access::ReadOnly,
            },
        }
    }

    pub fn bytes(&self) -> &[u8; PARAMETER_BYTES] {
        &self.0
    }

    pub fn bytes_mut(&mut self) -> &mut [u8; PARAMETER_BYTES] {
        &mut self.0
    }
}

/// The operation, the first byte and the length in bytes of a described request. `None` if the
/// operation is unknown, for example one of zoned drives.
pub fn request(bytes: &[u8; DESCRIPTION_BYTES]) -> Option<(Ask, u64, u64)> {
    let flags = number(bytes, 0, u32::from_ne_bytes);
    let sectors = number(bytes, 4, u32::from_ne_bytes);
    let first = number(bytes, 8, u64::from_ne_bytes);
    let durability = match flags & IS_FUA {
        0 => Durability::Volatile,
        _ => Durability::Durable,
    };
    let space = match flags & KEEPS_SPACE {
        0 => Space::MayBeFreed,
        _ => Space::Kept,
    };
    let ask = match flags & 0xff {
        0 => Ask::Read,
        1 => Ask::Write { durability },
        2 => Ask::Flush,
        3 => Ask::Trim { durability },
        5 => Ask::Zero {
            durability,
            space,
            pace: ZeroingPace::Any,
        },
        _ => return None,
    };
    let (offset, length) = match ask {
        Ask::Flush => (0, 0),
        _ => (first.checked_mul(SECTOR)?, u64::from(sectors) * SECTOR),
    };
    Some((ask, offset, length))
}

/// The number at byte `at`.
fn number<const N: usize, T>(bytes: &[u8], at: usize, from: fn([u8; N]) -> T) -> T {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    from(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: DeviceShape = DeviceShape {
        bytes: 1 << 30,
        logical_block: 512,
        physical_block: 4096,
        medium: Medium::Rotational,
        access: Access::ReadWrite,
        space: Trims::Passed,
    };

    #[test]
    fn commands_have_the_numbers_of_the_kernel() {
        // As a C program prints them that includes linux/ublk_cmd.h.
        assert_eq!(ADD_DEVICE, 0xc020_7504);
        assert_eq!(GET_DEVICE, 0x8020_7502);
        assert_eq!(END_RECOVERY, 0xc020_7511);
        assert_eq!(GET_PARAMETERS, 0x8020_7509);
        assert_eq!(DELETE_DEVICE_ASYNC, 0x8020_7514);
        assert_eq!(FETCH, 0xc010_7520);
        assert_eq!(COMMIT_AND_FETCH, 0xc010_7521);
    }

    #[test]
    fn golden_parameters() {
        let parameters = Parameters::of(&SHAPE, 512 << 10).expect("a shape");
        let words: Vec<u32> = parameters
            .bytes()
            .chunks(4)
            .map(|four| number(four, 0, u32::from_ne_bytes))
            .collect();
        let expected = [
            60,
            3, // length, types
            0b1110,
            0x0c0c_0c09,
            1024,
            0, // attributes, shifts, longest, chunk
            1 << 21,
            0,
            0,
            0, // sectors, boundary
            0,
            512,
            1 << 21,
            1 << 21,
            1, // discards
        ];
        assert_eq!(words, expected);
        let read_only = DeviceShape {
            access: Access::ReadOnly,
            medium: Medium::Solid,
            ..SHAPE
        };
        let parameters = Parameters::of(&read_only, 512 << 10).expect("a shape");
        assert_eq!(parameters.bytes()[8], 0b1101);
    }

    #[test]
    fn shapes_that_the_kernel_does_not_take_are_refused() {
        let refused = |shape: DeviceShape| Parameters::of(&shape, 4096).is_err();
        for logical_block in [0, 256, 520, 8192] {
            assert!(refused(DeviceShape {
                logical_block,
                ..SHAPE
            }));
        }
        assert!(refused(DeviceShape {
            physical_block: 256,
            ..SHAPE
        }));
        assert!(refused(DeviceShape {
            bytes: 513,
            ..SHAPE
        }));
        assert!(refused(DeviceShape { bytes: 0, ..SHAPE }));
    }

    fn described(flags: u32, sectors: u32, first: u64) -> Option<(Ask, u64, u64)> {
        let mut bytes = [0; DESCRIPTION_BYTES];
        bytes[0..4].copy_from_slice(&flags.to_ne_bytes());
        bytes[4..8].copy_from_slice(&sectors.to_ne_bytes());
        bytes[8..16].copy_from_slice(&first.to_ne_bytes());
        request(&bytes)
    }

    #[test]
    fn descriptions_are_requests() {
        let durability = Durability::Durable;
        assert_eq!(described(0, 8, 16), Some((Ask::Read, 8192, 4096)));
        let write = Ask::Write { durability };
        assert_eq!(described(1 | 1 << 13, 1, 0), Some((write, 0, 512)));
        let flush = Some((Ask::Flush, 0, 0));
        assert_eq!(described(2, 0, u64::MAX), flush);
        let zero = Ask::Zero {
            durability: Durability::Volatile,
            space: Space::Kept,
            pace: ZeroingPace::Any,
        };
        assert_eq!(described(5 | 1 << 15, 2, 1), Some((zero, 512, 1024)));
    }

    #[test]
    fn what_is_unknown_or_too_far_is_no_request() {
        assert_eq!(described(15, 8, 0), None);
        assert_eq!(described(4, 8, 0), None);
        assert_eq!(described(0, 8, u64::MAX), None);
    }

    #[test]
    fn a_standing_is_what_was_written() {
        let setting = DeviceSetting {
            mark: 0x0123_4567_89ab_cdef,
            ..DeviceSetting::default()
        };
        let record = DeviceRecord {
            process: 77,
            ..DeviceRecord::new(7, setting)
        };
        assert_eq!(DeviceRecord::parse(&record.bytes()), record);
        assert!(record.is_recoverable());
        let setting = DeviceSetting {
            orphans: Orphans::Fail,
            ..setting
        };
        assert!(!DeviceRecord::new(7, setting).is_recoverable());
    }

    #[test]
    fn the_face_of_a_device_is_what_it_was_added_with() {
        for shape in [
            SHAPE,
            DeviceShape {
                bytes: 12 << 20,
                logical_block: 4096,
                access: Access::ReadOnly,
                ..SHAPE
            },
        ] {
            let parameters = Parameters::of(&shape, 512 << 10).expect("a shape");
            assert_eq!(parameters.fixed(), shape.fixed());
        }
        assert_eq!(Parameters::unknown().bytes()[..4], 60u32.to_ne_bytes());
    }
}
