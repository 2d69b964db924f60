//! The disk behind the engine by itself: what is merged, in which order it goes, and what is read for wishes.

use block::{Class, Instant};
use cache::coordinator::{Purpose, UpperRequest};
use cache::level::Wish;

use super::*;
use crate::caching::engine_disk::EngineDisk;
use crate::caching::jobs::{Asker, JobId, Jobs, NONE};
use crate::caching::merging::next_of;
use crate::caching::{EngineScheduling, Readmore};

/// A disk, and what was asked of it.
struct Scene {
    disk: EngineDisk,
    jobs: Jobs,
    now: Instant,
    /// First blocks, in the order in which they were there.
    ended: Vec<u64>,
}

impl Scene {
    fn new(scheduled: &EngineScheduling) -> Self {
        Scene {
            disk: EngineDisk::new(&cheetah(), scheduled).expect("a disk"),
            jobs: Jobs::new(),
            now: Instant::ZERO,
            ended: Vec::new(),
        }
    }

    fn by_arrival(prefetches: Class) -> Self {
        Scene::new(&EngineScheduling {
            prefetches,
            ..EngineScheduling::by("fcfs")
        })
    }

    fn add(&mut self, first: u64, last: u64, purpose: Purpose) {
        let asked = UpperRequest {
            client: 0,
            file: 0,
            blocks: Interval::new(first, last),
            within: ALL,
            purpose,
            direction: Direction::Read,
        };
        let job: JobId = self.jobs.add(asked, NONE, Asker::Client, self.now);
        self.disk.add(asked.blocks, job, &mut self.jobs);
    }

    fn demand(&mut self, first: u64, last: u64) {
        self.add(first, last, Purpose::Demand);
    }

    /// Until nothing more happens; how many commands there were.
    fn run(&mut self) -> u64 {
        self.disk.dispatch(self.now);
        while let Some(at) = self.disk.next_event() {
            self.step(at);
        }
        assert!(self.disk.is_over());
        self.disk.counts().commands
    }

    fn step(&mut self, at: Instant) {
        self.now = at;
        while let Some(first) = self.disk.ended(self.now) {
            let mut next = Some(first);
            while let Some(job) = next {
                next = next_of(job, &self.jobs);
                self.ended.push(self.jobs.get(job).asked.blocks.first);
                self.jobs.end(job);
            }
        }
        self.disk.dispatch(self.now);
    }

    fn read(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.disk.poll_read()).collect()
    }
}

#[test]
fn neighbours_are_merged_either_way_up_to_the_largest_command_and_all_of_them_end() {
    let mut scene = Scene::by_arrival(Class::default());
    scene.demand(1_000, 1_003);
    scene.demand(1_004, 1_007);
    scene.demand(996, 999);
    assert_eq!(scene.run(), 1);
    assert_eq!(scene.ended, [996, 1_000, 1_004]);
    // Sixteen blocks, and one more.
    scene.demand(2_000, 2_009);
    scene.demand(2_010, 2_015);
    scene.demand(2_016, 2_016);
    assert_eq!(scene.run(), 3);
    assert_eq!(scene.disk.counts().blocks, 12 + 17);
    assert_eq!(scene.jobs.under_way(), 0);
}

#[test]
fn neighbours_of_another_class_are_not_merged() {
    for prefetches in [Class::BestEffort(0), Class::Background] {
        let mut scene = Scene::by_arrival(prefetches);
        scene.demand(1_000, 1_003);
        scene.add(1_004, 1_007, Purpose::Prefetch);
        scene.demand(1_008, 1_011);
        assert_eq!(scene.run(), 3, "{prefetches:?}");
    }
}

#[test]
fn neighbours_are_looked_for_among_the_last_that_are_plugged() {
    // As many as Linux holds in a plug: 32.
    for (far, commands) in [(31, 32), (32, 34)] {
        let mut scene = Scene::by_arrival(Class::default());
        scene.demand(100, 100);
        for place in 1..=far {
            scene.demand(1_000 * place, 1_000 * place);
        }
        scene.demand(101, 101);
        assert_eq!(scene.run(), commands);
    }
}

#[test]
fn what_was_plugged_first_goes_first_and_the_disk_is_busy_until_the_last_has_ended() {
    let mut scene = Scene::by_arrival(Class::default());
    let places = [500_000, 100, 900_000, 200_000];
    for place in places {
        scene.demand(place, place);
    }
    scene.run();
    assert_eq!(scene.ended, places);
    assert_eq!(scene.disk.counts().busy, scene.now.since(Instant::ZERO));
}

#[test]
fn whatever_has_ended_is_told_before_the_disk_is_done() {
    let mut scene = Scene::by_arrival(Class::default());
    scene.demand(500_000, 500_000);
    scene.demand(100, 100);
    assert!(!scene.disk.is_over(), "plugged");
    scene.disk.dispatch(Instant::ZERO);
    // Both have ended long ago; one is told at a time.
    let late = Instant::from_nanos(1_000_000_000);
    assert!(scene.disk.ended(late).is_some());
    assert_eq!(scene.disk.next_event(), Some(late));
    assert!(!scene.disk.is_over(), "one is still to be told");
    assert!(scene.disk.ended(late).is_some());
    assert!(scene.disk.is_over());
}

#[test]
fn only_what_is_asked_for_is_hastened() {
    // Asked for at once, before the engine is, and after.
    for is_plugged in [true, false] {
        let mut scene = Scene::by_arrival(Class::Background);
        scene.add(500_000, 500_000, Purpose::Prefetch);
        scene.add(700_000, 700_003, Purpose::Prefetch);
        // Two of them are at the drive at once: those are as fast as can be.
        scene.demand(300_000, 300_000);
        scene.demand(100, 100);
        scene.demand(900_000, 900_000);
        if !is_plugged {
            scene.disk.dispatch(Instant::ZERO);
        }
        scene
            .disk
            .hasten(Instant::ZERO, Interval::new(700_002, 700_009));
        scene.run();
        let place = |block| scene.ended.iter().position(|&ended| ended == block);
        assert!(
            place(700_000) < place(500_000),
            "{is_plugged}: {:?}",
            scene.ended
        );
        assert_eq!(place(500_000), Some(4), "{is_plugged}");
        // Its number is used again, and says nothing of what it was.
        scene.ended.clear();
        scene.add(650_000, 650_000, Purpose::Prefetch);
        for place in [300_000, 400_000, 600_000] {
            scene.demand(place, place);
        }
        scene.disk.dispatch(scene.now);
        scene
            .disk
            .hasten(scene.now, Interval::new(500_000, 500_000));
        scene.demand(800_000, 800_000);
        scene.run();
        assert_eq!(scene.ended.last(), Some(&650_000));
    }
}

#[test]
fn what_is_no_longer_wished_is_not_read_and_not_told() {
    let mut scene = Scene::new(&EngineScheduling::exact(Readmore::Wished));
    scene
        .disk
        .wish(Instant::ZERO, Wish::Want(Interval::new(1_000, 1_007)));
    scene
        .disk
        .wish(Instant::ZERO, Wish::Unwant(Interval::new(1_000, 1_003)));
    scene.run();
    assert_eq!(scene.read(), [1_004, 1_005, 1_006, 1_007]);
    assert_eq!(scene.disk.counts().blocks, 4);
    // Nor is it told if it is being read already.
    let before = scene.disk.counts().commands;
    scene
        .disk
        .wish(scene.now, Wish::Want(Interval::new(5_000, 5_001)));
    scene.disk.dispatch(scene.now);
    while scene.disk.counts().commands == before {
        let at = scene.disk.next_event().expect("it is read in idle time");
        scene.step(at);
    }
    assert!(!scene.disk.is_over(), "it is being read");
    scene
        .disk
        .wish(scene.now, Wish::Unwant(Interval::new(5_000, 5_000)));
    scene.run();
    assert_eq!(scene.read(), [5_001]);
    let slack = scene.disk.slack();
    assert_eq!((slack.free, slack.idle), (0, 6 * 8));
}
