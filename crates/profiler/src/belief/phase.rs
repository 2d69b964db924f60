//! Where the platter of a drive is whose profile is known.

use block::Lba;
use drive::{Angle, Profile};

use crate::clock::{Clock, apart, forward};
use crate::prober::{Prober, Sighting, Unseen};

/// Sightings from which the phase is taken. A choice: half of them may be disturbed.
const SIGHTINGS: u64 = 9;

/// Sightings that are as near to each other, in revolutions, agree.
const AGREE: f64 = 0.01;

/// Sights some blocks whose tracks are known, and starts a clock by them: for
/// [`live`](super::live).
///
/// # Errors
/// If most of the blocks cannot be sighted: the last reason.
pub async fn find(prober: &Prober, profile: &Profile) -> Result<Clock, Unseen> {
    let spindle = profile.spindle;
    let mut seen: Vec<(Sighting, Angle)> = Vec::new();
    let mut unseen = None;
    for number in 0..SIGHTINGS {
        let lba = block_of(profile, number);
        match prober.sight(lba).await {
            Ok(sighting) => {
                if let Some(place) = profile.geometry.locate(lba) {
                    let end = place.angle + place.width;
                    seen.push((sighting, end - spindle.angle_at(sighting.at)));
                }
            }
            Err(why) => unseen = Some(why),
        }
    }
    let agreeing = |phase: Angle| {
        let near = seen.iter().map(|(_, other)| apart(phase, *other));
        near.filter(|off| off.abs() < AGREE).collect::<Vec<f64>>()
    };
    let best = seen.iter().max_by_key(|(_, phase)| agreeing(*phase).len());
    match (best, unseen) {
        (Some((sighting, phase)), _) if seen.len() as u64 * 2 > SIGHTINGS => {
            let offs = agreeing(*phase);
            let mean = offs.iter().sum::<f64>() / offs.len() as f64;
            let there = spindle.angle_at(sighting.at) + *phase + forward(mean);
            Ok(Clock::new(spindle.period_ps(), there, sighting.at))
        }
        (_, why) => Err(why.unwrap_or(Unseen::Unreadable)),
    }
}

/// A block whose track is known, one after the other far apart; any block if nothing is said.
fn block_of(profile: &Profile, number: u64) -> Lba {
    let blocks = profile.geometry.sectors().0;
    let known = profile.confidence.as_ref().map_or(&[][..], |c| c.known());
    let total: u64 = known.iter().map(|extent| extent.length().0).sum();
    let spread = |blocks: u64| {
        // The golden section spreads them over the disk.
        let share = u128::from((number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        ((share * u128::from(blocks)) >> 64) as u64
    };
    let mut left = spread(total);
    for extent in known {
        let length = extent.length().0;
        if left < length {
            return Lba(extent.start().0 + left);
        }
        left -= length;
    }
    Lba(spread(blocks))
}
