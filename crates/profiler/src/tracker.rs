//! Keeps a profile true while it serves: the completions of ordinary commands tell whether the
//! platter is where it is believed to be, and how often the drive does what is believed.
//!
//! ```text
//!   expected end    ended       off by
//!        |            |<-error->|            a fraction of a revolution: the platter
//!        |<-- whole revolutions -->|         the way there took longer: the seek
//! ```
//!
//! A drive that disagrees too often is not scheduled by position: see [`BeliefMode`].

use block::Instant;
use drive::{SeekCurve, Spindle};

use crate::clock::PlatterClock;
use crate::confidence::Confidence;
use arm::ArmDrift;
use calibration::Calibration;

mod arm;
mod calibration;

pub use arm::Travel;

/// What a belief is good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BeliefMode {
    /// Choosing by position, and filling gaps.
    #[default]
    Positioning,
    /// Neither: the order of the blocks (C-LOOK) is all that is used of it.
    Safe,
}

impl BeliefMode {
    /// The word of reports.
    pub fn name(self) -> &'static str {
        match self {
            BeliefMode::Positioning => "positioning",
            BeliefMode::Safe => "safe",
        }
    }
}

/// What one command's end said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictionOutcome {
    /// It ended long before its blocks could pass under the head: the buffer answered.
    Buffered,
    /// Its blocks passed a revolution earlier, or the buffer answered.
    Early,
    /// Its blocks passed when they were believed to.
    AsBelieved,
    /// They passed whole revolutions later.
    Late,
    /// They are not where they are believed to be, or the platter is not.
    Elsewhere,
}

/// Follows a drive in service.
#[derive(Clone, Debug)]
pub struct Tracker {
    clock: PlatterClock,
    /// The share of commands that went as believed, lately.
    agreement: f64,
    /// The share of those whose blocks were elsewhere.
    elsewhere: f64,
    mode: BeliefMode,
    /// How often the mode has changed.
    changes: u64,
    calibration: Calibration,
    arm: ArmDrift,
    /// Whether the head is known since the last command.
    head: HeadKnowledge,
}

/// What the last command told of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadKnowledge {
    Known,
    Unknown,
}

/// The share of the agreement that each command sets anew: an average over about 256, two to three
/// seconds of a busy drive. A choice: a change must have been noticed within ten seconds.
const FRESH: f64 = 1.0 / 256.0;

/// Below this agreement the mode is safe. A choice: where half of the predictions fail, choosing by
/// position gains nothing over C-LOOK (a random angle costs half a revolution on average, as C-LOOK
/// does).
const SAFE_BELOW: f64 = 0.5;

/// Above this agreement positioning comes back. A choice: not so near that the mode flaps.
const POSITIONING_ABOVE: f64 = 0.75;

/// The share of commands that end elsewhere though all is well: answers of the buffer that look like
/// the medium's, long transfers over the bus. On the drives that we ship up to 1 %; five times that is
/// a choice.
const USUAL: f64 = 0.05;

/// No more careful than that many times. A choice: in safe mode nothing is planned at all.
const MOST_CAUTION: f64 = 4.0;

/// An end within this part of a revolution of a believed passing was one. Three times what the
/// phase is kept to (Yu et al. 2000: 1 %): electronics and bus scatter, too.
const NEAR: f64 = 0.03;

/// An end that is earlier than believed by more than this part of a revolution was the buffer's. A
/// choice: no seek is so much shorter than its mean.
const EARLY: f64 = 0.25;

impl Tracker {
    /// Follows a drive whose platter is believed to turn as `spindle` says.
    pub fn new(spindle: Spindle, now: Instant) -> Self {
        Tracker {
            clock: PlatterClock::new(spindle.period_ps(), spindle.angle_at(now), now),
            agreement: 1.0,
            elsewhere: 0.0,
            mode: BeliefMode::Positioning,
            changes: 0,
            calibration: Calibration::new(),
            arm: ArmDrift::new(),
            head: HeadKnowledge::Unknown,
        }
    }

    /// The platter as it is now believed to turn.
    pub fn spindle(&self) -> Spindle {
        self.clock.spindle()
    }

    /// What the belief is good for at present.
    pub fn mode(&self) -> BeliefMode {
        self.mode
    }

    /// How often that has changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The share of commands that lately went as believed.
    pub fn confidence(&self) -> Confidence {
        Confidence::of((self.agreement * 256.0) as u32, 256)
    }

    /// How many times as careful as usual plans should be: the fewer places can be trusted, the more.
    /// Commands that are late by whole revolutions do not count, they tell of seeks, for which a
    /// guard is made.
    pub fn caution(&self) -> f64 {
        let more = (self.elsewhere - USUAL).max(0.0);
        (1.0 / (1.0 - more)).min(MOST_CAUTION)
    }

    /// A command of the medium ended at `ended`; by [`Self::spindle`] its last sector was believed
    /// to have passed, and its data to be through, at `expected`.
    pub fn observe(&mut self, expected: Instant, ended: Instant) -> PredictionOutcome {
        let period = self.clock.period();
        let late = ended.as_nanos() as f64 - expected.as_nanos() as f64;
        let turns = late / period;
        let whole = turns.round();
        if turns < -EARLY {
            let is_passing = whole == -1.0 && (turns - whole).abs() <= NEAR;
            return if is_passing {
                PredictionOutcome::Early
            } else {
                PredictionOutcome::Buffered
            };
        }
        let angle = self.clock.angle_at(expected);
        let before = self.clock.anchored_at();
        let error = self.clock.anchor(angle, ended);
        if self.clock.anchored_at() > before {
            self.calibration.anchored(ended.since(before), error);
        }
        let told = match (error.abs() <= NEAR, whole as i64) {
            (true, 0) => PredictionOutcome::AsBelieved,
            (true, _) => PredictionOutcome::Late,
            (false, _) => PredictionOutcome::Elsewhere,
        };
        let agrees = f64::from(u8::from(told == PredictionOutcome::AsBelieved));
        self.agreement += FRESH * (agrees - self.agreement);
        let elsewhere = f64::from(u8::from(told == PredictionOutcome::Elsewhere));
        self.elsewhere += FRESH * (elsewhere - self.elsewhere);
        self.set_mode();
        told
    }

    /// The last command went like `travel`, and [`Self::observe`] answered `told`; `None` if its end
    /// tells nothing. Of a command that ended late the answer is whether it lost one revolution only,
    /// which a seek can, and of `revolutions` how many.
    pub fn travelled(
        &mut self,
        told: Option<PredictionOutcome>,
        travel: Option<&Travel>,
        revolutions: i64,
    ) {
        let before = self.head;
        let is_seen = matches!(
            told,
            Some(
                PredictionOutcome::AsBelieved | PredictionOutcome::Late | PredictionOutcome::Early
            )
        );
        self.head = if is_seen {
            HeadKnowledge::Known
        } else {
            HeadKnowledge::Unknown
        };
        if let (HeadKnowledge::Known, HeadKnowledge::Known, Some(travel)) =
            (before, self.head, travel)
        {
            self.arm.observe(travel, revolutions);
        }
    }

    /// The seek tables, refined from those of the beginning, if there is something new to adopt.
    pub fn refined(&mut self, now: Instant, original: &SeekCurve) -> Option<SeekCurve> {
        self.arm.refined(now, original)
    }

    fn set_mode(&mut self) {
        let mode = match self.mode {
            BeliefMode::Positioning if self.agreement < SAFE_BELOW => BeliefMode::Safe,
            BeliefMode::Safe if self.agreement > POSITIONING_ABOVE => BeliefMode::Positioning,
            mode => mode,
        };
        self.changes += u64::from(mode != self.mode);
        self.mode = mode;
    }

    /// When a block should be read only to see where the platter is, if nothing else tells before: so
    /// often that the phase stays within 1 % of a revolution, and once a minute (Yu et al. 2000).
    pub fn calibration_due(&self) -> Instant {
        self.calibration.due(self.clock.anchored_at())
    }

    /// Such a read is given to the drive. If its end brings nothing it is due again, after twice as
    /// long each time.
    pub fn calibrate(&mut self, now: Instant) {
        self.calibration.ask(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::Duration;
    use drive::Angle;

    /// A drive whose platter turns as `truth` says, read at random angles every `every` nanoseconds.
    /// Answers with the ends that were as believed.
    fn serve(tracker: &mut Tracker, truth: Spindle, from: u64, commands: u64) -> u64 {
        let mut good = 0;
        for command in 0..commands {
            let given = Instant::from_nanos(from + command * 9_000_000);
            let angle = Angle::from_raw((from + command).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let expected = given + tracker.spindle().wait(given, angle);
            let ended = given + truth.wait(given, angle);
            good += u64::from(tracker.observe(expected, ended) == PredictionOutcome::AsBelieved);
        }
        good
    }

    #[test]
    fn it_follows_a_spindle_that_changes_its_speed() {
        let believed = Spindle::from_period_ps(6_000_000_000);
        let mut tracker = Tracker::new(believed, Instant::ZERO);
        // 300 ppm slower from then on: 4.5 % of a revolution in each second.
        let slower = Spindle::from_period_ps(6_001_800_000);
        let at = Instant::from_nanos(9_000_000_000);
        assert_eq!(serve(&mut tracker, believed, 0, 1000), 1000);
        let slower = slower.with_phase(believed.angle_at(at) - slower.angle_at(at));
        assert!(serve(&mut tracker, slower, 9_000_000_000, 1000) > 980);
        let found = tracker.spindle().period_ps() as f64 / 6_001_800_000.0;
        assert!((found - 1.0).abs() < 5e-6, "{found}");
        assert_eq!(tracker.mode(), BeliefMode::Positioning);
    }

    /// A profile does not say where the platter is when a service begins.
    #[test]
    fn it_finds_the_platter_wherever_it_is_at_the_beginning() {
        let believed = Spindle::from_period_ps(6_000_000_000);
        for tenth in 1..10 {
            let truth = believed.with_phase(Angle::fraction(tenth, 10));
            let mut tracker = Tracker::new(believed, Instant::ZERO);
            serve(&mut tracker, truth, 0, 100);
            let good = serve(&mut tracker, truth, 900_000_000, 1000);
            assert_eq!(
                (good, tracker.mode()),
                (1000, BeliefMode::Positioning),
                "{tenth}"
            );
        }
    }

    #[test]
    fn a_drive_that_disagrees_is_served_safely_until_it_agrees_again() {
        let believed = Spindle::from_period_ps(6_000_000_000);
        let mut tracker = Tracker::new(believed, Instant::ZERO);
        let mut at = 0;
        let mut observe = |tracker: &mut Tracker, scatter: u64| {
            for command in 0..1000u64 {
                at += 9_000_000;
                let late = (command * 2_654_435_761) % scatter;
                let expected = Instant::from_nanos(at);
                tracker.observe(expected, expected + Duration::from_nanos(late));
            }
        };
        observe(&mut tracker, 100_000);
        assert_eq!(
            (tracker.mode(), tracker.caution()),
            (BeliefMode::Positioning, 1.0)
        );
        observe(&mut tracker, 6_000_000);
        assert_eq!((tracker.mode(), tracker.changes()), (BeliefMode::Safe, 1));
        assert!(tracker.confidence().share() < 0.3);
        assert_eq!(tracker.caution(), MOST_CAUTION);
        observe(&mut tracker, 100_000);
        assert_eq!(
            (tracker.mode(), tracker.changes()),
            (BeliefMode::Positioning, 2)
        );
    }

    #[test]
    fn answers_of_the_buffer_say_nothing() {
        let mut tracker = Tracker::new(Spindle::from_period_ps(6_000_000_000), Instant::ZERO);
        let before = tracker.spindle();
        for command in 1..1000 {
            let given = Instant::from_nanos(command * 9_000_000);
            let told = tracker.observe(given + Duration::from_millis(5), given);
            assert_eq!(told, PredictionOutcome::Buffered);
        }
        assert_eq!(tracker.spindle(), before);
        assert_eq!(tracker.mode(), BeliefMode::Positioning);
    }
}
