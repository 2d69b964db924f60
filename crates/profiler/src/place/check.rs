//! How well a layout fits times that were not used to find it.

use block::Lba;
use drive::Geometry;

use super::Layout;
use super::way::{EQUAL, Ways};
use crate::confidence::Confidence;
use crate::map::FoundTrack;

/// Distances that are checked, in cylinders: the shortest ones, which a wrong number of surfaces
/// changes most, and longer ones, at which the arm comes back if it is a serpentine that was not
/// recognised.
const DISTANCES: [u32; 6] = [0, 1, 2, 24, 300, 900];

/// Times of each distance whose middle is what the others are compared with. A choice.
const REFERENCES: usize = 3;

/// How many others.
const CHECKS: usize = 4;

/// Compares times between tracks that the layout puts at equal distances.
pub(super) async fn check(ways: &Ways<'_>, layout: &Layout, geometry: &Geometry) -> Confidence {
    let (mut came_true, mut checks) = (0, 0);
    let mut step = 0;
    for distance in DISTANCES {
        let single = distance == 0 && layout.pattern.surfaces == 1;
        if single || distance >= layout.description.cylinders {
            continue;
        }
        let mut times: Vec<f64> = Vec::new();
        for _ in 0..3 * (REFERENCES + CHECKS) {
            if times.len() == REFERENCES + CHECKS {
                break;
            }
            step += 1;
            let Some((from, to)) = pair(ways, layout, geometry, distance, step) else {
                continue;
            };
            times.extend(ways.time(&from, &to).await);
        }
        if times.len() <= REFERENCES {
            continue;
        }
        let (references, others) = times.split_at_mut(REFERENCES);
        references.sort_by(f64::total_cmp);
        let middle = references[REFERENCES / 2];
        checks += others.len() as u32;
        let fits = others.iter().filter(|time| (*time - middle).abs() < EQUAL);
        came_true += fits.count() as u32;
    }
    Confidence::of(came_true, checks)
}

/// Two tracks on the map at a distance, the `step`th such pair.
fn pair(
    ways: &Ways<'_>,
    layout: &Layout,
    geometry: &Geometry,
    distance: u32,
    step: u64,
) -> Option<(FoundTrack, FoundTrack)> {
    let spread = |of: u64, salt: u64| {
        let far = (step * 4 + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((u128::from(far) * u128::from(of)) >> 64) as u64
    };
    let extent = layout
        .known
        .get(spread(layout.known.len() as u64, 1) as usize)?;
    let from = Lba(extent.start().0 + spread(extent.length().0, 2));
    let place = geometry.locate(from)?;
    let heads = u64::from(geometry.surfaces());
    let mut head = spread(heads, 3) as u32;
    if distance == 0 && head == place.head {
        head = (head + 1) % geometry.surfaces();
    }
    let there = geometry.track_at(place.cylinder + distance, head)?;
    let tracks = |lba| ways.prober.findings(|found| found.map.track_of(lba));
    let (from, to) = (tracks(from)?, tracks(there.first)?);
    Some((from, to))
}
