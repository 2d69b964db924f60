//! The home track of a block number, which holds for remapped blocks too; and the densest track of
//! a drive.

use block::Lba;
use drive::Geometry;
use drive::geometry::Track;

/// The track whose first to last block contain `lba`; `None` past the end of the drive.
///
/// It is the track of the block's sector, unless the block was remapped.
pub(super) fn home(geometry: &Geometry, lba: Lba) -> Option<Track> {
    if lba.0 >= geometry.sectors().0 {
        return None;
    }
    regular(geometry, lba).or_else(|| home_of_moved(geometry, lba))
}

/// The most sectors of a track of the drive, by its table of zones.
pub(super) fn densest(geometry: &Geometry) -> u32 {
    let zones = geometry.zones().into_iter();
    let tracks = zones.filter_map(|zone| home(geometry, zone.first));
    tracks.map(|track| track.sectors).max().unwrap_or(1)
}

/// The track of a block that was not remapped.
fn regular(geometry: &Geometry, lba: Lba) -> Option<Track> {
    let track = geometry.track_of(lba)?;
    if lba < track.first || lba > track.last {
        return None;
    }
    // A spare track that has only remapped blocks returns the one block.
    let lone = track.first == track.last;
    if lone && geometry.track_at(track.cylinder, track.head) != Some(track) {
        return None;
    }
    Some(track)
}

/// Searches between the nearest blocks below and above that were not remapped, which are mostly on
/// the same track. Remapped blocks are rare.
fn home_of_moved(geometry: &Geometry, lba: Lba) -> Option<Track> {
    let holds = |track: &Track| track.first <= lba && lba <= track.last;
    let below = (0..lba.0)
        .rev()
        .find_map(|block| regular(geometry, Lba(block)));
    let above = (lba.0 + 1..geometry.sectors().0).find_map(|block| regular(geometry, Lba(block)));
    if let Some(track) = [below, above].into_iter().flatten().find(holds) {
        return Some(track);
    }
    // All blocks of its track were remapped.
    let near = |track: Option<Track>, end| track.map_or(end, |track: Track| track.cylinder);
    let (a, b) = (near(below, 0), near(above, geometry.cylinders() - 1));
    let between = a.min(b)..=a.max(b);
    let mut everywhere = between.chain(0..geometry.cylinders());
    everywhere.find_map(|cylinder| {
        let mut heads = 0..geometry.surfaces();
        heads.find_map(|head| geometry.track_at(cylinder, head).filter(holds))
    })
}
