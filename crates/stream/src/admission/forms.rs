//! The forms among which admission chooses: batches cut anywhere, or at the ends of tracks.
//!
//! **Some of the tracks in a round.** If a round is shorter than a stream's track lasts, most rounds
//! have no batch of it. With q = r / (bytes of its least track), m rounds have at most m q T + 1 of
//! its batches, because each goes over the end of a track at least. Let X be not less than the sum of
//! q T over all streams (and of all extents where a batch may have several). Then, as in network
//! calculus, m rounds are at most m rounds of X accesses each, and one access more of each stream, once:
//!
//! ```text
//!   P      = X (overhead - change) + seeks(X) + stall        in each round
//!   peak   = sum of (track + overhead - change + what one access more adds to seeks(X))
//!   seeks(X) = longest + X seek((S + 2 X) / X)
//! ```
//!
//! seeks is concave, so that m sweeps over so many accesses in all, however they are spread over
//! the rounds, are not above m seeks(mean), and one access more in one of them adds at most its
//! derivative, seek(d) - (d - 2) seek'(d) at d = S / X + 2. Its first seek is the longest of all, so that
//! it bounds sweeps of one and of two accesses, too. A larger X is a longer round of a smaller peak:
//! eighths of all streams are tried. With all of them nothing is left of the peak but the track.
//!
//! **The change to the first track** of a batch is its seek: the time of a whole track contains a
//! change, and each access one too many.

use block::{Direction, Duration};

use super::form::{Form, Sums, share};
use super::{Cutting, Rules};
use crate::head_times::{Cylinders, HeadTimes};
use crate::rate::SECOND;

/// All forms of these sums, of streams in this place.
pub(super) fn forms(
    times: &HeadTimes,
    rules: &Rules,
    sums: &Sums,
    place: Cylinders,
) -> impl Iterator<Item = Form> {
    let anywhere = anywhere(times, rules, sums, place);
    // None of them if not all streams can be cut at tracks.
    let parts = match sums.uncut {
        0 => 1..=PARTS,
        #[expect(clippy::reversed_empty_ranges, reason = "there are none")]
        _ => 1..=0,
    };
    let tracks = parts.map(move |part| tracks(times, rules, sums, place, part));
    std::iter::once(anywhere).chain(tracks)
}

/// Batches that end anywhere: all streams have one in each round.
pub(super) fn anywhere(times: &HeadTimes, rules: &Rules, sums: &Sums, place: Cylinders) -> Form {
    let extents = sums.extents();
    let place = place.widened(times.wander, times.cylinders);
    let accesses = times.access(Direction::Read) * sums.read
        + times.access(Direction::Write) * sums.written
        + times.sweep(extents, place, STRAYS * extents);
    Form {
        cutting: Cutting::Anywhere,
        fixed: times.stall + accesses + sums.pages + noticed_late(rules, sums.load),
        peak: Duration::ZERO,
        load: sums
            .load
            .saturating_add(strays_load(times, sums, place, extents)),
        longest: None,
    }
}

/// Batches of whole tracks, of so many eighths of the streams in a round.
fn tracks(times: &HeadTimes, rules: &Rules, sums: &Sums, place: Cylinders, part: u64) -> Form {
    let ones = (sums.ones * part).div_ceil(PARTS);
    let accesses = sums.extents() - sums.ones + ones;
    let place = place.widened(times.wander, times.cylinders);
    let seeks = match part {
        PARTS => times.sweep(accesses, place, STRAYS * accesses),
        _ => times.sweeps(accesses, place, STRAYS),
    };
    let overhead = match (sums.read, sums.written) {
        (_, 0) => times.read.overhead,
        (0, _) => times.write.overhead,
        _ => times.read.overhead.max(times.write.overhead),
    };
    let change = times.change.min(times.seek.at(0));
    let all = (seeks + overhead * accesses).saturating_sub(change * accesses);
    let (peak, longest) = match part {
        PARTS => (Duration::ZERO, None),
        _ => {
            let more = times.one_more(accesses, place, STRAYS) + overhead;
            (
                more.saturating_sub(change) * sums.ones,
                longest(rules, sums, ones),
            )
        }
    };
    Form {
        cutting: Cutting::Tracks,
        fixed: times.stall + all + sums.partial + noticed_late(rules, sums.load_cut),
        peak: sums.peak + peak,
        load: sums
            .load_cut
            .saturating_add(strays_load(times, sums, place, accesses)),
        longest,
    }
}

/// The longest round in which no more than so many tracks pass, those that are noticed late too.
fn longest(rules: &Rules, sums: &Sums, tracks: u64) -> Option<Duration> {
    let nanos = u128::from(tracks) * u128::from(SECOND) * u128::from(SECOND);
    let nanos = nanos.checked_div(u128::from(sums.pace_of_ones))?;
    let length = Duration::from_nanos(u64::try_from(nanos).ok()?);
    Some(length.saturating_sub(rules.latency))
}

/// A batch may be larger by what was noticed late the round before.
fn noticed_late(rules: &Rules, load: u64) -> Duration {
    let nanos = share(rules.latency.as_nanos(), load, SECOND);
    Duration::from_nanos(nanos.unwrap_or(u64::MAX).saturating_add(1))
}

/// Of what batches go over from where they begin to where they end, that which their rates contain:
/// ever less steep, the curve rises no more over it than where it begins.
fn strays_load(times: &HeadTimes, sums: &Sums, place: Cylinders, accesses: u64) -> u64 {
    let rise = times.sweep_rise(accesses, place, STRAYS * accesses);
    share(sums.pace, rise, SECOND).map_or(u64::MAX, |load| load.saturating_add(1))
}

/// Cylinders from where a batch begins to where it ends, more than its rate contains: one, and one
/// more where it ends with a track.
const STRAYS: u64 = 2;

/// Into how many parts the streams are divided where only some of them are due in a round. A choice:
/// admission takes as many forms, and between two of them the sums differ by a few streams.
const PARTS: u64 = 8;
