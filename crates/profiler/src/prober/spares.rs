//! How many sectors of a full track hold no block, where a host's delays hide single sectors.
//!
//! The blocks of a track are counted exactly: the skew behind the last one is far longer than any delay. The
//! sectors of a turn are told by the angle between the first and the last block, to a sector or two. What is
//! between is the same on most tracks of a drive: a few sightings of each of many tracks tell it.

/// Evidence of all tracks that were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SpareSectors {
    /// The logarithms of how likely each number is, up to a constant.
    evidence: [f64; NUMBERS],
}

/// Numbers of spare sectors that are told apart by all tracks together: 0 to 3. A choice: a track with more of
/// them is counted for itself.
const NUMBERS: usize = 4;

/// The most that one track tells: it may have lost a sector to a defect. A choice: as two standard errors.
const MOST: f64 = 2.0;

/// A number is told when it is `e` to this power times as likely as any other. A choice: once in 8,000 drives
/// it is another.
const LEAD: f64 = 9.0;

/// Standard errors within which a track has to agree. A choice.
const AGREES: f64 = 4.0;

impl SpareSectors {
    /// Adds a track that seems to have `spare` sectors more than blocks, give or take `error`.
    pub(crate) fn add(&mut self, spare: f64, error: f64) {
        if !SpareSectors::is_plausible(spare, error) {
            return;
        }
        for (number, evidence) in self.evidence.iter_mut().enumerate() {
            let off = (spare - number as f64) / error;
            *evidence -= (off * off / 2.0).min(MOST);
        }
    }

    /// Whether a track may have one of these numbers.
    pub(crate) fn is_plausible(spare: f64, error: f64) -> bool {
        let most = (NUMBERS - 1) as f64;
        spare >= -AGREES * error && spare <= most + AGREES * error
    }

    /// The number of spare sectors, if it is told.
    pub(crate) fn told(&self) -> Option<u32> {
        let best = (0..NUMBERS)
            .max_by(|one, other| self.evidence[*one].total_cmp(&self.evidence[*other]))?;
        let is_ahead = |other: usize| self.evidence[best] - self.evidence[other] >= LEAD;
        let told = (0..NUMBERS).all(|other| other == best || is_ahead(other));
        told.then_some(best as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_uncertain_tracks_tell_together() {
        for truth in 0..NUMBERS {
            let mut spares = SpareSectors::default();
            assert_eq!(spares.told(), None);
            for track in 0..60 {
                // Errors of both signs, and one track of ten has lost a sector.
                let error = f64::from(track % 5) / 2.0 - 1.0;
                let lost = f64::from(u8::from(track % 10 == 0));
                spares.add(truth as f64 + lost + error, 0.8);
            }
            assert_eq!(spares.told(), Some(truth as u32), "{spares:?}");
        }
    }

    #[test]
    fn tracks_of_another_kind_say_nothing() {
        let mut spares = SpareSectors::default();
        for _ in 0..100 {
            spares.add(30.0, 1.0);
        }
        assert_eq!(spares, SpareSectors::default());
    }
}
