//! What to read in a gap: the plan with the most wanted blocks, and what to read when idle.
//!
//! Lumb, Schindler, Ganger, FAST 2002, 4.3: B's track first, then outward from A and B; the best so
//! far counts. Beyond them, bounds on what a place can give end the search as soon as nothing
//! better is possible ([`Reach::tracks`] ends it sooner).
//!
//! Of plans with equally many wanted blocks the one that is found first is taken: in one command
//! with B, then on B's cylinder, on A's, and then the nearer ones.

mod goal;
mod ground;
mod idle;
mod merged;
mod outline;
mod route;
mod search;
mod turning;
mod visit;

use std::sync::Arc;

use drive::{Profile, SeekCurve, Spindle};

use super::{Gap, GapPlan, Reach, WantedBlocks};
use goal::Worth;
use ground::SearchBounds;
use route::Planning;

/// How many tracks a search looks at that has to be done in 20 microseconds, for
/// [`Reach::tracks`].
///
/// CPU time per gap, measured with the gaps of `benches/freeblock.rs` (guards of 0.3 ms, depth 4 SPTF)
/// at 20 TB with 1 % of the blocks left: at random places 256, 512, 768, 1,024 and 2,048 tracks take
/// 6, 11, 15, 19 and 35 microseconds, and find 64, 73, 78, 82 and 89 % of the blocks that a search
/// without limit finds in 270; in clusters 768 take 7 and find 99 % of what one finds in 24.
pub const ANYTIME_TRACKS: u32 = 768;

/// Plans by one belief about a drive.
#[derive(Clone, Debug)]
pub struct Planner {
    profile: Arc<Profile>,
    ground: SearchBounds,
}

impl Planner {
    /// A planner that believes in a profile.
    pub fn new(profile: Arc<Profile>) -> Self {
        let ground = SearchBounds::new(&profile);
        Planner { profile, ground }
    }

    /// The platter is where `spindle` says, from now on.
    pub fn turn(&mut self, spindle: Spindle) {
        Arc::make_mut(&mut self.profile).spindle = spindle;
    }

    /// The arm takes as long as `seek` says, from now on.
    pub fn refine(&mut self, seek: &SeekCurve) {
        let profile = Arc::make_mut(&mut self.profile);
        profile.seek = seek.clone();
        self.ground.refine(profile);
    }

    /// The best plan by [`Reach::goal`], if anything can be read.
    ///
    /// With [`Reach::stops`] 1 no plan is better, unless [`Reach::tracks`] ended the search; further
    /// stops are added one by one where they gain most. A region that is left out by its bound counts
    /// as a track that was looked at.
    ///
    /// # Panics
    /// If the set is of a drive with more cylinders than the profile's.
    pub fn plan(&mut self, wanted: &WantedBlocks, gap: &Gap, reach: &Reach) -> Option<GapPlan> {
        if wanted.left() == 0 {
            return None;
        }
        let mut planning = Planning {
            profile: &self.profile,
            ground: &self.ground,
            wanted,
            gap,
            reach,
            worth: Worth::new(reach.goal, self.ground.sparse()),
            left: reach.tracks,
        };
        let route = planning.best();
        planning.plan(&route)
    }
}
