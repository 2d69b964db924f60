//! What a seek takes at least, for this distance and all longer ones.

use std::sync::Arc;

use block::{Direction, Duration};
use drive::Profile;

/// The monotone lower envelopes of a drive's seek tables.
///
/// Measured tables go up and down. A search that goes outward may only stop where no farther track
/// can be reached sooner, which the least of all farther times tells.
#[derive(Clone, Debug)]
pub(super) struct Envelope {
    read: Arc<[u32]>,
    write: Arc<[u32]>,
}

impl Envelope {
    pub fn new(profile: &Profile) -> Self {
        let cylinders = profile.geometry.cylinders();
        let lowest = |direction| {
            let mut least = u32::MAX;
            let mut times: Vec<u32> = (1..cylinders.max(2))
                .rev()
                .map(|distance| {
                    let time = sole(profile, direction, distance).as_nanos();
                    least = least.min(u32::try_from(time).unwrap_or(u32::MAX));
                    least
                })
                .collect();
            times.push(0);
            times.reverse();
            times.into()
        };
        Envelope {
            read: lowest(Direction::Read),
            write: lowest(Direction::Write),
        }
    }

    /// Not more than any seek over `distance` cylinders or more takes.
    #[inline]
    pub fn least(&self, direction: Direction, distance: u32) -> Duration {
        let times = match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        };
        let last = times.len() - 1;
        Duration::from_nanos(u64::from(times[(distance as usize).min(last)]))
    }
}

/// A seek over `distance` cylinders to the same surface; another one does not take less.
#[inline]
pub(super) fn sole(profile: &Profile, direction: Direction, distance: u32) -> Duration {
    match (direction, distance) {
        (_, 0) => Duration::ZERO,
        (Direction::Read, distance) => profile.seek.read().time(distance),
        (Direction::Write, distance) => {
            let time = profile.seek.write().time(distance);
            time.adjusted(profile.write_settle_nanos)
        }
    }
}
