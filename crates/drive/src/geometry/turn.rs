//! Corrections of angles, and the steps of a layout that they belong to.
//!
//! A layout is a pattern of patterns, from the outermost to the track. Each step of that way
//! names the pattern's run and which of its repetitions a block is in; a [`Turn`] adds to the
//! angle at which a run starts, and to the angle from each of its repetitions to the next.

use crate::angle::Angle;

/// One step on the way from the whole drive to a block's track.
///
/// A drive of zones has two: group 0, the zone, and which of its cylinders; then group
/// `1 + zone`, run 0, and the how-manieth track of the cylinder it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternStep {
    /// The pattern.
    pub group: u32,
    /// Which run of it.
    pub run: u32,
    /// Which repetition of the run.
    pub repetition: u64,
}

/// A correction that was fitted to measurements: published zone start angles are mostly zero,
/// and a published angle step may be off by what adds up over many tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The pattern.
    pub group: u32,
    /// Which run of it.
    pub run: u32,
    /// What is added where the run starts.
    pub start: Angle,
    /// What is added from each repetition to the next.
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
