//! Cylinders without blocks, spare ones mostly, between two zones: how far the zones are apart
//! shows in the time from one to the other.

use block::{Duration, Lba};
use drive::Geometry;

use super::track_timer::TrackTimer;
use crate::device::Offers;
use crate::findings::{ArmTimings, FoundTrack, Pattern};

/// Cylinders that are left out before a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The first block of the row.
    pub before: Lba,
    /// How many.
    pub cylinders: u32,
}

/// Over so many cylinders across a place, if none is left out, times are measured.
const ACROSS: [u32; 5] = [1, 2, 3, 5, 8];

/// How many cylinders are looked at around a place: no other place is among them.
pub(super) const AROUND: u32 = 8;

/// Over so many within a zone, to compare with. Between them lines are drawn.
const WITHIN: [u32; 22] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 38, 44, 50, 60, 70,
];

/// At most so many cylinders can be left out. A choice: twice as many as in the drives known.
const MOST: u32 = 60;

/// At how many places, at most. A choice: a minute of a slow drive's time.
const PLACES: usize = 64;

/// By how much five times have to fit better with cylinders left out than with none, or worse, to
/// be believed at once, in square milliseconds: a tenth of a millisecond for two of them.
const CLEAR: f64 = 0.02;

/// How often times are taken where they are not clear. A choice.
const ROUNDS: u32 = 4;

/// After so long they are taken once only. A choice.
const LONGEST: Duration = Duration::from_secs(40);

/// By how much they have to fit better then: most zones follow each other without cylinders between
/// them. A choice: that of times off by three hundredths of a millisecond.
const LIKELY: f64 = 0.005;

/// The cylinders that are left out at some places, which are rows' first blocks; `geometry` is
/// without any.
pub(super) async fn find(
    timer: &TrackTimer<'_>,
    pattern: &Pattern,
    regular: &FoundTrack,
    geometry: &Geometry,
    places: &[Lba],
) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    if pattern.band > 1 || places.is_empty() {
        return skipped;
    }
    let Some(curve) = Curve::measure(timer, pattern, regular).await else {
        return skipped;
    };
    let end = timer.prober.now() + LONGEST;
    for &place in places.iter().take(PLACES) {
        let rounds = if timer.prober.now() < end { ROUNDS } else { 1 };
        let mut times = PlaceTimes::new(place);
        for surface in 0..rounds {
            let Some(pairs) = across(timer, geometry, place, surface) else {
                continue;
            };
            times.add(&curve, &timer.times(&pairs).await);
            if times.is_clear() {
                break;
            }
        }
        skipped.extend(times.skipped());
    }
    skipped
}

/// The same by reads alone, with the seeks that were measured: times over [`WITHIN`] between the same tracks
/// would come from the buffer. The places are looked at together, so that their reads evict each other's.
pub(super) async fn find_by_reads(
    timer: &TrackTimer<'_>,
    arm: &ArmTimings,
    geometry: &Geometry,
    places: &[Lba],
) -> Vec<Skipped> {
    let Some(curve) = Curve::of(arm) else {
        return Vec::new();
    };
    let end = timer.prober.now() + LONGEST;
    let places = places.iter().take(PLACES);
    let mut places: Vec<PlaceTimes> = places.map(|&place| PlaceTimes::new(place)).collect();
    for surface in 0..ROUNDS {
        let mut unclear: Vec<&mut PlaceTimes> =
            places.iter_mut().filter(|one| !one.is_clear()).collect();
        let across = |one: &PlaceTimes| across(timer, geometry, one.place, surface);
        unclear.retain(|one| across(one).is_some());
        if unclear.is_empty() || timer.prober.now() > end {
            break;
        }
        let pairs = unclear.iter().filter_map(|one| across(one)).flatten();
        let times = timer.times(&pairs.collect::<Vec<_>>()).await;
        for (one, times) in unclear.into_iter().zip(times.chunks(ACROSS.len())) {
            one.add(&curve, times);
        }
    }
    places.iter().filter_map(PlaceTimes::skipped).collect()
}

/// Times over [`ACROSS`] at a place.
#[derive(Clone, Copy, Debug)]
struct PlaceTimes {
    place: Lba,
    sums: [f64; 5],
    rounds: f64,
    fitting: Fitting,
}

impl PlaceTimes {
    fn new(place: Lba) -> Self {
        PlaceTimes {
            place,
            sums: [0.0; 5],
            rounds: 0.0,
            fitting: Fitting::default(),
        }
    }

    /// Adds the times of another surface, if all of them are known.
    fn add(&mut self, curve: &Curve, times: &[Option<f64>]) {
        if times.iter().any(Option::is_none) {
            return;
        }
        self.rounds += 1.0;
        for (sum, time) in self.sums.iter_mut().zip(times.iter().flatten()) {
            *sum += time;
        }
        self.fitting = curve.fitting(&self.sums.map(|sum| sum / self.rounds));
    }

    fn is_clear(&self) -> bool {
        self.fitting.better.abs() > CLEAR
    }

    /// The cylinders that are left out here, if any are.
    fn skipped(&self) -> Option<Skipped> {
        (self.fitting.better > LIKELY).then_some(Skipped {
            before: self.place,
            cylinders: self.fitting.cylinders,
        })
    }
}

/// The tracks over [`ACROSS`] at a place, on the surface so many behind that of its block. By reads alone each
/// pair is on another surface: one would find the other's tracks in the buffer.
fn across(
    timer: &TrackTimer<'_>,
    geometry: &Geometry,
    place: Lba,
    surface: u32,
) -> Option<Vec<(FoundTrack, FoundTrack)>> {
    let behind = geometry.locate(place)?;
    let mut pairs = Vec::with_capacity(ACROSS.len());
    for (number, distance) in (0..).zip(ACROSS) {
        let aside = match timer.prober.device().offers {
            Offers::CacheControl => surface,
            Offers::Nothing => surface + number,
        };
        let head = (behind.head + aside) % geometry.surfaces();
        let at = |cylinder: u32| {
            let there = geometry.track_at(cylinder, head)?;
            timer
                .prober
                .findings(|found| found.map.track_of(there.first))
        };
        // From the same surface's track, as far before the place as behind it.
        let before = distance.div_ceil(2);
        let from = at(behind.cylinder.checked_sub(before)?)?;
        pairs.push((from, at(behind.cylinder + distance - before)?));
    }
    Some(pairs)
}

/// Times over [`WITHIN`].
struct Curve {
    times: Vec<f64>,
}

impl Curve {
    async fn measure(
        timer: &TrackTimer<'_>,
        pattern: &Pattern,
        regular: &FoundTrack,
    ) -> Option<Curve> {
        let mut times = Vec::new();
        let surfaces = i64::from(pattern.surfaces);
        for distance in WITHIN {
            let mut sum = 0.0;
            // The shortest ones decide between none and one.
            let rows = if distance <= 2 * AROUND { 4 } else { 1 };
            for row in 0..rows {
                let from = timer.beside(regular, 3 * row * surfaces)?;
                sum += timer.over(&from, i64::from(distance) * surfaces).await?;
            }
            times.push(sum / rows as f64);
        }
        Some(Curve { times })
    }

    /// The times that seeks of known distances take.
    fn of(arm: &ArmTimings) -> Option<Curve> {
        let longest = WITHIN[WITHIN.len() - 1];
        let table = arm.read_table(longest + 1).ok()?;
        let time = |&distance: &u32| (arm.overhead + table.time(distance)).as_nanos() as f64 / 1e6;
        Some(Curve {
            times: WITHIN.iter().map(time).collect(),
        })
    }

    /// The time over a distance.
    fn over(&self, distance: u32) -> f64 {
        let after = WITHIN.partition_point(|&known| known < distance);
        match (after.checked_sub(1), self.times.get(after)) {
            (None, _) => self.times[0],
            (Some(before), None) => self.times[before],
            (Some(before), Some(there)) => {
                let (from, to) = (WITHIN[before], WITHIN[after]);
                let part = f64::from(distance - from) / f64::from(to - from);
                self.times[before] * (1.0 - part) + there * part
            }
        }
    }

    /// How many cylinders left out fit times over [`ACROSS`] best.
    fn fitting(&self, times: &[f64; 5]) -> Fitting {
        let off = |cylinders: u32| -> f64 {
            let pairs = ACROSS.into_iter().zip(times);
            pairs
                .map(|(distance, time)| {
                    let off = time - self.over(distance + cylinders);
                    off * off
                })
                .sum()
        };
        let best = (1..=MOST).min_by(|&a, &b| off(a).total_cmp(&off(b)));
        let cylinders = best.unwrap_or(1);
        Fitting {
            cylinders,
            better: off(0) - off(cylinders),
        }
    }
}

/// Cylinders that may be left out.
#[derive(Clone, Copy, Debug, Default)]
struct Fitting {
    cylinders: u32,
    /// By how much times fit better than if none is left out, in square milliseconds.
    better: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cylinders_that_fit() {
        let time = |distance: u32| 1.0 + 0.3 * f64::from(distance).sqrt();
        let curve = Curve {
            times: WITHIN.map(time).to_vec(),
        };
        for cylinders in [1, 2, 5, 25] {
            let times = ACROSS.map(|distance| time(distance + cylinders) + 0.01);
            let found = curve.fitting(&times);
            assert!(
                found.cylinders.abs_diff(cylinders) <= cylinders / 12 && found.better > 0.0,
                "{found:?} for {cylinders}"
            );
        }
        let none = curve.fitting(&ACROSS.map(|distance| time(distance) + 0.01));
        assert!(none.better < 0.0, "{none:?}");
    }
}
