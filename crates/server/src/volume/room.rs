//! Operations under way whose next request or flush finds no room in the engine.
//!
//! ```text
//!   zeroes, edges --next request--> room? --yes--> engine
//!                                    '--no--> waits, before caches and new operations
//! ```
//!
//! An engine that another one replaces has no room, and flushes may be more than it holds. A client is told of
//! neither.

use std::collections::VecDeque;

use block::operation::OperationError;
use block::{Refused, Request, RequestId};

use super::Volumes;
use crate::disk::Disk;

/// What waits for room in the engine, the oldest first.
#[derive(Default)]
pub(super) struct WaitingForRoom {
    requests: VecDeque<Request>,
    /// The keys of operations that flush the drive.
    flushes: VecDeque<usize>,
}

impl Volumes {
    /// Gives a request of an operation to the engine, at once or when it has room.
    pub(super) fn give(&mut self, disk: &mut Disk, request: Request) {
        if !disk.engine.has_room(request.class) {
            return self.waiting.requests.push_back(request);
        }
        match disk.submit(request) {
            Ok(()) => self.caches.note_change(disk, &self.operations, &request),
            Err(_) => self.fail(disk, request.id.0 as usize, OperationError::Invalid),
        }
    }

    /// Flushes the drive for an operation, at once or when the engine has room.
    pub(super) fn flush_drive(&mut self, disk: &mut Disk, key: usize) {
        match disk.engine.flush(disk.now, RequestId(key as u64)) {
            Ok(()) => (),
            Err(Refused::Full { .. }) => self.waiting.flushes.push_back(key),
            Err(_) => self.fail(disk, key, OperationError::Io),
        }
    }

    /// Gives the engine what has waited for room, as far as it has some. The answer is whether there was anything.
    pub(crate) fn give_waiting(&mut self, disk: &mut Disk) -> bool {
        let mut is_any = false;
        for _ in 0..self.waiting.requests.len() {
            // Requests of other classes may have room, so all are looked at.
            let Some(request) = self.waiting.requests.pop_front() else {
                break;
            };
            is_any |= disk.engine.has_room(request.class);
            self.give(disk, request);
        }
        for _ in 0..self.waiting.flushes.len() {
            let Some(key) = self.waiting.flushes.pop_front() else {
                break;
            };
            let left = self.waiting.flushes.len();
            self.flush_drive(disk, key);
            if self.waiting.flushes.len() > left {
                // It has no room, and goes first the next time.
                self.waiting.flushes.rotate_right(1);
                break;
            }
            is_any = true;
        }
        is_any
    }
}
