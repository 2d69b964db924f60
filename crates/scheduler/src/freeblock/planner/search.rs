//! The search for the best track: from both ends of a leg outward, and inward between them.
//!
//! ```text
//!   cylinders  <---- 1 ----[ A ]---- 2 ---->  <---- 3 ----[ B ]---- 4 ---->
//! ```
//!
//! The four cursors advance in the order of their distance. The search skips a place if its bound
//! is not above the best so far. The bound follows from the time that the two seeks leave, and from
//! the most wanted blocks of the region's tracks.

use std::iter::once;

use block::{Direction, Duration};
use drive::{Position, Profile};

use super::goal::Worth;
use super::ground::{SearchBounds, sole};
use super::sieve::{Seeks, Sieve, passes};
use super::visit::{Leg, Visit, visit};
use crate::freeblock::wanted::{Cylinder, WantedBlocks};
use crate::freeblock::{Kind, Ranges};

/// The constraints of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchRules<'a> {
    pub wanted: &'a WantedBlocks,
    pub leg: Leg,
    pub ranges: Ranges,
    /// The tracks of the commands before and after, if separate commands may not read there.
    pub closed: [Option<Position>; 2],
    /// Tracks that the plan reads already.
    pub taken: &'a [Position],
    /// The track of the command before.
    pub source: Position,
    /// The track of the command after.
    pub destination: Position,
}

/// One of the four cursors.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    /// The next cylinder.
    at: i64,
    step: i64,
    /// The cylinder at which the cursor stops.
    stop: i64,
    /// The cylinder where it began.
    anchor: i64,
    /// The distance between the two ends.
    across: u32,
    course: SearchCourse,
    /// The end at which it began.
    end: GapEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchCourse {
    /// Away from both ends.
    Outward,
    /// From one end towards the middle.
    Inward,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GapEnd {
    From,
    To,
}

/// A search in progress.
pub(super) struct CylinderSearch<'a> {
    profile: &'a Profile,
    ground: &'a SearchBounds,
    rules: &'a SearchRules<'a>,
    /// The time for seeks and reading.
    time: Duration,
    /// Revolutions per picosecond, in parts of 2^64, rounded up: products are cheaper than
    /// quotients.
    per_pico: u64,
    /// The number of tracks that may still be visited.
    left: &'a mut u32,
    /// The measure of worth.
    worth: Worth,
    /// The worth to exceed.
    than: u64,
    /// A number of wanted blocks that does not exceed it.
    few: u32,
    /// The least time for a better read of a track of so many sectors.
    least_time: Option<(u32, Duration)>,
    best: Option<Visit>,
}

impl SearchRules<'_> {
    /// Whether separate commands may not read a track.
    #[inline]
    fn is_closed(&self, position: Position) -> bool {
        self.closed.contains(&Some(position)) || self.taken.contains(&position)
    }
}

impl<'a> CylinderSearch<'a> {
    /// The best visit that is worth more than `than`, and its worth. Visits at most `left` tracks.
    pub fn best(
        profile: &'a Profile,
        ground: &'a SearchBounds,
        rules: &'a SearchRules<'a>,
        (worth, than): (Worth, u64),
        left: &'a mut u32,
    ) -> Option<(Visit, u64)> {
        let leg = &rules.leg;
        let until = leg.latest.as_nanos();
        let from = (leg.leaves + leg.to_free).as_nanos();
        let time = Duration::from_nanos(until.checked_sub(from)?);
        let mut search = CylinderSearch {
            profile,
            ground,
            rules,
            time,
            per_pico: u64::MAX / profile.spindle.period_ps() + 1,
            left,
            worth,
            than,
            few: worth.blocks(than),
            least_time: None,
            best: None,
        };
        search.run();
        search.best.map(|best| (best, search.than))
    }

    fn run(&mut self) {
        let leg = &self.rules.leg;
        let (from, to) = (leg.from.cylinder, leg.to.cylinder);
        let grain = self.rules.wanted.grain();
        self.cylinder(to, grain.region(to));
        if from != to {
            self.cylinder(from, grain.region(from));
        }
        let mut cursors = cursors(from, to, self.profile.geometry.cylinders());
        while *self.left > 0 {
            let nearest = cursors
                .iter_mut()
                .filter(|cursor| cursor.at != cursor.stop)
                .min_by_key(|cursor| cursor.distance());
            let Some(cursor) = nearest else {
                return;
            };
            self.advance(cursor);
        }
    }

    /// Visits the cylinders of a cursor's region, skips regions that cannot be better, or ends the
    /// cursor.
    fn advance(&mut self, cursor: &mut Cursor) {
        let rules = self.rules;
        let region = rules.wanted.grain().region(cursor.at as u32);
        *self.left -= 1;
        if rules.wanted.most(region) <= self.few {
            cursor.skip(rules.wanted, region, self.few);
            return;
        }
        let ahead = self.ground.ahead(region, cursor.step);
        let here = cursor.until(rules.wanted.grain().cylinders_of(region));
        let rest = cursor.stop.abs_diff(cursor.at) as u32;
        // Away from both ends a longer way has no more time.
        let leaps: &[u32] = match cursor.course {
            SearchCourse::Outward => &[rest],
            SearchCourse::Inward => &[rest, rest / 8, LEAP],
        };
        let leaps = leaps.iter().map(|&length| (length, ahead));
        for (length, dense) in leaps.chain(once((here, self.ground.dense(region)))) {
            let length = length.min(rest);
            if self.most(self.time_of(cursor, length), dense) <= self.than {
                cursor.at += cursor.step * i64::from(length.max(1));
                return;
            }
        }
        for _ in 0..here {
            if *self.left == 0 {
                return;
            }
            let cylinder = cursor.at as u32;
            if rules.wanted.may_have(cylinder, self.few) && self.ground.known().has_any_on(cylinder)
            {
                self.cylinder(cylinder, region);
            }
            cursor.at += cursor.step;
        }
    }

    /// An upper bound of the time for reading on any of the next `length` cylinders of a cursor.
    fn time_of(&self, cursor: &Cursor, length: u32) -> Duration {
        let near = cursor.at.abs_diff(cursor.anchor) as u32;
        let far = match cursor.course {
            SearchCourse::Outward => cursor.across + near,
            SearchCourse::Inward => cursor.across.saturating_sub(near + length - length.min(1)),
        };
        let (from, to) = match cursor.end {
            GapEnd::From => (near, far),
            GapEnd::To => (far, near),
        };
        let there = self.ground.least(Direction::Read, from);
        let back = self.ground.least(self.rules.leg.direction, to);
        self.time.saturating_sub(there + back)
    }

    /// Visits the tracks of a cylinder of a region, if there is time for a better read.
    #[inline]
    fn cylinder(&mut self, cylinder: u32, region: usize) {
        let leg = &self.rules.leg;
        let [there, back] = [(Direction::Read, leg.from), (leg.direction, leg.to)]
            .map(|(direction, end)| sole(self.profile, direction, end.cylinder.abs_diff(cylinder)));
        let time = self.time.saturating_sub(there + back);
        if time >= self.least_time(self.ground.dense(region)) {
            self.tracks((cylinder, region), (there, back));
        }
    }

    /// Visits the tracks of a cylinder whose nearest one takes these seeks.
    fn tracks(&mut self, (cylinder, region): (u32, usize), seeks: Seeks) {
        let rules = self.rules;
        let dense = self.ground.dense(region);
        let Some(tracks) = rules.wanted.cylinder((region, cylinder), dense) else {
            return;
        };
        let known = self.ground.known();
        let sparse = self.ground.sparse_in(region);
        let few = self.worth.blocks_among(self.than, sparse);
        if known.are_all() && !rules.wanted.may_have(cylinder, few) {
            // None of its tracks can be better, and each counts as visited.
            let surfaces = rules.wanted.grain().surfaces;
            *self.left = self.left.saturating_sub(surfaces);
            return;
        }
        let (heads, visited) = known.heads(cylinder, *self.left);
        *self.left -= visited;
        let mut above = tracks.above(heads.clone(), self.few);
        if above == 0 {
            return;
        }
        let sieve = Sieve::new(
            (self.profile, self.ground),
            (&rules.leg, rules.ranges),
            (cylinder, tracks),
            seeks,
        );
        while above != 0 {
            let head = above.trailing_zeros();
            above &= above - 1;
            let position = Position { cylinder, head };
            if !known.has(position) || rules.is_closed(position) {
                continue;
            }
            if sieve.may_pass(head, self.is_better()) {
                let few = self.few;
                self.track(position, dense, tracks);
                if self.few != few {
                    above &= tracks.above(heads.clone(), self.few);
                }
            } else {
                debug_assert!(self.is_worse(position), "{position:?} is better");
            }
        }
    }

    /// Tells of wanted blocks that are read, the sectors of their track, and all of its wanted blocks
    /// whether they are better than the best so far.
    #[inline]
    fn is_better(&self) -> impl Fn(u32, u32, u32) -> bool + use<> {
        let (worth, than, few) = (self.worth, self.than, self.few);
        move |wanted, sectors, left| wanted > few && worth.of(wanted, sectors, left) > than
    }

    /// Visits a track if that is better than the best so far.
    #[inline(never)]
    fn track(&mut self, position: Position, dense: u32, tracks: Cylinder<'_>) {
        let leg = &self.rules.leg;
        let seeks = self.seeks(position);
        if self.time.saturating_sub(seeks.0 + seeks.1) < self.least_time(dense) {
            return;
        }
        let turning = leg.turning(self.profile, seeks);
        let is_better = turning.is_some_and(|turning| {
            passes(
                (self.profile, self.ground.outlines()),
                (leg, self.rules.ranges),
                &tracks,
                (position, &turning),
                self.is_better(),
            )
        });
        if !is_better {
            debug_assert!(self.is_worse(position), "{position:?} is better");
            return;
        }
        let Some(found) = self.visited(position) else {
            return;
        };
        let worth = self.worth_of(&found);
        if worth > self.than {
            self.than = worth;
            self.few = self.worth.blocks(worth);
            self.least_time = None;
            self.best = Some(found);
        }
    }

    /// Whether a visit of a track would not be better than the best so far.
    fn is_worse(&self, position: Position) -> bool {
        let worth = self.visited(position).map(|found| self.worth_of(&found));
        worth.is_none_or(|worth| worth <= self.than)
    }

    fn worth_of(&self, found: &Visit) -> u64 {
        let track = &found.track;
        self.worth.of(found.wanted, track.sectors, track.wanted)
    }

    /// The times of the two seeks, to a track and from it.
    fn seeks(&self, position: Position) -> Seeks {
        let leg = &self.rules.leg;
        (
            self.profile.reposition(leg.from, position, Direction::Read),
            self.profile.reposition(position, leg.to, leg.direction),
        )
    }

    /// The best reads of a track, if they have more than `few` wanted blocks.
    fn visited(&self, position: Position) -> Option<Visit> {
        let rules = self.rules;
        let kind = if position == rules.destination {
            Kind::Destination
        } else if position == rules.source {
            Kind::Source
        } else {
            Kind::Detour
        };
        visit(
            (self.profile, rules.wanted),
            &rules.leg,
            (position, kind, self.ground.outlines().track(position)),
            rules.ranges,
            self.few,
        )
    }

    /// The least time for reading in which a read of a track of at most `sectors` sectors may be better than
    /// the best so far.
    #[inline]
    fn least_time(&mut self, sectors: u32) -> Duration {
        match self.least_time {
            Some((of, time)) if of == sectors => time,
            _ => {
                let time = self.find_least_time(sectors);
                self.least_time = Some((sectors, time));
                time
            }
        }
    }

    /// The shortest time whose bound is above the best so far.
    fn find_least_time(&self, sectors: u32) -> Duration {
        let period = self.profile.spindle.period_ps();
        let nanos = self.worth.least_picos(self.than, sectors, period) / 1000;
        // The bounds add small parts to what they round.
        let mut time = Duration::from_nanos(nanos.saturating_sub(LEAST_TIME_ERROR));
        debug_assert!(
            time.is_zero() || self.most(time, sectors) <= self.than,
            "{time:?} is not the least time for {} with {sectors} sectors",
            self.than
        );
        while self.most(time, sectors) <= self.than {
            time += Duration::from_nanos(1);
        }
        time
    }

    /// Upper bound on the worth of a read within `time` on a track of at most `sectors` sectors.
    #[inline]
    fn most(&self, time: Duration, sectors: u32) -> u64 {
        let picos = time.as_nanos().saturating_mul(1000).saturating_add(1);
        // No gap is as long as the bound, which keeps the shift within the word.
        let parts = self.turns(picos.min(1 << 43) << 20);
        self.worth.most(parts + 1, self.gain(time, sectors))
    }

    /// Upper bound on the number of blocks that pass within `time` on a track of `sectors` sectors.
    ///
    /// A sector's width is rounded down to a whole fraction of a revolution, by less than one part
    /// in 2^47; the bound adds one part in 2^30.
    #[inline]
    fn gain(&self, time: Duration, sectors: u32) -> u32 {
        let picos = time.as_nanos().saturating_mul(1000).saturating_add(1);
        let ways = picos.saturating_mul(u64::from(sectors));
        let ways = ways.saturating_add((ways >> 30) + 1);
        u32::try_from(self.turns(ways)).unwrap_or(u32::MAX)
    }

    /// A number of picoseconds in revolutions, rounded down, or one more.
    #[inline]
    fn turns(&self, picos: u64) -> u64 {
        ((u128::from(picos) * u128::from(self.per_pico)) >> 64) as u64
    }
}

impl Cursor {
    fn distance(&self) -> u32 {
        self.at.abs_diff(self.anchor) as u32
    }

    /// The number of a region's cylinders that are still ahead.
    fn until(&self, region: std::ops::Range<u32>) -> u32 {
        let end = if self.step > 0 {
            i64::from(region.end).min(self.stop)
        } else {
            (i64::from(region.start) - 1).max(self.stop)
        };
        end.abs_diff(self.at) as u32
    }

    /// Advances to the next region whose tracks may have more than `than` wanted blocks.
    fn skip(&mut self, wanted: &WantedBlocks, region: usize, than: u32) {
        let grain = wanted.grain();
        let next = if self.step > 0 {
            let next = wanted.above(region + 1, than);
            next.map(|region| i64::from(grain.cylinders_of(region).start))
        } else {
            let next = region
                .checked_sub(1)
                .and_then(|region| wanted.below(region, than));
            next.map(|region| i64::from(grain.cylinders_of(region).end) - 1)
        };
        self.at = match next {
            Some(next) if self.step > 0 => next.min(self.stop),
            Some(next) => next.max(self.stop),
            None => self.stop,
        };
    }
}

/// The four cursors of a leg between two cylinders.
fn cursors(from: u32, to: u32, cylinders: u32) -> [Cursor; 4] {
    let (low, high) = (i64::from(from.min(to)), i64::from(from.max(to)));
    let (low_end, high_end) = if from <= to {
        (GapEnd::From, GapEnd::To)
    } else {
        (GapEnd::To, GapEnd::From)
    };
    let middle = low + (high - low) / 2;
    let cursor = |anchor: i64, step: i64, stop: i64, end, (course, across)| Cursor {
        // A cursor without cylinders has stopped.
        at: if (stop - anchor) * step > 0 {
            anchor + step
        } else {
            stop
        },
        step,
        stop,
        anchor,
        across,
        course,
        end,
    };
    let outward = (SearchCourse::Outward, (high - low) as u32);
    let inward = (SearchCourse::Inward, (high - low) as u32);
    [
        cursor(low, -1, -1, low_end, outward),
        cursor(low, 1, (middle + 1).min(high), low_end, inward),
        cursor(high, -1, middle, high_end, inward),
        cursor(high, 1, i64::from(cylinders), high_end, outward),
    ]
}

/// Cylinders that are skipped at once, if the bound of a longer distance does not decide. A choice.
const LEAP: u32 = 512;

/// By how many nanoseconds the least time for a better read may be less than computed: the bounds add less than a
/// part in 2^29, which is a nanosecond in half a second, and round up.
const LEAST_TIME_ERROR: u64 = 2;
