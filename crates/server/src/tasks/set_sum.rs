//! A checksum of a set of blocks that does not depend on their order.

/// The sum of the checksums of each 512 bytes with their position.
///
/// It detects wrong, missing and repeated blocks. It is no protection against attacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetSum {
    sum: u64,
    pieces: u64,
}

impl SetSum {
    /// Adds the bytes at `offset`, both in multiples of 512.
    pub fn add(&mut self, offset: u64, bytes: &[u8]) {
        for (place, piece) in (offset / PIECE as u64..).zip(bytes.chunks(PIECE)) {
            self.sum = self.sum.wrapping_add(mixed(place, piece));
            self.pieces += 1;
        }
    }

    /// The sum and the number of pieces, to continue later.
    pub fn parts(self) -> (u64, u64) {
        (self.sum, self.pieces)
    }

    /// The sum with these [parts](Self::parts).
    pub fn of_parts(sum: u64, pieces: u64) -> Self {
        SetSum { sum, pieces }
    }
}

impl std::fmt::Display for SetSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}-{}", self.sum, self.pieces)
    }
}

/// FNV-1a over words of 64 bits, begun with the position. The finaliser of MurmurHash3 mixes the result, so
/// that sums of similar pieces do not cancel out.
fn mixed(place: u64, piece: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ place;
    for word in piece.chunks(8) {
        let mut bytes = [0; 8];
        bytes[..word.len()].copy_from_slice(word);
        hash = (hash ^ u64::from_le_bytes(bytes)).wrapping_mul(0x0000_0100_0000_01b3);
        hash ^= hash >> 29;
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Bytes of a piece: the smallest block of drives.
const PIECE: usize = 512;

#[cfg(test)]
mod tests {
    use super::SetSum;

    #[test]
    fn the_order_does_not_matter_and_everything_else_does() {
        let bytes: Vec<u8> = (0..4096u32).map(|n| (n * 7 % 251) as u8).collect();
        let mut whole = SetSum::default();
        whole.add(0, &bytes);
        let mut parts = SetSum::default();
        for place in [5, 1, 7, 0, 2, 6, 4, 3] {
            parts.add(place * 512, &bytes[place as usize * 512..][..512]);
        }
        assert_eq!(whole, parts);
        let mut swapped = SetSum::default();
        swapped.add(0, &bytes[512..1024]);
        swapped.add(512, &bytes[..512]);
        swapped.add(1024, &bytes[1024..]);
        assert_ne!(whole, swapped, "two pieces at each other's places");
        let mut twice = whole;
        twice.add(0, &bytes[..512]);
        assert_ne!(whole, twice);
    }
}
