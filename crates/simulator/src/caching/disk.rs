//! The disk behind a simple I/O scheduler: it merges neighbours and dispatches in ascending block
//! order, then restarts at the lowest block. The drive has one command at a time.
//!
//! "Imitates Linux 2.6" (Zhang et al., 4.1): merging up to 128 sectors and a one-way elevator, no
//! priorities.

use std::sync::Arc;

use block::{
    Action, Command, CommandId, Direction, Durability, Duration, Extent, Instant, Interval, Lba,
    Sectors,
};
use drive::{Profile, VirtualDrive};

use super::elevator::Elevator;
use super::jobs::{JobId, Jobs};
use super::merging::MergedTransfer;
use super::setup::BadSetup;

/// Bytes per block.
const BLOCK: u64 = 4096;

/// A drive and the transfers that wait for it.
#[derive(Debug)]
pub(super) struct ElevatorDisk {
    drive: VirtualDrive,
    /// Sectors per block.
    sectors: u64,
    blocks: u64,
    /// Waiting transfers.
    elevator: Elevator,
    /// The command in service and its dispatch time.
    active: Option<(MergedTransfer, Instant)>,
    /// The time at which the drive must be polled.
    wakes: Option<Instant>,
    /// The block at which the elevator continues.
    position: u64,
    order: u64,
    pub(super) counts: DiskCounts,
}

/// Totals of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// Number of commands.
    pub commands: u64,
    /// Number of blocks of all commands.
    pub blocks: u64,
    /// Number of blocks that were written.
    pub written: u64,
    /// Time during which the drive had a command.
    pub busy: Duration,
}

impl ElevatorDisk {
    pub(super) fn new(profile: &Arc<Profile>) -> Result<Self, BadSetup> {
        let sectors = sectors_of_a_block(profile)?;
        let drive = VirtualDrive::new(Arc::clone(profile));
        Ok(ElevatorDisk {
            blocks: profile.geometry.sectors().0 / sectors,
            drive,
            sectors,
            elevator: Elevator::new(),
            active: None,
            wakes: None,
            position: 0,
            order: 0,
            counts: DiskCounts::default(),
        })
    }

    /// Number of blocks of the disk.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Adds a job of at most [`LARGEST`](super::merging::LARGEST) blocks.
    pub(super) fn add(&mut self, blocks: Interval, job: JobId, jobs: &mut Jobs) {
        let mut entry = MergedTransfer::of(blocks, jobs.get(job).transfer, job);
        if let Some(before) = self.elevator.up_to(entry.blocks.first)
            && let Some(both) = self.elevator.get(before).followed_by(&entry, jobs)
        {
            entry = both;
            self.elevator.take(before);
        }
        if let Some(after) = self.elevator.from(entry.blocks.last + 1)
            && let Some(both) = entry.followed_by(self.elevator.get(after), jobs)
        {
            entry = both;
            self.elevator.take(after);
        }
        self.order += 1;
        self.elevator.add(entry, self.order);
    }

    /// Gives the drive the next command if it is idle.
    pub(super) fn dispatch(&mut self, now: Instant) {
        if self.active.is_some() || self.elevator.is_empty() {
            return;
        }
        let above = self.elevator.from(self.position);
        let Some(place) = above.or_else(|| self.elevator.lowest()) else {
            return;
        };
        let entry = self.elevator.take(place);
        self.position = entry.blocks.last + 1;
        let start = Lba(entry.blocks.first * self.sectors);
        let length = Sectors(entry.blocks.len() * self.sectors);
        let extent = Extent::new(start, length).expect("a run of blocks is not empty");
        let durability = Durability::Volatile;
        let action = match entry.direction {
            Direction::Read => Action::Read { extent, durability },
            Direction::Write => Action::Write { extent, durability },
        };
        let command = Command::new(CommandId(self.order), action);
        let submitted = self.drive.submit(now, command);
        submitted.expect("one command at a time, on the disk");
        self.active = Some((entry, now));
        self.counts.commands += 1;
        self.counts.blocks += entry.blocks.len();
        if entry.direction == Direction::Write {
            self.counts.written += entry.blocks.len();
        }
        self.settle(now);
    }

    /// The first block of the command in service.
    #[cfg(test)]
    pub(super) fn reading(&self) -> Option<u64> {
        Some(self.active?.0.blocks.first)
    }

    /// The time of the next event.
    pub(super) fn next_event(&self) -> Option<Instant> {
        self.wakes
    }

    /// The first job of the command that has ended by now.
    pub(super) fn ended(&mut self, now: Instant) -> Option<JobId> {
        self.wakes.filter(|wakes| *wakes <= now)?;
        if self.drive.poll(now).is_none() {
            self.wakes = self.drive.next_wakeup();
            return None;
        }
        self.wakes = None;
        let (entry, since) = self.active.take()?;
        self.counts.busy += now.since(since);
        Some(entry.first)
    }

    /// Lets the drive accept its command; no command ends immediately.
    fn settle(&mut self, now: Instant) {
        let ended = self.drive.poll(now);
        assert!(ended.is_none(), "a command that takes no time");
        self.wakes = self.drive.next_wakeup();
    }
}

/// Sectors per block on this drive.
pub(super) fn sectors_of_a_block(profile: &Profile) -> Result<u64, BadSetup> {
    let bytes = u64::from(profile.block_bytes);
    match bytes != 0 && BLOCK.is_multiple_of(bytes) {
        true => Ok(BLOCK / bytes),
        false => Err(BadSetup::SectorSize(bytes)),
    }
}
