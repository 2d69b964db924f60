//! The planner: the plan with the most wanted blocks for a gap, and the next read of an idle drive.
//!
//! Lumb, Schindler, Ganger, FAST 2002, 4.3: B's track first, then outward from A and B, with the
//! best plan so far. Here bounds on the yield of a place end the search when nothing better is
//! possible. [`PlanRules::tracks`] ends it sooner.
//!
//! Where only a part of the tracks was measured, plans read no others. Reads in idle time do.
//!
//! Among plans of equal worth the first one counts: in one command with B, then on B's cylinder, on
//! A's, and then the nearer ones.

mod goal;
mod ground;
mod idle;
mod known;
mod merged;
mod outline;
mod route;
mod search;
mod sieve;
mod turning;
mod visit;

use std::sync::Arc;

use drive::{Profile, SeekCurve, Spindle};

use super::{Gap, GapPlan, PlanRules, WantedBlocks};
use goal::Worth;
use ground::SearchBounds;
use route::Planning;

/// The value of [`PlanRules::tracks`] for a search within 20 microseconds.
///
/// Measured CPU time per gap at 20 TB with 1 % of the blocks left; gaps of `benches/freeblock.rs`
/// (guards of 0.3 ms, depth 4 SPTF):
///
/// | Blocks | Tracks | Microseconds | Share of the unlimited search's yield |
/// |---|---|---|---|
/// | at random places | 256, 512, 768, 1,024, 2,048 | 6, 11, 15, 19, 35 | 64, 73, 78, 82, 89 % |
/// | at random places | unlimited | 270 | 100 % |
/// | in clusters | 768 | 7 | 99 % |
/// | in clusters | unlimited | 24 | 100 % |
pub const ANYTIME_TRACKS: u32 = 768;

/// A planner with a belief about a drive.
#[derive(Clone, Debug)]
pub struct Planner {
    profile: Arc<Profile>,
    ground: SearchBounds,
}

impl Planner {
    /// A planner that believes `profile`.
    pub fn new(profile: Arc<Profile>) -> Self {
        let ground = SearchBounds::new(&profile);
        Planner { profile, ground }
    }

    /// Corrects the believed rotation.
    pub fn turn(&mut self, spindle: Spindle) {
        Arc::make_mut(&mut self.profile).spindle = spindle;
    }

    /// Corrects the believed seek curve.
    pub fn refine(&mut self, seek: &SeekCurve) {
        let profile = Arc::make_mut(&mut self.profile);
        profile.seek = seek.clone();
        self.ground.refine(profile);
    }

    /// The best plan by [`PlanRules::goal`], if anything can be read.
    ///
    /// With [`PlanRules::stops`] 1 the plan is optimal, unless [`PlanRules::tracks`] ended the
    /// search. Further stops are added one by one where they gain most. A region that its bound
    /// excludes counts as a visited track.
    ///
    /// # Panics
    /// If the set is of a drive with more cylinders than the profile's.
    pub fn plan(&mut self, wanted: &WantedBlocks, gap: &Gap, rules: &PlanRules) -> Option<GapPlan> {
        if wanted.left() == 0 {
            return None;
        }
        let mut planning = Planning {
            profile: &self.profile,
            ground: &self.ground,
            wanted,
            gap,
            rules,
            worth: Worth::new(rules.goal, self.ground.sparse()),
            left: rules.tracks,
        };
        let route = planning.best();
        planning.plan(&route)
    }
}
