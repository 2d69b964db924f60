//! The map: known tracks in block order.

use block::Lba;
use drive::Angle;

use crate::clock::PlatterClock;
use crate::sighting::Sighting;

/// The known tracks in block order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrackMap {
    /// Ascending and disjoint; the blocks between them are unknown.
    pub pieces: Vec<MapPiece>,
    /// Sectors inside tracks that hold no block, ascending. The angles of pieces ignore them.
    pub slips: Vec<Slip>,
    /// Blocks that are not where the pieces say, ascending.
    pub elsewhere: Vec<Elsewhere>,
}

/// A repeated pattern of tracks.
#[derive(Clone, Debug, PartialEq)]
pub struct MapPiece {
    /// The first block.
    pub first: Lba,
    /// The angle at which it begins.
    pub angle: Angle,
    /// The repeated pattern, never empty.
    pub cycle: Vec<Band>,
    /// Number of repetitions.
    pub repeats: u32,
    /// Angle between the beginnings of consecutive repetitions.
    pub step: Angle,
}

/// Consecutive tracks of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// Number of tracks.
    pub tracks: u32,
    /// Blocks per track.
    pub blocks: u32,
    /// Sectors per revolution, at least as many as blocks.
    pub sectors: u32,
    /// Angle from the beginning of the cycle to that of the band's first track.
    pub start: Angle,
    /// Angle between the beginnings of consecutive tracks of the band.
    pub skew: Angle,
}

/// Sectors in a track that hold no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slip {
    /// The next block after them on the same track.
    pub before: Lba,
    /// Number of sectors.
    pub sectors: u32,
}

/// A range of remapped blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The first block.
    pub first: Lba,
    /// Number of blocks.
    pub blocks: u32,
}

/// One track of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundTrack {
    /// The index of its piece.
    pub piece: usize,
    /// Its index in the piece, from 0.
    pub ordinal: u64,
    /// The first block.
    pub first: Lba,
    /// Number of blocks.
    pub blocks: u32,
    /// Sectors per revolution.
    pub sectors: u32,
    /// The angle at which the first block begins.
    pub start: Angle,
}

impl MapPiece {
    /// Blocks per repetition.
    pub fn cycle_blocks(&self) -> u64 {
        let blocks = |band: &Band| u64::from(band.tracks) * u64::from(band.blocks);
        self.cycle.iter().map(blocks).sum()
    }

    /// Tracks per repetition.
    pub fn cycle_tracks(&self) -> u64 {
        self.cycle.iter().map(|band| u64::from(band.tracks)).sum()
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.cycle_blocks() * u64::from(self.repeats)
    }

    /// Number of tracks.
    pub fn tracks(&self) -> u64 {
        self.cycle_tracks() * u64::from(self.repeats)
    }

    /// The block after the last one.
    pub fn end(&self) -> Lba {
        Lba(self.first.0 + self.blocks())
    }
}

impl TrackMap {
    /// The track of a block, if it is known.
    pub fn track_of(&self, lba: Lba) -> Option<FoundTrack> {
        let (index, piece) = self.piece_of(lba)?;
        let cycle = piece.cycle_blocks();
        let (round, mut rest) = (
            (lba.0 - piece.first.0) / cycle,
            (lba.0 - piece.first.0) % cycle,
        );
        let base = piece.angle + piece.step.times(round);
        let mut first = piece.first.0 + round * cycle;
        let mut ordinal = round * piece.cycle_tracks();
        for band in &piece.cycle {
            let blocks = u64::from(band.tracks) * u64::from(band.blocks);
            if rest < blocks {
                let track = rest / u64::from(band.blocks);
                return Some(FoundTrack {
                    piece: index,
                    ordinal: ordinal + track,
                    first: Lba(first + track * u64::from(band.blocks)),
                    blocks: band.blocks,
                    sectors: band.sectors,
                    start: base + band.start + band.skew.times(track),
                });
            }
            rest -= blocks;
            first += blocks;
            ordinal += u64::from(band.tracks);
        }
        None
    }

    /// The next track, if it is known.
    pub fn after(&self, track: &FoundTrack) -> Option<FoundTrack> {
        self.track_of(Lba(track.first.0 + u64::from(track.blocks)))
    }

    /// The previous track, if it is known.
    pub fn before(&self, track: &FoundTrack) -> Option<FoundTrack> {
        self.track_of(Lba(track.first.0.checked_sub(1)?))
    }

    /// The angle at which a block begins, if its track is known and it was not remapped.
    pub fn angle_of(&self, lba: Lba) -> Option<Angle> {
        if self.is_elsewhere(lba) {
            return None;
        }
        let track = self.track_of(lba)?;
        let sector = (lba.0 - track.first.0) + u64::from(self.slipped_before(&track, lba));
        Some(track.start + Angle::fraction(1, u64::from(track.sectors)).times(sector))
    }

    /// The angle at which a one-block read ends: the end of the block's sector, if it is known.
    pub fn end_angle_of(&self, lba: Lba) -> Option<Angle> {
        let track = self.track_of(lba)?;
        let width = Angle::fraction(1, u64::from(track.sectors));
        Some(self.angle_of(lba)? + width)
    }

    /// Number of sectors of a track before a block that hold no block.
    fn slipped_before(&self, track: &FoundTrack, lba: Lba) -> u32 {
        let from = self.slips.partition_point(|slip| slip.before < track.first);
        let slips = self.slips[from..].iter();
        slips
            .take_while(|slip| slip.before <= lba)
            .map(|slip| slip.sectors)
            .sum()
    }

    /// Whether a block was remapped.
    pub fn is_elsewhere(&self, lba: Lba) -> bool {
        let after = self.elsewhere.partition_point(|moved| moved.first <= lba);
        let moved = after.checked_sub(1).map(|index| self.elsewhere[index]);
        moved.is_some_and(|moved| lba.0 < moved.first.0 + u64::from(moved.blocks))
    }

    /// Number of blocks on known tracks.
    pub fn known(&self) -> u64 {
        self.pieces.iter().map(MapPiece::blocks).sum()
    }

    /// The known block with so many known blocks before it.
    pub fn known_block(&self, mut place: u64) -> Option<Lba> {
        for piece in &self.pieces {
            if place < piece.blocks() {
                return Some(Lba(piece.first.0 + place));
            }
            place -= piece.blocks();
        }
        None
    }

    /// The first block from `lba` on whose track is unknown.
    pub fn unknown_from(&self, lba: Lba) -> Lba {
        let mut at = lba;
        while let Some((_, piece)) = self.piece_of(at) {
            at = piece.end();
        }
        at
    }

    pub(crate) fn piece_of(&self, lba: Lba) -> Option<(usize, &MapPiece)> {
        let after = self.pieces.partition_point(|piece| piece.first <= lba);
        let index = after.checked_sub(1)?;
        let piece = &self.pieces[index];
        (lba < piece.end()).then_some((index, piece))
    }

    /// Corrects the clock with the sighting of a known block. Returns the previous error in
    /// revolutions.
    pub fn anchor(&self, clock: &mut PlatterClock, sighting: &Sighting) -> Option<f64> {
        let angle = self.end_angle_of(sighting.lba)?;
        Some(clock.anchor(angle, sighting.at))
    }
}
