//! Operations of clients and of a front end: what is asked, and what its end says.

use std::sync::Arc;

use block::operation::{Ask, OperationError};
use block::{Durability, Owner};
use server::volume::posted::{Contents, Posted};

use super::{DEPTH, Told, Wait, World, tell};
use crate::failures::KnownFailures;
use crate::model::{Change, contents};
use crate::run::BLOCK;
use crate::scan::check;

impl World {
    /// What waits for an operation that begins now, and its payload.
    pub(super) fn ask(
        &mut self,
        ask: Ask,
        (first, count): (u64, u64),
        known: KnownFailures,
        now: u64,
    ) -> (Wait, Vec<u8>) {
        self.counts.operations += 1;
        let (stamp, payload) = match ask {
            Ask::Write { .. } => {
                let stamp = self.history.stamp();
                (Some(stamp), contents(first, count, stamp))
            }
            Ask::Zero { .. } | Ask::Trim { .. } => (Some(0), Vec::new()),
            Ask::Read | Ask::Flush | Ask::Cache => (None, Vec::new()),
        };
        let change = stamp.map(|stamp| {
            self.may_be_found(first, count, stamp);
            self.history.submit(first, count, stamp)
        });
        let wait = Wait {
            ask,
            first,
            count,
            change,
            possible: match ask {
                Ask::Read => self.history.possible(first, count),
                _ => Vec::new(),
            },
            moment: self.history.moment(),
            glance: self.history.glance(),
            cuts: self.history.cuts(),
            failed: self.counts.failed as usize,
            excused: known.excused(),
            is_beyond: (self.reloads.is_settled()).then(|| first + count > self.reloads.blocks()),
            is_shortened: false,
            since: now,
        };
        (wait, payload)
    }

    /// A page is recorded: over NBD or by a front end, by turns.
    pub(super) fn record(&mut self, (first, count): (u64, u64), now: u64) {
        let write = Ask::Write {
            durability: Durability::Volatile,
        };
        let who = (self.numbers / 2).checked_rem(self.clients.len() as u64);
        match who.filter(|_| self.numbers.is_multiple_of(2)) {
            Some(who) => self.submit(who as usize, write, (first, count), now),
            None => self.post(write, first, count, now),
        }
    }

    /// A client asks, if it may.
    pub(super) fn submit(&mut self, who: usize, ask: Ask, blocks: (u64, u64), now: u64) {
        if !self.clients[who].has_room(DEPTH) {
            return;
        }
        if let Some(blocks) = self.clients[who].within(blocks) {
            let known = self.clients[who].failures;
            let (wait, payload) = self.ask(ask, blocks, known, now);
            self.clients[who].submit(wait, ask, blocks, &payload);
        }
    }

    pub(super) fn post(&mut self, ask: Ask, first: u64, count: u64, now: u64) {
        let (wait, payload) = self.ask(ask, (first, count), self.posters, now);
        self.numbers += 1;
        let (number, told) = (self.numbers, Arc::clone(&self.told));
        self.posted.insert(number, wait);
        self.mailbox.submit(Posted {
            export: self.reloads.export(number),
            ask,
            offset: first * BLOCK,
            length: count * BLOCK,
            contents: Contents::Owned(payload),
            owner: Owner::NOBODY,
            reply: Box::new(move |result| {
                tell(&told, Told::Posted(number, result.map(<[u8]>::to_vec)));
            }),
        });
    }

    pub(super) fn ended(
        &mut self,
        wait: Wait,
        (result, bytes): (Result<(), OperationError>, &[u8]),
        known: &mut KnownFailures,
    ) {
        let is_cut = wait.cuts < self.history.cuts();
        let failed = self.counts.failed as usize;
        if result.is_ok() {
            self.served.answered(wait.ask, wait.count * BLOCK);
        }
        match (result, wait.ask) {
            (Err(OperationError::Io), Ask::Flush) if failed > wait.excused => {
                return known.tell(failed);
            }
            (Err(OperationError::Io), _) if failed > wait.failed => return self.unknown(&wait),
            _ => (),
        }
        match (result, wait.is_beyond) {
            (Err(OperationError::Invalid), None | Some(true)) => return self.unknown(&wait),
            (Ok(()), Some(true)) => panic!("{:?} past the end is done", wait.ask),
            _ => (),
        }
        match result {
            Err(OperationError::ShuttingDown) if self.is_stopped => return self.unknown(&wait),
            // Sectors that were being written are unreadable after a cut.
            Err(OperationError::Io) if self.history.cuts() > 0 => {
                self.counts.unreadable += 1;
                return self.unknown(&wait);
            }
            Err(failed) => panic!("{:?} at {}: {failed:?}", wait.ask, wait.first),
            Ok(()) if is_cut || wait.is_shortened => return self.unknown(&wait),
            Ok(()) => (),
        }
        match (wait.ask, wait.change) {
            (Ask::Trim { .. }, Some(change)) if !self.reads_zeroes(change) => {
                self.history.unknown(change);
            }
            (
                Ask::Write { durability } | Ask::Zero { durability, .. } | Ask::Trim { durability },
                Some(change),
            ) => {
                let is_durable = durability == Durability::Durable;
                self.history.done(change, is_durable, wait.failed);
                if failed > wait.failed {
                    // Its page may have failed before the acknowledgement came.
                    self.history.doubt();
                }
            }
            (Ask::Flush, None) => self.history.flushed(wait.moment, known.told()),
            (Ask::Read, None) => {
                let found = check(wait.first, bytes, &wait.possible);
                self.history.read(wait.glance, wait.first, &found);
            }
            _ => (),
        }
    }

    /// Whether what is trimmed reads as zeroes: files and emulated drives do that. Parts of sectors keep their bytes, and
    /// mirrors may keep whole ones.
    fn reads_zeroes(&self, trim: Change) -> bool {
        let sector = u64::from(self.setting.sector) / BLOCK;
        let is_whole = trim.first.is_multiple_of(sector) && trim.count.is_multiple_of(sector);
        is_whole && !self.setting.mirrored
    }
}
