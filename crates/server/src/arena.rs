//! The memory of requests: one region in pages, mapped once and registered with the kernel.
//!
//! The bytes of a request are in one piece, aligned for direct I/O. The amount is fixed. When it is used
//! up, connections wait and the loop stops reading from them.

#![allow(
    unsafe_code,
    reason = "memory that the kernel and we write in turns has no safe wrapper in std"
)]

use std::io;
use std::ptr::NonNull;

use offset_allocator::{Allocation, Allocator};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// A region of memory, divided into buffers.
pub struct Arena {
    base: NonNull<u8>,
    length: usize,
    pages: Allocator,
}

/// A piece of an arena. Dropping a buffer does not free it, see [`Arena::free`].
#[must_use = "a buffer that is dropped is lost to the arena"]
pub struct Buffer {
    at: NonNull<u8>,
    /// The number of bytes in use.
    length: usize,
    capacity: usize,
    place: Place,
}

enum Place {
    Pages(Allocation),
    /// A request without bytes.
    Empty,
}

/// The alignment of addresses and lengths in the arena: all drives accept it for direct I/O.
pub const PAGE: usize = 4096;

impl Arena {
    /// Maps `length` bytes, rounded up to whole pages.
    ///
    /// # Errors
    /// If the kernel has no such memory.
    pub fn map(length: usize) -> io::Result<Self> {
        let pages = length.div_ceil(PAGE).max(1);
        let count = u32::try_from(pages).map_err(|_| io::ErrorKind::InvalidInput)?;
        let length = pages * PAGE;
        // SAFETY: a new private mapping touches no memory that anybody has.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?
        };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Arena {
            base,
            length,
            pages: Allocator::new(count),
        })
    }

    /// Allocates a buffer of `length` bytes, or `None` if no free piece is long enough.
    pub fn allocate(&mut self, length: usize) -> Option<Buffer> {
        if length == 0 {
            let at = self.base;
            let place = Place::Empty;
            return Some(Buffer {
                at,
                length,
                capacity: 0,
                place,
            });
        }
        let pages = u32::try_from(length.div_ceil(PAGE)).ok()?;
        let allocation = self.pages.allocate(pages)?;
        let offset = allocation.offset as usize * PAGE;
        // SAFETY: the allocator answers places inside the region that it was made for.
        let at = unsafe { self.base.add(offset) };
        Some(Buffer {
            at,
            length,
            capacity: pages as usize * PAGE,
            place: Place::Pages(allocation),
        })
    }

    /// Frees a buffer.
    pub fn free(&mut self, buffer: Buffer) {
        if let Place::Pages(allocation) = buffer.place {
            self.pages.free(allocation);
        }
    }

    /// The number of free bytes.
    pub fn left(&self) -> usize {
        self.pages.storage_report().total_free_space as usize * PAGE
    }

    /// The number of bytes of the arena, also the longest possible buffer.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The whole region, for the registration with the kernel.
    pub fn region(&self) -> libc::iovec {
        libc::iovec {
            iov_base: self.base.as_ptr().cast(),
            iov_len: self.length,
        }
    }

    /// Whether the memory is part of the arena.
    pub fn contains(&self, memory: Memory) -> bool {
        let (base, at) = (self.base.as_ptr() as usize, memory.at as usize);
        at >= base && at + memory.length <= base + self.length
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the region was mapped by `map`, and whoever had buffers of it is gone: the event
        // loop owns both, and ends when nothing is under way.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok());
    }
}

/// A separate mapping of whole pages, unmapped when it is dropped.
pub struct Region {
    base: NonNull<u8>,
    length: usize,
}

impl Region {
    /// Maps `length` bytes of zeroes.
    ///
    /// # Errors
    /// If the kernel has no such memory.
    pub fn map(length: usize) -> io::Result<Self> {
        let length = length.max(1);
        // SAFETY: a new private mapping touches no memory that anybody has.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?
        };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Region { base, length })
    }

    /// The whole region, by address.
    pub fn memory(&self) -> Memory {
        Memory {
            at: self.base.as_ptr(),
            length: self.length,
        }
    }

    /// The bytes. As with a [`Buffer`], no back end may write to them at the same time.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the region is this one's alone, and `&self` says that nobody writes to it here.
        unsafe { self.memory().bytes() }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the region is this one's alone, and `&mut self` says that nobody else looks.
        unsafe { self.memory().bytes_mut() }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`; its owner drops it when no command uses it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok());
    }
}

// SAFETY: the region belongs to its value alone.
unsafe impl Send for Region {}
// SAFETY: the region belongs to the arena alone, wherever that is.
unsafe impl Send for Arena {}
// SAFETY: a buffer is the only one that names its piece of the region.
unsafe impl Send for Buffer {}

/// A range of memory by address, for the kernel or a back end. The owner keeps the buffer meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The first byte.
    pub at: *mut u8,
    /// The number of bytes.
    pub length: usize,
}

// SAFETY: an address; whoever uses it promises that the bytes are there.
unsafe impl Send for Memory {}

impl Memory {
    /// No bytes.
    pub const NONE: Memory = Memory {
        at: std::ptr::null_mut(),
        length: 0,
    };

    /// The `length` bytes from `offset` on.
    ///
    /// # Panics
    /// If the range is shorter.
    pub fn part(self, offset: usize, length: usize) -> Memory {
        assert!(offset + length <= self.length, "past the end of a buffer");
        Memory {
            // SAFETY: inside the same piece, as just asserted.
            at: unsafe { self.at.add(offset) },
            length,
        }
    }

    /// The bytes.
    ///
    /// # Safety
    /// The owner must keep the memory, and no other party may write to it meanwhile.
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.at, self.length) }
    }

    /// The bytes, to be written.
    ///
    /// # Safety
    /// The owner must keep the memory, and no other party may use it meanwhile.
    pub unsafe fn bytes_mut<'a>(self) -> &'a mut [u8] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.length) }
    }
}

impl Buffer {
    /// All of it, by address.
    pub fn memory(&self) -> Memory {
        Memory {
            at: self.at.as_ptr(),
            length: self.length,
        }
    }

    /// How many bytes it has.
    pub fn length(&self) -> usize {
        self.length
    }

    /// How many bytes of the arena it takes up.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// From now on it has so many bytes, from the same first one on: what is behind them stays as
    /// it is, and can be shown again.
    ///
    /// # Panics
    /// If it never had so many.
    pub fn show(&mut self, length: usize) {
        assert!(length <= self.capacity, "past the end of a buffer");
        self.length = length;
    }

    /// The bytes. While the kernel or a back end writes to them, nobody may look: the event loop
    /// hands out a buffer's bytes before its command is given and after it has ended only.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the piece is this buffer's alone, and `&self` says that nobody writes to it here.
        unsafe { self.memory().bytes() }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the piece is this buffer's alone, and `&mut self` says that nobody else looks.
        unsafe { self.memory().bytes_mut() }
    }
}

/// The bytes of an operation.
#[derive(Default)]
pub(crate) enum Bytes {
    #[default]
    None,
    Own(Buffer),
    /// Memory of the device, where the back end has it mapped.
    Mapped(Memory),
    /// Memory of the front end that has posted the operation.
    Lent(Memory),
    /// A copy of a recording's memory.
    Copied(Region),
}

impl Bytes {
    /// How much of the volumes' memory they take up.
    pub(crate) fn capacity(&self) -> usize {
        match self {
            Bytes::Own(buffer) => buffer.capacity(),
            Bytes::None | Bytes::Mapped(_) | Bytes::Lent(_) | Bytes::Copied(_) => 0,
        }
    }

    pub(crate) fn memory(&self) -> Option<Memory> {
        match self {
            Bytes::None => None,
            Bytes::Own(buffer) => Some(buffer.memory()),
            Bytes::Copied(region) => Some(region.memory()),
            Bytes::Mapped(memory) | Bytes::Lent(memory) => Some(*memory),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_apart_and_come_back() {
        let mut arena = Arena::map(64 * PAGE).expect("memory");
        let mut buffers = Vec::new();
        while let Some(mut buffer) = arena.allocate(3 * PAGE - 100) {
            assert_eq!(buffer.memory().at as usize % PAGE, 0);
            let mark = buffers.len() as u8;
            buffer.bytes_mut().fill(mark);
            buffers.push(buffer);
        }
        assert_eq!(buffers.len(), 21);
        for (mark, buffer) in buffers.iter().enumerate() {
            assert!(buffer.bytes().iter().all(|&byte| byte == mark as u8));
        }
        for buffer in buffers {
            arena.free(buffer);
        }
        assert_eq!(arena.left(), 64 * PAGE);
        let all = arena
            .allocate(64 * PAGE)
            .expect("all of it in one piece again");
        assert!(arena.allocate(1).is_none());
        let mut all = all;
        all.bytes_mut()[PAGE] = 7;
        all.show(PAGE);
        assert_eq!((all.bytes().len(), all.capacity()), (PAGE, 64 * PAGE));
        all.show(PAGE + 1);
        assert_eq!(all.bytes().last(), Some(&7));
        let none = arena.allocate(0).expect("a request without bytes");
        arena.free(none);
        arena.free(all);
    }
}
