//! The stage alone: idle reads, free blocks before a request, and their accounts.

use block::{Class, Extent, Instant, Lba, Sectors};
use scheduler::background::{Order, TaskPhase};

use super::*;
use crate::context::tests::{StageBench, blocks, good};

/// The stage beside no streams and no preemption, with what it looks at.
struct GapBench {
    bench: StageBench,
    guarantees: Guarantees,
    preemption: Transfers,
    gap: GapStage,
}

impl GapBench {
    fn new(rules: Option<Rules>) -> Self {
        let mut bench = StageBench::new();
        bench.ordering.index_background();
        let gap = rules.map(|rules| GapStage::by(rules, &bench.belief));
        GapBench {
            gap: gap.unwrap_or(GapStage::none()),
            guarantees: Guarantees::none(),
            preemption: Transfers::none(),
            bench,
        }
    }

    fn begin(&mut self, extent: Extent) -> TaskId {
        let geometry = &self.bench.belief.profile().geometry;
        let mut wanted = WantedBlocks::none(geometry);
        wanted.add(extent).expect("blocks of the drive");
        let order = Order {
            wanted,
            priority: 0,
            deadline: None,
        };
        let begun = self.gap.begin(self.bench.now, &self.bench.belief, order);
        begun.expect("it is the first")
    }

    fn idle(&mut self) -> StageAnswer {
        self.gap.idle(&mut self.bench.cx(), &self.guarantees)
    }

    fn depart(&mut self) -> StageAnswer {
        let cx = &mut self.bench.cx();
        self.gap.depart(cx, &self.guarantees, &mut self.preemption)
    }

    fn deliver(&mut self, purpose: Purpose, extent: Extent) -> i64 {
        let id = self.bench.send(purpose, extent);
        let sent = self.bench.dispatch.take(id);
        let outcome = good(id, self.bench.now);
        self.gap.account_for(&self.bench.cx(), (&sent, 0), &outcome)
    }
}

#[test]
fn without_rules_nothing_is_read_and_a_chosen_request_goes_at_once() {
    let mut bench = GapBench::new(None);
    assert!(!bench.gap.is_on());
    assert!(matches!(bench.idle(), StageAnswer::WaitUntil(None)));
    assert!(matches!(bench.depart(), StageAnswer::Pass));
    let piece = bench.bench.submit_chosen(Direction::Read, blocks(800, 8));
    let StageAnswer::Give(Draft::Request { piece: given, .. }) = bench.depart() else {
        panic!("nothing comes before it");
    };
    assert_eq!(given, piece);
    assert_eq!(bench.gap.account(), Account::default());
    assert_eq!(bench.deliver(Purpose::Hop, blocks(0, 8)), 0);
}

#[test]
fn background_reads_go_by_themselves_once_the_drive_was_idle_for_long_enough() {
    let mut bench = GapBench::new(Some(Rules::default()));
    assert!(matches!(bench.idle(), StageAnswer::WaitUntil(None)));
    let task = bench.begin(blocks(4_000_000, 100));
    let after = Rules::default().idle_after.expect("idle reads");
    let StageAnswer::WaitUntil(Some(then)) = bench.idle() else {
        panic!("a request was here just now");
    };
    assert_eq!(then, Instant::ZERO + after);
    assert!(bench.bench.dispatch.settled);

    bench.bench.now = then;
    let mut reads = Vec::new();
    while let StageAnswer::Give(Draft::Background(read)) = bench.idle() {
        assert_eq!(read.means, Means::Idle);
        bench.gap.take(bench.bench.dispatch.next_id(), &read);
        reads.push(read.extent.length().0);
        bench.deliver(Purpose::Background(read), read.extent);
    }
    // The first one begins at the sector that passes next.
    assert!((1..3).contains(&reads.len()), "{reads:?}");
    assert_eq!(bench.gap.left(task).map(WantedBlocks::left), Some(0));
    assert!(matches!(bench.idle(), StageAnswer::WaitUntil(None)));
    // Sets of large drives are of more than single blocks.
    assert!(reads.iter().sum::<u64>() >= 100, "{reads:?}");
    assert_eq!(bench.gap.account().blocks(), Sectors(reads.iter().sum()));
    let progress = bench.gap.task(task).expect("the last one stays known");
    assert_eq!(progress.state, TaskPhase::Finished);
}

#[test]
fn nothing_goes_by_itself_beside_a_request() {
    let mut bench = GapBench::new(Some(Rules::default()));
    bench.begin(blocks(4_000_000, 100));
    bench.bench.now = Instant::ZERO + Duration::from_secs(60);
    bench.bench.send(Purpose::Hop, blocks(0, 8));
    assert!(matches!(bench.idle(), StageAnswer::WaitUntil(None)));
    let class = Class::default();
    bench.bench.submit(Direction::Read, blocks(0, 8), class);
    assert!(matches!(bench.idle(), StageAnswer::Pass));
}

#[test]
fn free_blocks_come_before_a_chosen_request_that_waits_for_its_sector() {
    let mut plans = 0;
    for track in 0..16u64 {
        let mut bench = GapBench::new(Some(Rules::default()));
        bench.begin(blocks(1_000_000, 4_000_000));
        let extent = blocks(3_000_000 + track * 100, 8);
        let piece = bench.bench.submit_chosen(Direction::Read, extent);
        let mut means = Vec::new();
        let own = loop {
            match bench.depart() {
                StageAnswer::Give(Draft::Background(read)) => means.push(read.means),
                StageAnswer::Give(Draft::Request {
                    piece: given,
                    merged,
                    planned,
                    ..
                }) => {
                    means.extend(merged.map(|read| read.means));
                    assert_eq!((given, planned), (piece, Planned::Yes));
                    break given;
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(own, piece, "the request goes, whatever comes before it");
        assert!(means.iter().all(|&paid| paid == Means::Free));
        plans += usize::from(!means.is_empty());
        assert_eq!(bench.gap.gaps().seen, 1);
    }
    assert!(plans > 4, "{plans} of 16 gaps were used");
}

#[test]
fn a_request_that_came_back_undone_goes_by_itself() {
    let mut bench = GapBench::new(Some(Rules::default()));
    bench.begin(blocks(1_000_000, 4_000_000));
    let extent = blocks(3_000_000, 8);
    let piece = bench.bench.submit_chosen(Direction::Read, extent);
    bench.bench.dispatch.chosen.clear();
    bench.bench.ordering.give(Instant::ZERO, piece);
    bench.bench.ordering.requeue(piece);
    bench.bench.ordering.choose_for(piece).expect("it waits");
    let draft = Draft::request(piece, Planned::No);
    bench.bench.dispatch.chosen.push_back(draft);
    let answer = bench.depart();
    assert!(matches!(
        answer,
        StageAnswer::Give(Draft::Request { merged: None, .. })
    ));
    assert_eq!(bench.gap.gaps().seen, 0);
}

#[test]
fn a_task_is_changed_by_name_and_says_whether_it_wants_more() {
    let mut bench = GapBench::new(Some(Rules::default()));
    let task = bench.begin(Extent::block(Lba(8)));
    let now = bench.bench.now;
    for change in [
        TaskChange::Suspend,
        TaskChange::Resume,
        TaskChange::Promote(3),
    ] {
        assert_eq!(bench.gap.change(now, task, change), Ok(false));
    }
    let want = TaskChange::Want(blocks(80, 8));
    assert!(
        bench.gap.change(now, task, want).is_err(),
        "it does not stand"
    );
    let standing = bench.gap.begin_standing(now, &bench.bench.belief, 0);
    let standing = standing.expect("the first one");
    assert_eq!(bench.gap.change(now, standing, want), Ok(true));
    assert_eq!(bench.gap.change(now, standing, want), Ok(false));
    assert_eq!(bench.gap.change(now, task, TaskChange::Abort), Ok(false));
    assert!(bench.gap.change(now, task, TaskChange::Resume).is_err());
}

#[test]
fn a_request_later_than_without_its_plan_is_charged() {
    let mut bench = GapBench::new(Some(Rules::default()));
    let piece = bench.bench.submit_chosen(Direction::Read, blocks(800, 8));
    let period = bench.bench.belief.profile().spindle.period();
    bench.bench.belief.head.free = Instant::ZERO + period + Duration::from_micros(30);
    let unplanned = Some(UnplannedEnd {
        end: Instant::ZERO + Duration::from_micros(10),
        after: None,
        luck: Duration::from_micros(5),
        paid: 0,
        gap: GapUse::Apart(Duration::ZERO),
        on_bus: Duration::ZERO,
    });
    let lost = bench.deliver(Purpose::Request { piece, unplanned }, blocks(800, 8));
    let expected = period + Duration::from_micros(25);
    assert_eq!(lost, expected.as_nanos() as i64);
    assert_eq!(bench.gap.gaps().mispredicted, 1);
}

#[test]
fn the_counts_of_two_actuators_are_added() {
    let counted = |n: u64| Gaps {
        seen: n,
        latency: Duration::from_nanos(2 * n),
        near_miss: 3 * n,
        unworthy: 4 * n,
        withheld: 5 * n,
        planned: [6 * n, 7 * n, 8 * n, 9 * n],
        requests: 12 * n,
        request_blocks: [13 * n, 14 * n],
        head_time: Duration::from_nanos(10 * n),
        mispredicted: 11 * n,
    };
    assert_eq!(counted(30).and(counted(12)), counted(42));
}

/// A request that a plan made late delays all behind it: at the drive, chosen, and waiting.
#[test]
fn a_loss_is_charged_for_each_request_behind_it() {
    for (at_drive, is_chosen, waiting) in [(0, false, 0), (1, true, 0), (2, false, 3), (2, true, 3)]
    {
        let mut bench = GapBench::new(Some(Rules::default()));
        let read = |bench: &mut GapBench, start| {
            let extent = blocks(start, 8);
            bench
                .bench
                .submit(Direction::Read, extent, Class::default())
        };
        let ended = read(&mut bench, 0);
        let slot = bench.bench.ordering.request_slot(ended);
        bench.bench.ordering.choose_for(ended).expect("it waits");
        bench.bench.ordering.give(Instant::ZERO, ended);
        for n in 0..at_drive {
            let piece = read(&mut bench, 1_000 * (n + 1));
            bench.bench.ordering.choose_for(piece).expect("it waits");
            bench.bench.ordering.give(Instant::ZERO, piece);
            let unplanned = None;
            bench
                .bench
                .send(Purpose::Request { piece, unplanned }, blocks(1_000, 8));
        }
        if is_chosen {
            bench.bench.submit_chosen(Direction::Read, blocks(5_000, 8));
        }
        for n in 0..waiting {
            read(&mut bench, 10_000 + n * 100);
        }
        // It waits for a gap, whatever is lost.
        let extent = blocks(90_000, 8);
        bench
            .bench
            .submit(Direction::Write, extent, Class::Background);
        bench.bench.now = Instant::ZERO + Duration::from_millis(12);
        bench.gap.charge(&bench.bench.cx(), slot, 1_000);
        let losses = bench.gap.losses();
        let behind = at_drive + u64::from(is_chosen) + waiting;
        assert_eq!(
            losses.lost,
            1_000 * (1 + behind as i64),
            "{at_drive}, {waiting}"
        );
        assert_eq!(losses.responses, 12_000_000);
    }
}

/// Beside streams a read of a hastened task is no longer than a part of a request.
#[test]
fn hastened_reads_are_as_long_as_parts_of_requests_at_most() {
    let mut bench = GapBench::new(Some(Rules::default()));
    assert!(bench.gap.is_on());
    let hasten = |bench: &mut GapBench| bench.gap.hasten(&mut bench.bench.cx(), &bench.guarantees);
    let task = bench.begin(blocks(1_000_000, 10_000));
    assert!(
        matches!(hasten(&mut bench), StageAnswer::Pass),
        "nothing is hastened"
    );
    let changed = bench.gap.change(bench.bench.now, task, TaskChange::Hasten);
    assert_eq!(changed, Ok(false));
    let most = crate::guarantees::FOREGROUND_BYTES / 4_096;
    let mut longest = 0;
    for _ in 0..50 {
        let StageAnswer::Give(Draft::Background(read)) = hasten(&mut bench) else {
            panic!("no request waits");
        };
        bench.gap.take(bench.bench.dispatch.next_id(), &read);
        bench.deliver(Purpose::Background(read), read.extent);
        longest = longest.max(read.extent.length().0);
    }
    // Sets of large drives are of more than single blocks.
    assert!((most / 2..=most).contains(&longest), "{longest}");
}
