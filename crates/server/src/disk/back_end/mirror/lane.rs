//! What a mirror writes before its data, one thing at a time: superblocks, marks, and the flushes they wait for.

use std::io;

use block::operation::OperationError;
use block::{Action, Durability, Duration, Extent, Instant, Lba, Sectors};
use tracing::{error, info};

use super::{Fault, Health, Mirror, MirrorEvent, OwnCommand, Purpose, is_filled};
use crate::arena::{Memory, Region};
use crate::mirror::MARKS_OFFSET;
use crate::mirror::bitmap::PAGE_BYTES;
use crate::mirror::regions::{PAGES_AT_ONCE, QUIET};
use crate::mirror::storage::slot;
use crate::mirror::superblock::{LegRecord, SUPERBLOCK_BYTES};
use crate::ring::Ring;

/// The lane.
pub(super) struct Lane {
    job: Option<LaneJob>,
    /// Its commands that have not ended.
    left: usize,
    /// The legs that failed, and why.
    failed: [Option<Fault>; 2],
    superblock: Due,
    sweep: Due,
    /// The bytes that are being written, for each leg.
    memory: [Region; 2],
}

/// Whether something is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    No,
    Yes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaneJob {
    /// Superblocks with these states.
    Superblock([LegRecord; 2]),
    Pages,
    /// A flush, after which marks go.
    Clean,
    /// A flush, after which this leg is in sync.
    Settle(usize),
}

/// Bytes of a superblock with the rest of its page, which a disk need not read first.
const SUPERBLOCK_PAGE: usize = 4096;

impl Lane {
    pub(super) fn new() -> io::Result<Self> {
        let bytes = PAGES_AT_ONCE as usize * PAGE_BYTES;
        Ok(Lane {
            job: None,
            left: 0,
            failed: [None; 2],
            superblock: Due::No,
            sweep: Due::No,
            memory: [Region::map(bytes)?, Region::map(bytes)?],
        })
    }

    /// The superblock has changed.
    pub(super) fn record(&mut self) {
        self.superblock = Due::Yes;
    }

    /// All marks that can go go now.
    pub(super) fn sweep(&mut self) {
        self.sweep = Due::Yes;
    }

    /// Whether something has to be done before the end.
    pub(super) fn is_wanted(&self) -> bool {
        self.superblock == Due::Yes || self.sweep == Due::Yes
    }
}

impl Mirror {
    /// Begins the next job. The answer is whether there was one.
    pub(super) fn step_lane(&mut self, now: Instant, ring: &mut Ring) -> bool {
        let has_room = self.in_use().all(|leg| self.has_room(leg));
        if self.lane.job.is_some() || self.health == Health::Broken || !has_room {
            return false;
        }
        if self.lane.superblock == Due::Yes {
            self.lane.superblock = Due::No;
            self.write_superblocks(now, ring);
            return true;
        }
        if let Some((pages, bytes)) = self.regions.next_pages() {
            let at = MARKS_OFFSET + pages.start * PAGE_BYTES as u64;
            for leg in 0..2 {
                self.lane.memory[leg].bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
            }
            self.begin_writes(now, LaneJob::Pages, (at, bytes.len()), ring);
            return true;
        }
        let flush = self.due_flush(now);
        if let Some(job) = flush {
            if job == LaneJob::Clean {
                let quiet = match self.lane.sweep {
                    Due::Yes => Duration::ZERO,
                    Due::No => QUIET,
                };
                self.lane.sweep = Due::No;
                self.regions.begin_cleaning(now, quiet);
            }
            self.begin_flushes(now, job, ring);
        }
        flush.is_some()
    }

    /// Whether the lane waits for room that commands of the engine must not take.
    pub(super) fn is_lane_next(&self) -> bool {
        let is_due = self.lane.superblock == Due::Yes || self.regions.has_changed();
        is_due && self.lane.job.is_none() && self.health == Health::Whole
    }

    /// The flush that is due.
    fn due_flush(&mut self, now: Instant) -> Option<LaneJob> {
        let filled = self.filled();
        if !self.may_clean() {
            self.lane.sweep = Due::No;
            return None;
        }
        if let Some(leg) = filled.filter(|_| self.filling.is_idle() && self.regions.is_copied()) {
            return Some(LaneJob::Settle(leg));
        }
        let is_due = self.lane.sweep == Due::Yes
            || self.regions.next_cleaning().is_some_and(|due| due <= now);
        is_due.then_some(LaneJob::Clean)
    }

    /// Whether all writes go to both legs: else marks stay for the one that lacks some.
    fn may_clean(&self) -> bool {
        let is_engaged = self.filled().is_none_or(|leg| self.filling.is_engaged(leg));
        self.in_use().count() == 2 && is_engaged
    }

    /// When the lane has something to do.
    pub(super) fn next_step_of_lane(&self) -> Option<Instant> {
        let is_free = self.lane.job.is_none() && self.health == Health::Whole;
        match is_free && self.may_clean() {
            true => self.regions.next_cleaning(),
            false => None,
        }
    }

    fn write_superblocks(&mut self, now: Instant, ring: &mut Ring) {
        let superblock = self.superblock;
        for leg in 0..2 {
            let page = &mut self.lane.memory[leg].bytes_mut()[..SUPERBLOCK_PAGE];
            page.fill(0);
            page[..SUPERBLOCK_BYTES].copy_from_slice(&superblock.of_leg(leg).encoded());
        }
        let job = LaneJob::Superblock(superblock.states);
        self.begin_writes(now, job, (slot(superblock.events), SUPERBLOCK_PAGE), ring);
    }

    /// Writes the lane's bytes to all legs in use.
    fn begin_writes(
        &mut self,
        now: Instant,
        job: LaneJob,
        (at, bytes): (u64, usize),
        ring: &mut Ring,
    ) {
        let block = u64::from(self.shape.block_bytes);
        let extent = Extent::new(Lba(at / block), Sectors(bytes as u64 / block));
        let action = Action::Write {
            extent: extent.expect("whole blocks before the data"),
            durability: Durability::Durable,
        };
        self.begin(job);
        for leg in self.in_use() {
            let memory: Memory = self.lane.memory[leg].memory().part(0, bytes);
            self.lane.left += 1;
            // SAFETY: the lane's memory stays as it is until its job has ended.
            unsafe { self.give_own(now, (leg, Purpose::Lane), action, &[memory], ring) };
        }
    }

    fn begin_flushes(&mut self, now: Instant, job: LaneJob, ring: &mut Ring) {
        self.begin(job);
        for leg in self.in_use() {
            self.lane.left += 1;
            // SAFETY: a flush has no memory.
            unsafe { self.give_own(now, (leg, Purpose::Lane), Action::Flush, &[], ring) };
        }
    }

    fn begin(&mut self, job: LaneJob) {
        self.lane.job = Some(job);
        self.lane.failed = [None; 2];
    }

    /// A command of the lane has ended.
    pub(super) fn lane_ended(
        &mut self,
        now: Instant,
        own: &OwnCommand,
        result: Result<(), OperationError>,
    ) {
        if result.is_err() {
            self.lane.failed[own.leg] = Some(own.fault);
        }
        self.lane.left -= 1;
        if self.lane.left > 0 {
            return;
        }
        let Some(job) = self.lane.job.take() else {
            return;
        };
        let failed = self.lane.failed;
        if failed.contains(&Some(Fault::Power)) {
            return self.repeat(now, job);
        }
        for leg in (0..2).filter(|&leg| failed[leg].is_some()) {
            if !self.take_out(leg) {
                return self.break_down(now, job);
            }
        }
        let is_whole = failed == [None; 2];
        match job {
            LaneJob::Superblock(states) => self.recorded(states),
            LaneJob::Pages => self.regions.pages_written(),
            LaneJob::Clean if is_whole => self.regions.flushed(),
            LaneJob::Clean => self.regions.not_flushed(now),
            LaneJob::Settle(leg) if is_whole && is_filled(self.state(leg)) => {
                if self.regions.is_copied() {
                    info!(leg, "the legs of the mirror are in sync");
                    self.filling.disengage();
                    self.pace.end();
                    self.tell(MirrorEvent::InSync(self.legs[leg].name.clone()));
                    self.change(leg, LegRecord::InSync);
                }
            }
            LaneJob::Settle(_) => (),
        }
    }

    /// The power was cut: the job did not count.
    fn repeat(&mut self, now: Instant, job: LaneJob) {
        match job {
            LaneJob::Superblock(_) => self.lane.record(),
            LaneJob::Pages => self.regions.pages_failed(),
            LaneJob::Clean => self.regions.not_flushed(now),
            LaneJob::Settle(_) => (),
        }
    }

    /// The last leg with all data fails to record something: nothing can be promised any more.
    fn break_down(&mut self, now: Instant, job: LaneJob) {
        if matches!(job, LaneJob::Clean | LaneJob::Settle(_)) {
            return self.repeat(now, job);
        }
        error!("the last leg of the mirror fails: writes fail until the service is begun again");
        self.tell(MirrorEvent::Broken);
        self.health = Health::Broken;
        self.ended.extend(self.held.drain(..));
    }

    /// States are on all legs in use.
    fn recorded(&mut self, states: [LegRecord; 2]) {
        self.durable = states;
        if self.durable == self.superblock.states {
            self.ended.extend(self.held.drain(..));
        }
    }
}
