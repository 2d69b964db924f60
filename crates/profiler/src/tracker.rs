//! Keeps a profile accurate in service. The ends of ordinary commands show the position of the
//! platter, and how often the drive behaves as predicted.
//!
//! ```text
//!   expected end    ended       off by
//!        |            |<-error->|            a fraction of a revolution: the platter
//!        |<-- whole revolutions -->|         the way there took longer: the seek
//! ```
//!
//! A drive that deviates too often is not scheduled by position: see [`BeliefMode`].

use block::Instant;
use drive::{Certainty, SeekCurve, Spindle};

use crate::clock::PlatterClock;
use crate::confidence::Confidence;
use arm::ArmDrift;
use calibration::Calibration;
use host::HostDelay;

mod arm;
mod calibration;
mod host;
mod shift;

pub use arm::Travel;
pub use host::ArrivalSlack;

/// The permitted use of a belief.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BeliefMode {
    /// Selection by position, and free blocks in gaps.
    #[default]
    Positioning,
    /// Selection by position, and no plans: too few commands have agreed with the belief so far.
    ///
    /// Until that is decided, block order would cost a right belief more than a wrong one gains by it
    /// (docs/results/adopt.md).
    Unconfirmed,
    /// Block order (C-LOOK) only.
    Safe,
}

impl BeliefMode {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            BeliefMode::Positioning => "positioning",
            BeliefMode::Unconfirmed => "unconfirmed",
            BeliefMode::Safe => "safe",
        }
    }
}

/// The result of comparing a command's end with its prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictionOutcome {
    /// The command ended long before its blocks could pass under the head: a hit of the buffer.
    Buffered,
    /// The blocks passed a revolution earlier, or the buffer answered.
    Early,
    /// The blocks passed as predicted.
    AsBelieved,
    /// The blocks passed whole revolutions later.
    Late,
    /// The position of the blocks or of the platter deviates from the belief.
    Elsewhere,
}

/// The number of compared commands by which a belief is confirmed, if [`CONFIRMED_BY`] of them ended as
/// predicted: on a busy drive of 2000 those of two thirds of a second. A choice.
pub const CONFIRMING: u32 = 64;

/// The share of positioning's resumption. A belief that holds for half of the commands reaches it by
/// chance once in 10,000 times (four standard deviations of 64 tosses), a random one never.
pub const CONFIRMED_BY: u32 = 48;

/// The number of compared commands without a confirmation after which the mode is safe, even if the
/// agreement is not below [`SAFE_BELOW`]. A choice: that over which agreement is averaged later.
const UNCONFIRMED_FOR: u32 = 256;

/// Tracks a drive in service.
#[derive(Clone, Debug)]
pub struct Tracker {
    clock: PlatterClock,
    /// Moving average of commands that ended as predicted.
    agreement: f64,
    /// Moving average of commands whose blocks were elsewhere.
    elsewhere: f64,
    confirmation: Confirmation,
    mode: BeliefMode,
    /// How often positioning was given up, and taken up again.
    changes: u64,
    calibration: Calibration,
    arm: ArmDrift,
    host: HostDelay,
    /// Whether the position of the head is known since the last command.
    head: HeadKnowledge,
}

/// Whether the position of the head is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadKnowledge {
    Known,
    Unknown,
}

/// The first commands whose ends can be compared with the belief.
#[derive(Clone, Copy, Debug, Default)]
struct Confirmation {
    /// The last [`CONFIRMING`] of them, the newest in the lowest bit: set if it ended as predicted.
    ends: u64,
    /// Their number.
    compared: u32,
}

/// The weight of each command in the moving averages: a mean over about 256 commands, two to three
/// seconds of a busy drive. A choice: a change must show within ten seconds.
const FRESH: f64 = 1.0 / 256.0;

/// Below this agreement the mode is safe. A choice: if half of the predictions fail, selection by
/// position gains nothing over C-LOOK (a random angle costs half a revolution on average, as C-LOOK
/// does).
pub const SAFE_BELOW: f64 = 0.5;

/// Above this agreement positioning resumes. A choice: far enough to prevent oscillation.
pub const POSITIONING_ABOVE: f64 = 0.75;

/// The fraction of commands that end elsewhere on a correct belief: hits of the buffer that look
/// like media reads, and long transfers over the bus. It is up to 1 % on the drives that we ship;
/// five times that is a choice.
const USUAL: f64 = 0.05;

/// Maximum caution. A choice: safe mode plans nothing at all.
const MOST_CAUTION: f64 = 4.0;

/// Maximum distance of an end from a predicted passing, in revolutions. Three times the accuracy of
/// the phase (Yu et al. 2000: 1 %), since electronics and bus scatter, too.
const NEAR: f64 = 0.03;

/// An end that is earlier than predicted by more than this part of a revolution came from the
/// buffer. A choice: no seek is so much shorter than its mean.
const EARLY: f64 = 0.25;

impl Tracker {
    /// Tracks a drive with the believed `spindle`.
    pub fn new(spindle: Spindle, now: Instant) -> Self {
        Tracker {
            clock: PlatterClock::new(spindle.period_ps(), spindle.angle_at(now), now),
            agreement: 1.0,
            elsewhere: 0.0,
            confirmation: Confirmation::default(),
            mode: BeliefMode::Unconfirmed,
            changes: 0,
            calibration: Calibration::new(),
            arm: ArmDrift::new(),
            host: HostDelay::new(),
            head: HeadKnowledge::Unknown,
        }
    }

    /// The currently believed spindle.
    pub fn spindle(&self) -> Spindle {
        self.clock.spindle()
    }

    /// The current mode.
    pub fn mode(&self) -> BeliefMode {
        self.mode
    }

    /// How often positioning was given up, and taken up again.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The fraction of recent commands that ended as predicted.
    pub fn confidence(&self) -> Confidence {
        Confidence::of((self.agreement * 256.0) as u32, 256)
    }

    /// The factor by which plans must be more careful than usual; it grows with the fraction of
    /// wrong positions. Commands that are late by whole revolutions do not count: they concern
    /// seeks, which have a guard of their own.
    pub fn caution(&self) -> f64 {
        let more = (self.elsewhere - USUAL).max(0.0);
        (1.0 / (1.0 - more)).min(MOST_CAUTION)
    }

    /// Compares the end of a command of the medium with its prediction, and corrects the clock. By
    /// [`Self::spindle`], the last sector should have passed and its data should have been
    /// transferred at `expected`.
    pub fn observe(&mut self, expected: Instant, ended: Instant) -> PredictionOutcome {
        self.observe_from(Certainty::Known, expected, ended)
    }

    /// The same of a command whose blocks are known, from a place that may be guessed: the platter is where
    /// it is, but how long the way takes is guessed then, so that a late end counts neither way.
    pub fn observe_from(
        &mut self,
        source: Certainty,
        expected: Instant,
        ended: Instant,
    ) -> PredictionOutcome {
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
        let outcome = match (error.abs() <= NEAR, whole as i64) {
            (true, 0) => PredictionOutcome::AsBelieved,
            (true, _) => PredictionOutcome::Late,
            (false, _) => PredictionOutcome::Elsewhere,
        };
        if source == Certainty::Guessed && outcome == PredictionOutcome::Late {
            return outcome;
        }
        let agrees = u8::from(outcome == PredictionOutcome::AsBelieved);
        self.agreement += FRESH * (f64::from(agrees) - self.agreement);
        let elsewhere = f64::from(u8::from(outcome == PredictionOutcome::Elsewhere));
        self.elsewhere += FRESH * (elsewhere - self.elsewhere);
        match self.mode {
            BeliefMode::Unconfirmed => self.confirm(agrees),
            BeliefMode::Positioning | BeliefMode::Safe => self.set_mode(),
        }
        outcome
    }

    /// Reports the arm movement of the last command, and its slack at arrival. `outcome` is the result of
    /// [`Self::observe`], or `None` if the end is not informative. `revolutions` is the number of
    /// revolutions by which the command was late. Returns whether they are those of this command alone: the position
    /// of the head was known before.
    pub fn travelled(
        &mut self,
        outcome: Option<PredictionOutcome>,
        (travel, arrival): (Option<&Travel>, Option<&ArrivalSlack>),
        revolutions: i64,
    ) -> bool {
        let before = self.head;
        let is_seen = matches!(
            outcome,
            Some(
                PredictionOutcome::AsBelieved | PredictionOutcome::Late | PredictionOutcome::Early
            )
        );
        self.head = if is_seen {
            HeadKnowledge::Known
        } else {
            HeadKnowledge::Unknown
        };
        if (before, self.head) != (HeadKnowledge::Known, HeadKnowledge::Known) {
            return before == HeadKnowledge::Known;
        }
        let on_arrival = arrival.filter(|arrival| arrival.is_informative());
        if let Some(arrival) = on_arrival {
            self.host.observe(arrival, revolutions);
        }
        // A delay that is not known yet is not the arm's.
        if let Some(travel) = travel
            && (on_arrival.is_none() || self.host.is_settled())
        {
            self.arm.observe(travel, revolutions);
        }
        true
    }

    /// The time by which commands arrive later at the drive than in the original belief, in nanoseconds, if
    /// there is a new estimate.
    pub fn delayed(&mut self, now: Instant) -> Option<i64> {
        self.host.adopt(now)
    }

    /// The refined seek tables, derived from the original ones, if there is a new refinement.
    pub fn refined(&mut self, now: Instant, original: &SeekCurve) -> Option<SeekCurve> {
        self.arm.refined(now, original)
    }

    /// Counts a command of an unconfirmed belief, and ends the mode if that is decided.
    fn confirm(&mut self, agrees: u8) {
        let Confirmation { ends, compared } = &mut self.confirmation;
        *ends = *ends << 1 | u64::from(agrees);
        *compared += 1;
        if *compared < CONFIRMING {
            return;
        }
        let share = f64::from(ends.count_ones()) / f64::from(CONFIRMING);
        if ends.count_ones() >= CONFIRMED_BY {
            self.mode = BeliefMode::Positioning;
            self.agreement = share;
        } else if share < SAFE_BELOW || *compared >= UNCONFIRMED_FOR {
            self.mode = BeliefMode::Safe;
            self.agreement = share;
            self.changes += 1;
        }
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

    /// The time at which a calibration read is due if no other command shows the position of the
    /// platter. The interval keeps the phase within 1 % of a revolution, and is at most one minute
    /// (Yu et al. 2000).
    pub fn calibration_due(&self) -> Instant {
        self.calibration.due(self.clock.anchored_at())
    }

    /// Records the dispatch of a calibration read. Without a result the next one is due after twice
    /// the interval.
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

    /// From guessed places ways may take whole revolutions more than believed. The platter tells all the
    /// same whether the map is right.
    #[test]
    fn ends_of_known_blocks_confirm_from_guessed_places() {
        let period = 6_000_000;
        for (off, mode) in [(0, BeliefMode::Positioning), (period / 3, BeliefMode::Safe)] {
            let believed = Spindle::from_period_ps(period * 1000);
            let mut tracker = Tracker::new(believed, Instant::ZERO);
            for command in 0..2 * u64::from(CONFIRMING) {
                let expected = Instant::from_nanos(100_000_000 + command * 9_100_000);
                let late = Duration::from_nanos(off + command % 2 * period);
                tracker.observe_from(Certainty::Guessed, expected, expected + late);
            }
            assert_eq!(tracker.mode(), mode, "{off}");
        }
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
        assert_eq!(tracker.mode(), BeliefMode::Unconfirmed);
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
            let outcome = tracker.observe(given + Duration::from_millis(5), given);
            assert_eq!(outcome, PredictionOutcome::Buffered);
        }
        assert_eq!(tracker.spindle(), before);
        assert_eq!(tracker.mode(), BeliefMode::Unconfirmed);
    }

    /// A belief that is right in `agreeing` of 64 commands, in any order: the mode after each of 300.
    fn modes(agreeing: u64) -> Vec<BeliefMode> {
        let mut tracker = Tracker::new(Spindle::from_period_ps(6_000_000_000), Instant::ZERO);
        let mode = |command: u64| {
            // A bijection of 0..64 mixes the order.
            let agrees = (command * 37) % 64 < agreeing;
            // Errors of half a revolution and of a quarter, so that the clock believes none of them.
            let late = match agrees {
                true => 0,
                false => 1_500_000 + command % 2 * 1_500_000,
            };
            let expected = Instant::from_nanos(command * 9_000_000);
            tracker.observe(expected, expected + Duration::from_nanos(late));
            tracker.mode()
        };
        (1..=300).map(mode).collect()
    }

    #[test]
    fn a_belief_is_unconfirmed_until_enough_commands_agree() {
        let first = |modes: &[BeliefMode], wanted: BeliefMode| {
            modes
                .iter()
                .position(|&mode| mode == wanted)
                .map(|at| at + 1)
        };
        for agreeing in [48, 60, 64] {
            let modes = modes(agreeing);
            assert!(
                modes[..63]
                    .iter()
                    .all(|&mode| mode == BeliefMode::Unconfirmed)
            );
            assert_eq!(
                first(&modes, BeliefMode::Positioning),
                Some(64),
                "{agreeing}"
            );
        }
        for (agreeing, after) in [(0, 64), (20, 64), (31, 64), (32, 256), (47, 256)] {
            let modes = modes(agreeing);
            assert_eq!(first(&modes, BeliefMode::Positioning), None, "{agreeing}");
            assert_eq!(first(&modes, BeliefMode::Safe), Some(after), "{agreeing}");
        }
    }
}
