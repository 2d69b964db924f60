//! Naive caches: vectors that are searched from end to end, nothing remembered twice.

mod adaptive;
mod ranking;
mod simple;

use std::collections::BTreeSet;

use cache::{BlockState, FetchOrigin, FirstTouch, Pattern};

/// Which of the resident blocks may go.
pub type MayGo<'a> = &'a dyn Fn(u64) -> bool;

/// What a naive policy says.
pub trait Policy {
    /// A demand for a resident block. `counts` says whether it is a reference.
    fn touch(&mut self, block: u64, counts: bool, pattern: Pattern);

    /// Which block goes for this one. It stays until [`Policy::go`].
    fn choose(&mut self, coming: u64, may_go: MayGo) -> u64;

    /// The block goes for another one.
    fn go(&mut self, block: u64);

    /// The block that is to come was remembered, perhaps: adapt, and let it out of what is
    /// remembered.
    fn recall(&mut self, _block: u64) {}

    /// The block has a frame.
    fn come(&mut self, block: u64, pattern: Pattern);

    /// The block counts as newest.
    fn refresh(&mut self, block: u64, pattern: Pattern);

    /// The block was sent upwards.
    fn sent(&mut self, _block: u64) {}

    /// The block is gone without a trace.
    fn withdraw(&mut self, block: u64);

    /// A sequential block was missed.
    fn sequential_miss(&mut self) {}
}

/// A policy by the name that is tested, and its naive twin.
pub struct Case {
    /// As users write it.
    pub name: &'static str,
    /// The twin, for so many frames.
    pub make: fn(usize) -> Box<dyn Policy>,
}

/// All of them. Where a part of the cache has a hundredth by default, a second line makes the part
/// larger than one block.
pub const CASES: &[Case] = &[
    Case {
        name: "lru",
        make: |_| Box::new(simple::Lru::default()),
    },
    Case {
        name: "fifo",
        make: |_| Box::new(simple::Fifo::default()),
    },
    Case {
        name: "du",
        make: |_| Box::new(simple::Du::oldest_first()),
    },
    Case {
        name: "du(first=newest)",
        make: |_| Box::new(simple::Du::newest_first()),
    },
    Case {
        name: "sieve",
        make: |_| Box::new(simple::Sieve::default()),
    },
    Case {
        name: "s3-fifo",
        make: |capacity| {
            Box::new(simple::S3Fifo::new(
                capacity,
                capacity / 10,
                capacity * 9 / 10,
                2,
            ))
        },
    },
    Case {
        name: "s3-fifo(turn=short)",
        make: |capacity| {
            Box::new(simple::S3Fifo::new(capacity, capacity / 10, capacity * 9 / 10, 2).measured())
        },
    },
    Case {
        name: "s3-fifo(fill=main)",
        make: |capacity| {
            let naive = simple::S3Fifo::new(capacity, capacity / 10, capacity * 9 / 10, 2);
            Box::new(naive.filling_main())
        },
    },
    Case {
        name: "s3-fifo(small=400,remembered=500,again=1)",
        make: |capacity| {
            Box::new(simple::S3Fifo::new(
                capacity,
                capacity * 2 / 5,
                capacity / 2,
                1,
            ))
        },
    },
    Case {
        name: "arc",
        make: |capacity| Box::new(adaptive::Arc::new(capacity)),
    },
    Case {
        name: "sarc",
        make: |capacity| Box::new(adaptive::Sarc::new(capacity, 1, 20.0)),
    },
    Case {
        name: "sarc(bottom=250,ratio=2)",
        make: |capacity| Box::new(adaptive::Sarc::new(capacity, (capacity / 4).max(1), 2.0)),
    },
    Case {
        name: "lirs",
        make: |capacity| Box::new(ranking::Lirs::new(capacity - 1, 2 * capacity)),
    },
    Case {
        name: "lirs(high=300,remembered=50)",
        make: |capacity| {
            Box::new(ranking::Lirs::new(
                capacity - (capacity * 3 / 10).max(1),
                capacity / 2,
            ))
        },
    },
    Case {
        name: "mq",
        make: |capacity| Box::new(ranking::Mq::measuring(capacity, 8, 4 * capacity)),
    },
    Case {
        name: "mq(queues=3,remembered=50,life=constant,constant=200)",
        make: |capacity| Box::new(ranking::Mq::constant(2 * capacity, 3, capacity / 2)),
    },
    Case {
        name: "w-tinylfu",
        make: |capacity| {
            Box::new(ranking::WTinyLfu::new(
                capacity,
                1,
                (capacity - 1) * 4 / 5,
                10,
            ))
        },
    },
    Case {
        name: "w-tinylfu(window=400,protected=500,sample=3)",
        make: |capacity| {
            let window = (capacity * 2 / 5).max(1);
            Box::new(ranking::WTinyLfu::new(
                capacity,
                window,
                (capacity - window) / 2,
                3,
            ))
        },
    },
];

/// Blocks, oldest first.
pub type Order = Vec<u64>;

/// Takes the block out; says whether it was there.
pub fn take(order: &mut Order, block: u64) -> bool {
    let before = order.len();
    order.retain(|one| *one != block);
    order.len() < before
}

/// The oldest that may go.
pub fn oldest(order: &Order, may_go: MayGo) -> Option<u64> {
    order.iter().copied().find(|block| may_go(*block))
}

/// A resident block.
#[derive(Clone, Copy)]
struct Kept {
    block: u64,
    state: BlockState,
    is_untouched: bool,
}

/// A naive cache.
pub struct Naive {
    capacity: usize,
    kept: Vec<Kept>,
    policy: Box<dyn Policy>,
    first: FirstTouch,
}

impl Naive {
    /// With so many frames.
    pub fn new(capacity: usize, policy: Box<dyn Policy>, first: FirstTouch) -> Self {
        Self {
            capacity,
            kept: Vec::new(),
            policy,
            first,
        }
    }

    fn find(&mut self, block: u64) -> Option<&mut Kept> {
        self.kept.iter_mut().find(|kept| kept.block == block)
    }

    /// What there is of a block.
    pub fn state(&mut self, block: u64) -> BlockState {
        self.find(block)
            .map_or(BlockState::Absent, |kept| kept.state)
    }

    /// A demand; says whether it is a hit.
    pub fn demand(&mut self, block: u64, pattern: Pattern) -> bool {
        let first = self.first;
        let Some(kept) = self.find(block) else {
            return false;
        };
        let is_first = std::mem::replace(&mut kept.is_untouched, false);
        if !is_first || first == FirstTouch::Reference {
            self.policy.touch(block, true, pattern);
        } else if first == FirstTouch::Insertion {
            self.policy.touch(block, false, pattern);
        }
        true
    }

    /// An absent block comes. Says which one went for it, or nothing if none can.
    pub fn start(
        &mut self,
        block: u64,
        origin: FetchOrigin,
        pattern: Pattern,
        chances: &mut BTreeSet<u64>,
    ) -> Option<Option<u64>> {
        let waits = |kept: &Kept| kept.state == BlockState::InFlight;
        if self.kept.iter().filter(|kept| waits(kept)).count() == self.capacity {
            return None;
        }
        self.policy.recall(block);
        let mut gone = None;
        while self.kept.len() == self.capacity {
            let kept = &self.kept;
            let may_go = |block| kept.iter().any(|kept| kept.block == block && !waits(kept));
            let victim = self.policy.choose(block, &may_go);
            assert!(may_go(victim));
            if chances.remove(&victim) {
                self.policy.refresh(victim, Pattern::Random);
                continue;
            }
            self.policy.go(victim);
            self.kept.retain(|kept| kept.block != victim);
            gone = Some(victim);
        }
        self.kept.push(Kept {
            block,
            state: BlockState::InFlight,
            is_untouched: origin != FetchOrigin::Demand,
        });
        self.policy.come(block, pattern);
        Some(gone)
    }

    /// The read is complete.
    pub fn complete(&mut self, block: u64) {
        if let Some(kept) = self.find(block) {
            kept.state = BlockState::Valid;
        }
    }

    /// The block is void.
    pub fn withdraw(&mut self, block: u64) {
        if self.find(block).is_some() {
            self.kept.retain(|kept| kept.block != block);
            self.policy.withdraw(block);
        }
    }

    /// The block was sent.
    pub fn sent(&mut self, block: u64) {
        if self.find(block).is_some() {
            self.policy.sent(block);
        }
    }

    /// The block becomes newest.
    pub fn refresh(&mut self, block: u64, pattern: Pattern) {
        if self.find(block).is_some() {
            self.policy.refresh(block, pattern);
        }
    }

    /// A sequential block was missed.
    pub fn sequential_miss(&mut self) {
        self.policy.sequential_miss();
    }
}
