//! How well a layout fits times that were not used to find it, and whether seeks that were measured before fit it.

use block::{Duration, Lba};
use drive::Geometry;
use drive::seek::SeekTable;

use super::track_timer::{EQUAL, TrackTimer};
use crate::confidence::Confidence;
use crate::findings::{FoundTrack, NEAR_NANOS, TrackLayout};

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

/// What the times between tracks say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Checked {
    /// Of short or of long distances: of those that came true less often.
    pub layout: Confidence,
    /// The seeks that were measured before, if some distance takes longer or less.
    pub seeks: Option<Confidence>,
}

/// Compares times between tracks that the layout puts at equal distances, at different places, and with the table of seeks
/// if there is one.
pub(super) async fn check(
    timer: &TrackTimer<'_>,
    layout: &TrackLayout,
    geometry: &Geometry,
) -> Checked {
    let cylinders = layout.description.cylinders;
    let short = match layout.pattern.surfaces {
        1 => &ALONE[..],
        _ => &SHORT,
    };
    let short: Vec<u32> = short.iter().copied().filter(|d| *d < cylinders).collect();
    let long = LONG.map(|parts| cylinders / parts);
    let distances = [&short[..], &long].concat();
    let mut step = 0;
    let pairs: Vec<_> = distances
        .iter()
        .map(|&distance| pairs(timer, layout, geometry, distance, &mut step))
        .collect();
    let seeks = Seeks::measured(timer, cylinders);
    let others = match seeks {
        Some(_) => any_pairs(timer, layout, geometry),
        None => Vec::new(),
    };
    let between = others.iter().map(|pair| pair.between);
    let all: Vec<_> = pairs.iter().flatten().copied().chain(between).collect();
    // All of them together: without cache control they evict each other's blocks.
    let mut times = timer.careful().times(&all).await.into_iter();
    let all: Vec<Fits> = pairs
        .iter()
        .map(|pairs| {
            let times = times.by_ref().take(pairs.len());
            // Answers that contradict each other are no time at all.
            fitting(times.map(|time| time.unwrap_or(f64::INFINITY)).collect())
        })
        .collect();
    // The middle of each distance, and each of the other pairs.
    let middles = distances.iter().zip(&all);
    let middles = middles.filter(|(distance, fits)| **distance > 0 && fits.checks > 0);
    let middles = middles.map(|(distance, fits)| (*distance, Some(fits.middle)));
    let others = others
        .iter()
        .zip(times)
        .map(|(pair, time)| (pair.distance, time));
    Checked {
        layout: of_layout(&all, short.len()),
        seeks: seeks.and_then(|seeks| seeks.confidence(middles.chain(others))),
    }
}

/// The confidence in a layout whose first so many distances are short.
fn of_layout(all: &[Fits], short: usize) -> Confidence {
    let mut all = all.iter();
    let (mut came_true, mut checks) = (0, 0);
    for fits in all.by_ref().take(short) {
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

/// The seeks that were measured before.
struct Seeks {
    overhead: Duration,
    table: SeekTable,
}

impl Seeks {
    fn measured(timer: &TrackTimer<'_>, cylinders: u32) -> Option<Self> {
        timer.prober.findings(|findings| {
            let arm = findings.arm.as_ref()?;
            Some(Seeks {
                overhead: arm.overhead,
                table: arm.read_table(cylinders).ok()?,
            })
        })
    }

    /// The confidence in them by distances and the times that these take, where they were told; `None` if all are as predicted.
    fn confidence(&self, times: impl Iterator<Item = (u32, Option<f64>)>) -> Option<Confidence> {
        let (mut came_true, mut checks) = (0, 0);
        for (distance, time) in times {
            let Some(time) = time else { continue };
            let predicted = (self.overhead + self.table.time(distance)).as_nanos() as f64 / 1e6;
            checks += 1;
            came_true += u32::from((time - predicted).abs() < AS_PREDICTED);
        }
        (came_true < checks).then(|| Confidence::of(came_true, checks))
    }
}

/// Times are as predicted if they are not farther off, in milliseconds: by the permitted error of a table, and of a
/// difference of two times.
const AS_PREDICTED: f64 = NEAR_NANOS as f64 / 1e6 + EQUAL;

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

/// Two tracks of the map, and the cylinders between them.
struct TrackPair {
    distance: u32,
    between: (FoundTrack, FoundTrack),
}

/// Pairs of any two tracks of the map. Where the map is small, few are at a given distance.
fn any_pairs(timer: &TrackTimer<'_>, layout: &TrackLayout, geometry: &Geometry) -> Vec<TrackPair> {
    let track = |number: u64| {
        let lba = layout.known_block(mixed(number, layout.known_blocks()))?;
        let track = timer.prober.findings(|found| found.map.track_of(lba))?;
        Some((track, geometry.locate(lba)?.cylinder))
    };
    let others = (0..ANY).filter_map(|number| {
        let ((from, left), (to, reached)) = (track(2 * number)?, track(2 * number + 1)?);
        let distance = left.abs_diff(reached);
        let between = (from, to);
        (distance > 0).then_some(TrackPair { distance, between })
    });
    others.collect()
}

/// How many such pairs. A choice: a tenth of all that is measured.
const ANY: u64 = 8;

/// A number below `below`, the `number`th by chance: the finalizer of splitmix64 (Vigna).
fn mixed(number: u64, below: u64) -> u64 {
    let mut far = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    far = (far ^ (far >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    far = (far ^ (far >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    far ^= far >> 31;
    ((u128::from(far) * u128::from(below)) >> 64) as u64
}

/// Two tracks on the map at a distance, the `step`th such pair.
fn pair(
    timer: &TrackTimer<'_>,
    layout: &TrackLayout,
    geometry: &Geometry,
    distance: u32,
    step: u64,
) -> Option<(FoundTrack, FoundTrack)> {
    let spread = |of: u64, salt: u64| mixed(step * 4 + salt, of);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeks_are_doubted_by_each_time_that_is_not_as_predicted() {
        let points = vec![
            (1, Duration::from_millis(1)),
            (1_000, Duration::from_millis(9)),
        ];
        let seeks = Seeks {
            overhead: Duration::from_micros(500),
            table: SeekTable::new(points, 2_000).expect("a table"),
        };
        let times = |longer: f64| [(1, Some(1.5)), (1_000, Some(9.5 + longer)), (500, None)];
        assert_eq!(seeks.confidence(times(0.2).into_iter()), None);
        let one = Some(Confidence::of(1, 2));
        assert_eq!(seeks.confidence(times(0.3).into_iter()), one);
        assert_eq!(seeks.confidence(times(-0.3).into_iter()), one);
        assert_eq!(seeks.confidence(std::iter::empty()), None);
    }
}
