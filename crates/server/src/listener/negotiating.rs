//! Connections that negotiate: at most [`MOST`], and a new one pushes out the oldest.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::net::{Shutdown, shutdown};
use tracing::warn;

/// At most so many clients negotiate at once. A choice.
const MOST: usize = 64;

/// Connections that negotiate, the oldest first.
#[derive(Clone, Default)]
pub(super) struct Negotiating {
    sockets: Arc<Mutex<Sockets>>,
}

#[derive(Default)]
struct Sockets {
    all: VecDeque<(u64, OwnedFd)>,
    next: u64,
}

/// One of them. It ends when it is dropped.
pub(super) struct Handshake {
    all: Negotiating,
    number: u64,
}

impl Negotiating {
    /// Admits a connection. At the bound the oldest one is closed: it has had the most time.
    ///
    /// # Errors
    /// If there is no file descriptor left.
    pub(super) fn enter(&self, stream: &impl AsFd) -> io::Result<Handshake> {
        let socket = stream.as_fd().try_clone_to_owned()?;
        let mut sockets = self.lock();
        while sockets.all.len() >= MOST {
            if let Some((_, first)) = sockets.all.pop_front() {
                warn!(most = MOST, "too many negotiate: the first one is cut off");
                let _ = shutdown(&first, Shutdown::Both);
            }
        }
        let number = sockets.next;
        sockets.next += 1;
        sockets.all.push_back((number, socket));
        let all = self.clone();
        Ok(Handshake { all, number })
    }

    fn lock(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handshake {
    /// Ends the handshake of a client that has agreed.
    ///
    /// # Errors
    /// If the connection was closed just before.
    pub(super) fn end(self) -> io::Result<()> {
        match self.remove() {
            true => Ok(()),
            false => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }

    /// Whether it was still there.
    fn remove(&self) -> bool {
        let mut sockets = self.all.lock();
        let found = sockets.all.iter().position(|&(n, _)| n == self.number);
        found.is_some_and(|at| sockets.all.remove(at).is_some())
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.remove();
    }
}
