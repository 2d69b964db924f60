//! The volumes with checksums of a drive.

#![allow(unsafe_code, reason = "reads the memory of commands")]

use std::ops::Range;

use block::Instant;

use super::Pieces;
use super::thread::{CheckState, RegionWorker};
use crate::checksums::cover::{Piece, pieces};
use crate::checksums::keeper::Keeper;

/// The volumes with checksums of a drive.
pub struct Checks {
    pub(super) volumes: Vec<Kept>,
}

/// A volume with checksums.
pub(super) struct Kept {
    pub(super) name: String,
    pub(super) offset: u64,
    pub(super) keeper: Keeper,
    pub(super) state: CheckState,
    pub(super) worker: Option<Box<dyn RegionWorker>>,
}

impl Kept {
    pub(super) fn is_on(&self) -> bool {
        self.state == CheckState::On
    }

    /// The part of some bytes of the drive in the volume, counted from its begin.
    pub(super) fn own(&self, bytes: &Range<u64>) -> Range<u64> {
        let end = self.offset + self.keeper.length();
        bytes.start.max(self.offset) - self.offset..bytes.end.min(end) - self.offset
    }

    /// The pieces of the volume's pages in a command's memory.
    ///
    /// # Safety
    /// Nothing writes to the memory meanwhile.
    pub(super) unsafe fn pieces(&self, bytes: &Range<u64>, memory: &Pieces) -> Vec<(u64, Piece)> {
        let mut all = Vec::new();
        let mut at = bytes.start;
        for part in memory.iter().flatten() {
            let here = at..(at + part.length as u64).min(bytes.end);
            at += part.length as u64;
            let end = self.offset + self.keeper.length();
            let (from, to) = (here.start.max(self.offset), here.end.min(end));
            if from >= to {
                continue;
            }
            let inside = part.part((from - here.start) as usize, (to - from) as usize);
            // SAFETY: the caller's promise.
            all.extend(pieces(from - self.offset, unsafe { inside.bytes() }));
        }
        all
    }

    pub(super) fn send(&mut self) {
        while let Some(order) = self.keeper.poll() {
            if let Some(worker) = &self.worker {
                worker.send(order);
            }
        }
    }
}

impl Checks {
    /// The volumes with some of these bytes of the drive.
    pub(super) fn of(&mut self, bytes: &Range<u64>) -> impl Iterator<Item = &mut Kept> {
        let Range { start, end } = *bytes;
        self.volumes.iter_mut().filter(move |kept| {
            let until = kept.offset + kept.keeper.length();
            kept.is_on() && start < until && kept.offset < end
        })
    }

    pub(super) fn send(&mut self) {
        self.volumes.iter_mut().for_each(Kept::send);
    }

    /// A write of these bytes of the drive is about to come: its intents are asked for.
    pub fn foresee(&mut self, bytes: &Range<u64>) {
        for kept in self.of(bytes) {
            let own = kept.own(bytes);
            // Its answer counts when the write goes to the drive.
            let _ = kept.keeper.readiness(&own);
            kept.send();
        }
    }

    /// Writes records of quiet chunks. The answer is whether a flush of the drive is wanted.
    pub fn settle(&mut self, now: Instant) -> bool {
        let mut is_wanted = false;
        for kept in &mut self.volumes {
            if kept.is_on() {
                is_wanted |= kept.keeper.settle(now);
                kept.send();
            }
        }
        is_wanted
    }

    /// A volume that begins at this byte of the drive has another length now.
    pub fn resize(&mut self, offset: u64, length: u64) {
        let mut all = self.volumes.iter_mut();
        if let Some(kept) = all.find(|kept| kept.offset == offset) {
            kept.keeper.resize(length);
            kept.send();
        }
    }

    /// The keeper of a volume, and the state of its checksums.
    pub fn volume(&mut self, name: &str) -> Option<(&mut Keeper, &CheckState)> {
        let mut all = self.volumes.iter_mut();
        let kept = all.find(|kept| kept.name == name)?;
        Some((&mut kept.keeper, &kept.state))
    }
}
