//! Whether the map is right, by blocks that were not used to make it.

use block::Lba;
use drive::Angle;

use super::line::NoTrack;
use super::observer::{Care, Observer};
use crate::clock::apart;
use crate::confidence::Confidence;
use crate::device::Offers;
use crate::prober::Prober;

/// A prediction that is not farther off came true, in revolutions: what scheduling by position
/// needs (Yu et al. 2000).
const CLOSE: f64 = 0.01;

/// Looks at so many blocks of known tracks, spread by the golden section from one that `seed`
/// says, and sets the map's confidence.
///
/// # Errors
/// If a block could not be sighted.
pub async fn verify(prober: &Prober, checks: u32, seed: u64) -> Result<Confidence, NoTrack> {
    if prober.device().offers == Offers::Nothing {
        return Ok(verify_in_rounds(prober, checks, seed).await);
    }
    let mut observer = Observer::new(prober);
    let known = prober.findings(|findings| findings.map.known());
    let (mut close, mut made) = (0, 0);
    for check in 0..u64::from(checks) {
        let expected = prober.findings(|findings| findings.map.fresh(known, seed + check));
        let Some((lba, end)) = expected else {
            continue;
        };
        let off = observer.off(lba, end, CLOSE, Care::Sure).await?;
        made += 1;
        close += u32::from(off.abs() <= CLOSE);
    }
    let confidence = Confidence::of(close, made);
    prober.findings(|findings| findings.map_confidence = confidence);
    Ok(confidence)
}

/// Sightings of a block that is late before it is believed not to be where it should: one in a hundred
/// times four of them are all late. A choice.
const LATE: u32 = 4;

/// The same where reads in between have to evict the blocks, and where a host delays some sightings.
async fn verify_in_rounds(prober: &Prober, checks: u32, seed: u64) -> Confidence {
    let checks = 0..u64::from(checks);
    let work = checks.map(|check| async move {
        let known = prober.findings(|findings| findings.map.known());
        let expected = prober.findings(|findings| findings.map.fresh(known, seed + check));
        let (lba, end) = expected?;
        for _ in 0..LATE {
            let sighting = prober.sight(lba).await.ok()?;
            let clock = prober.findings(|findings| findings.clock)?;
            if apart(end, clock.angle_at(sighting.at)).abs() <= CLOSE {
                return Some(1);
            }
        }
        Some(0)
    });
    let came_true: Vec<u32> = prober
        .rounds(work.collect())
        .await
        .into_iter()
        .flatten()
        .collect();
    let confidence = Confidence::of(came_true.iter().sum(), came_true.len() as u32);
    prober.findings(|findings| findings.map_confidence = confidence);
    confidence
}

impl crate::findings::TrackMap {
    /// A block of a known track, spread by the golden section, and the angle at which it ends.
    fn fresh(&self, known: u64, number: u64) -> Option<(Lba, Angle)> {
        let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let place = ((u128::from(spread) * u128::from(known)) >> 64) as u64;
        let lba = self.known_block(place)?;
        Some((lba, self.end_angle_of(lba)?))
    }

    /// The known block with so many known blocks before it.
    fn known_block(&self, mut place: u64) -> Option<Lba> {
        for piece in &self.pieces {
            if place < piece.blocks() {
                return Some(Lba(piece.first.0 + place));
            }
            place -= piece.blocks();
        }
        None
    }
}
