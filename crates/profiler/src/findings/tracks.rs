//! Tracks in the order of their blocks, as far as the map goes.

use block::Lba;
use drive::Angle;

use crate::clock::PlatterClock;
use crate::sighting::Sighting;

/// Tracks in the order of their blocks, as far as they were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrackMap {
    /// Ascending, not overlapping. Between them nothing is known.
    pub pieces: Vec<MapPiece>,
    /// Sectors inside tracks that hold no block, ascending. The pieces' angles are without them.
    pub slips: Vec<Slip>,
    /// Blocks that are not where the pieces say, ascending.
    pub elsewhere: Vec<Elsewhere>,
}

/// A pattern of tracks, repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct MapPiece {
    /// Its first block.
    pub first: Lba,
    /// Where that begins.
    pub angle: Angle,
    /// What is repeated, never empty.
    pub cycle: Vec<Band>,
    /// How many times.
    pub repeats: u32,
    /// From where a repetition begins to where the next does.
    pub step: Angle,
}

/// Neighbouring tracks that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// How many.
    pub tracks: u32,
    /// Blocks on each of them.
    pub blocks: u32,
    /// Sectors on a whole turn: not fewer.
    pub sectors: u32,
    /// From where the cycle begins to where the band's first track does.
    pub start: Angle,
    /// From where a track of the band begins to where the next one of the band does.
    pub skew: Angle,
}

/// Sectors in a track that hold no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slip {
    /// The block after them, on the same track.
    pub before: Lba,
    /// How many.
    pub sectors: u32,
}

/// Blocks that were remapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The first of them.
    pub first: Lba,
    /// How many.
    pub blocks: u32,
}

/// One track of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundTrack {
    /// Which piece it is of.
    pub piece: usize,
    /// Its number in the piece, from 0.
    pub ordinal: u64,
    /// The first block.
    pub first: Lba,
    /// Blocks.
    pub blocks: u32,
    /// Sectors on a whole turn.
    pub sectors: u32,
    /// Where the first block begins.
    pub start: Angle,
}

impl MapPiece {
    /// Blocks in one repetition.
    pub fn cycle_blocks(&self) -> u64 {
        let blocks = |band: &Band| u64::from(band.tracks) * u64::from(band.blocks);
        self.cycle.iter().map(blocks).sum()
    }

    /// Tracks in one repetition.
    pub fn cycle_tracks(&self) -> u64 {
        self.cycle.iter().map(|band| u64::from(band.tracks)).sum()
    }

    /// Blocks in all.
    pub fn blocks(&self) -> u64 {
        self.cycle_blocks() * u64::from(self.repeats)
    }

    /// Tracks in all.
    pub fn tracks(&self) -> u64 {
        self.cycle_tracks() * u64::from(self.repeats)
    }

    /// The block after its last.
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

    /// The track after another, if it is known.
    pub fn after(&self, track: &FoundTrack) -> Option<FoundTrack> {
        self.track_of(Lba(track.first.0 + u64::from(track.blocks)))
    }

    /// The track before another, if it is known.
    pub fn before(&self, track: &FoundTrack) -> Option<FoundTrack> {
        self.track_of(Lba(track.first.0.checked_sub(1)?))
    }

    /// Where a block begins, if its track is known and it was not remapped.
    pub fn angle_of(&self, lba: Lba) -> Option<Angle> {
        if self.is_elsewhere(lba) {
            return None;
        }
        let track = self.track_of(lba)?;
        let sector = (lba.0 - track.first.0) + u64::from(self.slipped_before(&track, lba));
        Some(track.start + Angle::fraction(1, u64::from(track.sectors)).times(sector))
    }

    /// Where a one-block read of the block ends, if that is known: the end of its sector.
    pub fn end_angle_of(&self, lba: Lba) -> Option<Angle> {
        let track = self.track_of(lba)?;
        let width = Angle::fraction(1, u64::from(track.sectors));
        Some(self.angle_of(lba)? + width)
    }

    /// How many sectors of a track before a block hold no block.
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

    /// How many blocks are on known tracks.
    pub fn known(&self) -> u64 {
        self.pieces.iter().map(MapPiece::blocks).sum()
    }

    /// The first block from `lba` on whose track is not known.
    pub fn unknown_from(&self, lba: Lba) -> Lba {
        let mut at = lba;
        while let Some((_, piece)) = self.piece_of(at) {
            at = piece.end();
        }
        at
    }

    fn piece_of(&self, lba: Lba) -> Option<(usize, &MapPiece)> {
        let after = self.pieces.partition_point(|piece| piece.first <= lba);
        let index = after.checked_sub(1)?;
        let piece = &self.pieces[index];
        (lba < piece.end()).then_some((index, piece))
    }

    /// A block that the map knows was sighted: the clock is corrected by it. Answers how far off
    /// it was, in revolutions.
    pub fn anchor(&self, clock: &mut PlatterClock, sighting: &Sighting) -> Option<f64> {
        let angle = self.end_angle_of(sighting.lba)?;
        Some(clock.anchor(angle, sighting.at))
    }
}
