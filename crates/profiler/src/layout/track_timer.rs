//! Times from track to track, for comparing them.

use block::Direction;

use crate::arm::reposition;
use crate::device::Offers;
use crate::findings::{FoundTrack, TrackMap};
use crate::prober::Prober;

/// From how many answers a time is. A choice: with noise of 60 microseconds the mean is within
/// 0.1 ms of the truth in all but a few of a thousand times.
const SAMPLES: u32 = 6;

/// The same behind a host, which delays commands and outcomes as well, for the check of a layout. A choice:
/// twice as many.
const LATE_SAMPLES: u32 = 12;

/// How often a time is measured until answers agree, with cache control: a stall of the drive's may have
/// spoilt the first.
const TRIES: u32 = 2;

/// The same by reads alone, where hosts stall as well.
const TRIES_BY_READS: u32 = 4;

/// Times that differ by less are taken for equal, in milliseconds: three standard deviations of
/// the difference of two means of [`SAMPLES`] answers that vary by 60 microseconds.
pub(super) const EQUAL: f64 = 0.13;

/// Measures times from track to track.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackTimer<'a> {
    pub prober: &'a Prober,
    samples: u32,
}

impl<'a> TrackTimer<'a> {
    pub fn new(prober: &'a Prober) -> Self {
        let samples = SAMPLES;
        TrackTimer { prober, samples }
    }

    /// One that takes more answers behind a host.
    pub fn careful(self) -> Self {
        let late = self.prober.findings(|findings| findings.host.late);
        let samples = if late.is_zero() {
            SAMPLES
        } else {
            LATE_SAMPLES
        };
        TrackTimer { samples, ..self }
    }

    /// From one track to another, in milliseconds and with a constant that is the same for all.
    pub async fn time(&self, from: &FoundTrack, to: &FoundTrack) -> Option<f64> {
        let tries = match self.prober.device().offers {
            Offers::CacheControl => TRIES,
            Offers::Nothing => TRIES_BY_READS,
        };
        for _ in 0..tries {
            let spread = reposition(self.prober, from, to, Direction::Read, self.samples).await;
            if let Some(spread) = spread {
                return Some(spread.mean.as_nanos() as f64 / 1e6);
            }
        }
        None
    }

    /// Tracks between those of two measurements that belong together: without cache control a track
    /// that another one has read would be in the buffer.
    pub fn spacing(&self) -> i64 {
        match self.prober.device().offers {
            Offers::CacheControl => 0,
            Offers::Nothing => 2,
        }
    }

    /// Times from tracks to others. Without cache control they are measured in rounds, so that their
    /// reads evict each other's.
    pub async fn times(&self, pairs: &[(FoundTrack, FoundTrack)]) -> Vec<Option<f64>> {
        if self.prober.device().offers == Offers::Nothing {
            let work = pairs.iter().map(|(from, to)| self.time(from, to));
            return self.prober.rounds(work.collect()).await;
        }
        let mut times = Vec::with_capacity(pairs.len());
        for (from, to) in pairs {
            times.push(self.time(from, to).await);
        }
        times
    }

    /// From one track to the one so many tracks behind it or, if negative, before it.
    pub async fn over(&self, from: &FoundTrack, tracks: i64) -> Option<f64> {
        self.time(from, &self.beside(from, tracks)?).await
    }

    /// How many tracks are known behind another without a gap.
    pub fn room(&self, track: &FoundTrack) -> i64 {
        self.prober.findings(|findings| room(&findings.map, track))
    }

    /// The track so many tracks behind another, or before it, in known blocks without a gap.
    pub fn beside(&self, track: &FoundTrack, tracks: i64) -> Option<FoundTrack> {
        self.prober
            .findings(|findings| beside(&findings.map, track, tracks))
    }
}

/// How many tracks are known behind another without a gap.
fn room(map: &TrackMap, track: &FoundTrack) -> i64 {
    let mut room = -1 - track.ordinal as i64;
    for (index, piece) in map.pieces.iter().enumerate().skip(track.piece) {
        room += piece.tracks() as i64;
        let next = map.pieces.get(index + 1);
        if next.is_none_or(|next| next.first != piece.end()) {
            break;
        }
    }
    room
}

/// The track so many tracks behind another, or before it, in known blocks without a gap.
pub(super) fn beside(map: &TrackMap, track: &FoundTrack, tracks: i64) -> Option<FoundTrack> {
    let mut index = track.piece;
    let mut ordinal = track.ordinal as i64 + tracks;
    loop {
        let piece = map.pieces.get(index)?;
        if ordinal < 0 {
            let before = map.pieces.get(index.checked_sub(1)?)?;
            if before.end() != piece.first {
                return None;
            }
            (index, ordinal) = (index - 1, ordinal + before.tracks() as i64);
        } else if ordinal >= piece.tracks() as i64 {
            let after = map.pieces.get(index + 1)?;
            if piece.end() != after.first {
                return None;
            }
            (index, ordinal) = (index + 1, ordinal - piece.tracks() as i64);
        } else {
            return nth(map, index, ordinal as u64);
        }
    }
}

/// A track of a piece.
pub(super) fn nth(map: &TrackMap, piece: usize, ordinal: u64) -> Option<FoundTrack> {
    let found = map.pieces.get(piece)?;
    let mut first = found.first.0 + ordinal / found.cycle_tracks() * found.cycle_blocks();
    let mut rest = ordinal % found.cycle_tracks();
    for band in &found.cycle {
        let taken = rest.min(u64::from(band.tracks));
        first += taken * u64::from(band.blocks);
        rest -= taken;
        if taken < u64::from(band.tracks) {
            break;
        }
    }
    map.track_of(block::Lba(first))
}

#[cfg(test)]
mod tests {
    use block::Lba;
    use drive::Angle;

    use super::*;
    use crate::findings::{Band, MapPiece};

    #[test]
    fn the_last_track_of_the_room_is_known_and_the_next_one_is_not() {
        let piece = |first, tracks, repeats| MapPiece {
            first: Lba(first),
            angle: Angle::ZERO,
            cycle: vec![Band {
                tracks,
                blocks: 10,
                sectors: 10,
                start: Angle::ZERO,
                skew: Angle::fraction(1, 10),
            }],
            repeats,
            step: Angle::fraction(1, 3),
        };
        let map = TrackMap {
            pieces: vec![piece(0, 3, 2), piece(60, 5, 1), piece(200, 4, 1)],
            ..TrackMap::default()
        };
        for (lba, expected) in [(0, 10), (40, 6), (60, 4), (109, 0), (200, 3)] {
            let track = map.track_of(Lba(lba)).expect("a track");
            let room = room(&map, &track);
            assert_eq!(room, expected, "{lba}");
            assert!(beside(&map, &track, room).is_some());
            assert!(beside(&map, &track, room + 1).is_none());
        }
    }
}
