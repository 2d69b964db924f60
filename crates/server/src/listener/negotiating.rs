//! Who negotiates now: so many at most, and a newcomer is never the one who has to go.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::net::{Shutdown, shutdown};
use tracing::warn;

/// At most so many clients negotiate at once. A choice.
const MOST: usize = 64;

/// Those who negotiate, in the order in which they came.
#[derive(Clone, Default)]
pub(super) struct Negotiating {
    who: Arc<Mutex<Who>>,
}

#[derive(Default)]
struct Who {
    sockets: VecDeque<(u64, OwnedFd)>,
    next: u64,
}

/// The place of one of them, given up when it is dropped.
pub(super) struct Place {
    all: Negotiating,
    number: u64,
}

impl Negotiating {
    /// Lets a client in. If there are as many as there may be, the first of them is hung up on: it
    /// has had more time than anybody else.
    ///
    /// # Errors
    /// If there is no file descriptor left.
    pub(super) fn enter(&self, stream: &impl AsFd) -> io::Result<Place> {
        let socket = stream.as_fd().try_clone_to_owned()?;
        let mut who = self.lock();
        while who.sockets.len() >= MOST {
            if let Some((_, first)) = who.sockets.pop_front() {
                warn!(most = MOST, "too many negotiate: the first one is cut off");
                let _ = shutdown(&first, Shutdown::Both);
            }
        }
        let number = who.next;
        who.next += 1;
        who.sockets.push_back((number, socket));
        let all = self.clone();
        Ok(Place { all, number })
    }

    fn lock(&self) -> MutexGuard<'_, Who> {
        self.who.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The client has agreed.
    ///
    /// # Errors
    /// If it was hung up on just before.
    pub(super) fn leave(self) -> io::Result<()> {
        match self.remove() {
            true => Ok(()),
            false => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }

    /// Whether it was still there.
    fn remove(&self) -> bool {
        let mut who = self.all.lock();
        let found = who.sockets.iter().position(|&(n, _)| n == self.number);
        found.is_some_and(|at| who.sockets.remove(at).is_some())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.remove();
    }
}
