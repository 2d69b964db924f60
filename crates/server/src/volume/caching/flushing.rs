//! Flushes: the unwritten pages of a volume first, then the drive.
//!
//! ```text
//!   flush --[ pages acknowledged before it ]--> drive's flush --> answer
//!                          '-- write failed ----'-- failed -----> failed, once for each client
//! ```

use block::Instant;

use super::Caches;
use crate::disk::Disk;
use crate::volume::operation::{NextStep, Operation, OperationSource};
use crate::volume::operations::Operations;
use block::operation::{Ask, OperationError};

/// A flush that waits until all stored writes up to a serial are on the drive.
#[derive(Clone, Copy)]
pub(super) struct Draining {
    key: usize,
    /// The index of the volume's cache.
    number: usize,
    serial: u64,
}

/// Acknowledged writes that are lost, or may be: the last loss of each cause.
#[derive(Default)]
pub(super) struct Losses(Vec<Loss>);

/// A loss, and the clients whose flushes have failed because of it.
struct Loss {
    cause: LossCause,
    noticed: Instant,
    notified: Vec<u64>,
}

/// The cause of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LossCause {
    /// A cache could not write its pages.
    Cache(usize),
    /// The drive's flush failed.
    Drive,
}

/// The client of all front ends other than NBD.
const POSTED: u64 = u64::MAX;

impl Losses {
    /// Notes a loss. Flushes that share a command of the drive end at once, and what they fail for is one loss.
    fn note(&mut self, cause: LossCause, now: Instant) {
        let is_known = |loss: &Loss| loss.cause == cause && loss.noticed == now;
        if self.0.iter().any(is_known) {
            return;
        }
        self.0.retain(|loss| loss.cause != cause);
        self.0.push(Loss {
            cause,
            noticed: now,
            notified: Vec::new(),
        });
    }

    /// Notifies the client of a flush of a loss, unless it was notified before or connected later. The answer
    /// is whether it is notified now.
    fn notify(&mut self, cause: LossCause, source: &OperationSource) -> bool {
        let (client, since) = match source {
            OperationSource::Connection { client, .. } => (client.number, client.since),
            OperationSource::Posted(_)
            | OperationSource::Copied(_)
            | OperationSource::Preserved { .. } => (POSTED, Instant::ZERO),
        };
        let Some(loss) = self.0.iter_mut().find(|loss| loss.cause == cause) else {
            return false;
        };
        let was_there = loss.notified.is_empty() || since <= loss.noticed;
        let is_new = was_there && !loss.notified.contains(&client);
        if is_new {
            loss.notified.push(client);
        }
        is_new
    }
}

impl Caches {
    /// Forgets the losses that a client's flush has reported: the last flushes of the service fail for those
    /// that nobody knows.
    pub(in crate::volume) fn forget_reported_losses(&mut self) {
        self.losses.0.retain(|loss| loss.notified.is_empty());
    }

    /// Writes the pages that a flush has to wait for. Other durable operations wait for no pages, and are not
    /// notified of losses.
    pub(in crate::volume) fn flush(
        &mut self,
        disk: &mut Disk,
        operations: &mut Operations,
        key: usize,
    ) -> NextStep {
        let operation = operations[key].operation;
        let number = match operation.ask {
            Ask::Flush => self.of(&operations.exports, &operation),
            _ => None,
        };
        let Some(number) = number else {
            return NextStep::FlushDrive;
        };
        let serial = self.serial;
        let cached = &mut self.all[number];
        if !cached.has_unwritten(serial) {
            return self.drained(disk, operations, key, number);
        }
        let class = operations.exports.class(&operation);
        cached.begin_flush(class, &mut self.upgrades);
        self.draining.push(Draining {
            key,
            number,
            serial,
        });
        self.upgrade_pieces(disk);
        NextStep::Wait
    }

    /// The next waiting flush, from index `next` on, whose pages are written.
    pub(in crate::volume) fn next_drained(
        &mut self,
        disk: &Disk,
        operations: &mut Operations,
        next: &mut usize,
    ) -> Option<(usize, NextStep)> {
        while let Some(&Draining {
            key,
            number,
            serial,
        }) = self.draining.get(*next)
        {
            if self.all[number].has_unwritten(serial) {
                *next += 1;
                continue;
            }
            self.draining.remove(*next);
            let mut others = self.draining.iter();
            if !others.any(|other| other.number == number) {
                self.all[number].end_flush();
            }
            return Some((key, self.drained(disk, operations, key, number)));
        }
        None
    }

    /// The pages of a flush are written, or could not be. A loss fails all pending flushes of the volume, and
    /// the next flush of each client that was connected. Without a pending flush the first later one fails.
    fn drained(
        &mut self,
        disk: &Disk,
        operations: &mut Operations,
        key: usize,
        number: usize,
    ) -> NextStep {
        let cause = LossCause::Cache(number);
        if self.all[number].take_failure() {
            let offset = self.all[number].volume().offset;
            let exports = &operations.exports;
            let is_of_it = |operation: &Operation| exports.offset(operation.export) == offset;
            let flushes = flushes(operations, is_of_it);
            self.lose(disk, operations, cause, flushes);
        } else if self.losses.notify(cause, &operations[key].source) {
            operations[key].result = Err(OperationError::Io);
        }
        match operations[key].result {
            Ok(()) => NextStep::FlushDrive,
            Err(_) => NextStep::Answer,
        }
    }

    /// Notes a loss, and fails these flushes.
    fn lose(
        &mut self,
        disk: &Disk,
        operations: &mut Operations,
        cause: LossCause,
        flushes: Vec<usize>,
    ) {
        self.losses.note(cause, disk.now);
        for flush in flushes {
            self.losses.notify(cause, &operations[flush].source);
            operations[flush].result = Err(OperationError::Io);
        }
    }

    /// The drive's flush has failed: acknowledged writes may be lost. All pending flushes fail, and the next
    /// flush of each client that was connected. Caches discard their pages.
    pub(in crate::volume) fn fail_flushes(&mut self, disk: &Disk, operations: &mut Operations) {
        let flushes = flushes(operations, |_| true);
        self.lose(disk, operations, LossCause::Drive, flushes);
        self.forget();
    }

    /// The drive has flushed for an operation. A flush also fails for an earlier loss of the drive.
    pub(in crate::volume) fn drive_flushed(&mut self, operations: &mut Operations, key: usize) {
        let pending = &mut operations[key];
        if pending.operation.ask == Ask::Flush
            && self.losses.notify(LossCause::Drive, &pending.source)
        {
            pending.result = Err(OperationError::Io);
        }
    }
}

/// The keys of pending flushes.
fn flushes(operations: &Operations, such: impl Fn(&Operation) -> bool) -> Vec<usize> {
    let all = operations.iter();
    let flushes =
        all.filter(|(_, pending)| pending.operation.ask == Ask::Flush && such(&pending.operation));
    flushes.map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use nbd::Style;
    use nbd::request::{Asked, Header};

    use super::*;
    use crate::volume::operation::ClientId;

    #[test]
    fn a_client_is_told_once_of_a_loss_and_one_that_came_later_never() {
        let at = Instant::from_nanos;
        let posted = || OperationSource::Posted(Box::new(|_| ()));
        let mut losses = Losses::default();
        assert!(
            !losses.notify(LossCause::Drive, &posted()),
            "nothing is lost"
        );
        losses.note(LossCause::Drive, at(5));
        assert!(losses.notify(LossCause::Drive, &posted()));
        assert!(!losses.notify(LossCause::Drive, &posted()), "it knows");
        assert!(
            !losses.notify(LossCause::Cache(0), &posted()),
            "another loss"
        );
        losses.note(LossCause::Drive, at(5));
        assert!(
            !losses.notify(LossCause::Drive, &posted()),
            "another flush of the same command"
        );
        losses.note(LossCause::Drive, at(9));
        assert!(losses.notify(LossCause::Drive, &posted()), "a new loss");
    }

    /// Clients over NBD, which connected before the loss at 5, at its time, and later.
    #[test]
    fn each_client_that_was_there_is_told_of_each_loss() {
        let at = Instant::from_nanos;
        let client = |number: u64, since: u64| {
            let asked = Asked::Of(Ask::Flush);
            let client = ClientId {
                place: 0,
                number,
                since: at(since),
            };
            let header = Header::new(asked, Style::Simple, 0, 0, 0);
            OperationSource::Connection { client, header }
        };
        let cause = LossCause::Cache(1);
        let mut losses = Losses::default();
        losses.note(LossCause::Drive, at(1));
        losses.note(cause, at(5));
        for (number, since, is_told) in [
            // Without a flush that has waited the first one is told, whenever its client came.
            (9, 8, true),
            (1, 4, true),
            (1, 4, false),
            (2, 5, true),
            (3, 6, false),
            (9, 8, false),
        ] {
            let told = losses.notify(cause, &client(number, since));
            assert_eq!(told, is_told, "{number} since {since}");
        }
        assert!(
            losses.notify(LossCause::Drive, &client(1, 0)),
            "the other loss"
        );
        losses.note(cause, at(7));
        assert!(losses.notify(cause, &client(1, 4)), "a new loss");
        assert!(losses.notify(cause, &client(3, 6)));
    }
}
