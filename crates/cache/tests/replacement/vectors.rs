//! Small cases that were worked out by hand: demands for single blocks, each read complete at once,
//! and which blocks went.

use cache::{BlockState, Cache, FetchOrigin, FirstTouch, Pattern, Verdict};

/// A cache that notes what goes.
struct Run {
    cache: Cache,
    gone: Vec<u64>,
}

impl Run {
    fn new(policy: &str, capacity: u64) -> Self {
        Self {
            cache: Cache::named(policy, capacity, FirstTouch::Insertion).expect(policy),
            gone: Vec::new(),
        }
    }

    fn admit(&mut self, block: u64, origin: FetchOrigin, pattern: Pattern) {
        let ask = |_: &_, _| Verdict::Evict;
        let gone = self.cache.admit(block, origin, pattern, ask);
        self.gone
            .extend(gone.expect("a frame").map(|gone| gone.block));
        self.cache.complete(block);
    }

    fn demand(&mut self, blocks: &[u64]) -> &mut Self {
        for &block in blocks {
            if self.cache.demand(block, Pattern::Random) == BlockState::Absent {
                self.admit(block, FetchOrigin::Demand, Pattern::Random);
            }
        }
        self
    }

    fn sequential(&mut self, blocks: &[u64]) -> &mut Self {
        for &block in blocks {
            if self.cache.demand(block, Pattern::Sequential) == BlockState::Absent {
                self.admit(block, FetchOrigin::Demand, Pattern::Sequential);
            }
        }
        self
    }

    fn resident(&self) -> Vec<u64> {
        let contents = self.cache.residency();
        (0..100)
            .filter(|block| contents.is_resident(*block))
            .collect()
    }
}

#[test]
fn lru_takes_the_least_recently_used() {
    let mut run = Run::new("lru", 3);
    run.demand(&[1, 2, 3, 1, 4, 5, 1, 6]);
    assert_eq!(run.gone, [2, 3, 4]);
    assert_eq!(run.resident(), [1, 5, 6]);
}

#[test]
fn du_takes_what_was_sent_oldest_first_and_newest_first_if_set() {
    for (policy, gone) in [("du", [3, 1, 2]), ("du(first=newest)", [1, 3, 2])] {
        let mut run = Run::new(policy, 4);
        run.demand(&[1, 2, 3, 4]);
        run.cache.sent(3);
        run.cache.sent(1);
        // 5 and 6 go for nobody: unsent ones stay as long as there are sent ones.
        run.demand(&[5, 6, 7]);
        assert_eq!(run.gone, gone, "{policy}");
    }
}

#[test]
fn a_hit_on_a_sent_block_sends_it_again() {
    let mut run = Run::new("du", 3);
    run.demand(&[1, 2, 3]);
    run.cache.sent(1);
    run.cache.sent(2);
    run.demand(&[1]);
    run.cache.sent(1);
    run.demand(&[4, 5]);
    assert_eq!(run.gone, [2, 1]);
}

/// The paper's figure 1 in small: the hand passes visited blocks, clears them, and stays.
#[test]
fn sieve_goes_on_where_its_hand_stopped() {
    let mut run = Run::new("sieve", 4);
    run.demand(&[1, 2, 3, 4, 1, 3]);
    // 1 is cleared, 2 goes; 3 is cleared, 4 goes; 5 goes before the hand is at the oldest again.
    run.demand(&[5, 6, 7]);
    assert_eq!(run.gone, [2, 4, 5]);
    run.demand(&[8, 9]);
    assert_eq!(run.gone, [2, 4, 5, 6, 7]);
}

#[test]
fn s3_fifo_keeps_what_was_asked_for_twice_more_and_what_it_remembers() {
    let mut run = Run::new("s3-fifo(small=500)", 4);
    run.demand(&[1, 1, 1, 2, 3, 4]);
    // 1 moves to the main queue, 2 goes and is remembered.
    run.demand(&[5]);
    assert_eq!(run.gone, [2]);
    // 2 comes back into the main queue; 3 and 4 go from the small one.
    run.demand(&[2, 6]);
    assert_eq!(run.gone, [2, 3, 4]);
    // The small queue is below its half now: the main one gives, and 1 was not asked for there.
    run.demand(&[3]);
    assert_eq!(run.resident(), [1, 2, 3, 6]);
    assert_eq!(run.gone, [2, 3, 4, 5]);
}

#[test]
fn arc_follows_the_cases_of_the_paper() {
    let mut run = Run::new("arc", 3);
    // T1 fills the cache and nothing is remembered: case IV A, the oldest is dropped for good.
    run.demand(&[1, 2, 3, 4]);
    assert_eq!(run.gone, [1]);
    // 2 and 3 to T2; T1 = {4} is above the target 0 and goes to B1.
    run.demand(&[2, 3, 5]);
    assert_eq!(run.gone, [1, 4]);
    // 4 is in B1: the target becomes 1, T1 = {5} is not above it, 2 goes from T2.
    run.demand(&[4]);
    assert_eq!(run.gone, [1, 4, 2]);
    // 2 is in B2: the target becomes 0, and 5 goes.
    run.demand(&[2]);
    assert_eq!(run.gone, [1, 4, 2, 5]);
    assert_eq!(run.resident(), [2, 3, 4]);
}

#[test]
fn lirs_lets_a_scan_pass_through_its_queue() {
    let mut run = Run::new("lirs(high=250)", 4);
    run.demand(&[1, 2, 3]);
    run.demand(&[11, 12, 13, 14, 15]);
    assert_eq!(run.gone, [11, 12, 13, 14]);
    // 14 is remembered in the stack: it becomes low, and 1, the oldest low one, goes to the queue.
    run.demand(&[14]);
    assert_eq!(run.resident(), [1, 2, 3, 14]);
    run.demand(&[16]);
    assert_eq!(run.resident(), [2, 3, 14, 16]);
}

#[test]
fn mq_remembers_how_often_a_block_was_used() {
    let mut run = Run::new("mq(life=constant,constant=1000)", 2);
    run.demand(&[1, 1, 1, 1, 2]);
    // Queue 2 has 1, queue 0 has 2, and then those that follow.
    run.demand(&[3, 4, 5]);
    assert_eq!(run.gone, [2, 3, 4]);
    // 3 comes back with its second use: into queue 1, above 6.
    run.demand(&[3, 3, 6]);
    assert_eq!(run.resident(), [1, 6]);
}

#[test]
fn mq_brings_down_what_is_not_used_for_a_life_time() {
    let mut run = Run::new("mq(life=constant,constant=100)", 2);
    // The life time is two demands: 1 comes from queue 1 to queue 0, behind 2.
    run.demand(&[1, 1, 2, 2, 2, 2, 2, 2]);
    run.demand(&[3]);
    assert_eq!(run.gone, [1]);
}

#[test]
fn w_tinylfu_admits_what_was_asked_for_more_often() {
    let mut run = Run::new("w-tinylfu", 3);
    run.demand(&[1, 1, 1, 2, 2, 2, 3]);
    // The window has 3. It was asked for once, 1 in probation three times: 3 goes.
    run.demand(&[4]);
    assert_eq!(run.gone, [3]);
    // 3 comes again and again, and goes again and again, until it has been asked for more often.
    run.demand(&[3, 4, 3, 4, 3, 4]);
    assert_eq!(run.gone, [3, 4, 3, 4, 3, 4, 1]);
    assert_eq!(run.resident(), [2, 3, 4]);
}

#[test]
fn sarc_compares_ages_while_a_list_is_short_and_sizes_afterwards() {
    let mut run = Run::new("sarc(bottom=500)", 4);
    run.sequential(&[1, 2, 3]).demand(&[10]);
    // RANDOM has one block, less than a bottom: the oldest of both goes.
    run.demand(&[11]);
    assert_eq!(run.gone, [1]);
    // SEQ should have 2 now, as it has: RANDOM gives.
    run.demand(&[12]);
    assert_eq!(run.gone, [1, 10]);
}

#[test]
fn sarc_moves_a_block_that_became_sequential() {
    let mut run = Run::new("sarc", 3);
    run.demand(&[1, 2, 3]);
    run.sequential(&[1]);
    run.cache.refresh(2, Pattern::Sequential);
    // SEQ is [1, 2] and nothing is desired yet: its oldest goes, and it should have one.
    run.demand(&[4]);
    assert_eq!(run.gone, [1]);
    // RANDOM gives. The hit on 1 was in RANDOM's bottom, without any sequential miss: each
    // replacement takes a half from what SEQ should have, and it gives at the next one.
    run.demand(&[5, 6]);
    assert_eq!(run.gone, [1, 3, 2]);
}
