//! What reads and scans that are under way may find, once something is written or the drive has failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::World;
use crate::client::Client;
use crate::fickle::Fails;
use crate::model::Stamp;

impl World {
    /// What each read, scan and coming checkpoint may find, from its first block on.
    fn findings(&mut self) -> impl Iterator<Item = (u64, &mut Vec<Vec<Stamp>>)> {
        let of_clients = self.clients.iter_mut().flat_map(Client::waits);
        let waits = of_clients.chain(self.posted.values_mut());
        let reads = waits.map(|wait| (wait.first, &mut wait.possible));
        let scans = self.scans.iter_mut().map(|scan| (0, &mut scan.possible));
        let coming = self.moments.coming().map(|possible| (0, possible));
        reads.chain(scans).chain(coming)
    }

    /// The number of commands that the drive has failed.
    pub fn failures(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.failures)
    }

    /// Notes what the drive has failed, and ends a time in which it does. The answer is whether anything happened.
    pub(super) fn see_failures(&mut self, now: u64) -> bool {
        let is_over = self.failing_until.is_some_and(|until| until <= now);
        if is_over {
            self.failing_until = None;
            *self.broken[0].lock().expect("a mood") = Fails::Nothing;
        }
        let failed = self.failures.load(Ordering::Relaxed) as u64;
        if failed == self.counts.failed {
            return is_over;
        }
        self.counts.failed = failed;
        self.history.doubt();
        self.widen();
        true
    }

    /// The volume has another length, or keeps its own.
    pub(super) fn resized(&mut self, resized: Result<u64, String>) {
        self.counts.resized += u64::from(resized.is_ok());
        let lost = self.reloads.resized(resized);
        let of_clients = self.clients.iter_mut().flat_map(Client::waits);
        for wait in of_clients.chain(self.posted.values_mut()) {
            wait.is_beyond = None;
            let end = wait.change.map_or(0, |change| change.first + change.count);
            wait.is_shortened |= end > lost.start && !lost.is_empty();
        }
        if !lost.is_empty() {
            self.history.shrink(lost.start);
            self.widen();
        }
    }

    /// Whatever is under way may find what the history says now.
    fn widen(&mut self) {
        let history = self.history.clone();
        for (first, possible) in self.findings() {
            let now = history.possible(first, possible.len() as u64);
            for (possible, now) in possible.iter_mut().zip(now) {
                possible.extend(now);
            }
        }
    }

    /// Reads that are under way may find a value that is written now.
    pub(super) fn may_be_found(&mut self, first: u64, count: u64, stamp: Stamp) {
        for (begin, possible) in self.findings() {
            for (block, possible) in (begin..).zip(possible) {
                if (first..first + count).contains(&block) {
                    possible.push(stamp);
                }
            }
        }
    }
}
