//! What a level tells its parts, seen by parts that write it down.

use std::sync::{Arc, Mutex};

use block::{Duration, Instant, RequestId};

use super::{asked, fetched};
use crate::cache::{Cache, Evicted};
use crate::coordinator::{
    Coordinator, CoordinatorRules, EmptyNative, Purpose, ReadmoreAs, RequestPlan, Retention,
    SilentHits, SilentUse, UpperRequest,
};
use crate::level::{Ending, Level, Stored};
use crate::prefetch::{Advice, Ahead, FetchMode, Note, PrefetchWaiter, Prefetcher, Seen};
use crate::replacement::lru::Lru;
use crate::replacement::{FirstTouch, Verdict};
use crate::replacement::{GhostTag, Pattern, Replacement, Touch};
use crate::residency::{FrameId, Needs, Residency};
use block::Interval;

/// What the parts were told.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: String) {
        self.0.lock().expect("one thread").push(what);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("one thread"))
    }
}

/// LRU that writes down what it is told.
struct Policy(Lru, Log);

impl Replacement for Policy {
    fn needs(&self) -> Needs {
        self.0.needs()
    }

    fn touch(&mut self, of: &mut Residency, frame: FrameId, touch: Touch, pattern: Pattern) {
        let block = of.block(frame);
        self.1.note(format!("touch {block} {touch:?} {pattern:?}"));
        self.0.touch(of, frame, touch, pattern);
    }

    fn victim(&mut self, of: &mut Residency, coming: GhostTag) -> Option<FrameId> {
        self.0.victim(of, coming)
    }

    fn evict(&mut self, of: &mut Residency, frame: FrameId) {
        self.0.evict(of, frame);
    }

    fn insert(&mut self, of: &mut Residency, frame: FrameId, pattern: Pattern, memory: GhostTag) {
        self.1
            .note(format!("insert {} {pattern:?}", of.block(frame)));
        self.0.insert(of, frame, pattern, memory);
    }

    fn refresh(&mut self, of: &mut Residency, frame: FrameId, pattern: Pattern) {
        self.1
            .note(format!("refresh {} {pattern:?}", of.block(frame)));
        self.0.refresh(of, frame, pattern);
    }

    fn sent(&mut self, of: &mut Residency, frame: FrameId) {
        self.1.note(format!("sent {}", of.block(frame)));
    }

    fn withdraw(&mut self, of: &mut Residency, frame: FrameId) {
        self.0.withdraw(of, frame);
    }

    fn sequential_miss(&mut self) {
        self.1.note("sequential miss".to_owned());
    }
}

/// Gives the same advice to every request, and a second chance to one block.
struct Advised(Advice, Option<u64>, Log);

impl Prefetcher for Advised {
    fn on_request(&mut self, _: &Seen, _: &Residency, advice: &mut Advice) {
        advice.ahead.extend_from_slice(&self.0.ahead);
        advice.notes.extend_from_slice(&self.0.notes);
    }

    fn on_prefetch_complete(&mut self, blocks: Interval, waiting: PrefetchWaiter) {
        self.2.note(format!("complete {blocks} {waiting:?}"));
    }

    fn on_evict(&mut self, block: u64) -> Verdict {
        match self.1.take_if(|kept| *kept == block) {
            Some(_) => Verdict::SecondChance,
            None => Verdict::Evict,
        }
    }

    fn on_silent_use(&mut self, seen: &Seen) {
        self.2
            .note(format!("silent {} {:?}", seen.blocks, seen.found));
    }
}

/// Writes down what it sees, and fetches nothing ahead.
struct Watching(Log);

impl Prefetcher for Watching {
    fn on_request(&mut self, seen: &Seen, _: &Residency, _: &mut Advice) {
        self.0
            .note(format!("seen {} {:?}", seen.blocks, seen.found));
    }
}

/// The same plan for every request.
struct Fixed(RequestPlan, CoordinatorRules, Log);

impl Coordinator for Fixed {
    fn plan(&mut self, _: Instant, _: &UpperRequest, _: &Residency) -> RequestPlan {
        self.0
    }

    fn rules(&self) -> CoordinatorRules {
        self.1
    }

    fn on_answered(&mut self, asked: &UpperRequest, _: RequestPlan, waited: Duration) {
        let waited = waited.as_nanos();
        self.2.note(format!("answered {} {waited}", asked.blocks));
    }

    fn on_evicted(&mut self, evicted: &Evicted) {
        let Evicted {
            block, was_used, ..
        } = evicted;
        self.2.note(format!("evicted {block} {was_used}"));
    }
}

/// A level of such parts, and what they write.
fn level(
    capacity: u32,
    advice: Advice,
    kept: Option<u64>,
    plan: RequestPlan,
    how: CoordinatorRules,
) -> (Level, Log) {
    let log = Log::default();
    let policy = Box::new(Policy(Lru::new(), log.clone()));
    let cache = Cache::of(policy, capacity, FirstTouch::Insertion);
    let prefetcher = Box::new(Advised(advice, kept, log.clone()));
    let coordinator = Box::new(Fixed(plan, how, log.clone()));
    (Level::of(cache, prefetcher, coordinator, 9), log)
}

fn ahead(first: u64, last: u64, mode: FetchMode) -> Ahead {
    Ahead {
        blocks: Interval::new(first, last),
        mode,
    }
}

fn plan(bypass: u64, readmore: u64) -> RequestPlan {
    RequestPlan {
        bypass,
        readmore,
        ..RequestPlan::default()
    }
}

#[test]
fn the_replacement_hears_what_the_prefetcher_notes() {
    let advice = Advice {
        ahead: vec![ahead(2, 2, FetchMode::Sync)],
        notes: vec![
            Note::SequentialMiss(1),
            Note::Sequential(Interval::new(1, 2)),
            Note::Refresh(Interval::new(0, 1)),
        ],
    };
    let (mut level, log) = level(
        9,
        advice,
        None,
        RequestPlan::default(),
        CoordinatorRules::default(),
    );
    fetched(&mut level, 0, 1);
    let told = [
        "sequential miss",
        "insert 0 Random",
        "insert 1 Sequential",
        "insert 2 Sequential",
    ];
    assert_eq!(log.take()[..4], told);
    fetched(&mut level, 2, 2);
    let told = [
        "sequential miss",
        "refresh 0 Sequential",
        "refresh 1 Sequential",
        "touch 2 First Sequential",
        "answered [2,2] 0",
    ];
    assert_eq!(log.take(), told);
}

#[test]
fn the_prefetcher_hears_whether_a_reader_waits_and_how_long_is_told_the_coordinator() {
    for (reader, waiting) in [(11, "Reader"), (12, "Nobody")] {
        let advice = Advice {
            ahead: vec![ahead(11, 12, FetchMode::Sync)],
            notes: Vec::new(),
        };
        let (mut level, log) = level(
            9,
            advice,
            None,
            RequestPlan::default(),
            CoordinatorRules::default(),
        );
        let at = Instant::from_nanos;
        level
            .submit(at(5), RequestId(0), asked(10, 10))
            .expect("room");
        let fetch = level.poll().expect("10 to 12");
        level
            .submit(at(7), RequestId(1), asked(reader, reader))
            .expect("room");
        log.take();
        level.complete(at(20), fetch.id, Ending::Done);
        let told = [
            "answered [10,10] 15".to_owned(),
            format!("answered [{reader},{reader}] 13"),
            format!("complete [11,12] {waiting}"),
        ];
        assert_eq!(log.take(), told);
    }
}

#[test]
fn an_asynchronous_fetch_is_one_of_its_own_and_none_goes_on_with_what_goes_past() {
    let advice = Advice {
        ahead: vec![
            ahead(2, 3, FetchMode::Async),
            ahead(4, 4, FetchMode::Async),
            ahead(5, 5, FetchMode::Sync),
        ],
        notes: Vec::new(),
    };
    let (mut level, _) = level(
        9,
        advice.clone(),
        None,
        RequestPlan::default(),
        CoordinatorRules::default(),
    );
    let all = fetched(&mut level, 0, 1);
    let runs = [(0, 1), (2, 3), (4, 5)].map(|(first, last)| Interval::new(first, last));
    assert!(all.iter().map(|fetch| fetch.0).eq(runs), "{all:?}");

    // Everything past the cache, and behind it what is read more.
    let (mut level, _) = self::level(
        9,
        Advice::default(),
        None,
        plan(2, 2),
        CoordinatorRules::default(),
    );
    let all = fetched(&mut level, 0, 1);
    let runs = [(0, 1, Purpose::Demand), (2, 3, Purpose::Prefetch)];
    let runs = runs.map(|(first, last, purpose)| (Interval::new(first, last), purpose));
    assert_eq!(all, runs);
}

/// Specification, section 0: maximal runs, one message for each, whichever windows they are of.
#[test]
fn synchronous_windows_that_touch_are_one_message() {
    let advice = Advice {
        ahead: vec![ahead(2, 3, FetchMode::Sync), ahead(4, 5, FetchMode::Sync)],
        notes: Vec::new(),
    };
    let (mut level, _) = level(
        9,
        advice,
        None,
        RequestPlan::default(),
        CoordinatorRules::default(),
    );
    assert_eq!(
        level.store(1),
        Stored::In(level.residency().frame(1).expect("stored"))
    );
    let runs = [(0, 0, Purpose::Demand), (2, 5, Purpose::Prefetch)];
    let runs = runs.map(|(first, last, purpose)| (Interval::new(first, last), purpose));
    assert_eq!(fetched(&mut level, 0, 1), runs);
}

#[test]
fn a_fetch_is_no_longer_than_it_may_be() {
    let advice = Advice {
        ahead: vec![ahead(4, 8, FetchMode::Sync)],
        notes: Vec::new(),
    };
    let (level, _) = level(9, advice, None, plan(1, 0), CoordinatorRules::default());
    let mut level = level.with_longest_fetch(2);
    let demand = |first, last| (Interval::new(first, last), Purpose::Demand);
    let ahead = |first, last| (Interval::new(first, last), Purpose::Prefetch);
    let runs = [
        demand(0, 0),
        demand(1, 2),
        demand(3, 4),
        ahead(5, 6),
        ahead(7, 8),
    ];
    assert_eq!(fetched(&mut level, 0, 3), runs);
}

#[test]
fn what_a_request_finds_does_not_go_for_what_it_misses() {
    let (mut level, _) = level(
        3,
        Advice::default(),
        None,
        RequestPlan::default(),
        CoordinatorRules::default(),
    );
    fetched(&mut level, 3, 3);
    fetched(&mut level, 8, 9);
    // 3 is the oldest, and would go for 1.
    let runs = [(Interval::new(1, 2), Purpose::Demand)];
    assert_eq!(fetched(&mut level, 1, 3), runs);
    assert_eq!(level.counts().hits, 1);
}

#[test]
fn silent_hits_are_silent_unless_the_coordinator_wants_otherwise() {
    let told = CoordinatorRules {
        silent_hits: SilentHits::Touched,
        silent_use: SilentUse::Reported,
        ..CoordinatorRules::default()
    };
    for (rules, touches) in [(CoordinatorRules::default(), 0), (told, 1)] {
        let advice = Advice::default();
        let (mut level, log) = level(9, advice, None, plan(1, 1), rules);
        // 0 goes past, 1 is read more.
        fetched(&mut level, 0, 0);
        log.take();
        fetched(&mut level, 1, 1);
        let log = log.take();
        let count = |what: &str| log.iter().filter(|line| line.starts_with(what)).count();
        assert_eq!(count("touch 1 First"), touches, "{log:?}");
        assert_eq!(count("silent [1,1] All"), touches, "{log:?}");
        assert_eq!(level.counts().ahead_used, 1);
    }
    let (mut level, log) = level(9, Advice::default(), None, plan(0, 0), told);
    fetched(&mut level, 0, 1);
    let log = log.take();
    assert!(
        log.iter().all(|line| !line.starts_with("silent")),
        "nothing went past: {log:?}"
    );
}

#[test]
fn the_prefetcher_sees_a_request_that_goes_past_if_the_coordinator_wants_it() {
    let wanted = CoordinatorRules {
        empty_native: EmptyNative::Seen,
        ..CoordinatorRules::default()
    };
    let told: &[&str] = &["seen [4,6] NotAll"];
    for (rules, told) in [(CoordinatorRules::default(), &[][..]), (wanted, told)] {
        let (level, log) = level(9, Advice::default(), None, plan(3, 0), rules);
        let mut level = level.with_prefetcher(Box::new(Watching(log.clone())));
        fetched(&mut level, 4, 6);
        let mut log = log.take();
        log.retain(|line| line.starts_with("seen"));
        assert_eq!(log, told);
    }
}

#[test]
fn what_is_read_more_is_touched_but_not_used() {
    let gently = CoordinatorRules {
        readmore: ReadmoreAs::Prefetch,
        ..CoordinatorRules::default()
    };
    for (rules, touches) in [(CoordinatorRules::default(), 1), (gently, 0)] {
        let (mut level, log) = level(2, Advice::default(), None, plan(0, 1), rules);
        fetched(&mut level, 0, 0);
        log.take();
        // Behind 0 there is 1, which was read more before.
        fetched(&mut level, 0, 0);
        let touched = log.take();
        let touched = touched
            .iter()
            .filter(|line| *line == "touch 1 First Random");
        assert_eq!(touched.count(), touches);
        // 5 and 6 come, 0 was delivered, 1 never.
        fetched(&mut level, 5, 5);
        let log = log.take();
        assert!(log.contains(&"evicted 0 true".to_owned()), "{log:?}");
        assert!(log.contains(&"evicted 1 false".to_owned()), "{log:?}");
        assert_eq!(level.counts().ahead_evicted_unused, 1);
    }
    // Each block is touched with its own pattern.
    let advice = Advice {
        notes: vec![Note::Sequential(Interval::new(6, 6))],
        ..Advice::default()
    };
    let (mut level, log) = level(9, advice, None, plan(0, 2), CoordinatorRules::default());
    fetched(&mut level, 3, 4);
    log.take();
    fetched(&mut level, 3, 4);
    let mut touched = log.take();
    touched.retain(|line| line.starts_with("touch"));
    let patterns = touched.iter().map(|line| line.rsplit(' ').next());
    let patterns: Vec<&str> = patterns.flatten().collect();
    assert_eq!(patterns, ["Random", "Random", "Random", "Sequential"]);
}

#[test]
fn what_was_sent_is_marked_and_a_second_chance_is_given() {
    let marked = CoordinatorRules {
        sent: Retention::Marked,
        ..CoordinatorRules::default()
    };
    let (mut level, log) = level(
        2,
        Advice::default(),
        Some(3),
        RequestPlan::default(),
        marked,
    );
    fetched(&mut level, 3, 4);
    let sent = ["sent 3", "sent 4", "answered [3,4] 0"];
    assert_eq!(log.take()[2..], sent);
    fetched(&mut level, 5, 5);
    let kept = [
        "refresh 3 Random",
        "evicted 4 true",
        "insert 5 Random",
        "sent 5",
        "answered [5,5] 0",
    ];
    let mut told = log.take();
    // The policy hears of 5 before the coordinator hears of 4.
    told.sort();
    let mut kept = kept.map(str::to_owned);
    kept.sort();
    assert_eq!(told, kept);
}
