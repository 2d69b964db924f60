//! Whether the map is right, by blocks that were not used to make it.

use block::Lba;

use super::line::NoTrack;
use super::observer::{Care, Observer};
use crate::confidence::Confidence;
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
    let mut observer = Observer::new(prober);
    let known = prober.findings(|findings| findings.map.known());
    let (mut close, mut made) = (0, 0);
    for check in 0..u64::from(checks) {
        let spread = (seed + check).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let place = ((u128::from(spread) * u128::from(known)) >> 64) as u64;
        let expected = prober.findings(|findings| {
            let lba = findings.map.known_block(place)?;
            Some((lba, findings.map.end_angle_of(lba)?))
        });
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

impl crate::findings::TrackMap {
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
