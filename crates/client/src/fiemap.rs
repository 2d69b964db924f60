//! The extents of a file, from its file system (`FS_IOC_FIEMAP`, linux/fiemap.h).

#![allow(unsafe_code, reason = "an ioctl that no crate wraps")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// One extent of a file, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileExtent {
    /// The offset in the file.
    pub logical: u64,
    /// The offset on the block device.
    pub physical: u64,
    /// The length.
    pub length: u64,
    /// `FLAG_*`.
    pub flags: u32,
}

/// The last extent of the file.
const LAST: u32 = 0x1;
/// Not yet allocated on the device.
pub(crate) const DELALLOC: u32 = 0x4;
/// The device's bytes differ from the file's: compressed or encrypted.
pub(crate) const ENCODED: u32 = 0x8 | 0x80;
/// The bytes are inside metadata, not block-aligned, or at an unknown location.
pub(crate) const NO_PLACE: u32 = 0x2 | 0x100 | 0x200 | 0x400;
/// Allocated and never written: reads return zeroes.
pub(crate) const UNWRITTEN: u32 = 0x800;
/// Other files share these blocks: a write would go elsewhere.
pub(crate) const SHARED: u32 = 0x2000;

/// Write back dirty pages first (`FIEMAP_FLAG_SYNC`).
const SYNC: u32 = 0x1;
/// `_IOWR('f', 11, struct fiemap)`: the structure has 32 bytes.
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
/// Extents per call. A choice: 14 KiB on the stack.
const AT_ONCE: usize = 256;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` with room for its extents.
#[repr(C)]
struct FiemapRequest {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [RawExtent; AT_ONCE],
}

/// The extents of a file in file order, at most `limit + 1` of them.
pub(crate) fn extents(file: &File, limit: usize) -> io::Result<Vec<FileExtent>> {
    let mut found: Vec<FileExtent> = Vec::new();
    let mut start = 0;
    loop {
        let mut request = FiemapRequest {
            start,
            length: u64::MAX - start,
            flags: SYNC,
            mapped: 0,
            count: AT_ONCE as u32,
            reserved: 0,
            extents: [RawExtent::default(); AT_ONCE],
        };
        // SAFETY: the kernel writes at most `count` extents behind the head of the structure, and
        // there is room for as many.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut request) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let mapped = (request.mapped as usize).min(AT_ONCE);
        for raw in &request.extents[..mapped] {
            found.push(FileExtent {
                logical: raw.logical,
                physical: raw.physical,
                length: raw.length,
                flags: raw.flags,
            });
            start = raw.logical.saturating_add(raw.length);
        }
        let is_last = found.last().is_none_or(|last| last.flags & LAST != 0);
        if is_last || mapped == 0 || found.len() > limit {
            return Ok(found);
        }
    }
}
