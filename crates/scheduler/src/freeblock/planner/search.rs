//! The search for the best track: from both ends of a leg outward, and inward between them.
//!
//! ```text
//!   cylinders  <---- 1 ----[ A ]---- 2 ---->  <---- 3 ----[ B ]---- 4 ---->
//! ```
//!
//! The four cursors advance in the order of their distance. The search skips a place if its bound
//! is not above the best so far. The bound follows from the time that the two seeks leave, and from
//! the most wanted blocks of the region's tracks.

use block::{Direction, Duration};
use drive::{Position, Profile};

use super::goal::Worth;
use super::ground::{SearchBounds, sole};
use super::sieve::{Held, Sieve};
use super::visit::{Leg, Visit, visit};
use crate::freeblock::wanted::WantedBlocks;
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
    best: Option<Visit>,
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
            best: None,
        };
        search.run();
        search.best.map(|best| (best, search.than))
    }

    fn run(&mut self) {
        let leg = &self.rules.leg;
        let (from, to) = (leg.from.cylinder, leg.to.cylinder);
        self.cylinder(to);
        if from != to {
            self.cylinder(from);
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
        let spans = [
            (rest, ahead),
            (rest / 8, ahead),
            (LEAP, ahead),
            (here, self.ground.dense(region)),
        ];
        for (length, dense) in spans {
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
                self.cylinder(cylinder);
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

    /// Visits the tracks of a cylinder.
    fn cylinder(&mut self, cylinder: u32) {
        let rules = self.rules;
        let leg = &rules.leg;
        let [there, back] = [(Direction::Read, leg.from), (leg.direction, leg.to)]
            .map(|(direction, end)| sole(self.profile, direction, end.cylinder.abs_diff(cylinder)));
        let time = self.time.saturating_sub(there + back);
        let region = rules.wanted.grain().region(cylinder);
        let dense = self.ground.dense(region);
        // Tracks with equal seek times have the same bound.
        let mut bound = (time, self.most(time, dense));
        if bound.1 <= self.than {
            return;
        }
        let Some(tracks) = rules.wanted.cylinder(cylinder, dense) else {
            return;
        };
        let few = self
            .worth
            .blocks_among(self.than, self.ground.sparse_in(region));
        if self.ground.known().are_all() && !rules.wanted.may_have(cylinder, few) {
            // None of its tracks can be better, and each counts as visited.
            let surfaces = self.profile.geometry.surfaces();
            *self.left = self.left.saturating_sub(surfaces);
            return;
        }
        let mut sieve = Sieve::new(
            (self.profile, self.ground),
            rules.wanted,
            (leg, rules.ranges),
            (there, back),
        );
        for head in 0..self.profile.geometry.surfaces() {
            if *self.left == 0 {
                return;
            }
            let position = Position { cylinder, head };
            if !self.ground.known().has(position) {
                continue;
            }
            *self.left -= 1;
            let held = Held {
                most: tracks.most(head),
                is_exact: tracks.is_exact(),
            };
            if held.most <= self.few
                || rules.closed.contains(&Some(position))
                || rules.taken.contains(&position)
            {
                continue;
            }
            let seeks = self.seeks(position);
            let time = self.time.saturating_sub(seeks.0 + seeks.1);
            if bound.0 != time {
                bound = (time, self.most(time, dense));
            }
            if bound.1 <= self.than {
                continue;
            }
            let (worth, than, few) = (self.worth, self.than, self.few);
            let is_better =
                |wanted, sectors, left| wanted > few && worth.of(wanted, sectors, left) > than;
            if sieve.passes(position, held, seeks, is_better) {
                self.track(position);
            } else {
                debug_assert!(self.is_worse(position), "{position:?} is better");
            }
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
    fn seeks(&self, position: Position) -> (Duration, Duration) {
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

    fn track(&mut self, position: Position) {
        let Some(found) = self.visited(position) else {
            return;
        };
        let worth = self.worth_of(&found);
        if worth > self.than {
            self.than = worth;
            self.few = self.worth.blocks(worth);
            self.best = Some(found);
        }
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
