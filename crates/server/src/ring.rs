//! The kernel's io_uring queues of one event loop. A completion has the ticket of its submission.

#![allow(
    unsafe_code,
    reason = "the kernel reads and writes memory by address while an operation is under way"
)]

use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};
use std::{hint, thread};

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};

use crate::arena::{Arena, Memory};

/// The owner and key of an operation, returned with its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The receiver of the completion.
    pub owner: Owner,
    /// A key of the owner's choice.
    pub key: u32,
}

/// An owner of operations in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Owner {
    /// The mailbox's bell.
    Mailbox,
    /// The receiving half of a connection.
    Receive,
    /// The sending half of a connection.
    Send,
    /// The back end, or the first leg of a mirror.
    BackEnd,
    /// The bell of dirty bitmaps.
    Marks,
    /// The second leg of a mirror.
    SecondLeg,
}

impl Ticket {
    fn number(self) -> u64 {
        (self.owner as u64) << 32 | u64::from(self.key)
    }

    fn from(number: u64) -> Self {
        let owner = match number >> 32 {
            0 => Owner::Mailbox,
            1 => Owner::Receive,
            2 => Owner::Send,
            3 => Owner::BackEnd,
            4 => Owner::Marks,
            _ => Owner::SecondLeg,
        };
        let key = number as u32;
        Ticket { owner, key }
    }
}

/// The queues of one event loop.
pub struct Ring {
    ring: IoUring,
    /// The address range of the registered arena. The kernel need not look up its pages.
    fixed: Option<(usize, usize)>,
    /// Receives, submitted after all other operations.
    receives: Vec<squeue::Entry>,
    /// Whether the last wait was too short to sleep.
    is_brisk: bool,
    /// The owner of the operations of a back end.
    back_end: Owner,
}

/// The number of entries of the submission queue. More operations are submitted in turns. A choice: above
/// the queue depth of any client.
const ENTRIES: u32 = 1024;

/// The time for which the thread polls before it sleeps, if the last wait was short. A choice: the time to
/// fall asleep and wake up, so that a loss is at most as large as a gain.
const SPIN: Duration = Duration::from_micros(10);

/// The time before a deadline at which the thread wakes up to poll the clock. A choice: timer and wakeup
/// take less on a virtual machine in 99 of 100 cases.
const EARLY: Duration = Duration::from_micros(100);

/// Ignores timeouts and interruptions of a wait.
fn passed(result: io::Result<usize>) -> io::Result<()> {
    match result {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
            _ => Err(error),
        },
    }
}

impl Ring {
    /// A ring. `arena` is registered if the limits on locked memory allow it.
    ///
    /// # Errors
    /// If the kernel has no io_uring, or does not allow it.
    pub fn new(arena: &Arena) -> io::Result<Self> {
        let mut builder = IoUring::builder();
        // One thread submits, and the kernel's part of the work is done when that thread waits.
        builder.setup_single_issuer().setup_defer_taskrun();
        // It can be seen without a call whether there is such work.
        builder.setup_taskrun_flag();
        let ring = builder.build(ENTRIES).or_else(|_| IoUring::new(ENTRIES))?;
        let region = arena.region();
        // SAFETY: the arena outlives the ring in the event loop that owns both.
        let registered = unsafe { ring.submitter().register_buffers(&[region]) };
        let whole = (region.iov_base as usize, region.iov_len);
        Ok(Ring {
            ring,
            fixed: registered.is_ok().then_some(whole),
            receives: Vec::new(),
            is_brisk: false,
            back_end: Owner::BackEnd,
        })
    }

    /// Lets the back end of a mirror's leg submit operations.
    pub fn of_leg<T>(&mut self, leg: usize, submit: impl FnOnce(&mut Ring) -> T) -> T {
        self.back_end = match leg {
            0 => Owner::BackEnd,
            _ => Owner::SecondLeg,
        };
        let result = submit(self);
        self.back_end = Owner::BackEnd;
        result
    }

    /// Reads into `memory` from `offset` of a file.
    ///
    /// # Safety
    /// The memory must exist, unused by any other party, until the completion.
    pub unsafe fn read(&mut self, ticket: Ticket, file: RawFd, memory: Memory, offset: u64) {
        let (at, length) = (memory.at, memory.length as u32);
        let entry = match self.is_fixed(memory) {
            true => opcode::ReadFixed::new(Fd(file), at, length, 0)
                .offset(offset)
                .build(),
            false => opcode::Read::new(Fd(file), at, length)
                .offset(offset)
                .build(),
        };
        self.push(entry, ticket);
    }

    /// Writes `memory` to `offset` of a file. `flags` are those of `pwritev2`.
    ///
    /// # Safety
    /// The memory must exist unchanged until the completion.
    pub unsafe fn write(
        &mut self,
        ticket: Ticket,
        file: RawFd,
        memory: Memory,
        offset: u64,
        flags: i32,
    ) {
        let (at, length) = (memory.at.cast_const(), memory.length as u32);
        let entry = match self.is_fixed(memory) {
            true => opcode::WriteFixed::new(Fd(file), at, length, 0)
                .offset(offset)
                .rw_flags(flags)
                .build(),
            false => opcode::Write::new(Fd(file), at, length)
                .offset(offset)
                .rw_flags(flags)
                .build(),
        };
        self.push(entry, ticket);
    }

    /// Flushes the data of a file to its medium.
    pub fn sync(&mut self, ticket: Ticket, file: RawFd) {
        let entry = opcode::Fsync::new(Fd(file))
            .flags(io_uring::types::FsyncFlags::DATASYNC)
            .build();
        self.push(entry, ticket);
    }

    /// Frees space of a file or fills it with zeroes, by `mode` of `fallocate`.
    pub fn allocate(&mut self, ticket: Ticket, file: RawFd, mode: i32, offset: u64, length: u64) {
        let entry = opcode::Fallocate::new(Fd(file), length)
            .offset(offset)
            .mode(mode)
            .build();
        self.push(entry, ticket);
    }

    /// Receives available bytes, at most `memory`. Other operations are submitted first.
    ///
    /// # Safety
    /// As for [`Ring::read`].
    pub unsafe fn receive(&mut self, ticket: Ticket, socket: RawFd, memory: Memory) {
        let entry = opcode::Recv::new(Fd(socket), memory.at, memory.length as u32).build();
        self.receives.push(entry.user_data(ticket.number()));
    }

    /// Sends the pieces that `message` names.
    ///
    /// # Safety
    /// The message, its list of pieces and the pieces must exist unchanged until the completion.
    pub unsafe fn send(&mut self, ticket: Ticket, socket: RawFd, message: *const libc::msghdr) {
        let entry = opcode::SendMsg::new(Fd(socket), message)
            .flags((libc::MSG_NOSIGNAL | libc::MSG_WAITALL) as u32)
            .build();
        self.push(entry, ticket);
    }

    /// Completes once `file` is readable.
    pub fn poll_readable(&mut self, ticket: Ticket, file: RawFd) {
        let entry = opcode::PollAdd::new(Fd(file), libc::POLLIN as u32).build();
        self.push(entry, ticket);
    }

    /// Submits all operations, and waits for a completion or the deadline. Before it receives it rests, so
    /// that no client can wake it in that time.
    ///
    /// # Errors
    /// If the kernel refuses the queues as a whole, which is a bug.
    pub fn submit_and_wait(&mut self, rest: Duration, until: Option<Instant>) -> io::Result<()> {
        if !rest.is_zero() {
            self.ring.submit()?;
            thread::sleep(rest);
        }
        while let Some(entry) = self.receives.pop() {
            self.enqueue(&entry);
        }
        let begun = Instant::now();
        let near = begun + SPIN;
        let near = until.map_or(near, |until| until.min(near));
        if self.is_brisk {
            self.ring.submit()?;
            self.is_brisk = self.look(near);
        }
        self.sleep(until)?;
        self.is_brisk |= begun.elapsed() < SPIN + SPIN;
        Ok(())
    }

    /// Waits for a completion or the deadline, asleep until shortly before the deadline.
    fn sleep(&mut self, until: Option<Instant>) -> io::Result<()> {
        let Some(until) = until else {
            return passed(self.ring.submit_and_wait(1));
        };
        let left = until.saturating_duration_since(Instant::now());
        let asleep = match left.checked_sub(EARLY) {
            Some(asleep) if !asleep.is_zero() => asleep,
            _ => left,
        };
        let wait = Timespec::from(asleep);
        let arguments = SubmitArgs::new().timespec(&wait);
        passed(self.ring.submitter().submit_with_args(1, &arguments))?;
        if asleep < left {
            self.look(until);
        }
        Ok(())
    }

    /// Polls until `until`. The answer is whether an operation has completed.
    fn look(&mut self, until: Instant) -> bool {
        loop {
            if self.ring.submission().taskrun() || !self.ring.completion().is_empty() {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            hint::spin_loop();
        }
    }

    /// The next completion: its ticket, and the kernel's result. A negative result is an error number.
    pub fn next_end(&mut self) -> Option<(Ticket, i32)> {
        let entry = self.ring.completion().next()?;
        Some((Ticket::from(entry.user_data()), entry.result()))
    }

    fn is_fixed(&self, memory: Memory) -> bool {
        self.fixed.is_some_and(|(base, length)| {
            let at = memory.at as usize;
            at >= base && at + memory.length <= base + length
        })
    }

    fn push(&mut self, entry: squeue::Entry, mut ticket: Ticket) {
        if ticket.owner == Owner::BackEnd {
            ticket.owner = self.back_end;
        }
        self.enqueue(&entry.user_data(ticket.number()));
    }

    fn enqueue(&mut self, entry: &squeue::Entry) {
        // SAFETY: what the entry names stays, as the callers of the functions above promise.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // The queue is full: the kernel takes what is there.
            let _ = self.ring.submit();
        }
    }
}
