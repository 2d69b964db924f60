//! The queues of the kernel: io_uring.

#![allow(
    unsafe_code,
    reason = "the kernel reads and writes memory by address while an operation is under way"
)]

use std::io;
use std::time::{Duration, Instant};
use std::{hint, thread};

use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};

use super::{Owner, Queues, RingOperation, Ticket};
use crate::arena::{Arena, Memory};

/// The kernel's queues of one event loop.
pub(super) struct KernelQueues {
    ring: IoUring,
    /// The address range of the registered arena. The kernel need not look up its pages.
    fixed: Option<(usize, usize)>,
    /// Receives, submitted after all other operations.
    receives: Vec<squeue::Entry>,
    /// Whether the last wait was too short to sleep.
    is_brisk: bool,
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

impl KernelQueues {
    /// Queues. `arena` is registered if the limits on locked memory allow it.
    ///
    /// # Errors
    /// If the kernel has no io_uring, or does not allow it.
    pub(super) fn new(arena: &Arena) -> io::Result<Self> {
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
        Ok(KernelQueues {
            ring,
            fixed: registered.is_ok().then_some(whole),
            receives: Vec::new(),
            is_brisk: false,
        })
    }

    /// The entry of an operation.
    fn entry(&self, operation: RingOperation) -> squeue::Entry {
        match operation {
            RingOperation::Read {
                file,
                memory,
                offset,
            } => {
                let (at, length) = (memory.at, memory.length as u32);
                match self.is_fixed(memory) {
                    true => opcode::ReadFixed::new(Fd(file), at, length, 0)
                        .offset(offset)
                        .build(),
                    false => opcode::Read::new(Fd(file), at, length)
                        .offset(offset)
                        .build(),
                }
            }
            RingOperation::Write {
                file,
                memory,
                offset,
                flags,
            } => {
                let (at, length) = (memory.at.cast_const(), memory.length as u32);
                match self.is_fixed(memory) {
                    true => opcode::WriteFixed::new(Fd(file), at, length, 0)
                        .offset(offset)
                        .rw_flags(flags)
                        .build(),
                    false => opcode::Write::new(Fd(file), at, length)
                        .offset(offset)
                        .rw_flags(flags)
                        .build(),
                }
            }
            RingOperation::Sync { file } => opcode::Fsync::new(Fd(file))
                .flags(FsyncFlags::DATASYNC)
                .build(),
            RingOperation::Allocate {
                file,
                mode,
                offset,
                length,
            } => opcode::Fallocate::new(Fd(file), length)
                .offset(offset)
                .mode(mode)
                .build(),
            RingOperation::Receive { socket, memory } => {
                opcode::Recv::new(Fd(socket), memory.at, memory.length as u32).build()
            }
            RingOperation::Send { socket, message } => opcode::SendMsg::new(Fd(socket), message)
                .flags((libc::MSG_NOSIGNAL | libc::MSG_WAITALL) as u32)
                .build(),
            RingOperation::PollReadable { file } => {
                opcode::PollAdd::new(Fd(file), libc::POLLIN as u32).build()
            }
        }
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

    fn is_fixed(&self, memory: Memory) -> bool {
        self.fixed.is_some_and(|(base, length)| {
            let at = memory.at as usize;
            at >= base && at + memory.length <= base + length
        })
    }

    fn enqueue(&mut self, entry: &squeue::Entry) {
        // SAFETY: what the entry names stays, as the caller of `submit` promises.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // The queue is full: the kernel takes what is there.
            let _ = self.ring.submit();
        }
    }
}

impl Queues for KernelQueues {
    unsafe fn submit(&mut self, ticket: Ticket, operation: RingOperation) {
        let entry = self.entry(operation).user_data(ticket.number());
        match operation {
            RingOperation::Receive { .. } => self.receives.push(entry),
            _ => self.enqueue(&entry),
        }
    }

    fn wait(&mut self, rest: Duration, until: Option<Instant>) -> io::Result<()> {
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

    fn next_end(&mut self) -> Option<(Ticket, i32)> {
        let entry = self.ring.completion().next()?;
        Some((Ticket::from(entry.user_data()), entry.result()))
    }
}
