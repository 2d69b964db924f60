//! The memory of one request.

/// Bytes that lie at a multiple of [`Buffer::ALIGNMENT`], so that they can go to a drive without
/// being copied. They stay where they are when the buffer is moved.
#[derive(Debug)]
pub struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// Direct input and output needs no more on any drive.
    pub const ALIGNMENT: usize = 4096;

    /// Zeroes. The kernel gives pages only when they are used.
    pub fn new(length: usize) -> Self {
        let bytes = vec![0; length + Self::ALIGNMENT].into_boxed_slice();
        let start = bytes.as_ptr().align_offset(Self::ALIGNMENT);
        assert!(start <= Self::ALIGNMENT, "bytes can be aligned");
        Buffer {
            bytes,
            start,
            length,
        }
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }

    /// All of it, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }

    /// Where it begins, for the kernel.
    pub(super) fn address(&mut self) -> u64 {
        self.bytes_mut().as_mut_ptr().expose_provenance() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_stay_where_they_are() {
        for length in [0, 1, 512, 4096, 524_288] {
            let mut buffer = Buffer::new(length);
            let address = buffer.address();
            assert_eq!(address % Buffer::ALIGNMENT as u64, 0);
            assert_eq!(buffer.bytes().len(), length);
            let mut moved = Some(buffer);
            let address_after = moved.as_mut().map(Buffer::address);
            assert_eq!(address_after, Some(address));
        }
    }
}
