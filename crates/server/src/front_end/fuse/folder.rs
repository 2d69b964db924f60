//! The folder of the FUSE mount: requests of the kernel, and their replies.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use block::{Durability, Owner};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use tracing::warn;

use super::gate::Gate;
use super::zeroes::Zeroes;
use super::{ExportedFile, Size};
use block::operation::{Ask, OperationError, Space, ZeroingPace};

mod search;

use search::Search;

/// The folder.
pub(super) struct Folder {
    files: Vec<Open>,
    gate: Arc<Gate>,
    since: SystemTime,
    owner: (u32, u32),
}

/// A file of the folder.
struct Open {
    file: ExportedFile,
    size: Size,
}

impl Folder {
    pub(super) fn new(files: Vec<ExportedFile>) -> Self {
        let open = |file: ExportedFile| {
            let size = Size::of(file.bytes);
            Open { file, size }
        };
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        Folder {
            files: files.into_iter().map(open).collect(),
            gate: Arc::default(),
            since: SystemTime::now(),
            owner: (user.as_raw(), group.as_raw()),
        }
    }

    /// The sizes of the files, which may change.
    pub(super) fn sizes(&self) -> Vec<(String, Size)> {
        let each = self.files.iter();
        each.map(|open| (open.file.name.clone(), open.size.clone()))
            .collect()
    }

    fn open_file(&self, inode: INodeNo) -> Result<&Open, Errno> {
        let place = inode.0.checked_sub(FIRST).map(|place| place as usize);
        let file = place.and_then(|place| self.files.get(place));
        file.ok_or(Errno::ENOENT)
    }

    fn attributes(&self, inode: INodeNo) -> Result<FileAttr, Errno> {
        let (bytes, kind, perm) = if inode == INodeNo::ROOT {
            (0, FileType::Directory, 0o500)
        } else {
            let open = self.open_file(inode)?;
            let perm = if open.file.read_only { 0o400 } else { 0o600 };
            (open.size.get(), FileType::RegularFile, perm)
        };
        Ok(FileAttr {
            ino: inode,
            size: bytes,
            blocks: bytes.div_ceil(STAT_BLOCK),
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: self.since,
            kind,
            perm,
            nlink: 1,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: PAGE,
            flags: 0,
        })
    }

    /// The number of bytes of a range that are inside the file.
    fn inside(open: &Open, offset: u64, length: u64) -> u64 {
        length.min(open.size.get().saturating_sub(offset))
    }
}

impl Filesystem for Folder {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without it the kernel has one request at a time under way for each asynchronous client,
        // loop devices among them.
        if config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).is_err() {
            warn!("this kernel does not ask ahead: loop devices are slow");
        }
        // What there is not is the kernel's business: it answers what it takes.
        let _ = config.set_max_background(MOST_BACKGROUND);
        let _ = config.set_congestion_threshold(MOST_BACKGROUND / 4 * 3);
        let _ = config.set_max_write(LONGEST);
        if let Err(most) = config.set_max_readahead(LONGEST) {
            let _ = config.set_max_readahead(most);
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut places = 0..self.files.len();
        let found = places.find(|&place| name == self.files[place].file.name.as_str());
        let found = found.filter(|_| parent == INodeNo::ROOT);
        let inode = found.map(inode_of);
        match inode
            .ok_or(Errno::ENOENT)
            .and_then(|inode| self.attributes(inode))
        {
            Ok(attributes) => reply.entry(&FOREVER, &attributes, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Ok(attributes) => reply.attr(&FOREVER, &attributes),
            Err(error) => reply.error(error),
        }
    }

    /// A volume has a fixed size, owner and times. Setting the same size succeeds.
    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let is_other = mode.is_some() || user.is_some() || group.is_some();
        let is_time = accessed.is_some() || modified.is_some();
        match self.attributes(inode) {
            Ok(attributes) if size == Some(attributes.size) && !is_other => {
                reply.attr(&FOREVER, &attributes);
            }
            Ok(_) if size.is_some() || is_other || is_time => reply.error(Errno::EPERM),
            Ok(attributes) => reply.attr(&FOREVER, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if inode != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let dots = [".", ".."].map(|name| (INodeNo::ROOT, FileType::Directory, name));
        let files = self.files.iter().enumerate().map(|(place, open)| {
            (
                inode_of(place),
                FileType::RegularFile,
                open.file.name.as_str(),
            )
        });
        let entries = dots.into_iter().chain(files).enumerate();
        for (place, (inode, kind, name)) in entries.skip(offset as usize) {
            if reply.add(inode, place as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let bytes: u64 = self.files.iter().map(|open| open.size.get()).sum();
        let files = self.files.len() as u64;
        // Loop devices take the block for what space is given back in.
        let (blocks, page) = (bytes / u64::from(PAGE), PAGE);
        reply.statfs(
            blocks,
            0,
            0,
            files,
            0,
            page,
            super::LONGEST_NAME as u32,
            page,
        );
    }

    fn open(&self, _: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.open_file(inode) {
            Ok(open) if open.file.read_only && flags.acc_mode() != OpenAccMode::O_RDONLY => {
                reply.error(Errno::EROFS);
            }
            Ok(_) => {
                // What space is asked for comes without the file's flags.
                let handle = FileHandle(u64::from(flags.0.cast_unsigned()));
                let past_the_page_cache = FopenFlags::FOPEN_DIRECT_IO;
                let several_at_once = FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
                reply.opened(handle, past_the_page_cache | several_at_once);
            }
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        request: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let open = match self.open_file(inode) {
            Ok(open) => open,
            Err(error) => return reply.error(error),
        };
        let length = Self::inside(open, offset, u64::from(length));
        if length == 0 {
            return reply.data(&[]);
        }
        let pass = self.gate.enter(0);
        let ended = move |result: Result<&[u8], OperationError>| {
            match result {
                Ok(bytes) => reply.data(bytes),
                Err(failed) => reply.error(number(failed)),
            }
            drop(pass);
        };
        let span = offset..offset + length;
        let owner = owner(request);
        open.file
            .post(owner, Ask::Read, span, Vec::new(), Box::new(ended));
    }

    fn write(
        &self,
        request: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let open = match self.open_file(inode) {
            Ok(open) if open.file.read_only => return reply.error(Errno::EROFS),
            Ok(open) => open,
            Err(error) => return reply.error(error),
        };
        // As of a block device: what there is room for, and nothing at the end.
        let length = Self::inside(open, offset, bytes.len() as u64) as usize;
        if length == 0 {
            let is_nothing = bytes.is_empty();
            return match is_nothing {
                true => reply.written(0),
                false => reply.error(Errno::ENOSPC),
            };
        }
        let pass = self.gate.enter(length);
        let ended = move |result: Result<&[u8], OperationError>| {
            match result {
                Ok(_) => reply.written(length as u32),
                Err(failed) => reply.error(number(failed)),
            }
            drop(pass);
        };
        let durability = durability(flags.0);
        let ask = Ask::Write { durability };
        let span = offset..offset + length as u64;
        let (owner, bytes) = (owner(request), bytes[..length].to_vec());
        open.file.post(owner, ask, span, bytes, Box::new(ended));
    }

    fn fsync(&self, request: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let open = match self.open_file(inode) {
            Ok(open) => open,
            Err(error) => return reply.error(error),
        };
        let pass = self.gate.enter(0);
        let ended = move |result: Result<&[u8], OperationError>| {
            match result {
                Ok(_) => reply.ok(),
                Err(failed) => reply.error(number(failed)),
            }
            drop(pass);
        };
        let owner = owner(request);
        open.file
            .post(owner, Ask::Flush, 0..0, Vec::new(), Box::new(ended));
    }

    /// Punches holes and writes zeroes. A hole is made only where that takes no head time. After a refusal
    /// the kernel leaves the space, or writes zeroes.
    fn fallocate(
        &self,
        request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let open = match self.open_file(inode) {
            Ok(open) if open.file.read_only => return reply.error(Errno::EROFS),
            Ok(open) => open,
            Err(error) => return reply.error(error),
        };
        let inside = Self::inside(open, offset, length);
        let how = match mode & !libc::FALLOC_FL_KEEP_SIZE {
            libc::FALLOC_FL_PUNCH_HOLE => (Space::MayBeFreed, ZeroingPace::Fast),
            libc::FALLOC_FL_ZERO_RANGE => (Space::Kept, ZeroingPace::Any),
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        if inside < length && mode & libc::FALLOC_FL_KEEP_SIZE == 0 {
            return reply.error(Errno::EPERM);
        }
        if inside == 0 {
            return reply.ok();
        }
        let pass = self.gate.enter(0);
        let ended = move |result: Result<(), OperationError>| {
            match result {
                Ok(()) => reply.ok(),
                Err(failed) => reply.error(number(failed)),
            }
            drop(pass);
        };
        let durability = durability(handle.0 as i32);
        let span = offset..offset + inside;
        let whose = (owner(request), durability);
        Zeroes::new(&open.file, span, how, whose, Box::new(ended)).post();
    }

    fn lseek(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let open = match self.open_file(inode) {
            Ok(open) => open,
            Err(error) => return reply.error(error),
        };
        let bytes = open.size.get();
        match (
            u64::try_from(offset),
            Search::new(&open.file, bytes, whence),
        ) {
            (_, None) => reply.error(Errno::EINVAL),
            (Ok(offset), Some(search)) if offset < bytes => {
                search.begin(offset, (reply, self.gate.enter(0)));
            }
            _ => reply.error(Errno::ENXIO),
        }
    }

    /// The kernel calls this at each close, without a need for durability. It does not call again.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    /// There are no attributes. The kernel does not ask again.
    fn getxattr(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, reply: ReplyXattr) {
        reply.error(Errno::ENOSYS);
    }

    /// There are no attributes. The kernel does not ask again.
    fn listxattr(&self, _: &Request, _: INodeNo, _: u32, reply: ReplyXattr) {
        reply.error(Errno::ENOSYS);
    }
}

/// The process that waits for a request. A loop device asks as a worker of the kernel, and not as the program above it.
fn owner(request: &Request) -> Owner {
    Owner::process(request.pid())
}

fn durability(flags: i32) -> Durability {
    match flags & libc::O_DSYNC {
        0 => Durability::Volatile,
        _ => Durability::Durable,
    }
}

/// The error numbers of block devices.
pub(super) fn number(failed: OperationError) -> Errno {
    match failed {
        OperationError::NotPermitted => Errno::EROFS,
        OperationError::Io => Errno::EIO,
        OperationError::Invalid | OperationError::TooLong => Errno::EINVAL,
        OperationError::NoSpace => Errno::ENOSPC,
        OperationError::Unsupported => Errno::EOPNOTSUPP,
        OperationError::ShuttingDown => Errno::ESHUTDOWN,
    }
}

/// The inode of a file.
pub(super) const fn inode_of(place: usize) -> INodeNo {
    INodeNo(FIRST + place as u64)
}

/// The inode of the first file.
const FIRST: u64 = INodeNo::ROOT.0 + 1;

/// The unit of `st_blocks` (stat(2)).
const STAT_BLOCK: u64 = 512;

/// The preferred size of transfers.
const PAGE: u32 = 4096;

/// The validity of attributes: names, sizes and owners do not change while the folder is mounted.
const FOREVER: Duration = Duration::from_secs(1 << 31);

/// The largest number of asynchronous requests of the kernel. Measured in `service.md`: with it nearly all
/// of 128 requests of a loop device reach a slow drive.
pub(super) const MOST_BACKGROUND: u16 = 512;

/// Bytes of the longest write and read: the default of Linux (256 pages, `fs.fuse.max_pages_limit`).
const LONGEST: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use block::Durability;

    use super::durability;

    #[test]
    fn synchronous_files_are_written_durably() {
        assert_eq!(durability(libc::O_RDWR), Durability::Volatile);
        assert_eq!(
            durability(libc::O_RDWR | libc::O_DIRECT),
            Durability::Volatile
        );
        assert_eq!(
            durability(libc::O_WRONLY | libc::O_DSYNC),
            Durability::Durable
        );
        assert_eq!(durability(libc::O_RDWR | libc::O_SYNC), Durability::Durable);
    }
}
