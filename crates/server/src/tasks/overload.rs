//! Deadlines of tasks that cannot be kept, whatever else the drive does.
//!
//! ```text
//!   blocks that are needed --on the longest tracks, one after the other--> least time --after the deadline--> refused
//!                          --at the task's own pace-------------------->
//! ```

use block::Duration;
use drive::Profile;
use scheduler::background::DeclaredSet;

/// The time that a task has, and the most bytes a second that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The deadline, from now.
    pub deadline: Duration,
    /// The pace, if it has one.
    pub pace_bytes_s: Option<u64>,
}

/// The fewest blocks with which a set has enough.
pub(super) fn least_blocks(set: &DeclaredSet) -> u64 {
    let mut lengths: Vec<u64> = set.pieces().iter().map(|piece| piece.length().0).collect();
    lengths.sort_unstable();
    lengths.iter().take(set.needed()).sum()
}

/// Checks a deadline of a task that has so many blocks to read from so many arms.
///
/// # Errors
/// The time at which the task would end, and what was expected.
pub(super) fn check(
    profile: &Profile,
    arms: usize,
    blocks: u64,
    terms: Terms,
) -> Result<(), String> {
    let zones = profile.geometry.zones();
    let longest = zones.iter().map(|zone| zone.sectors_per_track).max();
    let each = profile.spindle.period().as_nanos() / u64::from(longest.unwrap_or(1).max(1));
    let least = u128::from(blocks) * u128::from(each) / arms.max(1) as u128;
    let bytes = u128::from(blocks) * u128::from(profile.block_bytes);
    let paced = terms
        .pace_bytes_s
        .map_or(0, |pace| bytes * 1_000_000_000 / u128::from(pace.max(1)));
    let deadline = u128::from(terms.deadline.as_nanos());
    let refused = |why: &str, nanos: u128| {
        let (seconds, deadline) = (nanos.div_ceil(1_000_000_000), terms.deadline.as_secs_f64());
        Err(format!(
            "the task would end after {seconds} s, {why}, and its deadline is {deadline} s: expected a later deadline, or \
             fewer blocks"
        ))
    };
    match (least > deadline, paced > deadline) {
        (true, _) => refused("if the drive did nothing else", least),
        (false, true) => refused("at its own pace", paced),
        (false, false) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use block::{Extent, Lba, Sectors};

    use super::*;

    fn rz26() -> Profile {
        let entry = drive::catalog::find("dec-rz26").expect("it is shipped");
        entry.profile().expect("a profile")
    }

    fn terms(millis: u64, pace_bytes_s: Option<u64>) -> Terms {
        Terms {
            deadline: Duration::from_millis(millis),
            pace_bytes_s,
        }
    }

    #[test]
    fn a_deadline_is_refused_exactly_if_no_drive_of_this_speed_could_keep_it() {
        let profile = rz26();
        let zones = profile.geometry.zones();
        let sectors = zones.iter().map(|zone| zone.sectors_per_track).max();
        let sectors = u64::from(sectors.expect("a zone"));
        let revolution = profile.spindle.period().as_nanos();
        // 180 tracks of the longest, in the time of 180 revolutions.
        let blocks = 180 * sectors;
        let exactly = revolution / sectors * blocks;
        let at = |nanos: u64, arms| {
            let deadline = Duration::from_nanos(nanos);
            let pace_bytes_s = None;
            check(
                &profile,
                arms,
                blocks,
                Terms {
                    deadline,
                    pace_bytes_s,
                },
            )
        };
        assert_eq!(at(exactly, 1), Ok(()));
        let refused = at(exactly - 1, 1).expect_err("too early");
        assert!(refused.contains("would end after 3 s"), "{refused}");
        assert!(at(exactly / 2 + 1, 2).is_ok() && at(exactly / 2 - 1, 2).is_err());
    }

    #[test]
    fn a_pace_that_misses_the_deadline_is_refused() {
        let profile = rz26();
        let blocks = 2_000_000 / u64::from(profile.block_bytes);
        assert_eq!(
            check(&profile, 1, blocks, terms(20_000, Some(100_000))),
            Ok(())
        );
        let refused = check(&profile, 1, blocks, terms(19_000, Some(100_000)));
        let refused = refused.expect_err("too slow");
        assert!(refused.contains("after 20 s, at its own pace"), "{refused}");
    }

    #[test]
    fn the_smallest_pieces_are_enough_for_any_of_them() {
        let piece = |first, blocks| Extent::new(Lba(first), Sectors(blocks)).expect("blocks");
        let set = DeclaredSet::all(vec![piece(0, 50), piece(100, 3), piece(200, 20)]);
        let set = set.expect("a set");
        assert_eq!(least_blocks(&set), 73);
        assert_eq!(least_blocks(&set.any(2).expect("two of three")), 23);
    }
}
