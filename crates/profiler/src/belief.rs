//! What a scheduler is to believe of a drive: a profile made of what was found.
//!
//! Angles of a map are those of the clock: which angle is under the heads when the *answer* of a
//! one-block read comes is the end of that block. The answer comes a constant time after the block
//! has passed, its [`lag`]: overheads and bus. A profile knows the lag from its overheads, so that
//! its platter is ahead of the clock by it ([`live`]). The answers of one-block reads are then
//! predicted exactly, however wrong the believed lag is: what is left is that everything inside of
//! the drive is believed to be earlier or later by a constant than it is.
//!
//! A profile file has no phase: platters do not keep it while they stand. [`phase`] finds it again
//! within a second.

mod defaults;
mod known;
pub mod phase;
mod text;
mod tracks;

use std::sync::Arc;

use block::{Action, Command, CommandId, Durability, Duration, Extent, Instant, Lba};
use document::DocumentError;
use drive::{Profile, VirtualDrive};

use crate::clock::PlatterClock;
use crate::device::DriveIdentity;
use crate::findings::Findings;

pub use text::{shares, text};

/// The profile that was found. Its phase is that of a platter which has angle 0 under the heads at
/// `Instant::ZERO`: see [`live`].
///
/// # Errors
/// If `name` is not made of lower-case letters, digits and hyphens, or the findings contradict each
/// other.
pub fn profile(
    findings: &Findings,
    device: &DriveIdentity,
    name: &str,
) -> Result<Profile, DocumentError> {
    Profile::parse(&text(findings, device, name), &format!("{name}.toml"))
}

/// The profile with the platter where the clock has it.
pub fn live(profile: &Profile, clock: &PlatterClock) -> Profile {
    let spindle = clock.spindle();
    let turned = spindle.angle_at(Instant::ZERO + lag(profile));
    let mut live = profile.clone();
    live.spindle = spindle.with_phase(turned);
    live
}

/// How long after a block has passed under the head the answer to a read of it alone comes, as the
/// profile has it; less than a revolution.
pub fn lag(profile: &Profile) -> Duration {
    let place = profile.geometry.locate(Lba(0));
    let mut drive = VirtualDrive::new(Arc::new(profile.clone()));
    let action = Action::Read {
        extent: Extent::block(Lba(0)),
        durability: Durability::Durable,
    };
    let given = drive.submit(Instant::ZERO, Command::new(CommandId(0), action));
    let mut now = Some(Instant::ZERO);
    while let (Ok(()), Some(at)) = (given, now) {
        if let (Some(outcome), Some(place)) = (drive.poll(at), place) {
            let there = profile.spindle.angle_at(outcome.at);
            return profile.spindle.time_of(there - (place.angle + place.width));
        }
        now = drive.next_wakeup();
    }
    Duration::ZERO
}
