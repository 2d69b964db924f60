//! Flushes: the pages of a volume first, then the drive.
//!
//! ```text
//!   flush --[ pages that were acknowledged before it ]--> drive's flush --> answer
//!                          '-- one could not be written ----'-- failed --> failed, once for each client
//! ```

use block::{Instant, RequestId};

use crate::arena::Bytes;
use crate::disk::Disk;
use crate::volume::Volumes;
use crate::volume::operation::{From, Operation, Reply};
use block::operation::{Ask, Failed};

/// A flush that waits until nothing of this serial or an earlier one is unwritten.
#[derive(Clone, Copy)]
pub(super) struct Draining {
    key: usize,
    /// The cache before its volume.
    number: usize,
    serial: u64,
}

/// Acknowledged writes that are lost, or may be: the last loss of each origin.
#[derive(Default)]
pub(super) struct Losses(Vec<Loss>);

/// A loss, and the clients whose flushes have failed because of it.
struct Loss {
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

impl Losses {
    fn note(&mut self, of: Whose, now: Instant) {
        self.0.retain(|loss| loss.of != of);
        self.0.push(Loss {
            of,
            noticed: now,
            told: Vec::new(),
        });
    }

    /// Tells the client of a flush of a loss, unless it knows or came later. The answer is whether it was
    /// told now.
    fn tell(&mut self, of: Whose, from: &From) -> bool {
        let (client, since) = match from {
            From::Connection { client, .. } => (client.number, client.since),
            From::Posted(_) | From::Copied(_) => (POSTED, Instant::ZERO),
        };
        let Some(loss) = self.0.iter_mut().find(|loss| loss.of == of) else {
            return false;
        };
        let was_there = loss.told.is_empty() || since <= loss.noticed;
        let is_new = was_there && !loss.told.contains(&client);
        if is_new {
            loss.told.push(client);
        }
        is_new
    }
}

impl Volumes {
    /// Flushes of all volumes that nobody has asked for.
    pub(crate) fn flush_at_the_end(&mut self, disk: &mut Disk) {
        for export in 0..self.exports.all().len() {
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
            let _ = self.begin(disk, From::Posted(told), operation, Bytes::None);
        }
    }

    fn flush_engine(&mut self, disk: &mut Disk, key: usize) {
        let id = RequestId(key as u64);
        if disk.engine.flush(disk.now, id).is_err() {
            self.fail(disk, key, Failed::Io);
        }
    }

    /// The engine flushes, once the pages of its volume are written that it would miss. What is only to
    /// be durable by itself waits for no pages, and is not told what became of them.
    pub(crate) fn flush(&mut self, disk: &mut Disk, key: usize) {
        let operation = self.pending[key].operation;
        let number = match operation.ask {
            Ask::Flush => self.caches.of(&self.exports, &operation),
            _ => None,
        };
        match number {
            Some(number) => self.flush_pages(disk, key, number),
            None => self.flush_engine(disk, key),
        }
    }

    fn flush_pages(&mut self, disk: &mut Disk, key: usize, number: usize) {
        let serial = self.caches.serial;
        let cached = &mut self.caches.all[number];
        if !cached.has_unwritten(serial) {
            return self.end_drain(disk, key, number);
        }
        let export = self.pending[key].operation.export;
        cached.urge(self.exports.class(export), &mut self.caches.upgrades);
        self.caches.draining.push(Draining {
            key,
            number,
            serial,
        });
        self.caches.upgrade_pieces(disk);
    }

    /// Flushes whose pages are written go on; whether any did.
    pub(super) fn end_drained(&mut self, disk: &mut Disk) -> bool {
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
            self.end_drain(disk, key, number);
        }
        is_any
    }

    /// The pages of a flush are written, or could not be. Then all flushes of the volume that are under
    /// way say so, since whoever asked for them did not know it, and the next one of each client that
    /// was there. If nobody was told, the first that comes is.
    fn end_drain(&mut self, disk: &mut Disk, key: usize, number: usize) {
        if self.caches.all[number].take_failure() {
            let flushes = self.flushes_of(number).collect();
            self.lose(disk, Whose::Cache(number), flushes);
        } else if self
            .caches
            .losses
            .tell(Whose::Cache(number), &self.pending[key].from)
        {
            self.pending[key].result = Err(Failed::Io);
        }
        match self.pending[key].result {
            Ok(()) => self.flush_engine(disk, key),
            Err(_) => self.answer(disk, key),
        }
    }

    /// The flushes under way of the volume behind a cache.
    fn flushes_of(&self, number: usize) -> impl Iterator<Item = usize> {
        let offset = self.caches.all[number].site().offset;
        let flushes = self.pending.iter().filter(move |(_, pending)| {
            let Operation { ask, export, .. } = pending.operation;
            ask == Ask::Flush && self.exports.offset(export) == offset
        });
        flushes.map(|(key, _)| key)
    }

    /// Something is lost: the pending flushes say so.
    fn lose(&mut self, disk: &Disk, of: Whose, flushes: Vec<usize>) {
        self.caches.losses.note(of, disk.now);
        for flush in flushes {
            self.caches.losses.tell(of, &self.pending[flush].from);
            self.pending[flush].result = Err(Failed::Io);
        }
    }

    /// The drive's flush has failed: what anybody was told is written may be lost. All flushes under
    /// way say so, and the next one of each client that was there; what caches have of it is not kept.
    pub(crate) fn fail_flushes(&mut self, disk: &mut Disk) {
        let all = self.pending.iter();
        let flushes = all.filter(|(_, pending)| pending.operation.ask == Ask::Flush);
        let flushes = flushes.map(|(key, _)| key).collect();
        self.lose(disk, Whose::Drive, flushes);
        self.caches.forget();
    }

    /// The drive has flushed for a flush; what an earlier flush of the drive lost is told with it.
    pub(crate) fn drive_flushed(&mut self, key: usize) {
        if self.pending[key].operation.ask == Ask::Flush
            && self
                .caches
                .losses
                .tell(Whose::Drive, &self.pending[key].from)
        {
            self.pending[key].result = Err(Failed::Io);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_told_once_of_a_loss_and_one_that_came_later_never() {
        let at = Instant::from_nanos;
        let posted = || From::Posted(Box::new(|_| ()));
        let mut losses = Losses::default();
        assert!(!losses.tell(Whose::Drive, &posted()), "nothing is lost");
        losses.note(Whose::Drive, at(5));
        assert!(losses.tell(Whose::Drive, &posted()));
        assert!(!losses.tell(Whose::Drive, &posted()), "it knows");
        assert!(!losses.tell(Whose::Cache(0), &posted()), "another loss");
        losses.note(Whose::Drive, at(9));
        assert!(losses.tell(Whose::Drive, &posted()), "a new loss");
    }
}
