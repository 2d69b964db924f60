//! When which part of a volume is scrubbed next, so that each block is verified within a period.
//!
//! ```text
//!   slices    0 1 2 ... 15 0 1 2 ... 15 0 1 ...       a mebibyte each: a slice lies all over the volume
//!   a slice   verified |------- rests -------|-- due --| late
//!                      0                 3/4 period   period
//! ```
//!
//! A slice is scattered, because a narrow region is rarely on the head's way. The moments of slices outlive the service.

use serde::{Deserialize, Serialize};

/// Slices of a volume. A choice: a restart loses at most a sixteenth of a scrub.
pub const SLICES: usize = 16;

/// Bytes of a slice's pieces. A choice: some tracks.
pub const PIECE: u64 = 1 << 20;

/// The end of each slice's last verification in seconds since 1970, or 0.
pub type Moments = [u64; SLICES];

/// A schedule of scrubs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Seconds in which each block is verified.
    pub every_s: u64,
    /// When the schedule began, in seconds since 1970: what was never verified is late after one period from here.
    pub since_s: u64,
}

/// What a schedule has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// This slice is to be verified.
    Slice {
        /// The slice.
        slice: usize,
        /// Seconds until it is late. At least one.
        left_s: u64,
    },
    /// Nothing is due before this moment, in seconds since 1970.
    At(u64),
}

impl Schedule {
    /// The slice that is to be verified now: the one whose verification is the oldest.
    pub fn due(&self, now_s: u64, moments: &Moments) -> Due {
        let (slice, oldest_s) = oldest(moments);
        // A quarter of the period is left for a busy drive.
        let due_s = oldest_s.saturating_add(self.every_s - self.every_s / 4);
        match oldest_s == 0 || now_s >= due_s {
            true => Due::Slice {
                slice,
                left_s: self.latest_s(oldest_s).saturating_sub(now_s).max(1),
            },
            false => Due::At(due_s),
        }
    }

    /// The seconds by which the oldest verification is late.
    pub fn late_by_s(&self, now_s: u64, moments: &Moments) -> u64 {
        now_s.saturating_sub(self.latest_s(oldest(moments).1))
    }

    fn latest_s(&self, verified_s: u64) -> u64 {
        verified_s.max(self.since_s).saturating_add(self.every_s)
    }
}

/// The slice whose verification is the oldest, and its moment.
pub fn oldest(moments: &Moments) -> (usize, u64) {
    let all = moments.iter().copied().enumerate();
    all.min_by_key(|(_, moment)| *moment).unwrap_or((0, 0))
}

/// The slice of a byte.
pub fn slice_of(byte: u64) -> usize {
    (byte / PIECE % SLICES as u64) as usize
}

/// Bytes of a slice of a volume of `length` bytes.
pub fn bytes_of_slice(length: u64, slice: usize) -> u64 {
    let turn = PIECE * SLICES as u64;
    let before = slice as u64 * PIECE;
    length / turn * PIECE + (length % turn).saturating_sub(before).min(PIECE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A scrub of a slice takes as long as the load lets it.
    fn run(schedule: Schedule, seconds: &[u64], until_s: u64) -> (Moments, u64, u64) {
        let (mut now_s, mut moments, mut scrubs, mut latest) =
            (schedule.since_s, [0; SLICES], 0, 0);
        while now_s < until_s {
            match schedule.due(now_s, &moments) {
                Due::Slice { slice, left_s } => {
                    assert!(left_s >= 1);
                    now_s += seconds[scrubs as usize % seconds.len()];
                    latest = latest.max(schedule.late_by_s(now_s, &moments));
                    moments[slice] = now_s;
                    scrubs += 1;
                }
                Due::At(at) => {
                    assert!(at > now_s, "a wakeup in the past is an endless loop");
                    now_s = at;
                }
            }
        }
        (moments, scrubs, latest)
    }

    proptest! {
        /// If sixteen slices fit into a quarter of the period, none is ever late, and none is scrubbed more often
        /// than each three quarters of it.
        #[test]
        fn each_slice_is_verified_within_the_period_and_not_too_often(
            every_s in 3_600..10_000_000_u64,
            shares in prop::collection::vec(1..=100_u64, 1..20),
        ) {
            let schedule = Schedule { every_s, since_s: 1_700_000_000 };
            let seconds: Vec<u64> = shares.iter().map(|share| every_s / 4 / SLICES as u64 * share / 100).collect();
            let until_s = schedule.since_s + every_s * 10;
            let (moments, scrubs, latest) = run(schedule, &seconds, until_s);
            prop_assert_eq!(latest, 0);
            prop_assert_eq!(schedule.late_by_s(until_s, &moments), 0);
            prop_assert!(scrubs <= SLICES as u64 * 14 + 1, "{} scrubs", scrubs);
            prop_assert!(scrubs >= SLICES as u64 * 10, "{} scrubs", scrubs);
        }
    }

    #[test]
    fn a_drive_that_is_too_busy_is_late_by_what_it_says_and_never_rests() {
        let schedule = Schedule {
            every_s: 1600,
            since_s: 1_000_000,
        };
        // Twice as slow as needed: a round of all slices takes two periods.
        let (moments, scrubs, latest) = run(schedule, &[200], 1_032_000);
        assert_eq!((scrubs, latest), (160, 1600));
        let (_, oldest_s) = oldest(&moments);
        assert_eq!(schedule.late_by_s(oldest_s + 1607, &moments), 7);
        // What was never verified is late from the begin of the schedule on.
        assert_eq!(schedule.late_by_s(1_001_601, &[0; SLICES]), 1);
    }

    #[test]
    fn a_restart_goes_on_with_the_oldest_slice() {
        let schedule = Schedule {
            every_s: 1000,
            since_s: 5000,
        };
        let mut moments = [5100; SLICES];
        moments[7] = 5050;
        moments[3] = 0;
        let due = |now_s, moments: &Moments| schedule.due(now_s, moments);
        assert_eq!(
            due(5200, &moments),
            Due::Slice {
                slice: 3,
                left_s: 800
            }
        );
        moments[3] = 5200;
        assert_eq!(due(5200, &moments), Due::At(5800));
        assert_eq!(
            due(5800, &moments),
            Due::Slice {
                slice: 7,
                left_s: 250
            }
        );
        // A clock that was set back does not make it late.
        assert_eq!(due(100, &moments), Due::At(5800));
    }

    #[test]
    fn slices_have_a_mebibyte_in_turn() {
        assert_eq!(
            [0, PIECE - 1, PIECE, 16 * PIECE].map(slice_of),
            [0, 0, 1, 0]
        );
    }
}
