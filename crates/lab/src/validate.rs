//! Compares the model with the real drive on the same requests.
//!
//! A trace with measured times is replayed under one of two clocks:
//!
//! - **own**: the model's completions set the pace, as in DiskSim. The model's clock drifts away from
//!   the real one, so that only distributions are comparable: the *demerit*.
//! - **measured**: every request starts when the real drive received it, with the head at the real
//!   position. If the trace's clock is in phase with the platter, each request is comparable with its
//!   own measurement: the *per-request error*.

pub mod cases;
pub mod clock;
pub mod judgement;
pub mod measurement;
pub mod score;
pub mod table;

use std::sync::Arc;

use block::{
    Account, Action, Command, CommandId, Direction, Durability, Duration, Extent, Instant,
};
use clock::Tracker;
use drive::{Profile, VirtualDrive};
use simulator::driver::serve_alone;

/// A request that a real drive served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The direction.
    pub direction: Direction,
    /// The blocks.
    pub extent: Extent,
    /// The arrival at the real drive.
    pub issued: Instant,
    /// The service time of the real drive.
    pub service: Duration,
    /// The time from the completion to the next request.
    pub think: Duration,
}

/// The completions that set the pace of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayClock {
    /// The model's.
    Own,
    /// The real drive's, with a constant period of the platter.
    Measured,
    /// The real drive's. The platter's phase follows earlier completions, as a scheduler outside
    /// the drive would track it (see [`clock::Tracker`]).
    Tracked,
}

/// The model's result for a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The service time.
    pub service: Duration,
    /// The completion on the replay's clock.
    pub completed: Instant,
    /// The phases of the service time.
    pub account: Account,
}

/// Serves the samples in order on a drive that equals `profile`.
///
/// # Panics
/// If a sample is not on the drive: readers check that.
pub fn replay(profile: &Arc<Profile>, samples: &[Sample], clock: ReplayClock) -> Vec<Replayed> {
    let mut drive = VirtualDrive::new(Arc::clone(profile));
    let mut issue = Instant::ZERO;
    let mut replayed = Vec::with_capacity(samples.len());
    let mut tracker = Tracker::new(profile.spindle);
    for (id, sample) in (0..).zip(samples) {
        if clock != ReplayClock::Own {
            issue = sample.issued;
        }
        let (extent, durability) = (sample.extent, Durability::Volatile);
        let action = match sample.direction {
            Direction::Read => Action::Read { extent, durability },
            Direction::Write => Action::Write { extent, durability },
        };
        let outcome = serve_alone(&mut drive, issue, Command::new(CommandId(id), action))
            .expect("one command at a time, and the reader has checked the extent");
        let account = outcome
            .account
            .expect("a virtual drive accounts for its time");
        replayed.push(Replayed {
            service: outcome.at.since(issue),
            completed: outcome.at,
            account,
        });
        if clock != ReplayClock::Own {
            drive.resync(sample.issued + sample.service);
        }
        if clock == ReplayClock::Tracked
            && let Some(phase) = tracker.follow(sample, replayed.last())
        {
            drive.turn_platter(phase);
        }
        issue = outcome.at + sample.think;
    }
    replayed
}

#[cfg(test)]
mod tests;
