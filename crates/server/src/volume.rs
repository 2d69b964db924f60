//! The volumes of a drive: the only place that knows bytes.
//!
//! ```text
//!   clients --operation--> [ streams? ] -> [ cache? ] -> [ edges? ] --request--> disk
//!           <--answer----   memory of      pages         partial    <-finished--
//!                           a stream                     blocks
//! ```
//!
//! An operation passes these in this order. Each serves it, makes it wait, or hands it on:
//!
//! | owner | state | file |
//! |---|---|---|
//! | `Exports` | which bytes of the drive | `exports` |
//! | `Streams` | buffers of guaranteed streams | `streams` |
//! | `Caches` | pages before volumes | `caching`, `cached` |
//! | `Partial` | blocks that are changed in part | `edges` |
//!
//! Clients poll the answers of their operations with `poll_answer`. Front ends on other
//! threads are called back.

use std::collections::VecDeque;
use std::io;

use slab::Slab;

use crate::arena::{Arena, Buffer};
use block::operation::Failed;

pub mod cached;
mod caching;
mod edges;
pub(crate) mod exports;
mod layout;
pub(crate) mod operation;
mod operations;
pub mod posted;
mod resize;
mod space;
pub mod streams;

use caching::Caches;
use edges::Partial;
pub use exports::Export;
use exports::Exports;
use operation::{Answer, Pending};
pub use operations::LONGEST;
use posted::Posted;
pub use resize::Resize;
use streams::Streams;

/// All volumes of a drive.
pub(crate) struct Volumes {
    pub(crate) exports: Exports,
    /// Operations that have begun and were not answered. The engine knows them by their keys.
    pending: Slab<Pending>,
    partial: Partial,
    /// Posted operations that wait for room.
    posted: VecDeque<Posted>,
    pub(crate) streams: Streams,
    pub(crate) caches: Caches,
    /// Answers that clients have not polled.
    answers: VecDeque<Answer>,
    is_stopping: bool,
    /// Bytes of the longest read or write.
    longest: usize,
    zeroes: Buffer,
    /// Last: what is above may point into it.
    arena: Arena,
}

/// Zeroes are written in pieces of so many bytes. A choice: a piece holds the head for a few
/// milliseconds.
pub(crate) const ZEROES: usize = 1 << 20;

impl Volumes {
    /// Volumes without operations, whose bytes are in `arena`.
    ///
    /// # Errors
    /// If the arena has no room for [`ZEROES`].
    pub(crate) fn new(exports: Exports, mut arena: Arena, longest: usize) -> io::Result<Self> {
        let zeroes = arena.allocate(ZEROES).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Volumes {
            exports,
            pending: Slab::new(),
            partial: Partial::default(),
            posted: VecDeque::new(),
            streams: Streams::default(),
            caches: Caches::default(),
            answers: VecDeque::new(),
            is_stopping: false,
            longest,
            zeroes,
            arena,
        })
    }

    /// The next answer to an operation of a connection.
    pub(crate) fn poll_answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    /// Takes an operation of a front end on another thread.
    pub(crate) fn post(&mut self, posted: Posted) {
        self.posted.push_back(posted);
    }

    /// Takes no new operations.
    pub(crate) fn stop(&mut self, refused: impl Iterator<Item = Posted>) {
        self.is_stopping = true;
        for posted in refused {
            (posted.reply)(Err(Failed::ShuttingDown));
        }
    }

    /// Forgets everything that the drive may have lost with its power.
    pub(crate) fn forget(&mut self) {
        self.streams.forget_played();
        self.caches.forget();
    }

    /// Whether nothing is held.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_empty()
            && self.posted.is_empty()
            && self.streams.is_empty()
            && self.caches.are_at_rest()
    }

    /// Operations that were taken and not answered.
    pub(crate) fn operations(&self) -> usize {
        self.pending.len() + self.posted.len()
    }

    /// Bytes of operations in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.length() - self.arena.left() - self.zeroes.length()
    }
}
