//! Serpentines of surfaces that differ in density, with rows of odd lengths and slipped tracks.
//!
//! ```text
//!   row       |== surface 0 ==>|<= surface 1 ==|== surface 2 ==>|  next row, some cylinders on
//!   usually   100 tracks each; one row in some has more or fewer
//!   slipped   a track that holds no blocks
//! ```

use drive::Angle;
use drive::geometry::indexed::{Description, GroupDescription, GroupRun, TrackRun};

use crate::dice::SplitMix;

/// Between two rows of odd lengths. A choice.
const REGULAR_ROWS: (u64, u64) = (5, 30);

/// Slipped tracks of a zone. A choice: a drive of some zones has a few dozen.
const SLIPPED_TRACKS: (u64, u64) = (1, 8);

/// The tracks of a zone.
struct ZoneTracks {
    /// Sectors of a track of each surface.
    sectors: Vec<u32>,
    /// From track to track, and in addition from surface to surface.
    skew: Angle,
    hop: Angle,
}

impl ZoneTracks {
    /// A row of so many tracks on each surface, and the angle from its beginning to the next one's.
    fn row(&self, band: u32) -> (GroupDescription, Angle) {
        let mut start = Angle::ZERO;
        let mut tracks = Vec::new();
        for (head, &sectors) in self.sectors.iter().enumerate() {
            let is_back = head % 2 == 1;
            tracks.push(TrackRun {
                cylinder: if is_back { band - 1 } else { 0 },
                head: head as u32,
                sectors,
                start,
                tracks: if is_back { -(band as i32) } else { band as i32 },
                step: self.skew,
                blocks: sectors,
            });
            start = start + self.skew.times(u64::from(band)) + self.hop;
        }
        (GroupDescription::Tracks(tracks), start)
    }

    /// The places of such a row.
    fn places(&self, band: u32) -> u64 {
        let of_cylinder: u64 = self.sectors.iter().map(|&sectors| u64::from(sectors)).sum();
        of_cylinder * u64::from(band)
    }

    /// The first place of a random track of such a row, and its sectors.
    fn track(&self, band: u32, dice: &mut SplitMix) -> (u64, u32) {
        let surface = dice.below(self.sectors.len() as u64) as usize;
        let before: u64 = self.sectors[..surface]
            .iter()
            .map(|&sectors| u64::from(sectors))
            .sum();
        let sectors = self.sectors[surface];
        let track = dice.below(u64::from(band));
        (
            before * u64::from(band) + track * u64::from(sectors),
            sectors,
        )
    }
}

/// 3 to 8 zones of serpentines of 16 to 200 cylinders. Densities differ by up to 8 %. The ranges are
/// choices, after the layouts of ../shared/drives.
pub(super) fn layout(dice: &mut SplitMix, surfaces: u32) -> Description {
    // In thousandths of the densest.
    let densities: Vec<u64> = (0..surfaces).map(|_| dice.between(920, 1_000)).collect();
    let mut densest = dice.between(400, 900);
    let mut description = Description {
        surfaces,
        ..Description::default()
    };
    let (mut rows, mut start) = (Vec::new(), Angle::ZERO);
    for _ in 0..dice.between(3, 8) {
        let sectors = densities
            .iter()
            .map(|density| (densest * density / 1_000) as u32);
        let zone = ZoneTracks {
            sectors: sectors.collect(),
            skew: Angle::fraction(dice.between(30, 250), 1_000),
            hop: Angle::fraction(dice.between(0, 150), 1_000),
        };
        let (before, rows_before) = (description.blocks, rows.len());
        for (band, repeats) in bands(dice) {
            let (row, step) = zone.row(band);
            rows.push(GroupRun {
                group: description.groups.len() as u32,
                cylinder: description.cylinders,
                start,
                repeats,
                cylinders: band,
                step,
            });
            description.groups.push(row);
            description.cylinders += band * repeats;
            description.blocks += zone.places(band) * u64::from(repeats);
            start = start + step.times(u64::from(repeats));
        }
        let slips = slipped(dice, &zone, before, &rows[rows_before..]);
        description.slips.extend(slips);
        densest = densest * dice.between(80, 95) / 100;
    }
    description.groups.push(GroupDescription::Groups(rows));
    let slipped = description.slips.iter().map(|slip| u64::from(slip.1));
    description.blocks -= slipped.sum::<u64>();
    description
}

/// The rows of a zone: cylinders, and how many follow each other.
fn bands(dice: &mut SplitMix) -> Vec<(u32, u32)> {
    let usual = dice.between(16, 200) as u32;
    let cylinders = dice.between(1_000, 3_000) as u32;
    let (mut bands, mut passed) = (Vec::new(), 0);
    while passed < cylinders {
        let repeats = dice.between(REGULAR_ROWS.0, REGULAR_ROWS.1) as u32;
        let repeats = repeats.min((cylinders - passed) / usual + 1);
        let odd = dice.between(u64::from(usual) / 2, u64::from(usual) * 3 / 2) as u32;
        bands.extend([(usual, repeats), (odd.max(1), 1)]);
        passed += usual * repeats + odd;
    }
    bands
}

/// The slipped tracks of a zone that has these rows and whose places begin with `first`: their first
/// places, and their sectors.
fn slipped(
    dice: &mut SplitMix,
    zone: &ZoneTracks,
    first: u64,
    rows: &[GroupRun],
) -> Vec<(u64, u32)> {
    let mut slips = Vec::new();
    for _ in 0..dice.between(SLIPPED_TRACKS.0, SLIPPED_TRACKS.1) {
        let chosen = dice.below(rows.len() as u64) as usize;
        let before = rows[..chosen].iter();
        let before = before.map(|row| zone.places(row.cylinders) * u64::from(row.repeats));
        let row = &rows[chosen];
        let repeat = dice.below(u64::from(row.repeats));
        let (track, sectors) = zone.track(row.cylinders, dice);
        let row_first = first + before.sum::<u64>() + repeat * zone.places(row.cylinders);
        slips.push((row_first + track, sectors));
    }
    slips.sort_unstable();
    slips.dedup();
    slips
}
