//! Profiles with other seek times: a paper's mean, and beliefs that predict seeks too short.
//!
//! A published mean seek and an extracted table may disagree by a constant: the time from a command to
//! the start of the arm. The constant moves from the seeks to the overhead of a command.
//!
//! ```text
//!   extracted  | overhead |---------- seek ----------|
//!   Table 1    | overhead ++++|-------- seek --------|      same sum for a single command;
//!                                                           behind another command the overhead is hidden
//! ```

use block::Duration;
use drive::firmware::AfterPrevious;
use drive::{Profile, SeekCurve, SeekTable};

use crate::Failure;

/// The mean time of a read's seek between two uniformly random cylinders.
pub(super) fn mean_seek(profile: &Profile) -> Duration {
    let cylinders = u64::from(profile.geometry.cylinders());
    let table = profile.seek.read();
    let sum: u128 = (1..cylinders)
        .map(|distance| {
            let time = table.time(distance as u32).as_nanos();
            2 * u128::from(cylinders - distance) * u128::from(time)
        })
        .sum();
    Duration::from_nanos((sum / u128::from(cylinders * cylinders)) as u64)
}

/// The profile with this mean seek. What the seeks lose the overheads of misses gain, so that a single
/// command on another cylinder takes as long as before.
///
/// # Errors
/// If the mean is longer than that of the profile.
pub(super) fn with_mean_seek(profile: &Profile, mean: Duration) -> Result<Profile, Failure> {
    let before = mean_seek(profile);
    // Of so many pairs of cylinders one has no seek, which cannot become shorter.
    let cylinders = u64::from(profile.geometry.cylinders());
    let less = before.saturating_sub(mean).as_nanos();
    let moved = Duration::from_nanos(less * cylinders / (cylinders - 1));
    if moved == Duration::ZERO {
        let name = &profile.name;
        let problem = format!("{name}: a mean seek of {before}: expected more than {mean}");
        return Err(Failure::failed(problem));
    }
    let mut shorter = with_shorter_seeks(profile, moved)?;
    let later = |by: AfterPrevious| AfterPrevious {
        read: by.read + moved,
        write: by.write + moved,
    };
    shorter.overheads.read_miss = later(shorter.overheads.read_miss);
    shorter.overheads.write_miss = later(shorter.overheads.write_miss);
    Ok(shorter)
}

/// The profile with seeks that are shorter by this much.
///
/// # Errors
/// If the points are no table.
pub(super) fn with_shorter_seeks(profile: &Profile, by: Duration) -> Result<Profile, Failure> {
    let shorter = |table: &SeekTable| {
        let points = table.points();
        let points = points.map(|(distance, time)| (distance, time.saturating_sub(by)));
        SeekTable::new(points.collect(), profile.geometry.cylinders()).map_err(Failure::failed)
    };
    let seek = SeekCurve::new(
        shorter(profile.seek.read())?,
        shorter(profile.seek.write())?,
    );
    let mut changed = profile.clone();
    changed.seek = seek;
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use drive::catalog;

    use super::*;

    #[test]
    fn the_atlas_has_the_mean_seek_of_table_1_and_single_commands_take_as_long_as_before() {
        let entry = catalog::find("quantum-atlas-10k").expect("shipped");
        let extracted = entry.profile().expect("a good file");
        let mean = Duration::from_millis(5);
        let shorter = with_mean_seek(&extracted, mean).expect("longer than that");
        let off = mean_seek(&shorter).as_nanos().abs_diff(mean.as_nanos());
        assert!(off < 200, "{off} ns: one part in cylinders, and rounding");
        for distance in [1, 100, 5_000, 10_000] {
            let single = |profile: &Profile| {
                profile.seek.read().time(distance) + profile.overheads.read_miss.read
            };
            assert_eq!(single(&shorter), single(&extracted), "{distance}");
        }
        assert!(with_mean_seek(&extracted, Duration::from_millis(6)).is_err());
    }
}
