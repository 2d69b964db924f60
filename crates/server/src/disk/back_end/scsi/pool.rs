//! A pool of threads that execute SCSI commands, so that the event loop does not block. Each thread
//! executes one command at a time.
//!
//! ```text
//!   submit --> [ waiting ] --> thread: SG_IO --> [ ended ] --bell (eventfd), polled by the ring--> rang
//! ```

#![allow(
    unsafe_code,
    reason = "threads read and write the memory of commands while these are under way"
)]

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use block::{Durability, Switch};
use rustix::event::{EventfdFlags, eventfd};
use tracing::error;

use super::ScsiError;
use super::cache_switch::CacheSwitch;
use super::switched::Switched;
use crate::arena::Memory;
use crate::ring::{Owner, Ring, Ticket};
use block::operation;

/// A unit of work for a thread.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Reads blocks from `first` on.
    Read {
        /// The first block.
        first: u64,
        /// The destination: whole blocks.
        memory: Memory,
        /// Whether the bytes must come from the medium.
        durability: Durability,
    },
    /// Writes blocks from `first` on.
    Write {
        /// The first block.
        first: u64,
        /// The source: whole blocks.
        memory: Memory,
        /// Whether the write ends only on the medium.
        durability: Durability,
    },
    /// Flushes the write cache to the medium.
    Flush,
    /// Moves the head.
    Seek {
        /// The block whose track is the target.
        to: u64,
    },
    /// Switches the look-ahead.
    SetLookAhead(Switch),
    /// Switches the write cache.
    SetWriteCache(Switch),
}

/// The pool.
pub struct Pool {
    shared: Arc<PoolState>,
    threads: Vec<JoinHandle<()>>,
    /// The number of units in flight.
    under_way: usize,
}

struct PoolState {
    drive: Arc<Switched>,
    /// The largest length of a command in bytes.
    most_bytes: usize,
    desk: Mutex<Desk>,
    came: Condvar,
    bell: OwnedFd,
}

#[derive(Default)]
struct Desk {
    waiting: VecDeque<(u32, Work)>,
    ended: Vec<(u32, Result<(), operation::OperationError>)>,
    is_closed: bool,
}

// SAFETY: work has the address of memory that nobody else uses until the work has ended, as who
// submits it promises; it does not matter which thread uses it.
unsafe impl Send for Desk {}

/// The ring's key for the bell of a back end's pool. No slab reaches it.
pub const BELL: u32 = u32::MAX;

impl Pool {
    /// A pool of `threads` threads for a drive. No command is longer than `most_bytes`, which is at least
    /// a block.
    ///
    /// # Errors
    /// If there are no more threads or file descriptors.
    pub fn start(drive: Arc<Switched>, threads: usize, most_bytes: usize) -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let shared = Arc::new(PoolState {
            drive,
            most_bytes,
            desk: Mutex::default(),
            came: Condvar::new(),
            bell: eventfd(0, flags)?,
        });
        let mut this = Pool {
            shared,
            threads: Vec::new(),
            under_way: 0,
        };
        for _ in 0..threads {
            let shared = Arc::clone(&this.shared);
            let thread = Builder::new().name("scsi".to_owned());
            this.threads.push(thread.spawn(move || shared.serve())?);
        }
        Ok(this)
    }

    /// Submits a unit of work. [`Pool::rang`] returns its result with `key`.
    ///
    /// # Safety
    /// The memory must be valid and must not be accessed until then. The memory of a write may be read.
    pub unsafe fn submit(&mut self, key: u32, work: Work, ring: &mut Ring) {
        self.shared.desk().waiting.push_back((key, work));
        self.shared.came.notify_one();
        if self.under_way == 0 {
            self.listen(ring);
        }
        self.under_way += 1;
    }

    /// The results since the last call. The ring reports [`BELL`] when there are some.
    pub fn rang(&mut self, ring: &mut Ring) -> Vec<(u32, Result<(), operation::OperationError>)> {
        let mut count = [0; 8];
        // Without a ring nothing is there to be read, which does not matter.
        let _ = rustix::io::read(&self.shared.bell, &mut count);
        let ended = std::mem::take(&mut self.shared.desk().ended);
        self.under_way -= ended.len();
        if self.under_way > 0 {
            self.listen(ring);
        }
        ended
    }

    fn listen(&self, ring: &mut Ring) {
        let owner = Owner::BackEnd;
        ring.poll_readable(Ticket { owner, key: BELL }, self.shared.bell.as_raw_fd());
    }
}

impl Drop for Pool {
    /// Waits for the commands in flight, which use their memory.
    fn drop(&mut self) {
        {
            let mut desk = self.shared.desk();
            desk.waiting.clear();
            desk.is_closed = true;
        }
        self.shared.came.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl PoolState {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        while let Some((key, work)) = self.next() {
            let result = self.tried(work).map_err(|failed| {
                let drive = self.drive.drive().path().display();
                error!(%drive, "{}: {failed}", work.named());
                failed.failed()
            });
            self.desk().ended.push((key, result));
            // It can only fail if it was rung 2^64 times, and then it is ringing.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
    }

    fn next(&self) -> Option<(u32, Work)> {
        let mut desk = self.desk();
        loop {
            if let Some(work) = desk.waiting.pop_front() {
                return Some(work);
            }
            if desk.is_closed {
                return None;
            }
            let woken = self.came.wait(desk);
            desk = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Executes the work, and repeats it if the drive asks for that.
    fn tried(&self, work: Work) -> Result<(), ScsiError> {
        self.drive
            .attempt(&|| work.named(), || self.carry_out(work))
    }

    fn carry_out(&self, work: Work) -> Result<(), ScsiError> {
        let drive = self.drive.drive();
        let block = drive.capacity().block_bytes as usize;
        let most = (self.most_bytes / block).max(1) * block;
        match work {
            Work::Read {
                mut first,
                memory,
                durability,
            } => {
                // SAFETY: who submitted the work promised that nobody else uses the memory.
                let bytes = unsafe { std::slice::from_raw_parts_mut(memory.at, memory.length) };
                for part in bytes.chunks_mut(most) {
                    drive.read(first, part, durability)?;
                    first += (part.len() / block) as u64;
                }
                Ok(())
            }
            Work::Write {
                mut first,
                memory,
                durability,
            } => {
                // SAFETY: who submitted the work promised that the memory stays as it is.
                let bytes = unsafe { std::slice::from_raw_parts(memory.at, memory.length) };
                for part in bytes.chunks(most) {
                    drive.write(first, part, durability)?;
                    first += (part.len() / block) as u64;
                }
                Ok(())
            }
            Work::Flush => drive.flush(),
            Work::Seek { to } => drive.seek(to),
            Work::SetLookAhead(to) => self.set(CacheSwitch::LookAhead, to),
            Work::SetWriteCache(to) => self.set(CacheSwitch::WriteCache, to),
        }
    }

    fn set(&self, switch: CacheSwitch, to: Switch) -> Result<(), ScsiError> {
        self.drive.set(switch, to).map(|_| ())
    }
}

impl Work {
    /// The name in the log.
    fn named(&self) -> String {
        match self {
            Work::Read { first, .. } => format!("a read at block {first}"),
            Work::Write { first, .. } => format!("a write at block {first}"),
            Work::Flush => "a flush".to_owned(),
            Work::Seek { to } => format!("a seek to block {to}"),
            Work::SetLookAhead(_) | Work::SetWriteCache(_) => "a switch of the caches".to_owned(),
        }
    }
}
