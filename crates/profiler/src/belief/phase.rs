//! The platter position of a drive with a known profile.

use block::Lba;
use drive::{Angle, Profile, Spindle};

use crate::clock::{PlatterClock, apart, forward};
use crate::findings::MapPiece;
use crate::prober::{Prober, Unseen};
use crate::sighting::Sighting;

/// Number of sightings for the phase. A choice: half of them may be disturbed.
const SIGHTINGS: u64 = 9;

/// Maximum distance of agreeing sightings, in revolutions.
const AGREE: f64 = 0.01;

/// Sights blocks with known tracks, and starts a clock for [`live`](super::live).
///
/// # Errors
/// If most of the blocks cannot be sighted: the last reason.
pub async fn find(prober: &Prober, profile: &Profile) -> Result<PlatterClock, Unseen> {
    let mut seen: Vec<(Sighting, Angle)> = Vec::new();
    let mut unseen = Unseen::Unreadable;
    for number in 0..SIGHTINGS {
        let lba = block_of(profile, number);
        match (prober.sight(lba).await, profile.geometry.locate(lba)) {
            (Ok(sighting), Some(place)) => seen.push((sighting, place.angle + place.width)),
            (Ok(_), None) => {}
            (Err(why), _) => unseen = why,
        }
    }
    match agreed(profile.spindle, &seen) {
        Some((clock, _)) if seen.len() as u64 * 2 > SIGHTINGS => Ok(clock),
        _ => Err(unseen),
    }
}

/// Sights blocks of the map from an earlier run, and sets the clock to its angles. Returns whether
/// more than half of the blocks agree; otherwise the clock is unchanged.
pub async fn rejoin(prober: &Prober) -> bool {
    let (map, clock) = prober.findings(|findings| (findings.map.clone(), findings.clock));
    let Some(clock) = clock else {
        return false;
    };
    let mut seen = Vec::new();
    for number in 0..SIGHTINGS {
        let mut left = spread(number, map.known());
        let holds = |piece: &&MapPiece| {
            let is_here = left < piece.blocks();
            left -= if is_here { 0 } else { piece.blocks() };
            is_here
        };
        let lba = map
            .pieces
            .iter()
            .find(holds)
            .map(|piece| Lba(piece.first.0 + left));
        let end = lba.and_then(|lba| Some((lba, map.end_angle_of(lba)?)));
        if let Some((lba, end)) = end
            && let Ok(sighting) = prober.sight(lba).await
        {
            seen.push((sighting, end));
        }
    }
    match agreed(clock.spindle(), &seen) {
        Some((clock, agree)) if agree as u64 * 2 > SIGHTINGS => {
            prober.findings(|findings| findings.clock = Some(clock));
            true
        }
        _ => false,
    }
}

/// The clock that most sightings agree on, and their number.
fn agreed(spindle: Spindle, seen: &[(Sighting, Angle)]) -> Option<(PlatterClock, usize)> {
    let phase = |(sighting, end): &(Sighting, Angle)| *end - spindle.angle_at(sighting.at);
    let agreeing = |phase_of: Angle| {
        let near = seen.iter().map(|other| apart(phase_of, phase(other)));
        near.filter(|off| off.abs() < AGREE).collect::<Vec<f64>>()
    };
    let best = seen.iter().max_by_key(|one| agreeing(phase(one)).len())?;
    let offs = agreeing(phase(best));
    let mean = offs.iter().sum::<f64>() / offs.len() as f64;
    let there = best.1 + forward(mean);
    let clock = PlatterClock::new(spindle.period_ps(), there, best.0.at);
    Some((clock, offs.len()))
}

/// A block with a known track, far from those of neighbouring numbers; any block without such
/// information.
fn block_of(profile: &Profile, number: u64) -> Lba {
    let blocks = profile.geometry.sectors().0;
    let known = profile.confidence.as_ref().map_or(&[][..], |c| c.known());
    let total: u64 = known.iter().map(|extent| extent.length().0).sum();
    let mut left = spread(number, total);
    for extent in known {
        let length = extent.length().0;
        if left < length {
            return Lba(extent.start().0 + left);
        }
        left -= length;
    }
    Lba(spread(number, blocks))
}

/// The position of a number in a range, distributed by the golden section.
fn spread(number: u64, over: u64) -> u64 {
    let share = u128::from((number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    ((share * u128::from(over)) >> 64) as u64
}
