//! The tracks whose positions were measured: free reads go to no others.
//!
//! A guessed track has another angle than believed, so that a read there takes any time up to a
//! revolution, and the request behind it is late.

use std::ops::Range;
use std::sync::Arc;

use block::{Extent, Sectors};
use drive::{Certainty, Position, Profile};

/// The measured tracks of a drive, one bit each; none are stored if all were measured.
#[derive(Clone, Debug)]
pub(super) struct KnownTracks {
    surfaces: u32,
    bits: Option<Arc<[u64]>>,
}

impl KnownTracks {
    pub fn new(profile: &Profile) -> Self {
        let surfaces = profile.geometry.surfaces();
        let known = profile.confidence.as_ref().map(|c| c.known());
        let all = Extent::new(block::Lba(0), profile.geometry.sectors());
        let is_whole = all.is_ok_and(|all| profile.certainty(all) == Certainty::Known);
        KnownTracks {
            surfaces,
            bits: known
                .filter(|_| !is_whole)
                .map(|known| bits(profile, known)),
        }
    }

    /// Whether all tracks were measured.
    #[inline]
    pub fn are_all(&self) -> bool {
        self.bits.is_none()
    }

    /// Whether a track was measured.
    #[inline]
    pub fn has(&self, place: Position) -> bool {
        self.bits.as_ref().is_none_or(|bits| {
            let track = index(self.surfaces, place);
            bits[track / 64] >> (track % 64) & 1 == 1
        })
    }

    /// The heads of a cylinder up to that of its `most`-th measured track, and how many of their tracks were
    /// measured.
    #[inline]
    pub fn heads(&self, cylinder: u32, most: u32) -> (Range<u32>, u32) {
        if self.bits.is_none() {
            let heads = self.surfaces.min(most);
            return (0..heads, heads);
        }
        let mut measured = 0;
        let mut end = 0;
        while end < self.surfaces && measured < most {
            let place = Position {
                cylinder,
                head: end,
            };
            measured += u32::from(self.has(place));
            end += 1;
        }
        (0..end, measured)
    }

    /// Whether a track of a cylinder was measured.
    #[inline]
    pub fn has_any_on(&self, cylinder: u32) -> bool {
        self.bits.is_none() || (0..self.surfaces).any(|head| self.has(Position { cylinder, head }))
    }
}

fn index(surfaces: u32, place: Position) -> usize {
    place.cylinder as usize * surfaces as usize + place.head as usize
}

/// The tracks that lie wholly in the known blocks.
fn bits(profile: &Profile, known: &[Extent]) -> Arc<[u64]> {
    let geometry = &profile.geometry;
    let tracks = geometry.surfaces() as usize * geometry.cylinders() as usize;
    let mut bits = vec![0_u64; tracks.div_ceil(64)];
    for extent in known {
        let mut next = extent.start();
        while next < extent.end() {
            let Some(track) = geometry.track_of(next) else {
                break;
            };
            let length = Sectors(track.last.0 - track.first.0 + 1);
            let whole = Extent::new(track.first, length);
            if whole.is_ok_and(|whole| profile.certainty(whole) == Certainty::Known) {
                let place = Position {
                    cylinder: track.cylinder,
                    head: track.head,
                };
                let index = index(geometry.surfaces(), place);
                bits[index / 64] |= 1 << (index % 64);
            }
            next = block::Lba(track.last.0.max(next.0) + 1);
        }
    }
    bits.into()
}
