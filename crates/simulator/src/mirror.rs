//! The two drives of a mirror, as one that takes the commands of a mirror's engine.

use std::sync::Arc;

use block::{Command, Instant, Outcome, Refused};
use drive::{Angle, Imperfections, Profile, VirtualDrive};
use engine::{Engine, Side};

use crate::driver::{SimulatedDrive, earlier};

/// The two drives of a mirror.
pub struct MirroredDrives([VirtualDrive; 2]);

impl MirroredDrives {
    /// Two drives of one model. Their deviations have seeds of their own, and their platters are not in step.
    pub fn new(truth: &Arc<Profile>, imperfections: &Imperfections, seed: u64) -> Self {
        let drive = |truth, seed| VirtualDrive::imperfect(truth, imperfections.clone(), seed);
        let first = drive(Arc::clone(truth), seed);
        let second = drive(second(truth, seed), !seed);
        MirroredDrives([first, second])
    }
}

/// The profile of the second drive of a mirror: that of the first one, with its platter elsewhere. Two spindles
/// have no common phase, so that it is drawn.
pub fn second(profile: &Arc<Profile>, seed: u64) -> Arc<Profile> {
    let mut second = Profile::clone(profile);
    // Multiples of the golden ratio of 2^32: seeds that follow each other lie far apart on the revolution.
    let part = (seed as u32).wrapping_add(1).wrapping_mul(0x9e37_79b9);
    let phase = Angle::fraction(u64::from(part), 1 << 32);
    second.spindle = second.spindle.with_phase(second.spindle.phase() + phase);
    Arc::new(second)
}

impl SimulatedDrive for MirroredDrives {
    fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        let [first, second] = &mut self.0;
        match Engine::leg_of(command.id) {
            Side::First => first.submit(now, command),
            Side::Second => second.submit(now, command),
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        let [first, second] = &mut self.0;
        first.poll(now).or_else(|| second.poll(now))
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let [first, second] = &self.0;
        earlier(first.next_wakeup(), second.next_wakeup())
    }
}
