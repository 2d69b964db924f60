//! Sense data of the answering machine.

/// Sense keys and codes (SPC-4 tables 43 and 44).
pub type SenseCode = (u8, u8, u8);
pub const NO_SUCH_COMMAND: SenseCode = (5, 0x20, 0);
pub const NO_SUCH_BLOCK: SenseCode = (5, 0x21, 0);
pub const OFF_THE_POINTER: SenseCode = (5, 0x21, 4);
pub const NO_SUCH_FIELD: SenseCode = (5, 0x24, 0);
pub const NO_SUCH_VALUE: SenseCode = (5, 0x26, 0);
pub const UNREADABLE: SenseCode = (3, 0x11, 0);
pub const PROTECTED: SenseCode = (7, 0x27, 0);

/// Sense data in the descriptor format, with the block as information.
pub fn sense((key, code, qualifier): SenseCode, block: Option<u64>) -> Vec<u8> {
    let mut bytes = vec![0x72, key, code, qualifier, 0, 0, 0, 0];
    if let Some(block) = block {
        bytes[7] = 12;
        bytes.extend_from_slice(&[0, 10, 0x80, 0]);
        bytes.extend_from_slice(&block.to_be_bytes());
    }
    bytes
}
