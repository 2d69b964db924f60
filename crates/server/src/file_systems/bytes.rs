//! Numbers of a structure on a disk. A place past its end has a zero: parsers check what they use.

/// The bytes of a structure.
#[derive(Clone, Copy)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    /// So many bytes from a place on; zeroes past the end.
    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        let mut all = [0; N];
        let rest = self.0.get(at..).unwrap_or_default();
        let count = rest.len().min(N);
        all[..count].copy_from_slice(&rest[..count]);
        all
    }

    pub fn u8(self, at: usize) -> u8 {
        self.array::<1>(at)[0]
    }

    pub fn le16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub fn le32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub fn le64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    pub fn be16(self, at: usize) -> u16 {
        u16::from_be_bytes(self.array(at))
    }

    pub fn be32(self, at: usize) -> u32 {
        u32::from_be_bytes(self.array(at))
    }

    pub fn be64(self, at: usize) -> u64 {
        u64::from_be_bytes(self.array(at))
    }
}
