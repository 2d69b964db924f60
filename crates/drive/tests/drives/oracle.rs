//! The naive way to cut an extent into runs: block by block.

use block::{Extent, Lba, Sectors};
use drive::geometry::{BlockPosition, Geometry, TrackExtent};

/// The runs of an extent by locating every block.
pub fn runs(geometry: &Geometry, extent: Extent) -> Vec<TrackExtent> {
    let mut runs: Vec<(TrackExtent, BlockPosition, BlockPosition)> = Vec::new();
    for lba in extent.start().0..extent.end().0.min(geometry.sectors().0) {
        let place = geometry.locate(Lba(lba)).expect("a block of the drive");
        match runs.last_mut() {
            Some((run, _, last))
                if last.cylinder == place.cylinder
                    && last.head == place.head
                    && last.sector < place.sector =>
            {
                run.blocks += 1;
                *last = place;
            }
            _ => runs.push((
                TrackExtent {
                    first: Lba(lba),
                    blocks: 1,
                    cylinder: place.cylinder,
                    head: place.head,
                    start: place.angle,
                    sweep: place.width,
                    width: place.width,
                },
                place,
                place,
            )),
        }
    }
    runs.into_iter()
        .map(|(run, first, last)| TrackExtent {
            sweep: match last.sector - first.sector + 1 {
                all if all == first.sectors_per_track => drive::Angle::from_raw(u64::MAX),
                part => run.width.times(u64::from(part)),
            },
            ..run
        })
        .collect()
}

/// Checks everything that holds around a block: its place and back, its track, runs from it on.
pub fn check_block(geometry: &Geometry, lba: u64, length: u64) {
    let blocks = geometry.sectors().0;
    let Some(place) = geometry.locate(Lba(lba)) else {
        assert!(lba >= blocks, "block {lba} has no place");
        return;
    };
    assert!(lba < blocks, "block {lba} is past the end");
    assert!(place.cylinder < geometry.cylinders());
    assert!(place.head < geometry.surfaces());
    assert!(place.sector < place.sectors_per_track);
    assert_eq!(
        geometry.lba_at(place.cylinder, place.head, place.sector),
        Some(Lba(lba)),
        "the inverse of block {lba} at {place:?}"
    );
    let track = geometry.track_of(Lba(lba)).expect("a block of the drive");
    assert!(
        track.first.0 <= lba && lba <= track.last.0,
        "{lba}: {track:?}"
    );
    assert_eq!(
        geometry.track_at(place.cylinder, place.head),
        Some(track),
        "the track of block {lba}"
    );
    let angle = track.start + track.width.times(u64::from(place.sector));
    assert_eq!(angle, place.angle, "the angle of block {lba}");
    for edge in [track.first, track.last] {
        let at = geometry.locate(edge).expect("a block of the track");
        assert_eq!((at.cylinder, at.head), (place.cylinder, place.head));
    }
    for beyond in [track.first.0.wrapping_sub(1), track.last.0 + 1] {
        if let Some(at) = geometry.locate(Lba(beyond)) {
            assert_ne!((at.cylinder, at.head), (place.cylinder, place.head));
        }
    }
    let extent = Extent::new(Lba(lba), Sectors(length)).expect("an extent");
    let ours: Vec<TrackExtent> = geometry.runs(extent).collect();
    assert_eq!(ours, runs(geometry, extent), "runs of {extent}");
}
