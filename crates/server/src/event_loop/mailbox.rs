//! The mailbox of a drive's event loop, for other threads.
//!
//! ```text
//!   front end, control --letter--> [ mailbox ] --bell (eventfd)--> event loop
//!                      <---------- reply, called on the loop's thread ---'
//! ```

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use super::EventLoop;
use crate::arena::Memory;
use crate::clients::Accepted;
use crate::ring::{Owner, Ring, Ticket};
use crate::volume::posted::Posted;
use block::operation::OperationError;

/// A message to the loop.
pub enum Letter {
    /// A connection after its handshake.
    Connection(Box<Accepted>),
    /// An operation of a front end on another thread.
    Operation(Posted),
    /// A call on the loop's thread: status, tasks, stopping.
    Call(Box<dyn FnOnce(&mut EventLoop) + Send>),
}

/// The mailbox of one loop.
#[derive(Clone)]
pub struct Mailbox {
    shared: Arc<MailboxState>,
}

struct MailboxState {
    letters: Mutex<Letters>,
    bell: OwnedFd,
}

#[derive(Default)]
struct Letters {
    waiting: VecDeque<Letter>,
    is_closed: bool,
}

/// The error of a call to a loop that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the drive's event loop has ended")]
pub struct Gone;

impl Mailbox {
    /// An empty mailbox.
    ///
    /// # Errors
    /// If there are no more file descriptors.
    pub fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC)?;
        let letters = Mutex::default();
        Ok(Mailbox {
            shared: Arc::new(MailboxState { letters, bell }),
        })
    }

    /// Appends a letter, and rings the bell.
    ///
    /// # Errors
    /// If the loop has ended.
    pub fn post(&self, letter: Letter) -> Result<(), Gone> {
        self.put(letter).map_err(|_| Gone)
    }

    /// Posts an operation. If the loop has ended, the callback gets [`OperationError::ShuttingDown`] at once.
    pub fn submit(&self, posted: Posted) {
        if let Err(Letter::Operation(posted)) = self.put(Letter::Operation(posted)) {
            (posted.reply)(Err(OperationError::ShuttingDown));
        }
    }

    /// Appends a letter and rings the bell, or returns the letter if the mailbox is closed.
    fn put(&self, letter: Letter) -> Result<(), Letter> {
        let is_first = {
            let mut letters = self.lock();
            if letters.is_closed {
                return Err(letter);
            }
            letters.waiting.push_back(letter);
            letters.waiting.len() == 1
        };
        if is_first {
            // It can only fail if it was rung 2^64 times, and then it is ringing.
            let _ = rustix::io::write(&self.shared.bell, &1u64.to_ne_bytes());
        }
        Ok(())
    }

    /// Calls `what` on the loop's thread. It does not wait for the call.
    ///
    /// # Errors
    /// If the loop has ended.
    pub fn call(&self, what: impl FnOnce(&mut EventLoop) + Send + 'static) -> Result<(), Gone> {
        self.post(Letter::Call(Box::new(what)))
    }

    /// All letters, in their order.
    pub(super) fn take(&self) -> VecDeque<Letter> {
        std::mem::take(&mut self.lock().waiting)
    }

    /// Closes the mailbox. The answer is the letters in it.
    pub(crate) fn close(&self) -> VecDeque<Letter> {
        let mut letters = self.lock();
        letters.is_closed = true;
        std::mem::take(&mut letters.waiting)
    }

    fn bell(&self) -> RawFd {
        self.shared.bell.as_fd().as_raw_fd()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Letters> {
        let letters = self.shared.letters.lock();
        letters.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The loop's end of its mailbox: a read of the bell that is always in flight.
pub(super) struct Bell {
    pub(super) mailbox: Mailbox,
    /// The counter of the eventfd, written by the kernel.
    count: Box<[u8; 8]>,
}

impl Bell {
    pub(super) fn new(mailbox: Mailbox) -> Self {
        Bell {
            mailbox,
            count: Box::new([0; 8]),
        }
    }

    /// Starts the next read of the bell.
    #[allow(unsafe_code, reason = "the kernel writes to the bell's box")]
    pub(super) fn listen(&mut self, ring: &mut Ring) {
        let memory = Memory {
            at: self.count.as_mut_ptr(),
            length: self.count.len(),
        };
        let ticket = Ticket {
            owner: Owner::Mailbox,
            key: 0,
        };
        // SAFETY: the box is the loop's, which outlives its ring's operations.
        unsafe {
            ring.read(ticket, self.mailbox.bell(), memory, 0);
        }
    }
}
