//! How a captured engine fits background reads in.

use engine::Rules;
use scheduler::freeblock::{Caution, Goal, Ranges, SameTrack};

use super::numbers::{In, Out, Wrong};

/// More is in no rule of ours: for tracks and blocks a million, for stops as many as a way can have.
const MOST: u64 = 1 << 20;
const MOST_STOPS: u64 = 8;
/// All of it, in parts per million.
const WHOLE: u64 = 1_000_000;

pub(super) fn encode(rules: &Rules, out: &mut Out) {
    let Rules {
        caution,
        same_track,
        ranges,
        goal,
        stops,
        tracks,
        idle_after,
        idle_blocks,
        paid_ppm,
    } = rules;
    match caution {
        Caution::Fixed { guard, near_miss } => {
            out.number(0);
            out.duration(*guard);
            out.duration(*near_miss);
        }
        Caution::Learned { impact_ppm } => {
            out.number(1);
            out.number(u64::from(*impact_ppm));
        }
    }
    out.number(u64::from(*same_track == SameTrack::Allowed));
    out.number(u64::from(*ranges == Ranges::Two));
    out.number(u64::from(*goal == Goal::Even));
    out.number(u64::from(*stops));
    out.number(u64::from(*tracks));
    out.option(*idle_after, Out::duration);
    out.number(u64::from(*idle_blocks));
    out.number(u64::from(*paid_ppm));
}

pub(super) fn decode(from: &mut In<'_>) -> Result<Rules, Wrong> {
    let part = |from: &mut In<'_>| from.up_to(WHOLE, "at most a million parts per million");
    let caution = match from.flag()? {
        false => Caution::Fixed {
            guard: from.duration()?,
            near_miss: from.duration()?,
        },
        true => Caution::Learned {
            impact_ppm: part(from)? as u32,
        },
    };
    let same_track = match from.flag()? {
        true => SameTrack::Allowed,
        false => SameTrack::Never,
    };
    let ranges = match from.flag()? {
        true => Ranges::Two,
        false => Ranges::One,
    };
    let goal = match from.flag()? {
        true => Goal::Even,
        false => Goal::Blocks,
    };
    let stops = from.up_to(MOST_STOPS, "at most eight stops on a way")?;
    let tracks = from.up_to(MOST, "at most 2^20 tracks")?;
    let idle_after = from.option(In::duration)?;
    Ok(Rules {
        caution,
        same_track,
        ranges,
        goal,
        stops: stops as u8,
        tracks: tracks as u32,
        idle_after,
        idle_blocks: from.up_to(MOST, "at most 2^20 blocks")? as u32,
        paid_ppm: part(from)? as u32,
    })
}
