//! The requests of one command, in sizes that the server takes.
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

/// The origin of a job.
#[derive(Clone, Copy, Debug)]
pub(super) enum For {
    Command(CommandId),
    Punch(u32),
    Runs(u32),
}

/// The memory of a job. A command has at most three pieces.
#[derive(Clone, Copy)]
pub(super) struct Pieces {
    pieces: [Option<Memory>; 3],
}

/// The requests of one command.
pub(super) struct Job {
    pub(super) whom: For,
    /// The number of the job, in the order of arrival.
    pub(super) number: u64,
    ask: Asked,
    /// The first byte of the export.
    pub(super) offset: u64,
    pub(super) length: u64,
    pieces: Pieces,
    /// Bytes for which a request was made.
    asked: u64,
    /// The number of requests in flight.
    left: u32,
    result: Result<(), OperationError>,
    stage: Stage,
    /// Whether a flush follows, because the server has no FUA.
    is_durable: bool,
    /// The time since which the server has been lost, if that interrupted the job.
    pub(super) interrupted: Option<Instant>,
    /// The number of volatile writes that a flush covers.
    pub(super) covers: u64,
    pub(super) runs: Vec<Run>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Body,
    Flush,
}

/// A request without a cookie.
#[derive(Clone, Copy)]
pub(super) struct ServerRequest {
    pub(super) ask: Asked,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// The memory of the bytes.
    pub(super) memory: Option<Memory>,
}

/// The server's limits for one request.
#[derive(Clone, Copy)]
pub(super) struct RequestLimits {
    /// Bytes of the longest read or write.
    pub(super) payload: u64,
    /// Whether the server has FUA.
    pub(super) fua: bool,
    /// Whether the server has flushes.
    pub(super) flush: bool,
}

/// Bytes of the longest trim, zeroing or block status request. A choice: compact requests end below 2^32,
/// and the server has to answer within the patience.
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

    /// At most `most` bytes from `skip` on in one piece.
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

    /// The next request, if there is one now. A flush waits for the other requests.
    pub(super) fn next(&mut self, bounds: RequestLimits) -> Option<ServerRequest> {
        if !self.has_more() {
            return None;
        }
        self.left += 1;
        if self.is_flush() || self.stage == Stage::Flush {
            self.asked = self.length.max(1);
            return Some(ServerRequest {
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
        Some(ServerRequest {
            ask,
            offset,
            length,
            memory,
        })
    }

    /// Whether there is a request now.
    pub(super) fn has_more(&self) -> bool {
        match self.stage {
            Stage::Body => self.asked < self.length.max(1),
            Stage::Flush => self.asked == 0,
        }
    }

    /// A request has ended. The answer is whether the job has.
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

    /// Restarts the job: the server may have lost answered requests.
    pub(super) fn begin_again(&mut self, since: Instant) {
        self.asked = 0;
        self.left = 0;
        self.result = Ok(());
        self.stage = Stage::Body;
        self.is_durable = false;
        self.runs.clear();
        self.interrupted.get_or_insert(since);
    }

    /// Fails the job: its server is not awaited any longer.
    pub(super) fn give_up(&mut self) {
        self.result = Err(OperationError::Io);
    }

    pub(super) fn result(&self) -> Result<(), OperationError> {
        self.result
    }

    pub(super) fn is_flush(&self) -> bool {
        self.ask == Asked::Of(Ask::Flush)
    }

    /// Whether the job's changes may be lost until a flush.
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

/// The block status request.
pub(super) const STATUS: Asked = Asked::BlockStatus {
    wanted: Wanted::Many,
};
