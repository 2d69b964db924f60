//! The belief kept true while it serves: every command's end tells where the platter is, and how
//! far the belief can be trusted.
//!
//! Below a stated confidence the engine is in *safe mode*: C-LOOK, no free blocks, no reads in idle
//! time. Commands go on telling, and when they agree again, positioning comes back.

use std::sync::Arc;

use block::Instant;
use drive::Spindle;
use profiler::Confidence;
use profiler::tracker::{Mode, Told, Tracker};
use scheduler::policy::{NamedPolicy, find};

use super::Engine;
use crate::forecast::{Course, Route};

/// What an engine needs to follow its drive.
pub(super) struct Tracking {
    tracker: Tracker,
    /// Who chooses while positions can be trusted, and while not.
    policies: [NamedPolicy; 2],
    told: Tallies,
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
    /// Those whose ends say nothing of the platter: see [`Route::tells`].
    pub silent: u64,
    /// How often positioning was given up, and taken up again.
    pub changes: u64,
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

    /// A command has ended at `now` that was believed to go like `course`.
    pub(super) fn track(&mut self, now: Instant, course: &Course, route: &Route) {
        let Some(tracking) = &mut self.tracking else {
            return;
        };
        if !course.pass.wrapped.is_zero() || !route.tells(&self.belief) {
            tracking.told.silent += 1;
            return;
        }
        let expected = course.head.free + route.tail(&self.belief, &course.pass);
        let before = tracking.tracker.mode();
        let told = tracking.tracker.observe(expected, now);
        let tally = match told {
            Told::Buffered => &mut tracking.told.buffered,
            Told::AsBelieved => &mut tracking.told.as_believed,
            Told::Late => &mut tracking.told.late,
            Told::Elsewhere => &mut tracking.told.elsewhere,
        };
        *tally += 1;
        let mode = tracking.tracker.mode();
        if mode != before {
            let policy = tracking.policies[usize::from(mode == Mode::Safe)];
            // What was chosen by the belief is chosen again.
            self.turn_back();
            self.ordering.adopt(&|| policy.make());
            self.settled = false;
        }
        let Some(tracking) = &self.tracking else {
            return;
        };
        let (spindle, caution) = (tracking.tracker.spindle(), tracking.tracker.caution());
        if let Some(background) = &mut self.background {
            background.conservatism_mut().widen(caution);
        }
        self.turn(spindle);
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
