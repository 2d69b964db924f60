//! How well a layout fits times that were not used to find it.

use block::Lba;
use drive::Geometry;

use super::track_timer::{EQUAL, TrackTimer};
use crate::confidence::Confidence;
use crate::findings::{FoundTrack, TrackLayout};

/// Short distances that are checked, in cylinders: the shortest ones, which a wrong number of
/// surfaces changes most, and longer ones, at which the arm comes back if it is a serpentine that
/// was not recognised.
const SHORT: [u32; 6] = [0, 1, 2, 24, 300, 900];

/// The same on a drive of one surface, which is also what is believed if no pattern fits: if there are
/// more surfaces, some pairs of tracks at such a distance are on one cylinder, and others are not.
const ALONE: [u32; 10] = [1, 2, 3, 4, 5, 6, 9, 24, 300, 900];

/// Long distances, in parts of the drive, which rows that were counted wrong change, and blocks of
/// another arm.
const LONG: [u32; 6] = [32, 16, 8, 5, 3, 2];

/// Times of each distance whose middle is what the others are compared with. A choice.
const REFERENCES: usize = 3;

/// How many others.
const CHECKS: usize = 4;

/// How many pairs are tried for each that is wanted: the map may not know the other track.
const TRIES: usize = 40;

/// Compares times between tracks that the layout puts at equal distances, at different places. The
/// answer is of short or of long distances: of those that came true less often.
pub(super) async fn check(
    timer: &TrackTimer<'_>,
    layout: &TrackLayout,
    geometry: &Geometry,
) -> Confidence {
    let cylinders = layout.description.cylinders;
    let short = match layout.pattern.surfaces {
        1 => &ALONE[..],
        _ => &SHORT,
    };
    let short: Vec<u32> = short.iter().copied().filter(|d| *d < cylinders).collect();
    let distances = short
        .iter()
        .copied()
        .chain(LONG.map(|parts| cylinders / parts));
    let mut step = 0;
    let pairs: Vec<_> = distances
        .map(|distance| pairs(timer, layout, geometry, distance, &mut step))
        .collect();
    // All of them together: without cache control they evict each other's blocks.
    let mut times = timer.careful().times(&pairs.concat()).await.into_iter();
    let mut all = pairs.iter().map(|pairs| {
        let times = times.by_ref().take(pairs.len());
        // Answers that contradict each other are no time at all.
        fitting(times.map(|time| time.unwrap_or(f64::INFINITY)).collect())
    });
    let (mut came_true, mut checks) = (0, 0);
    for fits in all.by_ref().take(short.len()) {
        came_true += fits.came_true;
        checks += fits.checks;
    }
    let short = Confidence::of(came_true, checks);
    (came_true, checks) = (0, 0);
    let mut longest = 0.0;
    for fits in all {
        // The arm does not take less for a longer track_timer.
        if fits.middle > longest - EQUAL {
            came_true += fits.came_true;
            longest = fits.middle.max(longest);
        }
        checks += fits.checks;
    }
    match checks {
        0 => short,
        _ => short.min(Confidence::of(came_true, checks)),
    }
}

/// How many of some times fit the first ones.
#[derive(Clone, Copy, Debug, Default)]
struct Fits {
    came_true: u32,
    checks: u32,
    /// The middle of the first ones.
    middle: f64,
}

fn fitting(mut times: Vec<f64>) -> Fits {
    if times.len() <= REFERENCES {
        return Fits::default();
    }
    let (references, others) = times.split_at_mut(REFERENCES);
    references.sort_by(f64::total_cmp);
    let middle = references[REFERENCES / 2];
    let fits = others.iter().filter(|time| (*time - middle).abs() < EQUAL);
    Fits {
        came_true: fits.count() as u32,
        checks: others.len() as u32,
        middle,
    }
}

/// Pairs of tracks at a distance, at different places.
fn pairs(
    timer: &TrackTimer<'_>,
    layout: &TrackLayout,
    geometry: &Geometry,
    distance: u32,
    step: &mut u64,
) -> Vec<(FoundTrack, FoundTrack)> {
    let mut pairs = Vec::new();
    for _ in 0..TRIES * (REFERENCES + CHECKS) {
        if pairs.len() == REFERENCES + CHECKS {
            break;
        }
        *step += 1;
        pairs.extend(pair(timer, layout, geometry, distance, *step));
    }
    pairs
}

/// Two tracks on the map at a distance, the `step`th such pair.
fn pair(
    timer: &TrackTimer<'_>,
    layout: &TrackLayout,
    geometry: &Geometry,
    distance: u32,
    step: u64,
) -> Option<(FoundTrack, FoundTrack)> {
    let spread = |of: u64, salt: u64| {
        // The finalizer of splitmix64 (Vigna).
        let mut far = (step * 4 + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        far = (far ^ (far >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        far = (far ^ (far >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        far ^= far >> 31;
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
    let tracks = |lba| timer.prober.findings(|found| found.map.track_of(lba));
    let (from, to) = (tracks(from)?, tracks(there.first)?);
    Some((from, to))
}
