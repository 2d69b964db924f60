//! A kernel in virtual time: it executes the operations of a ring when their time has come, and lets the
//! world act in between.
//!
//! ```text
//!   event loop --submit--> [ files: due at a time | sockets: once they can ] --ends--> event loop
//!                                        world: acts at its times, sends and receives
//! ```
//!
//! Sockets and files are the machine's own, used without waiting and by one thread. So nothing depends on the
//! time that anything takes.

#![allow(unsafe_code, reason = "it executes what the loop submits by address")]

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use server::clock::Clock;
use server::ring::{Owner, Queues, RingOperation, Ticket};

use crate::plan::{Dice, Setting};
use crate::world::World;

/// The queues of a simulated kernel.
pub struct Simulation {
    clock: Clock,
    nanos: &'static AtomicU64,
    world: Rc<RefCell<World>>,
    dice: Dice,
    host: Host,
    /// Operations on files, by the time at which they are executed and the order of their submission.
    files: BTreeMap<(u64, u64), FileOperation>,
    /// Operations that wait for a socket or a bell.
    sockets: Vec<(Ticket, RingOperation)>,
    ends: VecDeque<(Ticket, i32)>,
    submitted: u64,
    /// Wakeups since the last completion.
    still: u64,
}

/// How long the host's files take.
#[derive(Clone, Copy)]
pub struct Host {
    /// Most operations take at most so long, in microseconds.
    most_us: u64,
    /// A few take at most so long, if any do.
    straggler_us: Option<u64>,
}

impl Host {
    /// The host of a setting.
    pub fn of(setting: &Setting) -> Host {
        Host {
            most_us: setting.host_us,
            straggler_us: setting.straggler_us,
        }
    }

    /// What an operation takes, in nanoseconds.
    fn takes(self, dice: &mut Dice) -> u64 {
        let longest = match self.straggler_us {
            Some(longest) if dice.percent(STRAGGLERS) => longest,
            _ => self.most_us,
        };
        1 + dice.below(longest * 1000)
    }
}

/// An operation on a file. The kernel may read in two parts, with other operations in between.
struct FileOperation {
    ticket: Ticket,
    part: RingOperation,
    /// What is left for a later time, in nanoseconds from this part on.
    rest: Option<(u64, RingOperation)>,
    /// The bytes that earlier parts have moved.
    moved: i32,
}

/// Bytes that a kernel writes as a whole, or more.
const SECTOR: u64 = 512;

/// The share of reads of files that come in two parts, in percent. A choice.
const IN_PARTS: u64 = 30;

/// The share of operations of a host with stragglers that take long, in percent. A choice.
const STRAGGLERS: u64 = 10;

/// What a turn of the loop takes, so that time passes in every loop.
const TURN_NS: u64 = 200;

/// A loop that wakes up so often while nothing completes is stuck.
const STUCK: u64 = 200_000;

/// No run takes longer: an hour.
const HORIZON_NS: u64 = 3_600_000_000_000;

impl Simulation {
    pub fn new(
        (clock, nanos): (Clock, &'static AtomicU64),
        world: Rc<RefCell<World>>,
        seed: u64,
        host: Host,
    ) -> Simulation {
        Simulation {
            clock,
            nanos,
            world,
            // Another stream of numbers than the plan's.
            dice: Dice::new(!seed),
            host,
            files: BTreeMap::new(),
            sockets: Vec::new(),
            ends: VecDeque::new(),
            submitted: 0,
            still: 0,
        }
    }

    fn now(&self) -> u64 {
        self.nanos.load(Ordering::Relaxed)
    }

    /// Completes what sockets and bells allow. The answer is whether anything was.
    fn move_sockets(&mut self) -> bool {
        let before = self.ends.len();
        let ends = &mut self.ends;
        self.sockets.retain(|&(ticket, operation)| {
            // SAFETY: as the loop promised when it submitted.
            match unsafe { execute(operation) } {
                Some(result) => ends.push_back((ticket, result)),
                None => return true,
            }
            false
        });
        self.ends.len() > before
    }

    /// Executes the files' operations whose time has come.
    fn move_files(&mut self) {
        while let Some(entry) = self.files.first_entry()
            && entry.key().0 <= self.nanos.load(Ordering::Relaxed)
        {
            let FileOperation {
                ticket,
                part,
                rest,
                moved,
            } = entry.remove();
            // SAFETY: as the loop promised when it submitted.
            let result = unsafe { execute(part) }.expect("files do not wait");
            match rest {
                Some((takes, part)) if result >= 0 => {
                    let rest = FileOperation {
                        ticket,
                        part,
                        rest: None,
                        moved: moved + result,
                    };
                    self.put(takes, rest);
                }
                _ if result < 0 => self.ends.push_back((ticket, result)),
                _ => self.ends.push_back((ticket, moved + result)),
            }
        }
    }

    /// The process is killed: operations on files that are under way are executed, or a part of them, or nothing.
    fn end_in_the_middle(&mut self) {
        for operation in std::mem::take(&mut self.files).into_values() {
            let part = match (operation.part, self.dice.below(3)) {
                (_, 0) => continue,
                (RingOperation::Write { .. }, 1) => {
                    let count = self.dice.below(u64::MAX);
                    written_part(operation.part, count)
                }
                (whole, _) => whole,
            };
            // SAFETY: the loop is still there, and with it what the operation names.
            unsafe { execute(part) };
        }
        self.sockets.clear();
    }

    fn put(&mut self, takes: u64, operation: FileOperation) {
        self.submitted += 1;
        self.files
            .insert((self.now() + takes, self.submitted), operation);
    }
}

impl Queues for Simulation {
    unsafe fn submit(&mut self, ticket: Ticket, operation: RingOperation) {
        match ticket.owner {
            // The bell of checksums.
            _ if matches!(operation, RingOperation::PollReadable { .. }) => {
                self.sockets.push((ticket, operation));
            }
            Owner::BackEnd | Owner::SecondLeg => {
                let stalled = self.world.borrow().stalled_until();
                let stalled = stalled.saturating_sub(self.now());
                let mut takes = || self.host.takes(&mut self.dice);
                let (first, second) = (stalled + takes(), takes());
                let parts = match self.dice.percent(IN_PARTS) {
                    true => divide(operation, self.dice.below(u64::MAX)),
                    false => None,
                };
                let (part, rest) = match parts {
                    Some([part, rest]) => (part, Some((second, rest))),
                    None => (operation, None),
                };
                let operation = FileOperation {
                    ticket,
                    part,
                    rest,
                    moved: 0,
                };
                self.put(first, operation);
            }
            Owner::Mailbox | Owner::Receive | Owner::Send | Owner::Marks => {
                self.sockets.push((ticket, operation));
            }
        }
    }

    fn wait(&mut self, _rest: Duration, until: Option<Instant>) -> io::Result<()> {
        let until = until.map(|moment| self.clock.at(moment).as_nanos());
        self.nanos.fetch_add(TURN_NS, Ordering::Relaxed);
        loop {
            self.move_files();
            while self.move_sockets() | self.world.borrow_mut().progress(self.now()) {}
            if self.world.borrow().is_killed() {
                self.world
                    .borrow()
                    .regions()
                    .inspect(|regions| regions.kill());
                self.end_in_the_middle();
                return Err(io::Error::from(io::ErrorKind::Interrupted));
            }
            if !self.ends.is_empty() {
                self.still = 0;
                return Ok(());
            }
            let times = [
                self.files.first_key_value().map(|(&(time, _), _)| time),
                self.world.borrow().next_time(),
                until,
            ];
            let next = times.into_iter().flatten().min();
            let next = next.expect("the service waits for ever");
            assert!(next < HORIZON_NS, "the run takes longer than an hour");
            self.nanos.fetch_max(next, Ordering::Relaxed);
            if until == Some(next) {
                self.still += 1;
                assert!(self.still < STUCK, "the loop turns and turns");
                return Ok(());
            }
        }
    }

    fn next_end(&mut self) -> Option<(Ticket, i32)> {
        self.ends.pop_front()
    }
}

/// Two parts of a read, divided at any byte. A file system does not divide the others: it locks the file.
fn divide(operation: RingOperation, at: u64) -> Option<[RingOperation; 2]> {
    let RingOperation::Read {
        file,
        memory,
        offset,
    } = operation
    else {
        return None;
    };
    let length = memory.length as u64;
    let part = |from: u64, length: u64| RingOperation::Read {
        file,
        memory: memory.part(from as usize, length as usize),
        offset: offset + from,
    };
    let first = (length > 1).then(|| 1 + at % (length - 1))?;
    Some([part(0, first), part(first, length - first)])
}

/// Some of a write's sectors, from its first one on. A kernel writes no part of a sector.
fn written_part(operation: RingOperation, count: u64) -> RingOperation {
    match operation {
        RingOperation::Write {
            file,
            memory,
            offset,
            flags,
        } => RingOperation::Write {
            file,
            memory: memory.part(
                0,
                (count % (memory.length as u64 / SECTOR + 1) * SECTOR) as usize,
            ),
            offset,
            flags,
        },
        other => other,
    }
}

/// Executes an operation, if that needs no wait: the kernel's result.
///
/// # Safety
/// The memory of the operation has to be as for [`Queues::submit`].
unsafe fn execute(operation: RingOperation) -> Option<i32> {
    // SAFETY: as the caller promises.
    let result = unsafe {
        match operation {
            RingOperation::Read { file, .. } if !is_readable(file) => return None,
            RingOperation::Read {
                file,
                memory,
                offset,
            } => match libc::pread(file, memory.at.cast(), memory.length, offset as i64) {
                // A bell has no offsets.
                -1 if error() == libc::ESPIPE => libc::read(file, memory.at.cast(), memory.length),
                count => count,
            },
            RingOperation::Write {
                file,
                memory,
                offset,
                ..
            } => libc::pwrite(file, memory.at.cast(), memory.length, offset as i64),
            RingOperation::Sync { .. } => 0,
            RingOperation::Allocate {
                file,
                mode,
                offset,
                length,
            } => libc::fallocate(file, mode, offset as i64, length as i64) as isize,
            RingOperation::Receive { socket, memory } => {
                libc::recv(socket, memory.at.cast(), memory.length, libc::MSG_DONTWAIT)
            }
            RingOperation::Send { socket, message } => {
                libc::sendmsg(socket, message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
            }
            RingOperation::PollReadable { file } => match is_readable(file) {
                true => libc::POLLIN as isize,
                false => return None,
            },
        }
    };
    match result {
        -1 if error() == libc::EAGAIN => None,
        -1 => Some(-error()),
        count => Some(count as i32),
    }
}

fn error() -> i32 {
    io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}

fn is_readable(file: RawFd) -> bool {
    let mut poll = libc::pollfd {
        fd: file,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, which is here.
    unsafe { libc::poll(&raw mut poll, 1, 0) > 0 }
}
