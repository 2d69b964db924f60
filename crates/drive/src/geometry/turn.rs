//! Corrections of a layout's angles, and the steps of the layout that they apply to.
//!
//! A layout is a pattern of patterns, from the whole drive to the track. Each step of the path to
//! a block has a run of a pattern and one of its repetitions. A [`Turn`] adds to the starting angle
//! of a run, and to the angle between its repetitions.

use crate::angle::Angle;

/// One step of the path from the whole drive to a block's track.
///
/// A drive of zones has two. The first is group 0, with the zone as run and its cylinder as
/// repetition. The second is group `1 + zone`, run 0, with the track's index in the cylinder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternStep {
    /// The pattern.
    pub group: u32,
    /// The run of the pattern.
    pub run: u32,
    /// The repetition of the run, from 0.
    pub repetition: u64,
}

/// A correction that was fitted to measurements. Published starting angles of zones are mostly
/// zero, and an error of a published angle step adds up over many tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The pattern.
    pub group: u32,
    /// The run of the pattern.
    pub run: u32,
    /// The addition to the run's starting angle.
    pub start: Angle,
    /// The addition to the angle between two repetitions.
    pub step: Angle,
}

/// Adds `more` to `turns`, which stay in the order of group and run and without zeros.
pub(super) fn combined(turns: &[Turn], more: &[Turn]) -> Vec<Turn> {
    let mut all = turns.to_vec();
    for turn in more {
        let key = |t: &Turn| (t.group, t.run);
        match all.binary_search_by_key(&key(turn), key) {
            Ok(place) => {
                all[place].start = all[place].start + turn.start;
                all[place].step = all[place].step + turn.step;
            }
            Err(place) => all.insert(place, *turn),
        }
    }
    all.retain(|turn| turn.start != Angle::ZERO || turn.step != Angle::ZERO);
    all
}
