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

/// A block of a track where another begins does not end there by chance if it is as far from there as this
/// share of the skew between them. A choice: less than half.
const OF_SKEW: f64 = 0.4;

/// The same where reads in between have to evict the blocks, and where a host delays some sightings. The
/// blocks are those on both sides of a boundary of two tracks: angles within a track would be right also
/// if its bounds were not.
async fn verify_in_rounds(prober: &Prober, checks: u32, seed: u64) -> Confidence {
    let checks = 0..u64::from(checks);
    let work = checks.map(|check| async move {
        let boundary = prober.findings(|findings| {
            let known = findings.map.known();
            findings.map.boundary(known, seed + check)
        });
        let Boundary { blocks, within } = boundary?;
        for (lba, end) in blocks {
            if !is_there(prober, lba, end, within).await? {
                return Some(0);
            }
        }
        Some(1)
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

/// Whether a block ends at an angle, by the earliest of some sightings.
async fn is_there(prober: &Prober, lba: Lba, end: Angle, within: f64) -> Option<bool> {
    for _ in 0..LATE {
        let sighting = prober.sight(lba).await.ok()?;
        let clock = prober.findings(|findings| findings.clock)?;
        if apart(end, clock.angle_at(sighting.at)).abs() <= within {
            // The checks may take longer than a spindle that drifts keeps its time.
            prober.anchor(end, sighting.at);
            return Some(true);
        }
    }
    Some(false)
}

/// The blocks on both sides of a boundary of tracks, with the angles at which they end.
struct Boundary {
    blocks: [(Lba, Angle); 2],
    /// How far off they may be, in revolutions.
    within: f64,
}

impl crate::findings::TrackMap {
    /// A block of a known track, spread by the golden section, and the angle at which it ends.
    fn fresh(&self, known: u64, number: u64) -> Option<(Lba, Angle)> {
        let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let place = ((u128::from(spread) * u128::from(known)) >> 64) as u64;
        let lba = self.known_block(place)?;
        Some((lba, self.end_angle_of(lba)?))
    }

    /// The boundary behind such a block's track, or before it if nothing is known behind.
    fn boundary(&self, known: u64, number: u64) -> Option<Boundary> {
        let (lba, end) = self.fresh(known, number)?;
        let track = self.track_of(lba)?;
        let behind = Lba(track.first.0 + u64::from(track.blocks));
        let first = match self.track_of(behind) {
            Some(_) => behind,
            None => track.first,
        };
        let last = first.0.checked_sub(1).map(Lba);
        let ends = last.and_then(|last| Some((last, self.end_angle_of(last)?)));
        let begins = self.end_angle_of(first).map(|angle| (first, angle));
        let Some((last, first)) = ends.zip(begins) else {
            // A track that stands alone.
            return Some(Boundary {
                blocks: [(lba, end); 2],
                within: CLOSE,
            });
        };
        let width = Angle::fraction(1, u64::from(track.sectors));
        let skew = apart(last.1 + width, first.1).abs();
        let within = match skew > 2.0 * width.revolutions() {
            true => CLOSE.min(skew * OF_SKEW),
            // The boundary shows at no angle.
            false => CLOSE,
        };
        Some(Boundary {
            blocks: [last, first],
            within,
        })
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
