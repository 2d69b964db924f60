//! The queue's thread: it passes requests from the driver to the volume, and results back.
//!
//! ```text
//!             .--FETCH, COMMIT_AND_FETCH--> driver --a request--.
//!   buffer of |                                                 v
//!   each tag  '------ RequestResults <--Pending::end-- volume <--submit
//! ```
//!
//! The queue owns a tag's buffer while the driver has the tag's command. The volume owns it while it
//! executes the tag's request.

#![allow(
    unsafe_code,
    reason = "the driver writes descriptions and bytes of requests into memory by address"
)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::pending::{Request, RequestResult};
use super::wire::{self, DESCRIPTION_BYTES};
use super::{DeviceSetting, Pending, RequestBuffer, RequestResults, UblkError, Volume};
use block::Owner;
use block::operation::{self, Ask};

/// The user data of the doorbell's completions. Those of commands have their tag.
const DOORBELL: u64 = u64::MAX;

/// The driver's result for a tag of a device that stops.
const TAG_STOPPED: i32 = -libc::ENODEV;

/// Starts the thread, and waits until it has submitted a fetch for every tag.
pub fn spawn(
    device: u32,
    setting: DeviceSetting,
    volume: Box<dyn Volume>,
) -> Result<JoinHandle<io::Result<()>>, UblkError> {
    let (sender, started) = mpsc::channel();
    let run = move || {
        let queue = Queue::open(device, setting, volume);
        match queue.and_then(|mut queue| queue.fetch_all().map(|()| queue)) {
            Ok(queue) => {
                // The receiver below waits for it.
                let _ = sender.send(Ok(()));
                queue.serve()
            }
            Err(error) => {
                let _ = sender.send(Err(error));
                Ok(())
            }
        }
    };
    let failed = |source| UblkError::Queue { device, source };
    let name = format!("ublk{device}");
    let thread = thread::Builder::new().name(name).spawn(run);
    let thread = thread.map_err(failed)?;
    let started = started.recv().unwrap_or_else(|_| {
        let reason = "its thread has panicked";
        Err(io::Error::other(reason))
    });
    started.map(|()| thread).map_err(failed)
}

/// A device's queue. The ring is dropped before the memory that commands point to.
struct Queue {
    ring: IoUring,
    descriptions: Descriptions,
    file: File,
    /// The buffer of each tag while the driver has the tag's command.
    buffers: Vec<Option<RequestBuffer>>,
    results: Arc<RequestResults>,
    volume: Box<dyn Volume>,
    /// The number of tags that the driver does not use any more.
    stopped_tags: usize,
    longest: usize,
    /// A device has one queue.
    owner: Owner,
}

impl Queue {
    fn open(device: u32, setting: DeviceSetting, volume: Box<dyn Volume>) -> io::Result<Self> {
        let path = format!("/dev/ublkc{device}");
        let file = File::options().read(true).write(true).open(path)?;
        let descriptions = Descriptions::map(&file, setting.depth)?;
        // A command for each place, and the doorbell.
        let entries = (u32::from(setting.depth) + 1).next_power_of_two();
        let mut builder = IoUring::builder();
        // This thread alone submits, and the driver's part is done when it waits.
        builder.setup_single_issuer().setup_defer_taskrun();
        let ring = builder.build(entries).or_else(|_| IoUring::new(entries))?;
        let longest = setting.longest as usize;
        let buffers = (0..setting.depth).map(|_| RequestBuffer::new(longest).map(Some));
        Ok(Queue {
            ring,
            descriptions,
            file,
            buffers: buffers.collect::<io::Result<_>>()?,
            results: Arc::new(RequestResults::new()?),
            volume,
            stopped_tags: 0,
            longest,
            owner: Owner::queue(u64::from(device)),
        })
    }

    /// Submits a fetch for every tag. It fails on the first refusal, because the driver would wait for
    /// that tag forever.
    fn fetch_all(&mut self) -> io::Result<()> {
        for tag in 0..self.buffers.len() as u16 {
            self.command(wire::FETCH, tag, 0);
        }
        self.ring.submit()?;
        let refused = self.ring.completion().find(|end| end.result() < 0);
        match refused {
            Some(end) => Err(io::Error::from_raw_os_error(-end.result())),
            None => Ok(()),
        }
    }

    /// Runs until the device has stopped and every request has ended.
    fn serve(mut self) -> io::Result<()> {
        self.poll_doorbell();
        while self.stopped_tags < self.buffers.len() {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let ended: Vec<(u64, i32)> = self
                .ring
                .completion()
                .map(|end| (end.user_data(), end.result()))
                .collect();
            for (number, result) in ended {
                match (number, result) {
                    (DOORBELL, _) => {
                        for ended in self.results.take() {
                            self.commit(ended);
                        }
                        self.poll_doorbell();
                    }
                    (tag, 0) => self.submit_request(tag as u16),
                    (_, TAG_STOPPED) => self.stopped_tags += 1,
                    (tag, error) => {
                        let error = io::Error::from_raw_os_error(-error);
                        tracing::error!(tag, %error, "ublk refuses the end of a request");
                        self.stopped_tags += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Submits the request of the tag to the volume.
    fn submit_request(&mut self, tag: u16) {
        let described = wire::request(&self.descriptions.read(tag));
        let Some(buffer) = self.buffers[usize::from(tag)].take() else {
            tracing::error!(tag, "ublk has a second request for a tag");
            return;
        };
        let Some((ask, offset, length)) = described else {
            let result = Err(operation::OperationError::Unsupported);
            return self.commit(RequestResult {
                tag,
                buffer,
                result,
            });
        };
        let has_bytes = matches!(ask, Ask::Read | Ask::Write { .. });
        if has_bytes && length > self.longest as u64 {
            let result = Err(operation::OperationError::TooLong);
            return self.commit(RequestResult {
                tag,
                buffer,
                result,
            });
        }
        let request = Request {
            tag,
            ask,
            offset,
            length,
            owner: self.owner,
        };
        self.volume
            .submit(Pending::new(request, buffer, &self.results));
    }

    /// Reports the result of a request to the driver: for reads and writes their length in bytes.
    fn commit(&mut self, ended: RequestResult) {
        let description = wire::request(&self.descriptions.read(ended.tag));
        let result = match (ended.result, description) {
            (Ok(()), Some((Ask::Read | Ask::Write { .. }, _, length))) => {
                i32::try_from(length).unwrap_or(-libc::EIO)
            }
            (Ok(()), _) => 0,
            (Err(failed), _) => -code(failed),
        };
        self.buffers[usize::from(ended.tag)] = Some(ended.buffer);
        self.command(wire::COMMIT_AND_FETCH, ended.tag, result);
    }

    /// Submits a command for the tag, whose buffer the queue owns.
    fn command(&mut self, command: u32, tag: u16, result: i32) {
        let buffer = self.buffers[usize::from(tag)].as_ref();
        let address = buffer.expect("the tag's buffer is here").address();
        let entry = opcode::UringCmd16::new(Fd(self.file.as_raw_fd()), command)
            .cmd(wire::queue(tag, result, address))
            .build()
            .user_data(u64::from(tag));
        self.push(&entry);
    }

    /// Polls the doorbell once.
    fn poll_doorbell(&mut self) {
        let doorbell = Fd(self.results.doorbell().as_raw_fd());
        let entry = opcode::PollAdd::new(doorbell, libc::POLLIN as u32)
            .build()
            .user_data(DOORBELL);
        self.push(&entry);
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the entry's buffer is in `buffers` until its command has ended, its files are
        // open as long as the ring is.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.expect("a ring with room for each tag and the doorbell");
    }
}

/// The kernel's number of an error.
fn code(failed: operation::OperationError) -> i32 {
    use operation::OperationError;
    match failed {
        OperationError::NotPermitted => libc::EPERM,
        OperationError::Io | OperationError::ShuttingDown => libc::EIO,
        OperationError::Invalid | OperationError::TooLong => libc::EINVAL,
        OperationError::NoSpace => libc::ENOSPC,
        OperationError::Unsupported => libc::EOPNOTSUPP,
    }
}

/// The driver's descriptions of requests by tag, in memory that the driver writes.
struct Descriptions {
    base: NonNull<u8>,
    length: usize,
}

impl Descriptions {
    fn map(file: &File, depth: u16) -> io::Result<Self> {
        let length = usize::from(depth) * DESCRIPTION_BYTES;
        let length = length.next_multiple_of(rustix::param::page_size());
        // SAFETY: a new mapping touches no memory that anybody has. The first queue's is at 0.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ,
                MapFlags::SHARED | MapFlags::POPULATE,
                file,
                0,
            )?
        };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Descriptions { base, length })
    }

    /// The description of the tag's request. The driver writes it before it completes the tag's command,
    /// and not again before the next command.
    fn read(&self, tag: u16) -> [u8; DESCRIPTION_BYTES] {
        let offset = usize::from(tag) * DESCRIPTION_BYTES;
        assert!(
            offset + DESCRIPTION_BYTES <= self.length,
            "a tag of this queue"
        );
        // SAFETY: inside the mapping, as just asserted; bytes need no alignment. It is volatile
        // because the driver writes there.
        unsafe {
            let at = self.base.as_ptr().add(offset);
            at.cast::<[u8; DESCRIPTION_BYTES]>().read_volatile()
        }
    }
}

impl Drop for Descriptions {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and nobody else knows where.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok());
    }
}
