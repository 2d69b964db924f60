//! What the server is to do for one command, in requests that it can take.
//!
//! ```text
//!   command  |      memory      |   memory   |
//!   requests |  max  |  max | . |  max   | . |   then a flush, if it is durable and there is no FUA
//! ```

use block::{CommandId, Durability, Instant};

use crate::arena::Memory;
use crate::disk::back_end::Run;
use block::operation::{Ask, OperationError};
use nbd::request::{Asked, Wanted};

/// Whom a job is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum For {
    Command(CommandId),
    Punch(u32),
    Runs(u32),
}

/// Bytes that a job reads to or writes from: those of a command lie in at most three pieces.
#[derive(Clone, Copy)]
pub(super) struct Pieces {
    pieces: [Option<Memory>; 3],
}

/// Everything that is to be done for one command.
pub(super) struct Job {
    pub(super) whom: For,
    /// In the order in which they came.
    pub(super) number: u64,
    ask: Asked,
    /// In bytes of the export.
    pub(super) offset: u64,
    pub(super) length: u64,
    pieces: Pieces,
    /// Bytes for which there was a request.
    asked: u64,
    /// Requests under way.
    left: u32,
    result: Result<(), OperationError>,
    stage: Stage,
    /// A flush follows, because the server has no FUA.
    is_durable: bool,
    /// Since when its server has been gone, if it was interrupted by that.
    pub(super) interrupted: Option<Instant>,
    /// Of a flush: how many volatile writes had been answered when it was sent.
    pub(super) covers: u64,
    pub(super) runs: Vec<Run>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Body,
    Flush,
}

/// A request, before it has a cookie.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) ask: Asked,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// Where its bytes are.
    pub(super) memory: Option<Memory>,
}

/// What one request of a server may have.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// The longest read or write.
    pub(super) payload: u64,
    /// Whether it has FUA.
    pub(super) fua: bool,
    /// Whether it has flushes.
    pub(super) flush: bool,
}

/// The longest trim, zeroing or question, in bytes. A choice: 2^32 cannot be said in compact
/// requests, and a server should answer within our patience.
const SPAN: u64 = 1 << 30;

impl Pieces {
    pub(super) const NONE: Pieces = Pieces { pieces: [None; 3] };

    pub(super) fn of(memory: &[Memory]) -> Self {
        let mut pieces = [None; 3];
        for (place, memory) in pieces.iter_mut().zip(memory) {
            *place = Some(*memory);
        }
        Pieces { pieces }
    }

    /// What lies from `skip` on in one piece, at most `most` bytes.
    fn part(&self, mut skip: u64, most: u64) -> Option<Memory> {
        for piece in self.pieces.iter().flatten() {
            let length = piece.length as u64;
            if skip < length {
                let part = (length - skip).min(most);
                return Some(piece.part(skip as usize, part as usize));
            }
            skip -= length;
        }
        None
    }

    fn is_any(&self) -> bool {
        self.pieces[0].is_some()
    }
}

impl Job {
    pub(super) fn new(whom: For, ask: Asked, (offset, length): (u64, u64), pieces: Pieces) -> Self {
        Job {
            whom,
            number: 0,
            ask,
            offset,
            length,
            pieces,
            asked: 0,
            left: 0,
            result: Ok(()),
            stage: Stage::Body,
            is_durable: false,
            interrupted: None,
            covers: 0,
            runs: Vec::new(),
        }
    }

    /// The next request, if there is one now: what follows the others comes when these have ended.
    pub(super) fn next(&mut self, bounds: Bounds) -> Option<Request> {
        if !self.has_more() {
            return None;
        }
        self.left += 1;
        if self.is_flush() || self.stage == Stage::Flush {
            self.asked = self.length.max(1);
            return Some(Request {
                ask: Asked::Of(Ask::Flush),
                offset: 0,
                length: 0,
                memory: None,
            });
        }
        let rest = self.length - self.asked;
        let memory = match self.pieces.is_any() {
            true => self.pieces.part(self.asked, bounds.payload.min(rest)),
            false => None,
        };
        let length = memory.map_or(rest.min(SPAN), |memory| memory.length as u64);
        let offset = self.offset + self.asked;
        // The server tells of the front of a question as much as it likes: there is one request.
        self.asked = match self.ask {
            Asked::BlockStatus { .. } => self.length,
            _ => self.asked + length,
        };
        let ask = match self.ask {
            Asked::Of(Ask::Write {
                durability: Durability::Durable,
            }) if !bounds.fua => {
                self.is_durable = bounds.flush;
                Asked::Of(Ask::Write {
                    durability: Durability::Volatile,
                })
            }
            ask => ask,
        };
        Some(Request {
            ask,
            offset,
            length,
            memory,
        })
    }

    /// Whether there is a request to be made now.
    pub(super) fn has_more(&self) -> bool {
        match self.stage {
            Stage::Body => self.asked < self.length.max(1),
            Stage::Flush => self.asked == 0,
        }
    }

    /// One of its requests has ended; whether all of it has. If not, there may be more now.
    pub(super) fn ended(&mut self, result: Result<(), OperationError>) -> bool {
        self.left -= 1;
        self.result = self.result.and(result);
        if self.left > 0 || self.has_more() {
            return false;
        }
        if self.is_durable && self.stage == Stage::Body && self.result.is_ok() {
            self.stage = Stage::Flush;
            self.asked = 0;
            return false;
        }
        true
    }

    /// As if nothing of it had been asked for: the server may have forgotten what it had answered.
    pub(super) fn begin_again(&mut self, since: Instant) {
        self.asked = 0;
        self.left = 0;
        self.result = Ok(());
        self.stage = Stage::Body;
        self.is_durable = false;
        self.runs.clear();
        self.interrupted.get_or_insert(since);
    }

    /// Nobody waits for its server any more.
    pub(super) fn give_up(&mut self) {
        self.result = Err(OperationError::Io);
    }

    pub(super) fn result(&self) -> Result<(), OperationError> {
        self.result
    }

    pub(super) fn is_flush(&self) -> bool {
        self.ask == Asked::Of(Ask::Flush)
    }

    /// Whether what it did may be lost until a flush has ended.
    pub(super) fn is_volatile(&self) -> bool {
        let is_durable = |durability: Durability| durability == Durability::Durable;
        match self.ask {
            Asked::Of(Ask::Write { durability }) => !is_durable(durability),
            Asked::Of(Ask::Zero { durability, .. } | Ask::Trim { durability }) => {
                !is_durable(durability)
            }
            _ => false,
        }
    }
}

/// The question what blocks hold.
pub(super) const STATUS: Asked = Asked::BlockStatus {
    wanted: Wanted::Many,
};
