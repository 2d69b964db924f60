//! The belief kept true while it serves: every command's end tells where the platter is, and how
//! far the belief can be trusted.
//!
//! At first the belief is *unconfirmed*: no free blocks in gaps, until enough commands have ended as it
//! predicts. Below a stated confidence the engine is in *safe mode*: C-LOOK, and no free blocks in gaps.
//! Commands go on telling, and when they agree again, positioning comes back.

use std::sync::Arc;

use block::{Direction, Duration, Extent, Instant, Lba, Outcome};
use drive::firmware::Overheads;
use drive::{Certainty, Profile, SeekCurve};
use profiler::Confidence;
use profiler::slow_heads::{ReadEnd, SlowHeads};
use profiler::tracker::{ArrivalSlack, BeliefMode, PredictionOutcome, Tracker, Travel};
use scheduler::policy::{NamedPolicy, find};

use super::DriveBelief;
use crate::command::{Purpose, SentCommand};
use crate::forecast::{Course, Head, Route};

/// Follows a drive by the ends of its commands.
pub(super) struct DriveFollower {
    tracker: Tracker,
    /// Compares the heads of the drive with each other.
    slow_heads: SlowHeads,
    /// The policies that choose while positions can be trusted, and while not.
    policies: [NamedPolicy; 2],
    tallies: Tallies,
    /// Places that were tried for calibration reads.
    places: u64,
    /// The arm as it was believed to be at the beginning.
    arm: SeekCurve,
    /// The electronics as they were believed to be at the beginning, and the delay of the host on top of
    /// them, in nanoseconds.
    electronics: (Overheads, i64),
}

/// What the ends of commands said, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    /// Commands that the buffer answered.
    pub buffered: u64,
    /// Those whose blocks passed when they were believed to.
    pub as_believed: u64,
    /// Those whose blocks passed whole revolutions later.
    pub late: u64,
    /// Those whose blocks were elsewhere, or the platter.
    pub elsewhere: u64,
    /// Those whose ends say nothing of the platter: see [`Route::told`].
    pub silent: u64,
    /// How often positioning was given up, and taken up again.
    pub changes: u64,
    /// How often the seek tables were refined.
    pub refinements: u64,
    /// Blocks that were read only to see where the platter is.
    pub calibrations: u64,
    /// For how long those held arm and medium, if the drive is a simulated one: for reports only.
    pub calibration_time: Duration,
}

impl Tallies {
    /// Counts an end that tells.
    fn count(&mut self, told: PredictionOutcome) {
        let tally = match told {
            PredictionOutcome::Buffered | PredictionOutcome::Early => &mut self.buffered,
            PredictionOutcome::AsBelieved => &mut self.as_believed,
            PredictionOutcome::Late => &mut self.late,
            PredictionOutcome::Elsewhere => &mut self.elsewhere,
        };
        *tally += 1;
    }

    /// The sum of two counts, of two actuators.
    pub(crate) fn and(self, other: Tallies) -> Tallies {
        Tallies {
            buffered: self.buffered + other.buffered,
            as_believed: self.as_believed + other.as_believed,
            late: self.late + other.late,
            elsewhere: self.elsewhere + other.elsewhere,
            silent: self.silent + other.silent,
            changes: self.changes + other.changes,
            refinements: self.refinements + other.refinements,
            calibrations: self.calibrations + other.calibrations,
            calibration_time: self.calibration_time + other.calibration_time,
        }
    }
}

/// What the end of a command has changed in the belief: the other stages adapt to it.
#[derive(Clone, Debug)]
pub(crate) struct Learned {
    /// Another policy chooses from now on.
    pub(crate) policy: Option<NamedPolicy>,
    /// By how much guards are widened.
    pub(crate) caution: f64,
    /// The platter is elsewhere.
    pub(crate) is_turned: bool,
    /// The arm takes another time.
    pub(crate) is_refined: bool,
    /// Commands arrive at the drive sooner or later.
    pub(crate) is_delayed: bool,
}

impl DriveFollower {
    pub(super) fn new(now: Instant, belief: &Profile, policy: NamedPolicy) -> Self {
        let safe = find("c-look").expect("a policy of the table");
        DriveFollower {
            tracker: Tracker::new(belief.spindle, now),
            slow_heads: SlowHeads::new(belief.geometry.surfaces(), belief.geometry.cylinders()),
            policies: [policy, safe],
            tallies: Tallies::default(),
            places: 0,
            arm: belief.seek.clone(),
            electronics: (belief.overheads, 0),
        }
    }

    pub(super) fn mode(&self) -> BeliefMode {
        self.tracker.mode()
    }

    pub(super) fn confidence(&self) -> Confidence {
        self.tracker.confidence()
    }

    pub(super) fn host_delay(&self) -> i64 {
        self.electronics.1
    }

    pub(super) fn slow_heads(&self) -> &SlowHeads {
        &self.slow_heads
    }

    /// The slack of a command at its arrival, behind what left the head as `before`.
    fn arrival(
        &self,
        (given, before): (Instant, &Head),
        course: &Course,
        route: &Route,
        period: Duration,
    ) -> ArrivalSlack {
        let electronics = &self.electronics.0;
        let overhead = electronics.before_positioning(route.direction(), before.previous);
        let latest = course.start + course.pass.rotation;
        let slack = latest.as_nanos() as i64 - (given + overhead).as_nanos() as i64;
        let is_free = before.free + period <= latest;
        ArrivalSlack {
            slack,
            earlier: is_free.then_some(slack - period.as_nanos() as i64),
        }
    }

    /// Takes in the end of a read for its head.
    fn compare(
        &mut self,
        now: Instant,
        (told, revolutions): (PredictionOutcome, i64),
        course: &Course,
        route: &Route,
        period: Duration,
    ) {
        let end = match told {
            PredictionOutcome::AsBelieved => ReadEnd::Late(0),
            PredictionOutcome::Late => ReadEnd::Late(revolutions.clamp(0, MOST_REVOLUTIONS) as u32),
            PredictionOutcome::Elsewhere => ReadEnd::Elsewhere,
            PredictionOutcome::Buffered | PredictionOutcome::Early => return,
        };
        if let Some(read) = route.compared(course, period, end) {
            self.slow_heads.observe(now, &read);
        }
    }

    pub(super) fn tallies(&self) -> Tallies {
        Tallies {
            changes: self.tracker.changes(),
            ..self.tallies
        }
    }
}

impl DriveBelief {
    /// When a calibration read is due, if nothing else happens: never in front of a request, and not
    /// soon after one, of which the last was here at `busy`.
    pub(crate) fn calibration_due(&self, busy: Instant) -> Option<Instant> {
        let follower = self.follower.as_ref()?;
        Some(follower.tracker.calibration_due().max(busy + CALM))
    }

    /// The block to read now that a calibration read is due; `None` if none is.
    pub(crate) fn calibration(&mut self, now: Instant, busy: Instant) -> Option<Extent> {
        if self.calibration_due(busy)? > now {
            return None;
        }
        let follower = self.follower.as_mut()?;
        follower.tracker.calibrate(now);
        for _ in 0..PLACES {
            follower.places += 1;
            let extent = Extent::block(place(&self.profile, follower.places));
            let route = Route::new(&self.profile, extent, Direction::Read);
            if route.is_some_and(|route| route.certainty() == Certainty::Known) {
                follower.tallies.calibrations += 1;
                return Some(extent);
            }
        }
        None
    }

    /// A command has ended: its head time is the calibration's if it was one.
    pub(crate) fn count_calibration(&mut self, sent: &SentCommand, outcome: &Outcome) {
        if let (Some(follower), Purpose::Calibration, Some(account)) =
            (&mut self.follower, &sent.purpose, outcome.account)
        {
            follower.tallies.calibration_time += account.head();
        }
    }

    /// A command has ended at `now` that was `given` behind what left the head in one state, and was believed
    /// to go like `course`. The answer is what that changed, if the drive is followed and the end tells
    /// anything.
    pub(crate) fn track(
        &mut self,
        now: Instant,
        given: (Instant, &Head),
        course: &Course,
        route: &Route,
    ) -> Option<Learned> {
        let follower = self.follower.as_mut()?;
        let expected = route.told(&self.profile, course, self.ended, now);
        let Some(expected) = expected.filter(|_| course.pass.wrapped.is_zero()) else {
            self.track_silently();
            return None;
        };
        let before = follower.tracker.mode();
        let source = course.certainty;
        let told = follower.tracker.observe_from(source, expected, now);
        follower.tallies.count(told);
        let period = self.profile.spindle.period();
        let travel = Travel {
            direction: route.direction(),
            distance: course.distance,
            wait: course.pass.rotation,
            period,
        };
        // A head switch that takes longer hides the seek.
        let waits = course.waits_for_sector(&self.profile) && source == Certainty::Known;
        let travel = (waits && course.pass.seek > self.profile.head_switch).then_some(&travel);
        let late = now.as_nanos() as i64 - expected.as_nanos() as i64;
        let turn = period.as_nanos() as i64;
        let revolutions = (late + turn / 2).div_euclid(turn);
        let arrival = follower.arrival(given, course, route, period);
        let ways = (travel, waits.then_some(&arrival));
        let is_alone = follower.tracker.travelled(Some(told), ways, revolutions);
        if is_alone && waits && before == BeliefMode::Positioning {
            follower.compare(now, (told, revolutions), course, route, period);
        }
        let delayed = follower.tracker.delayed(now);
        let refined = follower.tracker.refined(now, &follower.arm);
        let (spindle, caution) = (follower.tracker.spindle(), follower.tracker.caution());
        let mode = follower.tracker.mode();
        follower.tallies.refinements += u64::from(refined.is_some());
        let policy = |mode| usize::from(mode == BeliefMode::Safe);
        let learned = Learned {
            policy: (policy(mode) != policy(before)).then_some(follower.policies[policy(mode)]),
            caution,
            is_turned: spindle != self.profile.spindle,
            is_refined: refined.is_some(),
            is_delayed: delayed.is_some(),
        };
        if learned.is_turned {
            Arc::make_mut(&mut self.profile).spindle = spindle;
        }
        if let Some(arm) = refined {
            self.refine(arm);
        }
        if let Some(delay) = delayed {
            self.delay(delay);
        }
        Some(learned)
    }

    /// A command has ended that the drive's buffer answered: it says nothing of the platter.
    pub(crate) fn track_silently(&mut self) {
        if let Some(follower) = &mut self.follower {
            follower.tallies.silent += 1;
            follower.tracker.travelled(None, (None, None), 0);
        }
    }

    /// The arm takes as long as `arm` says.
    pub(crate) fn refine(&mut self, arm: SeekCurve) {
        Arc::make_mut(&mut self.profile).seek = arm;
    }

    /// Commands arrive at the drive later by `delay` nanoseconds than in the original belief.
    fn delay(&mut self, delay: i64) {
        if let Some(follower) = &mut self.follower {
            follower.electronics.1 = delay;
            let overheads = follower.electronics.0.reached_later(delay);
            Arc::make_mut(&mut self.profile).overheads = overheads;
        }
    }
}

/// The revolutions by which a read is late at most, as counted for its head. A choice: a drive gives up far earlier.
const MOST_REVOLUTIONS: i64 = 1_000;

/// For how long no request must have been here before a calibration read goes. A choice: longer than
/// the pauses between the requests of one busy client, as [`Rules::idle_after`](crate::Rules).
const CALM: Duration = Duration::from_millis(10);

/// How many places are tried for one calibration read: of some blocks the belief may not know where
/// they are. A choice.
const PLACES: u32 = 8;

/// The block of the n-th calibration read: a known one, if the profile says which are.
pub(super) fn place(belief: &Profile, n: u64) -> Lba {
    let known = belief.confidence.as_ref().map_or(&[][..], |c| c.known());
    let blocks = known.iter().map(|extent| extent.length().0).sum();
    if blocks == 0 {
        return Lba(spread(n, belief.geometry.sectors().0));
    }
    let mut left = spread(n, blocks);
    for extent in known {
        match left.checked_sub(extent.length().0) {
            Some(rest) => left = rest,
            None => return Lba(extent.start().0 + left),
        }
    }
    Lba(0)
}

/// The n-th of many numbers below `blocks` that are far from each other, so that no buffer holds their
/// blocks: the golden section spreads them over the disk.
fn spread(n: u64, blocks: u64) -> u64 {
    let far = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((u128::from(far) * u128::from(blocks)) >> 64) as u64
}
