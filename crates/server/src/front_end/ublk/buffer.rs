//! The memory of one request.

#![allow(
    unsafe_code,
    reason = "the driver and the drive's loop use a buffer by address while its owner is moved about"
)]

use std::io;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::arena::{Memory, PAGE};

/// A buffer that is aligned to [`PAGE`], so that drives can access it directly. Its address does not
/// change when the buffer is moved.
#[derive(Debug)]
pub struct RequestBuffer {
    base: NonNull<u8>,
    length: usize,
}

impl RequestBuffer {
    /// A buffer of `length` zero bytes. The kernel allocates its pages on first use.
    ///
    /// # Errors
    /// If the kernel cannot map the memory.
    pub fn new(length: usize) -> io::Result<Self> {
        let length = length.max(1).next_multiple_of(PAGE);
        // SAFETY: a new private mapping touches no memory that anybody has.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(RequestBuffer { base, length })
    }

    /// The first `length` bytes.
    ///
    /// # Panics
    /// If the buffer is shorter.
    pub fn bytes(&self, length: usize) -> &[u8] {
        // SAFETY: the mapping is this buffer's alone, and `&self` says that nobody writes to it.
        unsafe { self.whole().part(0, length).bytes() }
    }

    /// The first `length` bytes, writable.
    ///
    /// # Panics
    /// If the buffer is shorter.
    pub fn bytes_mut(&mut self, length: usize) -> &mut [u8] {
        // SAFETY: the mapping is this buffer's alone, and `&mut self` says that nobody else looks.
        unsafe { self.whole().part(0, length).bytes_mut() }
    }

    /// The whole buffer by address.
    pub(super) fn whole(&self) -> Memory {
        Memory {
            at: self.base.as_ptr(),
            length: self.length,
        }
    }

    /// The address of the first byte, for the kernel.
    pub(super) fn address(&self) -> u64 {
        self.base.as_ptr().expose_provenance() as u64
    }
}

impl Drop for RequestBuffer {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`. Who was given the address has ended: a buffer is with its request
        // until that has ended, and then with the queue, whose ring is dropped before it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok());
    }
}

// SAFETY: the mapping belongs to the buffer alone, wherever that is.
unsafe impl Send for RequestBuffer {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_stay_where_they_are() {
        for length in [0, 1, 512, 4096, 524_288] {
            let mut buffer = RequestBuffer::new(length).expect("memory");
            let address = buffer.address();
            assert_eq!(address % PAGE as u64, 0);
            assert!(buffer.bytes(length).iter().all(|&byte| byte == 0));
            buffer.bytes_mut(length).fill(7);
            let moved = Box::new(buffer);
            assert_eq!(moved.address(), address);
            assert!(moved.bytes(length).iter().all(|&byte| byte == 7));
        }
    }
}
