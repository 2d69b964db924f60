//! Whether tracks that follow each other are on one cylinder: the times between them tell.
//!
//! ```text
//!   tracks     0  1  2  3 | 4  5  6  7 | ...      of four to a cylinder
//!   0 -> 1, 0 -> 3        a switch of heads, equally long
//!   0 -> 4                a seek
//! ```

use super::track_timer::{EQUAL, TrackTimer};
use crate::device::Offers;
use crate::findings::FoundTrack;

/// Steps from track to track whose times differ by more are of two kinds, in milliseconds. A choice:
/// the least and the greatest of so many equal ones differ by nearly as much.
pub(super) const TWO_KINDS: f64 = 2.0 * EQUAL;

/// At how many cylinders tracks of one cylinder are compared. A choice.
const CYLINDERS: i64 = 3;

/// Cylinders between such places without cache control. A choice: more than the buffer reads around a
/// block.
const APART: i64 = 6;

/// The least of them, where few tracks are known without a gap. A choice.
const LEAST_APART: i64 = 2;

/// Over so many cylinders the way is longer than within one: at least, and where enough of them are known. A choice.
const MANY: (i64, i64) = (8, 32);

/// Whether the tracks of a cycle that begins at `first` are on one cylinder.
pub(super) async fn is_cylinder(
    timer: &TrackTimer<'_>,
    first: &FoundTrack,
    period: i64,
) -> Option<bool> {
    let mut sums = [0.0; 5];
    let mut ends = [(f64::MAX, f64::MIN); 2];
    let (known, ways) = (timer.room(first) / period, sums.len() as i64);
    let places = CYLINDERS * ways;
    let many = (known - places * LEAST_APART).clamp(MANY.0, MANY.1);
    let apart = ((known - many) / places).clamp(LEAST_APART, APART);
    let overs = [1, period - 1, period, 2 * period, many * period];
    let mut pairs = Vec::new();
    for cylinder in 0..CYLINDERS {
        for (index, over) in (0..).zip(overs) {
            // Without cache control pairs at one place would find each other's tracks in the buffer.
            let place = match timer.prober.device().offers {
                Offers::CacheControl => cylinder * ways,
                Offers::Nothing => (cylinder * ways + index) * apart,
            };
            let from = timer.beside(first, place * period)?;
            pairs.push((from, timer.beside(&from, over)?));
        }
    }
    let times = timer.times(&pairs).await;
    let times = times.into_iter().collect::<Option<Vec<f64>>>()?;
    for cylinder in times.chunks(overs.len()) {
        for (index, &time) in cylinder.iter().enumerate() {
            sums[index] += time / CYLINDERS as f64;
            if let Some((least, greatest)) = ends.get_mut(index) {
                (*least, *greatest) = (least.min(time), greatest.max(time));
            }
        }
    }
    let [next, last, one, two, many] = sums;
    let flat = (last - next).abs() < EQUAL;
    // The ends of cylinders of another length would come in between at some of the places.
    let alike = ends
        .iter()
        .all(|(least, greatest)| greatest - least < TWO_KINDS);
    // In bands of as many tracks, twice as far is back on the same cylinder.
    Some(flat && alike && two > one - EQUAL && many > last + EQUAL)
}
