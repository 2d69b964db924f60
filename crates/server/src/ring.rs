//! The queues of one event loop: operations on files and sockets, and their completions. A completion has
//! the ticket of its submission.
//!
//! ```text
//!   back end, clients --> Ring --> Queues: the kernel's (io_uring), or those of a simulation
//! ```

#![allow(
    unsafe_code,
    reason = "the kernel reads and writes memory by address while an operation is under way"
)]

use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use crate::arena::{Arena, Memory};

mod kernel;

use kernel::KernelQueues;

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

/// An operation of the queues. Memory is named by address.
#[derive(Clone, Copy, Debug)]
pub enum RingOperation {
    /// Reads into memory from byte `offset` of a file.
    Read {
        /// The file.
        file: RawFd,
        /// The memory.
        memory: Memory,
        /// The first byte in the file.
        offset: u64,
    },
    /// Writes memory to byte `offset` of a file.
    Write {
        /// The file.
        file: RawFd,
        /// The memory.
        memory: Memory,
        /// The first byte in the file.
        offset: u64,
        /// The flags of `pwritev2`.
        flags: i32,
    },
    /// Flushes the data of a file to its medium.
    Sync {
        /// The file.
        file: RawFd,
    },
    /// Frees space of a file or fills it with zeroes.
    Allocate {
        /// The file.
        file: RawFd,
        /// The mode of `fallocate`.
        mode: i32,
        /// The first byte in the file.
        offset: u64,
        /// The number of bytes.
        length: u64,
    },
    /// Receives available bytes, at most the memory.
    Receive {
        /// The socket.
        socket: RawFd,
        /// The memory.
        memory: Memory,
    },
    /// Sends the pieces that a message names, and waits until the socket has taken all.
    Send {
        /// The socket.
        socket: RawFd,
        /// The message.
        message: *const libc::msghdr,
    },
    /// Completes once a file is readable.
    PollReadable {
        /// The file.
        file: RawFd,
    },
}

/// What executes the operations of a ring: the kernel, or a simulation of it.
pub trait Queues {
    /// Submits an operation.
    ///
    /// # Safety
    /// What the operation names must exist until its completion, unused by any other party if it is written,
    /// and unchanged if it is read.
    unsafe fn submit(&mut self, ticket: Ticket, operation: RingOperation);

    /// Waits for a completion or the deadline. Before it receives it rests, so that no client can wake it in
    /// that time.
    ///
    /// # Errors
    /// If the queues fail as a whole.
    fn wait(&mut self, rest: Duration, until: Option<Instant>) -> io::Result<()>;

    /// The next completion: its ticket, and the kernel's result. A negative result is an error number.
    fn next_end(&mut self) -> Option<(Ticket, i32)>;
}

/// The ring of one event loop.
pub struct Ring {
    queues: Backing,
    /// The owner of the operations of a back end.
    back_end: Owner,
}

/// The queues of a ring. The kernel's are called without indirection.
#[allow(
    clippy::large_enum_variant,
    reason = "a loop has one of them, and the kernel's are there to be fast"
)]
enum Backing {
    Kernel(KernelQueues),
    Simulated(Box<dyn Queues>),
}

impl Ring {
    /// A ring of the kernel. `arena` is registered if the limits on locked memory allow it.
    ///
    /// # Errors
    /// If the kernel has no io_uring, or does not allow it.
    pub fn new(arena: &Arena) -> io::Result<Self> {
        let queues = Backing::Kernel(KernelQueues::new(arena)?);
        let back_end = Owner::BackEnd;
        Ok(Ring { queues, back_end })
    }

    /// A ring over other queues than the kernel's.
    pub fn over(queues: Box<dyn Queues>) -> Self {
        Ring {
            queues: Backing::Simulated(queues),
            back_end: Owner::BackEnd,
        }
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
        let read = RingOperation::Read {
            file,
            memory,
            offset,
        };
        // SAFETY: as the caller promises.
        unsafe { self.submit(ticket, read) }
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
        let write = RingOperation::Write {
            file,
            memory,
            offset,
            flags,
        };
        // SAFETY: as the caller promises.
        unsafe { self.submit(ticket, write) }
    }

    /// Flushes the data of a file to its medium.
    pub fn sync(&mut self, ticket: Ticket, file: RawFd) {
        // SAFETY: it names no memory.
        unsafe { self.submit(ticket, RingOperation::Sync { file }) }
    }

    /// Frees space of a file or fills it with zeroes, by `mode` of `fallocate`.
    pub fn allocate(&mut self, ticket: Ticket, file: RawFd, mode: i32, offset: u64, length: u64) {
        let allocate = RingOperation::Allocate {
            file,
            mode,
            offset,
            length,
        };
        // SAFETY: it names no memory.
        unsafe { self.submit(ticket, allocate) }
    }

    /// Receives available bytes, at most `memory`. Other operations are submitted first.
    ///
    /// # Safety
    /// As for [`Ring::read`].
    pub unsafe fn receive(&mut self, ticket: Ticket, socket: RawFd, memory: Memory) {
        // SAFETY: as the caller promises.
        unsafe { self.submit(ticket, RingOperation::Receive { socket, memory }) }
    }

    /// Sends the pieces that `message` names.
    ///
    /// # Safety
    /// The message, its list of pieces and the pieces must exist unchanged until the completion.
    pub unsafe fn send(&mut self, ticket: Ticket, socket: RawFd, message: *const libc::msghdr) {
        // SAFETY: as the caller promises.
        unsafe { self.submit(ticket, RingOperation::Send { socket, message }) }
    }

    /// Completes once `file` is readable.
    pub fn poll_readable(&mut self, ticket: Ticket, file: RawFd) {
        // SAFETY: it names no memory.
        unsafe { self.submit(ticket, RingOperation::PollReadable { file }) }
    }

    /// Submits all operations, and waits for a completion or the deadline. Before it receives it rests, so
    /// that no client can wake it in that time.
    ///
    /// # Errors
    /// If the kernel refuses the queues as a whole, which is a bug.
    pub fn submit_and_wait(&mut self, rest: Duration, until: Option<Instant>) -> io::Result<()> {
        match &mut self.queues {
            Backing::Kernel(queues) => queues.wait(rest, until),
            Backing::Simulated(queues) => queues.wait(rest, until),
        }
    }

    /// The next completion: its ticket, and the kernel's result. A negative result is an error number.
    pub fn next_end(&mut self) -> Option<(Ticket, i32)> {
        match &mut self.queues {
            Backing::Kernel(queues) => queues.next_end(),
            Backing::Simulated(queues) => queues.next_end(),
        }
    }

    /// # Safety
    /// As [`Queues::submit`].
    unsafe fn submit(&mut self, mut ticket: Ticket, operation: RingOperation) {
        if ticket.owner == Owner::BackEnd {
            ticket.owner = self.back_end;
        }
        // SAFETY: as the caller promises.
        unsafe {
            match &mut self.queues {
                Backing::Kernel(queues) => queues.submit(ticket, operation),
                Backing::Simulated(queues) => queues.submit(ticket, operation),
            }
        }
    }
}
