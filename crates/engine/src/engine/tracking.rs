//! The belief kept true while it serves: every command's end tells where the platter is, and how
//! far the belief can be trusted.
//!
//! Below a stated confidence the engine is in *safe mode*: C-LOOK, no free blocks, no reads in idle
//! time. Commands go on telling, and when they agree again, positioning comes back.

use std::sync::Arc;

use block::{Direction, Duration, Extent, Instant, Lba, Outcome};
use drive::{SeekCurve, Spindle};
use profiler::Confidence;
use profiler::tracker::{Mode, Told, Tracker, Travel};
use scheduler::policy::{NamedPolicy, find};

use super::Engine;
use crate::forecast::{Course, Route};
use crate::sent::{Purpose, Sent};

/// What an engine needs to follow its drive.
pub(super) struct Tracking {
    tracker: Tracker,
    /// Who chooses while positions can be trusted, and while not.
    policies: [NamedPolicy; 2],
    told: Tallies,
    /// Places that were tried for calibration reads.
    places: u64,
    /// The arm as it was believed to be at the beginning.
    arm: SeekCurve,
}

/// For how long no request must have been here before a calibration read goes. A choice: longer than
/// the pauses between the requests of one busy client, as [`Rules::idle_after`](crate::Rules).
const CALM: Duration = Duration::from_millis(10);

/// How many places are tried for one calibration read: of some blocks the belief may not know where
/// they are. A choice.
const PLACES: u32 = 8;

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

impl Engine {
    /// The engine, following its drive; `policy` chooses while positions can be trusted.
    ///
    /// # Panics
    /// If requests are already here.
    pub fn with_tracking(mut self, policy: NamedPolicy) -> Self {
        assert_eq!(self.held(), 0, "tracking begins before requests come");
        let safe = find("c-look").expect("a policy of the table");
        self.tracking = Some(Box::new(Tracking {
            tracker: Tracker::new(self.belief.spindle, self.now),
            policies: [policy, safe],
            told: Tallies::default(),
            places: 0,
            arm: self.belief.seek.clone(),
        }));
        self
    }

    /// What the belief is used for at present.
    pub fn mode(&self) -> Mode {
        let tracking = self.tracking.as_ref();
        tracking.map_or(Mode::Positioning, |tracking| tracking.tracker.mode())
    }

    /// How far the belief can be trusted, if the engine follows its drive.
    pub fn confidence(&self) -> Option<Confidence> {
        Some(self.tracking.as_ref()?.tracker.confidence())
    }

    /// What the ends of commands have said of the belief, if the engine follows its drive.
    pub fn told(&self) -> Option<Tallies> {
        let tracking = self.tracking.as_ref()?;
        Some(Tallies {
            changes: tracking.tracker.changes(),
            ..tracking.told
        })
    }

    /// When a calibration read is due, if nothing else happens: never in front of a request, and not
    /// soon after one.
    pub(super) fn calibration_due(&self) -> Option<Instant> {
        let tracking = self.tracking.as_ref()?;
        Some(tracking.tracker.calibration_due().max(self.busy + CALM))
    }

    /// The block to read now that a calibration read is due; `None` if none is.
    pub(super) fn calibration(&mut self, now: Instant) -> Option<Extent> {
        if self.calibration_due()? > now {
            return None;
        }
        let tracking = self.tracking.as_mut()?;
        tracking.tracker.calibrate(now);
        for _ in 0..PLACES {
            tracking.places += 1;
            let extent = Extent::block(spread(tracking.places, self.capacity.0));
            if Route::new(&self.belief, extent, Direction::Read).is_some() {
                tracking.told.calibrations += 1;
                return Some(extent);
            }
        }
        None
    }

    /// A command has ended: its head time is the calibration's if it was one.
    pub(super) fn count_calibration(&mut self, sent: &Sent, outcome: &Outcome) {
        if let (Some(tracking), Purpose::Calibration, Some(account)) =
            (&mut self.tracking, &sent.purpose, outcome.account)
        {
            tracking.told.calibration_time += account.head();
        }
    }

    /// A command has ended at `now` that was believed to go like `course`.
    pub(super) fn track(&mut self, now: Instant, course: &Course, route: &Route) {
        let Some(tracking) = &mut self.tracking else {
            return;
        };
        let expected = route.told(&self.belief, course, self.ended_last, now);
        let Some(expected) = expected.filter(|_| course.pass.wrapped.is_zero()) else {
            return self.track_silently();
        };
        let before = tracking.tracker.mode();
        let told = tracking.tracker.observe(expected, now);
        let tally = match told {
            Told::Buffered | Told::Early => &mut tracking.told.buffered,
            Told::AsBelieved => &mut tracking.told.as_believed,
            Told::Late => &mut tracking.told.late,
            Told::Elsewhere => &mut tracking.told.elsewhere,
        };
        *tally += 1;
        let period = self.belief.spindle.period();
        let travel = Travel {
            direction: route.direction(),
            distance: course.distance,
            wait: course.pass.rotation,
            period,
        };
        // A head switch that takes longer hides the seek.
        let travel = (course.pass.seek > self.belief.head_switch).then_some(&travel);
        let late = now.as_nanos() as i64 - expected.as_nanos() as i64;
        let turn = period.as_nanos() as i64;
        let revolutions = (late + turn / 2).div_euclid(turn);
        tracking.tracker.travelled(Some(told), travel, revolutions);
        let refined = tracking.tracker.refined(now, &tracking.arm);
        let (spindle, caution) = (tracking.tracker.spindle(), tracking.tracker.caution());
        let mode = tracking.tracker.mode();
        if mode != before {
            self.change_mode(mode);
        }
        if let Some(background) = &mut self.background {
            background.conservatism_mut().widen(caution);
        }
        self.turn(spindle);
        if let Some(arm) = refined {
            self.refine(arm);
        }
    }

    /// A command has ended that the drive's buffer answered: it says nothing of the platter.
    pub(super) fn track_silently(&mut self) {
        if let Some(tracking) = &mut self.tracking {
            tracking.told.silent += 1;
            tracking.tracker.travelled(None, None, 0);
        }
    }

    /// Another policy chooses.
    fn change_mode(&mut self, mode: Mode) {
        let Some(tracking) = &self.tracking else {
            return;
        };
        let policy = tracking.policies[usize::from(mode == Mode::Safe)];
        // What was chosen by the belief is chosen again.
        self.turn_back();
        self.ordering.adopt(&|| policy.make());
        self.settled = false;
    }

    /// The arm takes as long as `arm` says.
    fn refine(&mut self, arm: SeekCurve) {
        if let Some(tracking) = &mut self.tracking {
            tracking.told.refinements += 1;
        }
        Arc::make_mut(&mut self.belief).seek = arm;
        // What was chosen by the belief is chosen again.
        self.turn_back();
        self.settled = false;
        if let Some(background) = &mut self.background {
            background.refine(&self.belief);
        }
        self.relearn_head_times();
    }

    /// The platter is where `spindle` says.
    fn turn(&mut self, spindle: Spindle) {
        if spindle == self.belief.spindle {
            return;
        }
        Arc::make_mut(&mut self.belief).spindle = spindle;
        if let Some(background) = &mut self.background {
            background.turn(spindle);
        }
    }
}

/// The block of the n-th of many reads that are far from each other, so that no buffer holds them: the
/// golden section spreads them over the disk.
fn spread(n: u64, blocks: u64) -> Lba {
    let far = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Lba(((u128::from(far) * u128::from(blocks)) >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Limits;
    use crate::guarantees::{Beyond, FOREGROUND_BYTES};
    use crate::streams::{NotGranted, Promise};
    use block::{Sectors, Terms};
    use drive::{SeekTable, catalog};
    use stream::admission::{Promises, Reason, Rules};
    use stream::quota::Quotas;
    use stream::streams::Attach;
    use stream::streams::Settings;
    use stream::{LocationMap, Piece};

    const MB: u64 = 1_000_000;

    /// The arm, so much slower.
    fn slower(arm: &SeekCurve, by: Duration) -> SeekCurve {
        let [read, write] = [arm.read(), arm.write()].map(|table| {
            let points = table.points().map(|(distance, time)| (distance, time + by));
            SeekTable::new(points.collect(), table.cylinders()).expect("as valid as before")
        });
        SeekCurve::new(read, write)
    }

    fn film(number: u64) -> Attach {
        let extent = Extent::new(Lba(number * 40_000_000), Sectors(25_000));
        let piece = Piece {
            offset: 0,
            extent: extent.expect("blocks"),
        };
        Attach {
            user: 0,
            terms: Terms {
                name: "film".to_owned(),
                memory: Some(4 * MB),
                ..Terms::play(MB, 64 * 1024)
            },
            map: LocationMap::new(vec![piece], 4096, 100 * MB).expect("a valid map"),
        }
    }

    #[test]
    fn what_is_promised_follows_the_arm_and_promises_stand() {
        let entry = catalog::find("modern-20tb").expect("a shipped drive");
        let belief = Arc::new(entry.profile().expect("a valid profile"));
        let arm = belief.seek.clone();
        let policy = find("sptf").expect("a policy of the table");
        let engine = Engine::new(belief, &|| policy.make(), Limits::default());
        let promise = Promise {
            beyond: Beyond::default(),
            rules: Rules {
                foreground_permille: 0,
                latency: Duration::from_millis(10),
                longest_round: Duration::from_secs(10),
                streams: 1_000,
            },
            quotas: Quotas::open(),
            settings: Settings {
                page: 4096,
                fill: FOREGROUND_BYTES,
                priority: 0,
            },
            place: None,
        };
        let engine = engine.with_guarantees(promise).expect("a seek curve");
        let mut engine = engine.with_tracking(policy);
        let fits = |engine: &mut Engine| {
            let number = engine.streams().count() as u64;
            engine.attach(Instant::ZERO, film(number))
        };
        while fits(&mut engine).is_ok() {}
        let count = engine.streams().count();
        assert_eq!(engine.promises(), Some(Promises::Kept));
        let plan = engine.rounds_plan();

        engine.refine(slower(&arm, Duration::from_millis(1)));
        assert_eq!(engine.promises(), Some(Promises::Strained));
        assert_eq!(
            (engine.rounds_plan(), engine.streams().count()),
            (plan, count)
        );
        let refused = fits(&mut engine).expect_err("what is there is too much");
        let NotGranted::Refused(refusal) = refused else {
            panic!("{refused}");
        };
        assert_eq!(refusal.reason, Reason::Strained);

        engine.refine(arm);
        assert_eq!(engine.promises(), Some(Promises::Kept));
        assert_eq!(engine.rounds_plan(), plan);
    }
}
