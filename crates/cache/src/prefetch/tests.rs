//! Vectors of `shared/specs/cache-and-pfc.md`, and what must hold for every prefetcher.

use proptest::prelude::*;

use super::{
    ALL, Advice, Ahead, FetchMode, LookupResult, Note, PrefetchWaiter, Prefetcher, Seen, Site,
};
use super::{absent_runs, make};
use crate::cache::Cache;
use crate::replacement::Pattern;
use crate::replacement::Verdict;
use crate::residency::{BlockState, FetchOrigin, MAX_BLOCK};
use crate::settings::Values;
use block::Interval;

/// A cache with a prefetcher whose reads are complete at once.
pub(super) struct Level {
    pub(super) cache: Cache,
    pub(super) prefetcher: Box<dyn Prefetcher>,
    pub(super) within: Interval,
    advice: Advice,
}

impl Level {
    pub(super) fn new(text: &str, frames: u32) -> Self {
        let site = Site {
            frames: u64::from(frames),
        };
        let prefetcher = make(text, &site).expect("a line of the table");
        let first_touch = prefetcher.first_touch();
        Level {
            cache: Cache::named("lru", frames.into(), first_touch).expect("lru"),
            prefetcher,
            within: Interval::new(0, MAX_BLOCK),
            advice: Advice::default(),
        }
    }

    pub(super) fn seen(&self, first: u64, last: u64) -> Seen {
        let blocks = Interval::new(first, last);
        Seen {
            client: 0,
            file: 0,
            blocks,
            within: self.within,
            found: if self.cache.residency().has_all(blocks) {
                LookupResult::All
            } else {
                LookupResult::NotAll
            },
        }
    }

    fn admit(&mut self, block: u64, origin: FetchOrigin) {
        let prefetcher = &mut self.prefetcher;
        let ask = |residency: &crate::Residency, frame| prefetcher.on_evict(residency.block(frame));
        if self.cache.residency().is_resident(block) {
            return;
        }
        let admitted = self.cache.admit(block, origin, Pattern::Random, ask);
        admitted.expect("a frame, because nothing is in flight");
        self.cache.complete(block);
    }

    /// A request; the runs that are read for it beside its own blocks.
    pub(super) fn read(&mut self, first: u64, last: u64) -> Vec<Ahead> {
        let seen = self.seen(first, last);
        self.advice.clear();
        let residency = self.cache.residency();
        self.prefetcher
            .on_request(&seen, residency, &mut self.advice);
        for block in seen.blocks.blocks() {
            if self.cache.demand(block, Pattern::Random) == BlockState::Absent {
                self.admit(block, FetchOrigin::Demand);
            }
        }
        let mut runs = Vec::new();
        let asked = self.advice.ahead.clone();
        for ahead in asked {
            let mut blocks = Vec::new();
            absent_runs(ahead.blocks, &seen, self.cache.residency(), |run| {
                blocks.push(run);
            });
            for run in blocks {
                run.blocks()
                    .for_each(|block| self.admit(block, FetchOrigin::Prefetch));
                runs.push(Ahead {
                    blocks: run,
                    mode: ahead.mode,
                });
                self.prefetcher
                    .on_prefetch_complete(run, PrefetchWaiter::Nobody);
            }
        }
        runs
    }

    /// Requests one after the other; the runs as first and last blocks.
    pub(super) fn runs(&mut self, requests: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let read = requests
            .iter()
            .flat_map(|&(first, last)| self.read(first, last));
        read.map(|run| (run.blocks.first, run.blocks.last))
            .collect()
    }

    fn notes(&self) -> &[Note] {
        &self.advice.notes
    }
}

fn ahead(first: u64, last: u64, mode: FetchMode) -> Ahead {
    Ahead {
        blocks: Interval::new(first, last),
        mode,
    }
}

fn singles(blocks: std::ops::Range<u64>) -> Vec<(u64, u64)> {
    blocks.map(|block| (block, block)).collect()
}

#[test]
fn ra_reads_four_blocks_after_every_request() {
    let mut level = Level::new("ra", 100);
    assert_eq!(level.read(10, 10), [ahead(11, 14, FetchMode::Sync)]);
    assert_eq!(level.read(11, 11), [ahead(15, 15, FetchMode::Async)]);
    assert_eq!(level.read(50, 53), [ahead(54, 57, FetchMode::Sync)]);
}

#[test]
fn obl_reads_one_block_always_on_a_miss_or_where_a_tag_is_hit() {
    let requests = [(10, 10), (11, 11), (12, 12), (12, 12), (30, 30)];
    let mut level = Level::new("obl", 100);
    assert_eq!(
        level.runs(&requests),
        [(11, 11), (12, 12), (13, 13), (31, 31)]
    );
    let mut level = Level::new("obl(when=on-miss)", 100);
    assert_eq!(level.runs(&requests), [(11, 11), (13, 13), (31, 31)]);
    let mut level = Level::new("obl(when=tagged)", 100);
    assert_eq!(
        level.runs(&requests),
        [(11, 11), (12, 12), (13, 13), (31, 31)]
    );
    // 10 was read on demand, and 11's tag is gone.
    level.cache.withdraw(12);
    assert_eq!(level.runs(&[(10, 10), (11, 11)]), []);
}

#[test]
fn linux_2_4_issues_one_group_for_each_that_is_consumed() {
    let mut level = Level::new("linux-2.4", 1000);
    let groups = level.runs(&singles(100..179));
    let expected = [
        (101, 103),
        (104, 109),
        (110, 121),
        (122, 145),
        (146, 177),
        (178, 209),
        (210, 241),
    ];
    assert_eq!(groups, expected);
    let mut level = Level::new("linux-2.4", 1000);
    let groups = level.runs(&[(100, 100), (500, 500), (501, 502), (503, 506)]);
    // The request itself takes 504 to 506 of the group 504 to 509, whose reading came before it.
    assert_eq!(groups, [(101, 103), (501, 503), (504, 509), (510, 521)]);
}

#[test]
fn linux_2_4_doubles_only_at_the_most_recent_group() {
    let mut level = Level::new("linux-2.4", 1000);
    level.runs(&singles(100..105));
    // The older group is read once more: nothing new.
    assert_eq!(level.read(105, 105), []);
    assert_eq!(level.read(104, 109), []);
    assert_eq!(level.read(110, 110), [ahead(122, 145, FetchMode::Async)]);
}

#[test]
fn linux_2_6_keeps_a_window_ahead() {
    let mut level = Level::new("linux-2.6", 1000);
    assert_eq!(level.read(0, 0), [ahead(1, 3, FetchMode::Sync)]);
    assert_eq!(level.read(1, 1), [ahead(4, 11, FetchMode::Async)]);
    assert_eq!(level.runs(&[(2, 2), (3, 3)]), []);
    assert_eq!(level.read(4, 4), [ahead(12, 27, FetchMode::Async)]);
    assert_eq!(level.runs(&singles(5..12)), []);
    assert_eq!(level.read(12, 12), [ahead(28, 59, FetchMode::Async)]);
    // A random read is read as it is, and turns windows off.
    assert_eq!(level.read(500, 503), []);
    assert_eq!(level.read(504, 504), [ahead(505, 507, FetchMode::Sync)]);
}

#[test]
fn linux_2_6_shrinks_after_a_miss_in_a_window() {
    let mut level = Level::new("linux-2.6", 1000);
    level.runs(&singles(0..13));
    // The current window is 12 to 27; one of its pages went.
    level.cache.withdraw(20);
    level.runs(&singles(13..28));
    // 32 less 2, not 32.
    assert_eq!(level.read(28, 28), [ahead(60, 89, FetchMode::Async)]);
}

#[test]
fn linux_2_6_turns_itself_off_where_all_is_cached() {
    let mut level = Level::new("linux-2.6", 1000);
    for block in 0..600 {
        level.admit(block, FetchOrigin::Demand);
    }
    assert_eq!(level.runs(&singles(0..500)), []);
    assert_eq!(level.runs(&singles(500..600)), []);
    // It was off: nothing was asked for ahead of the end of what is cached. A miss turns it on.
    assert_eq!(level.read(600, 600), [ahead(601, 603, FetchMode::Sync)]);
}

#[test]
fn sarc_reads_groups_and_refreshes_what_was_not_read() {
    let mut level = Level::new("sarc", 1000);
    assert_eq!(level.read(10, 10), []);
    assert_eq!(level.read(11, 11), [ahead(12, 19, FetchMode::Sync)]);
    let group = Interval::new(11, 19);
    assert_eq!(
        level.notes(),
        [Note::SequentialMiss(11), Note::Sequential(group)]
    );
    assert_eq!(level.runs(&singles(12..15)), []);
    assert_eq!(level.read(15, 15), [ahead(20, 27, FetchMode::Async)]);
    let refreshed = Note::Refresh(Interval::new(15, 19));
    let next = Note::Sequential(Interval::new(20, 27));
    assert_eq!(level.notes(), [refreshed, next]);
    // A trigger is cleared by the access.
    assert_eq!(level.read(15, 15), []);
}

#[test]
fn sarc_finds_a_sequence_inside_a_request() {
    let mut level = Level::new("sarc", 1000);
    assert_eq!(level.read(100, 103), [ahead(104, 109, FetchMode::Sync)]);
    assert_eq!(
        level.notes(),
        [
            Note::SequentialMiss(101),
            Note::Sequential(Interval::new(101, 109))
        ]
    );
    let mut level = Level::new("sarc(track=8,p=2,g=1)", 1000);
    assert_eq!(level.read(0, 7), []);
    assert_eq!(level.read(8, 15), [ahead(16, 31, FetchMode::Sync)]);
    assert_eq!(level.read(16, 16), [ahead(32, 47, FetchMode::Async)]);
}

#[test]
fn amp_grows_its_degree_by_what_is_read_at_once() {
    let mut level = Level::new("amp", 1000);
    assert_eq!(level.read(0, 0), []);
    // p of page 0 is 1: one page ahead, whose trigger is itself, because g is 0.
    assert_eq!(level.read(1, 1), [ahead(2, 2, FetchMode::Sync)]);
    // p of 1 was 2, of 2 the same; reading 2, the end of its set, makes it 3.
    assert_eq!(level.read(2, 2), [ahead(3, 5, FetchMode::Async)]);
    assert_eq!(level.runs(&[(3, 3), (4, 4)]), []);
    assert_eq!(level.read(5, 5), [ahead(6, 9, FetchMode::Async)]);
    assert_eq!(level.runs(&singles(6..9)), []);
    // p is 5, more than APT: g is 2 for what follows, and the trigger stands 2 before the end.
    assert_eq!(level.read(9, 9), [ahead(10, 14, FetchMode::Async)]);
    assert_eq!(level.runs(&[(10, 10), (11, 11)]), []);
    assert_eq!(level.read(12, 12), [ahead(15, 19, FetchMode::Async)]);
}

#[test]
fn amp_random_reads_are_read_as_they_are() {
    let mut level = Level::new("amp", 1000);
    assert_eq!(level.runs(&[(100, 103), (7, 7), (900, 900)]), []);
    // Four pages at once, and again: p is 4, then 8, more than APT.
    assert_eq!(level.read(104, 107), [ahead(108, 111, FetchMode::Sync)]);
}

#[test]
fn amp_gives_unread_pages_a_second_chance_and_shrinks() {
    let mut level = Level::new("amp", 1000);
    level.runs(&[(100, 103), (104, 107)]);
    // p is 8, and 12 for the set after this one, because 111 ends its set.
    assert_eq!(level.read(108, 111), [ahead(112, 119, FetchMode::Async)]);
    let prefetcher = &mut level.prefetcher;
    assert_eq!(prefetcher.on_evict(115), Verdict::SecondChance);
    assert_eq!(prefetcher.on_evict(115), Verdict::Evict);
    assert_eq!(prefetcher.on_evict(104), Verdict::Evict);
    for page in 112..115 {
        assert_eq!(prefetcher.on_evict(page), Verdict::SecondChance);
    }
    // p was 12 and shrank four times.
    assert_eq!(level.read(116, 117), [ahead(120, 127, FetchMode::Async)]);
}

#[test]
fn amp_grows_its_distance_when_a_reader_waits() {
    let trigger = |waiting: PrefetchWaiter| {
        let mut level = Level::new("amp", 1000);
        level.runs(&[(100, 103), (104, 107), (108, 111)]);
        let set = Interval::new(112, 119);
        level.prefetcher.on_prefetch_complete(set, waiting);
        level.runs(&singles(112..120));
        let triggers = (120..132).find(|&page| !level.read(page, page).is_empty());
        triggers.expect("a trigger in the set")
    };
    assert_eq!(
        trigger(PrefetchWaiter::Reader),
        trigger(PrefetchWaiter::Nobody) - 1
    );
}

#[test]
fn amp_is_told_of_what_was_used_in_passing() {
    let mut level = Level::new("amp", 1000);
    level.runs(&[(100, 103), (104, 107)]);
    let seen = level.seen(108, 109);
    level.prefetcher.on_silent_use(&seen);
    assert_eq!(level.prefetcher.on_evict(108), Verdict::Evict);
    assert_eq!(level.prefetcher.on_evict(110), Verdict::SecondChance);
}

#[test]
fn contexts_are_of_files_of_all_or_of_streams() {
    // Two files read in turn, and two streams of one file.
    let read = |text: &str, files: [u64; 2]| {
        let mut level = Level::new(text, 4000);
        let mut advice = Advice::default();
        for step in 0..4 {
            for (stream, file) in files.into_iter().enumerate() {
                let block = 1000 * stream as u64 + step;
                let seen = Seen {
                    file,
                    ..level.seen(block, block)
                };
                let residency = level.cache.residency();
                level.prefetcher.on_request(&seen, residency, &mut advice);
            }
        }
        advice.ahead.last().expect("a group").blocks.len()
    };
    assert_eq!(read("linux-2.4", [1, 2]), 6);
    assert_eq!(read("linux-2.4", [1, 1]), 3);
    assert_eq!(read("linux-2.4(context=one)", [1, 2]), 3);
    assert_eq!(read("linux-2.4(context=stream)", [1, 1]), 6);
}

/// Every prefetcher with its defaults, and with each of its words and the ends of each range.
fn all_settings() -> Vec<String> {
    let mut all = Vec::new();
    for entry in ALL {
        all.push(entry.name.to_owned());
        for parameter in entry.parameters {
            let values: Vec<String> = match &parameter.values {
                Values::Number { range, .. } => {
                    vec![range.start().to_string(), range.end().to_string()]
                }
                Values::Words(words) => words.iter().map(|word| (*word).to_owned()).collect(),
            };
            for value in values {
                all.push(format!("{}({}={value})", entry.name, parameter.key));
            }
        }
    }
    all
}

#[test]
fn names_differ_and_defaults_are_in_their_ranges() {
    for (place, entry) in ALL.iter().enumerate() {
        assert!(ALL[..place].iter().all(|other| other.name != entry.name));
        for parameter in entry.parameters {
            if let Values::Number { range, default } = &parameter.values {
                assert!(range.contains(default), "{} {}", entry.name, parameter.key);
            }
        }
    }
}

#[test]
fn hostile_requests_are_survived() {
    for text in all_settings() {
        for frames in [1, 2, 64] {
            let site = Site { frames };
            let mut prefetcher = make(&text, &site).expect("a line of the table");
            let level = Level::new("none", 4);
            let mut advice = Advice::default();
            let within = Interval::new(0, u64::MAX);
            let ends = [
                (u64::MAX, u64::MAX),
                (0, u64::MAX),
                (u64::MAX - 1, u64::MAX),
                (0, 0),
                (1, u64::MAX - 1),
                (u64::MAX - 40, u64::MAX - 39),
            ];
            for (first, last) in ends.into_iter().chain(ends) {
                let seen = Seen {
                    within,
                    ..level.seen(first, last.min(first.saturating_add(1)))
                };
                let seen = Seen {
                    blocks: Interval::new(first, last),
                    ..seen
                };
                let residency = level.cache.residency();
                prefetcher.on_request(&seen, residency, &mut advice);
                prefetcher.on_silent_use(&seen);
                prefetcher.on_prefetch_complete(seen.blocks, PrefetchWaiter::Reader);
                prefetcher.on_evict(last);
                for ahead in advice.ahead.drain(..) {
                    assert!(!ahead.blocks.is_empty(), "{text}");
                    absent_runs(ahead.blocks, &seen, residency, |run| {
                        assert!(!run.is_empty() && !seen.blocks.contains(run.first));
                    });
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn what_is_read_ahead_is_new_and_of_the_file(
        which in 0..1000usize,
        first in 0u64..50,
        requests in prop::collection::vec((0u64..300, 1u64..20, 0u8..3), 1..80),
        frames in 20u32..200,
    ) {
        let all = all_settings();
        let mut level = Level::new(&all[which % all.len()], frames);
        level.within = Interval::new(first, 319);
        let mut at = first;
        for (place, count, kind) in requests {
            // Half of them go on where the last one ended.
            at = if kind == 0 { place.max(first) } else { at.min(319) };
            let last = (at + count - 1).min(319);
            let seen = level.seen(at, last);
            level.advice.clear();
            let residency = level.cache.residency();
            level.prefetcher.on_request(&seen, residency, &mut level.advice);
            for ahead in &level.advice.ahead {
                let mut end = None;
                absent_runs(ahead.blocks, &seen, residency, |run| {
                    assert!(!run.is_empty());
                    for block in run.blocks() {
                        assert!(level.within.contains(block), "{block}");
                        assert!(!seen.blocks.contains(block), "{block}");
                        assert!(!residency.is_resident(block), "{block}");
                        assert!(ahead.blocks.contains(block), "{block}");
                    }
                    // Runs are maximal: they do not touch.
                    assert!(end.is_none_or(|end| end + 1 < run.first));
                    end = Some(run.last);
                });
            }
            level.read(at, last);
            at = last + 1;
        }
    }
}
