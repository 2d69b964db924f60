//! Issued requests that have not arrived: events on one side, requests of the service on the other.
//!
//! ```text
//!   event     [---------------- issued ----------------]      left: all of its bytes
//!   requests  [-- claims --][-- claims --][-- claims --]      left: 0, the entry ends
//! ```
//!
//! The kernel may split what it issued before it arrives (FUSE does, at `max_pages`), so a request claims a
//! part of an entry. The newest entry with all of the request's bytes is claimed. An event whose request
//! never arrives stays until it is old, and the next request of the same bytes does not take it for its own.

use std::collections::VecDeque;

use super::priority::{IoPriority, ProcessName, Purpose};

/// Issued requests, the oldest first.
#[derive(Debug, Default)]
pub struct IssuedTable {
    entries: VecDeque<Issued>,
    /// Entries that were dropped with bytes that no request had claimed.
    unclaimed: u64,
}

/// The origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The I/O priority.
    pub priority: IoPriority,
    /// The use of the request for the file system.
    pub purpose: Purpose,
    /// The process that issued it.
    pub process: ProcessName,
}

#[derive(Clone, Copy, Debug)]
struct Issued {
    /// The first byte of the export, and the byte after the last one.
    start: u64,
    end: u64,
    /// Bytes that no request has claimed.
    left: u64,
    /// The time of the event in nanoseconds.
    at: u64,
    origin: Origin,
}

impl IssuedTable {
    /// Adds a request that was issued at `at` nanoseconds. Times do not go backwards.
    pub fn issue(&mut self, at: u64, start: u64, length: u64, origin: Origin) {
        let Some(end) = start.checked_add(length).filter(|_| length > 0) else {
            return;
        };
        while let Some(oldest) = self.entries.front() {
            let is_old = at.saturating_sub(oldest.at) > OLDEST_NS;
            if !is_old && self.entries.len() < MOST {
                break;
            }
            self.entries.pop_front();
            self.unclaimed += 1;
        }
        self.entries.push_back(Issued {
            start,
            end,
            left: length,
            at,
            origin,
        });
    }

    /// The origin of a request that has arrived, if its event has.
    pub fn claim(&mut self, start: u64, length: u64) -> Option<Origin> {
        let end = start.checked_add(length)?;
        let has_all = |entry: &Issued| entry.start <= start && end <= entry.end;
        let place = self.entries.iter().rposition(has_all)?;
        let entry = &mut self.entries[place];
        let origin = entry.origin;
        entry.left = entry.left.saturating_sub(length);
        if entry.left == 0 {
            self.entries.remove(place);
        }
        Some(origin)
    }

    /// Total of entries that were dropped because they were old or too many.
    pub fn unclaimed(&self) -> u64 {
        self.unclaimed
    }
}

/// The largest number of entries. A choice: eight times the queue of a loop device, of nbd and of ublk (128).
pub const MOST: usize = 1024;

/// The longest time of an entry in nanoseconds. A choice: a loop device without direct I/O passes one
/// request after the other, and a request in the background before it may wait long.
pub const OLDEST_NS: u64 = 60_000_000_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::priority::IoClass;
    use super::*;

    fn origin(number: u16) -> Origin {
        let mut process = ProcessName::default();
        process[..2].copy_from_slice(&number.to_ne_bytes());
        Origin {
            priority: IoPriority {
                class: IoClass::BestEffort,
                level: 4,
            },
            purpose: Purpose::Other,
            process,
        }
    }

    /// The oracle keeps every event for ever, with a mark on each of its bytes that was claimed.
    #[derive(Default)]
    struct Naive {
        /// Time, first byte, length, claimed bytes, origin; the oldest first.
        all: Vec<(u64, u64, u64, u64, Origin)>,
        /// The first event that was not dropped.
        first: usize,
        now: u64,
    }

    impl Naive {
        fn live(&self) -> Vec<usize> {
            let mut live: Vec<usize> = (self.first..self.all.len()).collect();
            live.retain(|&index| self.all[index].3 < self.all[index].2);
            live
        }

        fn issue(&mut self, at: u64, start: u64, length: u64, origin: Origin) {
            if length == 0 {
                return;
            }
            self.now = at;
            for index in self.live() {
                let is_old = at - self.all[index].0 > OLDEST_NS;
                if is_old || self.live().len() >= MOST {
                    self.first = index + 1;
                }
            }
            self.all.push((at, start, length, 0, origin));
        }

        fn claim(&mut self, start: u64, length: u64) -> Option<Origin> {
            let mut newest_first = self.live();
            newest_first.reverse();
            for index in newest_first {
                let (_, from, of, claimed, origin) = self.all[index];
                let inside = (start..start + length).all(|byte| (from..from + of).contains(&byte));
                if inside {
                    self.all[index].3 = claimed + length;
                    return Some(origin);
                }
            }
            None
        }
    }

    /// An event with its distance from the last one in seconds, or a request: first byte and length.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Issue(u64, u64, u64),
        Claim(u64, u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let later = prop_oneof![20 => 0..3_u64, 1 => 30..70_u64];
        let issue = (later, 0..40_u64, 0..24_u64).prop_map(|(s, at, of)| Step::Issue(s, at, of));
        let claim = (0..44_u64, 1..24_u64).prop_map(|(at, of)| Step::Claim(at, of));
        prop::collection::vec(prop_oneof![issue, claim], 0..120)
    }

    proptest! {
        #[test]
        fn requests_find_what_a_complete_history_finds(steps in steps()) {
            let (mut table, mut naive) = (IssuedTable::default(), Naive::default());
            let mut at = 0;
            for (number, step) in (0..).zip(steps) {
                match step {
                    Step::Issue(later, start, length) => {
                        at += later * 1_000_000_000;
                        table.issue(at, start, length, origin(number));
                        naive.issue(at, start, length, origin(number));
                    }
                    Step::Claim(start, length) => {
                        prop_assert_eq!(table.claim(start, length), naive.claim(start, length));
                    }
                }
            }
        }

        /// Requests that split what was issued into parts, in any order, and beside a writer of the same bytes
        /// before: each part has the origin of its own event, and nothing stays.
        #[test]
        fn all_parts_of_an_issued_request_are_its_own(
            cuts in prop::collection::btree_set(1..256_u64, 0..8),
            turn in 0..8_usize,
        ) {
            let mut table = IssuedTable::default();
            // An event whose request never comes.
            table.issue(0, 0, 256, origin(1));
            table.issue(1, 0, 256, origin(2));
            let ends: Vec<u64> = cuts.iter().copied().chain([256]).collect();
            let mut parts: Vec<(u64, u64)> = Vec::new();
            let mut start = 0;
            for end in ends {
                parts.push((start, end - start));
                start = end;
            }
            let turn = turn % parts.len();
            parts.rotate_left(turn);
            for (start, length) in parts {
                prop_assert_eq!(table.claim(start, length), Some(origin(2)));
            }
            prop_assert_eq!(table.entries.len(), 1);
        }
    }

    #[test]
    fn the_table_is_bounded_and_counts_what_it_drops() {
        let mut table = IssuedTable::default();
        let most = MOST as u64;
        for number in 0..most + 3 {
            table.issue(0, number, 1, origin(number as u16));
        }
        assert_eq!((table.entries.len(), table.unclaimed()), (MOST, 3));
        assert_eq!(table.claim(2, 1), None, "dropped");
        assert_eq!(table.claim(3, 1), Some(origin(3)));
        table.issue(OLDEST_NS + 1, 0, 1, origin(9));
        assert_eq!((table.entries.len(), table.unclaimed()), (1, most + 2));
        table.issue(u64::MAX, u64::MAX, 2, origin(9));
        assert_eq!(table.entries.len(), 1, "no export has such bytes");
        assert_eq!(table.claim(u64::MAX, 2), None);
    }
}
