//! What the lowest level reads from: a disk behind an elevator, or behind our engine.

use block::{Instant, Interval};
use cache::level::Wish;
use engine::Tallies;

use super::disk::{DiskCounts, ElevatorDisk};
use super::engine_disk::EngineDisk;
use super::jobs::{JobId, Jobs};
use super::report::Slack;
use super::setup::{BadSetup, CachingSetup, Scheduler};

/// One of them.
pub(super) enum Lowest {
    /// The paper's.
    Elevator(Box<ElevatorDisk>),
    /// Ours.
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

    /// How many blocks it has.
    pub(super) fn blocks(&self) -> u64 {
        match self {
            Lowest::Elevator(disk) => disk.blocks(),
            Lowest::Engine(disk) => disk.blocks(),
        }
    }

    /// What it did.
    pub(super) fn counts(&self) -> DiskCounts {
        match self {
            Lowest::Elevator(disk) => disk.counts,
            Lowest::Engine(disk) => disk.counts(),
        }
    }

    /// What it read in the background.
    pub(super) fn slack(&self) -> Slack {
        match self {
            Lowest::Elevator(_) => Slack::default(),
            Lowest::Engine(disk) => disk.slack(),
        }
    }

    /// What is wished changes.
    pub(super) fn wish(&mut self, now: Instant, wish: Wish) {
        match self {
            Lowest::Elevator(_) => unreachable!("no level above an elevator has wishes"),
            Lowest::Engine(disk) => disk.wish(now, wish),
        }
    }

    /// The next block that was read for wishes.
    pub(super) fn poll_read(&mut self) -> Option<u64> {
        match self {
            Lowest::Elevator(_) => None,
            Lowest::Engine(disk) => disk.poll_read(),
        }
    }

    /// A job of at most [`super::merging::LARGEST`] blocks is to be read.
    pub(super) fn add(&mut self, blocks: Interval, job: JobId, jobs: &mut Jobs) {
        match self {
            Lowest::Elevator(disk) => disk.add(blocks, job, jobs),
            Lowest::Engine(disk) => disk.add(blocks, job, jobs),
        }
    }

    /// Whether what is fetched ahead waits for all that is demanded.
    pub(super) fn puts_prefetches_last(&self) -> bool {
        match self {
            Lowest::Elevator(_) => false,
            Lowest::Engine(disk) => disk.puts_prefetches_last(),
        }
    }

    /// Somebody waits for these blocks, which were to be fetched ahead.
    pub(super) fn hasten(&mut self, now: Instant, blocks: Interval) {
        match self {
            Lowest::Elevator(_) => {}
            Lowest::Engine(disk) => disk.hasten(now, blocks),
        }
    }

    /// Gives the drive what it should have now.
    pub(super) fn dispatch(&mut self, now: Instant) {
        match self {
            Lowest::Elevator(disk) => disk.dispatch(now),
            Lowest::Engine(disk) => disk.dispatch(now),
        }
    }

    /// When something happens.
    pub(super) fn next_event(&self) -> Option<Instant> {
        match self {
            Lowest::Elevator(disk) => disk.next_event(),
            Lowest::Engine(disk) => disk.next_event(),
        }
    }

    /// Whether nothing is left to do.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Lowest::Elevator(disk) => disk.next_event().is_none(),
            Lowest::Engine(disk) => disk.is_over(),
        }
    }

    /// What the ends of commands said of what is believed of the drive, if that is not the truth.
    pub(super) fn told(&self) -> Option<Tallies> {
        match self {
            Lowest::Elevator(_) => None,
            Lowest::Engine(disk) => disk.told(),
        }
    }

    /// The first of the jobs of something that has ended by now.
    pub(super) fn ended(&mut self, now: Instant) -> Option<JobId> {
        match self {
            Lowest::Elevator(disk) => disk.ended(now),
            Lowest::Engine(disk) => disk.ended(now),
        }
    }
}
