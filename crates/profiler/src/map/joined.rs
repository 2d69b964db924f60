//! Tracks that the map has in two parts, joined.
//!
//! ```text
//!   zone before   |--- track ---|
//!   parts                       |- part -|-- part --|              together they have the blocks of a track
//!   zone behind                                     |-- track --|  behind them, and are on its line
//! ```
//!
//! So close to each other, a host's delays hide on which of two lines blocks are. A walk takes the first blocks of a zone
//! for a track of the zone before, until its line leaves them. Where it leaves them by less than the delays, the track is
//! whole, but has the sectors of the zone before.

use block::Lba;
use drive::Angle;

use super::observer::width;
use crate::clock::{apart, forward};
use crate::findings::{Band, MapPiece, TrackMap};

/// The second part of a track is on the line of the first one if it is not farther off, in revolutions. A choice: as far
/// off as blocks may be behind a host and stay on the map.
const ON_LINE: f64 = 0.016;

impl TrackMap {
    /// Joins tracks that the map has in two parts; those with the blocks of tracks behind them get their sectors.
    pub(super) fn join_parts(&mut self) {
        let mut place = 0;
        while place < self.pieces.len() {
            self.trade_blocks(place);
            if let Some(whole) = self.whole_track(place) {
                self.pieces.splice(place..place + 2, [whole]);
            } else if let Some(sectors) = self.sectors_behind(place) {
                self.pieces[place].cycle[0].sectors = sectors;
            }
            place += 1;
        }
    }

    /// The track of which a piece and the next one are parts, if they are.
    fn whole_track(&self, place: usize) -> Option<MapPiece> {
        let parts = self.parts(place)?;
        let blocks = parts[0].blocks + parts[1].blocks;
        let behind = self.follower(place + 1).map(|piece| piece.cycle[0]);
        let behind = behind.filter(|behind| behind.sectors == parts[1].sectors);
        let before = self.predecessor(place).and_then(|piece| piece.cycle.last());
        let before = before.filter(|before| before.sectors == parts[0].sectors);
        let like = behind
            .iter()
            .chain(before)
            .find(|like| like.blocks == blocks)?;
        let starts = [place, place + 1].map(|part| self.pieces[part].angle);
        let passed = width(like.sectors).times(u64::from(parts[0].blocks));
        let off = apart(starts[0] + passed, starts[1]);
        if off.abs() > ON_LINE {
            return None;
        }
        // Each part is as far off as a sighting.
        let start = starts[0] + forward(off / 2.0);
        let next = match self.follower(place + 1) {
            Some(next) => next.angle,
            None => starts[1] + self.pieces[place + 1].step,
        };
        let band = Band {
            tracks: 1,
            blocks,
            sectors: like.sectors,
            start: Angle::ZERO,
            skew: next - start,
        };
        Some(MapPiece {
            first: self.pieces[place].first,
            angle: start,
            cycle: vec![band],
            repeats: 1,
            step: band.skew,
        })
    }

    /// Two single tracks, one behind the other.
    fn parts(&self, place: usize) -> Option<[Band; 2]> {
        let first = single(self.pieces.get(place)?)?;
        Some([first, single(self.follower(place)?)?])
    }

    /// Gives the track behind two parts the blocks that it lacks, or takes those that it has too many, where delays hide
    /// whose they are and the three have the blocks of two tracks behind them.
    fn trade_blocks(&mut self, place: usize) -> Option<()> {
        let [one, other] = self.parts(place)?;
        let third = single(self.follower(place + 1)?)?;
        let like = self.follower(place + 2)?.cycle[0];
        let blocks = one.blocks + other.blocks;
        let is_like = like.sectors == other.sectors && like.sectors == third.sectors;
        let is_two = blocks + third.blocks == 2 * like.blocks && like.blocks != third.blocks;
        let hidden = (ON_LINE * f64::from(like.sectors)) as u32;
        let wanted = like
            .blocks
            .checked_sub(one.blocks)
            .filter(|left| *left > 0)?;
        if !is_like || !is_two || blocks.abs_diff(like.blocks) > hidden {
            return None;
        }
        let lacking = i64::from(like.blocks) - i64::from(third.blocks);
        let turned = width(like.sectors).times(lacking.unsigned_abs());
        self.pieces[place + 1].cycle[0].blocks = wanted;
        let piece = &mut self.pieces[place + 2];
        piece.cycle[0].blocks = like.blocks;
        piece.first = Lba(piece.first.0.checked_add_signed(-lacking)?);
        piece.angle = match lacking > 0 {
            true => piece.angle - turned,
            false => piece.angle + turned,
        };
        Some(())
    }

    /// The sectors of the tracks behind a single track that has as many blocks as they have, and the sectors of the tracks
    /// before it, which have other numbers of blocks.
    fn sectors_behind(&self, place: usize) -> Option<u32> {
        let track = single(self.pieces.get(place)?)?;
        let before = *self.predecessor(place)?.cycle.last()?;
        let behind = self.follower(place)?.cycle[0];
        let is_of_both = before.sectors == track.sectors && behind.blocks == track.blocks;
        let is_end = before.blocks != behind.blocks && before.sectors != behind.sectors;
        (is_of_both && is_end).then_some(behind.sectors)
    }

    /// The piece behind one, without a gap.
    fn follower(&self, place: usize) -> Option<&MapPiece> {
        let next = self.pieces.get(place + 1)?;
        (next.first == self.pieces[place].end()).then_some(next)
    }

    /// The piece before one, without a gap.
    fn predecessor(&self, place: usize) -> Option<&MapPiece> {
        let before = self.pieces.get(place.checked_sub(1)?)?;
        (before.end() == self.pieces[place].first).then_some(before)
    }
}

/// The track of a piece that is one track.
fn single(piece: &MapPiece) -> Option<Band> {
    (piece.tracks() == 1).then(|| piece.cycle[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The skew from track to track.
    const SKEW: (u64, u64) = (1, 16);

    /// Tracks that follow each other without a gap, as their blocks, their sectors, and where they begin.
    fn map(tracks: &[(u32, u32, Angle)]) -> TrackMap {
        let mut map = TrackMap::default();
        let mut first = 0;
        for &(blocks, sectors, angle) in tracks {
            let band = Band {
                tracks: 1,
                blocks,
                sectors,
                start: Angle::ZERO,
                skew: Angle::ZERO,
            };
            map.pieces.push(MapPiece {
                first: Lba(first),
                angle,
                cycle: vec![band],
                repeats: 1,
                step: Angle::ZERO,
            });
            first += u64::from(blocks);
        }
        map
    }

    fn skew(tracks: u64) -> Angle {
        Angle::fraction(SKEW.0, SKEW.1).times(tracks)
    }

    /// The blocks and sectors of all tracks.
    fn tracks(map: &TrackMap) -> Vec<(u32, u32)> {
        let bands = map.pieces.iter().map(|piece| piece.cycle[0]);
        bands.map(|band| (band.blocks, band.sectors)).collect()
    }

    /// As it was found at a zone end of modern-20tb, behind a host that delays by up to 1 % of a revolution.
    #[test]
    fn the_two_parts_of_a_zones_first_track_are_one() {
        for late in [-0.012, 0.0, 0.012] {
            let second = skew(1) + width(285).times(108) + forward(late);
            let mut map = map(&[
                (302, 302, skew(0)),
                (108, 302, skew(1)),
                (177, 285, second),
                (285, 285, skew(2)),
            ]);
            let end = map.pieces[3].end();
            map.join_parts();
            assert_eq!(tracks(&map), [(302, 302), (285, 285), (285, 285)]);
            let whole = &map.pieces[1];
            assert_eq!((whole.first, map.pieces[2].end()), (Lba(302), end));
            assert_eq!(whole.angle + whole.step, skew(2));
            assert!((apart(skew(1), whole.angle) - late / 2.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_last_track_of_a_zone_is_joined_on_the_line_of_its_zone() {
        let second = skew(1) + width(302).times(200);
        let mut map = map(&[
            (302, 302, skew(0)),
            (200, 302, skew(1)),
            (102, 285, second),
            (285, 285, skew(2)),
        ]);
        map.join_parts();
        assert_eq!(tracks(&map), [(302, 302), (302, 302), (285, 285)]);
    }

    /// As it was found on toshiba-x300-5tb: one block of the zone's second track is on its first.
    #[test]
    fn the_blocks_of_a_zones_first_two_tracks_are_shared_out() {
        for (part, third) in [(13, 3607), (12, 3608), (9, 3611)] {
            let lacking = 3608 - i64::from(third);
            let moved = width(3608).times(lacking.unsigned_abs());
            let begins = match lacking > 0 {
                true => skew(2) + moved,
                false => skew(2) - moved,
            };
            let mut map = map(&[
                (3688, 3688, skew(0)),
                (3596, 3688, skew(1)),
                (part, 3608, skew(1) + width(3608).times(3596)),
                (third, 3608, begins),
                (3608, 3608, skew(3)),
            ]);
            map.join_parts();
            assert_eq!(tracks(&map)[1..], [(3608, 3608); 3]);
            let firsts: Vec<u64> = map.pieces.iter().map(|piece| piece.first.0).collect();
            assert_eq!(firsts, [0, 3688, 7296, 10_904]);
            for (track, piece) in (0..).zip(&map.pieces) {
                assert!(apart(skew(track), piece.angle).abs() < 1e-9, "{track}");
            }
        }
    }

    #[test]
    fn tracks_that_are_on_two_lines_stay_two() {
        let begun = skew(1) + width(285).times(108);
        // Beside the line; other numbers of blocks; unknown blocks in between.
        let mut beside = map(&[
            (302, 302, skew(0)),
            (108, 302, skew(1)),
            (177, 285, begun + forward(0.02)),
            (285, 285, skew(2)),
        ]);
        let mut others = map(&[
            (302, 302, skew(0)),
            (108, 302, skew(1)),
            (176, 285, begun),
            (285, 285, skew(2)),
        ]);
        let mut apart = others.clone();
        apart.pieces[2].cycle[0].blocks = 177;
        for piece in &mut apart.pieces[2..] {
            piece.first = Lba(piece.first.0 + 1);
        }
        for map in [&mut beside, &mut others, &mut apart] {
            let before = map.clone();
            map.join_parts();
            assert_eq!(*map, before);
        }
    }

    #[test]
    fn a_zones_first_track_has_the_sectors_of_its_zone() {
        let mut map = map(&[
            (586, 586, skew(0)),
            (580, 586, skew(1)),
            (580, 580, skew(2)),
            (570, 580, skew(3)),
            (580, 580, skew(4)),
        ]);
        map.join_parts();
        let joined = [(586, 586), (580, 580), (580, 580), (570, 580), (580, 580)];
        assert_eq!(tracks(&map), joined);
    }
}
