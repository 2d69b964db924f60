//! Simulated against measured: the same requests, on the model and on the real drive.
//!
//! A trace with measured times is replayed under one of two clocks:
//!
//! - **own**: the model's completions set the pace, as DiskSim does it. Its clock drifts away from
//!   the real one, so that only the distributions can be compared: the *demerit*.
//! - **measured**: every request is issued when the real drive got it, and the head is where the
//!   real drive's was. Where the trace's clock is in phase with the platter, each request can
//!   be compared with its own measurement: the *per-request error*.

pub mod cases;
pub mod clock;
pub mod judgement;
pub mod measurement;
pub mod score;

use std::sync::Arc;

use block::{
    Account, Action, Command, CommandId, Direction, Durability, Duration, Extent, Instant,
};
use clock::Tracker;
use drive::{Profile, VirtualDrive};
use simulator::driver::serve_alone;

/// One request that a real drive served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Which way.
    pub direction: Direction,
    /// Which blocks.
    pub extent: Extent,
    /// When the real drive got it.
    pub issued: Instant,
    /// How long the real drive took.
    pub service: Duration,
    /// From its completion to the next request.
    pub think: Duration,
}

/// Which completions set the pace of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The model's own.
    Own,
    /// The real drive's; the platter turns evenly.
    Measured,
    /// The real drive's; the platter's phase follows the completions that went before, as a
    /// scheduler outside the drive would follow it (see [`clock::Tracker`]).
    Tracked,
}

/// How the model served a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// How long it took.
    pub service: Duration,
    /// When it was complete, on the replay's clock.
    pub completed: Instant,
    /// Where the time went.
    pub account: Account,
}

/// Serves the samples one after the other on a drive that behaves exactly as `profile`.
///
/// # Panics
/// If a sample is not on the drive: readers check that.
pub fn replay(profile: &Arc<Profile>, samples: &[Sample], clock: Clock) -> Vec<Replayed> {
    let mut drive = VirtualDrive::new(Arc::clone(profile));
    let mut issue = Instant::ZERO;
    let mut replayed = Vec::with_capacity(samples.len());
    let mut tracker = Tracker::new(profile.spindle);
    for (id, sample) in (0..).zip(samples) {
        if clock != Clock::Own {
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
        if clock != Clock::Own {
            drive.resync(sample.issued + sample.service);
        }
        if clock == Clock::Tracked
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
