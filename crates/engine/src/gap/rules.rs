//! The rules of background reads.

use block::{Duration, Switch};
use scheduler::freeblock::{ANYTIME_TRACKS, Caution, Goal, Ranges, SameTrack};

/// How background reads are fitted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Rules {
    /// How careful plans are.
    pub caution: Caution,
    /// Commands of their own on the tracks of the foreground commands.
    pub same_track: SameTrack,
    /// Ranges a track.
    pub ranges: Ranges,
    /// What makes one plan better than another.
    pub goal: Goal,
    /// Stops on one way.
    pub stops: u8,
    /// At most how many tracks are looked at for one gap.
    pub tracks: u32,
    /// For how long no foreground request must have been there before background reads go by
    /// themselves; `None`: they never do.
    pub idle_after: Option<Duration>,
    /// The longest read in idle time, in blocks: what a foreground request may have to wait for.
    pub idle_blocks: u32,
    /// The share of head time that may be spent on background reads, in parts per million.
    pub paid_ppm: u32,
    /// Whether a learned guard withholds plans to measure its loss. A service always does, so that no setting states
    /// it.
    #[serde(skip, default = "withheld")]
    pub control_group: Switch,
}

fn withheld() -> Switch {
    Switch::On
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            caution: Caution::default(),
            same_track: SameTrack::Never,
            ranges: Ranges::One,
            goal: Goal::Blocks,
            stops: 1,
            tracks: ANYTIME_TRACKS,
            // Choice: longer than the pauses between the requests of one busy client.
            idle_after: Some(Duration::from_nanos(10_000_000)),
            // Choice: no more than a track of a drive of 2020, about two revolutions.
            idle_blocks: 2048,
            paid_ppm: 0,
            control_group: withheld(),
        }
    }
}
