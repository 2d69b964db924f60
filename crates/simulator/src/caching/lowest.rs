//! The disk below the lowest level: behind an elevator, or behind an engine.

use block::{Instant, Interval};
use cache::level::Wish;
use engine::Tallies;

use super::disk::{DiskCounts, ElevatorDisk};
use super::engine_disk::EngineDisk;
use super::jobs::{JobId, Jobs};
use super::report::Slack;
use super::setup::{BadSetup, CachingSetup, Scheduler};

/// The disk and its scheduler.
pub(super) enum Lowest {
    /// The paper's elevator.
    Elevator(Box<ElevatorDisk>),
    /// The engine.
    Engine(Box<EngineDisk>),
}

impl Lowest {
    pub(super) fn new(setup: &CachingSetup) -> Result<Self, BadSetup> {
        Ok(match &setup.scheduler {
            Scheduler::Elevator => Lowest::Elevator(Box::new(ElevatorDisk::new(&setup.drive)?)),
            Scheduler::Engine(scheduled) => {
                Lowest::Engine(Box::new(EngineDisk::new(&setup.drive, scheduled)?))
            }
        })
    }

    /// Number of blocks of the disk.
    pub(super) fn blocks(&self) -> u64 {
        match self {
            Lowest::Elevator(disk) => disk.blocks(),
            Lowest::Engine(disk) => disk.blocks(),
        }
    }

    /// Totals of the disk.
    pub(super) fn counts(&self) -> DiskCounts {
        match self {
            Lowest::Elevator(disk) => disk.counts,
            Lowest::Engine(disk) => disk.counts(),
        }
    }

    /// Totals of background reads.
    pub(super) fn slack(&self) -> Slack {
        match self {
            Lowest::Elevator(_) => Slack::default(),
            Lowest::Engine(disk) => disk.slack(),
        }
    }

    /// Changes the set of wished blocks.
    pub(super) fn wish(&mut self, now: Instant, wish: Wish) {
        match self {
            Lowest::Elevator(_) => unreachable!("no level above an elevator has wishes"),
            Lowest::Engine(disk) => disk.wish(now, wish),
        }
    }

    /// The next wished block that has been read.
    pub(super) fn poll_read(&mut self) -> Option<u64> {
        match self {
            Lowest::Elevator(_) => None,
            Lowest::Engine(disk) => disk.poll_read(),
        }
    }

    /// Adds a job of at most [`super::merging::LARGEST`] blocks.
    pub(super) fn add(&mut self, blocks: Interval, job: JobId, jobs: &mut Jobs) {
        match self {
            Lowest::Elevator(disk) => disk.add(blocks, job, jobs),
            Lowest::Engine(disk) => disk.add(blocks, job, jobs),
        }
    }

    /// Whether prefetches wait for all demands.
    pub(super) fn puts_prefetches_last(&self) -> bool {
        match self {
            Lowest::Elevator(_) => false,
            Lowest::Engine(disk) => disk.puts_prefetches_last(),
        }
    }

    /// A demand waits for these blocks, which are being prefetched.
    pub(super) fn hasten(&mut self, now: Instant, blocks: Interval) {
        match self {
            Lowest::Elevator(_) => {}
            Lowest::Engine(disk) => disk.hasten(now, blocks),
        }
    }

    /// Gives the drive its next commands.
    pub(super) fn dispatch(&mut self, now: Instant) {
        match self {
            Lowest::Elevator(disk) => disk.dispatch(now),
            Lowest::Engine(disk) => disk.dispatch(now),
        }
    }

    /// The time of the next event.
    pub(super) fn next_event(&self) -> Option<Instant> {
        match self {
            Lowest::Elevator(disk) => disk.next_event(),
            Lowest::Engine(disk) => disk.next_event(),
        }
    }

    /// Whether no work is left.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Lowest::Elevator(disk) => disk.next_event().is_none(),
            Lowest::Engine(disk) => disk.is_over(),
        }
    }

    /// Comparison of the ends of commands with the belief; `None` if the belief is the truth.
    pub(super) fn tallies(&self) -> Option<Tallies> {
        match self {
            Lowest::Elevator(_) => None,
            Lowest::Engine(disk) => disk.tallies(),
        }
    }

    /// The first job of a command or request that has ended by now.
    pub(super) fn ended(&mut self, now: Instant) -> Option<JobId> {
        match self {
            Lowest::Elevator(disk) => disk.ended(now),
            Lowest::Engine(disk) => disk.ended(now),
        }
    }
}
