//! Flushes: the pages of a volume first, then the drive.
//!
//! ```text
//!   flush --[ pages that were acknowledged before it ]--> drive's flush --> answer
//!                          '-- one could not be written ----'-- failed --> failed, once for each client
//! ```

use block::{Instant, RequestId};

use crate::event_loop::EventLoop;
use crate::event_loop::operations::{Bytes, From, Operation};
use crate::mailbox::Reply;
use crate::operation::{Ask, Failed};

/// A flush that waits until nothing of this serial or an earlier one is unwritten.
#[derive(Clone, Copy)]
pub(super) struct Draining {
    key: usize,
    /// The cache before its volume.
    number: usize,
    serial: u64,
}

/// Something that was acknowledged is lost, or may be, and who was told.
pub(super) struct Loss {
    of: Whose,
    noticed: Instant,
    told: Vec<u64>,
}

/// What was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// Pages of a cache that could not be written.
    Cache(usize),
    /// What the drive had not on its medium when its flush failed.
    Drive,
}

/// Front ends other than NBD are one client.
const POSTED: u64 = u64::MAX;

impl EventLoop {
    /// Flushes of all volumes that nobody has asked for.
    pub(in crate::event_loop) fn flush_at_the_end(&mut self) {
        for export in 0..self.exports.len() {
            let operation = Operation {
                export,
                ask: Ask::Flush,
                offset: 0,
                length: 0,
            };
            let told: Reply = Box::new(|result| {
                if let Err(failed) = result {
                    tracing::error!(%failed, "the last flush has failed");
                }
            });
            // Nothing is held but other flushes: there is room.
            let _ = self.begin(From::Posted(told), operation, Bytes::None);
        }
    }

    fn flush_engine(&mut self, key: usize) {
        let id = RequestId(key as u64);
        if self.engine.flush(self.now, id).is_err() {
            self.fail(key, Failed::Io);
        }
    }

    /// The engine flushes, once the pages of its volume are written that it would miss. What is only to
    /// be durable by itself waits for no pages, and is not told what became of them.
    pub(in crate::event_loop) fn flush(&mut self, key: usize) {
        let operation = self.pending[key].operation;
        let number = match operation.ask {
            Ask::Flush => self.cache_of(&operation),
            _ => None,
        };
        match number {
            Some(number) => self.flush_pages(key, number),
            None => self.flush_engine(key),
        }
    }

    fn flush_pages(&mut self, key: usize, number: usize) {
        let serial = self.caches.serial;
        let cached = &mut self.caches.all[number];
        if !cached.has_unwritten(serial) {
            return self.end_drain(key, number);
        }
        let export = self.pending[key].operation.export;
        cached.urge(self.exports[export].class, &mut self.caches.upgrades);
        self.caches.draining.push(Draining {
            key,
            number,
            serial,
        });
        self.upgrade_pieces();
    }

    /// Flushes whose pages are written go on; whether any did.
    pub(super) fn end_drained(&mut self) -> bool {
        let mut is_any = false;
        let mut next = 0;
        while let Some(&Draining {
            key,
            number,
            serial,
        }) = self.caches.draining.get(next)
        {
            if self.caches.all[number].has_unwritten(serial) {
                next += 1;
                continue;
            }
            self.caches.draining.remove(next);
            let mut others = self.caches.draining.iter();
            if !others.any(|other| other.number == number) {
                self.caches.all[number].calm();
            }
            is_any = true;
            self.end_drain(key, number);
        }
        is_any
    }

    /// The pages of a flush are written, or could not be. Then all flushes of the volume that are under
    /// way say so, since whoever asked for them did not know it, and the next one of each client that
    /// was there. If nobody was told, the first that comes is.
    fn end_drain(&mut self, key: usize, number: usize) {
        if self.caches.all[number].take_failure() {
            let flushes = self.flushes_of(number).collect();
            self.lose(Whose::Cache(number), flushes);
        } else if self.is_told(key, Whose::Cache(number)) {
            self.pending[key].result = Err(Failed::Io);
        }
        match self.pending[key].result {
            Ok(()) => self.flush_engine(key),
            Err(_) => self.answer(key),
        }
    }

    /// The flushes under way of the volume behind a cache.
    fn flushes_of(&self, number: usize) -> impl Iterator<Item = usize> {
        let offset = self.caches.all[number].site().offset;
        let flushes = self.pending.iter().filter(move |(_, pending)| {
            let Operation { ask, export, .. } = pending.operation;
            ask == Ask::Flush && self.exports[export].offset == offset
        });
        flushes.map(|(key, _)| key)
    }

    /// Something is lost: the flushes under way say so.
    fn lose(&mut self, of: Whose, flushes: Vec<usize>) {
        self.caches.losses.retain(|loss| loss.of != of);
        self.caches.losses.push(Loss {
            of,
            noticed: self.now,
            told: Vec::new(),
        });
        for flush in flushes {
            self.is_told(flush, of);
            self.pending[flush].result = Err(Failed::Io);
        }
    }

    /// Tells the client of a flush what was lost, unless it knows or came later; whether it was told.
    fn is_told(&mut self, key: usize, of: Whose) -> bool {
        let (client, since) = match self.pending[key].from {
            From::Connection { place, .. } => {
                let connection = &self.connections[place];
                (connection.number(), connection.since())
            }
            From::Posted(_) | From::Copied(_) => (POSTED, Instant::ZERO),
        };
        let mut losses = self.caches.losses.iter_mut();
        let Some(loss) = losses.find(|loss| loss.of == of) else {
            return false;
        };
        let was_there = loss.told.is_empty() || since <= loss.noticed;
        let is_new = was_there && !loss.told.contains(&client);
        if is_new {
            loss.told.push(client);
        }
        is_new
    }

    /// The drive's flush has failed: what anybody was told is written may be lost. All flushes under
    /// way say so, and the next one of each client that was there; what caches have of it is not kept.
    pub(in crate::event_loop) fn fail_flushes(&mut self) {
        let all = self.pending.iter();
        let flushes = all.filter(|(_, pending)| pending.operation.ask == Ask::Flush);
        let flushes = flushes.map(|(key, _)| key).collect();
        self.lose(Whose::Drive, flushes);
        self.caches.forget();
    }

    /// The drive has flushed for a flush; what an earlier flush of the drive lost is told with it.
    pub(in crate::event_loop) fn drive_flushed(&mut self, key: usize) {
        if self.pending[key].operation.ask == Ask::Flush && self.is_told(key, Whose::Drive) {
            self.pending[key].result = Err(Failed::Io);
        }
    }
}
