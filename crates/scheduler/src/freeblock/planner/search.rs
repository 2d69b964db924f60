//! The search for the best track: from both ends of a way outward, and inward between them.
//!
//! ```text
//!   cylinders  <---- 1 ----[ A ]---- 2 ---->  <---- 3 ----[ B ]---- 4 ---->
//! ```
//!
//! The four go on in the order of their distance. A place is left out when its bound is not
//! above the best so far: the time that the two seeks leave, and the wanted blocks that its
//! region's tracks have at most.

use block::{Direction, Duration};
use drive::{Position, Profile};

use super::seeks::{Envelope, sole};
use super::visit::{Leg, Visit, visit};
use crate::freeblock::wanted::Wanted;
use crate::freeblock::{Kind, Ranges};

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quest<'a> {
    pub wanted: &'a Wanted,
    pub leg: Leg,
    pub ranges: Ranges,
    /// The tracks of the commands before and after where no command of its own may read.
    pub closed: [Option<Position>; 2],
    /// Tracks that are read already.
    pub taken: &'a [Position],
    /// The track of the command before.
    pub source: Position,
    /// The track of the command after.
    pub destination: Position,
}

/// What does not change while the profile does not.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    pub envelope: Envelope,
    /// The most sectors of a track of the drive.
    densest: u32,
    /// The same of each region; 0 where nobody has looked.
    dense: Vec<u32>,
}

/// One of the four.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    /// The next cylinder.
    at: i64,
    step: i64,
    /// The cylinder at which it stops.
    stop: i64,
    /// The cylinder where it began.
    anchor: i64,
    /// Not less than this far from the other end.
    across: u32,
    course: Course,
    /// Which end it began at.
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// Away from both ends.
    Outward,
    /// From one end towards the middle.
    Inward,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    From,
    To,
}

/// A search under way.
pub(super) struct Search<'a> {
    profile: &'a Profile,
    ground: &'a mut Ground,
    quest: &'a Quest<'a>,
    /// Time for seeks and reading.
    time: Duration,
    /// How many more tracks may be looked at.
    left: &'a mut u32,
    /// What has to be exceeded.
    than: u32,
    best: Option<Visit>,
}

impl Ground {
    pub fn new(profile: &Profile) -> Self {
        let zones = profile.geometry.zones();
        let densest = zones.iter().map(|zone| zone.sectors_per_track).max();
        Ground {
            envelope: Envelope::new(profile),
            densest: densest.unwrap_or(1),
            dense: Vec::new(),
        }
    }

    /// The most sectors that a track of a region has.
    fn dense(&mut self, profile: &Profile, wanted: &Wanted, region: usize) -> u32 {
        let grain = wanted.grain();
        if self.dense.len() != grain.regions() {
            self.dense = vec![0; grain.regions()];
        }
        if self.dense[region] == 0 {
            let tracks = grain
                .tracks_of(region)
                .filter_map(|place| profile.geometry.track_at(place.cylinder, place.head));
            self.dense[region] = tracks.map(|track| track.sectors).max().unwrap_or(1);
        }
        self.dense[region]
    }
}

impl<'a> Search<'a> {
    /// The best visit with more than `than` wanted blocks; looks at `left` tracks at most.
    pub fn best(
        profile: &'a Profile,
        ground: &'a mut Ground,
        quest: &'a Quest<'a>,
        than: u32,
        left: &'a mut u32,
    ) -> Option<Visit> {
        let leg = &quest.leg;
        let until = leg.latest.as_nanos();
        let from = (leg.leaves + leg.to_free).as_nanos();
        let time = Duration::from_nanos(until.checked_sub(from)?);
        let mut search = Search {
            profile,
            ground,
            quest,
            time,
            left,
            than,
            best: None,
        };
        search.run();
        search.best
    }

    fn run(&mut self) {
        let leg = &self.quest.leg;
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

    /// Looks at a cursor's cylinder, or moves it over empty regions, or ends it.
    fn advance(&mut self, cursor: &mut Cursor) {
        let cylinder = cursor.at as u32;
        let wanted = self.quest.wanted;
        let region = wanted.grain().region(cylinder);
        if wanted.most(region) <= self.than {
            cursor.skip(wanted, region, self.than);
            return;
        }
        if self.gain(self.least_time(cursor), self.ground.densest) <= self.than {
            cursor.at = cursor.stop;
            return;
        }
        self.cylinder(cylinder);
        cursor.at += cursor.step;
    }

    /// Not less than the time for reading that any place has which the cursor will come to.
    fn least_time(&self, cursor: &Cursor) -> Duration {
        let leg = &self.quest.leg;
        let near = cursor.distance();
        let far = match cursor.course {
            Course::Outward => cursor.across + near,
            Course::Inward => cursor.across,
        };
        let (from, to) = match cursor.end {
            End::From => (near, far),
            End::To => (far, near),
        };
        let envelope = &self.ground.envelope;
        let there = envelope.least(Direction::Read, from);
        let back = envelope.least(leg.direction, to);
        self.time.saturating_sub(there + back)
    }

    /// Looks at the tracks of a cylinder.
    fn cylinder(&mut self, cylinder: u32) {
        let quest = self.quest;
        let leg = &quest.leg;
        let [there, back] = [(Direction::Read, leg.from), (leg.direction, leg.to)]
            .map(|(direction, end)| sole(self.profile, direction, end.cylinder.abs_diff(cylinder)));
        let time = self.time.saturating_sub(there + back);
        let wanted = quest.wanted;
        let region = wanted.grain().region(cylinder);
        if wanted.most(region) <= self.than || self.gain(time, self.ground.densest) <= self.than {
            return;
        }
        let dense = self.ground.dense(self.profile, wanted, region);
        // Tracks that take equally long have the same bound.
        let mut bound = (time, self.gain(time, dense));
        for head in 0..self.profile.geometry.surfaces() {
            if *self.left == 0 {
                return;
            }
            *self.left -= 1;
            let position = Position { cylinder, head };
            let slices = wanted.slices_at(position, dense);
            if slices.is_none_or(|slices| slices.most() <= self.than)
                || quest.closed.contains(&Some(position))
                || quest.taken.contains(&position)
            {
                continue;
            }
            let time = self.time_at(position);
            if bound.0 != time {
                bound = (time, self.gain(time, dense));
            }
            if bound.1 > self.than {
                self.track(position);
            }
        }
    }

    /// What the two seeks leave for a track.
    fn time_at(&self, position: Position) -> Duration {
        let leg = &self.quest.leg;
        let there = self.profile.reposition(leg.from, position, Direction::Read);
        let back = self.profile.reposition(position, leg.to, leg.direction);
        self.time.saturating_sub(there + back)
    }

    fn track(&mut self, position: Position) {
        let quest = self.quest;
        let kind = if position == quest.destination {
            Kind::Destination
        } else if position == quest.source {
            Kind::Source
        } else {
            Kind::Detour
        };
        let found = visit(
            (self.profile, quest.wanted),
            &quest.leg,
            (position, kind),
            quest.ranges,
            self.than,
        );
        if let Some(found) = found {
            self.than = found.wanted;
            self.best = Some(found);
        }
    }

    /// How many blocks pass in a stretch of time, at most, with so many sectors a track.
    ///
    /// A sector's width is rounded down to a whole fraction of a revolution, by less than one
    /// part in 2^47: one part in 2^30 is added.
    #[inline]
    fn gain(&self, time: Duration, sectors: u32) -> u32 {
        let picos = time.as_nanos().saturating_mul(1000).saturating_add(1);
        let ways = picos.saturating_mul(u64::from(sectors));
        let ways = ways.saturating_add((ways >> 30) + 1);
        let blocks = ways / self.profile.spindle.period_ps();
        u32::try_from(blocks).unwrap_or(u32::MAX)
    }
}

impl Cursor {
    fn distance(&self) -> u32 {
        self.at.abs_diff(self.anchor) as u32
    }

    /// Moves on to the next region where a track may have more than `than` wanted blocks.
    fn skip(&mut self, wanted: &Wanted, region: usize, than: u32) {
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

/// The four, for a way between two cylinders.
fn cursors(from: u32, to: u32, cylinders: u32) -> [Cursor; 4] {
    let (low, high) = (i64::from(from.min(to)), i64::from(from.max(to)));
    let (low_end, high_end) = if from <= to {
        (End::From, End::To)
    } else {
        (End::To, End::From)
    };
    let middle = low + (high - low) / 2;
    let cursor = |anchor: i64, step: i64, stop: i64, end, (course, across)| Cursor {
        // A cursor without a way has stopped.
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
    let outward = (Course::Outward, (high - low) as u32);
    let inward = (Course::Inward, (high - middle) as u32);
    [
        cursor(low, -1, -1, low_end, outward),
        cursor(low, 1, (middle + 1).min(high), low_end, inward),
        cursor(high, -1, middle, high_end, inward),
        cursor(high, 1, i64::from(cylinders), high_end, outward),
    ]
}
