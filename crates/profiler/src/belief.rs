//! The belief of a scheduler about a drive: a profile derived from the findings.
//!
//! Angles of a map are those of the clock: the angle under the heads at the *end* of a one-block
//! read is the end of that block. The read ends a constant time after the block has passed, the
//! [`lag`]: overheads and bus. A profile derives the lag from its overheads and advances its
//! platter by it ([`live`]). Ends of one-block reads are then predicted exactly for any believed
//! lag; an error of the lag shifts only the believed time of events inside the drive.
//!
//! A profile file has no phase, since a platter loses it when it stops. [`phase`] finds it again
//! within a second.

pub(crate) mod defaults;
mod known;
pub mod phase;
mod ranges;
mod text;
mod tracks;

use std::sync::Arc;

use block::{Action, Command, CommandId, Durability, Duration, Extent, Instant, Lba};
use document::DocumentError;
use drive::{Profile, VirtualDrive};

use crate::clock::PlatterClock;
use crate::device::DriveIdentity;
use crate::findings::Findings;

pub use ranges::of_ranges;
pub use text::{shares, text};

/// The profile of the findings. Its platter has angle 0 under the heads at `Instant::ZERO`: see
/// [`live`].
///
/// # Errors
/// If `name` contains characters other than lower-case letters, digits and hyphens, or the findings
/// are contradictory.
pub fn profile(
    findings: &Findings,
    device: &DriveIdentity,
    name: &str,
) -> Result<Profile, DocumentError> {
    Profile::parse(&text(findings, device, name), &format!("{name}.toml"))
}

/// The share of the blocks whose tracks are in the profile: those of the layout, which may be fewer than the map has.
pub fn known_share(findings: &Findings, device: &DriveIdentity) -> f64 {
    let known = known::extents(findings, device.blocks);
    let known: u64 = known.iter().map(|extent| extent.length().0).sum();
    known as f64 / device.blocks.max(1) as f64
}

/// A name in kebab case, as profiles require it.
pub fn kebab(name: &str) -> String {
    let letter = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_lowercase() || c.is_ascii_digit() => c,
        _ => '-',
    };
    name.chars().map(letter).collect()
}

/// The profile with the platter position of the clock.
pub fn live(profile: &Profile, clock: &PlatterClock) -> Profile {
    let spindle = clock.spindle();
    let turned = spindle.angle_at(Instant::ZERO + lag(profile));
    let mut live = profile.clone();
    live.spindle = spindle.with_phase(turned);
    live
}

/// Time from the passing of a block under the head to the end of its one-block read, by the
/// profile; less than a revolution.
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
